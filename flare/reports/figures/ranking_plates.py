"""Says which figures a ranking has, and what each is drawn from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from flare.challenge.metrics import RUNTIME, is_score
from flare.common.text import count, printable
from flare.reports.figures.mosaics import draw_effects, draw_mosaic, score_shade
from flare.reports.figures.names import file_stem
from flare.reports.figures.plates import Plate
from flare.reports.figures.rank_lines import (
    FIRST_TEAMS,
    MANY_TEAMS,
    draw_blobs,
    draw_lines,
)
from flare.reports.figures.spreads import KEY, Ticks, draw_spreads
from flare.reports.pages.distributions import (
    Scale,
    linear_axis,
    log_axis,
    score_axis,
)
from flare.reports.pages.parts import RANK_BOUNDS, shade
from flare.reports.pages.ranking import (
    MetricValues,
    OrganiserRanking,
    hardest_first,
)

THIS_RANKING = "the ranking"
"""What the first row of the other schemes is called."""


def ranking_plates(found: OrganiserRanking) -> Iterator[Plate]:
    """All figures of a ranking; those of a metric have it in their names."""
    yield _means_plate(found)
    if found.public.draws:
        yield _draws_plate(found)
    for own in found.metrics:
        yield _spread_plate(own, found)
        if is_score(own.metric):
            yield _cases_plate(own, found)
        if found.schemes:
            yield _tests_plate(own, found)
    if found.schemes:
        yield _schemes_plate(found)


def rank_shade(rank: float, teams: int) -> int:
    """The number of the shade of a rank among so many teams.

    Examples
    --------
    >>> rank_shade(1.0, 5), rank_shade(5.0, 5)
    (1, 6)
    """
    part = (rank - 1) / (teams - 1) if teams > 1 else 0.0
    return int(shade(-min(max(part, 0.0), 1.0), RANK_BOUNDS)[1:])


def _means_plate(found: OrganiserRanking) -> Plate:
    """The mean rank of each team by each metric."""
    public = found.public
    teams = len(public.teams)
    return Plate(
        name="mean_ranks",
        caption=f"Mean rank of each team by each metric over"
        f" {count(public.cases, 'case')}; lower and lighter is better.",
        columns=("team", "rank", "score", *(own.metric for own in found.metrics)),
        rows=tuple(
            (
                *(place.team, place.rank, place.score if place.rank else None),
                *place.mean_ranks,
            )
            for place in public.places
        ),
        draw=partial(
            draw_mosaic,
            rows=[f"{place.rank or '-'} {place.team}" for place in public.places],
            columns=public.metrics,
            values=[place.mean_ranks for place in public.places],
            form=".2f",
            shade_of=partial(rank_shade, teams=teams),
            has_score_key=False,
        ),
    )


def _draws_plate(found: OrganiserRanking) -> Plate:
    """How sure the ranks are."""
    draws = found.public.draws
    ranks = range(1, len(draws) + 1)
    return Plate(
        name="ranks_over_draws",
        caption="Ranks when other cases are drawn: the area of a blob is the share of"
        " the draws with that rank, a line spans the ranks of 95 % of the draws."
        f" {found.public.draws_note}",
        columns=("team", "lowest", "highest", *(f"rank_{rank}" for rank in ranks)),
        rows=tuple((d.team, d.lowest, d.highest, *d.frequencies) for d in draws),
        draw=partial(draw_blobs, draws=draws),
    )


def _spread_plate(own: MetricValues, found: OrganiserRanking) -> Plate:
    """How the values of each team are spread."""
    teams = found.public.teams
    values = [[value for value in row if value is not None] for row in own.values]
    is_log = own.metric.startswith(RUNTIME)
    note = " On a logarithmic axis." if is_log else ""
    return Plate(
        name=f"values_{file_stem(own.metric)}",
        caption=f"{printable(own.title)} of each team on each case with a result, in"
        f" the order of the ranking.{note} {KEY}",
        columns=("team", "case", own.metric),
        rows=tuple(
            (team, case, value)
            for team, row in zip(teams, own.values, strict=True)
            for case, value in zip(found.cases, row, strict=True)
        ),
        draw=partial(
            draw_spreads,
            names=teams,
            values=values,
            missing=[row.count(None) for row in own.values],
            axis=_axis(own.metric, [value for row in values for value in row]),
            title=printable(own.title),
        ),
    )


def _axis(metric: str, values: list[float]) -> tuple[Scale, Ticks]:
    """The axis that suits a metric."""
    if is_score(metric):
        return score_axis(values)
    if metric.startswith(RUNTIME) and values:
        return log_axis(values)
    return linear_axis(values)


def _cases_plate(own: MetricValues, found: OrganiserRanking) -> Plate:
    """Which cases are hard, and for whom."""
    order = hardest_first(own.values)
    teams = found.public.teams
    cases = [printable(found.cases[number]) for number in order]
    values = [[row[number] for number in order] for row in own.values]
    return Plate(
        name=f"cases_{file_stem(own.metric)}",
        caption=f"{printable(own.title)} of each team and case, the hardest case first,"
        f" from {cases[0]} to {cases[-1]}; a line marks what has no result.",
        columns=("case", *teams),
        rows=tuple(
            (case, *(row[number] for row in values))
            for number, case in enumerate(cases)
        ),
        draw=partial(
            draw_mosaic,
            rows=teams,
            columns=cases,
            values=values,
            form=".2f",
            shade_of=score_shade,
            has_score_key=True,
            title=f"{count(len(cases), 'case')}, the hardest first",
        ),
    )


def _tests_plate(own: MetricValues, found: OrganiserRanking) -> Plate:
    """Which team is better than which other."""
    teams = found.public.teams
    return Plate(
        name=f"tests_{file_stem(own.metric)}",
        caption=f"{printable(own.title)}: a square is where the team of the row is"
        " significantly better than the team of the column, which has the number of its"
        " row (one-sided Wilcoxon tests paired by case, 5 %, after Holm); the larger"
        " and darker, the larger the effect (rank-biserial correlation).",
        columns=("team", "other", "effect", "significant"),
        rows=tuple(
            (teams[team], teams[other], effect, "yes" if is_sure else "no")
            for (team, other), (effect, is_sure) in sorted(own.better.items())
        ),
        draw=partial(
            draw_effects,
            teams=teams,
            effects={pair: e for pair, (e, is_sure) in own.better.items() if is_sure},
        ),
    )


def _schemes_plate(found: OrganiserRanking) -> Plate:
    """How the teams rank in other ways."""
    whole = [scheme for scheme in found.schemes if scheme.left_out is None]
    teams = found.public.teams
    ranks = {
        team: [whole[0].before[team], *(scheme.ranks[team] for scheme in whole)]
        for team in teams
    }
    shown = (
        f" Of {len(teams)} teams, the first {FIRST_TEAMS} have a marker, those behind"
        " them a thin line where they move, and none where they do not."
        if len(teams) > MANY_TEAMS
        else ""
    )
    return Plate(
        name="other_schemes",
        caption="Ranks of the teams in other ways of ranking, each of which changes one"
        " thing; teams of equal rank lie beside each other. The numbers also have the"
        f" rankings without one of the teams.{shown}",
        columns=("scheme", "kendall_tau", "team", "rank", "rank_before"),
        rows=tuple(
            (scheme.name, scheme.tau, team, rank, scheme.before[team])
            for scheme in found.schemes
            for team, rank in scheme.ranks.items()
        ),
        draw=partial(
            draw_lines,
            schemes=[THIS_RANKING, *(scheme.name for scheme in whole)],
            ranks=ranks,
        ),
    )
