"""Draws ranks: over draws of other cases, and over other ways of ranking."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flare.reports.figures.names import figure_names, figure_text
from flare.reports.figures.style import (
    DOT,
    INK,
    LEAST_TEXT_PT,
    LINES,
    MARKERS,
    RULE,
    TEXT_PT,
    WIDTHS_MM,
    name_rows,
    new_axes,
    row_mm,
)
from flare.reports.pages.ranking import Draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY_TEAMS = 15
"""Of more teams, a line plot has the first, and those that move."""

FIRST_TEAMS = 10


def draw_blobs(width: str, *, draws: Sequence[Draws]) -> Figure:
    """For each team, a blob at each rank, as large as the rank is frequent."""
    teams = len(draws)
    figure, axes, size = new_axes(WIDTHS_MM[width], teams, around_mm=12)
    each = row_mm(teams, around_mm=12)
    axes.set_xlim(0.5, teams + 0.5)
    _number_ranks(axes, teams, width)
    axes.set_xlabel("rank")
    axes.grid(axis="x", color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    name_rows(axes, figure_names([own.team for own in draws], width), size, each)
    for row, own in enumerate(draws):
        ends = (own.lowest, own.highest)
        axes.plot(ends, (row, row), color="#b9c6d2", linewidth=1.6)
    points = [
        (rank, row, part)
        for row, own in enumerate(draws)
        for rank, part in enumerate(own.frequencies, start=1)
        if part > 0
    ]
    xs, ys, parts = zip(*points, strict=True)
    column_mm = (WIDTHS_MM[width] - 30) / teams
    largest = min(each, column_mm, 5.0) * 72 / 25.4 * 0.92
    areas = [max(largest**2 * part, 0.3) for part in parts]
    axes.scatter(xs, ys, s=areas, color=DOT, edgecolor=INK, linewidth=0.3, zorder=3)
    return figure


def _number_ranks(axes: Axes, count: int, width: str) -> None:
    """The ranks; of many, the first and every fifth."""
    step = 1 if count <= (15 if width == "column" else 30) else 5
    axes.set_xticks([n for n in range(1, count + 1) if n == 1 or n % step == 0])


def shown_teams(ranks: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The teams whose lines are drawn, in their order.

    Parameters
    ----------
    ranks : mapping
        By team, best first: its rank in the ranking itself, then in other ones.

    Examples
    --------
    >>> ranks = {f"t{n:02}": [n, n] for n in range(1, 17)} | {"t15": [15, 16]}
    >>> shown_teams(ranks)[-2:]
    ('t10', 't15')
    """
    if len(ranks) <= MANY_TEAMS:
        return tuple(ranks)
    first = set(list(ranks)[:FIRST_TEAMS])
    return tuple(
        team for team, own in ranks.items() if team in first or len(set(own)) > 1
    )


def draw_lines(
    width: str, *, schemes: Sequence[str], ranks: Mapping[str, Sequence[int]]
) -> Figure:
    """A line for each team, from the ranking itself at the top through other ones.

    Parameters
    ----------
    width : str
        ``column`` or ``page``.
    schemes : sequence of str
        Names of the ways of ranking; the first is the ranking itself.
    ranks : mapping
        By team, best first: its rank in each of them.
    """
    shown = shown_teams(ranks)
    names = figure_names(shown, "column")
    around = 15.0 + max(map(len, names)) * 1.3
    figure, axes, size = new_axes(WIDTHS_MM[width], len(schemes), around_mm=around)
    letters = 26 if width == "column" else 60
    texts = tuple(
        textwrap.fill(figure_text(name, 2 * letters - 4), letters) for name in schemes
    )
    is_broken = any("\n" in text for text in texts)
    size = LEAST_TEXT_PT if is_broken else size
    name_rows(axes, texts, size, row_mm(len(schemes), around_mm=around))
    axes.set_xlim(0.4, len(ranks) + 0.6)
    _number_ranks(axes, len(ranks), width)
    axes.set_xlabel("rank")
    axes.grid(axis="y", color=RULE, linewidth=0.4)
    axes.set_axisbelow(True)
    places = _side_by_side(
        [[ranks[team][n] for team in ranks] for n in range(len(schemes))]
    )
    numbers = {team: number for number, team in enumerate(ranks)}
    for number, team in enumerate(shown):
        xs = [row[numbers[team]] for row in places]
        is_first = len(ranks) <= MANY_TEAMS or numbers[team] < FIRST_TEAMS
        _draw_line(axes, xs, number if is_first else None)
    starts = [places[0][numbers[team]] for team in shown]
    field_mm = (WIDTHS_MM[width] - 34) / len(ranks)
    _name_lines(axes, list(zip(starts, names, strict=True)), field_mm)
    return figure


def _draw_line(axes: Axes, xs: Sequence[float], number: int | None) -> None:
    """The line of a team, with a marker of its own; thin and without one if None."""
    ys = range(len(xs))
    if number is None:
        axes.plot(xs, ys, color="#9aa5af", linewidth=0.5)
        return
    axes.plot(
        xs,
        ys,
        color=INK if number % 2 == 0 else DOT,
        linestyle=LINES[number % len(LINES)],
        linewidth=0.8,
        marker=MARKERS[number % len(MARKERS)],
        markersize=3.2,
        markerfacecolor="white" if number % 2 else INK,
        markeredgewidth=0.6,
        zorder=3,
    )


def _side_by_side(rows: Sequence[Sequence[int]]) -> list[list[float]]:
    """Ranks as places; teams of equal rank lie beside each other."""
    found = []
    for row in rows:
        places = []
        for number, rank in enumerate(row):
            equal = [n for n, other in enumerate(row) if other == rank]
            step = min(0.22, 0.8 / len(equal))
            offset = equal.index(number) - (len(equal) - 1) / 2
            places.append(rank + step * offset)
        found.append(places)
    return found


def _name_lines(
    axes: Axes, names: Sequence[tuple[float, str]], field_mm: float
) -> None:
    """Names of teams above their lines; of those that fit."""
    step = max(1, -(-int(LEAST_TEXT_PT * 36) // int(field_mm * 100)))
    size = min(TEXT_PT - 1, max(LEAST_TEXT_PT, field_mm * 72 / 25.4 * 0.85))
    upper = axes.secondary_xaxis("top")
    places: list[float] = []
    for place, _ in names[::step]:  # side by side where teams tie
        least = places[-1] + 0.5 * size / field_mm if places else place
        places.append(max(place, least))
    texts = [name for _, name in names[::step]]
    upper.set_xticks(places, texts, rotation=90, fontsize=size)
    upper.tick_params(axis="x", length=0)
    upper.spines["top"].set_visible(False)
