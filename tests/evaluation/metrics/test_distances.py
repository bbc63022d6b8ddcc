"""Distances of surfaces: by hand, and by surface-distance."""

import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import scipy.spatial
import surface_distance

from flare.evaluation.masks import assd, hd95
from flare.evaluation.metrics import distances, kernel, packed, ring
from flare.evaluation.metrics.comparison import compare_organ
from tests.builders.maps import map_pair
from tests.evaluation.metrics.drawn import small_pairs
from tests.evaluation.metrics.test_dsc_nsd import box

CLOSE = 1e-9


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


@pytest.fixture
def set_limits(monkeypatch):
    """Give limits other values; what was made with them is forgotten."""
    caches = ring.ring_of, packed._steps_of_ring

    def change(limits):
        for limit in limits.split():
            name, value = limit.split("=")
            monkeypatch.setattr(f"flare.evaluation.metrics.{name}", int(value))
        for cache in caches:
            cache.cache_clear()

    yield change
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("mm", [1.0, 1e-30, 1e9])
def test_single_voxels_five_steps_apart_however_small_or_large_they_are(mm):
    """Eight corners each, of equal areas; the near ones are 4 mm from a far one's."""
    pair = box((0, 1), (0, 1), (0, 1)), box((0, 1), (0, 1), (5, 6))
    assert found(*pair, (mm, mm, mm)) == pytest.approx((5.0 * mm, 4.5 * mm), rel=1e-15)


@pytest.mark.parametrize(
    ("limits", "lengths"),
    [
        pytest.param("", [1] * 8 + [2] * 8, id="few"),
        pytest.param("distances.KEPT=16", [1] * 8 + [2] * 8, id="as many as are kept"),
        pytest.param("distances.KEPT=15", [1] * 6 + [2] * 6, id="one more than that"),
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

    pair = map_pair(*labels, (1, 1, 1))
    agreement = compare_organ(pair.cut((1,)), 1.0, has_distances=True)

    assert [side.distances.tolist() for side in agreement.distances] == [lengths] * 2


@pytest.mark.parametrize(
    "limits",
    [
        "",
        "ring.NEAR=6",
        "ring.NEAR=6 distances.FEW=0",
        "ring.NEAR=6 far_surfels.CROWD=0 far_surfels.BEARABLE=0",
        "ring.NEAR=6 distances.TREE=0",
        "ring.NEAR=6 distances.FEW=0 far_surfels.PLANE_BYTES=1",
        "ring.NEAR=6 distances.FEW=0 distances.KEPT=50",
        "packed.LOOK_UPS=0 plain.LOOK_UPS=0 distances.FEW=0 distances.KEPT=9",
    ],
)
def test_far_surfels_are_found_alike_however_many(set_limits, limits):
    set_limits(limits)
    for *pair, _ in small_pairs(range(100, 130)):
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
    pairs = (none, none), (full, full), (full, none), (none, full)
    for metric in (hd95, assd):
        values = [metric(*pair, (1.5, 2.0, 6.0)) for pair in pairs]
        assert values == [0.0, 0.0, 52.0, 52.0]


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
    set_limits("far_surfels.PLANE_BYTES=262144 distances.KEPT=16384")
    organ, noise = np.zeros((2, 40, 96, 96), dtype=np.uint8)
    organ[:2, :2, :2] = 1
    noise[:, ::2, ::2] = np.random.default_rng(3).integers(0, 2, (40, 48, 48))
    tracemalloc.start()
    pair = map_pair(organ, noise, (1, 1, 1))
    agreement = compare_organ(pair.cut((1,)), 1.0, has_distances=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert agreement.distances[1].distances.size < 60_000  # of 380,000 surfels
    limit = 56 if kernel.kernel_problem() else 16
    assert peak < limit * organ.size  # SciPy's transform of the whole map takes 80


def test_nearer_surfels_decide_where_the_farthest_have_too_little_area(set_limits):
    """By hand: the farthest 5 mm2 of 100 are 3 mm2 beyond 1 mm, and 2 mm2 at 0.9 mm.

    Those that are remembered first have too little area to decide; as many more as fit
    are forgotten, and the near ones must not be among them.
    """
    set_limits("distances.KEPT=5")
    farthest = distances.Farthest(100.0)
    farthest.add(np.arange(1.0, 7.0), np.full(6, 0.5))
    farthest.add(np.array([0.9]), np.array([10.0]))
    farthest.add(np.array([0.0]), np.array([87.0]))
    lengths, areas = farthest.all()
    assert areas[lengths >= 0.9].sum() == 13.0
    assert farthest.left_out <= 87.0
