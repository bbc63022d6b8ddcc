"""Says which organs do not look like themselves in their CTs.

Nothing here is an error: a label map can be odd and right. But organs in another order,
or an array that was mirrored, pass every other check, and score next to nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from flare.challenge.rules import Challenge
from flare.common.errors import FileError, InputError
from flare.common.text import listing
from flare.evaluation.ct_images import read_ct
from flare.evaluation.labelmaps.reading import LabelMap

AIR_HU = -300
"""What is below is air or lung: fat is above -150 HU, lung below -500."""

AIR_SHARE = 0.2
"""Of an organ's voxels; a rim of a voxel or two at the lung is less."""

CT_RANGE = (-500, 300)
"""An image in HU has voxels below the first, air, and above the second, bone."""

HOLLOW = ("stomach", "duodenum", "esophagus", "lesion")
"""May hold gas, or lie in the lung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plausible:
    """What an organ may look like in most CTs, with contrast medium or without."""

    hu: tuple[float, float]
    """Its mean."""
    ml: tuple[float, float]
    """Its volume, in a field of view that may cut it."""


# What was measured, without contrast medium: a healthy liver has 58 +- 9 HU, a severely
# fatty one 32 +- 14 (post-mortem CT; Int J Legal Med 2019;133:1861,
# doi:10.1007/s00414-019-02016-1). With it, 50 HU more are called enough for a liver
# (J Pers Med 2021;11:1255, doi:10.3390/jpm11121255).
# Volumes of adults, in ml: liver 1205 +- 258, 594 to 2250 (CT; World J Gastroenterol
# 2017;23:4968, doi:10.3748/wjg.v23.i27.4968); spleen 215, 107 to 315 (CT; Prassopoulos
# et al., Eur Radiol 1997;7:246); the right kidney 138 of women, 174 of men (medians,
# MRI; J Clin Med 2024;13:769, doi:10.3390/jcm13030769); pancreas 72 +- 26 (CT; Saisho
# et al., Clin Anat 2007;20:933).
_ONE_KIDNEY = Plausible(hu=(20, 250), ml=(30, 450))
PLAUSIBLE: Mapping[str, Plausible] = {
    "liver": Plausible(hu=(30, 150), ml=(600, 3500)),
    "kidney": Plausible(hu=(20, 250), ml=(100, 700)),
    "right_kidney": _ONE_KIDNEY,
    "left_kidney": _ONE_KIDNEY,
    "spleen": Plausible(hu=(30, 180), ml=(40, 1500)),
    "pancreas": Plausible(hu=(10, 150), ml=(20, 250)),
}
"""By the organ's name in the challenge.

No study gives these bounds: they are generous ones of ours, for disease, for contrast
medium, and for fields of view that cut an organ.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganValues:
    """What the CT shows where one organ was drawn."""

    hu: float
    """Mean over its voxels."""
    air: float
    """Share of its voxels that lie on air or lung."""
    ml: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseValues:
    """What the CT of one case shows."""

    case: str
    organs: Mapping[str, OrganValues]
    """Those that the label map has; none if the image is no CT in HU."""
    problem: str = ""
    """Why the voxels of the CT could not be read."""


def measure_case(
    case: str, labels: LabelMap, ct: Path, challenge: Challenge
) -> CaseValues:
    """Look at the voxels of a CT where organs were drawn, on the same grid."""
    counts, sums, airs = np.zeros(256), np.zeros(256), np.zeros(256)
    flat = labels.labels.reshape(-1)
    lowest, highest, is_whole = math.inf, -math.inf, True
    try:
        for start, values in read_ct(ct, ct.name):
            lowest = min(lowest, float(values.min()))
            highest = max(highest, float(values.max()))
            is_whole = is_whole and _is_whole(values)
            where = np.flatnonzero(flat[start : start + values.size])
            here = flat[start : start + values.size][where]
            hu = values[where].astype(np.float64)
            counts += np.bincount(here, minlength=256)
            sums += np.bincount(here, weights=hu, minlength=256)
            airs += np.bincount(here[hu < AIR_HU], minlength=256)
    except (FileError, InputError) as error:
        return CaseValues(case=case, organs={}, problem=error.finding)
    is_wide = -math.inf < lowest < CT_RANGE[0] and CT_RANGE[1] < highest < math.inf
    if not (is_whole and is_wide):
        return CaseValues(case=case, organs={})
    voxel_ml = float(np.prod(labels.grid.voxel_size)) / 1000
    return CaseValues(
        case=case,
        organs={
            organ.name: OrganValues(
                hu=float(sums[organ.label] / counts[organ.label]),
                air=float(airs[organ.label] / counts[organ.label]),
                ml=float(counts[organ.label] * voxel_ml),
            )
            for organ in challenge.organs
            if counts[organ.label]
        },
    )


def _is_whole(values: npt.NDArray[np.generic]) -> bool:
    """Whether all values are whole numbers."""
    return values.dtype.kind in "iu" or bool(np.array_equal(np.rint(values), values))


def remarks(cases: Sequence[CaseValues], challenge: Challenge) -> tuple[str, ...]:
    """What is odd about the organs of some cases, a line each.

    One patient may be unusual, half of them hardly are: means and volumes are medians
    over the cases that have the organ. On air there is no organ, in any case.
    """
    found: list[str] = []
    unread = [case.problem for case in cases if case.problem]
    if unread:
        count = f"{len(unread)} of {len(cases)} CTs"
        found.append(f"The voxels of {count} cannot be read: {unread[0]}")
    typical = _typical(cases)
    for organ in challenge.organs:
        having = [case for case in cases if organ.name in case.organs]
        if not having:
            continue
        name, label = organ.name, f"{organ.name} (label {organ.label})"
        found += _odd(label, typical[name], PLAUSIBLE.get(name))
        on_air = [case for case in having if case.organs[name].air > AIR_SHARE]
        if on_air and name not in HOLLOW:
            found.append(
                f"{label}: more than {AIR_SHARE:.0%} of it lies on air or lung (below"
                f" {AIR_HU} HU) in {len(on_air)} of {len(having)}:"
                f" {listing(case.case for case in on_air)}"
            )
    if len(typical) == 1 < len(challenge.organs):
        (name,) = typical
        found.append(f"Every label is {name}: were all organs saved as one label?")
    exchange = _exchange(typical)
    if exchange:
        labels = {organ.name: organ.label for organ in challenge.organs}
        first, *others = exchange
        rest = "".join(f", and {name} label {labels[name]}" for name in others[:1])
        found.append(
            f"If {listing(exchange, last=' and ')} were exchanged, they would fit: is"
            f" {first} really label {labels[first]}{rest}?"
        )
    return tuple(found)


def _typical(cases: Sequence[CaseValues]) -> dict[str, OrganValues]:
    """The medians of each organ over the cases that have it."""
    organs = {name: None for case in cases for name in case.organs}
    typical = {}
    for name in organs:
        values = [case.organs[name] for case in cases if name in case.organs]
        typical[name] = OrganValues(
            hu=median(value.hu for value in values),
            air=median(value.air for value in values),
            ml=median(value.ml for value in values),
        )
    return typical


def _odd(label: str, found: OrganValues, expected: Plausible | None) -> list[str]:
    """What is not as expected of an organ."""
    if expected is None:
        return []
    lines = []
    for kind, value, (low, high), unit in (
        ("mean", found.hu, expected.hu, "HU"),
        ("volume", found.ml, expected.ml, "ml"),
    ):
        if not low <= value <= high:
            lines.append(
                f"{label}: its {kind} is {value:.0f} {unit} (median over cases), which"
                f" is mostly {low:.0f} to {high:.0f} {unit}"
            )
    return lines


def _exchange(typical: Mapping[str, OrganValues]) -> tuple[str, ...]:
    """The organs that would fit in another order, and do not fit in this one.

    Of all orders, the one in which the most organs fit and the fewest change places.
    """
    names = [name for name in typical if name in PLAUSIBLE]
    most: tuple[str, ...] = ()
    best = (0, 0)
    here = sum(_fits(typical[name], name) for name in names)
    for order in itertools.permutations(names):
        moved = [pair for pair in zip(names, order, strict=True) if len(set(pair)) > 1]
        if all(_fits(typical[name], other) for name, other in moved):
            fitting = sum(
                _fits(typical[name], other)
                for name, other in zip(names, order, strict=True)
            )
            rank = (fitting, -len(moved))
            if fitting > here and (not most or rank > best):
                best, most = rank, tuple(name for name, _ in moved)
    return most


def _fits(values: OrganValues, name: str) -> bool:
    """Whether these could be the values of an organ."""
    expected = PLAUSIBLE[name]
    return (
        expected.hu[0] <= values.hu <= expected.hu[1]
        and expected.ml[0] <= values.ml <= expected.ml[1]
    )
