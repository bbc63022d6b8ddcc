"""Surfels: their areas, where they are, and which are beyond the tolerance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surface_distance.lookup_tables import create_table_neighbour_code_to_surface_area

from flare.evaluation.metrics.pairs import pair_of_masks
from flare.evaluation.metrics.surfels import locate_surfels, surfel_areas
from tests.oracles import brute_force_nsd, squares
from tests.oracles import surfels as all_surfels


@pytest.mark.parametrize(
    "spacing",
    [(1.0, 1.0, 1.0), (2.5, 0.8, 0.8), (5.0, 0.7, 0.9), (0.1, 3.0, 12.0)],
)
def test_areas_equal_those_of_the_package(spacing):
    expected = create_table_neighbour_code_to_surface_area(spacing)

    np.testing.assert_allclose(surfel_areas(spacing), expected, rtol=1e-15, atol=0)


def test_a_single_voxel_inside_has_a_triangle_of_half_voxels():
    """2 x 3 x 4 mm: a corner is cut off, 1, 1.5 and 2 mm from it along the axes."""
    areas = surfel_areas((2.0, 3.0, 4.0))

    assert areas[1] == pytest.approx(math.hypot(1 * 1.5, 1 * 2, 1.5 * 2) / 2)
    assert areas[0] == areas[255] == 0


SPACINGS = ((1.0, 1.0, 1.0), (2.5, 0.8, 0.8), (5.0, 0.7, 0.9), (0.6, 1.0, 0.8))


def located(reference, prediction, spacing, tolerance):
    """The surfaces of two masks."""
    return locate_surfels(pair_of_masks(reference, prediction, spacing), tolerance)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    spacing=st.sampled_from(SPACINGS),
    tolerance=st.sampled_from([0.5, 1.0, 2.0, 3.0]),
    share=st.sampled_from([0.02, 0.3, 0.6]),
)
def test_places_areas_and_what_is_beyond_are_those_of_the_oracle(
    seed, spacing, tolerance, share
):
    random = np.random.default_rng(seed)
    masks = [random.random((4, 6, 5)) < share for _ in range(2)]
    for mask in masks:
        mask[tuple(random.integers(0, mask.shape))] = True

    found = located(*masks, spacing, tolerance)

    expected = [all_surfels(mask, spacing) for mask in masks]
    apart = np.sqrt(squares(*(list(own) for own in expected), spacing))
    for surface, own, nearest in zip(
        found, expected, (apart.min(axis=1), apart.min(axis=0)), strict=True
    ):
        corners = list(map(tuple, surface.corners.tolist()))
        assert dict(zip(corners, surface.areas, strict=True)) == pytest.approx(own)
        is_beyond = dict(zip(corners, surface.is_beyond.tolist(), strict=True))
        assert is_beyond == dict(zip(own, (nearest > tolerance).tolist(), strict=True))
    within = 1 - sum(s.area_beyond for s in found) / sum(s.area for s in found)
    assert within == pytest.approx(brute_force_nsd(*masks, spacing, tolerance))
