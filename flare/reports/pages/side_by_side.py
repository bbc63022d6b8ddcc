"""Puts into tables what all evaluations of a comparison have side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flare.common.text import count
from flare.reports.pages.comparison import Comparison
from flare.reports.pages.comparison_tables import difference_cell
from flare.reports.pages.paired import Pairs
from flare.reports.pages.parts import (
    Cell,
    Row,
    Table,
    heads,
    name_cell,
    score_cell,
    text_cell,
)


def means_table(found: Comparison, score: str) -> Table:
    """A row for each evaluation, and a column for each organ, shaded."""
    rows = []
    for each in found.evaluations:
        cells = [
            score_cell(each.scores.mean(score + end), exact=each.scores.exact)
            for end, _ in each.scores.rows
        ]
        rows.append(Row(cells=(name_cell(each.name), *cells)))
    titles = [title for _, title in found.first.scores.rows]
    return Table(
        caption=f"Mean {score.upper()} over {count(len(found.cases), 'case')}",
        heads=heads("evaluation", *titles, words=("evaluation",)),
        rows=tuple(rows),
    )


def overview_table(found: Comparison, compared: Sequence[Pairs], score: str) -> Table:
    """A row for each organ, and a column for each evaluation but the first."""
    rows = []
    for number, (_, title) in enumerate(found.first.scores.rows):
        cells = [name_cell(title)]
        for pairs in compared:
            own = pairs[score][number]
            cell = difference_cell(own.mean, exact=found.first.scores.exact)
            arrow = " \u2191" if own.effect > 0 else " \u2193"
            text = cell.text + (arrow if own.is_significant else "")
            cells.append(Cell(text=text, css=cell.css, exact=cell.exact))
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"Mean difference of {score.upper()} to {found.first.name}; \u2191 or"
        " \u2193: significantly better or worse, case by case",
        heads=heads("organ", *(each.name for each in found.others), words=("organ",)),
        rows=tuple(rows),
        sortable=False,
    )


def reasons_table(found: Comparison) -> Table | None:
    """What is said of cases: a row for each of which anything is said."""
    told: list[Mapping[int, str]] = [
        {
            **each.reasons,
            **{number: f"not scored: {why}" for number, why in each.failed.items()},
        }
        for each in found.evaluations
    ]
    numbers = sorted({number for own in told for number in own})
    if not numbers:
        return None
    rows = [
        (found.cases[number], [own.get(number, "scored") for own in told])
        for number in numbers
    ]
    return _side_by_side("Cases of which an evaluation says something", found, rows)


def left_out_table(found: Comparison) -> Table | None:
    """The cases that are not compared, as not all evaluations have them."""
    cases = dict.fromkeys(c for each in found.evaluations for c in each.left_out)
    if not cases:
        return None
    rows = [
        (
            case,
            [
                "there" if case in each.left_out else "not there"
                for each in found.evaluations
            ],
        )
        for case in cases
    ]
    return _side_by_side("Cases that are left out", found, rows)


def provenance_table(found: Comparison) -> Table:
    """How each evaluation was made; where they differ, that is marked."""
    rows = []
    for key, texts in found.provenance:
        is_alike = len({*texts}) == 1
        cells = [name_cell(key), *map(text_cell, texts)]
        cells.insert(1, Cell(text="" if is_alike else "differs", css="alarm"))
        rows.append(Row(cells=tuple(cells)))
    names = [each.name for each in found.evaluations]
    return Table(
        caption="How the evaluations were made, as each metrics.json has it",
        heads=heads("what", "alike?", *names, words=("what", *names)),
        rows=tuple(rows),
        sortable=False,
    )


def _side_by_side(
    caption: str, found: Comparison, rows: Sequence[tuple[str, Sequence[str]]]
) -> Table:
    """A row for each case, and a column of words for each evaluation."""
    columns = ("case", *(each.name for each in found.evaluations))
    return Table(
        caption=caption,
        heads=heads(*columns, words=columns),
        rows=tuple(
            Row(cells=(name_cell(case), *map(text_cell, texts))) for case, texts in rows
        ),
    )
