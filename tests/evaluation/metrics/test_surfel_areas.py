"""The areas of surfels are those of the surface-distance package."""

import math
import subprocess
import sys

import numpy as np
import pytest
from surface_distance.lookup_tables import create_table_neighbour_code_to_surface_area

from flare.evaluation.metrics.surfels import surfel_areas


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


def test_no_part_of_scipy_is_imported_for_them():
    """That would take longer than to score ten cases."""
    code = (
        "import sys; from flare.evaluation.metrics.surfels import surfel_areas;"
        "surfel_areas((1.0, 1, 1));"
        "print([name for name in sys.modules if name.startswith('scipy.ndimage')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert run.stdout == "[]\n"
