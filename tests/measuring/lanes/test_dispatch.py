"""Which lane gets which team, and what becomes of teams whose process is killed."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from flare.common.errors import EngineError
from flare.measuring.lanes import dispatch as dispatch_module
from flare.measuring.lanes.dispatch import Dispatch
from flare.measuring.lanes.process import TeamEnd
from tests.builders.lanes import ScriptedPool, job_of, lane, whole
from tests.builders.running import record
from tests.measuring.conftest import Notes

TWO = (lane(0), lane(1, cpus=(2,)))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Measure teams on lanes by a script; the pool, and what was told."""

    def start(teams, script, lanes=TWO):
        pool, notes = ScriptedPool(lanes, script), Notes()
        left = {team: cases for team, cases, _ in teams}
        job = job_of(tmp_path, {team: image for team, _, image in teams})

        @contextmanager
        def planned_team(of, *, is_here):
            yield SimpleNamespace(todo=[SimpleNamespace(case=c) for c in left[of.team]])

        monkeypatch.setattr(dispatch_module, "planned_team", planned_team)
        dispatch = Dispatch(job, None, pool, notes)
        dispatch.plan(is_here=True)
        dispatch.measure()
        return pool, notes

    return start


def teams(*names, cases=("c1", "c2")):
    return [(name, cases, f"image of {name}") for name in names]


def test_the_next_team_goes_to_the_lane_that_is_free_first(run):
    """Lane 0 has the longer team; lane 1 gets all others."""
    script = {
        "long": [whole(*[f"c{n}" for n in range(9)])],
        **{name: [whole("c1")] for name in "abc"},
    }
    long = ("long", tuple(f"c{n}" for n in range(9)), "i")

    pool, notes = run([long, *teams(*"abc", cases=("c1",))], script)

    assert pool.begun == [("long", 0), ("a", 1), ("b", 1), ("c", 1)]
    assert [(n, of) for _, _, n, of in notes.runs()] == [(n, 12) for n in range(1, 13)]
    assert notes.failed == {}


def test_a_team_whose_process_is_killed_goes_on_and_nothing_is_told_twice(run):
    """Of c1 it was heard, of c2 not; c3 was killed."""
    script = {"a": [[record("c1", 1.0), None], [record("c1", 1.0), *whole("c2", "c3")]]}

    pool, notes = run(teams("a", cases=("c1", "c2", "c3")), script)

    assert notes.runs() == [("a", f"c{n}", n, 3) for n in (1, 2, 3)]
    assert pool.begun == [("a", 0), ("a", 0)]
    first, second = pool.jobs
    assert first.after == ()
    assert [folder.name for folder in second.after] == ["a"]
    assert notes.words() == ["c1", "c2", "c3", "a"]


def test_the_next_team_waits_for_what_a_killed_one_has_left_on_its_lane(run):
    """Team a goes on on lane 1, which was free first."""
    script = {"a": [[None], whole("c1")], "b": [whole("c1")]}

    pool, _ = run(teams("a", "b", cases=("c1",)), script)

    assert [(job.team, [f.name for f in job.after]) for job in pool.jobs] == [
        ("a", []),
        ("b", []),
        ("a", ["a"]),
    ]


@pytest.mark.parametrize("deaths", [2, 3])
def test_a_team_is_given_up_after_three_killed_processes(run, deaths):
    """After two, it goes on."""
    script = {name: [whole("c1", "c2")] for name in "ab"}
    script["a"] = [*([None] for _ in range(deaths)), *script["a"]][:3]

    pool, notes = run(teams("a", "b"), script)

    assert len(pool.jobs) == 4
    assert list(notes.failed) == ["a"] * (deaths == 3)
    for message in notes.failed.values():
        assert "a: 3 processes that measured it were killed" in message
    runs = [run[:2] for run in notes.runs()]
    assert sorted(runs)[-2:] == [("b", "c1"), ("b", "c2")]
    assert len(runs) == (2 if notes.failed else 4)


def test_a_lane_without_a_working_engine_is_left_out(run):
    """Its team goes on elsewhere, and no other one is spoilt."""
    broken = [TeamEnd(EngineError("docker: gone", "Start it.")), None]
    script = {name: [whole("c1", "c2")] for name in "abc"}
    script["a"].insert(0, broken)

    pool, notes = run(teams("a", "b", "c"), script)

    assert pool.begun == [("a", 0), ("b", 1), ("a", 1), ("c", 1)]
    assert notes.failed == {}
    assert len(notes.runs()) == 6


def test_the_last_lane_is_not_left_out(run):
    broken = [TeamEnd(EngineError("docker: gone", "Start it.")), None]
    script = {"a": [broken], "b": [whole("c1", "c2")]}

    pool, notes = run(teams("a", "b"), script, lanes=[lane(0)])

    assert notes.failed == {"a": "docker: gone. Start it. [H05]"}
    assert pool.begun == [("a", 0), ("b", 0)]
    assert [(n, of) for _, _, n, of in notes.runs()] == [(1, 2), (2, 2)]


def test_equal_images_are_not_measured_at_the_same_time(run):
    """Whoever is done first would remove that of the other."""
    script = {name: [whole("c1")] for name in "abc"}
    same = [("a", ("c1",), "i"), ("b", ("c1",), "i"), ("c", ("c1",), "other")]

    pool, _ = run(same, script)

    assert [team for team, _ in pool.begun] == ["a", "c", "b"]


def test_teams_are_told_of_as_done_while_nothing_runs(run):
    """But those of which nothing is left to do, before all others."""
    script = {"a": [whole("c1")], "b": [whole("c1", "c2")]}

    _, notes = run([("old", (), "i"), *teams("a", "b")], script)

    assert notes.words() == ["old", "c1", "c1", "c2", "a", "b"]


def test_teams_of_which_no_lane_is_left_are_told(run, monkeypatch):
    monkeypatch.setattr(ScriptedPool, "free", lambda _: [])

    _, notes = run(teams("a", "b"), {})

    assert [*notes.failed] == ["a", "b"]
    assert "a: no lane is left. The same command goes on." in notes.failed["a"]
