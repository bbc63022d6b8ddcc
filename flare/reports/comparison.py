"""Compares evaluations, case by case, on the cases that all of them have.

Cases are matched by their names. The first evaluation is what the others are compared
with. As on the page of one evaluation, a participant's scores are thousandths before
differences are taken, tests are made, or anything is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from flare.challenge.metrics import Better, Metric
from flare.ranking.provenance import check_comparable
from flare.ranking.robustness.uncertainty import ALPHA, holm, two_sided
from flare.reports.scores import (
    CaseScores,
    OwnScores,
    challenge_title,
    difference_interval,
    evaluation_names,
    own_name,
    own_scores,
    scores_of,
)
from flare.results.metrics_reading import EvaluationFile, read_evaluation

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

_Scores = TypeVar("_Scores", bound=CaseScores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the evaluations."""

    name: str
    scores: CaseScores
    """Of the cases that all evaluations have."""
    failed: Mapping[int, str]
    """By the number of a case: why it was not scored."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """By the number of a case: why it scores little, as the evaluation has said it."""
    left_out: tuple[str, ...]
    """Cases that another evaluation does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the page of a comparison is made from."""

    challenge: str
    evaluations: tuple[Compared, ...]
    """That which the others are compared with comes first."""
    unlike: tuple[str, ...]
    provenance: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What is said of how the scores were made: a text of each evaluation."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnComparison(Comparison):
    """What a participant may know of evaluations: it cannot hold anything else."""

    def __post_init__(self) -> None:
        """See that nothing is here but the participant's own rounded scores."""
        for each in self.evaluations:
            if not isinstance(each.scores, OwnScores) or each.reasons:
                raise ValueError(f"{each.name} has more than a participant may know")
        if self.provenance:
            raise ValueError("how scores were made is for organisers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Evaluations that can be compared."""

    names: tuple[str, ...]
    found: tuple[EvaluationFile, ...]
    cases: tuple[str, ...]
    """Those that all of them have, by the names of the references."""
    organs: tuple[str, ...]
    unlike: tuple[str, ...]


def read_matched(sources: Sequence[Path]) -> Matched:
    """Read evaluations, and find the cases that all of them have.

    Raises
    ------
    MetricsFileError
        If one cannot be read, or cannot be compared with the first.
    """
    found = tuple(map(read_evaluation, sources))
    unlike = check_comparable(sources, found)
    common = set.intersection(*(set(each.scores.cases) for each in found))
    organs = (organ for each in found for organ in scores_of(each).organs)
    return Matched(
        names=evaluation_names(sources),
        found=found,
        cases=tuple(case for case in found[0].scores.cases if case in common),
        organs=tuple(dict.fromkeys(organs)),
        unlike=unlike,
    )


def comparison(matched: Matched) -> Comparison:
    """All that several metrics.json tell organisers."""
    told = [dict(each.provenance) for each in matched.found]
    keys = dict.fromkeys(key for each in told for key in each)
    return Comparison(
        challenge=_challenge_of(matched),
        evaluations=tuple(
            Compared(
                name=name,
                scores=_common(scores_of(found), matched, found, matched.cases),
                failed=_numbered(found.scores.failed, matched.cases),
                reasons=_numbered(_reasons(found), matched.cases),
                left_out=tuple(_left_out(found, matched)),
            )
            for name, found in zip(matched.names, matched.found, strict=True)
        ),
        unlike=matched.unlike,
        provenance=tuple(
            (key, tuple(each.get(key, "not told") for each in told)) for key in keys
        ),
    )


def _reasons(found: EvaluationFile) -> dict[str, str]:
    """Why cases score little or nothing, by case."""
    return {case: low.reason for low in found.low_scores for case in low.cases}


def own_comparison(matched: Matched) -> OwnComparison:
    """What a participant may know of evaluations; nothing else goes on from here.

    A case has the name of the participant's own file, the newest one first.
    """
    names = []
    for number, case in enumerate(matched.cases, start=1):
        files = (own.prediction_files.get(case, "") for own in reversed(matched.found))
        names.append(own_name(next(filter(None, files), ""), number))
    return OwnComparison(
        challenge=_challenge_of(matched),
        evaluations=tuple(
            Compared(
                name=name,
                scores=_common(own_scores(found), matched, found, tuple(names)),
                failed=_numbered(found.scores.failed, matched.cases),
                left_out=tuple(
                    own_name(found.prediction_files.get(case, ""), number)
                    for number, case in enumerate(_left_out(found, matched), start=1)
                ),
            )
            for name, found in zip(matched.names, matched.found, strict=True)
        ),
        unlike=matched.unlike,
    )


def _challenge_of(matched: Matched) -> str:
    """The challenge of all evaluations."""
    return challenge_title(matched.found[0].scores.evaluation.challenge)


def _left_out(found: EvaluationFile, matched: Matched) -> list[str]:
    """The cases of an evaluation that another one does not have."""
    return [case for case in found.scores.cases if case not in {*matched.cases}]


def _numbered(texts: Mapping[str, str], cases: Sequence[str]) -> dict[int, str]:
    """Texts by the number of a case, instead of by its name."""
    return {n: texts[case] for n, case in enumerate(cases) if case in texts}


def _common(
    own: _Scores, matched: Matched, found: EvaluationFile, names: tuple[str, ...]
) -> _Scores:
    """The scores of the cases that all evaluations have, under other names."""
    places = {case: number for number, case in enumerate(found.scores.cases)}
    part = own.part([places[case] for case in matched.cases])
    return replace(part, cases=names, organs=matched.organs)


# --- Differences ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The differences of one score of one organ."""

    metric: Metric
    title: str
    """Of the organ, or that it is the mean of organs."""
    differences: tuple[float | None, ...]
    """By case, above 0 for a gain; None where one of the two has no value."""
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
"""By metric: how each organ differs, and their mean, which comes first."""


def compare_scores(
    first: CaseScores, others: Sequence[CaseScores], metrics: Sequence[Metric]
) -> tuple[tuple[Pairs, ...], int]:
    """Compare some evaluations with the first one, case by case.

    Parameters
    ----------
    first : CaseScores
        What the others are compared with.
    others : sequence of CaseScores
        Of the same cases and organs.
    metrics : sequence of Metric
        By which they are compared.

    Returns
    -------
    tuple of tuple of Pairs and int
        For each of the others, how it differs from the first; and how many tests
        Holm's method has adjusted for: those of all others, scores and organs.
    """
    found = [list(_pairs(first, other, metrics)) for other in others]
    adjusted = iter(holm(np.array([own.p for pairs in found for own in pairs])))
    tested = [
        [replace(own, p_holm=float(next(adjusted))) for own in pairs] for pairs in found
    ]
    by_score = tuple(
        {m.name: tuple(own for own in pairs if own.metric == m) for m in metrics}
        for pairs in tested
    )
    return by_score, sum(map(len, found))


def _pairs(
    first: CaseScores, other: CaseScores, metrics: Sequence[Metric]
) -> Iterator[Paired]:
    """How each score of each organ differs."""
    for metric in metrics:
        for end, title in first.rows:
            absent = (None,) * len(first.cases)
            before, after = (
                each.values.get(metric.name + end) or absent for each in (first, other)
            )
            yield _paired(metric, title, before, after)


def _paired(
    metric: Metric,
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
        None
        if pair is None
        else round(worth(metric, pair[1]) - worth(metric, pair[0]), DECIMALS) + 0.0
        for pair in both
    )
    present = [value for value in differences if value is not None]
    p, effect = two_sided(np.array([present])) if present else ([1.0], [0.0])
    return Paired(
        metric=metric,
        title=title,
        differences=differences,
        before=_mean([pair[0] for pair in both if pair]),
        after=_mean([pair[1] for pair in both if pair]),
        interval=difference_interval(present) if metric.is_share else None,
        effect=float(effect[0]),
        p=float(p[0]),
    )


def worth(metric: Metric, value: float) -> float:
    """A value, turned so that a higher one is better."""
    if metric.better is None:
        return -abs(value)
    return value if metric.better is Better.HIGHER else -value


def _mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None
