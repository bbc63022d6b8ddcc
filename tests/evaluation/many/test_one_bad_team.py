"""Whatever one team sends, the others are scored, and it alone is refused."""

import os
import shutil
import signal
import socket
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

import flare
from flare.common.errors import InputError
from flare.common.executor import DEATHS
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.many import score as run_module
from flare.evaluation.many.cases import TeamCase, split
from flare.evaluation.scoring import case
from flare.results.archives_csv import read_refused
from flare.results.metrics_json import write_metrics
from tests.builders import organ_boxes, write_file, write_nifti
from tests.builders.errors import told
from tests.builders.many import write_teams, zipped

TEAMS = ("alpha", "beta", "gamma")


@pytest.fixture
def teams(tmp_path):
    return write_teams(tmp_path, TEAMS)[0]


@pytest.fixture
def score(teams, tmp_path):
    """Score all teams: of those that were refused, why, by name."""

    def run(workers=1, **options):
        found = flare.evaluate_many(
            teams, tmp_path / "labels", tmp_path / "results", workers=workers, **options
        )
        return {team.team: team.refusal for team in found.teams if team.refusal}

    return run


def check_others(tmp_path, *bad, teams=TEAMS):
    scored = {file.parent.name for file in tmp_path.glob("results/*/metrics.json")}
    assert scored == {*teams} - {*bad}
    for team in scored:
        found = flare.evaluate(tmp_path / "teams" / team, tmp_path / "labels")
        alone = write_metrics(found, tmp_path / "alone").read_bytes()
        assert (tmp_path / "results" / team / "metrics.json").read_bytes() == alone


# --- What comes up while a case is scored -----------------------------------------


def failing(monkeypatch, what):
    """Let this happen when the second case of beta is scored."""

    def fail(pair, challenge, score=case.score_case):
        if pair.case == "case_2" and pair.prediction.path.parent.name == "beta":
            what()
        return score(pair, challenge)

    monkeypatch.setattr(case, "score_case", fail)


def overflow():
    raise OverflowError("nobody expected this")


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "workers", "code"),
    [
        *((overflow, workers, "X01") for workers in (1, 2)),
        *((mock.Mock(side_effect=MemoryError), n, "H03") for n in (1, 2)),
        (kill, 2, "H03"),
    ],
)
def test_what_comes_up_while_a_case_is_scored_refuses_its_team(
    score, tmp_path, monkeypatch, what, workers, code
):
    failing(monkeypatch, what)

    refusals = score(workers)

    assert [*refusals] == ["beta"]
    assert told(refusals["beta"])[0] == code
    check_others(tmp_path, "beta")
    faults = tmp_path / "results" / ".faults"
    if code == "X01":
        trace = (faults / "beta.txt").read_text()
        assert "OverflowError: nobody expected this" in trace
        assert "in overflow" in trace  # also from another process
        monkeypatch.undo()
        assert score(workers) == {}
        assert not list(faults.iterdir())
    else:
        how = "was killed" if what is kill else "ran out of memory"
        assert how in refusals["beta"]


def test_a_score_that_no_reader_takes_refuses_its_team(score, tmp_path, monkeypatch):
    """Written, it would end the ranking of all teams."""

    def results_of(plan, attempts, make=run_module.results_of, **options):
        results = make(plan, attempts, **options)
        if attempts[0].pair.prediction.path.parent.name != "beta":
            return results
        first, *cases = results.cases
        first = replace(first, by_metric={"dsc": 1.5, "nsd": 1.0})
        return replace(results, cases=(first, *cases))

    monkeypatch.setattr(run_module, "results_of", results_of)

    refusals = score()

    assert told(refusals["beta"])[0] == "X01"
    check_others(tmp_path, "beta")
    trace = (tmp_path / "results" / ".faults" / "beta.txt").read_text()
    assert "dsc is 1.5, above 1" in trace


def test_a_team_whose_every_case_kills_is_given_up_at_the_first(
    score, tmp_path, monkeypatch
):
    kills = tmp_path / "kills"

    def fail(pair, challenge, score=case.score_case):
        if pair.prediction.path.parent.name == "beta":
            with kills.open("a") as file:
                file.write("x")
            kill()
        return score(pair, challenge)

    monkeypatch.setattr(case, "score_case", fail)

    refusals = score(2)

    assert [*refusals] == ["beta"]
    assert "was killed" in refusals["beta"]
    # The batch of all teams, and then one case alone.
    assert len(kills.read_text()) == 2 * DEATHS
    check_others(tmp_path, "beta")


