"""Says how much a ranking depends on the cases that happened to be tested."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flare.ranking.options import SAMPLES, SEED
from flare.ranking.ranks import Board, kendall_tau, ranks_by_sums

GENERATOR = "PCG64"
"""NumPy's name of the generator that draws the samples."""

CONFIDENCE = 0.95
"""Share of the samples in which a team's rank lies within its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInterval:
    """Which ranks a team gets when other cases are drawn."""

    team: str
    lowest: int
    """The best rank of the interval."""
    highest: int
    frequencies: tuple[float, ...]
    """Share of the samples with rank 1, 2, ...; ties share the better one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """The intervals of all teams of the board, in its order."""

    intervals: tuple[RankInterval, ...]
    samples: int
    seed: int
    taus: tuple[float, float, float] | None
    """Of Kendall's tau of the samples' rankings with the ranking itself: the lower end
    of the interval, the median, and its upper end; None if it is undefined, as of
    teams that all tie."""

    @property
    def has_shared_first(self) -> bool:
        """Whether teams share first place in some samples."""
        firsts = math.fsum(interval.frequencies[0] for interval in self.intervals)
        return round(firsts * self.samples) > self.samples


def bootstrap(board: Board, *, samples: int = SAMPLES, seed: int = SEED) -> Bootstrap:
    """Rank teams on cases drawn with replacement, again and again.

    Parameters
    ----------
    board : Board
        Their ranks, which on single cases do not depend on the other cases, and are
        averaged by their mean.
    samples : int
        How often as many cases are drawn as there are.
    seed : int
        Of the generator; equal seeds give equal results.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    count = len(board.cases)
    drawn = generator.integers(0, count, size=(samples, count))
    counts = np.stack([np.bincount(row, minlength=count) for row in drawn])
    ranks = np.array([ranks_by_sums(row) for row in counts @ board.case_sums.T])
    actual = ranks_by_sums(board.case_sums.sum(axis=1))
    taus = [kendall_tau(actual, row) for row in ranks]
    defined = np.sort([tau for tau in taus if tau is not None])
    return Bootstrap(
        intervals=tuple(
            _rank_interval(team, ranks[:, index], len(board.teams))
            for index, team in enumerate(board.teams)
        ),
        samples=samples,
        seed=seed,
        taus=_interval(defined) if len(defined) else None,
    )


def _outside(count: int) -> int:
    """How many of the samples the interval leaves out at either end."""
    return math.floor(count * (1 - CONFIDENCE) / 2)


def _interval(ordered: np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Lower end, median and upper end of sorted values."""
    outside = _outside(len(ordered))
    low, high = ordered[outside], ordered[-1 - outside]
    return float(low), float(np.median(ordered)), float(high)


def _rank_interval(team: str, ranks: np.ndarray[Any, Any], teams: int) -> RankInterval:
    """Interval and frequencies of a team's ranks."""
    ordered = np.sort(ranks)
    outside = _outside(len(ordered))
    found = np.bincount(ranks, minlength=teams + 1)[1:] / len(ranks)
    return RankInterval(
        team=team,
        lowest=int(ordered[outside]),
        highest=int(ordered[-1 - outside]),
        frequencies=tuple(float(part) for part in found),
    )
