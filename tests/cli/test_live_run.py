"""What is known of a measurement from what it tells, by a clock of the test."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from flare.cli.live_run import LiveRun, free_bytes, settings_of
from flare.common.engine import Limits
from flare.common.errors import EngineError
from flare.measuring.archive.reading import Archive
from flare.measuring.container import Conditions
from flare.measuring.errors import ArchiveError
from flare.measuring.options import Caches, Options, RunOptions
from flare.measuring.sampling.nvml import Device
from flare.reports.pages.running import CaseState, Disk, Now, State, seconds_left
from tests.builders.lanes import device, lane
from tests.builders.running import record

CASES = ("case_1", "case_2", "case_3")
START = datetime(2026, 11, 22, 1, 50, tzinfo=UTC)
MIB = 2**20


class Watch:
    """A clock that the test moves on."""

    def __init__(self):
        self.s = 0.0

    def now(self):
        """Date and time."""
        return START + timedelta(seconds=self.s)

    def clock(self):
        """Seconds since some moment long ago."""
        return 5000.0 + self.s


def archive(team, *, problems=(), doubts=(), unpacked_bytes=0):
    """What a team has sent."""
    return Archive(
        path=Path(f"/sent/{team}.tar.gz"),
        team=team,
        sha256="0",
        problems=problems,
        doubts=doubts,
        unpacked_bytes=unpacked_bytes,
    )


def case(name):
    """A case, as far as its name matters."""
    return SimpleNamespace(name=name)


def setup(*, folder=None, gpu=None, limits=None, lanes=(), caches=None, **options):
    """How teams are measured."""
    limits = limits or Limits(timeout_s=600.0)
    runs = {k: options.pop(k) for k in ("repeats", "has_warm_up") if k in options}
    return SimpleNamespace(
        job=SimpleNamespace(
            options=Options(
                **dict.fromkeys(("archives", "images", "output"), Path()),
                limits=limits,
                runs=RunOptions(**runs),
                **options,
            )
        ),
        conditions=Conditions(
            limits=replace(limits, memory="28g"),
            caches=caches or Caches.WARM,
            gpu=SimpleNamespace(device=gpu) if gpu else None,
        ),
        is_here=True,
        engine=SimpleNamespace(folder=lambda: folder),
        described={
            "version": "24.0.7",
            "default_runtime": "runc",
            "security": ["name=seccomp,profile=default", "name=rootless"],
        },
        lanes=lanes,
    )


def plan(team, left=CASES, done=()):
    """What is left to do of a team."""
    return SimpleNamespace(
        team=team,
        todo=tuple(map(case, left)),
        done={found.case: found for found in done},
    )


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def live(watch):
    """Two teams on three cases, and a third that was refused."""
    refused = ArchiveError("c.tar.gz", "it is no tar file", "Ask.")
    return LiveRun(
        Path("/results"),
        [
            archive("a", doubts=("odd",)),
            archive("b", unpacked_bytes=6000 * MIB),
            archive("c", problems=(refused,)),
        ],
        [case(name) for name in CASES],
        challenge="FLARE21",
        is_scored=True,
        now=watch.now,
        clock=watch.clock,
        free=lambda folder: len(str(folder)),
    )


def states(found):
    """What is known of each case of each team."""
    return {
        team.team: [found.state_of(team, name) for name in found.cases]
        for team in found.teams
    }


def texts(found):
    """What has happened."""
    return [event.text for event in found.events]


def test_before_anything_is_run_teams_and_refusals_are_known(live):
    found = live.seen()

    assert (found.state, found.begun, found.now) == (State.RUNNING, START, None)
    assert [(t.team, t.left, t.doubts) for t in found.teams] == [
        ("a", CASES, ("odd",)),
        ("b", CASES, ()),
    ]
    assert [(r.team, r.archive) for r in found.refused] == [("c", "c.tar.gz")]
    assert found.refused[0].problem.startswith("c.tar.gz: it is no tar file. Ask.")
    assert found.disks == (Disk(name="the disk of the results", free_bytes=8),)
    assert (found.done, found.left, found.settings) == (0, 6, ())
    assert found.longest_case_s is None


def test_what_was_done_before_is_known_when_it_is_planned(live):
    before = [record("case_1", 4.0), record("case_2", None, "engine error")]

    live.on_plan(
        setup(folder=Path("/docker")), [plan("a", ("case_2", "case_3"), before)]
    )

    found = live.seen()
    assert states(found) == {
        "a": [CaseState.OK, CaseState.AGAIN, CaseState.WAITING],
        "b": [CaseState.WAITING] * 3,
    }
    assert (found.done, found.left) == (1, 5)
    assert [disk.free_bytes for disk in found.disks] == [8, 7]
    assert texts(found)[-1] == "Planned: 2 cases are to be run"


def test_a_case_takes_from_its_beginning_to_its_end(live, watch):
    """Image and all: 40 s, of which the container ran 12.345 s."""
    live.on_plan(setup(), [plan("a"), plan("b")])
    watch.s = 100.0
    live.on_begin("a", "case_1")
    begun = live.seen()
    watch.s = 140.0
    live.on_run("a", record("case_1", 12.345), 1, 6)
    ended = live.seen()

    assert states(begun)["a"][0] is CaseState.NOW
    assert begun.now.since == START + timedelta(seconds=100)
    assert states(ended)["a"][0] is CaseState.OK
    assert ended.teams[0].whole_s == (40.0,)
    assert ended.teams[0].left == CASES[1:]
    assert (ended.now, ended.as_of) == (None, START + timedelta(seconds=140))
    assert texts(ended)[-1] == "[1/6] a case_1: ok, 12.35 s"


def test_teams_on_several_lanes_are_known_at_once(live, watch):
    """Two lanes: a has been at case 1 for 30 s when b begins, and ends first."""
    lanes = (lane(0, cpus=(1, 2)), lane(1, gpu=device(2)))
    live.on_plan(setup(lanes=lanes), [plan("a"), plan("b")])
    live.on_begin("a", "case_1")
    watch.s = 30.0
    live.on_begin("b", "case_1")
    both = live.seen()
    watch.s = 50.0
    live.on_run("a", record("case_1", 40.0), 1, 6)
    one = live.seen()

    assert states(both) == {
        team: [CaseState.NOW, *[CaseState.WAITING] * 2] for team in "ab"
    }
    assert [now.team for now in both.all_now] == ["a", "b"]
    assert [now.team for now in one.all_now] == ["b"]
    assert one.teams[0].whole_s == (50.0,)
    # Five cases of 50 s, of which three are of one team.
    assert seconds_left(one) == 3 * 50.0
    settings = dict(one.settings)
    assert settings["teams"] == "2 at a time"
    assert settings["here, lane 0"] == "no GPU, processors 1,2"
    assert settings["here, lane 1"] == "GPU-2, processors 1"


def test_when_a_case_must_have_ended(live):
    """Three runs of 600 s, loading of 300 s and a second per 20 MiB, and 900 s."""
    live.on_plan(setup(repeats=2), [plan("a"), plan("b")])

    live.on_begin("b", "case_1")

    found = live.seen()
    assert found.now.until == START + timedelta(seconds=3 * 600 + 300 + 300 + 900)
    assert found.longest_case_s == 2 * 600


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("ok", "engine error", CaseState.OK),
        ("ok", "failed", CaseState.FAILED),
        ("engine error", "engine error", CaseState.ENGINE_ERROR),
        ("engine error", "ok", CaseState.OK),
    ],
)
def test_a_case_that_is_run_again(live, before, after, expected):
    """As efficiency.csv has it: what there is stays if the engine fails."""
    first = record("case_1", 9.0 if before == "ok" else None, before)
    live.on_plan(setup(), [plan("a", ("case_1",), [first])])
    assert states(live.seen())["a"][0] is CaseState.AGAIN

    live.on_begin("a", "case_1")
    live.on_run("a", record("case_1", 5.0 if after == "ok" else None, after), 1, 1)

    assert states(live.seen())["a"][0] is expected


def test_a_team_that_ends_by_an_error_is_left_out(live):
    live.on_plan(setup(), [plan("a"), plan("b")])
    live.on_begin("a", "case_1")

    live.on_failure("a", EngineError("docker: gone", "Start it."))

    found = live.seen()
    assert found.teams[0].problem == "docker: gone. Start it. [H05]"
    assert (found.left, found.now) == (3, None)
    assert texts(found)[-1].startswith("a: not measured to the end: docker: gone.")


def test_a_team_is_scored_and_may_fail_at_that(live, watch):
    live.on_plan(setup(), [plan("a", ()), plan("b")])
    watch.s = 7.0

    live.on_team("a")
    scoring = live.seen()
    live.on_unscored("a", EngineError("odd", "Look."))

    since = START + timedelta(seconds=7)
    assert scoring.now == Now(team="a", case="", since=since, until=None)
    assert live.seen().teams[0].scoring_problem == "odd. Look. [H05]"
    assert [text.split(":")[1] for text in texts(live.seen())[-2:]] == [
        " measured to the end",
        " measured, but not scored",
    ]


def test_an_end_has_its_reason(live, watch):
    live.on_begin("a", "case_1")
    watch.s = 3.0

    live.end(State.BROKEN, "gone")

    found = live.seen()
    assert (found.state, found.problem, found.now) == (State.BROKEN, "gone", None)
    assert texts(found)[-1] == "Ended before it was done"


def test_only_the_last_things_that_happened_are_kept(live):
    for number in range(1, 31):
        live.on_run("a", record("case_1", 1.0), number, 30)

    found = texts(live.seen())
    assert len(found) == 20
    assert found[-1].startswith("[30/30]")


def test_how_it_is_measured_is_said_in_words():
    gpu = Device(uuid="GPU-1", name="NVIDIA H100", driver="550.1", version="v2")
    limits = replace(Limits(), timeout_s=90.5, cpus="1-7", runtime="runsc")

    found = dict(settings_of(setup(gpu=gpu, limits=limits, repeats=3, interleave=True)))
    cold = dict(settings_of(setup(caches=Caches.COLD)))

    assert found["GPU"] == "NVIDIA H100, driver 550.1, GPU-1"
    assert found["time limit of a run"] == "90.5 s"
    assert found["memory"] == "28g, and 28g of /dev/shm"
    assert found["disk of a container"] == "64 GiB"
    assert found["processors of a container"] == "1-7"
    assert found["runs of each case"] == "3"
    assert found["caches"] == "warm, after a first run that does not count"
    assert found["teams"] == "take turns"
    assert found["engine"] == "version 24.0.7, runtime runsc"
    assert (cold["GPU"], cold["teams"]) == ("none", "one after the other")
    assert cold["caches"] == "cold: emptied before each run"
    assert cold["known weaknesses"] == "none"


def test_the_room_of_a_folder_that_is_not_there_yet(tmp_path):
    """That of the folder above it."""
    assert free_bytes(tmp_path / "a" / "b") > 0
