"""Puts a ranking into tables: by themselves, and behind its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from flare.challenge.metrics import METRICS
from flare.common.text import count, listing, printable, safe
from flare.ranking.robustness.schemes import Scheme
from flare.reports.pages.parts import (
    NO_RESULT,
    RANK_BOUNDS,
    Cell,
    Head,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
    score_cell,
    shade,
    text_cell,
)
from flare.reports.pages.ranking import MetricValues, PublicRanking


def rank_shade(rank: float, teams: int) -> str:
    """The class of a rank's shade among so many teams.

    Examples
    --------
    >>> rank_shade(1, 11), rank_shade(11, 11), rank_shade(1, 1)
    ('s1', 's6', 's1')
    """
    part = (rank - 1) / (teams - 1) if teams > 1 else 0.0
    return shade(-part, RANK_BOUNDS)


def ranking_table(
    found: PublicRanking, links: Mapping[str, str] | None = None
) -> Table:
    """The ranking, with the mean rank by each metric on its shade.

    A team's name leads to its page, if there is one.
    """
    teams = len(found.teams)
    cases = count(found.cases, "case")
    rows = []
    for place in found.places:
        cells = [
            Cell(text=str(place.rank or "-")),
            replace(name_cell(place.team), href=(links or {}).get(place.team, "")),
            number_cell(place.score, decimals=4, exact=True)
            if place.rank
            else Cell(text=""),
        ]
        for mean in place.mean_ranks:
            css = rank_shade(mean, teams)
            cells.append(number_cell(mean, decimals=2, exact=True, css=css))
        rows.append(Row(cells=tuple(cells), quiet=place.rank is None))
    return Table(
        caption=f"Score and mean ranks over {cases}; smaller is better",
        heads=heads(
            *("rank", "team", "score"),
            *(f"mean rank: {title}" for title in found.metrics),
            words=("team",),
        ),
        rows=tuple(rows),
        name_column=1,
    )


def draws_table(found: PublicRanking) -> Table:
    """The interval of each team's rank, and how often it has each rank."""
    ranks = range(1, len(found.draws) + 1)
    rows = [
        Row(
            cells=(
                name_cell(own.team),
                Cell(text=str(own.lowest)),
                Cell(text=str(own.highest)),
                *(_part_cell(part) for part in own.frequencies),
            )
        )
        for own in found.draws
    ]
    return Table(
        caption="Ranks in 95 % of the draws, and percent of the draws with each rank",
        heads=heads("team", "from", "to", *map(str, ranks), words=("team",)),
        rows=tuple(rows),
    )


def _part_cell(part: float) -> Cell:
    """A part in percent; nothing where it is 0."""
    return Cell(text=f"{100 * part:.1f}" if part else "")


def values_table(found: MetricValues, teams: Sequence[str]) -> Table:
    """What the values of each team are like, by one metric."""
    decimals = 3 if is_score(found) else 1
    rows = []
    for team, values in zip(teams, found.values, strict=True):
        known = [value for value in values if value is not None]
        absent = len(values) - len(known)
        quarters = np.quantile(known, (0, 0.25, 0.5, 0.75, 1)).tolist() if known else []
        mean = float(np.mean(known)) if known else None
        cells = [name_cell(team), Cell(text=str(absent or "none"))]
        cells += (
            number_cell(value, decimals=decimals)
            for value in (mean, *(quarters or [None] * 5))
        )
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"{found.title}: all statistics are of the cases with a result",
        heads=heads(
            *("team", NO_RESULT, "mean", "lowest", "first quartile", "median"),
            *("third quartile", "highest"),
            words=("team",),
        ),
        rows=tuple(rows),
    )


def is_score(found: MetricValues) -> bool:
    """Whether a metric is from 0 to 1."""
    return found.metric in METRICS and METRICS[found.metric].is_share


def case_map_table(
    found: MetricValues, teams: Sequence[str], cases: Sequence[str], order: list[int]
) -> Table:
    """A row for each case, hardest first, and a column for each team."""
    rows = []
    for number in order:
        cells = [score_cell(own[number], exact=False) for own in found.values]
        rows.append(Row(cells=(name_cell(cases[number]), *cells)))
    return Table(
        caption=f"{found.title} of each case and team, the hardest cases first",
        heads=heads("case", *map(safe, teams), words=("case",)),
        rows=tuple(rows),
    )


def effects_table(found: MetricValues, teams: Sequence[str]) -> Table:
    """How much better the team of the row is than that of the column."""
    rows = []
    for number, team in enumerate(teams):
        cells = [name_cell(f"{number + 1} {team}")]
        for other in range(len(teams)):
            if other == number:
                cells.append(Cell(text=""))
                continue
            effect, is_sure = found.better[number, other]
            star = "*" if is_sure else ""
            cells.append(Cell(text=f"{effect:+.2f}{star}"))
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"{found.title}: effect of row against column (-1 to 1); * significant",
        heads=heads("team", *map(str, range(1, len(teams) + 1)), words=("team",)),
        rows=tuple(rows),
        sortable=False,
    )


def schemes_table(schemes: Sequence[Scheme]) -> Table:
    """Who moves where when the teams are ranked in another way."""
    still = [s for s in schemes if s.left_out is not None and not s.moved]
    rows = [_scheme_row(scheme) for scheme in schemes if scheme not in still]
    if still:
        names = listing(scheme.left_out or "" for scheme in still)
        name = f"without any one of {names}" if len(still) > 1 else still[0].name
        cells = (
            Cell(text=printable(name)),
            Cell(text=""),
            text_cell("nobody"),
        )
        rows.append(Row(cells=cells))
    return Table(
        caption="Other schemes: Kendall's tau with the ranking, and who moves",
        heads=(
            Head(text="scheme", numeric=False),
            Head(text="tau"),
            Head(text="who moves", numeric=False),
        ),
        rows=tuple(rows),
    )


def _scheme_row(scheme: Scheme) -> Row:
    """A way of ranking."""
    moves = [
        f"{safe(team)} {scheme.before[team]} to {scheme.ranks[team]}"
        for team in scheme.moved
    ]
    tau = (
        Cell(text="undefined", css="none")
        if scheme.tau is None
        else number_cell(scheme.tau, decimals=2, exact=True)
    )
    cells = (Cell(text=scheme.name), tau, text_cell(", ".join(moves) or "nobody"))
    return Row(cells=cells)


def settings_table(settings: Sequence[tuple[str, str]]) -> Table:
    """What the ranking was made with."""
    return Table(
        caption="What the ranking was made with",
        heads=heads("what", "value", words=("what", "value")),
        rows=tuple(Row(cells=(name_cell(k), text_cell(v))) for k, v in settings),
        sortable=False,
    )
