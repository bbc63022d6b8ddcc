"""Whatever a prediction holds, comparing it is about as much work as noise."""

import numpy as np
import pytest

from flare.evaluation.metrics import marks, sides
from flare.evaluation.metrics.arrays import ReusedMemory
from flare.evaluation.metrics.comparison import compare_labels
from tests.builders.maps import map_pair

SHAPE = (30, 160, 90)

PLACE = 32
"""Looking up a place somewhere takes about as long as so many that lie in a row."""


class Counted(np.ndarray):
    """An array that counts what is taken out of it."""

    work = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        Counted.work += np.size(found) * (PLACE if isinstance(key, np.ndarray) else 1)
        return found


def blocks(size, share):
    """Blocks of so many voxels along each axis, in a share of all places."""
    chosen = np.random.default_rng(2).random([-(-n // size) for n in SHAPE]) < share
    for axis in range(3):
        chosen = chosen.repeat(size, axis)
    return chosen[: SHAPE[0], : SHAPE[1], : SHAPE[2]]


def gyroid(period):
    """A curved shell."""
    z, y, x = (axis * 2 * np.pi / period for axis in np.ogrid[:30, :160, :90])
    height = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    return abs(height) < 0.1


def work(prediction, tolerance, monkeypatch):
    """What is looked at, to compare a small organ at 0.5 mm with a prediction."""
    organ = np.zeros(SHAPE, dtype=np.uint8)
    organ[10:20, 70:82, 40:52] = 1
    labels = np.ascontiguousarray(prediction).view(np.uint8)
    Counted.work = 0
    take = ReusedMemory.take
    monkeypatch.setattr(ReusedMemory, "take", lambda *words: take(*words).view(Counted))
    compare_labels(map_pair(organ, labels, (0.5, 0.5, 0.5)), {1: tolerance})
    return Counted.work


@pytest.mark.parametrize("tolerance", [3.0, 5.0])
@pytest.mark.parametrize(
    "prediction",
    [
        pytest.param(gyroid(20), id="curved shell"),
        pytest.param(gyroid(40), id="wider shell"),
        pytest.param(blocks(3, 0.07), id="blocks"),
        pytest.param(blocks(5, 0.2), id="larger blocks"),
        pytest.param(blocks(1, 0.015), id="specks"),
    ],
)
def test_no_prediction_is_twice_the_work_of_noise(prediction, tolerance, monkeypatch):
    noise = work(blocks(1, 1 / 14), tolerance, monkeypatch)

    assert work(prediction, tolerance, monkeypatch) < 2 * noise


class LookedUp(np.ndarray):
    """An array that counts the places that are looked up in it."""

    places = 0

    def take(self, indices, **how):
        LookedUp.places += np.size(indices)
        return super().take(indices, **how)


def test_many_far_surfels_end_the_look_up_soon(monkeypatch):
    """Two plates of 2 x 81 x 46 corners, 20 steps apart: each looks at a few."""
    monkeypatch.setattr(marks, "REMEMBERED", 9)
    monkeypatch.setattr(sides, "KEPT", 9)
    labels = np.zeros((30, 80, 45), dtype=np.uint8)
    labels[25] = 1
    moved = np.roll(labels, -20, axis=0)
    take = ReusedMemory.take
    monkeypatch.setattr(ReusedMemory, "take", lambda *of: take(*of).view(LookedUp))
    LookedUp.places = 0
    compare_labels(map_pair(moved, labels, (1, 1, 1)), {1: 1.0}, has_distances=True)
    assert LookedUp.places < 20 * (2 * 81 * 46)


def test_nearer_surfels_decide_where_the_farthest_have_too_little_area(monkeypatch):
    """By hand: the farthest 5 mm2 of 100 are 3 mm2 beyond 1 mm, and 2 mm2 at 0.9 mm.

    Those that are remembered first have too little area to decide; as many more as fit
    are forgotten, and the near ones must not be among them.
    """
    monkeypatch.setattr(sides, "KEPT", 5)
    farthest = sides.Farthest(100.0)

    farthest.add(np.arange(1.0, 7.0), np.full(6, 0.5))
    farthest.add(np.array([0.9]), np.array([10.0]))
    farthest.add(np.array([0.0]), np.array([87.0]))

    lengths, areas = farthest.all()
    assert areas[lengths >= 0.9].sum() == 13.0
    assert farthest.left_out <= 87.0
