"""Distances of surfaces: by hand, by brute force, and by surface-distance."""

import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import scipy.spatial
import surface_distance

from flare.evaluation.metrics import distances, far_surfels, packed, ring, sides
from flare.evaluation.metrics.comparison import compare_labels
from flare.evaluation.metrics.hd95_and_assd import assd, hd95
from tests.builders.maps import map_pair
from tests.evaluation.metrics.test_dsc_nsd import SPACINGS, box, random_pair
from tests.oracles import squares, surfels

CLOSE = 1e-9
MODULES = {
    **dict.fromkeys(("BEARABLE", "CROWD", "DENSE", "PLANE_BYTES"), far_surfels),
    **dict.fromkeys(("FEW", "TREE"), distances),
    "KEPT": sides,
    "LOOK_UPS": packed,
    "NEAR": ring,
}
"""The module of each limit."""

KINDS = ("noise", "voxels", "sheets", "boxes", "full")


def found(reference, prediction, spacing):
    """HD95 and ASSD."""
    return tuple(each(reference, prediction, spacing) for each in (hd95, assd))


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


@pytest.fixture
def set_limits(monkeypatch):
    """Give limits other values; what was made with them is forgotten."""
    caches = ring.ring_of, packed._search_rows

    def change(limits):
        for name, value in limits.items():
            monkeypatch.setattr(MODULES[name], name, value)
        for cache in caches:
            cache.cache_clear()

    yield change
    for cache in caches:
        cache.cache_clear()


def pairs(number, seed=0):
    """Pairs of masks that both have something, of all kinds, and their spacing."""
    for n in range(number):
        random = np.random.default_rng((seed, n))
        shape = tuple(random.integers(1, 14, size=3))
        pair = random_pair(KINDS[n % len(KINDS)], (seed, n), shape)
        if pair[0].any() and pair[1].any():
            yield *pair, SPACINGS[n % len(SPACINGS)]


def test_single_voxels_five_steps_apart():
    """Eight corners each, of equal areas; the near ones are 4 mm from a far one's."""
    reference, prediction = box((0, 1), (0, 1), (0, 1)), box((0, 1), (0, 1), (5, 6))
    assert found(reference, prediction, (1.0, 1.0, 1.0)) == (5.0, 4.5)


@pytest.mark.parametrize(
    ("limits", "lengths"),
    [
        pytest.param({}, [1] * 8 + [2] * 8, id="few"),
        pytest.param({"KEPT": 16}, [1] * 8 + [2] * 8, id="as many as are kept"),
        pytest.param({"KEPT": 15}, [1] * 6 + [2] * 6, id="one more than are kept"),
    ],
)
def test_each_surfel_has_an_entry_of_its_own_unless_there_are_too_many(
    set_limits, limits, lengths
):
    """Rows of 3 voxels, two steps apart: a side of 8 surfels is 1 mm away, the other 2.

    Of these 8, two pairs within the row are alike.
    """
    set_limits(limits)
    pair = box((0, 3), (0, 1), (0, 1)), box((0, 3), (0, 1), (2, 3))
    labels = (mask.astype(np.uint8) for mask in pair)

    agreement = compare_labels(
        map_pair(*labels, (1, 1, 1)), {1: 1.0}, has_distances=True
    )[1]

    assert [side.distances.tolist() for side in agreement.distances] == [lengths] * 2


def test_distances_equal_brute_force_on_drawn_pairs():
    for pair in pairs(40, seed=1):
        assert found(*pair) == pytest.approx(by_brute_force(*pair), abs=CLOSE), pair


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"NEAR": 6}, id="tree"),
        pytest.param({"NEAR": 6, "FEW": 0}, id="planes"),
        pytest.param({"NEAR": 6, "CROWD": 0, "BEARABLE": 0}, id="planes of a crowd"),
        pytest.param({"NEAR": 6, "TREE": 0, "DENSE": 0}, id="planes of a few"),
        pytest.param({"NEAR": 6, "FEW": 0, "PLANE_BYTES": 1}, id="row by row"),
        pytest.param({"NEAR": 6, "FEW": 0, "KEPT": 50}, id="the farthest are kept"),
        pytest.param({"LOOK_UPS": 0, "FEW": 0, "KEPT": 9}, id="nothing is looked up"),
    ],
)
def test_far_surfels_are_found_alike_however_many(set_limits, limits):
    set_limits(limits)
    for pair in pairs(30, seed=2):
        assert found(*pair) == pytest.approx(of_package(*pair), abs=CLOSE), pair


