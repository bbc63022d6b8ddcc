"""Distances of surfaces: by hand, by brute force, and by surface-distance."""

import math

import numpy as np
import pytest
import surface_distance

from flare.evaluation.metrics import distances
from flare.evaluation.metrics.distances import ring_of
from flare.evaluation.metrics.dsc_nsd import compare_labels
from tests.evaluation.metrics.test_dsc_nsd import SPACINGS, box, random_pair
from tests.oracles import squares, surfels

CLOSE = 1e-9
KINDS = ("noise", "voxels", "sheets", "boxes", "full")


def found(reference, prediction, spacing):
    """HD95 and ASSD, with a smallest DSC that counts no surfel for the NSD."""
    maps = (
        np.ascontiguousarray(each).view(np.uint8) for each in (reference, prediction)
    )
    agreement = compare_labels(
        *maps, spacing, {1: 1.0}, smallest_dsc=1.0, has_distances=True
    )[1]
    sides = agreement.distances
    area = math.fsum(side.area for side in sides)
    return (
        max(side.within(0.95) for side in sides),
        math.fsum(side.sum for side in sides) / area,
    )


def of_package(reference, prediction, spacing):
    """Both by the package, whose arrays are along x, y, z in the official scripts."""
    known = surface_distance.compute_surface_distances(
        reference.T, prediction.T, spacing[::-1]
    )
    means = surface_distance.compute_average_surface_distance(known)
    areas = known["surfel_areas_gt"].sum(), known["surfel_areas_pred"].sum()
    return (
        surface_distance.compute_robust_hausdorff(known, 95),
        np.dot(means, areas) / sum(areas),
    )


def by_brute_force(reference, prediction, spacing):
    """Both by the distance of every surfel to every other."""
    first, second = surfels(reference, spacing), surfels(prediction, spacing)
    apart = np.sqrt(squares(list(first), list(second), spacing))
    worst, moment, total = [], 0.0, 0.0
    for own, nearest in ((first, apart.min(axis=1)), (second, apart.min(axis=0))):
        areas = np.array(list(own.values()))
        order = np.argsort(nearest)
        reached = np.cumsum(areas[order]) / areas.sum()
        worst.append(nearest[order][np.argmax(reached >= 0.95 - 1e-12)])
        moment += nearest @ areas
        total += areas.sum()
    return max(worst), moment / total


def pairs(number, seed=0):
    """Pairs of masks that both have something, of all kinds, and their spacing."""
    for n in range(number):
        random = np.random.default_rng((seed, n))
        shape = tuple(random.integers(1, 14, size=3))
        pair = random_pair(KINDS[n % len(KINDS)], (seed, n), shape)
        if pair[0].any() and pair[1].any():
            yield *pair, SPACINGS[n % len(SPACINGS)]


def test_a_cube_that_lost_its_last_slice():
    """Of 5 corner slices of 2.5 mm, the last is a step away; nothing else is."""
    reference = box((2, 6), (2, 6), (2, 6))
    prediction = box((2, 5), (2, 6), (2, 6))
    hd95, assd = found(reference, prediction, (2.5, 1.0, 1.0))
    assert hd95 == 2.5
    assert 0 < assd < 2.5


def test_single_voxels_five_steps_apart():
    """Eight corners each, of equal areas; the near ones are 4 mm from a far one's."""
    reference, prediction = box((0, 1), (0, 1), (0, 1)), box((0, 1), (0, 1), (5, 6))
    assert found(reference, prediction, (1.0, 1.0, 1.0)) == (5.0, 4.5)


@pytest.mark.slow
def test_500_pairs_as_the_package_has_them():
    seen = 0
    for pair in pairs(560):
        assert found(*pair) == pytest.approx(of_package(*pair), abs=CLOSE), pair
        seen += 1
    assert seen >= 500


def test_pairs_by_brute_force():
    for pair in pairs(40, seed=1):
        assert found(*pair) == pytest.approx(by_brute_force(*pair), abs=CLOSE), pair


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"NEAR": 6}, id="tree"),
        pytest.param({"NEAR": 6, "FEW": 0}, id="planes"),
        pytest.param({"NEAR": 6, "TREE": 0, "DENSE": 0}, id="planes of a few"),
        pytest.param({"NEAR": 6, "FEW": 0, "PLANE_BYTES": 1}, id="row by row"),
        pytest.param({"NEAR": 6, "FEW": 0, "KEPT": 50}, id="the farthest are kept"),
        pytest.param({"LOOK_UPS": 0, "KEPT": 9}, id="nothing is looked up"),
    ],
)
def test_far_surfels_are_found_alike_however_many(monkeypatch, limits):
    for name, value in limits.items():
        monkeypatch.setattr(distances, name, value)
    ring_of.cache_clear()
    for pair in pairs(60, seed=2):
        assert found(*pair) == pytest.approx(of_package(*pair), abs=CLOSE), pair
    ring_of.cache_clear()


def test_distances_are_measured_where_both_have_the_label_alone():
    empty = np.zeros((4, 4, 4), dtype=np.uint8)
    for maps in ((empty, empty), (empty, empty + 1), (empty + 1, empty)):
        agreement = compare_labels(*maps, (1, 1, 1), {1: 1.0}, has_distances=True)[1]
        assert agreement.distances is None


@pytest.mark.parametrize("spacing", [(1e-30,) * 3, (1e30,) * 3])
def test_however_small_or_large_voxels_are(spacing):
    masks = box((0, 1), (0, 1), (0, 1)), box((0, 1), (0, 1), (5, 6))
    assert found(*masks, spacing)[0] == pytest.approx(5 * spacing[0])
