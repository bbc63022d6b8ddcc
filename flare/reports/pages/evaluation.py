"""Makes the organisers' page of one evaluation, which holds all that it has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flare.challenge.metrics import SCORES
from flare.common.text import count, listing, printable
from flare.reports.pages.case_scores import (
    NO_LINKS,
    CaseScores,
    case_table,
    distribution,
    mean_tiles,
    worst_first,
    worst_table,
)
from flare.reports.pages.groups import score_panels
from flare.reports.pages.intervals import METHOD
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import (
    SCORE_KEY,
    Frame,
    Row,
    Table,
    heads,
    name_cell,
    text_cell,
)
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile
from flare.results.scores import FreeCases, LowScores

ORGANISERS_NOTE = (
    "For the organisers: it holds scores in full precision, from which volumes of the"
    " references can be found. Do not publish it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPage:
    """What the organisers' page of an evaluation is made from."""

    challenge: str
    scores: CaseScores
    failed: tuple[tuple[str, str], ...]
    """Cases that were not scored, and why."""
    low_scores: tuple[LowScores, ...]
    warnings: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]
    groupings: tuple[Grouping, ...] = ()
    free_cases: tuple[FreeCases, ...] = ()
    """Of each organ whose absence is reported."""


def evaluation_page(
    found: EvaluationFile, groupings: tuple[Grouping, ...] = ()
) -> EvaluationPage:
    """What a metrics.json tells organisers."""
    told = {low.reason for low in found.low_scores}
    return EvaluationPage(
        challenge=printable(str(found.scores.evaluation.challenge or "")),
        scores=scores_of(found),
        failed=tuple(found.scores.failed.items()),
        low_scores=found.low_scores,
        warnings=tuple(line for line in found.warnings if line not in told),
        provenance=found.provenance,
        groupings=groupings,
        free_cases=found.free_cases,
    )


def scores_of(found: EvaluationFile) -> CaseScores:
    """All DSC and NSD of a metrics.json, in full precision."""
    scores = found.scores
    metrics = dict.fromkeys(metric for _, metric in scores.values)
    prefix = f"{SCORES[0]}_"
    organs = [m.removeprefix(prefix) for m in metrics if m.startswith(prefix)]
    columns = [*SCORES, *(f"{s}_{organ}" for s in SCORES for organ in organs)]
    return CaseScores(
        cases=scores.cases,
        organs=tuple(organs),
        values={
            metric: tuple(scores.values.get((case, metric)) for case in scores.cases)
            for metric in columns
        },
        means={
            metric: found.aggregates[f"{metric}_mean"]
            for metric in columns
            if f"{metric}_mean" in found.aggregates
        },
        exact=True,
    )


def evaluation_html(page: EvaluationPage, links: Mapping[str, str] = NO_LINKS) -> str:
    """The page as HTML; `links` are the pages of cases that have one."""
    return page_html("evaluation.html", **evaluation_content(page, links))


def evaluation_content(
    page: EvaluationPage, links: Mapping[str, str] = NO_LINKS
) -> dict[str, Any]:
    """What the template of the page names."""
    scores = page.scores
    order = worst_first(scores)
    failed = dict(page.failed)
    reasons = {case: low.reason for low in page.low_scores for case in low.cases}
    return {
        "page": Frame(
            title=f"Evaluation of {count(len(scores.cases), 'case')}",
            kicker=page.challenge,
            sections=(
                ("means", "Means"),
                ("worst", "Worst cases"),
                ("cases", "All cases"),
                *([("groups", "Groups")] if page.groupings else []),
                ("remarks", "Remarks"),
                ("provenance", "Provenance"),
            ),
            audience_note=ORGANISERS_NOTE,
        ),
        "tiles": mean_tiles(scores),
        "cases": len(scores.cases),
        "failed_cases": len(failed),
        "figures": [distribution(scores, score) for score in SCORES],
        "method": METHOD,
        "worst": worst_table(scores, order, reasons | failed, links),
        "tables": [case_table(scores, score, order, failed, links) for score in SCORES],
        "has_case_pages": bool(links),
        "shades": SCORE_KEY,
        "panels": score_panels(scores, page.groupings),
        "failed": _failed_table(page.failed),
        "free_cases": [printable(free.text) for free in page.free_cases],
        "warnings": [printable(line) for line in page.warnings],
        "low_scores": [
            f"{printable(low.reason)} [{listing(low.cases)}]" for low in page.low_scores
        ],
        "provenance": _pairs_table(page.provenance),
    }


def _failed_table(failed: tuple[tuple[str, str], ...]) -> Table | None:
    """The cases that were not scored."""
    if not failed:
        return None
    rows = (Row(cells=(name_cell(case), text_cell(why))) for case, why in failed)
    return Table(
        caption="Cases that were not scored, and got the worst value instead",
        heads=heads("case", "why", words=("case", "why")),
        rows=tuple(rows),
    )


def _pairs_table(pairs: tuple[tuple[str, str], ...]) -> Table:
    """What is known of how the scores were made."""
    return Table(
        caption="As metrics.json has it; the digests tell whether two were made alike",
        heads=heads("what", "value", words=("what", "value")),
        rows=tuple(Row(cells=(name_cell(k), text_cell(v))) for k, v in pairs),
        sortable=False,
    )