@pytest.mark.slow
def test_an_organ_within_a_sphere_needs_no_tree(monkeypatch):
    """All of the sphere is about as far: each surfel would look at all of the tree."""
    asked = []
    tree = scipy.spatial.cKDTree

    class Counted(tree):
        def query(self, points, *more):
            asked.append(len(points))
            return super().query(points, *more)

    monkeypatch.setattr(scipy.spatial, "cKDTree", Counted)
    radius = np.sqrt(sum(axis**2 for axis in np.ogrid[-75:75, -75:75, -75:75]))
    hd95(radius < 12, (radius > 73) & (radius < 75), (1.0, 1.0, 1.0))
    assert sum(asked) <= 16  # of 2,900


def test_the_distance_to_an_empty_mask_is_the_diagonal_of_the_grid():
    """The diagonal of 8 x 8 x 8 voxels of 1.5, 2 and 6 mm: 8 times 6.5 mm."""
    full, none = box((0, 8), (0, 8), (0, 8)), box((0, 0), (0, 0), (0, 0))
    for metric in (hd95, assd):
        assert metric(none, none, (1.5, 2.0, 6.0)) == 0.0
        assert metric(full, full, (1.5, 2.0, 6.0)) == 0.0
        assert metric(full, none, (1.5, 2.0, 6.0)) == 52.0
        assert metric(none, full, (1.5, 2.0, 6.0)) == 52.0


SHARED = Path(__file__).parents[4] / "shared" / "data" / "flare21"


@pytest.mark.shared
@pytest.mark.parametrize("name", ["totalsegmentator_ct", "kits19_00061", "phantom_002"])
def test_real_label_maps_as_the_package_has_them(name):
    files = (SHARED / kind / f"{name}.nii.gz" for kind in ("reference", "predictions"))
    reference, prediction = (nib.load(file) for file in files)
    spacing = tuple(float(mm) for mm in reference.header.get_zooms()[::-1])
    maps = [np.asarray(image.dataobj).T for image in (reference, prediction)]
    for organ in range(1, 5):
        masks = [labels == organ for labels in maps]
        if masks[0].any() and masks[1].any():
            expected = of_package(*masks, spacing)
            assert found(*masks, spacing) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.slow
def test_memory_of_a_hostile_map_is_bounded(set_limits):
    """Each fourth column is noise, far from the organ: at most 16 bytes for a voxel.

    NumPy holds the places of all surfels of the box: three times as much.
    """
    set_limits({"PLANE_BYTES": 2**18, "KEPT": 2**14})
    organ, noise = np.zeros((2, 40, 96, 96), dtype=np.uint8)
    organ[:2, :2, :2] = 1
    noise[:, ::2, ::2] = np.random.default_rng(3).integers(0, 2, (40, 48, 48))
    tracemalloc.start()
    agreement = compare_labels(
        map_pair(organ, noise, (1, 1, 1)), {1: 1.0}, has_distances=True
    )[1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert agreement.distances[1].distances.size < 60_000  # of 380,000 surfels
    limit = 56 if packed.kernel_problem() else 16
    assert peak < limit * organ.size  # SciPy's transform of the whole map takes 80


def test_nearer_surfels_decide_where_the_farthest_have_too_little_area(set_limits):
    """By hand: the farthest 5 mm2 of 100 are 3 mm2 beyond 1 mm, and 2 mm2 at 0.9 mm.

    Those that are remembered first have too little area to decide; as many more as fit
    are forgotten, and the near ones must not be among them.
    """
    set_limits({"KEPT": 5})
    farthest = sides.Farthest(100.0)

    farthest.add(np.arange(1.0, 7.0), np.full(6, 0.5))
    farthest.add(np.array([0.9]), np.array([10.0]))
    farthest.add(np.array([0.0]), np.array([87.0]))

    lengths, areas = farthest.all()
    assert areas[lengths >= 0.9].sum() == 13.0
    assert farthest.left_out <= 87.0


@pytest.mark.parametrize("spacing", [(1e-30,) * 3, (1e30,) * 3])
def test_however_small_or_large_voxels_are(spacing):
    masks = box((0, 1), (0, 1), (0, 1)), box((0, 1), (0, 1), (5, 6))
    assert found(*masks, spacing)[0] == pytest.approx(5 * spacing[0])
