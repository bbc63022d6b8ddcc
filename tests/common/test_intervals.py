"""Whether the intervals that pages print hold what they say."""

import numpy as np
import pytest

from flare.common.intervals import CONFIDENCE, difference_interval, mean_interval

DRAWS = 500

NOISE = 1.645 * (CONFIDENCE * (1 - CONFIDENCE) / DRAWS) ** 0.5
"""So far below the nominal coverage a simulation may fall by chance."""


def scores(*, misses, shape):
    """A generator of scores, of which some are 0; and its mean."""

    def draw(generator, count):
        found = generator.beta(*shape, count)
        found[generator.random(count) < misses] = 0
        return found

    return draw, (1 - misses) * shape[0] / sum(shape)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 10, 50, 100])
@pytest.mark.parametrize(
    ("misses", "shape"),
    [
        pytest.param(0.0, (40, 2), id="liver"),
        pytest.param(0.0, (8, 2), id="pancreas"),
        pytest.param(0.03, (16, 3), id="rare misses"),
        pytest.param(0.1, (16, 3), id="misses"),
        pytest.param(0.4, (3, 2), id="lesion"),
    ],
)
def test_the_interval_of_the_mean_holds(misses, shape, count, record_property):
    draw, mean = scores(misses=misses, shape=shape)
    generator = np.random.Generator(np.random.PCG64(18))

    found = [mean_interval(draw(generator, count)) for _ in range(DRAWS)]

    coverage = sum(low <= mean <= high for low, high in found) / DRAWS
    record_property("coverage", coverage)
    assert coverage >= CONFIDENCE - NOISE


@pytest.mark.parametrize(("hits", "count"), [(20, 20), (9, 10), (0, 12), (25, 50)])
def test_for_hits_and_misses_it_is_that_of_clopper_and_pearson(hits, count):
    """Whose ends are quantiles of the beta distribution; known from another side."""
    # Not at the top, where every process of the tests would load it.
    from scipy.stats import beta

    low, high = mean_interval([1.0] * hits + [0.0] * (count - hits))

    tail = (1 - CONFIDENCE) / 2
    assert low == pytest.approx(
        beta.ppf(tail, hits, count - hits + 1) if hits else 0, abs=0.01
    )
    assert high == pytest.approx(
        beta.ppf(1 - tail, hits + 1, count - hits) if hits < count else 1, abs=0.01
    )


def test_a_mean_lies_within_its_interval():
    for values in ([0.9] * 3, [0.0] * 5, [1.0] * 4, [0.2, 0.9, 1.0]):
        low, high = mean_interval(values)
        assert 0 <= low <= np.mean(values) <= high <= 1


def test_of_two_cases_there_is_none():
    assert mean_interval([0.9, 0.8]) is None


@pytest.mark.parametrize(("gains", "losses"), [(6, 4), (12, 0), (30, 20)])
def test_for_whole_gains_and_losses_it_is_that_of_clopper_and_pearson(gains, losses):
    """Each is 1 or -1, so that the mean is twice the share of gains, less 1."""
    from scipy.stats import beta

    low, high = difference_interval([1.0] * gains + [-1.0] * losses)

    tail = (1 - CONFIDENCE) / 2
    assert (low + 1) / 2 == pytest.approx(beta.ppf(tail, gains, losses + 1), abs=0.01)
    share = beta.ppf(1 - tail, gains + 1, losses) if losses else 1
    assert (high + 1) / 2 == pytest.approx(share, abs=0.01)
