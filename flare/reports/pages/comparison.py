"""Says what a comparison is made from: evaluations, on the cases that all of them have.

Cases are matched by their names. The first evaluation is what the others are compared
with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flare.common.text import printable, safe
from flare.ranking.provenance import Unlike, check_comparable
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.evaluation import scores_of
from flare.results.metrics_reading import EvaluationFile, read_evaluation


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
    cases: tuple[str, ...]
    """Those that all evaluations have."""
    evaluations: tuple[Compared, ...]
    """That which the others are compared with comes first."""
    unlike: tuple[Unlike, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Evaluations that can be compared."""

    names: tuple[str, ...]
    found: tuple[EvaluationFile, ...]
    cases: tuple[str, ...]
    """Those that all of them have, by the names of the references."""
    organs: tuple[str, ...]
    unlike: tuple[Unlike, ...]


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


def evaluation_names(sources: Sequence[Path]) -> tuple[str, ...]:
    """What evaluations are called: short, and no two alike.

    Examples
    --------
    >>> evaluation_names([Path("old/metrics.json"), Path("new/metrics.json")])
    ('old', 'new')
    >>> evaluation_names([Path("runs/old.json"), Path("runs/new.json")])
    ('old', 'new')
    >>> evaluation_names([Path("old.json"), Path("old.json")])
    ('1: old.json', '2: old.json')
    """
    ways: tuple[Callable[[Path], str], ...] = (
        lambda source: source.absolute().parent.name,
        lambda source: source.stem,
        str,
    )
    for name_of in ways:
        names = tuple(safe(name_of(source)) for source in sources)
        if all(names) and len({*names}) == len(names):
            return names
    return tuple(safe(f"{n}: {source}") for n, source in enumerate(sources, start=1))


def comparison(matched: Matched) -> Comparison:
    """All that several metrics.json tell organisers."""
    told = [dict(each.provenance) for each in matched.found]
    keys = dict.fromkeys(key for each in told for key in each)
    return Comparison(
        challenge=challenge_of(matched),
        cases=matched.cases,
        evaluations=tuple(
            Compared(
                name=name,
                scores=_common_scores(found, matched),
                failed=numbered(found.scores.failed, matched.cases),
                reasons=numbered(_reasons(found), matched.cases),
                left_out=tuple(left_out(found, matched)),
            )
            for name, found in zip(matched.names, matched.found, strict=True)
        ),
        unlike=matched.unlike,
        provenance=tuple(
            (key, tuple(each.get(key, "not told") for each in told)) for key in keys
        ),
    )


def challenge_of(matched: Matched) -> str:
    """The challenge of all evaluations."""
    return printable(str(matched.found[0].scores.evaluation.challenge or ""))


def left_out(found: EvaluationFile, matched: Matched) -> Iterable[str]:
    """The cases of an evaluation that another one does not have."""
    common = {*matched.cases}
    return (case for case in found.scores.cases if case not in common)


def numbered(texts: Mapping[str, str], cases: Sequence[str]) -> dict[int, str]:
    """Texts by the number of a case, instead of by its name."""
    return {n: texts[case] for n, case in enumerate(cases) if case in texts}


def _reasons(found: EvaluationFile) -> dict[str, str]:
    """Why cases score little or nothing, by case."""
    return {case: low.reason for low in found.low_scores for case in low.cases}


def _common_scores(found: EvaluationFile, matched: Matched) -> CaseScores:
    """The scores of the cases that all evaluations have, in full precision."""
    own = scores_of(found)
    places = {case: number for number, case in enumerate(own.cases)}
    numbers = [places[case] for case in matched.cases]
    return CaseScores(
        cases=matched.cases,
        organs=matched.organs,
        values={
            metric: tuple(values[number] for number in numbers)
            for metric, values in own.values.items()
        },
        means={},
        exact=True,
    )