# --- What lies there ----------------------------------------------------------------


def link_folder(teams):
    shutil.rmtree(teams / "beta")
    (teams / "beta").symlink_to(teams.parent / "labels")


def link_zip(teams):
    zipped(teams / "beta")
    (teams / "beta.zip").rename(teams.parent / "elsewhere.zip")
    (teams / "beta.zip").symlink_to(teams.parent / "elsewhere.zip")


def replaced(make, name="beta.zip"):
    """Let something else lie there."""

    def replace(teams):
        if name == "beta.zip":
            shutil.rmtree(teams / "beta")
        else:
            (teams / name).unlink(missing_ok=True)
        make(teams / name)

    return replace


def listen(path):
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(path.parent)  # a path of a socket is short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(before)


def endless(path):
    path.symlink_to("/dev/zero")


def lead_too_far(path):
    path.symlink_to("x" * 300)


CASE = "beta/case_2.nii.gz"


@pytest.mark.parametrize(
    "make",
    [
        link_folder,
        link_zip,
        *(replaced(make) for make in (os.mkfifo, listen, endless)),
        *(replaced(make, CASE) for make in (os.mkfifo, listen, endless, lead_too_far)),
        *(replaced(make, "beta/predictions.json") for make in (os.mkfifo, endless)),
    ],
)
def test_what_is_no_folder_or_file_refuses_its_team(score, teams, tmp_path, make):
    make(teams)

    refusals = score()

    assert [*refusals] == ["beta"]
    assert "\n" not in refusals["beta"]
    check_others(tmp_path, "beta")


def archive(teams):
    """It would be missing without a word; one that was unpacked here is not."""
    (teams / "delta.tar.gz").write_bytes(b"")
    (teams / "alpha.tgz").write_bytes(b"")


@pytest.mark.parametrize("make", [lambda teams: lead_too_far(teams / "delta"), archive])
def test_what_cannot_be_looked_at_is_refused_alone(score, teams, tmp_path, make):
    make(teams)

    refusals = score()

    assert [*refusals] == ["delta"]
    is_archive = "flare measure runs Docker images. [H01]" in refusals["delta"]
    assert is_archive == (make is archive)
    check_others(tmp_path)


def test_references_that_are_not_there_are_no_fault_of_a_team(score, teams, tmp_path):
    """Nothing that was scored before is lost by a word that is typed wrongly."""
    assert score() == {}
    (tmp_path / "labels").rename(tmp_path / "elsewhere")

    with pytest.raises(InputError, match="labels"):
        score()

    (tmp_path / "elsewhere").rename(tmp_path / "labels")
    assert not read_refused(tmp_path / "results")
    check_others(tmp_path)


def test_results_do_not_go_among_submissions(teams, tmp_path):
    with pytest.raises(InputError, match="submitted"):
        flare.evaluate_many(teams, tmp_path / "labels", teams / ".." / "teams")


def test_a_link_in_the_results_is_not_followed(score, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    write_file(elsewhere / "metrics.json", "of somebody else")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "beta").symlink_to(elsewhere)

    assert [*score()] == ["beta"]
    assert (elsewhere / "metrics.json").read_text() == "of somebody else"


def test_a_measured_team_keeps_its_scores(score, tmp_path):
    folder = tmp_path / "results" / "beta"
    write_file(folder / "efficiency.csv", "case,status\n")
    (folder / "metrics.json").write_text("of the measurement")

    assert "flare rescore" in score()["beta"]

    assert (folder / "metrics.json").read_text() == "of the measurement"


# --- Names --------------------------------------------------------------------------


@pytest.mark.parametrize("is_zip", [False, True])
@pytest.mark.parametrize("name", ["scores.sqlite-wal", "ledger.csv", "x\u200by"])
def test_a_name_that_no_team_can_have_refuses_it(score, teams, tmp_path, name, is_zip):
    shutil.copytree(teams / "alpha", teams / name)
    if is_zip:
        shutil.make_archive(teams / name, "zip", teams / name)
        shutil.rmtree(teams / name)

    for _ in range(2):  # nor is it so the next time
        assert [*score()] == [name]
    check_others(tmp_path)


def test_names_that_look_like_others_give_way_to_those_with_results(
    score, teams, tmp_path
):
    """`flare rank` would refuse all teams because of them."""
    assert score() == {}
    shutil.copytree(teams / "alpha", teams / "Alpha")
    shutil.copytree(teams / "alpha", teams / "b\uff45ta")

    refusals = score()

    assert [*refusals] == ["Alpha", "b\uff45ta"]
    assert "alpha" in refusals["Alpha"]
    assert "beta" in refusals["b\uff45ta"]
    check_others(tmp_path)


