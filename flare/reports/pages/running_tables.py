"""Puts a measurement into tables: what to look at, its teams, and its cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from statistics import median

from flare.common.text import listing, printable, safe
from flare.reports.pages.parts import (
    Cell,
    Head,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
    text_cell,
)
from flare.reports.pages.running import (
    LOW_DISK_BYTES,
    CaseState,
    Running,
    TeamRun,
)
from flare.results.efficiency_csv import CaseRecord, RunStatus

STATE_SHADES = {
    CaseState.DOUBTFUL: "s3",
    CaseState.AGAIN: "s4",
    CaseState.ENGINE_ERROR: "s5",
    CaseState.FAILED: "s6",
}
"""Of cells that somebody should look at."""

Alarm = tuple[str, str, str, str]
"""What kind it is of, the team, its cases, and what is said of it."""


def moment(at: datetime) -> str:
    """A date and time, with its zone."""
    return f"{at:%Y-%m-%d %H:%M:%S %Z}".strip()


def alarms(run: Running) -> list[Alarm]:
    """What somebody should look at, the gravest first."""
    found: list[Alarm] = [
        (
            "disk nearly full",
            "",
            "",
            f"{disk.name}: {disk.free_bytes / 2**30:.1f} GiB are left; make room,"
            " without any file of the measurement",
        )
        for disk in run.disks
        if disk.free_bytes < LOW_DISK_BYTES
    ]
    found += [("archive refused", r.team, "", r.problem) for r in run.refused]
    for what, name in (
        ("measurement ended", "problem"),
        ("not scored", "scoring_problem"),
    ):
        found += (
            (what, team.team, "", getattr(team, name))
            for team in run.teams
            if getattr(team, name)
        )
    for status in (RunStatus.ENGINE_ERROR, *RunStatus):
        if status is not RunStatus.OK:
            found += _of_cases(run, status)
    found += _doubts(run)
    return list(dict.fromkeys(found))


def _of_cases(run: Running, status: RunStatus) -> Iterator[Alarm]:
    """Cases of a status, a line for each team."""
    for team in run.teams:
        own = [r for r in sorted_records(team) if r.status is status]
        if own:
            cases = listing(r.case for r in own)
            yield status.value, team.team, cases, own[0].message


def _doubts(run: Running) -> Iterator[Alarm]:
    """What is doubtful about archives and cases, a line for each team."""
    for team in run.teams:
        for doubt in team.doubts:
            yield "archive doubtful", team.team, "", doubt
        own = [r for r in sorted_records(team) if r.doubts]
        if own:
            cases = listing(r.case for r in own)
            yield "doubtful", team.team, cases, own[0].doubts


def alarms_table(found: list[Alarm]) -> Table:
    """What somebody should look at."""
    rows = [
        Row(
            cells=(
                Cell(text=what),
                replace(name_cell(team), css="left"),
                text_cell(cases),
                text_cell(said),
            )
        )
        for what, team, cases, said in found
    ]
    words = ("what", "team", "cases", "what is said of it, or of the first case")
    return Table(
        caption="The gravest first; efficiency.csv of a team has what is said of each"
        " case",
        heads=heads(*words, words=words),
        rows=tuple(rows),
    )


def teams_table(run: Running) -> Table:
    """A row for each team: how far it is, and what came of its cases."""
    seen = [
        status
        for status in RunStatus
        if status is RunStatus.OK
        or any(r.status is status for team in run.teams for r in team.records.values())
    ]
    rows = []
    for team in run.teams:
        records = tuple(team.records.values())
        times = times_of(team)
        cells = [
            name_cell(team.team),
            Cell(text=_doing(run, team), css="left"),
            Cell(text=f"{team.done} of {len(run.cases)}", exact=str(team.done)),
            *(_number(sum(r.status is status for r in records)) for status in seen),
            _number(sum(bool(r.doubts) for r in records)),
        ]
        summed = (median(times), max(times), sum(times)) if times else (None,) * 3
        cells += (number_cell(value, decimals=1) for value in summed)
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption="Cases that are done, by status, and running times of those that are"
        " ok, in seconds",
        heads=heads(
            *("team", "state", "done"),
            *(status.value for status in seen),
            *("doubtful", "median", "longest", "all together"),
            words=("team", "state"),
        ),
        rows=tuple(rows),
    )


def _number(count: int) -> Cell:
    """A number of cases; nothing where it is 0."""
    return Cell(text=str(count) if count else "")


def sorted_records(team: TeamRun) -> list[CaseRecord]:
    """What came of a team's cases, in the order of their names."""
    return [record for _, record in sorted(team.records.items())]


def times_of(team: TeamRun) -> list[float]:
    """Running times of a team's cases, in the order of their names."""
    return [r.runtime_s for r in sorted_records(team) if r.runtime_s]


def _doing(run: Running, team: TeamRun) -> str:
    """Where a team stands."""
    if team.problem:
        return "ended by an error"
    for now in run.all_now:
        if now.team == team.team:
            return "running" if now.case else "being scored"
    if not team.left:
        is_done = team.done == len(run.cases)
        return "done" if is_done else "done, but for engine errors"
    if not team.records:
        return "not begun"
    return "waiting" if run.is_running else "interrupted"


def cases_table(run: Running) -> Table:
    """A row for each case, and a column for each team, in words."""
    rows = []
    for case in run.cases:
        cells = [name_cell(case)]
        for team in run.teams:
            state = run.state_of(team, case)
            text = _words(state, team.records.get(case))
            cells.append(Cell(text=text, css=STATE_SHADES.get(state, "")))
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption="What came of each case of each team, with running times in seconds",
        heads=heads("case", *(safe(team.team) for team in run.teams), words=("case",)),
        rows=tuple(rows),
        sortable=False,
    )


def _words(state: CaseState, record: CaseRecord | None) -> str:
    """What came of a case."""
    if not record or state in (CaseState.NOW, CaseState.AGAIN):
        return state.value
    if record.runtime_s is None:
        return record.status.value
    doubtful = ", doubtful" if record.doubts else ""
    return f"{record.runtime_s:.1f}{doubtful}"


def events_table(run: Running) -> Table:
    """What has happened last."""
    return Table(
        caption="The latest first",
        heads=(Head(text="when", numeric=False), Head(text="what", numeric=False)),
        rows=tuple(
            Row(cells=(Cell(text=moment(event.at)), text_cell(event.text)))
            for event in reversed(run.events)
        ),
        sortable=False,
    )


def settings_table(run: Running) -> Table:
    """How it is measured."""
    return Table(
        caption="As measurement.json of each team has it, with more",
        heads=heads("what", "value", words=("what", "value")),
        rows=tuple(
            Row(cells=(name_cell(name), Cell(text=printable(value), css="wrap")))
            for name, value in run.settings
        ),
        sortable=False,
    )
