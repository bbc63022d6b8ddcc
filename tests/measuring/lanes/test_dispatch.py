"""Which lane gets which team, and what becomes of teams whose process is killed."""

import json

import pytest

from flare.common.errors import EngineError
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.lanes.dispatch import Dispatch
from flare.measuring.lanes.process import Ended, Planned
from flare.measuring.summary import Failures, Listener
from tests.builders.lanes import ScriptedPool, device, lane, plan, whole
from tests.builders.running import record


class Notes(Listener):
    """Notes what it is told."""

    def __init__(self):
        self.runs, self.failed = [], {}

    def on_run(self, team, record, number, total):
        """Note a case that has ended."""
        self.runs.append((team, record.case, number, total))

    def on_failure(self, team, error):
        """Note a team that has ended by an error."""
        self.failed[team] = str(error)


TWO = (lane(0), lane(1, cpus=(2,)))


@pytest.fixture
def run(tmp_path):
    """Measure teams on lanes by a script; the pool, and what was told."""

    def start(teams, script, lanes=TWO, accepted=()):
        pool, notes = ScriptedPool(lanes, script), Notes()

        def make_job(turn, on):
            job = plan(turn.plan.team, sorted(turn.left), tmp_path)
            job.after = turn.after
            return job

        dispatch = Dispatch(
            pool=pool,
            make_job=make_job,
            failures=Failures(tmp_path, notes.on_failure),
            listener=notes,
            accepted=accepted,
        )
        dispatch.measure(
            [plan(team, cases, tmp_path / team, image) for team, cases, image in teams]
        )
        return pool, notes

    return start


def teams(*names, cases=("c1", "c2")):
    """Teams with all cases left, and an image of their own."""
    return [(name, cases, f"image of {name}") for name in names]


def begun_on(tmp_path, team, on):
    """Let a team be one that was begun on a lane."""
    (tmp_path / team).mkdir()
    content = {"settings": on.settings(), "sessions": []}
    (tmp_path / team / "measurement.json").write_text(json.dumps(content))


def test_the_next_team_goes_to_the_lane_that_is_free_first(run):
    """Lane 0 has the longer team; lane 1 gets all others."""
    script = {
        "long": [whole(*[f"c{n}" for n in range(9)])],
        **{name: [whole("c1")] for name in "abc"},
    }
    long = ("long", tuple(f"c{n}" for n in range(9)), "i")

    pool, notes = run([long, *teams(*"abc", cases=("c1",))], script)

    assert pool.begun == [("long", 0), ("a", 1), ("b", 1), ("c", 1)]
    assert [(n, of) for _, _, n, of in notes.runs] == [(n, 12) for n in range(1, 13)]
    assert notes.failed == {}


def test_a_team_whose_process_is_killed_goes_on_and_nothing_is_told_twice(run):
    """Of c1 it was heard, of c2 not; c3 was killed."""
    script = {
        "a": [
            [Planned(todo=("c1", "c2", "c3"), done={}), record("c1", 1.0), None],
            [Planned(todo=("c3",), done={"c1": record("c1"), "c2": record("c2", 2.0)}),
             record("c3", 3.0), Ended(), None],
        ]
    }  # fmt: skip

    pool, notes = run(teams("a", cases=("c1", "c2", "c3")), script)

    assert notes.runs == [("a", f"c{n}", n, 3) for n in (1, 2, 3)]
    assert pool.begun == [("a", 0), ("a", 0)]
    first, second = pool.jobs
    assert first.after == ()
    assert [folder.name for folder in second.after] == ["a"]
    assert [case.name for case in second.todo] == ["c2", "c3"]


def test_the_next_team_waits_for_what_a_killed_one_has_left_on_its_lane(run):
    """Team a goes on on lane 1, which was free first."""
    killed = [Planned(todo=("c1",), done={}), None]
    script = {"a": [killed, whole("c1")], "b": [whole("c1")]}

    pool, _ = run(teams("a", "b", cases=("c1",)), script)

    assert [(job.team, [f.name for f in job.after]) for job in pool.jobs] == [
        ("a", []),
        ("b", []),
        ("a", ["a"]),
    ]


