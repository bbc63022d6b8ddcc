"""Tests of which team is better than which other, by each metric.

The test is the one-sided Wilcoxon signed-rank test of the differences on each case, as
R's ``wilcox.test(paired = TRUE, exact = FALSE)`` computes it: cases on which both teams
have the same value are left out, ties of differences get their average rank, and the
normal approximation is used with its corrections for ties and continuity. Where nobody
has said before who should be better, the test is two-sided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from flare.ranking.ranks import comparable, failed_values
from flare.ranking.rules import Rules
from flare.ranking.table import Board, Values

ALPHA = 0.05
"""Largest p of a difference that is called significant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTest:
    """Whether a team is better than another one, by one metric."""

    metric: str
    team: str
    other: str
    cases: int
    """Those on which the two differ, and which the test uses."""
    zeros: int
    """Those on which they do not, and which it leaves out."""
    p: float
    """1 if they differ on no case."""
    p_holm: float
    """Adjusted by Holm's method for all ordered pairs of teams by this metric."""
    effect: float
    """Matched-pairs rank-biserial correlation: 1 if `team` is better on every case on
    which they differ, -1 if it is worse, 0 if neither (Kerby 2014,
    doi:10.2466/11.IT.3.1)."""


def filled(board: Board, rules: Rules, missing: float | None = None) -> Values:
    """Comparable values, each missing one replaced by a bad one.

    Parameters
    ----------
    board : Board
        The values of the teams.
    rules : Rules
        What they mean.
    missing : float, optional
        As measured. If not given, the value of a failed run where the challenge has
        one, or the worst of any team on any case, whichever is worse: a missing result
        must never be an advantage.

    Returns
    -------
    ndarray of float, shape (teams, cases, metrics)
        Smaller ones are better.
    """
    values = comparable(board.values, rules)
    if missing is None:
        worst = np.fmax.reduce(values, axis=(0, 1))
        instead = np.fmax(failed_values(rules), worst)
    else:
        given = np.full((1, 1, len(rules.metrics)), missing)
        instead = comparable(given, replace(rules, gate_dsc=0.0))[0, 0]
    return np.where(np.isnan(values), np.nan_to_num(instead), values)


def compare_pairs(
    board: Board, rules: Rules, missing: float | None = None
) -> tuple[PairTest, ...]:
    """Test all ordered pairs of teams, by each metric.

    Parameters
    ----------
    board, rules, missing
        As in `filled`.
    """
    values = filled(board, rules, missing)
    pairs = list(permutations(range(len(board.teams)), 2))
    if not pairs:
        return ()
    own, other = (np.array([pair[n] for pair in pairs]) for n in range(2))
    found = []
    for index, rule in enumerate(rules.metrics):
        column = values[:, :, index]
        differences = column[other] - column[own]
        p, effect = signed_rank(differences)
        adjusted = holm(p)
        zeros = (differences == 0).sum(axis=1)
        found += [
            PairTest(
                metric=rule.metric,
                team=board.teams[own[n]],
                other=board.teams[other[n]],
                cases=int(differences.shape[1] - zeros[n]),
                zeros=int(zeros[n]),
                p=float(p[n]),
                p_holm=float(adjusted[n]),
                effect=float(effect[n]),
            )
            for n in range(len(pairs))
        ]
    return tuple(found)


def signed_rank(differences: Values) -> tuple[Values, Values]:
    """The p-value and the effect of each row; positive differences are an advantage."""
    # Not at the top: it takes longer to load than all else, and only tests need it.
    from scipy.stats import wilcoxon

    rows = (differences != 0).any(axis=1)
    p, effect = np.ones(len(differences)), np.zeros(len(differences))
    if rows.any():
        tested = differences[rows]
        result = wilcoxon(
            tested,
            zero_method="wilcox",
            correction=True,
            alternative="greater",
            method="asymptotic",
            axis=1,
        )
        count = (tested != 0).sum(axis=1)
        p[rows] = result.pvalue
        effect[rows] = 4 * result.statistic / (count * (count + 1)) - 1
    return p, effect


def two_sided(differences: Values) -> tuple[Values, Values]:
    """The same, where either sign may be meant: p is twice the smaller of both sides.

    Examples
    --------
    >>> p, effect = two_sided(np.array([[1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    >>> p.round(4).tolist(), effect.tolist()
    ([0.1814, 1.0], [1.0, 0.0])
    """
    above, effect = signed_rank(differences)
    below, _ = signed_rank(-differences)
    return np.minimum(2 * np.minimum(above, below), 1), effect


def holm(p: Values) -> Values:
    """P-values adjusted by Holm's method."""
    order = np.argsort(p, kind="stable")
    stepped = p[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted
