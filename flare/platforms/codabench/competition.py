"""The settings of a competition, as competition.yaml has them.

They are those of codalab/codabench (competitions.unpackers.v2 and leaderboards.models).
The file is written as JSON, which is YAML as well, and so read without a further
library.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from flare.challenge.metrics import Metric
from flare.challenge.rules import Challenge
from flare.common.schema import Count, Positive, build, check
from flare.common.text import printable, safe, why
from flare.evaluation.errors import UploadError
from flare.platforms.board import (
    Order,
    check_ranked,
    key_of,
    order_of,
    organ_metrics,
    ranked_metrics,
    title_of,
    total_metrics,
)

COMPETITION_YAML = "competition.yaml"
SETTINGS_JSON = "settings.json"
"""Of the scoring program, in its zip."""

TITLE_CHARACTERS = 36
"""The most of the title and of the key of a column that the site's database takes."""


class SubmissionRule(Enum):
    """Which submissions of a participant are on the board."""

    FORCE_BEST = "Force_Best"
    FORCE_LAST = "Force_Last"
    FORCE_LATEST_MULTIPLE = "Force_Latest_Multiple"
    ADD = "Add"
    """Those that are put there by hand, as with the two below."""
    ADD_AND_DELETE = "Add_And_Delete"
    ADD_AND_DELETE_MULTIPLE = "Add_And_Delete_Multiple"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the leaderboard."""

    title: str
    key: str
    """Its key in scores.json."""
    index: Count
    sorting: Order = Order.DESCENDING
    precision: Count = 2
    """Decimals that the board shows."""
    hidden: bool = False

    def shown(self, scores: Mapping[str, Any]) -> str:
        """The cell of its score, which ends with no zeros."""
        score = scores.get(self.key)
        return "n/a" if score is None else str(round(float(score), self.precision))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The board: ordered by one column, then by the others in their order."""

    title: str = "Results"
    submission_rule: SubmissionRule = SubmissionRule.ADD
    primary_index: Count = 0
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        """Check that results can be ordered."""
        _check_filled(columns=self.columns)

    @property
    def ordering(self) -> tuple[Column, ...]:
        """The columns that results are ordered by, the first of them first."""
        primary = [c for c in self.columns if c.index == self.primary_index]
        return (*primary, *(c for c in self._shown_columns if c not in primary))

    @property
    def ranked(self) -> Mapping[str, Order]:
        """Keys of the scores that order the board."""
        return {column.key: column.sorting for column in self.ordering}

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the columns that participants see."""
        return tuple(column.title for column in self._shown_columns)

    @property
    def _shown_columns(self) -> list[Column]:
        columns = sorted(self.columns, key=lambda column: column.index)
        return [column for column in columns if not column.hidden]

    @property
    def is_automatic(self) -> bool:
        """Whether results are on the board by themselves."""
        return self.submission_rule.value.startswith("Force")

    def shown(self, scores: Mapping[str, Any]) -> tuple[str, ...]:
        """The cells of the board."""
        return tuple(column.shown(scores) for column in self._shown_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The parts of a bundle that submissions are scored with."""

    scoring_program: str
    reference_data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time in which submissions are taken."""

    execution_time_limit: Positive = 600
    """In seconds, for each of the two steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Competition:
    """The settings that an evaluation goes by; `template/` has all others."""

    docker_image: str
    enable_detailed_results: bool = False
    tasks: tuple[Task, ...]
    phases: tuple[Phase, ...]
    leaderboards: tuple[Leaderboard, ...]

    def __post_init__(self) -> None:
        """Check that there is something to evaluate by."""
        boards = self.leaderboards
        _check_filled(tasks=self.tasks, phases=self.phases, leaderboards=boards)


def _check_filled(**lists: Sized) -> None:
    for key, values in lists.items():
        check(len(values) > 0, key, [], "a list with an entry")


def leaderboard_for(challenge: Challenge, cases: int) -> Leaderboard:
    """The board of a challenge: means and values of answers, then single organs.

    It is ordered by the first of them that the challenge file ranks by. What
    participants may not know, of so many cases, is no column: the site's API sends the
    scores of hidden columns to everybody.
    """
    metrics = board_metrics(challenge, cases)
    ranked = ranked_metrics(challenge, metrics)
    if not ranked:
        check_ranked(challenge, metrics)
    columns = []
    for index, metric in enumerate(metrics):
        columns.append(_column_of(metric, index, challenge.board.decimals))
    rule = SubmissionRule.FORCE_BEST
    if challenge.gaps_text:  # a missing score is the best to the site
        rule = SubmissionRule.FORCE_LAST
    return Leaderboard(
        submission_rule=rule,
        primary_index=metrics.index(ranked[0]) if ranked else 0,
        columns=tuple(columns),
    )


def board_metrics(challenge: Challenge, cases: int) -> list[Metric]:
    """The metrics of the columns, in their order."""
    metrics = (*total_metrics(challenge), *organ_metrics(challenge))
    return [metric for metric in metrics if metric.is_told(cases)]


def _column_of(metric: Metric, index: int, decimals: int | None) -> Column:
    """The column of a metric: a decimal more than on pages, or as the challenge says.

    The site's two decimals would make ties of most results.
    """
    title, key = title_of(metric), key_of(metric)
    if len(title) > TITLE_CHARACTERS:
        title = f"{title[: TITLE_CHARACTERS - 3]}..."
    return Column(
        title=title,
        key=key if len(key) <= TITLE_CHARACTERS else f"column_{index}",
        index=index,
        sorting=order_of(metric),
        precision=metric.decimals + 1 if decimals is None else decimals,
    )


def read_competition(bundle: Path) -> Competition:
    """Read the settings of a bundle; keys that are none of `Competition` are ignored.

    A UploadError is raised if it has none, or they are not JSON any more.
    """
    try:
        with zipfile.ZipFile(bundle) as archive:
            text = archive.read(COMPETITION_YAML).decode()
            competition = build(Competition, json.loads(text), is_lenient=True)
            may_lack = _may_lack(archive, competition.tasks[0].scoring_program)
        rule = competition.leaderboards[0].submission_rule
        expected = '"Force_Last": to the site a score that is left out is the best'
        is_fair = rule is not SubmissionRule.FORCE_BEST or not may_lack
        check(is_fair, "leaderboards[1].submission_rule", rule.value, expected)
        return competition
    except (OSError, KeyError, zipfile.BadZipFile, ValueError, OverflowError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        problem = f"{COMPETITION_YAML} cannot be used ({printable(reason)})"
        remedy = "Make it anew with flare bundle codabench, and keep it JSON."
        raise UploadError(f"{safe(bundle)}: {problem}", remedy) from error


def _may_lack(bundle: zipfile.ZipFile, program: str) -> bool:
    """Whether results may lack a score, as the scoring program of this kit knows."""
    with suppress(KeyError, AttributeError, zipfile.BadZipFile):  # it is another's
        archive = zipfile.ZipFile(bundle.open(program))
        return bool(json.loads(archive.read(SETTINGS_JSON)).get("may_lack"))
    return False
