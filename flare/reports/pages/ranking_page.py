"""Makes the pages of a ranking: one for everybody, and one for its organisers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flare.common.text import printable, safe
from flare.ranking.standings import PRIZE_RULE
from flare.reports.pages.distributions import (
    linear_axis,
    log_axis,
    score_axis,
    spread_rows,
)
from flare.reports.pages.groups import GroupPanel
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import NO_RESULT, SCORE_KEY, Figure, Frame, Tile, count
from flare.reports.pages.rank_figures import (
    EFFECT_KEY,
    blobs,
    case_map,
    significance_map,
)
from flare.reports.pages.rank_groups import means_panels, rank_panel
from flare.reports.pages.rank_tables import (
    case_map_table,
    draws_table,
    effects_table,
    is_score,
    ranking_table,
    schemes_table,
    settings_table,
    values_table,
)
from flare.reports.pages.ranking import (
    MetricValues,
    OrganiserRanking,
    PublicRanking,
    hardest_first,
)
from flare.results.values import RUNTIME

PUBLIC_NOTE = (
    "For everybody: it holds ranks, and what follows from ranks, but no value of any"
    " case."
)
ORGANISERS_NOTE = (
    "For the organisers: it holds all teams' values on all cases. Do not publish it as"
    " it is."
)


def public_html(found: PublicRanking) -> str:
    """The page of what everybody may know."""
    sections = _sections(found)
    frame = _frame(found, (*sections, ("settings", "Settings")), PUBLIC_NOTE)
    return page_html("ranking.html", page=frame, **_public_content(found))


def organiser_html(found: OrganiserRanking) -> str:
    """The page of everything that organisers look at."""
    public = found.public
    teams = public.teams
    scored = [own for own in found.metrics if is_score(own)][:1]
    sections = (
        *_sections(public),
        ("look", "To be looked at"),
        *([("cases", "Cases")] if scored else []),
        ("values", "Values"),
        *([("tests", "Tests"), ("schemes", "Other schemes")] if found.schemes else []),
        ("settings", "Settings"),
    )
    return page_html(
        "organiser_ranking.html",
        page=_frame(public, sections, ORGANISERS_NOTE),
        **_public_content(public, _means_panels(found)),
        recount=found.recount,
        flags=[printable(line) for line in found.flags],
        missing=found.missing,
        cases_figure=_case_figure(scored[0], found) if scored else None,
        values=[_values_figure(own, teams) for own in found.metrics],
        tests=[_tests_figure(own, teams) for own in found.metrics]
        if found.schemes
        else [],
        schemes=schemes_table(found.schemes) if found.schemes else None,
    )


def _sections(found: PublicRanking) -> tuple[tuple[str, str], ...]:
    """What every page of a ranking begins with."""
    draws = [("draws", "How sure it is")] if found.draws else []
    groups = [("groups", "Groups")] if found.groups else []
    return (("ranking", "Ranking"), *draws, ("decisions", "Decisions"), *groups)


def _frame(
    found: PublicRanking, sections: tuple[tuple[str, str], ...], note: str
) -> Frame:
    """What is around the page."""
    return Frame(
        title=f"Ranking of {count(len(found.teams), 'team')}",
        kicker=found.challenge,
        sections=sections,
        audience_note=note,
    )


def _public_content(
    found: PublicRanking, means: Sequence[GroupPanel] = ()
) -> dict[str, Any]:
    """What the template of everybody's page names."""
    return {
        "interim": found.interim,
        "tiles": _tiles(found),
        "ranking": ranking_table(found),
        "guests_note": found.guests_note,
        "prize_rule": PRIZE_RULE,
        "draws": _draws_figure(found) if found.draws else None,
        "decisions": found.decisions,
        "settings": settings_table(found.settings),
        "panels": [*_rank_panels(found), *means],
    }


def _rank_panels(found: PublicRanking) -> list[GroupPanel]:
    """The ranks within groups."""
    ranks = [place.rank for place in found.places if place.rank is not None]
    return [rank_panel(own, found.teams, ranks) for own in found.groups]


