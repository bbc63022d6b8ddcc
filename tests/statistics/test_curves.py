"""Points between two axes: by hand."""

import numpy as np
import pytest

from flare.statistics.curves import pareto_front, roc_points


def test_a_roc_curve_has_a_corner_at_each_threshold():
    """At 0.9: 1 of 3 positive cases; at 0.6: 2 of 3, and 1 of 3 negative ones."""
    is_positive = np.array([True, True, True, False, False, False])
    scores = np.array([0.9, 0.6, 0.2, 0.6, 0.1, 0.3])
    third = pytest.approx(1 / 3)

    assert roc_points(is_positive, scores) == [
        (0, 0),
        (0, third),
        (third, pytest.approx(2 / 3)),
        (pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (pytest.approx(2 / 3), 1),
        (1, 1),
    ]


@pytest.mark.parametrize(
    ("gains", "costs", "front"),
    [
        ([0.9, 0.8, 0.9, 0.7], [5, 2, 6, 2], [1, 0]),
        ([0.5, 0.5], [1, 1], [0, 1]),
        ([0.4, 0.6, 0.5], [1, 1, 1], [1]),
        ([], [], []),
    ],
)
def test_the_front_is_what_no_other_point_beats(gains, costs, front):
    assert pareto_front(gains, costs) == front
