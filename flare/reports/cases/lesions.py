"""Tells of the lesions of a case by number: missed, false and found, largest first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import METRICS
from flare.challenge.rules import Challenge
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.lesions.case import CaseLesions
from flare.evaluation.lesions.pairs import Side
from flare.evaluation.lesions.parts import Parts
from flare.evaluation.lesions.runs import Numbers
from flare.evaluation.metrics.pairs import MapPair
from flare.evaluation.scoring.case import scored_slices
from flare.reports.cases.drawing import PLANES
from flare.reports.cases.findings import CaseFinding
from flare.reports.model import Cell, Part, Words, ml_cell, table_of_rows
from flare.reports.scores import metric_cell

MOST_SHOWN = 20
"""So many lesions of a kind are shown: a prediction may have millions of specks."""


def lesion_parts(
    finding: CaseFinding,
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
) -> Iterator[Part]:
    """The lesions of each organ that has them, found as they were scored.

    That is along the axes of the file: where IoUs are equal, the order of lesions along
    these decides which is found.
    """
    pair = MapPair(reference.voxels, prediction.voxels, reference.grid.spacing)
    for organ in challenge.organs:
        if organ.lesions:
            slices = scored_slices(organ, organ.region, reference, challenge)
            cut = pair.cut(organ.region, slices)
            case = CaseLesions(cut, DEFINITIONS[organ.lesions])
            yield _table(case, organ.name.replace("_", " "), finding)


def _table(case: CaseLesions, organ: str, finding: CaseFinding) -> Part:
    """A row for each lesion that is shown, and above it how many there are."""
    counts, rows = [], []
    dsc_head = ["DSC"] if case.definition.mean else []
    for kind, side, lesions, numbers in _kinds(case):
        volume = ml_cell(int(side.sizes[lesions].sum()) * finding.voxel_ml).text
        unseen = lesions.size - MOST_SHOWN
        words = f", {unseen} smaller ones are not shown" if unseen > 0 else ""
        counts.append(f"{lesions.size} {kind} ({volume} ml{words})")
        lesions, numbers = lesions[:MOST_SHOWN], numbers[:MOST_SHOWN]
        parts = Parts(side, lesions, case.pair.box)
        for lesion, number in zip(lesions.tolist(), numbers.tolist(), strict=True):
            box = parts.box([lesion])
            place = finding.place_of(box, parts.mask([lesion], box))
            link = " ".join(map(str, place))
            name = Cell(f"{kind} {number}", href="#picture", place=link)
            size = ml_cell(int(side.sizes[lesion]) * finding.voxel_ml)
            dsc = case.lesion(lesion).dsc if kind == "found" else None
            cell = metric_cell(METRICS["lesion_dsc"], dsc, exact=True, absent="-")
            slices = [index + 1 for index in place]
            rows.append([name, size, *[cell] * len(dsc_head), *slices])
    caption = f"Lesions of {organ} by {case.definition.title}: {'; '.join(counts)}"
    if not rows:
        return Words(caption)
    planes = [f"{plane.name} slice" for plane in PLANES]
    heads = ["lesion", "volume (ml)", *dsc_head, *planes]
    return table_of_rows(caption, heads, rows, words=["lesion"])


def _kinds(case: CaseLesions) -> Iterator[tuple[str, Side, Numbers, Numbers]]:
    """The lesions of each kind, the largest first: their mask, they, their numbers."""
    is_found = np.zeros(case.reference.number, dtype=np.bool_)
    is_found[case.pairs.references] = True
    for kind, side, is_numbered, is_kind in (
        ("missed", case.reference, case.is_counted, ~is_found),
        ("false", case.prediction, case.is_false, case.is_false),
        ("found", case.reference, case.is_counted, is_found),
    ):
        numbered = np.flatnonzero(is_numbered)
        ordered = numbered[np.argsort(-side.sizes[numbered], kind="stable")]
        ranks = np.flatnonzero(is_kind[ordered])
        yield kind, side, ordered[ranks], ranks + 1
