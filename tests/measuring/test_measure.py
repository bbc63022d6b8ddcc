"""Measuring with a real engine: tiny images of teams that are good, and of others."""

import csv
import json
import re

import pytest

from tests.builders.teams import (
    LIMITS,
    SCRIPTS,
    brisk_command,
    flare_command,
    left_behind,
    rows_of,
    save_team,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

STATUSES = {
    **dict.fromkeys(("good", "slow", "forking", "owner", "network"), "ok"),
    **dict.fromkeys(("meddling", "chatty"), "ok"),
    "crash": "failed",
    "hang": "timed out",
    "hungry": "out of memory",
    "silent": "no output",
    **dict.fromkeys(("misnamed", "extra", "text", "link", "pipe"), "wrong output"),
}
"""What comes of each team; a fork bomb is ended by one limit or another."""

SHORT = ("--timeout", "3")
"""For those that it ends: nothing is near to it."""

GROUPS = {
    "bomb": (flare_command, SHORT, ["bomb"]),
    "plain": (flare_command, (), ["good", "slow"]),
    "hang": (brisk_command, SHORT, ["hang"]),
}
"""Teams that are measured first, and how: some by the program as it is."""

OTHERS = set(SCRIPTS) - {team for *_, teams in GROUPS.values() for team in teams}
"""What is measured behind them: together, by the brisk program."""


@pytest.fixture(scope="module")
def results(archives, one_case, tmp_path_factory):
    """All teams, measured on a case and scored; `good` was built, saved, compressed."""
    folder = tmp_path_factory.mktemp("measured")
    good = save_team(folder, "good", SCRIPTS["good"], compressed=True)
    groups = GROUPS | {"others": (brisk_command, (), OTHERS)}
    for name, (run, more, teams) in groups.items():
        (folder / name).mkdir()
        for team in teams:
            file = good if team == "good" else archives[team]
            (folder / name / file.name).symlink_to(file)
        _, stderr = run(
            *("measure", folder / name, "--images", one_case / "images"),
            *("--ground-truth", one_case / "labels", "--output", folder / "results"),
            *(*LIMITS, "--no-warm-up", *more),
        )
        assert stderr == ""
    return folder / "results"


# --- What comes of a run ----------------------------------------------------------


@pytest.mark.parametrize("team", SCRIPTS)
def test_the_status_of_each_team(results, team):
    """And only the good ones have values."""
    row = rows_of(results / team)["validation_001"]

    if team == "bomb":
        assert row["status"] in ("failed", "timed out", "out of memory")
    else:
        assert row["status"] == STATUSES[team], row["message"]
    is_ok = row["status"] == "ok"
    for name in ("runtime_s", "cpu_s", "max_host_memory_mb", "engine_runtime_s"):
        assert bool(row[name]) == is_ok, name
    assert bool(row["message"]) != is_ok
    predictions = list((results / team / "predictions").iterdir())
    assert len(predictions) == is_ok
    if not is_ok:
        log = re.search(r"see (logs/\S+)$", row["message"])[1]
        assert (results / team / log).is_file()


def test_nothing_is_left_behind(results):

    assert left_behind(results) == []
    assert list(results.rglob(".*")) == []
    assert {path.name for path in (results / "good").iterdir()} == {
        *("efficiency.csv", "logs", "measurement.json", "metrics.json"),
        *("predictions", "traces"),
    }


def test_a_time_is_that_of_the_container(results):
    """Two seconds of sleep, and what the engine costs, which is written down."""
    row = rows_of(results / "slow")["validation_001"]
    record = json.loads((results / "slow" / "measurement.json").read_text())
    (session,) = record["sessions"]
    cost = session["engine_cost_s"]

    within, whole = float(row["engine_runtime_s"]), float(row["runtime_s"])
    # Engines note the start only after it: on a busy computer, up to 0.2 s were seen.
    assert 1.0 < within <= whole
    assert whole >= 2.0
    # What is around the container is the engine's work, as around an empty one.
    assert whole - within < 10 * cost["largest"]
    assert cost["runs"] == 3
    assert 0 < cost["smallest"] <= cost["median"] <= cost["largest"]


def test_traces_are_kept(results):
    with (results / "slow" / "traces" / "validation_001.csv").open() as content:
        samples = list(csv.DictReader(content))

    times = [float(sample["seconds"]) for sample in samples]
    assert 15 <= len(times) <= 40
    assert times == sorted(times)
    # The first may come before the container is there, the last when it has ended.
    memory_mb = [float(s["host_memory_mb"]) for s in samples if s["host_memory_mb"]]
    assert len(memory_mb) >= len(samples) - 5
    assert min(memory_mb) > 0


def test_metrics_and_efficiency_lie_side_by_side(results):
    """Predictions equal the labels: 1. Whatever failed scores 0, and says why."""
    good, crash = (
        json.loads((results / team / "metrics.json").read_text())
        for team in ("good", "crash")
    )

    assert good["aggregates"]["dsc_mean"] == 1
    assert good["efficiency"]["cases_ok"] == 1
    runtime_s = float(rows_of(results / "good")["validation_001"]["runtime_s"])
    assert good["efficiency"]["runtime_s_mean"] == runtime_s
    assert crash["aggregates"]["dsc_mean"] == 0
    assert crash["efficiency"] == {"cases": 1, "cases_ok": 0}
    assert crash["failed"]["validation_001"].startswith("failed: the container ended")
