"""What is found of a case: by hand, and by the oracles."""

from dataclasses import replace

import numpy as np
import pytest

import flare
from flare.evaluation.labelmaps.grid import make_grid
from flare.reports.cases.findings import orientation_of
from flare.reports.cases.words import notes, ordered_faults
from tests.builders import AFFINE, SPACING
from tests.builders.case_pages import (
    SLOT,
    found_of,
    reoriented,
    slot_and_stray,
    two_boxes,
)
from tests.oracles import squares, surfels


def test_the_worst_slice_is_not_that_of_a_speck_far_away(tmp_path):
    """By hand; a voxel has 2 mm3.

    Slice 4: 18 voxels are missed, each 1 mm below or above, and half a voxel beside, a
    corner of the prediction: sqrt(1 + 0.25 + 0.25) = 1.22 mm, so 44.1 mm4. Slice 12: 2
    voxels are added, 13.5 mm and 13.7 mm away, of which 10 count: 40 mm4, not 54.3.
    From the front, those 18 are 3 in each of 6 slices, and the 2 are in one: 10. From
    the side, they are in slices 10 and 11: the first of both.
    """
    assert found_of(tmp_path, slot_and_stray(), **SLOT).worst == (4, 10, 10)


def with_components():
    reference = np.zeros((10, 16, 40), dtype=np.uint8)
    reference[2:8, 2:9, 2:9] = 1
    prediction = reference.copy()
    for size, row in ((3, 3), (1, 6), (2, 9), (1, 12), (5, 15)):
        prediction[2, row, 30 : 30 + size] = 1
    return reference, prediction


def boxes(*labels):
    """Maps with the same box of 48 voxels, each of a label."""
    shape = np.zeros((6, 8, 8), dtype=np.uint8)
    shape[1:4, 2:6, 2:6] = 1
    return [shape * label for label in labels]


def apart():
    maps = np.zeros((2, 6, 8, 9), dtype=np.uint8)
    maps[0, 1:4, 1:5, 1:5] = maps[1, 4:6, 6:8, 6:9] = 1
    return maps


def shaved(rows):
    """A liver of 48 voxels, of which so many rows of three are missed: 3 / 48 each."""
    maps = np.zeros((2, 6, 8, 9), dtype=np.uint8)
    maps[:, 1:4, 1:5, 1:5] = 1
    maps[1, 1:4, 1, 1 : 1 + rows] = 0
    return maps


def partly():
    """A liver of 48 voxels, predicted as 15 of liver and 20 of spleen: DSC 0.588."""
    maps = np.stack(boxes(1, 1))
    inside = np.flatnonzero(maps[1])
    maps[1].flat[inside[15:]], maps[1].flat[inside[35:]] = 3, 0
    return maps


OTHER_NUMBERS = "The prediction as a whole: given other numbers"
WITHOUT = "(DSC 1.000 without that)"
MIRRORED = f"The prediction as a whole: mirrored left to right {WITHOUT}"
SWAPPED = f"{OTHER_NUMBERS} (liver and spleen are swapped) {WITHOUT}"
RENAMED = f"{OTHER_NUMBERS} (3 is liver, 4 is spleen) {WITHOUT}"
MANY = (
    "5 voxels of liver, 22 mm from any of the reference, and 4 more pieces of 7 voxels"
)
LOST = "2 voxels of liver that was not found, 12 mm from any of the prediction"
MADE_UP = "liver: 48 voxels predicted, of an organ that the reference has not"
NOT_THERE = "not in the reference"
WORDS = {
    "added": (slot_and_stray(), ["2 voxels of liver, 12 mm from any of the refer"],
        ["far away"]),
    "lost": (slot_and_stray()[::-1], [LOST], ["far away"]),
    "many": (with_components(), [MANY], ["far away"]),
    "missed": (boxes(1, 0), ["liver: all 48 voxels missed"], ["missed"]),
    "made up": (boxes(0, 1), [MADE_UP], [NOT_THERE]),
    "equal": (boxes(1, 1), ["No voxel is wrong"], ["nothing wrong"]),
    "elsewhere": (apart(), ["liver: no voxel in common with the reference"],
        ["elsewhere"]),
    "swapped": (two_boxes((1, 3), (3, 1)), [SWAPPED], ["other numbers"]),
    "renamed": (two_boxes((1, 3), (3, 4)),
        [RENAMED, "liver: all 48 voxels", "pancreas: 27"],
        ["other numbers", "missed", NOT_THERE]),
    "partly": (partly(), ["spleen: 20 voxels predicted, of", "liver: DSC 0.476, 68"],
        [NOT_THERE, "partly wrong"]),
    "mirrored": (two_boxes((1, 3), (1, 3), mirrored=True), [MIRRORED], ["mirrored"]),
    "one of two": (two_boxes((1, 3), (1, 0)), ["spleen: all 27 voxels missed"],
        ["missed"]),
    "little": (shaved(1), ["liver: DSC 0.968, 6.2% missed, 0.0% added"],
        ["partly wrong"]),
    "much": (shaved(3), ["liver: DSC 0.897, 18.8% missed, 0.0% added"],
        ["partly wrong"]),
}  # fmt: skip


