"""Tells of the lesions of a case by number: found, missed and false, largest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flare.challenge.lesions import Definition
from flare.challenge.metrics import METRICS
from flare.evaluation.lesions.case import CaseLesions
from flare.evaluation.lesions.parts import Parts
from flare.evaluation.metrics.arrays import Box, Mask
from flare.evaluation.metrics.tally import LabelPair
from flare.reports.cases.drawing import PLANES
from flare.reports.cases.surfaces import Place
from flare.reports.model import Cell, Column, Table, ml_cell, table_of
from flare.reports.scores import metric_cell

MOST_SHOWN = 20
"""So many lesions of a kind are shown: a prediction may have millions of specks."""


class NumberedLesion(NamedTuple):
    """A lesion that is shown."""

    kind: str
    number: int
    """From 1, the largest: of the reference, found or missed, and of false ones."""
    voxels: int
    place: Place
    """The slices that hold most of it."""
    dsc: float | None = None
    """The DSC of one that is found, with all that belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganLesions:
    """The lesions of an organ in a case, by the definition that decides its scores."""

    definition: Definition
    sizes: Mapping[str, tuple[int, int]]
    """How many lesions each kind has, and of how many voxels."""
    shown: tuple[NumberedLesion, ...]
    """The largest of each kind."""


def find_lesions(
    pair: LabelPair, definition: Definition, place_of: Callable[[Box, Mask], Place]
) -> OrganLesions:
    """The lesions of an organ; `place_of` has the slices that hold most of a mask."""
    case = CaseLesions(pair, definition)
    is_found = np.zeros(case.reference.number, dtype=np.bool_)
    is_found[case.pairs.references] = True
    shown, sizes = [], {}
    for kind, side, is_numbered, is_kind in (
        ("missed", case.reference, case.is_counted, ~is_found),
        ("false", case.prediction, case.is_false, case.is_false),
        ("found", case.reference, case.is_counted, is_found),
    ):
        numbered = np.flatnonzero(is_numbered)
        ordered = numbered[np.argsort(-side.sizes[numbered], kind="stable")]
        ranks = np.flatnonzero(is_kind[ordered])
        sizes[kind] = ranks.size, int(side.sizes[ordered[ranks]].sum())
        parts = Parts(side, ordered[ranks[:MOST_SHOWN]], pair.box)
        for rank in ranks[:MOST_SHOWN].tolist():
            lesion = int(ordered[rank])
            box = parts.box([lesion])
            place = place_of(box, parts.mask([lesion], box))
            dsc = case.lesion(lesion).dsc if kind == "found" else None
            voxels = int(side.sizes[lesion])
            shown.append(NumberedLesion(kind, rank + 1, voxels, place, dsc))
    return OrganLesions(definition=definition, sizes=sizes, shown=tuple(shown))


def lesion_table(organ: str, lesions: OrganLesions, voxel_ml: float) -> Table:
    """A row for each lesion that is shown: its volume, its DSC if found, its slices."""
    shown, definition = lesions.shown, lesions.definition
    names = []
    for lesion in shown:
        name, place = f"{lesion.kind} {lesion.number}", " ".join(map(str, lesion.place))
        names.append(Cell(name, href="#picture", place=place))
    volumes = [ml_cell(lesion.voxels * voxel_ml) for lesion in shown]
    columns = [Column("lesion", names, is_text=True), Column("volume (ml)", volumes)]
    if definition.mean:
        metric = METRICS["lesion_dsc"]
        cells = [metric_cell(metric, n.dsc, exact=True, absent="-") for n in shown]
        columns.append(Column("DSC", cells))
    for plane in PLANES:
        slices = [lesion.place[plane.across] + 1 for lesion in shown]
        columns.append(Column(f"{plane.name} slice", slices))
    counts = "; ".join(_counts(lesions, voxel_ml))
    return table_of(f"Lesions of {organ} by {definition.title}: {counts}", columns)


def _counts(lesions: OrganLesions, voxel_ml: float) -> Iterator[str]:
    """How many there are of each kind, and how many of them are not shown."""
    for kind, (number, voxels) in lesions.sizes.items():
        words = f"{number} {kind} ({ml_cell(voxels * voxel_ml).text} ml"
        if number > MOST_SHOWN:
            words += f", {number - MOST_SHOWN} smaller ones are not shown"
        yield f"{words})"
