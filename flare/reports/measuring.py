"""Makes the page of a measurement, at any moment: how far it is, and what is doubtful.

It is read from the folder of all teams: while a measurement runs, when it was
interrupted, and when it has ended.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, median
from time import time
from typing import Any

from flare.common.text import count, listing
from flare.reports.model import (
    ABSENT,
    Cell,
    Chart,
    Fields,
    Page,
    Part,
    Section,
    Tile,
    Words,
    number_cell,
    table,
    text_cell,
)
from flare.results.archives_csv import Refusal, read_refused
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
)
from flare.results.metrics_json import METRICS_JSON

LAST_CASES = 10
"""So many cases of a team tell how long its others may take: it may slow down."""

REFRESH_S = 10
"""So often a browser reads the page of a measurement that runs anew."""

NOTE = (
    "For the organisers: it holds the names of all teams, and what is said of them."
    " Nothing of the references is in it."
)
ESTIMATE = (
    "Time left: each case as long as the mean of its team's last"
    f" {LAST_CASES}, or of all teams where it has none; containers alone, one after the"
    " other, without what is around them and without scoring."
)


STATES = {
    "ok": "box",
    "ok, but doubtful": "s3",
    "failed in some way": "s6",
    "engine error, to be run again": "s5",
    "not run yet": ABSENT,
}
"""What may be known of a case of a team, and the class of its field."""

SHADES = ("s3", "s5", "s6")
"""Of what somebody should look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamProgress:
    """What is known of a team."""

    team: str
    records: Mapping[str, CaseRecord]
    """By case, in the order of their names."""
    is_scored: bool = False
    problem: str = ""
    """What has ended its measurement, or stood in the way of its scores."""

    @property
    def done(self) -> int:
        """Cases that need not be run again."""
        records = self.records.values()
        return sum(record.status is not RunStatus.ENGINE_ERROR for record in records)

    @property
    def times(self) -> list[float]:
        """Running times, in the order of the cases."""
        return [r.runtime_s for r in self.records.values() if r.runtime_s]

    def state(self, case: str) -> str:
        """What is known of a case, of `STATES`."""
        record = self.records.get(case)
        if record is None:
            return "not run yet"
        if record.status is RunStatus.OK:
            return "ok, but doubtful" if record.doubts else "ok"
        is_again = record.status is RunStatus.ENGINE_ERROR
        return "engine error, to be run again" if is_again else "failed in some way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a measurement is."""

    as_of: datetime
    """With its zone."""
    cases: tuple[str, ...]
    teams: tuple[TeamProgress, ...]
    refused: tuple[Refusal, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    """Teams, and what is doubtful about their archives."""
    is_running: bool = False
    """Whether somebody measures while this is written."""
    ended: str = ""
    """What has ended it before it was done."""

    @property
    def total(self) -> int:
        """Cases of all teams."""
        return len(self.cases) * len(self.teams)

    @property
    def done(self) -> int:
        """Those that need not be run again."""
        return sum(team.done for team in self.teams)


def read_progress(
    results: Path,
    *,
    teams: Iterable[str] = (),
    cases: Iterable[str] = (),
    problems: Mapping[str, str] | None = None,
    **known: Any,
) -> Progress:
    """Read how far a measurement is.

    Parameters
    ----------
    results : Path
        The folder of all teams.
    teams, cases : iterable of str
        Those that are measured, for whoever knows more than was measured so far.
    problems : mapping, optional
        By team: what has ended its measurement.
    **known
        Other fields of the progress.

    Raises
    ------
    MeasurementError, RankingError
        If a file of the results cannot be read.
    """
    files = sorted(results.glob(f"*/{EFFICIENCY_CSV}"))
    found = [
        TeamProgress(
            team=team,
            records=read_records(results / team / EFFICIENCY_CSV),
            is_scored=(results / team / METRICS_JSON).exists(),
            problem=(problems or {}).get(team, ""),
        )
        for team in sorted({*teams, *(file.parent.name for file in files)})
    ]
    written = max((file.stat().st_mtime for file in files), default=0.0)
    is_running = known.get("is_running", False)
    at = datetime.fromtimestamp(time() if is_running or not files else written)
    return Progress(
        as_of=at.astimezone(),
        cases=tuple(sorted({*cases, *(case for own in found for case in own.records)})),
        teams=tuple(found),
        refused=tuple(read_refused(results)),
        **known,
    )


def seconds_left(run: Progress) -> float | None:
    """How long the containers of all cases that are left may take; None if unknown."""
    means = {own.team: fmean(own.times[-LAST_CASES:]) for own in run.teams if own.times}
    left = {own.team: len(run.cases) - own.done for own in run.teams if not own.problem}
    if not means:
        return None if any(left.values()) else 0.0
    usual = fmean(means.values())
    return sum(number * means.get(team, usual) for team, number in left.items())


# --- The page ---------------------------------------------------------------------


def measuring_page(run: Progress) -> Page:
    """What there is to look at, how long it may take, and each case of each team."""
    alarms = list(dict.fromkeys(_alarms(run)))
    heads = ("what", "team", "cases", "what is said of it, or of the first case")
    look: Part = table(
        "The gravest first; efficiency.csv of a team has what is said of each case",
        heads,
        (
            (w, Cell(team, css="left"), *map(text_cell, told))
            for w, team, *told in alarms
        ),
        words=heads,
    )
    if not alarms:
        look = Words("Nothing: no case has failed, and nothing is doubtful.")
    shown = bool(run.teams and run.cases)
    return Page(
        title=f"Measuring {count(len(run.teams), 'team')}"
        f" on {count(len(run.cases), 'case')}",
        audience_note=NOTE,
        lead=[Words(_lead(run), "banner" if run.ended else "")],
        tiles=_tiles(run, len(alarms)),
        sections=[
            Section("look", "To be looked at", "To be looked at", [look]),
            Section("cases", "Cases", "Cases", [_grid(run)] if shown else []),
            Section("teams", "Teams", "Teams", _teams(run) if shown else []),
        ],
        refresh_s=REFRESH_S if run.is_running else 0,
    )


def _lead(run: Progress) -> str:
    """What a reader has to know first; true whenever it is read."""
    at = f"{run.as_of:%Y-%m-%d %H:%M:%S %Z}".strip()
    kept = f"{run.done} of {run.total} cases are measured"
    if run.ended:
        return f"Ended at {at}: {run.ended} {kept} and kept."
    is_going_on = run.is_running and run.done < run.total
    return f"As of {at}, {kept}{', and others are being run' if is_going_on else ''}."


def _tiles(run: Progress, alarms: int) -> list[Tile]:
    """How far it is."""
    left, cases = seconds_left(run), len(run.cases)
    teams = sum(team.done == cases and not team.problem for team in run.teams)
    scored = sum(team.is_scored for team in run.teams)
    part = f"{run.done / run.total:.0%}" if run.total else ""
    told = "not known"
    if left is not None:
        hours, minutes = divmod(math.ceil(left / 60), 60)
        told = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    look = "see the first table" if alarms else ""
    rows = (
        ("Cases done", f"{run.done} of {run.total}", part),
        ("Teams done", f"{teams} of {len(run.teams)}", f"{scored} scored"),
        ("Time left, estimated", told, "containers alone" if left else ""),
    )
    tiles = [Tile(name=name, value=value, note=note) for name, value, note in rows]
    name, is_alarm = "To be looked at", alarms > 0
    return [*tiles, Tile(name=name, value=str(alarms), note=look, is_alarm=is_alarm)]


def _alarms(run: Progress) -> Iterator[tuple[str, str, str, str]]:
    """What somebody should see, the gravest first: a line for each kind and team.

    Each has its kind, the team, its cases, and what is said of it.
    """
    for refusal in run.refused:
        yield "archive refused", refusal.team, "", refusal.problem
    for team in run.teams:
        if team.problem:
            yield "not measured to the end", team.team, "", team.problem
    failures = [status for status in RunStatus if status is not RunStatus.OK]
    failures.sort(key=lambda status: status is not RunStatus.ENGINE_ERROR)
    for status in failures:
        for team in run.teams:
            every = team.records.values()
            own = ((r.case, r.message) for r in every if r.status is status)
            yield from _of_cases(status.value, team, own)
    for name, doubt in run.doubts:
        yield "archive doubtful", name, "", doubt
    for team in run.teams:
        own = ((r.case, r.doubts) for r in team.records.values() if r.doubts)
        yield from _of_cases("doubtful", team, own)


def _of_cases(
    what: str, team: TeamProgress, own: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    """What is said of cases of a team."""
    for said, cases in alike(own):
        number = f"{len(cases)} cases: " if len(cases) > 1 else ""
        yield what, team.team, number + listing(cases), said


def alike(told: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """What is said of cases, of the first one of each kind, and all cases of the kind.

    Several things are separated by semicolons; numbers and names make no difference.

    Examples
    --------
    >>> alike([("a", "a: 8 left; late"), ("b", "b: 9 left")])
    [('a: 8 left', ['a', 'b']), ('late', ['a'])]
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for case, texts in told:
        for text in texts.split("; "):
            kind = re.sub(r"\d[\d.]*", "0", text.replace(case, ""))
            found.setdefault(kind, (text, []))[1].append(case)
    return list(found.values())


def _grid(run: Progress) -> Chart:
    """A field for each team and case."""
    states = [[team.state(case) for case in run.cases] for team in run.teams]
    numbers = {state: sum(own.count(state) for own in states) for state in STATES}
    seen = [(state, number) for state, number in numbers.items() if number]
    rows = []
    for case in run.cases:
        cells: list[Cell | str] = [case]
        for team in run.teams:
            state, record = team.state(case), team.records.get(case)
            text = record.status.value if record else state
            if record and record.runtime_s is not None:
                doubtful = ", doubtful" if record.doubts else ""
                text = f"{record.runtime_s:.1f}{doubtful}"
            css = STATES[state]
            cells.append(Cell(text, css=css if css in SHADES else ""))
        rows.append(cells)
    names = tuple(team.team for team in run.teams)
    return Chart(
        title="The outcome of each case",
        note="A row for each team, a field for each case, in the order of the names.",
        summary=", ".join(f"{number} {state}" for state, number in seen),
        labels=names,
        rows=[Fields([STATES[state] for state in own]) for own in states],
        key=tuple(
            ("boxed" if state == "ok" else STATES[state], f"{state} ({number})")
            for state, number in seen
        ),
        table=table(
            "The outcome of each case of each team, with running times in seconds",
            ("case", *names),
            rows,
            words=("case",),
            sortable=False,
        ),
    )


def _teams(run: Progress) -> list[Part]:
    """A row for each team: how far it is, and how long its cases took."""
    rows = []
    for team in run.teams:
        times = team.times
        summed = (median(times), max(times), sum(times)) if times else (None,) * 3
        doubtful = sum(bool(record.doubts) for record in team.records.values())
        rows.append(
            (
                team.team,
                Cell(_doing(run, team), css="left"),
                Cell(f"{team.done} of {len(run.cases)}", exact=str(team.done)),
                doubtful or "",
                *(number_cell(value, decimals=1) for value in summed),
            )
        )
    teams = table(
        "Cases that are done, and running times of those that are ok, in seconds",
        ("team", "state", "done", "doubtful", "median", "longest", "all together"),
        rows,
        words=("team", "state"),
    )
    return [teams, *([Words(ESTIMATE, "note")] if run.done < run.total else [])]


def _doing(run: Progress, team: TeamProgress) -> str:
    """Where a team stands."""
    if team.problem:
        return "ended by an error"
    if team.done == len(run.cases):
        return "scored" if team.is_scored else "done"
    return "not begun" if not team.records else "not done"
