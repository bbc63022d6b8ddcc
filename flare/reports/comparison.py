"""Compares evaluations, case by case, on the cases that all of them have.

Cases are matched by their names. The first evaluation is what the others are compared
with. As on the page of one evaluation, a participant's scores are thousandths before
differences are taken, tests are made, or anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from statistics import fmean

import numpy as np

from flare.challenge.metrics import Better, Metric
from flare.common.intervals import difference_interval
from flare.common.text import count, listing
from flare.ranking.inspection import check_comparable
from flare.ranking.ranks import Values
from flare.ranking.uncertainty import (
    ALPHA,
    fewest_cases_to_test,
    holm,
    steps,
    two_sided,
)
from flare.reports.model import NO_RESULT
from flare.reports.scores import (
    CaseScores,
    OwnScores,
    evaluation_names,
    own_names,
    own_scores,
    scores_of,
)
from flare.results.metrics_reading import EvaluationFile, read_evaluation

TEST_METHOD = (
    "p-values are those of the two-sided Wilcoxon signed-rank test, paired by case:"
    " cases without a difference are left out (zero method of Wilcoxon), equal"
    " differences get their average rank, and the normal approximation is used, with"
    " corrections for ties and continuity, as in flare rank. The effect is the"
    " matched-pairs rank-biserial correlation: 1 if the new scores are better wherever"
    " there is a difference, -1 if they are worse."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the evaluations."""

    name: str
    scores: CaseScores
    """Of the cases that all evaluations have."""
    left_out: tuple[str, ...]
    """Cases that another evaluation does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the page of a comparison is made from."""

    evaluations: tuple[Compared, ...]
    """That which the others are compared with comes first."""
    unlike: tuple[str, ...]
    provenance: tuple[tuple[str, tuple[str, ...]], ...]
    """What is said of how the scores were made, for organisers: a text of each
    evaluation."""

    def __post_init__(self) -> None:
        """See that a participant's scores stand beside no others, and alone."""
        if any(isinstance(each.scores, OwnScores) for each in self.evaluations):
            every = all(isinstance(each.scores, OwnScores) for each in self.evaluations)
            if self.provenance or not every:
                raise ValueError("more than a participant may know")

    @property
    def first(self) -> Compared:
        """What the others are compared with."""
        return self.evaluations[0]

    @property
    def others(self) -> tuple[Compared, ...]:
        """What is compared with the first."""
        return self.evaluations[1:]

    @property
    def cases(self) -> tuple[str, ...]:
        """Those that all evaluations have."""
        return self.first.scores.cases

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those by which all evaluations have scores."""
        return tuple(
            own
            for own in self.first.scores.metrics
            if all(own in each.scores.metrics for each in self.others)
        )


def read_comparison(sources: Sequence[Path], *, is_organiser: bool) -> Comparison:
    """Read evaluations, as far as their readers may know them.

    To participants, a case has the name of their own file, the newest one first.

    Raises
    ------
    MetricsFileError
        If one cannot be read, or cannot be compared with the first.
    """
    files = tuple(map(read_evaluation, sources))
    unlike = check_comparable(sources, files)
    common = set.intersection(*(set(each.cases) for each in files))
    cases = [case for case in files[0].cases if case in common]
    every = [scores_of(each) if is_organiser else own_scores(each) for each in files]
    shown = cases if is_organiser else _own_names(cases, files[::-1])
    organs = tuple(dict.fromkeys(organ for each in every for organ in each.organs))
    evaluations = []
    for name, found, own in zip(evaluation_names(sources), files, every, strict=True):
        places = {case: number for number, case in enumerate(found.cases)}
        scores = own.part([places[case] for case in cases], shown)
        rest = [case for case in places if case not in common]
        evaluations.append(
            Compared(
                name=name,
                scores=replace(scores, organs=organs),
                left_out=tuple(rest if is_organiser else _own_names(rest, [found])),
            )
        )
    told = [dict(each.provenance) for each in files] if is_organiser else []
    keys = dict.fromkeys(key for each in told for key in each)
    return Comparison(
        evaluations=tuple(evaluations),
        unlike=unlike,
        provenance=tuple(
            (key, tuple(each.get(key, "not told") for each in told)) for key in keys
        ),
    )


def _own_names(cases: Sequence[str], files: Sequence[EvaluationFile]) -> list[str]:
    """What cases are called by the first of these evaluations that has a file."""
    own = ((file.prediction_files.get(case, "") for file in files) for case in cases)
    return own_names([next(filter(None, names), "") for names in own])


# --- Differences ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The differences of one score of one organ."""

    metric: Metric
    title: str
    """Of the organ, or that it is the mean of organs."""
    differences: tuple[float | None, ...]
    """By case, the new value less the old one; None where one of the two is missing."""
    gains: tuple[float | None, ...]
    """By case, above 0 if the new value is better."""
    before: float | None = None
    """Mean over the cases with a difference."""
    after: float | None = None
    interval: tuple[float, float] | None = None
    """Of the mean difference."""
    effect: float = 0.0
    p: float = 1.0
    """1 where there is nothing to test."""
    p_holm: float = 1.0

    @property
    def present(self) -> list[float]:
        """The gains and losses that there are."""
        return [value for value in self.gains if value is not None]

    @property
    def mean(self) -> float | None:
        """The mean difference."""
        present = [value for value in self.differences if value is not None]
        return fmean(present) if present else None

    @property
    def mean_gain(self) -> float | None:
        """The mean gain; that of a loss is below 0."""
        return fmean(present) if (present := self.present) else None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of cases that are better, equal and worse."""
        signs = [(value > 0) - (value < 0) for value in self.present]
        return signs.count(1), signs.count(0), signs.count(-1)

    @property
    def is_tested(self) -> bool:
        """Whether a case differs, by a metric that has a good end."""
        return self.metric.better is not None and any(self.present)

    @property
    def is_significant(self) -> bool:
        """Whether chance alone hardly explains it."""
        return self.p_holm <= ALPHA


Pairs = dict[str, tuple[Paired, ...]]
"""By metric: how each organ differs, and their mean, which comes first."""


def compare_scores(
    first: CaseScores, others: Sequence[CaseScores], metrics: Sequence[Metric]
) -> list[Pairs]:
    """How each of some evaluations differs from the first one, case by case.

    Holm's method adjusts for the tests of all others and metrics: those of means by
    themselves, which a reader looks at first, and those of organs by themselves.

    Parameters
    ----------
    first : CaseScores
        What the others are compared with.
    others : sequence of CaseScores
        Of the same cases and organs.
    metrics : sequence of Metric
        By which they are compared.
    """
    families = []
    for rows in (first.rows[:1], first.rows[1:]):
        cells = [(metric, *row) for metric, row in product(metrics, rows)]
        family = [[_paired(*cell, first, other) for cell in cells] for other in others]
        families.append(_adjusted(family))
    return [
        {
            metric.name: tuple(pair for pair in chain(*pairs) if pair.metric == metric)
            for metric in metrics
        }
        for pairs in zip(*families, strict=True)
    ]


def _adjusted(family: Sequence[Sequence[Paired]]) -> list[list[Paired]]:
    """The same pairs with p-values that are adjusted for all that can be tested."""
    p_values = [pair.p for pair in chain(*family) if pair.metric.better]
    adjusted = iter(holm(np.array(p_values)).tolist())
    return [
        [
            replace(pair, p_holm=next(adjusted)) if pair.metric.better else pair
            for pair in pairs
        ]
        for pairs in family
    ]


def _paired(
    metric: Metric, end: str, title: str, first: CaseScores, other: CaseScores
) -> Paired:
    """How the scores of an organ differ."""
    absent = (None,) * len(first.cases)
    before, after = (
        each.values.get(metric.name + end) or absent for each in (first, other)
    )
    both = [
        None if old is None or new is None else (old, new)
        for old, new in zip(before, after, strict=True)
    ]
    complete = [pair for pair in both if pair]
    if not complete:
        return Paired(metric=metric, title=title, differences=absent, gains=absent)
    old, new = np.array(complete, dtype=np.float64).T[:, np.newaxis]
    differences = steps(old, new)
    gains = differences if metric.better is Better.HIGHER else steps(new, old)
    if metric.better is None:
        gains = steps(np.abs(new), np.abs(old))
    p, effect = two_sided(gains) if metric.better else ([1.0], [0.0])
    return Paired(
        metric=metric,
        title=title,
        differences=_by_case(differences[0], both),
        gains=_by_case(gains[0], both),
        before=fmean(old[0].tolist()),
        after=fmean(new[0].tolist()),
        interval=difference_interval(gains[0].tolist()) if metric.is_share else None,
        effect=float(effect[0]),
        p=float(p[0]),
    )


def _by_case(
    values: Values, both: Sequence[tuple[float, float] | None]
) -> tuple[float | None, ...]:
    """Values of the cases that have both scores, and None for all other cases."""
    remaining = iter(values.tolist())
    return tuple(next(remaining) if pair else None for pair in both)


# --- In words ---------------------------------------------------------------------


def tests_of_means(pairs: Pairs, others: int) -> int:
    """How many tests of means there are, by all metrics and of so many others."""
    return others * sum(own[0].metric.better is not None for own in pairs.values())


def verdict(pairs: Pairs, first: Compared, other: Compared, tests: int) -> str:
    """Which is better, by how much, in which organ, and how sure that is.

    Parameters
    ----------
    pairs : Pairs
        What is told, of metrics that have a good end.
    first, other : Compared
        The evaluations.
    tests : int
        Tests of means for which p-values are adjusted.
    """
    whole = [own[0] for own in pairs.values() if own[0].metric.better]
    if not any(any(own.present) for own in chain(*pairs.values())):
        return f"{other.name} has the scores of {first.name} on every case."
    organs = [own for own in pairs[whole[0].metric.name][1:] if own.mean]
    most = max(organs, key=lambda own: abs(own.mean or 0.0), default=None)
    where = (
        f"; {most.title} changed most ({most.metric.title} {change_text(most)})"
        if most
        else ""
    )
    number = count(len(first.scores.cases), "case")
    told: dict[str, list[str]] = {}
    for own in whole:
        if own.is_significant:
            told.setdefault(_word(own), []).append(_change(own))
    if told:
        changes = (
            f"significantly {word} than {first.name}: {listing(texts, last=' and ')}"
            for word, texts in told.items()
        )
        return f"{other.name} is {' and '.join(changes)} on {number}{where}."
    fewest = fewest_cases_to_test(2 * tests)
    most_changed = max(better + worse for better, _, worse in (w.counts for w in whole))
    why = "both may be equally good"
    if most_changed < fewest:
        why = f"it takes {fewest} cases that differ to show it"
    return (
        f"Neither {other.name} nor {first.name} is shown to be better on {number}, and"
        f" {why}: {listing(map(_change, whole), last=' and ')}{where}."
    )


def _word(own: Paired) -> str:
    """How it has changed on most cases; and on average, where that is the opposite."""
    words = ("better", "worse") if own.effect > 0 else ("worse", "better")
    if own.mean_gain and (own.mean_gain > 0) != (own.effect > 0):
        return f"{words[0]} on most cases, but {words[1]} on average,"
    return words[0]


def _change(own: Paired) -> str:
    """A metric, its mean difference, and how likely chance alone makes one as large."""
    return f"{own.metric.title} {change_text(own, f'p {p_text(own.p_holm)}')}"


def signed(value: float, decimals: int = 3) -> str:
    """A difference with its sign, unless no digit of it is shown.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5, 1), signed(-0.0004)
    ('+0.012', '-0.5', '0.000')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def interval_text(own: Paired) -> str:
    """The interval of a mean difference in words: only those of scores have one."""
    if own.interval is None:
        return "too few cases" if own.metric.is_share else "none"
    return f"{signed(own.interval[0])} to {signed(own.interval[1])}"


def change_text(own: Paired, *remarks: str) -> str:
    """The mean difference; where lower is better, in words that say so.

    Parameters
    ----------
    own : Paired
        A distance becomes "26.80 mm lower (better)", a score "+0.012".
    *remarks : str
        What stands behind it, in brackets.
    """
    if own.mean is None:
        return NO_RESULT
    text = signed(own.mean, own.metric.decimals)
    if own.metric.better is Better.LOWER:
        words = f"{own.metric.text(abs(own.mean))} {own.metric.unit}".rstrip()
        if text.startswith("-"):
            text, remarks = f"{words} lower", ("better", *remarks)
        elif text.startswith("+"):
            text, remarks = f"{words} higher", ("worse", *remarks)
        else:
            text = words
    return f"{text} ({', '.join(remarks)})" if remarks else text


def p_text(p: float) -> str:
    """A p-value, which sorts as a number.

    Examples
    --------
    >>> p_text(0.0421), p_text(1.0), p_text(0.000123)
    ('0.042', '1.000', '1.2e-04')
    """
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
