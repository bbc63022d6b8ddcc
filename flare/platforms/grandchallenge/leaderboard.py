"""Ranks metrics.json files as the platform's leaderboard would.

The rules are those of grand-challenge.org (evaluation.utils.rank_results and
evaluation.tasks.calculate_ranks). The platform averages over cases first and ranks the
averages: this is not FLARE's ranking, which ranks each case first; a ``[scheme]`` of
means does so, too, but in groups, by weights, and with ties in order.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any

from flare.challenge.reading import challenge_names
from flare.common.text import listing
from flare.evaluation.errors import PhaseSettingsError
from flare.platforms.board import Order
from flare.platforms.grandchallenge.phase import (
    Phase,
    ResultDisplay,
    ScoringMethod,
    problem_at,
)
from flare.platforms.grandchallenge.phase_settings import STANDARD, PhaseOptions
from flare.platforms.leaderboard import Result, Row, first_of_each, value_at


def phase_of(results: Sequence[Result], settings: PhaseOptions) -> Phase:
    """The phase, by the settings of the results' challenge if none are given.

    A PhaseSettingsError is raised if the settings cannot be read, or are not known for
    the results.
    """
    if settings.phase_settings:
        return settings.read()
    names = set()
    for result in results:
        names.add(str(value_at(result.metrics, "evaluation.challenge")))
    challenges = sorted(names - {""}) or [STANDARD]
    if len(challenges) > 1 or challenges[0] not in challenge_names():
        problem = f"there are none for results of the challenge {listing(challenges)}"
        remedy = (
            "Give what flare phase-settings --challenge FILE prints as"
            " --phase-settings."
        )
        raise PhaseSettingsError("Settings", problem, remedy)
    return settings.read(challenges[0])


def rank_results(
    results: Sequence[Result], phase: Phase
) -> tuple[list[Row], list[tuple[str, str]]]:
    """Rank results by the settings of a phase.

    The last result of a name is the most recent. Returns rows, best first; and names
    and reasons of the results that are not on the board.
    """
    display, newest_first = phase.result_display_choice, list(reversed(results))
    left_out: list[tuple[str, str]] = []
    if display is ResultDisplay.MOST_RECENT:
        # This comes before results are looked at: an invalid one hides its user.
        newest_first, left_out = first_of_each(newest_first, "a later result is there")
    valid_results = []
    for result in newest_first:
        problems = (problem_at(result.metrics, path) for path in phase.ranked)
        if problem := next(filter(None, problems), ""):
            left_out.append((result.name, problem))
        else:
            valid_results.append(result)
    scored_results = _score(valid_results, phase)
    if display is ResultDisplay.BEST:
        best_first = [result for _, result in scored_results]
        best, worse = first_of_each(best_first, "a better result is there")
        left_out += worse
        scored_results = _score(best, phase)
    scores = [score for score, _ in scored_results]
    rows: list[Row] = []
    for score, result in scored_results:
        rows.append((scores.index(score) + 1, score, result))
    return rows, left_out


def _score(
    results: Sequence[Result], phase: Phase
) -> list[tuple[int | Fraction, Result]]:
    """Results behind the scores that they are ranked by, best first."""
    ranks_by_metric = []
    for path, order in phase.ranked.items():
        values = [value_at(result.metrics, path) for result in results]
        ranks_by_metric.append(_ranks(values, order))
    summary: dict[ScoringMethod, Callable[[Sequence[int]], int | Fraction]] = {
        ScoringMethod.ABSOLUTE: lambda ranks: ranks[0],
        ScoringMethod.MEAN: lambda ranks: Fraction(sum(ranks), len(ranks)),
        ScoringMethod.MEDIAN: lambda ranks: statistics.median(map(Fraction, ranks)),
    }
    ranks_by_result = zip(*ranks_by_metric, strict=True)
    scores = map(summary[phase.scoring_method_choice], ranks_by_result)
    return sorted(zip(scores, results, strict=True), key=itemgetter(0))


def _ranks(values: Sequence[Any], order: Order) -> list[int]:
    """Competition ranks, 1 2 2 4: one more than the number of better values."""
    ordered = sorted(values, reverse=order is Order.DESCENDING)
    return [ordered.index(value) + 1 for value in values]
