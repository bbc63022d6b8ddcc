"""Draws how teams move when they are ranked in other ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from flare.common.text import printable, safe
from flare.ranking.robustness.schemes import Scheme
from flare.reports.pages.distributions import TOP, drawing
from flare.reports.pages.parts import (
    Cell,
    Figure,
    Row,
    Table,
    heads,
    name_cell,
    row_height,
)
from flare.reports.pages.svg import WIDE, decimal, element, stretched

MOST_LINES = 15
"""With more teams, not all are drawn."""

FIRST = 10
"""Of many teams, so many are drawn whatever they do, and then those that move most."""

MOST_TICKS = 10
"""Of more columns, every other one has its number, so that a phone has room."""

ITSELF = "the ranking itself"


def schemes_figure(schemes: Sequence[Scheme], teams: Sequence[str]) -> Figure | None:
    """A line for each team through its places; None if no scheme has all teams."""
    whole = [scheme for scheme in schemes if scheme.left_out is None]
    if not whole:
        return None
    columns = [whole[0].before, *(scheme.ranks for scheme in whole)]
    places = [_places(ranks, teams) for ranks in columns]
    shown = _shown(columns, teams)
    note = "Columns are the schemes of the table, the first one is the ranking itself."
    if len(shown) < len(teams):
        note += f" Drawn are the first {FIRST}, and those that move farthest."
    moving = sum(len({ranks[team] for ranks in columns}) > 1 for team in teams)
    return Figure(
        title="Ranks under other schemes",
        note=note,
        summary=f"{moving} of {len(teams)} teams move under {len(whole)} schemes",
        labels=tuple(map(safe, teams)),
        drawing=_drawing(places, shown, teams),
        key=(("line thick", "a team that moves"), ("line thin", "one that does not")),
        table=_table(whole, columns, teams),
        top=True,
    )


def _places(ranks: Mapping[str, int], teams: Sequence[str]) -> dict[str, int]:
    """A place for each team, from 0; of equal ranks in the order of the ranking."""
    order = sorted(teams, key=lambda team: ranks[team])
    return {team: place for place, team in enumerate(order)}


def _shown(columns: Sequence[Mapping[str, int]], teams: Sequence[str]) -> list[str]:
    """The teams that have a line."""
    if len(teams) <= MOST_LINES:
        return list(teams)

    def distance(team: str) -> int:
        return max(abs(ranks[team] - columns[0][team]) for ranks in columns)

    rest = sorted(teams[FIRST:], key=lambda team: -distance(team))
    movers = [team for team in rest[: MOST_LINES - FIRST] if distance(team)]
    return [*teams[:FIRST], *(team for team in teams if team in movers)]


def _drawing(
    places: Sequence[Mapping[str, int]], shown: Sequence[str], teams: Sequence[str]
) -> Markup:
    """The lines, with the number of each scheme above its column."""
    height = row_height(len(teams))
    xs = [(n + 0.5) / len(places) for n in range(len(places))]
    lines = []
    for team in shown:
        own = [place[team] for place in places]
        points = [
            f"{decimal(WIDE * x)} {decimal(TOP + height * (place + 0.5))}"
            for x, place in zip(xs, own, strict=True)
        ]
        css = "line thick" if len(set(own)) > 1 else "line thin"
        lines.append(
            element(
                "path",
                element("title", printable(team)),
                d=f"M{'L'.join(points)}",
                class_=css,
            )
        )
    step = 1 if len(xs) <= MOST_TICKS else 2
    ticks = [(x, "" if n % step else str(n)) for n, x in enumerate(xs)]
    total = height * len(teams)
    return drawing(total, ticks, stretched(*lines, height=TOP + total))


def _table(
    schemes: Sequence[Scheme],
    columns: Sequence[Mapping[str, int]],
    teams: Sequence[str],
) -> Table:
    """The rank of each team under each scheme."""
    names = [ITSELF, *(scheme.name for scheme in schemes)]
    return Table(
        caption="The rank of each team under each scheme that has all teams",
        heads=heads("scheme", *map(safe, teams), words=("scheme",)),
        rows=tuple(
            Row(
                cells=(
                    name_cell(f"{number} {name}"),
                    *(Cell(text=str(ranks[team])) for team in teams),
                )
            )
            for number, (name, ranks) in enumerate(zip(names, columns, strict=True))
        ),
    )