@pytest.mark.parametrize("what", WORDS)
def test_what_is_wrong_is_told_in_words_the_worst_first(tmp_path, what):
    """Each with the kind that the index has; voxels have 1 mm, but for the slot."""
    header = SLOT if what in ("added", "lost") else {"spacing": (1, 1, 1)}
    maps, words, kinds = WORDS[what]

    faults = ordered_faults(found_of(tmp_path, maps, **header))

    for fault, start in zip(faults, words, strict=True):
        assert fault.line.startswith(start)
    assert [kind for fault in faults for kind in fault.kinds] == kinds


def test_each_fault_leads_to_its_own_slices(tmp_path):
    """The stray lies in slice 12, not where the errors of its organ weigh the most.

    Of the many pieces, the largest is that of row 15. What is missed of a box lies
    more than 10 mm from nothing at all, so all of its slices weigh the same.
    """
    slot = found_of(tmp_path, slot_and_stray(), **SLOT)
    (stray,) = ordered_faults(slot)
    (many,) = ordered_faults(found_of(tmp_path, with_components(), spacing=(1, 1, 1)))
    (missed,) = ordered_faults(found_of(tmp_path, boxes(1, 0), spacing=(1, 1, 1)))

    assert stray.place == (12, 10, 10)
    assert slot.organs[0].worst == slot.worst == (4, 10, 10)
    assert many.place == (2, 15, 30)
    assert missed.place == (1, 2, 2)


@pytest.mark.parametrize("labels", [(1, 0), (0, 1), (0, 0)])
def test_an_organ_that_one_map_lacks(tmp_path, labels):
    found = found_of(tmp_path, boxes(*labels))

    liver = found.organs[0].surfaces
    if any(labels):
        assert (liver.nsd, liver.farthest) == (0.0, np.inf)
    else:
        assert (liver, found.is_blank) == (None, True)


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_what_is_coloured_is_what_nsd_counts(tmp_path, shift):
    """Surfels beyond, areas, distances and NSD are those of brute force."""
    reference, prediction = (np.zeros((6, 8, 9), dtype=np.uint8) for _ in range(2))
    reference[1:4, 1:5, 1:5] = 1
    prediction[1:4, 1:5, 1 + shift : 5 + shift] = 1
    reference[4:6, 6:8, 2:9] = prediction[4:6, 6:8, 2:6] = 4

    found = found_of(tmp_path, (reference, prediction))

    for organ in (found.organs[0], found.organs[3]):
        masks = [np.isin(labels, organ.labels) for labels in (reference, prediction)]
        own = [surfels(mask, SPACING) for mask in masks]
        apart = np.sqrt(squares(*(list(corners) for corners in own), SPACING))
        nearest = apart.min(axis=1), apart.min(axis=0)
        surfaces = organ.surfaces
        for side, corners, expected in zip(
            (surfaces.reference, surfaces.prediction), own, nearest, strict=True
        ):
            surface, far = side.surfels, side.distances
            is_beyond = expected > organ.tolerance_mm
            beyond = [c for c, b in zip(corners, is_beyond, strict=True) if b]
            found_beyond = surface.corners[surface.is_beyond]
            assert sorted(map(tuple, found_beyond.tolist())) == sorted(beyond)
            assert sorted(far) == pytest.approx(sorted(expected[is_beyond]))
        found_nsd = flare.normalized_surface_dice(*masks, SPACING, organ.tolerance_mm)
        assert surfaces.nsd == pytest.approx(found_nsd)
        farthest = max(near.max(initial=0) for near in nearest)
        if farthest > organ.tolerance_mm:
            assert surfaces.farthest == pytest.approx(farthest)
        else:
            assert surfaces.farthest is None


