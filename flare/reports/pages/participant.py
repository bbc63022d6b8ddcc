"""Makes a participant's page of one evaluation, of a type that holds no reference data.

A score in full precision gives away how many voxels the reference has. So a score is a
whole number of thousandths before anything is drawn, and whatever is drawn, counted or
averaged comes from these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flare.challenge.formats import case_of
from flare.challenge.metrics import SCORES
from flare.common.text import count, printable
from flare.reports.pages.case_scores import (
    CaseScores,
    case_table,
    distribution,
    mean_tiles,
    worst_first,
    worst_table,
)
from flare.reports.pages.evaluation import scores_of
from flare.reports.pages.groups import score_panels
from flare.reports.pages.intervals import METHOD
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import SCORE_KEY, Frame
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile

NOTE = (
    "For the participant: scores are rounded to three decimals, and means are those of"
    " the rounded scores."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCase:
    """What a participant may know of a case."""

    name: str
    """That of the participant's own file, or its number where there is none."""
    thousandths: Mapping[str, int | None]
    """By metric: the score in thousandths, which cannot hold any more digits."""
    failure: str = ""
    """Why it was not scored: words that no voxel of the reference has a part in."""

    def __post_init__(self) -> None:
        """See that scores are whole numbers."""
        for metric, score in self.thousandths.items():
            if score is not None and (type(score) is not int or not 0 <= score <= 1000):
                text = f"{metric} is {score!r}, no whole number of thousandths"
                raise ValueError(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantPage:
    """What the participant's page is made from."""

    challenge: str
    organs: tuple[str, ...]
    cases: tuple[OwnCase, ...]
    groupings: tuple[Grouping, ...] = ()
    """Numbers of cases by group; means of these are those of rounded scores."""


def participant_page(
    found: EvaluationFile, groupings: tuple[Grouping, ...] = ()
) -> ParticipantPage:
    """What a participant may know of an evaluation; nothing else goes on from here."""
    scores = scores_of(found)
    return ParticipantPage(
        challenge=printable(str(found.scores.evaluation.challenge or "")),
        organs=scores.organs,
        cases=tuple(
            OwnCase(
                name=own_name(found.prediction_files.get(case, ""), number),
                thousandths={
                    metric: thousandths(values[number])
                    for metric, values in scores.values.items()
                },
                failure=found.scores.failed.get(case, ""),
            )
            for number, case in enumerate(scores.cases)
        ),
        groupings=groupings,
    )


def own_name(file: str, number: int) -> str:
    """What a case is called, without the name of the reference."""
    return case_of(file) if file else f"case {number + 1}, without a file"


def thousandths(score: float | None) -> int | None:
    """A score without the digits that tell of voxels."""
    return None if score is None else round(score * 1000)


def participant_html(page: ParticipantPage) -> str:
    """The page as HTML."""
    return page_html("participant.html", **participant_content(page))


def participant_content(page: ParticipantPage) -> dict[str, Any]:
    """What the template of the page names."""
    scores = _rounded(page)
    order = worst_first(scores)
    failed = {case.name: case.failure for case in page.cases if case.failure}
    return {
        "page": Frame(
            title=f"Your scores on {count(len(page.cases), 'case')}",
            kicker=page.challenge,
            sections=(
                ("means", "Means"),
                ("worst", "Worst cases"),
                ("cases", "All cases"),
                *([("groups", "Groups")] if page.groupings else []),
            ),
            audience_note=NOTE,
        ),
        "tiles": mean_tiles(scores),
        "cases": len(page.cases),
        "failed_cases": len(failed),
        "figures": [distribution(scores, score) for score in SCORES],
        "method": METHOD,
        "worst": worst_table(scores, order, failed),
        "tables": [case_table(scores, score, order, failed) for score in SCORES],
        "shades": SCORE_KEY,
        "panels": score_panels(scores, page.groupings),
    }


def _rounded(page: ParticipantPage) -> CaseScores:
    """The rounded scores, for drawing."""
    metrics = page.cases[0].thousandths
    return CaseScores(
        cases=tuple(case.name for case in page.cases),
        organs=page.organs,
        values={
            metric: tuple(score_of(case.thousandths[metric]) for case in page.cases)
            for metric in metrics
        },
        means={},
        exact=False,
    )


def score_of(thousandths: int | None) -> float | None:
    """A score from 0 to 1."""
    return None if thousandths is None else thousandths / 1000
