"""Kept predictions are scored anew, and what was measured stays."""

import json
import math
import re
import shutil

import pytest

from flare.challenge.reading import read_challenge
from flare.common.errors import InputError, OutputError
from flare.evaluation.evaluate import evaluate
from flare.measuring.measure import team_table
from flare.measuring.rescore import evaluate_team, rescore
from flare.results.efficiency_csv import CaseRecord, RunStatus, write_records
from flare.results.metrics_json import write_metrics
from tests.builders import ROOT, organ_boxes, run_flare, write_cases
from tests.builders.errors import told

CASES = ("case_1", "case_2")
RUN_OK = {"runtime_s": 5.0, "engine_runtime_s": 4.5, "max_host_memory_mb": 9.0}


def lax(folder):
    """FLARE21 with a tolerance of 100 mm for every organ, and a comment."""
    text = (ROOT / "flare" / "challenge" / "editions" / "flare21.toml").read_text()
    file = folder / "flare21.toml"
    file.write_text(text.replace("tolerance_mm = 1", "tolerance_mm = 100") + "# so\n")
    return file


@pytest.fixture
def labels(tmp_path):
    return write_cases(tmp_path / "labels", CASES)


@pytest.fixture
def results(tmp_path, labels):
    """A team with one good case and one that crashed, scored by FLARE21's rules."""
    folder = tmp_path / "results" / "a"
    moved = organ_boxes(shift=3)  # 2.4 mm
    write_cases(folder / "predictions", CASES[:1], labels=moved)
    crash = CaseRecord(
        case="case_2",
        status=RunStatus.FAILED,
        message="the container ended with exit code 1 after 0.3 s",
    )
    good = CaseRecord(case="case_1", status=RunStatus.OK, **RUN_OK)
    write_records([good, crash], folder / "efficiency.csv")
    evaluate_team(folder, labels, read_challenge("flare21"), 1)
    return tmp_path / "results"


def metrics(results, team="a"):
    return json.loads((results / team / "metrics.json").read_text())


def command(results, labels, *more):
    return run_flare("rescore", results, "--ground-truth", labels, *more)


def test_only_the_scores_change(results, labels, tmp_path):
    """With 100 mm, the liver that lies three voxels too far has an NSD of 1."""
    before = metrics(results)
    table = (results / "a" / "efficiency.csv").read_bytes()
    assert before["case"]["nsd"]["0"] < 1

    run = command(results, labels, "--challenge", lax(tmp_path), "--workers", "1")

    assert (run.returncode, run.stderr) == (0, "")
    after = metrics(results)
    assert after["case"]["nsd"] == {"0": 1.0, "1": 0.0}
    assert after["case"]["dsc"] == before["case"]["dsc"]
    for key in ("failed", "efficiency"):
        assert after[key] == before[key]
    assert after["failed"]["case_2"].startswith("failed: the container ended with exit")
    assert after["efficiency"] == {"cases": 2, "cases_ok": 1}
    assert (results / "a" / "efficiency.csv").read_bytes() == table
    dsc, nsd = (before["aggregates"][f"{name}_mean"] for name in ("dsc", "nsd"))
    last = run.stdout.splitlines()[-1].split()
    assert last == ["a", f"{dsc:.4f}", f"{dsc:.4f}", f"{nsd:.4f}", "0.5000"]


def test_the_same_rules_give_the_same_bytes_and_what_has_no_predictions_is_left(
    results, labels
):
    options = {"grid": "size", "unknown_labels": "ignore"}
    shutil.rmtree(evaluated(results, labels, "baseline", **options) / "predictions")
    (results / "stray").mkdir()
    before = {file: file.read_bytes() for file in results.glob("*/metrics.json")}

    run = command(results, labels)

    assert run.returncode == 0
    *_, team, left, command_line = run.stdout.splitlines()
    assert team.endswith("as before")
    assert left.endswith("left as it is: no prediction is kept")
    assert "baseline. Score what was submitted: flare score TEAMS" in command_line
    flags = " --on-bad-case worst --grid size --unknown-labels ignore."
    assert command_line.endswith(flags)
    assert "stray" not in run.stdout
    after = {file: file.read_bytes() for file in results.glob("*/metrics.json")}
    assert after == before


def evaluated(results, labels, team, **options):
    folder = results / team
    write_cases(folder / "predictions", CASES[:1], labels=organ_boxes(shift=3))
    (folder / "predictions" / "inputs.json").write_text("[]")
    found = evaluate(folder / "predictions", labels, on_bad_case="worst", **options)
    write_metrics(found, folder)
    return folder


