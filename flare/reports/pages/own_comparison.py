"""Makes a participant's comparison, of a type that holds no reference data.

As on the page of one evaluation, every score is a whole number of thousandths before
differences are taken, tests are made, or anything is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from flare.challenge.metrics import SCORES
from flare.ranking.provenance import Unlike
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.comparison import (
    Compared,
    Comparison,
    Matched,
    challenge_of,
    left_out,
)
from flare.reports.pages.evaluation import scores_of
from flare.reports.pages.participant import OwnCase, own_name, score_of, thousandths
from flare.results.metrics_reading import EvaluationFile


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEvaluation:
    """What a participant may know of one of the evaluations."""

    name: str
    cases: tuple[OwnCase, ...]
    """The same cases in the same order in all of them."""
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnComparison:
    """What the participant's page of a comparison is made from."""

    challenge: str
    organs: tuple[str, ...]
    evaluations: tuple[OwnEvaluation, ...]
    unlike: tuple[Unlike, ...]


def own_comparison(matched: Matched) -> OwnComparison:
    """What a participant may know of evaluations; nothing else goes on from here."""
    names = [_own_name(matched, case, n) for n, case in enumerate(matched.cases)]
    return OwnComparison(
        challenge=challenge_of(matched),
        organs=matched.organs,
        evaluations=tuple(
            OwnEvaluation(
                name=name,
                cases=_own_cases(found, matched, names),
                left_out=tuple(
                    own_name(found.prediction_files.get(case, ""), number)
                    for number, case in enumerate(left_out(found, matched))
                ),
            )
            for name, found in zip(matched.names, matched.found, strict=True)
        ),
        unlike=matched.unlike,
    )


def _own_name(matched: Matched, case: str, number: int) -> str:
    """What a case is called by the participant's own file, the newest one first."""
    files = (each.prediction_files.get(case, "") for each in reversed(matched.found))
    return own_name(next(filter(None, files), ""), number)


def _own_cases(
    found: EvaluationFile, matched: Matched, names: list[str]
) -> tuple[OwnCase, ...]:
    """The cases of an evaluation that all others have, too."""
    scores = scores_of(found)
    places = {case: number for number, case in enumerate(scores.cases)}
    return tuple(
        OwnCase(
            name=name,
            thousandths={
                metric: thousandths(values[places[case]])
                for metric, values in scores.values.items()
            },
            failure=found.scores.failed.get(case, ""),
        )
        for case, name in zip(matched.cases, names, strict=True)
    )


def rounded(own: OwnComparison) -> Comparison:
    """The same with rounded scores, for drawing."""
    cases = tuple(case.name for case in own.evaluations[0].cases)
    return Comparison(
        challenge=own.challenge,
        cases=cases,
        evaluations=tuple(
            Compared(
                name=each.name,
                scores=CaseScores(
                    cases=cases,
                    organs=own.organs,
                    values=_values(own.organs, each.cases),
                    means={},
                    exact=False,
                ),
                failed={n: c.failure for n, c in enumerate(each.cases) if c.failure},
                left_out=each.left_out,
            )
            for each in own.evaluations
        ),
        unlike=own.unlike,
    )


def _values(
    organs: tuple[str, ...], cases: tuple[OwnCase, ...]
) -> dict[str, tuple[float | None, ...]]:
    """Scores from 0 to 1, by metric."""
    metrics = [*SCORES, *(f"{score}_{organ}" for score in SCORES for organ in organs)]
    return {
        metric: tuple(score_of(case.thousandths.get(metric)) for case in cases)
        for metric in metrics
    }
