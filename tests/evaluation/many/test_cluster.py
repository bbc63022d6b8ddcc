"""Scoring on a Dask scheduler: equal bytes, whatever dies."""

import random
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import flare
from flare.common.installation import __version__, source_commit
from flare.evaluation.errors import ClusterError
from flare.evaluation.many import cluster, score
from tests.builders import wait_until
from tests.builders.many import dask_processes, write_teams

pytestmark = pytest.mark.tools(package="distributed")

TEAMS = ("alpha", "beta", "gamma")
CASES = tuple(f"case_{number:02}" for number in range(12))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Teams and references, and the bytes that one process gives."""
    folder = tmp_path_factory.mktemp("data")
    teams, labels = write_teams(folder, TEAMS, CASES)
    flare.evaluate_many(teams, labels, folder / "results", workers=1)
    return teams, labels, bytes_of(folder / "results")


@pytest.fixture
def single(monkeypatch):
    """Batches of one case each, in any order."""

    def shuffled(todo):
        batches = [(pair,) for pair, _ in todo]
        random.shuffle(batches)
        yield from batches

    monkeypatch.setattr(score, "split", shuffled)


def bytes_of(results):
    return {
        file.parent.name: file.read_bytes() for file in results.glob("*/metrics.json")
    }


@pytest.mark.slow
def test_a_worker_that_is_killed_at_any_moment_changes_nothing(data, single, tmp_path):
    """A scheduler with two workers, started by hand, of which one dies each time."""
    teams, labels, expected = data
    moments = random.Random(2021)

    with dask_processes(tmp_path) as (address, workers, start_worker, _):
        for number in range(10):
            results, pause = tmp_path / f"results{number}", moments.uniform(0, 1.5)

            def kill(results=results, pause=pause):
                wait_until((results / "scores.sqlite").exists)
                time.sleep(pause)
                workers.pop(0).kill()
                workers.append(start_worker())

            thread = threading.Thread(target=kill)
            thread.start()
            found = flare.evaluate_many(teams, labels, results, cluster=address)
            thread.join()

            assert bytes_of(results) == expected, pause
            assert not any(team.refusal for team in found.teams)


@pytest.mark.slow
def test_a_scheduler_that_ends_is_named(data, single, tmp_path):
    teams, labels, expected = data
    results = tmp_path / "results"

    with dask_processes(tmp_path) as (address, _, _, scheduler):

        def stop(found):
            scheduler.kill()

        with pytest.raises(ClusterError) as caught:
            flare.evaluate_many(
                teams, labels, results, cluster=address, on_progress=stop
            )

    assert str(caught.value) == (
        f"{address}: the scheduler does not answer any more. Start it again, and this"
        " command: it goes on where it was. [H10]"
    )
    flare.evaluate_many(teams, labels, results, workers=1)
    assert bytes_of(results) == expected


FATAL = """
import os
from flare.evaluation.scoring import case



def fatal(pair, challenge, score=case.score_case):
    if pair.case == "case_05" and pair.prediction.path.parent.name == "beta":
        os.kill(os.getpid(), 9)
    return score(pair, challenge)

