"""Whole measurements side by side, with an engine that plays by a script."""

import json
import os
import re

import pytest

from flare.cli.main import main
from tests.builders import case_names
from tests.builders.teams import SCRIPTS

pytestmark = pytest.mark.slow

LIMITS = (
    *("--gpu", "none", "--interval", "0.05", "--no-warm-up", "--memory", "120m"),
    *("--output-size", "8m", "--timeout", "20"),
)


@pytest.fixture
def flare(bench, capfd):
    """Measure all archives of the bench; the status and what was written."""

    def run(*more):
        words = (
            *("measure", bench.folder / "archives", "--images", bench.images),
            *("--output", bench.results, *LIMITS, *more),
        )
        status = main([str(word) for word in words])
        return status, *capfd.readouterr()

    return run


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_teams_are_spread_over_two_lanes(bench, flare):
    for team in ("good", "crash", "silent", "text"):
        bench.archive(team, SCRIPTS[team])

    status, stdout, stderr = flare("--lanes", "2", "--ground-truth", bench.labels)

    assert (status, stderr) == (0, "")
    statuses = {
        team: {row["status"] for row in bench.rows(team).values()}
        for team in ("good", "crash", "silent", "text")
    }
    assert statuses == {
        "good": {"ok"},
        "crash": {"failed"},
        "silent": {"no output"},
        "text": {"wrong output"},
    }
    told = re.findall(r"^\[(\d+)/12\] (\w+) (\w+)", stdout, re.MULTILINE)
    assert [int(number) for number, _, _ in told] == list(range(1, 13))
    assert len({(team, case) for _, team, case in told}) == 12
    lanes = {}
    for team in statuses:
        content = json.loads((bench.results / team / "measurement.json").read_text())
        (session,) = content["sessions"]
        lanes[team] = session["lane"]
        assert content["settings"]["lanes"] == 2
        assert f"--cpuset-cpus {lanes[team]['cpus']} " in session["command"]
    assert {lane["number"] for lane in lanes.values()} == {0, 1}
    assert len({lane["cpus"] for lane in lanes.values()}) == 2
    assert set(case_names(3)) == set(bench.rows("good"))
    assert bench.engine.left() == []
    assert bench.hidden() == []
    assert stdout.index("[12/12]") < stdout.index("good: 3 ok")
