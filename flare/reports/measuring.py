"""Makes the page of a measurement, at any moment: how far it is, and what is doubtful.

It is read from the folder of all teams: while a measurement runs, when it was
interrupted, and when it has ended.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, product
from pathlib import Path
from statistics import fmean, median
from time import time
from typing import NamedTuple

from flare.common.text import count, listing
from flare.reports.model import (
    ABSENT,
    Cell,
    Chart,
    Column,
    Fields,
    Page,
    Part,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    table_of,
    table_of_rows,
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
"""A team may slow down: this many of its last cases tell how long others may take."""

REFRESH_S = 10
"""While a measurement runs, a browser reads its page anew after this time."""

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
"""The states of a case of a team, and the class of its field."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

SHADES = ("s3", "s5", "s6")
"""The classes of what somebody should look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamProgress:
    """How far a team is."""

    team: str
    records: Mapping[str, CaseRecord]
    """The record of each case, in the order of their names."""
    is_scored: bool = False
    problem: str = ""
    """The reason that it was not measured to the end, or not scored; empty without."""

    @property
    def done(self) -> int:
        """Cases that need not be run again."""
        statuses = [record.status for record in self.records.values()]
        return len(statuses) - statuses.count(RunStatus.ENGINE_ERROR)

    @property
    def times(self) -> list[float]:
        """Running times, in the order of the cases."""
        runtimes = [record.runtime_s for record in self.records.values()]
        return [runtime for runtime in runtimes if runtime]

    def state(self, case: str) -> str:
        """The state of a case, one of `STATES`."""
        record = self.records.get(case)
        if record is None:
            return "not run yet"
        if record.status is RunStatus.OK:
            return "ok, but doubtful" if record.doubts else "ok"
        if record.status is RunStatus.ENGINE_ERROR:
            return "engine error, to be run again"
        return "failed in some way"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringProgress:
    """How far a measurement is."""

    as_of: datetime
    """The time, with its zone."""
    cases: tuple[str, ...]
    teams: tuple[TeamProgress, ...]
    refused: tuple[Refusal, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    """Teams, and what is doubtful about their archives."""
    is_running: bool = False
    """Whether somebody measures while this is written."""
    ended: str = ""
    """The reason that it ended before it was done; empty without."""

    @property
    def total(self) -> int:
        """Cases of all teams."""
        return len(self.cases) * len(self.teams)

    @property
    def done(self) -> int:
        """Cases of all teams that need not be run again."""
        return sum(team.done for team in self.teams)


def read_progress(
    results: Path,
    *,
    teams: Iterable[str] = (),
    cases: Iterable[str] = (),
    problems: Mapping[str, str] | None = None,
    doubts: Sequence[tuple[str, str]] = (),
    is_running: bool = False,
    ended: str = "",
) -> MeasuringProgress:
    """Read how far a measurement of teams and cases is, in the folder of all teams.

    Teams and cases with results need not be named. Problems are the errors that have
    ended the measurement of a team. A MeasurementError or a RankingError is raised if a
    file of the results cannot be read.
    """
    files = list(results.glob(f"*/{EFFICIENCY_CSV}"))
    all_teams, all_cases = [], set(cases)
    for team in sorted({*teams, *(file.parent.name for file in files)}):
        progress = TeamProgress(
            team=team,
            records=read_records(results / team / EFFICIENCY_CSV),
            is_scored=(results / team / METRICS_JSON).exists(),
            problem=(problems or {}).get(team, ""),
        )
        all_teams.append(progress)
        all_cases.update(progress.records)
    as_of = time()
    if files and not is_running:
        as_of = max(file.stat().st_mtime for file in files)
    return MeasuringProgress(
        as_of=datetime.fromtimestamp(as_of).astimezone(),
        cases=tuple(sorted(all_cases)),
        teams=tuple(all_teams),
        refused=tuple(read_refused(results)),
        doubts=tuple(doubts),
        is_running=is_running,
        ended=ended,
    )


def seconds_left(run: MeasuringProgress) -> float | None:
    """How long the containers of all cases that are left may take; None if unknown."""
    means = {}
    cases_left = {}
    for team in run.teams:
        if team.times:
            means[team.team] = fmean(team.times[-LAST_CASES:])
        if not team.problem:
            cases_left[team.team] = len(run.cases) - team.done
    if not means:
        return None if any(cases_left.values()) else 0.0
    mean_of_teams = fmean(means.values())
    return sum(n * means.get(team, mean_of_teams) for team, n in cases_left.items())


# --- The page ---------------------------------------------------------------------


class _Alarm(NamedTuple):
    """A thing that somebody should look at; a row of the page's first table."""

    kind: str
    team: str
    cases: str
    words: str


