"""Makes the page of a measurement, which is read anew by itself until it has ended."""

from __future__ import annotations

from flare.common.text import count, printable, safe
from flare.reports.pages.distributions import log_axis, spread_rows
from flare.reports.pages.mosaic import ABSENT, mosaic
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import Figure, Frame, Tile, row_height
from flare.reports.pages.running import (
    LAST_CASES,
    CaseState,
    Running,
    State,
    duration,
    seconds_left,
)
from flare.reports.pages.running_tables import (
    STATE_SHADES,
    Alarm,
    alarms,
    alarms_table,
    cases_table,
    events_table,
    moment,
    settings_table,
    teams_table,
    times_of,
)
from flare.reports.pages.svg import element, stretched

REFRESH_S = 10
"""So often a browser reads the page anew."""

NOTE = (
    "For the organisers: it holds the names of all teams, and what is said of them."
    " Nothing of the references is in it."
)

_FILLS = {CaseState.OK: "box", CaseState.NOW: "blob", CaseState.WAITING: ABSENT}
_SWATCHES = {CaseState.OK: "boxed", CaseState.NOW: "e3", CaseState.WAITING: ABSENT}
"""Classes in a drawing and in its key, of what nobody has to look at."""


def running_html(run: Running) -> str:
    """The page as HTML."""
    found = alarms(run)
    content = run.teams and run.cases
    return page_html(
        "running.html",
        *(["refresh.js"] if run.is_running else []),
        page=Frame(
            title=f"Measuring {count(len(run.teams), 'team')}"
            f" on {count(len(run.cases), 'case')}",
            kicker=printable(run.challenge),
            sections=(
                ("look", "To be looked at"),
                *([("cases", "Cases"), ("teams", "Teams")] if content else []),
                ("events", "What happened last"),
                ("settings", "How it is measured"),
            ),
            audience_note=NOTE,
        ),
        refresh_s=REFRESH_S if run.is_running else None,
        is_broken=run.state in (State.STOPPED, State.BROKEN),
        lead=_lead(run),
        done=run.done,
        total=len(run.teams) * len(run.cases),
        tiles=_tiles(run, found),
        estimate=_estimate(run) if run.is_running else "",
        alarms=alarms_table(found) if found else None,
        grid=_grid(run) if content else None,
        times=_times(run) if any(map(times_of, run.teams)) else None,
        teams=teams_table(run) if content else None,
        events=events_table(run) if run.events else None,
        settings=settings_table(run) if run.settings else None,
    )


def _lead(run: Running) -> str:
    """What a reader has to know first; true whenever it is read."""
    at = moment(run.as_of)
    kept = f"{run.done} of {len(run.teams) * len(run.cases)} cases are measured"
    if run.state is State.FINISHED:
        took = duration((run.as_of - run.begun).total_seconds())
        return f"It has come to its end at {at}, after {took}: {kept}."
    if run.state is State.STOPPED:
        return (
            f"Somebody has stopped it at {at}: {kept} and kept. The same command goes"
            " on."
        )
    if run.state is State.BROKEN:
        return f"An error has ended it at {at}: {printable(run.problem)} {kept}."
    if not run.now:
        doing = "it is being prepared, or is between two cases"
    elif run.beside:
        names = [f"{safe(now.team)} {safe(now.case)}" for now in run.all_now]
        doing = f"{', '.join(names)} are running"
    elif run.now.case:
        doing = f"{safe(run.now.team)} {safe(run.now.case)} is running"
    else:
        doing = f"{safe(run.now.team)} is being scored"
    ends = [now.until for now in run.all_now if now.until]
    if not ends:
        return (
            f"As of {at}, {doing}. How long that may take, nobody can tell: if nothing"
            " changes here for long, see whether the program still runs."
        )
    return (
        f"As of {at}, {doing}. If this is still here after {moment(max(ends))},"
        " the measurement has ended without a word, or something holds it up."
    )


def _tiles(run: Running, found: list[Alarm]) -> tuple[Tile, ...]:
    """How far it is."""
    total = len(run.teams) * len(run.cases)
    cases = len(run.cases)
    teams = sum(team.done == cases and not team.problem for team in run.teams)
    left = seconds_left(run)
    tiles = [
        Tile(
            name="Cases done",
            value=f"{run.done} of {total}",
            note=f"{run.done / total:.0%}" if total else "",
        ),
        Tile(name="Teams done", value=f"{teams} of {len(run.teams)}"),
    ]
    if run.is_running:
        words = "not known" if left is None else duration(left)
        tiles.append(Tile(name="Time left, estimated", value=words, note="see below"))
    note = "see the first table" if found else ""
    tiles.append(Tile(name="To be looked at", value=str(len(found)), note=note))
    return tuple(tiles)


def _longest_s(run: Running) -> float:
    """How long the containers may take that are left: of one lane, if it has them."""
    each = [len(team.left) for team in run.teams if not team.problem]
    cases = max(-(-run.left // run.lanes), max(each, default=0))
    return cases * (run.longest_case_s or 0.0)


def _estimate(run: Running) -> str:
    """How the time left is estimated, and how long it can be at most."""
    if not run.left:
        return "Time left: no case is left."
    if run.longest_case_s is None:
        return "Time left: not known, as it is not planned yet what is to be run."
    most = (
        f" {duration(_longest_s(run))} if each container ran into its"
        " time limit, and what is around the containers."
    )
    if seconds_left(run) is None:
        return (
            "Time left: not known, as no case has ended since the program was"
            f" started. At most{most}"
        )
    shared = f". {run.lanes} lanes share them" if run.lanes > 1 else ""
    return (
        f"Time left: {count(run.left, 'case')}, each as long as the mean of the last"
        f" {LAST_CASES} of its team since the program was started, with all that is"
        " around a container; a team of which none has ended yet counts as the mean of"
        f" the others, and may be slower{shared}. Scoring is not in it. At most{most}"
    )


def _grid(run: Running) -> Figure:
    """A field for each team and case."""
    states = [[run.state_of(team, case) for case in run.cases] for team in run.teams]
    height = row_height(len(run.teams))
    fills = _FILLS | STATE_SHADES
    rows = [[fills[state] for state in row] for row in states]
    total = height * len(rows)
    layer = stretched(*mosaic(rows, height, 0), height=total)
    numbers = {s: sum(row.count(s) for row in states) for s in CaseState}
    swatches = _SWATCHES | STATE_SHADES
    seen = {state: n for state, n in numbers.items() if n}
    return Figure(
        title="What came of each case",
        note="A row for each team, a field for each case, in the order of the names.",
        summary=", ".join(f"{n} {state.value}" for state, n in seen.items()),
        labels=tuple(safe(team.team) for team in run.teams),
        drawing=element("svg", layer, width="100%", height=total, aria_hidden="true"),
        key=tuple((swatches[s], f"{s.value} ({n})") for s, n in seen.items()),
        table=cases_table(run),
    )


def _times(run: Running) -> Figure:
    """A dot for each running time."""
    rows = [times_of(team) for team in run.teams]
    scale, ticks = log_axis([value for row in rows for value in row])
    number = sum(map(len, rows))
    return Figure(
        title="Running times so far, in seconds",
        note="The axis is logarithmic: equal factors are equally long.",
        summary=f"{count(number, 'case')} of {count(len(rows), 'team')}; the table of"
        " the teams has medians and maxima",
        labels=tuple(safe(team.team) for team in run.teams),
        drawing=spread_rows(rows, scale, ticks, has_boxes=True),
        key=(("dot", "a case"), ("boxed", "middle half"), ("line", "median")),
        top=True,
    )
