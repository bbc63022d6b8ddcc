"""Points out what organisers should look at before they publish a ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from flare.common.text import count, listing, safe
from flare.ranking.ranks import Board

SHARE_OF_ZEROS = 0.1
"""A team with DSC 0 on more than this share of the cases is pointed out."""


def find_flags(board: Board, notes: Sequence[str]) -> tuple[str, ...]:
    """Find what is odd about results, each in a line.

    Parameters
    ----------
    board : Board
        The competing teams, best team first.
    notes : sequence of str
        What is odd about where their values come from.
    """
    return (
        *notes,
        *_teams_without_results(board),
        *_gate_without_values(board),
        *_zeros_that_rank_well(board),
        *_cases_alike(board),
        *_cases_of_zeros(board),
        *_orders_within_noise(board),
    )


def _gate_without_values(board: Board) -> Iterator[str]:
    """Metrics of efficiency of which a gate has left no value."""
    gate = board.rules.gate_dsc
    absent = np.asarray(np.isnan(board.comparable).all(axis=(0, 1)))
    names = [
        name
        for name, is_absent in zip(board.rules.names, absent, strict=True)
        if is_absent
    ]
    if gate and names:
        yield f"The gate of {gate:g} leaves no value of {listing(names)} at all"


def _teams_without_results(board: Board) -> Iterator[str]:
    """Teams whose results are all missing."""
    for team, values in zip(board.teams, board.values, strict=True):
        if np.isnan(values).all():
            yield f"{safe(team)} has no result at all: was it run as it should be?"


def _zeros_that_rank_well(board: Board) -> Iterator[str]:
    """Teams with many cases of DSC 0 that are ahead of more accurate teams."""
    dsc = board.dsc
    if dsc is None:
        return
    zeros, means = (dsc == 0).sum(axis=1), dsc.mean(axis=1)
    sums = board.case_sums.sum(axis=1)
    for index, team in enumerate(board.teams):
        is_behind = (sums > sums[index]) & (means > means[index])
        behind = [board.teams[n] for n in np.flatnonzero(is_behind)]
        if zeros[index] > SHARE_OF_ZEROS * len(board.cases) and behind:
            has = "has" if len(behind) == 1 else "have"
            yield (
                f"{safe(team)} has DSC 0, or none, on {zeros[index]} of"
                f" {len(board.cases)} cases, and yet is ahead of {listing(behind)},"
                f" which {has} a higher DSC: consider a gate (--gate)"
            )


def _cases_alike(board: Board) -> Iterator[str]:
    """Cases on which all teams have the same value, which decide nothing."""
    if len(board.teams) < 2:
        return
    for index, name in enumerate(board.rules.names):
        column = board.values[:, :, index]
        alike = (column == column[0]).all(axis=0)
        cases = [board.cases[n] for n in np.flatnonzero(alike)]
        if cases:
            yield (
                f"All teams have the same {name} on {len(cases)} of"
                f" {len(board.cases)} cases: {listing(cases)}"
            )


def _cases_of_zeros(board: Board) -> Iterator[str]:
    """Cases on which no team has found anything."""
    dsc = board.dsc
    if dsc is None:
        return
    cases = [board.cases[n] for n in np.flatnonzero((dsc == 0).all(axis=0))]
    if cases:
        yield (
            f"No team has a DSC above 0 on {listing(cases)}: are the reference and the"
            " image right?"
        )


def _orders_within_noise(board: Board) -> Iterator[str]:
    """Neighbours that could change places if they were measured again."""
    spreads = board.spreads
    if spreads is None or np.isnan(spreads).all():
        return
    ranks, totals = board.doubled_ranks, board.case_sums.sum(axis=1)
    for (first, better), (second, worse) in pairwise(enumerate(board.teams)):
        gap = np.abs(board.values[first] - board.values[second])
        # Where a value is missing, the comparison is false.
        close = gap <= np.fmax(spreads[first], spreads[second])
        ahead = ranks[first] < ranks[second]
        gained = np.where(close & ahead, ranks[second] - ranks[first], 0)
        possible = 2 * int(gained.sum(axis=0) @ board.rules.weights)
        if possible and possible >= totals[second] - totals[first]:
            won = count(int((close & ahead).sum()), "comparison")
            yield (
                f"The order of {safe(better)} and {safe(worse)} is within the noise of"
                f" the measurement: on {won} that {safe(better)} wins, their values"
                " differ no more than those of one team do when it is measured again"
            )
