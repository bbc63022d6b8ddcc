"""Makes the pages of a ranking: one for everybody, and one for its organisers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flare.challenge.metrics import RUNTIME
from flare.common.text import count, printable, safe
from flare.ranking.standings import PRIZE_RULE
from flare.reports.pages.case_times import times_figure
from flare.reports.pages.distributions import spread_rows
from flare.reports.pages.groups import GroupPanel
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import (
    MANY_ROWS,
    NO_RESULT,
    SCORE_KEY,
    Figure,
    Frame,
    Tile,
)
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
from flare.reports.pages.scheme_lines import schemes_figure
from flare.reports.pages.tips import dot_tips
from flare.reports.pages.values_figures import value_axis

PUBLIC_NOTE = (
    "For everybody: it holds ranks, and what follows from ranks, but no value of any"
    " case."
)
ORGANISERS_NOTE = (
    "For the organisers: it holds all teams' values on all cases. Do not publish it as"
    " it is."
)


def public_html(found: PublicRanking, links: Mapping[str, str]) -> str:
    """The page of what everybody may know; teams lead to their own pages by links."""
    sections = _sections(found)
    frame = _frame(found, (*sections, ("settings", "Settings")), PUBLIC_NOTE)
    return page_html("ranking.html", page=frame, **_public_content(found, links))


def organiser_html(
    found: OrganiserRanking, links: Mapping[str, str], curves: Sequence[Figure]
) -> str:
    """The page of everything that organisers look at."""
    public = found.public
    teams = public.teams
    scored = [own for own in found.metrics if is_score(own)][:1]
    sections = (
        *_sections(public),
        ("look", "To be looked at"),
        *([("cases", "Cases")] if scored else []),
        ("values", "Values"),
        *([("memory", "Memory over time")] if curves else []),
        *([("tests", "Tests"), ("schemes", "Other schemes")] if found.schemes else []),
        ("settings", "Settings"),
    )
    return page_html(
        "organiser_ranking.html",
        page=_frame(public, sections, ORGANISERS_NOTE),
        **_public_content(public, links, _means_panels(found)),
        curves=curves,
        times=_times_figures(found),
        schemes_figure=schemes_figure(found.schemes, teams),
        recount=found.recount,
        flags=[printable(line) for line in found.flags],
        missing=found.missing,
        cases_figure=_case_figure(scored[0], found) if scored else None,
        values=[_values_figure(own, teams, found.cases) for own in found.metrics],
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
    found: PublicRanking, links: Mapping[str, str], means: Sequence[GroupPanel] = ()
) -> dict[str, Any]:
    """What the template of everybody's page names."""
    return {
        "interim": found.interim,
        "tiles": _tiles(found),
        "ranking": ranking_table(found, links),
        "left_out": found.left_out,
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
        drawing=blobs(found.draws, len(found.draws)),
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
        is_map=True,
    )


def _times_figures(found: OrganiserRanking) -> list[Figure]:
    """The running times of the cases, where they are ranked."""
    figures = [
        times_figure(own, found.public.teams, found.cases)
        for own in found.metrics
        if own.metric.startswith(RUNTIME)
    ]
    return [figure for figure in figures if figure]


def _values_figure(
    own: MetricValues, teams: tuple[str, ...], cases: tuple[str, ...]
) -> Figure:
    """How the values of each team are spread."""
    rows = [[value for value in row if value is not None] for row in own.values]
    every = [value for row in rows for value in row]
    axis, note = value_axis(
        every, is_score=is_score(own), is_time=own.metric.startswith(RUNTIME)
    )
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
        drawing=spread_rows(rows, *axis, has_boxes=True),
        key=(("dot", "a case"), ("boxed", "middle half"), ("line", "median")),
        table=values_table(own, teams),
        top=True,
        # Of more teams, the page would become too large.
        tips=dot_tips(cases, own.values, 3 if is_score(own) else 1)
        if len(teams) <= MANY_ROWS
        else None,
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
