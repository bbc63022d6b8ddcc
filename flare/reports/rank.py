"""Ranks teams from Python; the result comes as tables, text and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

import pandas as pd

from flare.challenge.metrics import lesions_by
from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge
from flare.challenge.scheme import Ties
from flare.ranking.rank import Analysis, rank_results
from flare.ranking.rules import MissingRule, RankingOptions
from flare.reports.paper.files import analysis_text, write_analysis
from flare.statistics import DRAWS, SEED

_Choice = TypeVar("_Choice", bound=Enum)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking:
    """The order of the teams, and what it was made from.

    Its text is what the command ``flare rank`` prints: the order, and how sure it is.
    """

    analysis: Analysis
    """All that was counted, for the reports; it may change."""

    def __repr__(self) -> str:
        """Return one short line."""
        board = self.analysis.board
        return (
            f"<Ranking: {self.analysis.challenge.key}, {len(board.teams)} teams,"
            f" {len(board.cases)} cases>"
        )

    def __str__(self) -> str:
        """Return what the command prints."""
        with lesions_by(self.analysis.challenge.lesions):
            return analysis_text(self.analysis)

    @property
    def standings(self) -> pd.DataFrame:
        """A row for each team, best first: ``rank``, ``score``, and its mean ranks.

        Teams out of competition come last, and have no rank.
        """
        return self.analysis.standings.to_frame()

    @property
    def case_ranks(self) -> pd.DataFrame:
        """A row for each team and case, and a column with its rank by each metric.

        Ranks of means are those of groups, or of all cases, in place of cases.
        """
        ranks = self.analysis.standings.case_ranks
        return pd.DataFrame(
            {
                rule.metric: ranks.xs(rule.metric, level="metric")
                for rule in self.analysis.rules.metrics
            }
        )

    @property
    def results(self) -> pd.DataFrame:
        """A row for each team, case and metric.

        Its ``value``, or the ``reason`` why it is missing, and the ``spread`` of
        repeated measurements.
        """
        return self.analysis.table.frame[["value", "reason", "spread"]].copy()

    def write(self, folder: str | Path) -> None:
        """Write all files that the command writes: ranking.csv, ranking.json, ...

        Parameters
        ----------
        folder : str or Path
            To write to; made if it is not there.

        Raises
        ------
        OutputError
            If they cannot be written.
        """
        write_analysis(self.analysis, Path(folder))


def rank(
    results: str | Path | pd.DataFrame,
    *,
    challenge: str | Path | Challenge = "flare21",
    metrics: Sequence[str] | None = None,
    ties: str | None = None,
    missing: str | None = None,
    gate: float | None = None,
    decisions: str | Path | None = None,
    bootstrap: int = DRAWS,
    seed: int = SEED,
    groups: str | Path | None = None,
) -> Ranking:
    """Rank the teams of a challenge: on each case, by each metric, then on average.

    A challenge with a ``[scheme]`` is ranked by that.

    Parameters
    ----------
    results : str or Path or DataFrame
        A folder with a folder for each team; or a table with a row for each result and
        the columns team, case, metric and value, as a CSV file or in memory.
    challenge : str or Path or Challenge
        Whose metrics are ranked, such as ``flare21``; or a file of your own.
    metrics : sequence of str, optional
        Rank by these metrics of the challenge. If not given, by all of them; but by
        those of running time and memory only where some team was measured.
    ties : str, optional
        The rank of teams with equal values: ``min``, ``average`` or ``max`` of those
        that they take together. If not given, the challenge's, else ``min``.
    missing : str, optional
        The rank of a team without a result: ``last``, the number of teams;
        ``worst-plus-one``, the one behind the highest rank that is given on the case;
        ``value``, that of a failed run, where the challenge has one; or ``refuse``. If
        not given, ``value`` where the challenge has one, else ``last``.
    gate : float, optional
        Let metrics of efficiency count only on cases with at least this DSC, instead
        of the challenge's.
    decisions : str or Path, optional
        A TOML file with withdrawn cases, disqualified teams, baselines and names.
    bootstrap : int
        Draw cases anew so often to tell how sure a rank is; 0: not at all.
    seed : int
        Of the random generator of these draws.
    groups : str or Path, optional
        A CSV file with the group of each case, where the challenge ranks in groups.

    Returns
    -------
    Ranking
        Its ``standings`` and ``case_ranks`` are DataFrames; ``write`` writes all files.

    Raises
    ------
    ValueError
        If an argument is not one of those above; says what is allowed.
    RankingError
        If results contradict themselves; the message names rows or files.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     [("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8)],
    ...     columns=["team", "case", "metric", "value"],
    ... )
    >>> rank(table, metrics=["dsc"], bootstrap=0).standings["rank"].to_dict()
    {'a': 1, 'b': 2}
    """
    for name, count in (("bootstrap", bootstrap), ("seed", seed)):
        if type(count) is not int or count < 0:
            raise ValueError(
                f"{name} must be a whole number (int) from 0 on: {count!r}"
            )
    if gate is not None and not 0 <= gate <= 1:
        raise ValueError(f"gate must be None or a number from 0 to 1: {gate!r}")
    if isinstance(metrics, str):
        raise ValueError(f"metrics must be None or a list of names: {metrics!r}")
    challenge = as_challenge(challenge)
    source = results if isinstance(results, pd.DataFrame) else Path(results)
    options = RankingOptions(
        metrics=None if metrics is None else tuple(metrics),
        ties=_choice("ties", ties, Ties),
        missing=_choice("missing", missing, MissingRule),
        gate=gate,
        bootstrap=bootstrap,
        seed=seed,
        decisions=None if decisions is None else Path(decisions),
    )
    groups_file = None if groups is None else Path(groups)
    return Ranking(rank_results(source, challenge, options, groups_file))


def _choice(name: str, value: str | None, allowed: type[_Choice]) -> _Choice | None:
    """The choice that a word stands for, if one is given; the ValueError lists all."""
    if value is None:
        return None
    words = [choice.value for choice in allowed]
    if value not in words:
        raise ValueError(f"{name} must be {' or '.join(map(repr, words))}: {value!r}")
    return allowed(value)
