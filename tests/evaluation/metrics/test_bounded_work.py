"""Whatever a prediction holds, to compare it is bounded work, in bounded memory."""

import numpy as np
import pytest

from flare.evaluation.metrics import kernel, packed, plain
from flare.evaluation.metrics.plain import PlainMap, PlainPair
from flare.evaluation.metrics.tolerance import ball_rows
from tests.builders.maps import map_pair
from tests.evaluation.metrics.test_kernel import needs_kernel

SHAPE = (20, 60, 50)
BOX = tuple(slice(0, length) for length in SHAPE)


class Counted(np.ndarray):
    """An array that counts what is taken out of it."""

    work = 0

    def __getitem__(self, key):
        result = super().__getitem__(key)
        factor = plain.IN_A_ROW if isinstance(key, np.ndarray) else 1
        Counted.work += np.size(result) * factor
        return result


NOISE = np.random.default_rng(2).random(SHAPE)
Z, Y, X = (axis * np.pi / 10 for axis in np.ogrid[BOX])
GYROID = np.sin(X) * np.cos(Y) + np.sin(Y) * np.cos(Z) + np.sin(Z) * np.cos(X)


@pytest.mark.parametrize("tolerance", [1.0, 3.0])
@pytest.mark.parametrize(
    "prediction",
    [
        pytest.param(abs(GYROID) < 0.1, id="curved shell"),
        pytest.param(NOISE < 0.07, id="noise"),
        pytest.param(NOISE < 0.5, id="dense noise"),
        pytest.param(np.indices(SHAPE).sum(axis=0) % 2, id="checkerboard"),
    ],
)
def test_numpy_looks_at_a_corner_twice_at_most_for_a_row_of_the_ball(
    prediction, tolerance, monkeypatch
):
    """However many surfels are far from a small organ: 25 times with look-ups alone."""
    organ = np.zeros(SHAPE)
    organ[8:14, 30:36, 20:26] = 1
    ball = ball_rows((0.5, 0.5, 0.5), tolerance, SHAPE)
    widen = plain.widen
    monkeypatch.setattr(plain, "widen", lambda *of: widen(*of).view(Counted))
    Counted.work = 0

    maps = PlainMap(SHAPE), PlainMap(SHAPE)
    for label_map, labels in zip(maps, (organ, prediction), strict=True):
        label_map.add(labels.astype(np.uint8).reshape(-1))
    PlainPair(maps, (1,), (0.5, 0.5, 0.5), BOX).tally(tolerance)

    reach = np.abs(ball).max(axis=0) * (1, 1, 0)
    corners = np.prod(np.add(SHAPE, 1 + 2 * reach))
    assert 0 < Counted.work < 2 * corners * len(ball)


def test_near_surfels_are_looked_up_as_often_as_the_limit_says(monkeypatch):
    """Two plates of 2 x 61 x 51 corners share a plane; the kernel tries 64 at once."""
    plates = np.zeros((2, *SHAPE), dtype=np.uint8)
    plates[0, 3] = plates[1, 4] = 1
    for limit, near_number, far_number in ((2**30, 2 * 6222, 0), (100, 6400, 9)):
        for module in (packed, plain):
            monkeypatch.setattr(module, "LOOK_UPS", limit)
        pair = map_pair(*plates, (1.0, 1.0, 1.0)).cut((1,))
        sides = pair.near(room=9)
        assert sum(side.counts[:-1].sum() for side in sides) <= near_number
        assert sum(side.counts.sum() for side in sides) == 2 * 6222
        assert {len(side.far.codes) for side in sides} == {far_number}


def test_one_map_does_not_use_up_the_look_ups_of_the_other(monkeypatch):
    """All surfels of a small part are near a large map, whose own are far from it."""
    maps = np.zeros((2, *SHAPE), dtype=np.uint8)
    maps[:, 18, 30:32, 20:22] = maps[0, 3] = 1
    for module in (packed, plain):
        monkeypatch.setattr(module, "LOOK_UPS", 100)
    large, part = map_pair(*maps, (1.0, 1.0, 1.0)).cut((1,)).near(room=0)
    assert part.counts[0].sum() == part.counts.sum() == 18 < large.counts[-1].sum()


@needs_kernel
def test_the_kernel_needs_memory_for_some_planes_however_many_there_are():
    """About 1 MiB, or some planes for each that a ball reaches to either side."""

    def words(depth, reach):
        ends = np.array([(0, 0, 0), (depth, 512, 512)], dtype=np.int64)
        ball = np.array([(reach, 0, 0)], dtype=np.int32)
        places = kernel.address(ends), kernel.address(ball)
        return kernel.kernel().words_needed(*places, len(ball), None)

    plane = 513 * 9
    assert words(100, 3) == words(100_000, 3)
    for reach in (0, 3, 30):
        assert words(100_000, reach) < max(2**17, 7 * (6 * reach + 8) * plane)