def measuring_page(run: MeasuringProgress) -> Page:
    """All that somebody should look at, the time left, and the cases of each team."""
    alarms = list(dict.fromkeys(_alarms(run)))
    has_cases = bool(run.teams and run.cases)
    return Page(
        title=f"Measuring {count(len(run.teams), 'team')}"
        f" on {count(len(run.cases), 'case')}",
        audience_note=NOTE,
        lead=[Words(_lead(run), "banner" if run.ended else "")],
        tiles=_tiles(run, len(alarms)),
        sections=[
            Section("look", "To be looked at", "To be looked at", [_look(alarms)]),
            Section("cases", "Cases", "Cases", [_grid(run)] if has_cases else []),
            Section("teams", "Teams", "Teams", _teams(run) if has_cases else []),
        ],
        refresh_s=REFRESH_S if run.is_running else 0,
    )


def _look(alarms: Sequence[_Alarm]) -> Part:
    """A row for each alarm, or a sentence where nothing is alarming."""
    if not alarms:
        return Words("Nothing: no case has failed, and nothing is doubtful.")
    heads = ("what", "team", "cases", "what is said of it")
    rows = []
    for kind, team, cases, words in alarms:
        rows.append((kind, Cell(team, css="left"), text_cell(cases), text_cell(words)))
    caption = (
        "The gravest first; efficiency.csv of a team has what is said of each case"
    )
    return table_of_rows(caption, heads, rows, words=heads)


def _lead(run: MeasuringProgress) -> str:
    """The words that come first; they are true whenever they are read."""
    at = f"{run.as_of:%Y-%m-%d %H:%M:%S %Z}".strip()
    measured = f"{run.done} of {run.total} cases are measured"
    if run.ended:
        return f"Ended at {at}: {run.ended} {measured} and kept."
    if run.is_running and run.done < run.total:
        return f"As of {at}, {measured}, and others are being run."
    return f"As of {at}, {measured}."


def _tiles(run: MeasuringProgress, alarms: int) -> list[Tile]:
    left_s = seconds_left(run)
    cases_done = f"{run.done} of {run.total}"
    share = f"{run.done / run.total:.0%}" if run.total else ""
    is_done = [team.done == len(run.cases) and not team.problem for team in run.teams]
    teams_done = f"{sum(is_done)} of {len(run.teams)}"
    scored = f"{sum(team.is_scored for team in run.teams)} scored"
    time_note = "containers alone" if left_s else ""
    return [
        Tile(name="Cases done", value=cases_done, note=share),
        Tile(name="Teams done", value=teams_done, note=scored),
        Tile(name="Time left, estimated", value=_time_text(left_s), note=time_note),
        Tile(
            name="To be looked at",
            value=str(alarms),
            note="see the first table" if alarms else "",
            is_alarm=alarms > 0,
        ),
    ]


def _time_text(seconds: float | None) -> str:
    if seconds is None:
        return "not known"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _alarms(run: MeasuringProgress) -> Iterator[_Alarm]:
    """The alarms, the gravest first: one for each kind and team."""
    for refusal in run.refused:
        yield _Alarm("archive refused", refusal.team, "", refusal.problem)
    for team in run.teams:
        if team.problem:
            yield _Alarm("not measured to the end", team.team, "", team.problem)
    yield from _failures(run)
    for name, doubt in run.doubts:
        yield _Alarm("archive doubtful", name, "", doubt)
    for team in run.teams:
        records = team.records.values()
        doubts = [single_doubts(record.case, record.doubts) for record in records]
        yield from _case_alarms("doubtful", team, chain.from_iterable(doubts))


def _failures(run: MeasuringProgress) -> Iterator[_Alarm]:
    """The alarms about cases that have failed; engine errors come first."""
    statuses = dict.fromkeys((RunStatus.ENGINE_ERROR, *RunStatus))
    del statuses[RunStatus.OK]
    for status, team in product(statuses, run.teams):
        failed = [r for r in team.records.values() if r.status is status]
        messages = [(record.case, record.message) for record in failed]
        yield from _case_alarms(status.value, team, messages)


def _case_alarms(
    kind: str, team: TeamProgress, remarks: Iterable[tuple[str, str]]
) -> Iterator[_Alarm]:
    """One alarm for all cases of a team that have the same remark."""
    for words, cases in alike(remarks):
        number = f"{len(cases)} cases: " if len(cases) > 1 else ""
        yield _Alarm(kind, team.team, number + listing(cases), words)


def alike(remarks: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """The remarks of each kind in one, and all cases that have one of this kind.

    Numbers and names of cases make no difference: numbers become a range.

    Examples
    --------
    >>> alike([("a", "2.8 s left of a"), ("b", "10 s left of b"), ("b", "late")])
    [('2.8 to 10 s left of CASE', ['a', 'b']), ('late', ['b'])]
    """
    kinds: dict[str, list[tuple[str, str]]] = {}
    for case, text in remarks:
        unnamed = re.sub(rf"(?<!\w){re.escape(case)}(?!\w)", "CASE", text)
        kinds.setdefault(_NUMBER.sub("0", unnamed), []).append((case, unnamed))
    remarks_alike = []
    for group in kinds.values():
        cases, texts = zip(*group, strict=True)
        remarks_alike.append((_ranged(texts), list(cases)))
    return remarks_alike


def _ranged(texts: Sequence[str]) -> str:
    """One text for several that are the same but for their numbers."""
    ranges = []
    for numbers in zip(*map(_NUMBER.findall, texts), strict=True):
        low, high = min(numbers, key=float), max(numbers, key=float)
        ranges.append(low if float(low) == float(high) else f"{low} to {high}")
    words = iter(ranges)
    return _NUMBER.sub(lambda _: next(words), texts[0])


def single_doubts(case: str, doubts: str) -> list[tuple[str, str]]:
    """The doubts of a case one by one; they were written behind each other."""
    return [(case, doubt) for doubt in doubts.split("; ")] if doubts else []


def _grid(run: MeasuringProgress) -> Chart:
    rows = []
    numbers: Counter[str] = Counter()
    for team in run.teams:
        states = [team.state(case) for case in run.cases]
        classes = [STATES[state] for state in states]
        rows.append(Fields(classes))
        numbers.update(states)
    key, phrases = [], []
    for state, css in STATES.items():
        number = numbers[state]
        if number:
            # The style sheet has another class for a box beside words.
            swatch = "boxed" if state == "ok" else css
            key.append((swatch, f"{state} ({number})"))
            phrases.append(f"{number} {state}")
    return Chart(
        title="The outcome of each case",
        note="A row for each team, a field for each case, in the order of the names.",
        summary=", ".join(phrases),
        labels=tuple(team.team for team in run.teams),
        rows=rows,
        key=tuple(key),
        table=_grid_table(run),
    )


def _grid_table(run: MeasuringProgress) -> Table:
    columns = [Column("case", run.cases, is_text=True)]
    for team in run.teams:
        cells = [_grid_cell(team, case) for case in run.cases]
        columns.append(Column(team.team, cells))
    caption = "The outcome of each case of each team, with running times in seconds"
    return table_of(caption, columns, sortable=False)


def _grid_cell(team: TeamProgress, case: str) -> Cell:
    """The running time of a case, or how it ended, or that it was not run."""
    state, record = team.state(case), team.records.get(case)
    if record is None:
        text = state
    elif record.runtime_s is None:
        text = record.status.value
    else:
        text = f"{record.runtime_s:.1f}"
        if record.doubts:
            text += ", doubtful"
    css = STATES[state]
    return Cell(text, css=css if css in SHADES else "")


def _teams(run: MeasuringProgress) -> list[Part]:
    """A row for each team: how far it is, and how long its cases took."""
    rows = []
    for team in run.teams:
        times = team.times
        summary: tuple[float | None, ...] = (None, None, None)
        if times:
            summary = median(times), max(times), sum(times)
        doubtful = sum(bool(record.doubts) for record in team.records.values())
        row = (
            team.team,
            Cell(_doing(run, team), css="left"),
            Cell(f"{team.done} of {len(run.cases)}", exact=str(team.done)),
            doubtful or "",
            *(number_cell(value, decimals=1) for value in summary),
        )
        rows.append(row)
    words = ("team", "state")
    heads = (*words, "done", "doubtful", "median", "longest", "all together")
    caption = "Cases that are done, and running times of those that are ok, in seconds"
    teams = table_of_rows(caption, heads, rows, words=words)
    if run.done < run.total:
        return [teams, Words(ESTIMATE, "note")]
    return [teams]


def _doing(run: MeasuringProgress, team: TeamProgress) -> str:
    if team.problem:
        return "ended by an error"
    if team.done == len(run.cases):
        return "scored" if team.is_scored else "done"
    return "not begun" if not team.records else "not done"
