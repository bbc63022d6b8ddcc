"""Says what the page of a measurement is made from, which may not have ended yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from statistics import fmean

from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.refused_csv import Refusal

LAST_CASES = 10
"""So many cases of a team tell how long its others may take: it may slow down."""

LOW_DISK_BYTES = 10 * 2**30
"""Less room than this is told: measuring itself stops at the tenth part of it."""


class State(Enum):
    """Whether a measurement still runs."""

    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    """By somebody."""
    BROKEN = "broken"
    """By an error."""


class CaseState(Enum):
    """What is known of a case of a team, in words."""

    OK = "ok"
    DOUBTFUL = "ok, but doubtful"
    FAILED = "failed in some way"
    ENGINE_ERROR = "engine error"
    NOW = "running"
    AGAIN = "to be run again"
    WAITING = "not run yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What a measurement is doing."""

    team: str
    case: str = ""
    """Empty where all cases of the team are done, and it is scored."""
    since: datetime
    until: datetime | None = None
    """It has ended by then, or something holds it up; None if nobody can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRun:
    """What is known of a team."""

    team: str
    records: Mapping[str, CaseRecord]
    """What came of its cases, also in earlier runs of the program."""
    left: tuple[str, ...]
    """Cases that are still to be run, the current one among them."""
    whole_s: tuple[float, ...] = ()
    """How long its cases have taken since the program was started, with all that is
    around a container, the latest last."""
    problem: str = ""
    """What has ended its measurement."""
    scoring_problem: str = ""
    """Why it was not scored."""
    doubts: tuple[str, ...] = ()
    """What is doubtful about its archive."""

    @property
    def done(self) -> int:
        """Cases that need not be run again."""
        return sum(
            record.status is not RunStatus.ENGINE_ERROR and case not in self.left
            for case, record in self.records.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The room on a disk that a measurement needs."""

    name: str
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that has happened."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What is known of a measurement at some moment. All times have a time zone."""

    state: State
    as_of: datetime
    begun: datetime
    now: Now | None = None
    """None before the first case, between two things, and in the end."""
    beside: tuple[Now, ...] = ()
    """What it does at the same time, on other lanes."""
    lanes: int = 1
    """So many cases can be run at once."""
    problem: str = ""
    """What has ended it."""
    challenge: str
    cases: tuple[str, ...]
    teams: tuple[TeamRun, ...]
    longest_case_s: float | None = None
    """How long the containers of a case may take: the time limit of all repeats; None
    if it is not known yet."""
    refused: tuple[Refusal, ...] = ()
    disks: tuple[Disk, ...] = ()
    events: tuple[Event, ...] = ()
    """The last ones, the latest last."""
    settings: tuple[tuple[str, str], ...] = ()
    """How it is measured."""

    @property
    def is_running(self) -> bool:
        """Whether it had not ended when this was written."""
        return self.state is State.RUNNING

    @property
    def all_now(self) -> tuple[Now, ...]:
        """All that it is doing."""
        return (self.now, *self.beside) if self.now else ()

    @property
    def done(self) -> int:
        """Cases of all teams that need not be run again."""
        return sum(team.done for team in self.teams)

    @property
    def left(self) -> int:
        """Cases that will still be run, unless their team's measurement ends."""
        return sum(len(team.left) for team in self.teams if not team.problem)

    def state_of(self, team: TeamRun, case: str) -> CaseState:
        """What is known of a case."""
        is_left = case in team.left
        if is_left and (team.team, case) in [(n.team, n.case) for n in self.all_now]:
            return CaseState.NOW
        record = team.records.get(case)
        if record is None:
            return CaseState.WAITING
        if is_left:
            return CaseState.AGAIN
        if record.status is RunStatus.ENGINE_ERROR:
            return CaseState.ENGINE_ERROR
        if record.status is not RunStatus.OK:
            return CaseState.FAILED
        return CaseState.DOUBTFUL if record.doubts else CaseState.OK


def seconds_left(run: Running) -> float | None:
    """How long the cases that are left may take; None if nothing is known of it.

    A case counts as the mean of the last ones of its team; where there are none, as the
    mean of all teams of which there are some. Only cases of this run of the program
    count. Lanes share the cases, but no team is measured on two at a time.
    """
    means = {
        team.team: fmean(team.whole_s[-LAST_CASES:])
        for team in run.teams
        if team.whole_s
    }
    if run.left and not means:
        return None
    usual = fmean(means.values()) if means else 0.0
    each = [
        len(team.left) * means.get(team.team, usual)
        for team in run.teams
        if not team.problem
    ]
    return max(sum(each) / run.lanes, max(each, default=0.0))


def duration(seconds: float) -> str:
    """A time in words, not more exact than anybody needs.

    Examples
    --------
    >>> [duration(s) for s in (0, 40, 90, 3600, 12_000, 100_000)]
    ['0 s', '40 s', '2 min', '1 h', '3 h 20 min', '1 d 4 h']
    """
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(timedelta(seconds=seconds) / timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        days, hours = divmod(round(seconds / 3600), 24)
        parts = ((days, "d"), (hours, "h"))
    else:
        parts = ((hours, "h"), (minutes, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
