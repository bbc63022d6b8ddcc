"""Says which figures groups of cases have, and what each is drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from flare.challenge.metrics import SCORES, is_score
from flare.common.text import printable
from flare.reports.figures.mosaics import draw_mosaic, score_shade
from flare.reports.figures.names import file_stem
from flare.reports.figures.plates import Plate
from flare.reports.figures.ranking_plates import rank_shade
from flare.reports.figures.spreads import INTERVALS, KEY, draw_spreads
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.distributions import score_axis
from flare.reports.pages.groups import group_mean
from flare.reports.pages.intervals import mean_interval
from flare.reports.pages.rank_groups import GroupRanks
from flare.reports.pages.ranking import MetricValues, OrganiserRanking
from flare.results.groups_csv import Grouping

MOST_ROWS = 42
"""A figure of more rows has the mean of the organs alone."""


def group_stem(number: int, column: str) -> str:
    """How files about a column begin; the number, from 1, keeps columns apart."""
    return f"groups_{number}_{file_stem(column)}"


def group_name(name: str, cases: int) -> str:
    """A group with its number of cases, as short as can be."""
    return f"{printable(name)} ({cases})"


# --- One evaluation ---------------------------------------------------------------


def score_group_plates(
    scores: CaseScores, groupings: Sequence[Grouping]
) -> Iterator[Plate]:
    """DSC and NSD of each organ in the groups of each column."""
    for number, grouping in enumerate(groupings, start=1):
        for score in SCORES:
            stem = group_stem(number, grouping.column)
            yield _score_plate(scores, grouping, score, f"{stem}_{score}")


def _score_plate(
    scores: CaseScores, grouping: Grouping, score: str, name: str
) -> Plate:
    """A block of rows for each organ, in it a row for each group."""
    is_small = len(scores.rows) * (len(grouping.groups) + 1) <= MOST_ROWS
    organs = scores.rows if is_small else scores.rows[:1]
    names: list[str] = []
    values: list[list[float] | None] = []
    rows: list[tuple[object, ...]] = []
    for end, title in organs:
        names.append(title)
        values.append(None)
        own = scores.values[score + end]
        for group, numbers in grouping.groups:
            names.append(group_name(group, len(numbers)))
            found = [(scores.cases[n], own[n]) for n in numbers]
            values.append([value for _, value in found if value is not None])
            rows += [(group, title, printable(case), value) for case, value in found]
    every = [value for own in values for value in own or ()]
    return Plate(
        name=name,
        caption=f"{score.upper()} by {printable(grouping.column)}, with the number of"
        f" cases of each group. {KEY}{INTERVALS}",
        columns=("group", "organ", "case", score),
        rows=tuple(rows),
        draw=partial(
            draw_spreads,
            names=names,
            values=values,
            axis=score_axis(every),
            title=score.upper(),
            intervals=[mean_interval(own) if own else None for own in values],
        ),
    )


# --- A ranking --------------------------------------------------------------------


def rank_group_plates(found: OrganiserRanking) -> Iterator[Plate]:
    """The ranks of the teams in the groups of each column, and their mean scores."""
    pairs = zip(found.public.groups, found.groupings, strict=True)
    for number, (ranked, grouping) in enumerate(pairs, start=1):
        stem = group_stem(number, grouping.column)
        yield _ranks_plate(found, ranked, f"{stem}_ranks")
        for own in found.metrics:
            if is_score(own.metric):
                name = f"{stem}_{file_stem(own.metric)}"
                yield _means_plate(found, own, grouping, name)


def _ranks_plate(found: OrganiserRanking, ranked: GroupRanks, name: str) -> Plate:
    """The rank of each team within each group."""
    places = [place for place in found.public.places if place.rank is not None]
    groups = [group_name(*group) for group in ranked.groups]
    values = [
        [float(place.rank or 0), *(float(own[row]) for own in ranked.ranks)]
        for row, place in enumerate(places)
    ]
    return Plate(
        name=name,
        caption=f"Ranks of the teams by {printable(ranked.column)}, with the number of"
        " cases of each group, each of which is ranked by itself by the same rules;"
        " lighter is better.",
        columns=("team", "group", "cases", "rank", "rank_of_all_cases"),
        rows=tuple(
            (place.team, group, cases, own[row], place.rank)
            for row, place in enumerate(places)
            for (group, cases), own in zip(ranked.groups, ranked.ranks, strict=True)
        ),
        draw=partial(
            draw_mosaic,
            rows=[place.team for place in places],
            columns=["all cases", *groups],
            values=values,
            form=".0f",
            shade_of=partial(rank_shade, teams=len(places)),
            has_score_key=False,
        ),
    )


def _means_plate(
    found: OrganiserRanking, own: MetricValues, grouping: Grouping, name: str
) -> Plate:
    """The mean score of each team in each group."""
    teams = found.public.teams
    means = [
        [group_mean(own.metric, row, numbers) for _, numbers in grouping.groups]
        for row in own.values
    ]
    return Plate(
        name=name,
        caption=f"{printable(own.title)} by {printable(grouping.column)}: means of the"
        " cases with a result, with the number of cases of each group; the numbers"
        " have their intervals.",
        columns=("team", "group", "cases", "missing", "mean", "low", "high"),
        rows=tuple(
            (team, group, m.cases, m.missing, m.mean, *(m.interval or (None, None)))
            for team, row in zip(teams, means, strict=True)
            for (group, _), m in zip(grouping.groups, row, strict=True)
        ),
        draw=partial(
            draw_mosaic,
            rows=teams,
            columns=[group_name(name, len(cases)) for name, cases in grouping.groups],
            values=[[m.mean for m in row] for row in means],
            form=".3f",
            shade_of=score_shade,
            has_score_key=True,
        ),
    )
