"""Tests of two sides: by SciPy."""

import numpy as np
import pytest
from scipy.stats import binomtest, rankdata, wilcoxon

from flare.statistics.paired import mcnemar, two_sided


@pytest.mark.parametrize("seed", range(5))
def test_both_sides_are_as_scipy_tests_them(seed):
    """With ties and zeros; the effect by its definition, from ranks of differences."""
    generator = np.random.default_rng(seed)
    differences = generator.integers(-4, 6, size=(3, 20)) / 4

    p, effect = two_sided(differences)

    for number, own in enumerate(differences):
        expected = wilcoxon(own, correction=True, method="asymptotic").pvalue
        assert p[number] == pytest.approx(expected)
        own = own[own != 0]
        ranks = rankdata(abs(own))
        balance = ranks[own > 0].sum() - ranks[own < 0].sum()
        assert effect[number] == pytest.approx(balance / ranks.sum())


@pytest.mark.parametrize("gained", range(6))
@pytest.mark.parametrize("lost", range(6))
def test_mcnemars_test_is_that_of_a_binomial_distribution(gained, lost):
    expected = 1.0
    if gained + lost:
        expected = binomtest(gained, gained + lost, 0.5).pvalue

    assert mcnemar(gained, lost) == pytest.approx(expected, abs=1e-12)
