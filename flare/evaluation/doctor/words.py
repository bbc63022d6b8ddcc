"""Says what a repair mends, what the usual reason is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import Challenge
from flare.common.text import count, listing, safe
from flare.evaluation.doctor.repair import NO_CAUSE, NO_SHIFT, Axis, Placement, Repair
from flare.evaluation.labelmaps.grid import Grid

HEAD_TO_FEET = "head to feet"
DIRECTIONS = ("left to right", "front to back", HEAD_TO_FEET)
"""How the patient's axes are called: x, y, z."""

_ENDS = (("left", "right"), ("back", "front"), ("feet", "head"))
"""Where each axis begins and ends."""

COPY_HEADER = (
    "nibabel.Nifti1Image(labels, ct.affine) (in SimpleITK, whose arrays have the axes"
    " in reverse order, mask.CopyInformation(ct))"
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The usual reason of a cause, and a line of code that mends it."""

    reason: str
    code: str


REMEDIES = {
    "transposed": Remedy(
        "SimpleITK's arrays are (z, y, x), nibabel's are (x, y, z), those of DICOM,"
        " OpenCV and rt-utils (y, x), and one was saved with the other",
        "labels = labels.transpose(2, 1, 0) between the two; " + COPY_HEADER,
    ),
    "mirrored": Remedy(
        "an axis was reversed between reading the CT and saving the labels: RAS was"
        " taken for LPS, nibabel.as_closest_canonical turned the CT or the labels"
        " alone, or DICOM slices were sorted the other way",
        "labels = numpy.flip(labels, axis), or do without what turns the CT; "
        + COPY_HEADER,
    ),
    "header": Remedy(
        "the labels were saved without the header of the CT, or with that of another"
        " image; or the spacing of a .npz is x, y, z for z, y, x, or the reverse",
        COPY_HEADER + "; in a .npz, spacing[::-1]",
    ),
    "regrid": Remedy(
        "the labels lie where their header says, on the grid that the model works on;"
        " the evaluation resamples nothing",
        "SimpleITK.Resample(mask, ct, SimpleITK.Transform(),"
        " SimpleITK.sitkNearestNeighbor)",
    ),
    "resampled": Remedy(
        "the model works on resampled images, and its labels were not resampled back",
        "labels = scipy.ndimage.zoom(labels, numpy.divide(ct.shape, labels.shape),"
        " order=0, mode='nearest', grid_mode=True); " + COPY_HEADER,
    ),
    "cut": Remedy(
        "the image was cropped or padded before the model, and the labels were not put"
        " back",
        "whole = numpy.zeros(ct.shape, 'uint8'); whole[box] = labels, from the corner"
        " below; labels = whole; " + COPY_HEADER,
    ),
    "shifted": Remedy(
        "slices or a margin were cut off before, and put back at another place; or"
        " indices were counted from 1; a shift beyond the tolerance lowers NSD"
        " much more than DSC",
        "labels = numpy.roll(labels, shift, axis) by the number above",
    ),
    "labels": Remedy(
        "the numbers of the organs are those of another edition, of the training set,"
        " or left and right were exchanged",
        "labels = table[labels], where table[number as saved] is the number asked for",
    ),
    "exchanged": Remedy(
        "lists of files had different orders: that of os.listdir is no order at all",
        "rename these files; and write each prediction under the name of its own CT",
    ),
}
"""By the name of a cause."""


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause as it is told."""

    name: str
    """The key of its remedy."""
    text: str
    """Such as ``mirrored left to right``."""
    detail: str = ""
    """What is so in this case only, such as the place of its crop."""


REGRID = CauseText("regrid", "on another grid than the CT, as its header says")

SIZE_TEXTS = {
    Placement.FIT: CauseText("resampled", "resampled to another size, and not back"),
    Placement.CUT: CauseText("cut", "cropped or padded, and not put back"),
}
"""The causes that change the number of voxels."""


def cause_texts(
    repair: Repair,
    grid: Grid,
    challenge: Challenge,
    *,
    misplacement: str,
    donor: str = "",
) -> tuple[CauseText, ...]:
    """Each cause that a repair puts together; `grid` is that of the reference."""
    texts = []
    if donor:
        texts.append(
            CauseText(
                "exchanged",
                "the file holds the labels of another case",
                f" (its own are in the file of {safe(donor)})",
            )
        )
    if repair.cause.placement is Placement.HEADER:
        texts.append(REGRID)
    else:
        texts += _placement_texts(repair, grid, "" if donor else misplacement)
    is_cut = repair.cause.placement is Placement.CUT
    if repair.cause.shift != NO_SHIFT and not is_cut:
        texts.append(CauseText("shifted", f"shifted by {_shift_text(repair, grid)}"))
    if repair.cause.labels:
        labels = _labels_text(repair, challenge)
        texts.append(CauseText("labels", f"given other numbers ({labels})"))
    return tuple(texts)


def _placement_texts(
    repair: Repair, grid: Grid, misplacement: str
) -> Iterator[CauseText]:
    """How the voxels of a prediction were laid, whose header is wrong."""
    axes = repair.cause.axes
    order = repair.cause.order
    is_transposed = order != NO_CAUSE.order
    if is_transposed:
        names = ", ".join("zyx"[number] for number in reversed(order))
        yield CauseText("transposed", f"axes are ({names}) instead of (x, y, z)")
    if any(axis.is_reversed for axis in axes):
        yield CauseText("mirrored", f"mirrored {_directions_text(axes, grid)}")
    if repair.cause.placement is Placement.CUT:
        corner = ", ".join(str(-steps) for steps in repair.cause.shift[::-1])
        detail = f" (its corner is at x, y, z = {corner} of the CT)"
        yield replace(SIZE_TEXTS[Placement.CUT], detail=detail)
    elif repair.cause.placement is Placement.FIT:
        yield SIZE_TEXTS[Placement.FIT]
    elif misplacement and not is_transposed:  # which lies elsewhere by itself
        detail = f" ({misplacement})"
        yield CauseText("header", "the header is not that of the CT", detail)


def code_of(name: str, repair: Repair) -> str:
    """The line of code that mends a cause, with the numbers of a repair.

    They are those of an array (x, y, z), as nibabel loads it.
    """
    axes, shift = repair.cause.axes[::-1], repair.cause.shift[::-1]
    if name == "transposed":
        order = tuple(2 - axis.number for axis in axes)
        return f"labels = labels.transpose{order}; {COPY_HEADER}"
    if name == "mirrored":
        reversed_axes = [place for place in range(3) if axes[place].is_reversed]
        return f"labels = numpy.flip(labels, {tuple(reversed_axes)}); {COPY_HEADER}"
    if name == "shifted":
        back = tuple(-steps for steps in shift)
        return f"labels = numpy.roll(labels, {back}, (0, 1, 2))"
    if name == "labels":
        old, new = (list(numbers) for numbers in zip(*repair.cause.labels, strict=True))
        table = f"table = numpy.arange(256, dtype='uint8'); table[{old}] = {new}"
        return f"{table}; labels = table[labels]"
    return REMEDIES[name].code


def _directions_text(axes: Sequence[Axis], grid: Grid) -> str:
    """The patient's directions along which axes are reversed."""
    flipped = [row for row, axis in enumerate(axes) if axis.is_reversed]
    ways = sorted(_patient_axis(grid, row) for row in flipped)
    return " and ".join(DIRECTIONS[way] for way in ways)


def _patient_axis(grid: Grid, row: int) -> int:
    """The patient's axis, x, y or z, along which the array's axis z, y or x lies."""
    steps = np.array(grid.affine)[:, 2::-1]
    return int(np.abs(steps[:, row]).argmax())


def _shift_text(repair: Repair, grid: Grid) -> str:
    """How far, and where to."""
    steps = np.array(grid.affine)[:, 2::-1]
    parts = []
    for row, voxels in enumerate(repair.cause.shift):
        if voxels:
            vector = steps[:, row] * voxels
            axis = _patient_axis(grid, row)
            end = _ENDS[axis][int(vector[axis] > 0)]
            is_slice = DIRECTIONS[axis] == HEAD_TO_FEET
            number = count(abs(voxels), "slice" if is_slice else "voxel")
            length_mm = float(np.linalg.norm(vector))
            parts.append(f"{number} ({length_mm:.3g} mm) towards the {end}")
    return " and ".join(parts)


def _labels_text(repair: Repair, challenge: Challenge) -> str:
    """The meaning of each label, and of which edition the numbers are, if of one."""
    names = {organ.label: organ.name.replace("_", " ") for organ in challenge.organs}
    meanings = dict(repair.cause.labels)
    phrases = []
    for label, organ in meanings.items():
        is_swapped = meanings.get(organ) == label
        if not is_swapped:
            phrases.append(f"{label} is {names.get(organ, 'no organ')}")
        elif label < organ:
            phrases.append(f"{names[label]} and {names[organ]} are swapped")
    edition = _edition(meanings, challenge)
    return listing(phrases) + (f" (as in {edition})" if edition else "")


def _edition(organ_by_label: dict[int, int], challenge: Challenge) -> str:
    """The name of the edition with these numbers; empty if there is none."""
    renamed = {label: organ for label, organ in organ_by_label.items() if organ}
    labels = challenge.labels_by_name
    for key in challenge_names():
        edition = read_challenge(key)
        changed = {}
        for organ in edition.organs:
            label = labels.get(organ.name, organ.label)
            if organ.name in labels and label != organ.label:
                changed[organ.label] = label
        if renamed and renamed.items() <= changed.items():
            return edition.name
    return ""
