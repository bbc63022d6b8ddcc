"""Says how much a ranking depends on the cases that happened to be tested."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from flare.decisions import Decisions
from flare.names import printable
from flare.ranking import Rules, Standings
from flare.teams import ResultTable

GENERATOR = "PCG64"
"""NumPy's name of what draws the samples."""

SEED = 2021
SAMPLES = 1000
CONFIDENCE = 0.95
"""Part of the samples in which a team's rank is within its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Which ranks a team gets when other cases are drawn."""

    team: str
    lowest: int
    """The best rank of the interval."""
    highest: int
    frequencies: tuple[float, ...]
    """Part of the samples with rank 1, 2, ...; ties share the better one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """The spreads of all competing teams, in the order of the ranking."""

    spreads: tuple[Spread, ...]
    samples: int
    seed: int

    @property
    def content(self) -> dict[str, Any]:
        """For ranking.json."""
        return {
            "samples": self.samples,
            "seed": self.seed,
            "generator": GENERATOR,
            "confidence": CONFIDENCE,
            "teams": [
                {
                    "team": printable(spread.team),
                    "interval": [spread.lowest, spread.highest],
                    "frequencies": list(spread.frequencies),
                }
                for spread in self.spreads
            ],
        }


def bootstrap(
    standings: Standings,
    table: ResultTable,
    rules: Rules,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Bootstrap:
    """Rank the competing teams on cases drawn with replacement, again and again.

    Parameters
    ----------
    standings : Standings
        The ranking; its ranks on single cases do not depend on the other cases.
    table, rules
        What it was made from.
    samples : int
        How often as many cases are drawn as there are.
    seed : int
        Of the generator; equal seeds give equal results.
    """
    teams = [s.team for s in standings.standings if s.rank is not None]
    sums = _case_sums(standings.case_ranks, teams, table.cases, rules)
    generator = np.random.Generator(np.random.PCG64(seed))
    count = len(table.cases)
    drawn = generator.integers(0, count, size=(samples, count))
    counts = np.stack([np.bincount(row, minlength=count) for row in drawn])
    scores = counts @ sums.T
    ranks = 1 + (scores[:, np.newaxis, :] < scores[:, :, np.newaxis]).sum(axis=2)
    return Bootstrap(
        spreads=tuple(
            _spread(team, ranks[:, index], len(teams))
            for index, team in enumerate(teams)
        ),
        samples=samples,
        seed=seed,
    )


def _case_sums(
    case_ranks: Mapping[tuple[str, str, str], Fraction],
    teams: Sequence[str],
    cases: Sequence[str],
    rules: Rules,
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Weighted sums of each team's ranks on each case, as whole numbers.

    All are multiplied by one number, so that equal sums stay equal, exactly.
    """
    sums = {
        (team, case): sum(
            (
                Fraction(rule.weight) * case_ranks[team, case, rule.metric]
                for rule in rules.metrics
            ),
            Fraction(),
        )
        for team in teams
        for case in cases
    }
    common = math.lcm(*(value.denominator for value in sums.values()))
    return np.array(
        [[int(sums[team, case] * common) for case in cases] for team in teams],
        dtype=np.int64,
    )


def _spread(team: str, ranks: np.ndarray[Any, Any], teams: int) -> Spread:
    """Interval and frequencies of a team's ranks."""
    ordered = np.sort(ranks)
    outside = math.floor(len(ordered) * (1 - CONFIDENCE) / 2)
    found = np.bincount(ranks, minlength=teams + 1)[1:] / len(ranks)
    return Spread(
        team=team,
        lowest=int(ordered[outside]),
        highest=int(ordered[-1 - outside]),
        frequencies=tuple(float(part) for part in found),
    )


def spread_table(result: Bootstrap, decisions: Decisions) -> str:
    """The spreads as text."""
    lines = [
        f"With {result.samples} draws of as many cases (seed {result.seed}), ranks in"
        f" {CONFIDENCE:.0%} of them, and how often each team is first:"
    ]
    names = [printable(decisions.name_of(spread.team)) for spread in result.spreads]
    width = max(map(len, names))
    for name, spread in zip(names, result.spreads, strict=True):
        interval = f"{spread.lowest} to {spread.highest}"
        first = f"{spread.frequencies[0]:.1%}"
        lines.append(f"  {name.ljust(width)}  {interval.ljust(8)}  {first}")
    return "\n".join(lines)