def test_a_team_is_given_up_after_three_processes(run):
    killed = [Planned(todo=("c1", "c2"), done={}), None]
    script = {"a": [list(killed) for _ in range(3)], "b": [whole("c1", "c2")]}

    _, notes = run(teams("a", "b"), script)

    assert list(notes.failed) == ["a"]
    assert "a: 3 processes that measured it were killed" in notes.failed["a"]
    assert [run[:2] for run in notes.runs] == [("b", "c1"), ("b", "c2")]


def test_a_lane_without_a_working_engine_is_left_out(run):
    """Its team goes on elsewhere, and no other one is spoilt."""
    broken = [EngineError("docker: gone", "Start it."), Ended(), None]
    script = {
        "a": [broken, whole("c1", "c2")],
        "b": [whole("c1", "c2")],
        "c": [whole("c1", "c2")],
    }

    pool, notes = run(teams("a", "b", "c"), script)

    assert pool.begun == [("a", 0), ("b", 1), ("a", 1), ("c", 1)]
    assert notes.failed == {}
    assert len(notes.runs) == 6


def test_the_last_lane_is_not_left_out(run):
    broken = [EngineError("docker: gone", "Start it."), Ended(), None]
    script = {"a": [broken], "b": [whole("c1", "c2")]}

    pool, notes = run(teams("a", "b"), script, lanes=[lane(0)])

    assert notes.failed == {"a": "docker: gone. Start it. [H05]"}
    assert pool.begun == [("a", 0), ("b", 0)]
    assert [(n, of) for _, _, n, of in notes.runs] == [(1, 2), (2, 2)]


def test_a_bad_archive_is_no_fault_of_its_lane(run):
    bad = [ArchiveError("a.tar.gz", "it is bad"), Ended(), None]
    script = {"a": [bad], "b": [whole("c1", "c2")], "c": [whole("c1", "c2")]}

    pool, notes = run(teams("a", "b", "c"), script)

    assert list(notes.failed) == ["a"]
    assert pool.begun == [("a", 0), ("b", 1), ("c", 0)]


def test_equal_images_are_not_measured_at_the_same_time(run):
    """Whoever is done first would remove that of the other."""
    script = {name: [whole("c1")] for name in "abc"}
    same = [("a", ("c1",), "i"), ("b", ("c1",), "i"), ("c", ("c1",), "other")]

    pool, _ = run(same, script)

    assert [team for team, _ in pool.begun] == ["a", "c", "b"]


def test_a_team_goes_on_on_a_lane_of_its_kind_alone(run, tmp_path):
    slow, fast = lane(0, gpu=device(1, "T4")), lane(1, gpu=device(2, "H100"))
    begun_on(tmp_path, "a", fast)
    script = {"a": [whole("c1", "c2")], "b": [whole("c1", "c2")]}

    pool, _ = run(teams("a", "b"), script, lanes=[slow, fast])

    assert pool.begun == [("b", 0), ("a", 1)]


def test_a_team_of_which_no_lane_is_left_is_told(run, tmp_path):
    begun_on(tmp_path, "a", lane(0, gpu=device(1, "T4")))

    _, notes = run(teams("a"), {}, lanes=[lane(0, gpu=device(2, "H100"))])

    assert "here, lane 0 has gpu H100, not T4. " in notes.failed["a"]
    assert "--unlike-host" in notes.failed["a"]


def test_a_lane_of_another_gpu_goes_on_where_that_is_accepted(run, tmp_path):
    """As by --unlike-host; another share of the memory is never accepted."""
    begun_on(tmp_path, "a", lane(0, gpu=device(1, "T4")))
    lanes = [lane(0, gpu=device(2, "H100"))]

    pool, notes = run(teams("a", cases=("c1",)), {"a": [whole("c1")]}, lanes, ["gpu"])

    assert (pool.begun, notes.failed) == ([("a", 0)], {})
    begun_on(tmp_path, "b", lane(0, gpu=device(1, "T4"), memory="7g"))
    _, notes = run(teams("b"), {}, lanes, ["gpu"])
    assert "lane 0 has memory 14g, not 7g. " in notes.failed["b"]
    assert "--unlike-host" not in notes.failed["b"]
