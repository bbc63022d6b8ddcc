"""``flare score``, as it is typed."""

import csv
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from flare.common.text import safe
from flare.evaluation.metrics.kernel import kernel_problem
from tests.builders import ROOT, run_command, run_flare, write_file
from tests.builders.errors import told
from tests.builders.many import write_teams

ONE = ("--workers", "1")


@pytest.fixture
def words(tmp_path):
    teams, labels = write_teams(tmp_path, ["alpha", "beta"])
    return [
        *("score", teams, "--ground-truth", labels),
        *("--output", tmp_path / "results"),
    ]


def test_all_teams_and_how_much_there_was_to_do(words, tmp_path):
    run = run_flare(*words, *ONE)

    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["alpha", "beta"]
    assert lines[0].endswith("(3 of 3 cases scored now)")
    assert [" ".join(line.split()) for line in lines[3:]] == [
        "teams 2",
        "refused 0",
        "cases scored now 6",
        "cases scored before 0",
    ]
    for name in ("means.csv", "means.md", "means.tex"):
        assert (tmp_path / "results" / name).stat().st_size


def test_teams_of_answers_alone_are_told_by_their_values(tmp_path):
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(
        'name = "Answers"\n[[answers]]\nname = "task"\nkind = "number"\n'
        'file = "a.csv"\nreference = ["prediction"]\nworst = 9\n'
        'metrics = ["mean_absolute_error"]\n'
    )
    for folder, value in (("labels", 1.5), ("teams/alpha", 2.0)):
        write_file(tmp_path / folder / "a.csv", f"name,prediction\nc1,{value}\n")

    run = run_flare(
        *("score", tmp_path / "teams", "--ground-truth", tmp_path / "labels"),
        *("--challenge", challenge, "--output", tmp_path / "results", *ONE),
    )

    assert (run.returncode, run.stderr) == (0, "")
    text = "alpha: MAE of task 0.5000 (1 of 1 cases scored now)\n"
    assert run.stdout.startswith(text)


def test_means_are_written_without_what_takes_longer_to_load_than_a_case(words):
    """They were 3 times the work of `flare evaluate` for one small case."""
    code = (
        "import sys\n"
        "from flare.cli.main import main\n"
        f"main({[str(word) for word in (*words, *ONE)]})\n"
        "print('LOADED', *sys.modules)"
    )

    run = run_command(sys.executable, "-c", code)

    loaded = run.stdout.rpartition("LOADED ")[2].split()
    assert "flare.reports.paper.tables" in loaded
    others = {"pandas", "scipy", "jinja2", "flare.reports.paper.methods"}
    # NumPy's way of counting needs SciPy.
    assert others.intersection(loaded) <= {"scipy" if kernel_problem() else ""}


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_team_that_is_refused_is_the_last_word(words, tmp_path, is_damaged):
    """Its other cases have no score that is left, and count neither way."""
    file = tmp_path / "teams" / "beta" / "case_2.nii.gz"
    content = file.read_bytes()
    file.unlink()
    if is_damaged:
        file.write_bytes(content[:-4])

    run = run_flare(*words, *ONE)

    assert run.returncode == 1
    table = safe(tmp_path / "results" / "refused.csv")
    assert run.stderr == f"1 of 2 teams refused: beta. Why is in {table}\n"
    (line,) = (row for row in run.stdout.splitlines() if row.startswith("beta: "))
    expected = ("F09", "case_2.nii.gz") if is_damaged else ("F05", "")
    assert told(line.removeprefix("beta: refused: ")) == expected
    assert [" ".join(row.split()) for row in run.stdout.splitlines()[-4:]] == [
        *("teams 2", "refused 1", "cases scored now 3", "cases scored before 0"),
    ]


def test_results_of_a_team_that_is_gone_are_named(words, tmp_path):
    """They are ranked like the others; one that was measured was never submitted."""
    results = tmp_path / "results"
    assert run_flare(*words, *ONE).returncode == 0
    (results / "delta").mkdir()
    (results / "delta" / "efficiency.csv").touch()
    (tmp_path / "teams" / "beta").rename(tmp_path / "beta")
    shutil.copy(results / "alpha" / "metrics.json", results / "delta")

    run = run_flare(*words, *ONE)

    assert (run.returncode, run.stderr) == (0, "")
    line = (
        f"In {safe(results)}, but not in {safe(tmp_path / 'teams')}: beta. They are"
        " ranked, too, until you remove them."
    )
    assert run.stdout.splitlines()[-1] == line


def test_the_table_of_scores_is_ranked_like_the_folders(words, tmp_path):
    (tmp_path / "teams" / "beta" / "case_2.nii.gz").unlink()
    table, results = tmp_path / "scores.csv", tmp_path / "results"
    more = (*ONE, "--on-bad-case", "worst", "--csv", table)
    assert run_flare(*words, *more).returncode == 0

    ranks = []
    for source in (results, table):
        output = tmp_path / f"ranking-{source.name}"
        run = run_flare("rank", source, "--metrics", "dsc,nsd", "--output", output)
        assert run.returncode == 0, run.stderr
        ranks.append((output / "case_ranks.csv").read_text())

    assert ranks[0] == ranks[1]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = json.loads((results / "alpha" / "metrics.json").read_text())["case"]
    value = {tuple(row.values())[:3]: row["value"] for row in rows}
    assert value["alpha", "case_1", "dsc"] == repr(scores["dsc"]["0"])
    assert value["beta", "case_2", "dsc"] == ""


SLOW = """
import sys, time
sys.path.insert(0, {root!r})
from flare.evaluation.scoring import case
from flare.cli.main import main

def slow(pair, challenge, score=case.score_case):
    print("begun", flush=True)
    time.sleep(0.3)
    return score(pair, challenge)

case.score_case = slow
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("command", ["score", "evaluate"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_it_reads_one_line(words, tmp_path, how, command, workers):
    """Ctrl-C reaches all processes of the terminal, the workers, too.

    Of a kill nothing is said, not even by Python's resource tracker.
    """
    script = write_file(tmp_path / "slow.py", SLOW.format(root=str(ROOT)))
    if command == "evaluate":
        words[:2] = ["evaluate", "--input", tmp_path / "teams" / "alpha"]
    typed = [sys.executable, script, *words, "--workers", workers]
    process = subprocess.Popen(
        list(map(str, typed)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while "begun" not in process.stdout.readline():
        assert process.poll() is None
    (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
    stdout, stderr = process.communicate(timeout=30)  # until all have closed it

    is_told = how != signal.SIGKILL
    assert process.returncode == (128 + how if is_told else -how)
    assert "Traceback" not in stdout
    assert stderr.count("\n") == is_told
    assert stderr.endswith("[H04]\n" * is_told)
    if command == "score" and is_told:
        assert "What was scored is kept; the same command goes on." in stderr
        assert run_flare(*words, "--workers", "1").returncode == 0


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