# --- What is scored is what was digested ----------------------------------------------


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something between the digest of the second case of beta and its scoring."""

    def between(change):
        digest_of = run_module.digest_of

        def digested(pair):
            digest = digest_of(pair)
            if pair.case == "case_2" and pair.prediction.path.parent.name == "beta":
                change(pair)
            return digest

        monkeypatch.setattr(run_module, "digest_of", digested)
        # As in a later run: in a first one, files are not digested before.
        monkeypatch.setattr(run_module.KeptScores, "has_any", lambda _: True)

    return between


def test_no_score_is_kept_of_a_file_that_changes(
    score, teams, tmp_path, meanwhile, monkeypatch
):
    """A team with an equal file waits for its outcome, and gets one of its own."""
    shutil.copytree(teams / "beta", teams / "twin")
    file = teams / "beta" / "case_2.nii.gz"
    before = file.read_bytes()
    meanwhile(lambda _: write_nifti(file, organ_boxes(shift=7)))

    assert score() == {}

    check_others(tmp_path, teams=(*TEAMS, "twin"))
    monkeypatch.undo()
    file.write_bytes(before)
    assert score() == {}
    check_others(tmp_path, teams=(*TEAMS, "twin"))


def link_the_file(pair):
    pair.prediction.path.unlink()
    pair.prediction.path.symlink_to(pair.reference.path)


def link_the_folder(pair):
    folder = pair.prediction.path.parent
    folder.rename(folder.with_name(".elsewhere"))
    folder.symlink_to(pair.reference.path.parent)


def remove(pair):
    pair.prediction.path.unlink()


@pytest.mark.parametrize("change", [remove, link_the_file, link_the_folder])
def test_a_file_that_goes_or_becomes_a_link_meanwhile_refuses_its_team(
    score, teams, tmp_path, meanwhile, change
):
    """Whoever owns the folder of beta would have a DSC of 1, by a link."""
    if change is remove:
        shutil.copytree(teams / "beta", teams / "twin")
    meanwhile(change)

    refusals = score()

    assert [*refusals] == ["beta"]
    assert told(refusals["beta"])[0] == "H01"
    if change is remove:
        check_others(tmp_path, "beta", teams=(*TEAMS, "twin"))


def rewrite_reference(pair):
    write_nifti(pair.reference.path, organ_boxes(shift=3))


def add_reference(pair):
    shutil.copy(pair.reference.path, pair.reference.path.with_name("case_9.nii.gz"))


@pytest.mark.parametrize("change", [rewrite_reference, add_reference])
@pytest.mark.parametrize(("workers", "at_once"), [(1, 8), (2, 8), (1, 1)])
def test_a_reference_that_changes_meanwhile_ends_it(
    score, meanwhile, monkeypatch, change, workers, at_once
):
    monkeypatch.setattr(run_module, "TEAMS_AT_ONCE", at_once)
    meanwhile(change)

    with pytest.raises(GroundTruthError, match="it changed while it was evaluated"):
        score(workers, on_bad_case="worst")


def test_nothing_is_kept_of_a_file_that_is_read_without_a_digest(
    score, tmp_path, monkeypatch
):
    monkeypatch.setattr("flare.evaluation.many.cases.IN_MEMORY_BYTES", 10)

    assert score() == {}
    check_others(tmp_path)
    found = flare.evaluate_many(
        tmp_path / "teams", tmp_path / "labels", tmp_path / "results", workers=1
    )

    assert [team.scored for team in found.teams] == [3, 3, 3]


# --- Many of them -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("teams", "voxels", "sizes"),
    [
        (1, [150_000_000] * 5, [2, 2, 1]),
        (1, [500_000_000, 1, 1], [1, 2]),
        (1, [1] * 130, [64, 64, 2]),
        (3, [50_000_000] * 5, [6, 6, 3]),
        (3, [1] * 43, [63, 63, 3]),
        (3, [500_000_000, 1], [3, 3]),
        (1, [], []),
    ],
)
def test_batches_are_of_about_the_same_work(teams, voxels, sizes):
    """Those of a reference are in one, by all teams."""
    groups = []
    for number in voxels:
        pair = SimpleNamespace(voxels=number)
        groups.append([TeamCase(team=t, pair=pair, check_only=False) for t in "abc"])
        del groups[-1][teams:]

    batches = list(split(groups))

    assert [len(batch) for batch in batches] == sizes
    assert [*chain(*batches)] == [*chain(*groups)]
