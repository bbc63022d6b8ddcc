"""Leaderboards of platforms: what is ranked, and the table and the file of a board.

Which result comes first is each platform's own rule, in its folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

from flare.common.files import csv_text, write_whole
from flare.common.options import argument, option
from flare.common.schema import Family, Is, Positive, Text
from flare.common.text import aligned, printable
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_object

SCORES_JSON = "scores.json"
"""The scores of a board's columns alone, as Codabench has them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardOptions:
    """What is ranked."""

    files: tuple[Path, ...] = argument(
        "RESULTS/TEAM/metrics.json; of one team, the last is the most recent.",
        metavar="METRICS_JSON...",
    )
    output: Path | None = option(
        "Write the leaderboard as a table, too.", default=None, metavar="FILE.csv"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A user's result."""

    name: str
    metrics: Mapping[str, Any]


Row = tuple[int, float | Fraction, Result]
"""A line of the leaderboard: the rank, the score that it goes by (a rank, or the mean
or median of ranks), and the result."""


class Board(Protocol):
    """The leaderboard of a phase."""

    @property
    def title(self) -> str:
        """Its title; on grand-challenge.org, that of the phase."""

    @property
    def titles(self) -> Iterable[str]:
        """Titles of the columns."""

    @property
    def ranked(self) -> Mapping[str, Any]:
        """Paths of the values that results are ranked by, the first one first."""

    def shown(self, metrics: Mapping[str, Any]) -> Sequence[str]:
        """The cells of a result, in the order of the titles."""


def read_result(file: Path) -> Result:
    """Read a metrics.json, or scores.json; its folder's name is that of the result.

    A file of another name is called like itself. A MetricsFileError is raised if the
    platform would not accept it.
    """
    is_usual = file.name in (METRICS_JSON, SCORES_JSON)
    name = file.absolute().parent.name if is_usual else file.stem
    return Result(name=name, metrics=read_object(file))


def value_at(metrics: object, path: str) -> Any:
    """The value at a path, or "" if there is none: the platform's own rule.

    It is no JSONPath: the text between full stops are keys of objects in objects.

    Examples
    --------
    >>> value_at({"aggregates": {"dsc_mean": 0.9}}, "aggregates.dsc_mean")
    0.9
    """
    for key in path.split("."):
        if not isinstance(metrics, Mapping) or key not in metrics:
            return ""
        metrics = metrics[key]
    return metrics


def first_of_each(
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


def leaderboard_table(rows: Sequence[Row], board: Board) -> str:
    """The leaderboard as text, by the titles of its columns."""
    lines = [["rank", "name", "rank score", *map(printable, board.titles)]]
    for rank, score, result in rows:
        cells = [str(rank), printable(result.name), f"{float(score):g}"]
        lines.append([*cells, *map(printable, board.shown(result.metrics))])
    return "\n".join([f"Leaderboard: {printable(board.title)}", *aligned(lines)])


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


def write_leaderboard(rows: Sequence[Row], board: Board, file: Path) -> None:
    """Write the leaderboard as CSV: the keys of `BoardRow`, and `BOARD_COLUMNS`."""
    columns = ["name", "rank", "rank_score", *board.ranked, *board.titles]
    lines = []
    for rank, score, result in rows:
        metrics = result.metrics
        values = [*(value_at(metrics, path) for path in board.ranked)]
        lines.append([result.name, rank, float(score), *values, *board.shown(metrics)])
    write_whole(file, csv_text(columns, lines))
