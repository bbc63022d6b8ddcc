"""Compares evaluations, case by case, on the cases that all of them have.

Cases are matched by their names. The first evaluation is what the others are compared
with. As on the page of one evaluation, a participant's scores are thousandths before
differences are taken, tests are made, or anything is drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from flare.challenge.metrics import Better, Metric, metric_named
from flare.common.text import count, listing
from flare.ranking.answers import read_sheets
from flare.ranking.comparison import ComparisonFile, Difference, Side, compare
from flare.ranking.inspection import check_comparable
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
from flare.statistics.bootstrap import reason_for_none
from flare.statistics.paired import fewest_cases_to_test

Pairs = dict[str, tuple[Difference, ...]]
"""The differences by metric: of the mean of organs, and then of each organ."""

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
    pairs: Pairs
    """Its differences to the first evaluation, which has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The evaluations of a page, and how they were made."""

    evaluations: tuple[Compared, ...]
    """The first is compared with all the others."""
    numbers: ComparisonFile
    provenance: Provenance
    """Empty for participants."""
    lesions: Mapping[str, str]
    """The definition of each organ with lesions."""

    def __post_init__(self) -> None:
        """See that a participant's scores stand beside no others, and alone."""
        scores = [evaluation.scores for evaluation in self.evaluations]
        is_own = [isinstance(part, OwnScores) for part in scores]
        drawn = [pair for pair in self.numbers.answers if pair.draws is not None]
        has_secrets = self.provenance or drawn or self.numbers.decisions
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
        return self.numbers.cases

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics by which all evaluations have scores."""
        return tuple(map(metric_named, self.candidates[0].pairs))


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
        places = [file.cases.index(case) for case in cases]
        parts.append(scores.part(places, case_names))
        organs |= dict.fromkeys(scores.organs)
    names, sides = evaluation_names(sources), []
    for name, source, file, part in zip(names, sources, files, parts, strict=True):
        sheets = read_sheets(source, file) if is_organiser else ()
        sides.append(Side(name, part.values, part.answers, sheets))
    numbers = compare(sides, tuple(organs), case_names, unlike)
    evaluations = []
    for name, file, part in zip(names, files, parts, strict=True):
        compared = Compared(
            name=name,
            scores=replace(part, organs=tuple(organs)),
            left_out=_left_out(file, common, is_organiser=is_organiser),
            pairs=_pairs(numbers, name),
        )
        evaluations.append(compared)
    return Comparison(
        evaluations=tuple(evaluations),
        numbers=numbers,
        provenance=_provenance(files) if is_organiser else (),
        lesions=files[0].lesions,
    )


def _pairs(numbers: ComparisonFile, name: str) -> Pairs:
    pairs: Pairs = {}
    for pair in numbers.differences:
        if pair.evaluation == name:
            pairs[pair.metric] = (*pairs.get(pair.metric, ()), pair)
    return pairs


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


# --- In words ---------------------------------------------------------------------


def testable_means(pairs: Pairs) -> list[Difference]:
    """How the mean of organs differs, by each metric that has a good end."""
    means = [metric_pairs[0] for metric_pairs in pairs.values()]
    return [mean for mean in means if mean.record.better]


def verdict(first: Compared, candidate: Compared, tests: int) -> str:
    """The better evaluation, by how much, in which organ, and how sure that is.

    It is by metrics that have a good end; `tests` is the number of tests of means that
    p-values are adjusted for.
    """
    pairs = list(chain(*candidate.pairs.values()))
    if not any(pair.cases for pair in pairs):
        return f"No case has values of both {candidate.name} and {first.name}."
    if not any(any(pair.present) for pair in pairs):
        return f"{candidate.name} has the scores of {first.name} on every case."
    means = testable_means(candidate.pairs)
    where = _most_changed_text(candidate.pairs[means[0].metric][1:])
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
    fewest = fewest_cases_to_test(2 * max(tests, 1))
    if max(mean.better + mean.worse for mean in means) < fewest:
        why = f"it takes {fewest} cases that differ to show it"
    return (
        f"Neither {candidate.name} nor {first.name} is shown to be better on {number},"
        f" and {why}: {listing(map(_change, means), last=' and ')}{where}."
    )


def _most_changed_text(organs: Sequence[Difference]) -> str:
    """The end of a sentence: the organ whose mean has changed most, if any has."""
    changed = [organ for organ in organs if organ.difference]
    if not changed:
        return ""
    most = max(changed, key=lambda organ: abs(organ.difference or 0.0))
    return f"; {most.title} changed most ({most.record.title} {change_text(most)})"


def _word(pair: Difference) -> str:
    """How most cases have changed; and the average, where that is the opposite."""
    words = ("better", "worse") if pair.effect > 0 else ("worse", "better")
    if pair.mean_gain and (pair.mean_gain > 0) != (pair.effect > 0):
        return f"{words[0]} on most cases, but {words[1]} on average,"
    return words[0]


def _change(pair: Difference) -> str:
    """A metric, its mean difference, and how likely chance alone makes one as large."""
    return f"{pair.record.title} {change_text(pair, f'p {p_text(pair.p_holm)}')}"


def signed(value: float, decimals: int = 3) -> str:
    """A difference with its sign, unless no digit of it is shown.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5, 1), signed(-0.0004)
    ('+0.012', '-0.5', '0.000')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def interval_text(pair: Difference) -> str:
    """The interval of a mean difference in words: only those of scores have one."""
    if pair.interval is None:
        return reason_for_none(pair.present) if pair.record.is_share else "none"
    low, high = pair.interval
    return f"{signed(low)} to {signed(high)}"


def change_text(pair: Difference, *remarks: str) -> str:
    """The mean difference; where lower is better, in words that say so.

    A distance becomes "26.80 mm lower (better)", a score "+0.012"; remarks are behind
    it, in brackets.
    """
    if pair.difference is None:
        return NO_RESULT
    text = signed(pair.difference, pair.record.decimals)
    if pair.record.better is Better.LOWER:
        size = f"{pair.record.text(abs(pair.difference))} {pair.record.unit}".rstrip()
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
