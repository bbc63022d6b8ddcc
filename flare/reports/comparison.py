"""Compares evaluations, case by case, on the cases that all of them have.

Cases are matched by their names. The first evaluation is what the others are compared
with. As on the page of one evaluation, a participant's scores are thousandths before
differences are taken, tests are made, or anything is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, product
from pathlib import Path
from statistics import fmean

import numpy as np

from flare.challenge.metrics import Better, Metric
from flare.common.text import count, listing
from flare.ranking.inspection import check_comparable
from flare.ranking.ranks import Values
from flare.reports.answers import AnswerSheet, read_sheets
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
from flare.statistics import ALPHA
from flare.statistics.bootstrap import mean_interval, reason_for_none
from flare.statistics.paired import fewest_cases_to_test, holm, steps, two_sided

TEST_METHOD = (
    "p-values are those of the two-sided Wilcoxon signed-rank test, paired by case:"
    " cases without a difference are left out (zero method of Wilcoxon), equal"
    " differences get their average rank, and the normal approximation is used, with"
    " corrections for ties and continuity, as in flare rank. The effect is the"
    " matched-pairs rank-biserial correlation: 1 if the new scores are better wherever"
    " there is a difference, -1 if they are worse."
)


Provenance = tuple[tuple[str, tuple[str, ...]], ...]
"""How scores were made: names, and a text of each evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the evaluations."""

    name: str
    scores: CaseScores
    """The scores of the cases that all evaluations have."""
    left_out: tuple[str, ...]
    """Cases that another evaluation does not have."""
    sheets: tuple[AnswerSheet, ...] = ()
    """Its answers one by one; empty for participants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The evaluations of a page, and how they were made."""

    evaluations: tuple[Compared, ...]
    """The first is compared with all the others."""
    unlike: tuple[str, ...]
    provenance: Provenance
    """Empty for participants."""

    def __post_init__(self) -> None:
        """See that a participant's scores stand beside no others, and alone."""
        scores = [evaluation.scores for evaluation in self.evaluations]
        is_own = [isinstance(part, OwnScores) for part in scores]
        has_secrets = self.provenance or any(e.sheets for e in self.evaluations)
        if any(is_own) and (has_secrets or not all(is_own)):
            raise ValueError("more than a participant may know")

    @property
    def first(self) -> Compared:
        """The evaluation that all others are compared with."""
        return self.evaluations[0]

    @property
    def candidates(self) -> tuple[Compared, ...]:
        """The evaluations that are compared with the first."""
        return self.evaluations[1:]

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases of all evaluations."""
        return self.first.scores.cases

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics by which all evaluations have scores."""
        metrics = self.first.scores.metrics
        for candidate in self.candidates:
            candidate_metrics = candidate.scores.metrics
            metrics = tuple(m for m in metrics if m in candidate_metrics)
        return metrics


def read_comparison(sources: Sequence[Path], *, is_organiser: bool) -> Comparison:
    """Read evaluations, as far as their readers may know them.

    To participants, a case has the name of their own file, the newest one first. A
    MetricsFileError is raised if one cannot be read, or compared with the first.
    """
    files = tuple(map(read_evaluation, sources))
    unlike = check_comparable(sources, files)
    common = set.intersection(*(set(file.cases) for file in files))
    cases = [case for case in files[0].cases if case in common]
    case_names = cases if is_organiser else _own_names(cases, files[::-1])
    parts = []
    organs: dict[str, None] = {}
    for file in files:
        scores = scores_of(file) if is_organiser else own_scores(file)
        numbers = {case: number for number, case in enumerate(file.cases)}
        parts.append(scores.part([numbers[case] for case in cases], case_names))
        organs |= dict.fromkeys(scores.organs)
    evaluations = []
    names = evaluation_names(sources)
    for name, source, file, part in zip(names, sources, files, parts, strict=True):
        compared = Compared(
            name=name,
            scores=replace(part, organs=tuple(organs)),
            left_out=_left_out(file, common, is_organiser=is_organiser),
            sheets=read_sheets(source, file) if is_organiser else (),
        )
        evaluations.append(compared)
    return Comparison(
        evaluations=tuple(evaluations),
        unlike=unlike,
        provenance=_provenance(files) if is_organiser else (),
    )


def _left_out(
    file: EvaluationFile, common: Collection[str], *, is_organiser: bool
) -> tuple[str, ...]:
    left_out = [case for case in file.cases if case not in common]
    return tuple(left_out if is_organiser else _own_names(left_out, [file]))


def _provenance(files: Sequence[EvaluationFile]) -> Provenance:
    records = [dict(file.provenance) for file in files]
    rows = []
    for name in dict.fromkeys(chain.from_iterable(records)):
        texts = tuple(record.get(name, "not told") for record in records)
        rows.append((name, texts))
    return tuple(rows)


