"""Whether the intervals that pages print hold what they say."""

import numpy as np
import pytest

from flare.statistics.bootstrap import mean_interval
from tests.builders import ROOT

DRAWS = 500

NOISE = 0.03
"""So far from what is documented a simulation may be by chance."""


def scores(*, misses, shape):
    """A generator of scores, of which some are 0; and its mean."""

    def draw(generator, count):
        found = generator.beta(*shape, count)
        found[generator.random(count) < misses] = 0
        return found

    return draw, (1 - misses) * shape[0] / sum(shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("misses", "shape", "row"),
    [
        pytest.param(0.0, (40, 2), "never missed, as of liver", id="liver"),
        pytest.param(0.0, (8, 2), "never missed, as of pancreas", id="pancreas"),
        pytest.param(0.03, (16, 3), "missed in 3 of 100", id="rare misses"),
        pytest.param(0.1, (16, 3), "missed in a tenth", id="misses"),
        pytest.param(0.4, (3, 2), "lesions, missed in four tenths", id="lesion"),
    ],
)
def test_the_interval_of_the_mean_holds_as_often_as_documented(misses, shape, row):
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    cells = text.partition(f"| {row} |")[2].partition("\n")[0].split("|")[:4]
    draw, mean = scores(misses=misses, shape=shape)
    for count, cell in zip((10, 20, 50, 100), cells, strict=True):
        generator = np.random.Generator(np.random.PCG64(18))
        held = 0
        for _ in range(DRAWS):
            low, high = mean_interval(draw(generator, count)) or (0, 0)
            held += low <= mean <= high

        documented = int(cell.removesuffix("% ")) / 100
        assert held / DRAWS == pytest.approx(documented, abs=NOISE)


def test_for_two_values_its_ends_are_those_of_a_binomial_distribution():
    """Of 40 cases, 30 are 1: a mean of a draw is a share of hits."""
    # Not at the top, where every process of the tests would load it.
    from scipy.stats import binom

    low, high = mean_interval([1.0] * 30 + [0.0] * 10)

    assert low == pytest.approx(binom.ppf(0.025, 40, 0.75) / 40, abs=0.025)
    assert high == pytest.approx(binom.ppf(0.975, 40, 0.75) / 40, abs=0.025)


def test_it_is_narrow_where_a_method_is_steady_and_the_same_each_time():
    values = [0.973 + 0.009 * n / 11 for n in range(12)]

    low, high = mean_interval(values)

    assert 0.975 < low < np.mean(values) < high < 0.98
    assert mean_interval(values) == (low, high)


def test_few_values_and_equal_ones_have_none():
    assert mean_interval([0.9, 0.8] * 4) is None
    assert mean_interval([0.9, 0.8] * 5) is not None
    assert mean_interval([0.9] * 50) is None
