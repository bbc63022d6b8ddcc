"""Paths around voxels: by hand, and filled again."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.reports.cases.drawing import outline


def mask_of(*rows):
    """A mask that is drawn with letters."""
    return np.array([[char == "x" for char in row] for row in rows])


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        pytest.param(["..", ".."], "", id="nothing"),
        pytest.param(["x"], "M0 0h1v1h-1z", id="a voxel"),
        pytest.param([".x", "xx"], "M1 0h1v2h-2v-1h1z", id="a step"),
        pytest.param(["xxx", "x.x", "xxx"], "M0 0h3v3h-3zM1 1h1v1h-1z", id="a hole"),
        pytest.param(["x.", ".x"], "M0 0h1v1h-1zM1 1h1v1h-1z", id="two that touch"),
    ],
)
def test_a_path_by_hand(rows, path):
    assert outline(mask_of(*rows)) == path


def filled(path, shape):
    """The voxels inside of a path, by the rule evenodd: how often it is crossed."""
    crossings = np.zeros((shape[0], shape[1] + 1), dtype=int)
    column = row = start = 0
    for kind, first, second in re.findall(r"([Mhvz])(-?\d+)?(?: (\d+))?", path):
        if kind == "M":
            column, row = int(first), int(second)
            start = row
        elif kind == "h":
            column += int(first)
        else:
            after = row + int(first) if kind == "v" else start
            crossings[min(row, after) : max(row, after), column] += 1
            row = after
    return (crossings.cumsum(axis=1) % 2 == 1)[:, :-1]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_filled_it_is_the_mask_again(seed, share):
    mask = np.random.default_rng(seed).random((7, 9)) < share

    assert np.array_equal(filled(outline(mask), mask.shape), mask)
