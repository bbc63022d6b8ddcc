"""Reads into which groups the cases fall, such as centres or scanners."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from flare.challenge.formats import case_of
from flare.common.schema import Family, Is, Text
from flare.common.text import listing, nearest, safe
from flare.results.csv_rows import Row, read_rows
from flare.results.errors import GroupsFileError, RankingError

NOT_GIVEN = "not given"
"""The group of cases for which the file has none."""

MOST_GROUPS = 20
"""A column with more groups is refused: it has numbers or names, but no kinds."""

CASE = "case"


class GroupsRow(TypedDict):
    """Into which groups the cases fall, a row for each case."""

    case: Text
    """Name of the case, or of its label map."""


GROUPS = Annotated[
    GroupsRow,
    Is(
        minProperties=2,
        families=[
            Family(
                "",
                "centre, ...",
                "Such as centre, scanner or phase: the group of the case, at most"
                f" {MOST_GROUPS} different ones in a column; empty if it is not known.",
                str | None,
            )
        ],
    ),
]
"""A row of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The groups of a column."""

    column: str
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    """The name of each group, and the numbers of its cases, from 0; in the order of the
    names, with the cases that have no group last."""

    @property
    def names(self) -> tuple[str, ...]:
        """The group of each case."""
        names: dict[int, str] = {}
        for name, numbers in self.groups:
            names |= dict.fromkeys(numbers, name)
        return tuple(map(names.__getitem__, sorted(names)))


def read_groups(
    file: Path, cases: Sequence[str], withdrawn: Collection[str] = ()
) -> tuple[Grouping, ...]:
    """Read a CSV file with a column ``case`` and a column for each kind of groups.

    A case without a row has no group; one that is withdrawn may still have a row. A
    GroupsFileError is raised if it cannot be read, or a row is about no case or about
    one twice, or a column has no groups or too many; it names the row or the column.
    """
    try:
        rows = list(read_rows(file, (CASE,)))
        if not rows:
            raise RankingError(str(file), "it has no row below the first")
        columns = [name for name in rows[0].cells if name != CASE]
        if not columns:
            raise RankingError(str(file), "it has no column but case")
        if any(not name.strip() for name in columns):
            raise RankingError(str(file), "one of its columns has no name")
        rows_by_case = _rows_by_case(rows, sorted({*cases, *withdrawn}))
        return tuple(_grouping(file, column, cases, rows_by_case) for column in columns)
    except RankingError as error:
        raise GroupsFileError(str(file), error.problem) from error


def _rows_by_case(rows: Sequence[Row], cases: Collection[str]) -> dict[str, Row]:
    """Sort rows by case; refuse one about no case, or about one that has a row."""
    rows_by_case: dict[str, Row] = {}
    for row in rows:
        case = case_of(row.text(CASE))
        problem = ""
        if case in rows_by_case:
            problem = f"case {safe(case)} again, after {rows_by_case[case].where}"
        elif not case:
            problem = "the case is empty"
        elif case not in cases:
            problem = f"there is no case {safe(case)}{nearest(case, cases)}"
        if problem:
            raise row.error(problem)
        rows_by_case[case] = row
    return rows_by_case


def _grouping(
    file: Path, column: str, cases: Sequence[str], rows: Mapping[str, Row]
) -> Grouping:
    """Sort the cases by their groups in a column; refuse a column of no groups."""
    groups: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        name = rows[case].text(column) if case in rows else ""
        groups.setdefault(name or NOT_GIVEN, []).append(number)
    names = sorted(name for name in groups if name != NOT_GIVEN)
    if not names:
        problem = f"column {safe(column)} has no group for any case"
        raise RankingError(str(file), problem)
    if len(names) > MOST_GROUPS:
        problem = (
            f"column {safe(column)} has {len(names)} groups, more than {MOST_GROUPS}:"
            f" {listing(names[:3])}, and so on"
        )
        raise RankingError(str(file), problem)
    if NOT_GIVEN in groups:
        names.append(NOT_GIVEN)
    return Grouping(
        column=column, groups=tuple((name, tuple(groups[name])) for name in names)
    )
