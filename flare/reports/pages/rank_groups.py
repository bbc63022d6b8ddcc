"""Shows on the pages of a ranking how teams do within groups of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flare.challenge.metrics import is_score
from flare.common.text import printable, safe
from flare.ranking.ranks import Board
from flare.reports.pages.groups import (
    NOTE,
    GroupMean,
    GroupPanel,
    group_mean,
    group_title,
    interval_words,
    silence,
    too_small,
)
from flare.reports.pages.parts import (
    NO_RESULT,
    RANK_BOUNDS,
    Cell,
    Row,
    Table,
    heads,
    name_cell,
    shade,
)
from flare.results.groups_csv import Grouping

RANKS_NOTE = (
    "Ranked by the same rules, as if the cases of a group were all that there are."
)

TIMES_NOTE = (
    "Running time and memory have no interval: they have no bounds, on which those of"
    " scores rest."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRanks:
    """The ranks of all teams within groups of a column, and no value of any case."""

    column: str
    groups: tuple[tuple[str, int], ...]
    """Their names, and how many cases they have."""
    ranks: tuple[tuple[int, ...], ...]
    """By group and team, in the order of the ranking."""
    note: str = ""


def group_ranks(
    board: Board, groupings: Sequence[Grouping], *, is_public: bool
) -> tuple[GroupRanks, ...]:
    """The ranks within each group; for everybody, not of columns with a small one."""
    found = []
    for grouping in groupings:
        small = too_small(grouping) if is_public else ()
        shown = () if small else grouping.groups
        found.append(
            GroupRanks(
                column=grouping.column,
                groups=tuple((name, len(numbers)) for name, numbers in shown),
                ranks=tuple(board.on(own).final_ranks for _, own in shown),
                note=silence(grouping, small) if small else "",
            )
        )
    return tuple(found)


def rank_panel(
    found: GroupRanks, teams: Sequence[str], ranks: Sequence[int]
) -> GroupPanel:
    """The rank of each team in the ranking itself, and within each group."""
    title = f"Ranks by {safe(found.column)}"
    if found.note:
        return GroupPanel(title=title, note=found.note)
    rows = []
    for number, team in enumerate(teams):
        cells = [name_cell(team), Cell(text=str(ranks[number]))]
        for own in found.ranks:
            part = (own[number] - 1) / (len(teams) - 1) if len(teams) > 1 else 0.0
            cells.append(Cell(text=str(own[number]), css=shade(-part, RANK_BOUNDS)))
        rows.append(Row(cells=tuple(cells)))
    names = [group_title(name, cases) for name, cases in found.groups]
    table = Table(
        caption=f"Ranks of the teams by {safe(found.column)}, each group by itself",
        heads=heads("team", "all cases", *names, words=("team",)),
        rows=tuple(rows),
    )
    return GroupPanel(title=title, note=RANKS_NOTE, tables=(table,))


def means_panels(
    groupings: Sequence[Grouping],
    teams: Sequence[str],
    metrics: Sequence[tuple[str, str, Sequence[Sequence[float | None]]]],
) -> tuple[GroupPanel, ...]:
    """The means of each metric, by its name, title and values, in all groups."""
    return tuple(
        GroupPanel(
            title=f"Means by {safe(grouping.column)}",
            note=f"{NOTE} {TIMES_NOTE}",
            tables=tuple(means_table(grouping, teams, own) for own in metrics),
        )
        for grouping in groupings
    )


def means_table(
    grouping: Grouping,
    teams: Sequence[str],
    metric: tuple[str, str, Sequence[Sequence[float | None]]],
) -> Table:
    """The mean of a metric for each team and group."""
    name, title, values = metric
    rows = []
    for team, own in zip(teams, values, strict=True):
        cells = [name_cell(team)]
        for _, numbers in grouping.groups:
            cells.append(_mean_cell(name, group_mean(name, own, numbers)))
        rows.append(Row(cells=tuple(cells)))
    names = [group_title(group, len(cases)) for group, cases in grouping.groups]
    interval = ", with 95 % intervals" if is_score(name) else ""
    return Table(
        caption=f"{printable(title)} by {safe(grouping.column)}: means of the cases"
        f" with a result{interval}",
        heads=heads("team", *names, words=("team",)),
        rows=tuple(rows),
    )


def _mean_cell(metric: str, found: GroupMean) -> Cell:
    """A mean, its interval, and what is missing."""
    if found.mean is None:
        return Cell(text=NO_RESULT, css="none")
    text = f"{found.mean:.3f}" if is_score(metric) else f"{found.mean:.1f}"
    if is_score(metric):
        text += f" ({interval_words(found)})"
    if found.missing:
        text += f", {found.missing} missing"
    return Cell(text=text, exact=repr(found.mean))