@pytest.mark.parametrize(("axes", "first", "end"), [("LPS", 2, 6), ("LPI", 3, 7)])
def test_organs_of_a_z_range_are_looked_at_where_they_are_scored(
    tmp_path, axes, first, end
):
    """The aorta is in slices 2 to 6, of which FLARE22 drops the file's last one."""
    reference = np.zeros((10, 12, 12), dtype=np.uint8)
    reference[2:7, 3:8, 3:8] = 5
    prediction = reference.copy()
    prediction[8] = reference[3]
    prediction[3, 3:8, 3:5] = 0
    maps, header = reoriented((reference, prediction), axes)

    found = found_of(tmp_path, maps, challenge="flare22", **header)

    (organ,) = [organ for organ in found.organs if organ.name == "aorta"]
    assert organ.scored == (first, end)
    masks = [(labels == 5)[first:end] for labels in (reference, prediction)]
    nsd = flare.normalized_surface_dice(*masks, SLOT["spacing"], organ.tolerance_mm)
    assert organ.surfaces.nsd == pytest.approx(nsd)
    assert organ.surfaces.reference.surfels.corners[:, 0].min() == first
    assert notes(found) == [
        f"aorta: scored in slices {first + 1} to {end} alone, by the rules"
    ]


def test_where_nothing_is_wrong_the_fullest_slice_is_shown(tmp_path):
    """Of a pyramid, that is the slice of its base."""
    labels = np.zeros((6, 10, 10), dtype=np.uint8)
    for height, reach in ((1, 2), (2, 4), (3, 1)):
        labels[height, 5 - reach : 5 + reach, 5 - reach : 5 + reach] = 1

    assert found_of(tmp_path, (labels, labels)).worst[0] == 2


def test_an_nsd_that_a_rule_has_replaced_is_told(tmp_path):
    """FLARE22 gives NSD 0 below DSC 0.2: of 6 columns each, one is shared, 1 / 6.

    Tolerance is 2 mm, so what lies a voxel of 0.8 mm aside counts as within.
    """
    reference, prediction = (np.zeros((4, 6, 16), dtype=np.uint8) for _ in range(2))
    reference[1:3, 1:5, 1:7] = prediction[1:3, 1:5, 6:12] = 9

    found = found_of(tmp_path, (reference, prediction), challenge="flare22")

    masks = reference == 9, prediction == 9
    own = flare.normalized_surface_dice(*masks, SPACING, 2.0)
    assert own > 0.1
    assert notes(found) == [
        "gallbladder: its NSD is 0.000 by a rule of the challenge; the surfaces alone"
        f" give {own:.3f}"
    ]


@pytest.mark.parametrize(
    ("degrees", "shown"),
    [(15, ["15 degrees"]), (1.6, ["2 degrees"]), (0.9, [])],
)
def test_slices_that_are_tilted_by_more_than_1_degree_are_told(
    tmp_path, degrees, shown
):
    """By hand: the axes y and z are turned about x."""
    angle = np.deg2rad(degrees)
    turn = np.eye(4)
    turn[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]

    found = found_of(tmp_path, boxes(1, 1), affine=turn @ AFFINE)

    assert found.orientation.tilt == pytest.approx(degrees)
    tilts = [line.partition("tilted by up to ")[2] for line in notes(found)]
    assert [text.partition(":")[0] for text in tilts if text] == shown


def test_scores_that_a_rule_has_lowered_are_not_called_errors(tmp_path):
    """As where another label in a prediction makes a case 0."""
    found = found_of(tmp_path, boxes(1, 1))
    liver = replace(found.organs[0], scores={"dsc": 0.0, "nsd": 0.0})

    (fault,) = ordered_faults(replace(found, organs=(liver, *found.organs[1:])))

    words = fault.line
    assert words == "No voxel is wrong: a rule of the challenge has lowered the scores"


def test_an_axis_that_points_nowhere_gets_the_direction_that_is_left():
    affine = np.diag([-1.0, -1.0, 0.0, 1.0])
    grid = make_grid((4, 3, 2), np.linalg.norm(affine[:3, :3], axis=0), affine[:3])

    assert orientation_of(grid).ways.tolist() == [[0, 1], [1, 1], [2, 1]]
