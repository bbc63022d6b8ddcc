"""Says what a repair mends, what the usual reason is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import Challenge, GridComparison
from flare.common.text import count, listing, safe
from flare.evaluation.doctor.diagnose import Finding
from flare.evaluation.doctor.repair import NO_CAUSE, NO_SHIFT, Cause, Placement
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


REASONS = {
    "misnamed": "the predictions kept the names of the CTs, whose _0000 is nnU-Net's"
    " channel, or a program added to them",
    "transposed": "SimpleITK's arrays are (z, y, x), nibabel's are (x, y, z), those of"
    " DICOM, OpenCV and rt-utils (y, x), and one was saved with the other",
    "mirrored": "an axis was reversed between reading the CT and saving the labels: RAS"
    " was taken for LPS, nibabel.as_closest_canonical turned the CT or the labels"
    " alone, or DICOM slices were sorted the other way",
    "header": "the labels were saved without the header of the CT, or with that of"
    " another image; or the spacing of a .npz is x, y, z for z, y, x, or the reverse",
    "regrid": "the labels lie where their header says, on the grid that the model works"
    " on; the evaluation resamples nothing",
    "resampled": "the model works on resampled images, and its labels were not"
    " resampled back",
    "cut": "the image was cropped or padded before the model, and the labels were not"
    " put back",
    "shifted": "slices or a margin were cut off before, and put back at another place;"
    " or indices were counted from 1; a shift beyond the tolerance lowers NSD much more"
    " than DSC",
    "outside": "the background, or a region that training leaves out, has a number of"
    " its own, such as -1",
    "scaled": "the labels were saved with the header of the CT, which turns stored"
    " numbers into HU",
    "rounded": "labels were computed with as fractions (get_fdata), and saved with a"
    " header of whole numbers, to which nibabel scales them",
    "labels": "the numbers of the organs are those of another edition, of the training"
    " set, or left and right were exchanged",
    "exchanged": "lists of files had different orders: that of os.listdir is no order"
    " at all",
}
"""The usual reason of each cause, by its name."""

NUMBERS = {
    "scaled": (
        "scl_slope and scl_inter of the header change the labels",
        "labels = image.dataobj.get_unscaled()",
    ),
    "rounded": (
        "labels are whole numbers but for what scaling does",
        "labels = numpy.rint(labels).astype('uint8')",
    ),
}
"""Causes by which numbers are no labels: what is said of them, and the remedy."""


@dataclass(frozen=True, slots=True)
class CauseText:
    """A cause as it is told."""

    name: str
    """The key of its reason."""
    text: str
    """Such as ``mirrored left to right``."""
    code: str
    """A line that mends it, with its numbers, for an array (x, y, z)."""
    detail: str = ""
    """What is so in this case only, such as the place of its crop."""

    @property
    def lines(self) -> tuple[str, str]:
        """The usual reason and the remedy."""
        return f"Usually: {REASONS[self.name]}.", f"Mend it: {self.code}"


def cause_texts(finding: Finding, challenge: Challenge) -> tuple[CauseText, ...]:
    """Each part of the cause of a case; none where nothing explains its score."""
    if finding.repair is None:
        return ()
    cause, grid = finding.cause, finding.sample.grid
    texts = [*_file_texts(finding, challenge)]
    if cause.placement is Placement.HEADER:
        text = "on another grid than the CT, as its header says"
        identity, nearest = "SimpleITK.Transform()", "SimpleITK.sitkNearestNeighbor"
        code = f"SimpleITK.Resample(mask, ct, {identity}, {nearest})"
        texts.append(CauseText("regrid", text, code))
    else:
        texts += _axes_texts(cause, grid)
        # A challenge that compares sizes alone takes any header.
        is_harmless = finding.donor or challenge.grid.compare is GridComparison.SIZE
        misplacement = "" if is_harmless else finding.misplacement
        texts += _size_or_header_texts(cause, misplacement)
    if cause.shift != NO_SHIFT and cause.placement is not Placement.CUT:
        text = f"shifted by {_shift_text(cause, grid)}"
        back = tuple(-steps for steps in cause.shift[::-1])
        code = f"labels = numpy.roll(labels, {back}, (0, 1, 2))"
        texts.append(CauseText("shifted", text, code))
    if finding.outside_labels:
        text = "labels outside of 0 to 255"
        code = "labels = numpy.where((labels < 0) | (labels > 255), 0, labels)"
        detail = f" ({listing(map(str, finding.outside_labels), last=' and ')})"
        texts.append(CauseText("outside", text, code, detail))
    if cause.labels:
        text = f"given other numbers ({_labels_text(cause, challenge)})"
        old, new = (list(numbers) for numbers in zip(*cause.labels, strict=True))
        table = f"table = numpy.arange(256, dtype='uint8'); table[{old}] = {new}"
        texts.append(CauseText("labels", text, f"{table}; labels = table[labels]"))
    return tuple(texts)


def _file_texts(finding: Finding, challenge: Challenge) -> Iterator[CauseText]:
    """The faults of a file: its name, its numbers, and whose labels it holds."""
    if finding.is_misnamed:
        text = "the file is not called as its case"
        code = f"save it as {challenge.names.prediction_of('CASE')}"
        detail = f" ({safe(finding.pair.prediction.file_name)})"
        yield CauseText("misnamed", text, code, detail)
    if finding.numbers:
        text, code = NUMBERS[finding.numbers]
        yield CauseText(finding.numbers, text, f"{code}; {COPY_HEADER}")
    if finding.donor:
        text = "the file holds the labels of another case"
        code = (
            "rename these files; and write each prediction under the name of its own CT"
        )
        detail = f" (its own are in the file of {safe(finding.donor)})"
        yield CauseText("exchanged", text, code, detail)


def _axes_texts(cause: Cause, grid: Grid) -> Iterator[CauseText]:
    """The order and the directions of axes that are not those of the CT."""
    axes = cause.axes[::-1]
    if cause.order != NO_CAUSE.order:
        order = tuple(2 - axis.number for axis in axes)
        names = ", ".join("xyz"[order.index(number)] for number in range(3))
        text = f"axes are ({names}) instead of (x, y, z)"
        code = f"labels = labels.transpose{order}; {COPY_HEADER}"
        yield CauseText("transposed", text, code)
    array_axes = tuple(number for number in range(3) if axes[number].is_reversed)
    if array_axes:
        patient_axes = sorted(_patient_axis(grid, number) for number in array_axes)
        ways = (DIRECTIONS[axis] for axis in patient_axes)
        text = f"mirrored {' and '.join(ways)}"
        code = f"labels = numpy.flip(labels, {array_axes}); {COPY_HEADER}"
        yield CauseText("mirrored", text, code)


def _size_or_header_texts(cause: Cause, misplacement: str) -> Iterator[CauseText]:
    """The size of an array that is not that of the CT, or else the header's fault."""
    if cause.placement is Placement.CUT:
        text = "cropped or padded, and not put back"
        code = (
            "whole = numpy.zeros(ct.shape, 'uint8'); whole[box] = labels, from the"
            f" corner below; labels = whole; {COPY_HEADER}"
        )
        corner = ", ".join(str(-steps) for steps in cause.shift[::-1])
        detail = f" (its corner is at x, y, z = {corner} of the CT)"
        yield CauseText("cut", text, code, detail)
    elif cause.placement is Placement.FIT:
        text = "resampled to another size, and not back"
        code = (
            "labels = scipy.ndimage.zoom(labels, numpy.divide(ct.shape, labels.shape),"
            f" order=0, mode='nearest', grid_mode=True); {COPY_HEADER}"
        )
        yield CauseText("resampled", text, code)
    elif misplacement and cause.order == NO_CAUSE.order:  # else it moves with the axes
        text = "the header is not that of the CT"
        code = f"{COPY_HEADER}; in a .npz, spacing[::-1]"
        yield CauseText("header", text, code, f" ({misplacement})")