def _own_names(cases: Sequence[str], files: Sequence[EvaluationFile]) -> list[str]:
    """Name cases by the prediction of the first evaluation that has one."""
    predictions = []
    for case in cases:
        names = [file.prediction_files.get(case, "") for file in files]
        predictions.append(next(filter(None, names), ""))
    return own_names(predictions)


# --- Differences ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The differences of one score of one organ."""

    metric: Metric
    title: str
    """The title of the organ, or of the mean of organs."""
    differences: tuple[float | None, ...]
    """The new value of each case less the old one; None where either is missing."""
    gains: tuple[float | None, ...]
    """The gain of each case: above 0 if the new value is better."""
    before: float | None = None
    """Mean over the cases with a difference."""
    after: float | None = None
    interval: tuple[float, float] | None = None
    """A confidence interval of the mean difference."""
    effect: float = 0.0
    p: float = 1.0
    """The p-value; 1 without any difference to test."""
    p_holm: float = 1.0

    @property
    def present(self) -> list[float]:
        """The gains and losses of the cases that have both scores."""
        return [value for value in self.gains if value is not None]

    @property
    def mean(self) -> float | None:
        """The mean difference."""
        present = [value for value in self.differences if value is not None]
        return fmean(present) if present else None

    @property
    def mean_gain(self) -> float | None:
        """The mean gain; that of a loss is below 0."""
        present = self.present
        return fmean(present) if present else None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of cases that are better, equal and worse."""
        signs = [(value > 0) - (value < 0) for value in self.present]
        return signs.count(1), signs.count(0), signs.count(-1)

    @property
    def changed(self) -> int:
        """The number of cases that are better or worse."""
        better, _, worse = self.counts
        return better + worse

    @property
    def is_tested(self) -> bool:
        """Whether a case differs, by a metric that has a good end."""
        return self.metric.better is not None and any(self.present)

    @property
    def is_significant(self) -> bool:
        """Whether chance alone hardly explains it."""
        return self.p_holm <= ALPHA


Pairs = dict[str, tuple[Paired, ...]]
"""The pairs by metric: that of the mean of organs comes first, then each organ."""


def compare_scores(
    first: CaseScores, candidates: Sequence[CaseScores], metrics: Sequence[Metric]
) -> list[Pairs]:
    """Compare each candidate with the first evaluation, case by case.

    Holm's method adjusts for the tests of all candidates and metrics: those of means by
    themselves, which a reader looks at first, and those of organs by themselves. All
    scores are of the same cases and organs.
    """
    compared: list[Pairs] = [{} for _ in candidates]
    for rows in (first.rows[:1], first.rows[1:]):
        names, family = [], []
        for number, metric in product(range(len(candidates)), metrics):
            for end, title in rows:
                candidate = candidates[number]
                family.append(_paired(metric, end, title, first, candidate))
                names.append((number, metric.name))
        for (number, name), pair in zip(names, _adjusted(family), strict=True):
            pairs = compared[number]
            pairs[name] = (*pairs.get(name, ()), pair)
    return compared


def _adjusted(family: Sequence[Paired]) -> Iterator[Paired]:
    """The same pairs with p-values that are adjusted for all that can be tested."""
    p_values = [pair.p for pair in family if pair.metric.better]
    adjusted = iter(holm(np.array(p_values)).tolist())
    for pair in family:
        yield replace(pair, p_holm=next(adjusted)) if pair.metric.better else pair


def _paired(
    metric: Metric, end: str, title: str, first: CaseScores, candidate: CaseScores
) -> Paired:
    """How the scores of an organ differ, on the cases that have both."""
    absent = (None,) * len(first.cases)
    before = first.values.get(metric.name + end) or absent
    after = candidate.values.get(metric.name + end) or absent
    has_both = [None not in pair for pair in zip(before, after, strict=True)]
    if not any(has_both):
        return Paired(metric=metric, title=title, differences=absent, gains=absent)
    old = np.array([list(compress(before, has_both))], dtype=np.float64)
    new = np.array([list(compress(after, has_both))], dtype=np.float64)
    differences, gains = steps(old, new), _gains(metric, old, new)
    p, effect = two_sided(gains) if metric.better else ([1.0], [0.0])
    return Paired(
        metric=metric,
        title=title,
        differences=_by_case(differences[0], has_both),
        gains=_by_case(gains[0], has_both),
        before=fmean(old[0].tolist()),
        after=fmean(new[0].tolist()),
        interval=mean_interval(gains[0].tolist()) if metric.is_share else None,
        effect=float(effect[0]),
        p=float(p[0]),
    )


def _gains(metric: Metric, old: Values, new: Values) -> Values:
    """How much better the new values are; below 0 if they are worse."""
    if metric.better is None:
        return steps(np.abs(new), np.abs(old))
    return steps(old, new) if metric.better is Better.HIGHER else steps(new, old)


def _by_case(values: Values, has_both: Sequence[bool]) -> tuple[float | None, ...]:
    """Values of the cases that have both scores, and None for all other cases."""
    remaining = iter(values.tolist())
    return tuple(next(remaining) if is_compared else None for is_compared in has_both)


# --- In words ---------------------------------------------------------------------


def tests_of_means(pairs: Pairs, candidates: int) -> int:
    """The number of tests of means, by all metrics and for all candidates."""
    return candidates * len(_testable_means(pairs))


def _testable_means(pairs: Pairs) -> list[Paired]:
    """How the mean of organs differs, by each metric that has a good end."""
    means = [metric_pairs[0] for metric_pairs in pairs.values()]
    return [mean for mean in means if mean.metric.better]


def verdict(pairs: Pairs, first: Compared, candidate: Compared, tests: int) -> str:
    """The better evaluation, by how much, in which organ, and how sure that is.

    The pairs are of metrics that have a good end; `tests` is the number of tests of
    means that p-values are adjusted for.
    """
    if not any(any(pair.present) for pair in chain(*pairs.values())):
        return f"{candidate.name} has the scores of {first.name} on every case."
    means = _testable_means(pairs)
    where = _most_changed_text(pairs[means[0].metric.name][1:])
    number = count(len(first.scores.cases), "case")
    changes: dict[str, list[str]] = {}
    for mean in means:
        if mean.is_significant:
            changes.setdefault(_word(mean), []).append(_change(mean))
    if changes:
        phrases = []
        for word, texts in changes.items():
            what = listing(texts, last=" and ")
            phrases.append(f"significantly {word} than {first.name}: {what}")
        return f"{candidate.name} is {' and '.join(phrases)} on {number}{where}."
    why = "both may be equally good"
    fewest = fewest_cases_to_test(2 * tests)
    if max(mean.changed for mean in means) < fewest:
        why = f"it takes {fewest} cases that differ to show it"
    return (
        f"Neither {candidate.name} nor {first.name} is shown to be better on {number},"
        f" and {why}: {listing(map(_change, means), last=' and ')}{where}."
    )


def _most_changed_text(organs: Sequence[Paired]) -> str:
    """The end of a sentence: the organ whose mean has changed most, if any has."""
    changed = [organ for organ in organs if organ.mean]
    if not changed:
        return ""
    most = max(changed, key=lambda organ: abs(organ.mean or 0.0))
    return f"; {most.title} changed most ({most.metric.title} {change_text(most)})"


def _word(pair: Paired) -> str:
    """How most cases have changed; and the average, where that is the opposite."""
    words = ("better", "worse") if pair.effect > 0 else ("worse", "better")
    if pair.mean_gain and (pair.mean_gain > 0) != (pair.effect > 0):
        return f"{words[0]} on most cases, but {words[1]} on average,"
    return words[0]


def _change(pair: Paired) -> str:
    """A metric, its mean difference, and how likely chance alone makes one as large."""
    return f"{pair.metric.title} {change_text(pair, f'p {p_text(pair.p_holm)}')}"


def signed(value: float, decimals: int = 3) -> str:
    """A difference with its sign, unless no digit of it is shown.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5, 1), signed(-0.0004)
    ('+0.012', '-0.5', '0.000')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def interval_text(pair: Paired) -> str:
    """The interval of a mean difference in words: only those of scores have one."""
    if pair.interval is None:
        return reason_for_none(pair.present) if pair.metric.is_share else "none"
    low, high = pair.interval
    return f"{signed(low)} to {signed(high)}"


def change_text(pair: Paired, *remarks: str) -> str:
    """The mean difference; where lower is better, in words that say so.

    A distance becomes "26.80 mm lower (better)", a score "+0.012"; remarks are behind
    it, in brackets.
    """
    if pair.mean is None:
        return NO_RESULT
    text = signed(pair.mean, pair.metric.decimals)
    if pair.metric.better is Better.LOWER:
        size = f"{pair.metric.text(abs(pair.mean))} {pair.metric.unit}".rstrip()
        if text.startswith("-"):
            text, remarks = f"{size} lower", ("better", *remarks)
        elif text.startswith("+"):
            text, remarks = f"{size} higher", ("worse", *remarks)
        else:
            text = size
    return f"{text} ({', '.join(remarks)})" if remarks else text


def p_text(p: float) -> str:
    """A p-value, which sorts as a number.

    Examples
    --------
    >>> p_text(0.0421), p_text(1.0), p_text(0.000123)
    ('0.042', '1.000', '1.2e-04')
    """
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
