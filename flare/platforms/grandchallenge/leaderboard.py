"""Ranks metrics.json files as the platform's leaderboard would.

The rules are those of grand-challenge.org (evaluation.utils.rank_results and
evaluation.tasks.calculate_ranks). The platform averages over cases first and ranks the
averages: this is not FLARE's ranking, which ranks each case first.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, TypedDict

from flare.challenge.reading import challenge_names
from flare.common.files import csv_text, write_whole
from flare.common.options import argument, option
from flare.common.schema import Family, Is, Positive, Text
from flare.common.text import aligned, listing, printable
from flare.evaluation.errors import PhaseSettingsError
from flare.platforms.grandchallenge.phase import (
    Order,
    Phase,
    ResultDisplay,
    ScoringMethod,
    problem_at,
    value_at,
)
from flare.platforms.grandchallenge.phase_settings import STANDARD, PhaseOptions
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_object


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardOptions:
    """What is ranked, and by which settings."""

    files: tuple[Path, ...] = argument(
        "RESULTS/TEAM/metrics.json; of one team, the last is the most recent.",
        metavar="METRICS_JSON...",
    )
    output: Path | None = option(
        "Write the leaderboard as a table, too.", default=None, metavar="FILE.csv"
    )
    settings: PhaseOptions

    def phase(self, results: Sequence[Result]) -> Phase:
        """The phase, by the settings of the results' challenge if none are given.

        A PhaseSettingsError is raised if the settings cannot be read, or are not known
        for the results.
        """
        if self.settings.phase_settings:
            return self.settings.read()
        names = set()
        for result in results:
            names.add(str(value_at(result.metrics, "evaluation.challenge")))
        challenges = sorted(names - {""}) or [STANDARD]
        if len(challenges) > 1 or challenges[0] not in challenge_names():
            problem = (
                f"there are none for results of the challenge {listing(challenges)}"
            )
            remedy = (
                "Give what flare phase-settings --challenge FILE prints as"
                " --phase-settings."
            )
            raise PhaseSettingsError("Settings", problem, remedy)
        return self.settings.read(challenges[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A user's result."""

    name: str
    metrics: Mapping[str, Any]


Row = tuple[int, float | Fraction, Result]
"""A line of the leaderboard: the rank, the score that it goes by (a rank, or the mean
or median of ranks), and the result."""


def read_result(file: Path) -> Result:
    """Read a metrics.json; the name of its folder is that of the result.

    A file of another name is called like itself. A MetricsFileError is raised if the
    platform would not accept it.
    """
    name = file.absolute().parent.name if file.name == METRICS_JSON else file.stem
    return Result(name=name, metrics=read_object(file))


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
        newest_first, left_out = _first_of_each(newest_first, "a later result is there")
    valid_results = []
    for result in newest_first:
        problem = _problem(result, phase)
        if problem:
            left_out.append((result.name, problem))
        else:
            valid_results.append(result)
    scored_results = _score(valid_results, phase)
    if display is ResultDisplay.BEST:
        best_first = [result for _, result in scored_results]
        best, worse = _first_of_each(best_first, "a better result is there")
        left_out += worse
        scored_results = _score(best, phase)
    scores = [score for score, _ in scored_results]
    rows: list[Row] = []
    for score, result in scored_results:
        rows.append((scores.index(score) + 1, score, result))
    return rows, left_out


def _problem(result: Result, phase: Phase) -> str:
    """Why a result is not ranked; empty if it is."""
    for path in phase.ranked:
        problem = problem_at(result.metrics, path)
        if problem:
            return problem
    return ""


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


def _first_of_each(
    results: Sequence[Result], why: str
) -> tuple[list[Result], list[tuple[str, str]]]:
    """The first result of each name; the names of the later ones, with the reason."""
    first_results: dict[str, Result] = {}
    left_out = []
    for result in results:
        if result.name in first_results:
            left_out.append((result.name, why))
        else:
            first_results[result.name] = result
    return [*first_results.values()], left_out


def leaderboard_table(rows: Sequence[Row], phase: Phase) -> str:
    """The leaderboard as text, by the titles of its columns."""
    titles = (printable(title) for title, *_ in phase.columns)
    lines = [["rank", "name", "rank score", *titles]]
    for rank, score, result in rows:
        cells = [str(rank), printable(result.name), f"{float(score):g}"]
        lines.append([*cells, *map(printable, phase.shown(result.metrics))])
    title = f"Leaderboard of the phase {printable(phase.title)}:"
    return "\n".join([title, *aligned(lines)])


class BoardRow(TypedDict):
    """The platform's board, a row for each result, best first."""

    name: Text
    """Name of the result: that of its folder."""
    rank: Positive
    """Its rank."""
    rank_score: Annotated[float, Is(minimum=1)]
    """What the rank goes by: a rank, or the mean or median of ranks."""


BOARD_COLUMNS = Family(
    "",
    "PATH, TITLE",
    "First a column for each path of metrics.json that the phase ranks by, with its"
    " value; then the columns of the board, by their titles and as they are shown.",
    float | str | None,
)
"""The other columns of a board."""


def write_leaderboard(rows: Sequence[Row], phase: Phase, file: Path) -> None:
    """Write the leaderboard as CSV: name, rank, rank_score and the ranked paths.

    After them come the board's own columns, by their titles and as they are shown.
    """
    titles = (title for title, *_ in phase.columns)
    columns = ["name", "rank", "rank_score", *phase.ranked, *titles]
    lines = []
    for rank, score, result in rows:
        values = [value_at(result.metrics, path) for path in phase.ranked]
        shown_cells = phase.shown(result.metrics)
        lines.append([result.name, rank, float(score), *values, *shown_cells])
    write_whole(file, csv_text(columns, lines))