def _patient_axis(grid: Grid, place: int) -> int:
    """The patient's axis along which an axis of the array lies; both as x, y, z."""
    return int(np.abs(np.array(grid.affine)[:, place]).argmax())


def _shift_text(cause: Cause, grid: Grid) -> str:
    parts = []
    for place, voxels in zip((2, 1, 0), cause.shift, strict=True):
        if voxels:
            vector = np.array(grid.affine)[:, place] * voxels
            axis = _patient_axis(grid, place)
            end = _ENDS[axis][int(vector[axis] > 0)]
            is_slice = DIRECTIONS[axis] == HEAD_TO_FEET
            number = count(abs(voxels), "slice" if is_slice else "voxel")
            length_mm = float(np.linalg.norm(vector))
            parts.append(f"{number} ({length_mm:.3g} mm) towards the {end}")
    return " and ".join(parts)


def _labels_text(cause: Cause, challenge: Challenge) -> str:
    """The meaning of each label, and of which edition the numbers are, if of one."""
    names = {label: f"label {label}" for label in challenge.labels}
    for organ in challenge.organs:
        if len(organ.region) == 1:
            names[organ.region[0]] = organ.name.replace("_", " ")
    meanings = dict(cause.labels)
    phrases = []
    for label, meaning in meanings.items():
        is_swapped = meanings.get(meaning) == label
        if not is_swapped:
            phrases.append(f"{label} is {names.get(meaning, 'no organ')}")
        elif label < meaning:
            phrases.append(f"{names[label]} and {names[meaning]} are swapped")
    edition = _edition(meanings, challenge)
    return listing(phrases) + (f" (as in {edition})" if edition else "")


def _edition(organ_by_label: dict[int, int], challenge: Challenge) -> str:
    """The name of the edition with these numbers; empty if there is none."""
    renamed = {label: organ for label, organ in organ_by_label.items() if organ}
    regions = {organ.name: organ.region for organ in challenge.organs}
    for key in challenge_names():
        edition = read_challenge(key)
        changed: dict[int, int] = {}
        for organ in edition.organs:
            region = regions.get(organ.name, organ.region)
            if region != organ.region:
                changed |= zip(organ.region, region, strict=False)
        if renamed and renamed.items() <= changed.items():
            return edition.name
    return ""
