"""What measuring writes: each file is as its schema says."""

import json

import pytest

import flare
from flare.challenge.reading import read_challenge
from flare.measuring.rescore import evaluate_team
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.ledger_csv import LEDGER_CSV
from flare.results.measurement_json import MEASUREMENT_JSON
from flare.results.metrics_json import METRICS_JSON
from flare.results.refused_csv import REFUSED_CSV
from flare.results.traces_csv import TRACES
from tests.builders.schemas import file_problems, read_table
from tests.builders.teams import PREDICT, SCRIPTS
from tests.measuring.conftest import FakeGpu

TEAM_FILES = {
    METRICS_JSON: "metrics",
    MEASUREMENT_JSON: "measurement",
    EFFICIENCY_CSV: "efficiency-row",
    f"{TRACES}/validation_001.csv": "trace-row",
}


def team_problems(folder):
    """What is wrong with the files of a team."""
    found = {
        name: file_problems(folder / name, TEAM_FILES[name]) for name in TEAM_FILES
    }
    return [f"{name}: {line}" for name, lines in found.items() for line in lines]


@pytest.mark.slow
def test_files_of_two_teams_and_of_a_refused_archive(bench, measure):
    """One works, one crashes; then they are ranked."""
    bench.archive("good", PREDICT)
    bench.archive("crash", SCRIPTS["crash"])
    (bench.sent / "bad.tar.gz").write_bytes(b"")

    status, _, stderr = measure("--ground-truth", bench.labels)

    assert status == 1, stderr
    for team in ("good", "crash"):
        assert team_problems(bench.results / team) == []
    assert file_problems(bench.results / LEDGER_CSV, "ledger-row") == []
    assert file_problems(bench.results / REFUSED_CSV, "refused-row") == []

    ranking = flare.rank(bench.results, metrics=["dsc", "nsd", "runtime_s"])
    ranking.write(bench.folder / "ranking")

    file = bench.folder / "ranking" / "ranking.json"
    assert file_problems(file, "ranking") == []
    content = json.loads(file.read_text())
    assert content["origin"]["measured"]["caches"] == ["warm"]
    assert content["roll_call"]["refused"][0]["team"] == "bad"


@pytest.mark.slow
def test_files_of_a_team_that_uses_a_gpu(bench):
    """With repeats, and a case that is run again: every column has something."""
    archive = bench.archive("good", f"sleep 0.1\n{PREDICT}")
    (bench.engine.state / "gpus").touch()
    again = {"rerun": ("validation_001",), "reason": "the GPU was hot"}
    for options in ({}, again):
        bench.measure(archive, cases=1, gpu=FakeGpu(), repeats=2, **options)
    evaluate_team(bench.results / "good", bench.labels, read_challenge("flare21"))

    assert team_problems(bench.results / "good") == []
    _, (row,) = read_table(bench.results / "good" / EFFICIENCY_CSV, "efficiency-row")
    # The scripted engine has no control groups.
    unknown = {"cpu_area_percent_s", "cpu_s", "max_host_memory_mb", "message"}
    assert {name for name, value in row.items() if value is None} == unknown
    record = json.loads((bench.results / "good" / MEASUREMENT_JSON).read_text())
    assert [session["gpu"]["name"] for session in record["sessions"]] == ["G", "G"]


def test_files_of_a_team_that_crashes(bench):
    bench.measure(bench.archive("crash", SCRIPTS["crash"]), cases=1)
    evaluate_team(bench.results / "crash", bench.labels, read_challenge("flare21"))

    assert team_problems(bench.results / "crash") == []
    _, (row,) = read_table(bench.results / "crash" / EFFICIENCY_CSV, "efficiency-row")
    assert (row["status"], row["runtime_s"]) == ("failed", None)
    assert file_problems(bench.results / LEDGER_CSV, "ledger-row") == []