@pytest.mark.parametrize("options", [{}, {"grid": "size", "decimals": 2}])
def test_a_team_that_was_only_evaluated_is_scored_with_its_own_options(
    results, labels, tmp_path, options
):
    folder = evaluated(results, labels, "baseline", **options)
    before = metrics(results, "baseline")
    told = before["evaluation"]["options"]

    run = command(results, labels, "--challenge", lax(tmp_path))

    assert (run.returncode, run.stderr) == (0, "")
    after = metrics(results, "baseline")
    assert before["case"]["nsd_liver"]["0"] < 1
    assert after["case"]["nsd_liver"]["0"] == 1
    assert after["case"]["dsc"] == before["case"]["dsc"]
    assert after["evaluation"]["options"] == told
    texts = {name: str(value) for name, value in options.items()}
    assert told == {"on_bad_case": "worst", **texts}
    assert not (folder / "efficiency.csv").exists()


BAD = (
    *(None, [], {"grid": "loose"}, {"speed": "high"}),
    *({"decimals": "two"}, {"decimals": math.inf}),
)


def test_a_team_that_cannot_be_scored_stops_no_other(results, labels):
    """Its file stays: what was measured is broken, or its options are none."""
    shutil.copytree(results / "a", results / "b")
    (results / "b" / "efficiency.csv").write_text("case\n1\n")
    for number, options in enumerate(BAD):
        file = evaluated(results, labels, f"c{number}") / "metrics.json"
        content = json.loads(file.read_text())
        content["evaluation"]["options"] = options
        file.write_text(json.dumps(content))
    before = {file: file.read_bytes() for file in results.glob("[bc]*/metrics.json")}
    (results / "a" / "metrics.json").unlink()

    run = command(results, labels)

    assert run.returncode == 1
    assert told(run.stderr)[0] == "H07"
    found = re.findall(r"^(\w+): not scored: .*\[(\w+)\]$", run.stdout, re.MULTILINE)
    assert found == [("b", "H07"), *((f"c{n}", "G06") for n in range(len(BAD)))]
    assert {file: file.read_bytes() for file in before} == before
    assert metrics(results)["case"]["dsc"]["1"] == 0


def test_how_many_other_teams_cannot_be_scored(results, labels):
    for team in "bc":
        shutil.copytree(results / "a", results / team)
        (results / team / "efficiency.csv").write_text("case\n1\n")

    assert command(results, labels).stderr.endswith(" (and 1 other team)\n")


def test_a_team_in_the_middle_of_its_measurement_gets_interim_scores(results, labels):
    file = results / "a" / "efficiency.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))

    (found,) = rescore(results, labels, read_challenge("flare21"), workers=1)

    assert metrics(results)["failed"] == {"case_2": "no file was submitted"}
    assert found.after["dsc"] == metrics(results)["aggregates"]["dsc_mean"]


def test_what_cannot_be_written_is_not_told_as_new_scores(results, labels, monkeypatch):
    evaluated(results, labels, "b")

    def full(*_):
        raise OutputError("the disk is full")

    monkeypatch.setattr("flare.measuring.rescore.write_results", full)
    for found in rescore(results, labels, read_challenge("flare21"), workers=1):
        assert found.error
        assert set(found.after.values()) == {None}


def test_a_folder_without_teams_is_refused(tmp_path, labels):
    """Hidden folders, such as those of a service, are nobody's."""
    hidden = tmp_path / "results" / ".serve" / "metrics.json"
    hidden.parent.mkdir(parents=True)
    hidden.touch()
    for folder in (tmp_path / "none", labels, tmp_path / "results"):
        with pytest.raises(InputError, match="Give the folder that has one for each"):
            rescore(folder, labels, read_challenge("flare21"))


def test_the_table_of_a_team_says_what_is_wrong_and_what_is_doubtful(tmp_path):
    ok = {"status": RunStatus.OK, **RUN_OK}
    failed = {"status": RunStatus.WRONG_OUTPUT, "message": "no case has this name"}
    records = {"b": ok | {"doubts": "GPU in use"}, "a": failed, "c": ok}
    rows = [CaseRecord(case=case, **row) for case, row in records.items()]
    write_records(rows, tmp_path / "efficiency.csv")

    assert [line.split() for line in team_table(tmp_path, "t").splitlines()[:-1]] == [
        ["t:", "2", "ok,", "1", "wrong", "output"],
        ["case", "status", "seconds", "GPU", "memory", "in", "MB"],
        ["a", "wrong", "output", "-", "-", "no", "case", "has", "this", "name"],
        ["b", "ok", "5.00", "-", "GPU", "in", "use"],
        ["c", "ok", "5.00", "-"],
    ]
