"""How two evaluations differ: by hand, and by SciPy."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from flare.challenge.metrics import METRICS, SCORES
from flare.reports.comparison import compare_scores
from flare.reports.scores import CaseScores

SCORED = [METRICS[name] for name in SCORES]


def scores_of(values):
    """Scores of one organ: DSC, and an NSD of half of it."""
    halves = [None if value is None else value / 2 for value in values]
    return CaseScores(
        cases=tuple(f"c{number}" for number in range(len(values))),
        organs=("liver",),
        values={
            "dsc": tuple(values),
            "dsc_liver": tuple(values),
            "nsd": tuple(halves),
            "nsd_liver": tuple(halves),
        },
        challenge="",
        failed={},
    )


def compare(before, after):
    """How the DSC of the liver differs."""
    (pairs,) = compare_scores(scores_of(before), [scores_of(after)], SCORED)
    return pairs["dsc"][0]


def test_five_cases_by_hand():
    """Differences: 0.1, 0.2, 0, -0.3 and 0.04.

    Of the four that are not 0, the ranks of the gains are 2, 3 and 1, that of the loss
    is 4: the effect is (6 - 4) / 10. The sum 6 has the mean 5 and the variance
    4 * 5 * 9 / 24 = 7.5: z = (6 - 5 - 0.5) / sqrt(7.5) = 0.18257, p = 0.8551. The mean
    is 0.04 / 5.
    """
    found = compare((0.5, 0.6, 0.7, 0.8, 0.9), (0.6, 0.8, 0.7, 0.5, 0.94))

    assert found.differences == (0.1, 0.2, 0.0, -0.3, 0.04)
    assert found.counts == (3, 1, 1)
    assert (found.before, found.after) == pytest.approx((0.7, 0.708))
    assert found.mean == pytest.approx(0.008)
    assert found.effect == pytest.approx(0.2)
    assert found.p == pytest.approx(0.8551, abs=1e-4)
    assert (found.p_holm, found.is_significant) == (1.0, False)


def test_equal_steps_are_ties_though_binary_fractions_are_not():
    """0.9 - 0.8 and 0.8 - 0.7 differ by 1e-16; one rank for both makes the effect 0."""
    found = compare((0.8, 0.8), (0.9, 0.7))

    assert found.differences == (0.1, -0.1)
    assert found.effect == 0


@pytest.mark.parametrize("seed", range(4))
def test_p_values_are_scipys_and_holm_adjusts_for_all_of_them(seed):
    """By the definition of Holm's method: the smallest p times the number of tests."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 40, size=30) / 80
    others = [first + generator.integers(-3, 8, size=30) / 80 for _ in range(3)]

    later = [scores_of(o.clip(0, 1).tolist()) for o in others]
    found = compare_scores(scores_of(first.tolist()), later, SCORED)

    flat = [own for pairs in found for score in ("dsc", "nsd") for own in pairs[score]]
    expected = [
        wilcoxon(own.differences, correction=True, method="asymptotic").pvalue
        for own in flat
    ]
    assert [own.p for own in flat] == pytest.approx(expected)
    smallest = 0.0
    for place, number in enumerate(np.argsort(expected, kind="stable")):
        smallest = max(smallest, min(1, (6 - place) * expected[number]))
        assert flat[number].p_holm == pytest.approx(smallest)
