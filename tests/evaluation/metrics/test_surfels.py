"""Surfels: their areas, where they are, and which are beyond the tolerance."""

import math

import numpy as np
import pytest
from surface_distance.lookup_tables import create_table_neighbour_code_to_surface_area

from flare.evaluation.metrics.pairs import pair_of_masks
from flare.evaluation.metrics.surfels import surfel_areas
from tests.evaluation.metrics.drawn import SPACINGS, small_pairs
from tests.oracles import squares
from tests.oracles import surfels as all_surfels


@pytest.mark.parametrize("spacing", [*SPACINGS, (0.1, 3.0, 12.0)])
def test_areas_equal_those_of_the_package(spacing):
    expected = create_table_neighbour_code_to_surface_area(spacing)

    np.testing.assert_allclose(surfel_areas(spacing), expected, rtol=1e-15, atol=0)


def test_a_single_voxel_inside_has_a_triangle_of_half_voxels():
    """2 x 3 x 4 mm: a corner is cut off, 1, 1.5 and 2 mm from it along the axes."""
    areas = surfel_areas((2.0, 3.0, 4.0))

    assert areas[1] == pytest.approx(math.hypot(1 * 1.5, 1 * 2, 1.5 * 2) / 2)
    assert areas[0] == areas[255] == 0


@pytest.mark.parametrize("pair", [*small_pairs(range(60))])
def test_places_areas_and_what_is_beyond_are_those_of_the_oracle(pair):
    *masks, spacing, tolerance = pair
    found = pair_of_masks(*masks, spacing).surfels(tolerance)

    expected = [all_surfels(mask, spacing) for mask in masks]
    apart = np.sqrt(squares(*(list(own) for own in expected), spacing))
    for surface, own, nearest in zip(
        found, expected, (apart.min(axis=1), apart.min(axis=0)), strict=True
    ):
        corners = list(map(tuple, surface.corners.tolist()))
        areas = surfel_areas(spacing)[surface.codes]
        assert dict(zip(corners, areas, strict=True)) == pytest.approx(own)
        is_beyond = dict(zip(corners, surface.is_beyond.tolist(), strict=True))
        assert is_beyond == dict(zip(own, (nearest > tolerance).tolist(), strict=True))
