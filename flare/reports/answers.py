"""Makes the parts of pages about answers: values, confusion matrices and ROC curves.

Participants see values of all answers together, as rounded as other scores. Whatever
is made of single answers tells their references, and is for organisers alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from flare.answers.values import case_numbers, decisions
from flare.challenge.answers import KINDS
from flare.challenge.metrics import metric_named
from flare.common.text import count, listing
from flare.ranking.answers import AnswerSheet
from flare.reports.model import (
    BEST,
    Cell,
    Column,
    Heading,
    Part,
    Raw,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    table_of,
    text_cell,
)
from flare.reports.render.svg import roc_svg
from flare.statistics.curves import called_shares, roc_points

MOST_TILES = 4
"""The head of a page without label maps has the first values, at most this many."""

MOST_CLASSES = 30
"""A confusion matrix with more classes is not shown."""

NO_ANSWER = "no answer"
"""The column of a confusion matrix for answers that are missing or unusable."""

# --- Values -------------------------------------------------------------------------


def answer_tiles(answers: Mapping[str, float], *, exact: bool) -> list[Tile]:
    """The first values, for the head of a page without label maps."""
    tiles = []
    for column, value in list(answers.items())[:MOST_TILES]:
        cell = number_cell(value, exact=exact)
        title = metric_named(column).full_title
        tiles.append(Tile(name=title, value=cell.text, exact=cell.exact))
    return tiles


def values_table(answers: Mapping[str, float], *, exact: bool) -> Table:
    """A row for each metric of each answers: its value and its definition."""
    metrics = list(map(metric_named, answers))
    values = map(partial(number_cell, exact=exact), answers.values())
    titles = map(text_cell, map(attrgetter("title"), metrics))
    definitions = map(text_cell, map(attrgetter("definition"), metrics))
    columns = (
        Column("answers", map(attrgetter("part_title"), metrics), is_text=True),
        Column("metric", titles, is_text=True),
        Column("value", values),
        Column("definition", definitions, is_text=True),
    )
    caption = "The values of all answers together; a missing answer counts as wrong"
    return table_of(caption, columns)


def answers_section(
    answers: Mapping[str, float], sheets: Sequence[AnswerSheet], *, exact: bool
) -> Section:
    """The section of a page about answers; `sheets` are for organisers alone."""
    parts: list[Part] = []
    if answers:
        parts.append(values_table(answers, exact=exact))
    for sheet in sheets:
        parts += _sheet_parts(sheet)
    return Section("answers", "Answers", "Answers in tables and JSON", parts)


# --- Single answers, for organisers --------------------------------------------------


def _sheet_parts(sheet: AnswerSheet) -> Iterator[Part]:
    """How many answers there are, and what they were taken for."""
    kind = KINDS[sheet.rules.kind]
    yield Heading(f"Answers to {sheet.title}")
    yield Words(_counts_text(sheet))
    if kind.is_decision:
        yield confusion_table(sheet)
    if kind.curve and len({row.reference for row in sheet.rows}) > 1:
        numbers = case_numbers(kind.curve, sheet.rules, sheet.rows)
        is_positive, scores = numbers[:, 0] == 1, numbers[:, 1]
        called = called_shares(is_positive, is_called(sheet))
        curve = roc_points(is_positive, scores)
        yield Raw(roc_svg(curve, called, f"ROC curve of {sheet.title}"))
        yield Words(
            "The ROC curve: the share of positive cases that are found by the share of"
            " negative cases called positive, for every threshold. The dot is the"
            " threshold of the challenge.",
            "note",
        )


def _counts_text(sheet: AnswerSheet) -> str:
    """How many answers there are, and why some count as wrong."""
    cases_by_problem: dict[str, list[str]] = {}
    for row in sheet.rows:
        if row.problem:
            cases_by_problem.setdefault(row.problem, []).append(row.case)
    text = f"{count(len(sheet.rows), 'answer')}, each {KINDS[sheet.rules.kind].about}."
    for problem, cases in cases_by_problem.items():
        verb = "counts" if len(cases) == 1 else "count"
        text += f" {len(cases)} {verb} as wrong: {problem} ({listing(cases)})."
    return text


def confusion_table(sheet: AnswerSheet) -> Table | Words:
    """How many cases of each class (row) were called each (column); bold if right."""
    pairs = decisions(sheet.rules, sheet.rows)
    classes = list(sheet.rules.classes) or sorted({name for name, _ in pairs})
    called = _called_classes(classes, pairs)
    if len(called) > MOST_CLASSES:
        return Words(f"{len(called)} classes are too many for a table.")
    numbers, totals = Counter(pairs), Counter(reference for reference, _ in pairs)
    columns = [Column("reference", classes, is_text=True)]
    for name in called:
        cells = []
        for reference in classes:
            css = BEST if name == reference else ""
            cells.append(Cell(str(numbers[reference, name]), css=css))
        columns.append(Column(name or NO_ANSWER, cells))
    columns.append(Column("cases", map(totals.__getitem__, classes)))
    caption = f"Answers to {sheet.title} by the class of the reference"
    return table_of(caption, columns, is_whole=True)


def _called_classes(
    classes: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> list[str]:
    """The classes, words beside them, and at the end the empty name of no answer."""
    called = {name for _, name in pairs}
    missing = [""] if "" in called else []
    return [*classes, *sorted(called - {*classes, ""}), *missing]


def is_called(sheet: AnswerSheet) -> npt.NDArray[np.bool_]:
    """Whether each case is called positive; a missing answer is the wrong one."""
    wrong = {"0": "1", "1": "0"}
    pairs = decisions(sheet.rules, sheet.rows)
    return np.array([(answer or wrong[truth]) == "1" for truth, answer in pairs])
