"""Scoring on a Dask scheduler: equal bytes, whatever dies."""

import random
import sys
import threading
import time
from functools import partial
from itertools import chain

import pytest

import flare
from flare.common.environment import __version__, source_commit
from flare.evaluation.errors import ClusterError
from flare.evaluation.many import cluster, score
from tests.builders import error_of, wait_until
from tests.builders.errors import told
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

    def shuffled(groups):
        batches = [(case,) for case in chain.from_iterable(groups)]
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

        score_all = partial(flare.evaluate_many, cluster=address, on_progress=stop)
        error = error_of(ClusterError, score_all, teams, labels, results)

    assert error.problem.endswith("the scheduler does not answer any more")
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
def test_a_case_that_kills_all_its_workers_is_named_and_the_run_goes_on(
    data, tmp_path, caplog
):
    """And once it is said that nothing is encrypted."""
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
    assert told(refusals["beta"]) == ("H03", "case_05.nii.gz")
    assert "was killed" in refusals["beta"]
    assert bytes_of(tmp_path / "results") == {
        team: content for team, content in expected.items() if team != "beta"
    }
    assert caplog.text.count("is not encrypted") == 1


@pytest.mark.parametrize(
    ("address", "has_dask", "words"),
    [
        ("tcp://127.0.0.1:9", False, "needs Dask, which .* Install .* leave --cluster"),
        ("slurm.yaml", True, "no address of a Dask scheduler"),
        ("tcp://127.0.0.1:9", True, "^tcp://127.0.0.1:9: no worker answers there"),
        ("tls://127.0.0.1:9", True, "for tls://, set"),  # a certificate is missing
    ],
)
def test_a_cluster_that_cannot_be_used_is_named(
    data, tmp_path, monkeypatch, address, has_dask, words
):
    teams, labels, _ = data
    monkeypatch.setattr(cluster, "WAIT_S", 0.3)
    if not has_dask:
        monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(ClusterError, match=words):
        flare.evaluate_many(teams, labels, tmp_path / "results", cluster=address)


OURS = (__version__, source_commit())


class Client:
    """A scheduler whose workers answer so."""

    def __init__(self, *answers):
        self._answers = answers

    def run(self, *_, **__):
        return {f"tcp://10.0.0.{n}:1": a for n, a in enumerate(self._answers)}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((OURS, ["/data (teams)"]), r"does not see /data \(teams\)"),
        # As an earlier version answers.
        ((("0.1", "unknown"), []), "runs flare 0.1 unknown, not "),
        (ModuleNotFoundError("No module named 'flare'"), "cannot run this program"),
    ],
)
def test_a_worker_that_cannot_score_is_named(tmp_path, answer, words):
    with pytest.raises(ClusterError, match=f"Worker tcp://10.0.0.1:1: it {words}"):
        cluster.check_workers(Client((OURS, []), answer), {"teams": tmp_path})


def test_a_worker_that_ends_while_it_is_asked_is_no_fault(tmp_path):
    cluster.check_workers(Client(OSError("closed"), (OURS, [])), {"teams": tmp_path})


def test_only_what_teams_have_sent_must_be_no_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    folders = {what: str(link) for what in ("teams", "reference labels", "images")}

    found = cluster._look(folders | {"labels": "/none"})

    assert found == (OURS, [f"{link} (teams)", "/none (labels)"])