case.score_case = fatal
"""


@pytest.mark.slow
def test_a_case_that_kills_all_its_workers_is_named_and_the_run_goes_on(data, tmp_path):
    teams, labels, expected = data

    with dask_processes(tmp_path, preload=FATAL) as (address, workers, start_worker, _):
        is_over = threading.Event()

        def replace():
            while not is_over.wait(0.1):
                for worker in [w for w in workers if w.poll() is not None]:
                    workers.remove(worker)
                    workers.append(start_worker())

        thread = threading.Thread(target=replace)
        thread.start()
        results = tmp_path / "results"
        found = flare.evaluate_many(teams, labels, results, cluster=address)
        is_over.set()
        thread.join()

    refusals = {team.team: team.refusal for team in found.teams if team.refusal}
    assert list(refusals) == ["beta"]
    assert refusals["beta"].startswith("case_05.nii.gz: ")
    assert "the process that scored it was killed" in refusals["beta"]
    assert "[H03]" in refusals["beta"]
    assert bytes_of(tmp_path / "results") == {
        team: content for team, content in expected.items() if team != "beta"
    }


# --- What is refused --------------------------------------------------------------


def test_without_dask_it_says_what_to_install(data, tmp_path, monkeypatch):
    teams, labels, _ = data
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(ClusterError) as caught:
        flare.evaluate_many(
            teams, labels, tmp_path / "results", cluster="tcp://127.0.0.1:9"
        )

    assert str(caught.value).startswith(
        "--cluster needs Dask, which is not installed. Install it: "
    )
    assert str(caught.value).endswith("Or leave --cluster out. [H10]")


def test_a_file_of_jobs_is_no_address(data, tmp_path):
    teams, labels, _ = data

    with pytest.raises(ClusterError, match="no address of a Dask scheduler"):
        flare.evaluate_many(teams, labels, tmp_path / "r", cluster="slurm.yaml")


def test_an_address_where_nobody_answers_is_named(data, tmp_path, monkeypatch):
    teams, labels, _ = data
    monkeypatch.setattr(cluster, "WAIT_S", 0.3)

    with pytest.raises(ClusterError) as caught:
        flare.evaluate_many(
            teams, labels, tmp_path / "results", cluster="tcp://127.0.0.1:9"
        )

    assert str(caught.value) == (
        "tcp://127.0.0.1:9: no worker answers there. Start the scheduler and its"
        " workers, or leave --cluster out. [H10]"
    )


def test_tls_without_a_certificate_is_named(data, tmp_path):
    """Nobody was asked: it is no worker that is missing."""
    teams, labels, _ = data

    with pytest.raises(ClusterError) as caught:
        flare.evaluate_many(
            teams, labels, tmp_path / "results", cluster="tls://127.0.0.1:9"
        )

    assert "certificate" in caught.value.problem


@pytest.mark.slow
def test_a_scheduler_without_tls_is_warned_of_once(data, tmp_path, caplog):
    teams, labels, _ = data

    with dask_processes(tmp_path, workers=1) as (address, _, _, _):
        flare.evaluate_many(teams, labels, tmp_path / "results", cluster=address)

    warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "is not encrypted" in warnings[0]


OURS = (__version__, source_commit())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            (OURS, ["/data/teams (teams)"], []),
            "Worker tcp://10.0.0.7:40001: it does not see /data/teams (teams). All"
            " machines need the same folders under the same paths. [H10]",
        ),
        (
            (OURS, [], ["/data/teams (teams)"]),
            "Worker tcp://10.0.0.7:40001: it sees /data/teams (teams) through a link."
            " Mount the folder there under this path itself. [H10]",
        ),
        (
            (("0.1", "unknown"), []),  # as an earlier version answers
            "Worker tcp://10.0.0.7:40001: it runs flare 0.1 unknown, not"
            f" {' '.join(OURS)}. Install the same version everywhere. [H10]",
        ),
        (
            ModuleNotFoundError("No module named 'flare'"),
            "Worker tcp://10.0.0.7:40001: it cannot run this program (No module named"
            f" 'flare'). Install flare {__version__} there, with the same Python and"
            " Dask. [H10]",
        ),
    ],
)
def test_a_worker_that_cannot_score_is_named(tmp_path, answer, message):
    class Client:
        def run(self, *_, **__):
            return {"tcp://10.0.0.7:40001": answer}

    with pytest.raises(ClusterError) as caught:
        cluster.check_workers(Client(), {"teams": tmp_path})

    assert str(caught.value) == message


def test_a_worker_that_ends_while_it_is_asked_is_no_fault(tmp_path):
    class Client:
        def run(self, *_, **__):
            return {
                "tcp://10.0.0.7:1": OSError("closed"),
                "tcp://10.0.0.8:1": (OURS, [], []),
            }

    cluster.check_workers(Client(), {"teams": tmp_path})


def test_a_worker_says_what_it_does_not_see(tmp_path):
    version, missing, linked = cluster._look(
        {"teams": str(tmp_path), "labels": "/none"}
    )

    assert version == OURS
    assert missing == ["/none (labels)"]
    assert linked == []


def test_only_what_teams_have_sent_must_be_no_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    _, missing, linked = cluster._look(
        {what: str(link) for what in ("teams", "reference labels", "images")}
    )

    assert missing == []
    assert linked == [f"{link} (teams)"]


def test_a_worker_that_sees_a_folder_through_a_link_scores_nothing(
    data, tmp_path, monkeypatch
):
    """On its computer, that is; here the same folder is a real one."""
    teams, labels, _ = data
    link = tmp_path / "teams"
    link.symlink_to(teams)

    class Client:
        def run(self, look, _, **__):
            return {"tcp://10.0.0.7:1": look({"teams": str(link)})}

    @contextmanager
    def connected(_):
        yield Client()

    monkeypatch.setattr(cluster, "connected", connected)
    with pytest.raises(ClusterError) as caught:
        flare.evaluate_many(teams, labels, tmp_path / "r", cluster="tcp://10.0.0.7:1")

    assert caught.value.problem.startswith("Worker tcp://10.0.0.7:1: it sees /")
    assert caught.value.problem.endswith("/teams (teams) through a link")
    assert not [*(tmp_path / "r").glob("*/metrics.json")]
    assert not (tmp_path / "r" / "refused.csv").exists()
