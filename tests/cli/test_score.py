"""``flare score``, as it is typed."""

import resource
import sqlite3
from contextlib import closing

import pytest

from tests.builders import organ_boxes, run_flare, write_nifti
from tests.builders.many import write_teams

ONE = ("--workers", "1")


@pytest.fixture
def words(tmp_path):
    """What is typed to score two teams."""
    teams, labels = write_teams(tmp_path, ["alpha", "beta"])
    return [
        *("score", teams, "--ground-truth", labels),
        *("--output", tmp_path / "results"),
    ]


def test_all_teams_and_how_much_there_was_to_do(words):
    run = run_flare(*words, *ONE)

    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["alpha", "beta"]
    assert lines[0].endswith("(3 of 3 cases scored now)")
    assert [" ".join(line.split()) for line in lines[3:]] == [
        "teams 2",
        "refused 0",
        "cases 6",
        "scored now 6",
    ]


@pytest.mark.parametrize("challenge", ["flare21", "flare23"])
def test_a_corrected_reference_says_which_ranks_it_has_moved(
    words, tmp_path, challenge
):
    words += ["--challenge", challenge]
    run_flare(*words, *ONE)
    for number in (1, 2, 3):  # beta's liver is shifted by 2, as the references are now
        file = tmp_path / "labels" / f"case_{number}.nii.gz"
        write_nifti(file, organ_boxes(shift=2))

    lines = run_flare(*words, *ONE).stdout.splitlines()

    assert lines[-3:] == [
        "Ranks by DSC and NSD alone that have changed:",
        "beta: rank 2, now 1",
        "alpha: rank 1, now 2",
    ]
    assert run_flare(*words, *ONE).stdout.splitlines()[-1] == (
        "No rank by DSC and NSD alone has changed."
    )


def test_a_team_that_is_refused_is_the_last_word(words, tmp_path):
    (tmp_path / "teams" / "beta" / "case_2.nii.gz").unlink()

    run = run_flare(*words, *ONE)

    assert run.returncode == 1
    reason = "Missing 1 of 3 cases: case_2.nii.gz. Submit all 3 files in one zip. [F05]"
    assert run.stderr == f"beta: refused: {reason}\n"
    assert f"beta: refused: {reason}" in run.stdout.splitlines()


def test_why_cases_score_nothing_is_told(words, tmp_path):
    (tmp_path / "teams" / "beta" / "case_2.nii.gz").unlink()

    run = run_flare(*words, *ONE, "--on-bad-case", "worst")

    assert (run.returncode, run.stderr) == (0, "")
    assert (
        "beta: 1 of 3 cases scores 0: no file was submitted (case_2.nii.gz)"
    ) in run.stdout.splitlines()


def test_workers_and_a_cluster_are_not_given_together(words):
    run = run_flare(*words, *ONE, "--cluster", "tcp://127.0.0.1:9")

    assert run.returncode == 2
    assert "argument --cluster: not allowed with argument --workers" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("file_bytes", [0, 4_096, 12_288, 16_384, 20_480])
def test_a_disk_that_is_full_ends_the_run_and_the_next_one_goes_on(
    tmp_path, file_bytes
):
    """No file may become larger, which the program cannot tell from a full disk."""
    cases = [f"case_{number:02}" for number in range(12)]
    teams, labels = write_teams(tmp_path, ["alpha", "beta"], cases)
    words = ["score", teams, "--ground-truth", labels, *ONE, "--output"]
    expected, results = tmp_path / "expected", tmp_path / "results"
    run_flare(*words, expected)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    run = run_flare(*words, results, preexec_fn=fill)

    assert run.returncode == 1
    assert "results/scores.sqlite: it cannot be used (" in run.stderr
    assert run.stderr.count("\n") == 1
    for file in results.glob("*/metrics.json"):
        whole = expected / file.parent.name / file.name
        assert file.read_bytes() == whole.read_bytes()
    kept = 0
    if file_bytes > 4_096:
        with closing(sqlite3.connect(results / "scores.sqlite")) as database:
            ((kept,),) = database.execute("SELECT count(*) FROM scores")
    again = run_flare(*words, results)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.split("scored now ")[1].split()[0] == str(24 - kept)
    for team in ("alpha", "beta"):
        file = f"{team}/metrics.json"
        assert (results / file).read_bytes() == (expected / file).read_bytes()


@pytest.mark.slow
@pytest.mark.tools(package="distributed")
def test_several_workers_and_their_dashboard(words):
    run = run_flare(*words, "--workers", "2")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Dask's dashboard: http://127.0.0.1:")
