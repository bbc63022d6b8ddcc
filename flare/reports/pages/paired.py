"""Tells how scores differ between two evaluations of the same cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flare.challenge.metrics import SCORES
from flare.ranking.robustness.significance import ALPHA, holm, two_sided
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.intervals import difference_interval

DECIMALS = 12
"""Of a difference: without the noise of binary fractions, in which 0.9 - 0.8 and
0.8 - 0.7 are not equal. No score is that precise."""

TEST_METHOD = (
    "p-values are those of the two-sided Wilcoxon signed-rank test, paired by case:"
    " cases without a difference are left out (zero method of Wilcoxon), equal"
    " differences get their average rank, and the normal approximation is used, with"
    " corrections for ties and continuity, as in flare rank. The effect is the"
    " matched-pairs rank-biserial correlation: 1 if the new scores are higher wherever"
    " there is a difference, -1 if they are lower."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The differences of one score of one organ."""

    score: str
    """Such as ``dsc``."""
    title: str
    """Of the organ, or that it is the mean of organs."""
    differences: tuple[float | None, ...]
    """By case; None where one of the two has no value."""
    before: float | None
    """Mean over the cases with a difference."""
    after: float | None
    interval: tuple[float, float] | None
    """Of the mean difference."""
    effect: float
    p: float
    """1 where there is nothing to test."""
    p_holm: float = 1.0

    @property
    def present(self) -> list[float]:
        """The differences that there are."""
        return [value for value in self.differences if value is not None]

    @property
    def mean(self) -> float | None:
        """The mean difference."""
        return _mean(self.present)

    @property
    def better(self) -> int:
        """Number of cases that have improved."""
        return sum(value > 0 for value in self.present)

    @property
    def equal(self) -> int:
        """Number of cases with equal scores."""
        return self.present.count(0)

    @property
    def worse(self) -> int:
        """Number of cases that have become worse."""
        return sum(value < 0 for value in self.present)

    @property
    def is_tested(self) -> bool:
        """Whether any case differs."""
        return self.better + self.worse > 0

    @property
    def is_significant(self) -> bool:
        """Whether chance alone hardly explains it."""
        return self.p_holm <= ALPHA


Pairs = dict[str, tuple[Paired, ...]]
"""By score: how each organ differs, and their mean, which comes first."""


def compare_scores(
    first: CaseScores, others: Sequence[CaseScores]
) -> tuple[tuple[Pairs, ...], int]:
    """Compare some evaluations with the first one, case by case.

    Parameters
    ----------
    first : CaseScores
        What the others are compared with.
    others : sequence of CaseScores
        Of the same cases and organs.

    Returns
    -------
    tuple of tuple of Pairs and int
        For each of the others, how it differs from the first; and how many tests
        Holm's method has adjusted for: those of all others, scores and organs.
    """
    found = [list(_pairs(first, other)) for other in others]
    adjusted = iter(holm(np.array([own.p for pairs in found for own in pairs])))
    tested = [
        [replace(own, p_holm=float(next(adjusted))) for own in pairs] for pairs in found
    ]
    by_score = tuple(
        {s: tuple(own for own in pairs if own.score == s) for s in SCORES}
        for pairs in tested
    )
    return by_score, sum(map(len, found))


def _pairs(first: CaseScores, other: CaseScores) -> Iterator[Paired]:
    """How each score of each organ differs."""
    for score in SCORES:
        for end, title in first.rows:
            absent = (None,) * len(first.cases)
            before, after = (
                each.values.get(score + end) or absent for each in (first, other)
            )
            yield _paired(score, title, before, after)


def _paired(
    score: str,
    title: str,
    before: Sequence[float | None],
    after: Sequence[float | None],
) -> Paired:
    """How two columns differ."""
    both = [
        None if old is None or new is None else (old, new)
        for old, new in zip(before, after, strict=True)
    ]
    differences = tuple(
        None if pair is None else round(pair[1] - pair[0], DECIMALS) + 0.0
        for pair in both
    )
    present = [value for value in differences if value is not None]
    p, effect = two_sided(np.array([present])) if present else ([1.0], [0.0])
    return Paired(
        score=score,
        title=title,
        differences=differences,
        before=_mean([pair[0] for pair in both if pair]),
        after=_mean([pair[1] for pair in both if pair]),
        interval=difference_interval(present),
        effect=float(effect[0]),
        p=float(p[0]),
    )


def _mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None