def _means_panels(found: OrganiserRanking) -> tuple[GroupPanel, ...]:
    """The means within groups."""
    metrics = [(own.metric, own.title, own.values) for own in found.metrics]
    return means_panels(found.groupings, found.public.teams, metrics)


def _tiles(found: PublicRanking) -> tuple[Tile, ...]:
    """Who is first, and among how many."""
    first = [safe(place.team) for place in found.places if place.rank == 1]
    guests = len(found.places) - len(found.teams)
    return (
        Tile(
            name="First place" if len(first) == 1 else "First place, shared",
            value=" and ".join(first) if len(first) < 3 else f"{len(first)} teams",
        ),
        Tile(
            name="Teams",
            value=str(len(found.teams)),
            note=f"and {guests} out of competition" if guests else "",
        ),
        Tile(name="Cases", value=str(found.cases)),
        Tile(name="Metrics", value=str(len(found.metrics))),
    )


def _labels(teams: tuple[str, ...]) -> tuple[str, ...]:
    """Names beside the rows of a figure."""
    return tuple(map(safe, teams))


def _draws_figure(found: PublicRanking) -> Figure:
    """How sure the ranks are."""
    summary = "; ".join(
        f"{safe(own.team)} {own.lowest} to {own.highest}" for own in found.draws
    )
    return Figure(
        title="Ranks when other cases are drawn",
        note=found.draws_note,
        summary=f"ranks in 95 % of the draws: {summary}",
        labels=_labels(tuple(own.team for own in found.draws)),
        drawing=blobs(found.draws),
        key=(("dot", "larger: more draws"), ("boxed", "95 % of the draws")),
        table=draws_table(found),
        top=True,
    )


def _case_figure(own: MetricValues, found: OrganiserRanking) -> Figure:
    """Which cases are hard, and for whom."""
    order = hardest_first(own.values)
    hardest, easiest = (safe(found.cases[order[n]]) for n in (0, -1))
    teams = found.public.teams
    return Figure(
        title=f"{own.title} of each team and case, the hardest case first",
        note=f"From left to right: {hardest} to {easiest}.",
        summary=f"the hardest case is {hardest}, the easiest {easiest}",
        labels=_labels(teams),
        drawing=case_map(own.values, order),
        key=(*SCORE_KEY, ("absent", NO_RESULT)),
        table=case_map_table(own, teams, found.cases, order),
    )


def _values_figure(own: MetricValues, teams: tuple[str, ...]) -> Figure:
    """How the values of each team are spread."""
    rows = [[value for value in row if value is not None] for row in own.values]
    every = [value for row in rows for value in row]
    note = ""
    if is_score(own):
        scale, ticks = score_axis(every)
        note = "" if ticks[0][1] == "0.0" else "The axis begins at 0.5."
    elif own.metric.startswith(RUNTIME) and every:
        scale, ticks = log_axis(every)
        note = "On a logarithmic axis."
    else:
        scale, ticks = linear_axis(every)
    absent = [
        len(row) - len(known) for row, known in zip(own.values, rows, strict=True)
    ]
    return Figure(
        title=own.title,
        note=note,
        summary=f"{len(teams)} teams, best first; the table has the statistics",
        labels=tuple(
            f"{safe(team)} ({missing} missing)" if missing else safe(team)
            for team, missing in zip(teams, absent, strict=True)
        ),
        drawing=spread_rows(rows, scale, ticks, has_boxes=True),
        key=(("dot", "a case"), ("boxed", "middle half"), ("line", "median")),
        table=values_table(own, teams),
        top=True,
    )


def _tests_figure(own: MetricValues, teams: tuple[str, ...]) -> Figure:
    """Which team is better than which other."""
    sure = sum(is_sure for _, is_sure in own.better.values())
    return Figure(
        title=own.title,
        note="",
        summary=f"{sure} of {len(own.better)} ordered pairs differ significantly",
        labels=tuple(f"{n} {safe(team)}" for n, team in enumerate(teams, start=1)),
        drawing=significance_map(own),
        key=EFFECT_KEY,
        table=effects_table(own, teams),
        top=True,
    )
