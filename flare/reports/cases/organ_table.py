"""Puts the numbers of a case into a table: a row for each organ."""

from __future__ import annotations

import math
from dataclasses import dataclass

from flare.reports.cases.colours import organ_class
from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.words import title
from flare.reports.pages.parts import (
    Cell,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
    score_cell,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """An organ, and the class of its colour."""

    css: str
    name: str


def organ_key(found: CaseFinding) -> list[KeyEntry]:
    """The colours of the organs that are there."""
    return [
        KeyEntry(css=organ_class(number), name=title(organ.name))
        for number, organ in enumerate(found.organs)
        if organ.surfaces
    ]


def organ_table(found: CaseFinding) -> Table:
    """What each organ of the challenge scores, and how its surfaces lie."""
    rows = (
        Row(
            cells=(
                name_cell(title(organ.name)),
                score_cell(organ.dsc, exact=True),
                score_cell(organ.nsd, exact=True),
                Cell(text=f"{organ.tolerance_mm:g}"),
                *_surface_cells(organ),
            )
        )
        for organ in found.organs
    )
    return Table(
        caption="Scores, and both surfaces together",
        heads=heads(
            *("organ", "DSC", "NSD", "tolerance, mm"),
            *("surface, mm2", "beyond tolerance, mm2", "farthest, mm"),
            words=("organ",),
        ),
        rows=tuple(rows),
    )


def _surface_cells(organ: OrganFinding) -> tuple[Cell, ...]:
    """How large both surfaces are, what of them is beyond, and how far."""
    none = Cell(text="none", css="none")
    found = organ.surfaces
    if found is None:
        return none, none, none
    farthest = found.farthest
    if farthest is None:
        distance = Cell(text="within", css="none")
    elif farthest == math.inf:
        distance = none
    else:
        distance = number_cell(farthest, decimals=1, exact=True)
    return (
        number_cell(found.area, decimals=0, exact=True),
        number_cell(found.area_beyond, decimals=0, exact=True),
        distance,
    )


def volume_table(found: CaseFinding) -> Table:
    """How large each organ is, and how much of it is missed and added."""
    rows = []
    for organ in found.organs:
        reference, prediction, shared = organ.voxels
        voxels = (reference, prediction, reference - shared, prediction - shared)
        ml = (number * found.voxel_ml for number in voxels)
        cells = (
            name_cell(title(organ.name)),
            *(Cell(text=str(number)) for number in voxels),
            *(number_cell(volume, decimals=1, exact=True) for volume in ml),
        )
        rows.append(Row(cells=cells))
    names = ("reference", "prediction", "missed", "added")
    return Table(
        caption=f"Voxels, each of {found.voxel_ml * 1000:.3g} mm3, and volumes",
        heads=heads(
            *("organ", *(f"{name}, voxels" for name in names)),
            *(f"{name}, ml" for name in names),
            words=("organ",),
        ),
        rows=tuple(rows),
    )
