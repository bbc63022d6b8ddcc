"""The settings of a phase, and how the platform reads a metrics.json by them.

The rules are those of grand-challenge.org's evaluation app (models.Phase,
templatetags.evaluation_extras.get_jsonpath and EXTRA_RESULT_COLUMNS_SCHEMA).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from flare.common.schema import Checked, Count, Is, Positive, build
from flare.common.text import listing, safe, why
from flare.evaluation.errors import PhaseSettingsError
from flare.platforms.board import Order
from flare.platforms.leaderboard import value_at


class ScoringMethod(Enum):
    """The number that the platform ranks results by."""

    ABSOLUTE = "abs"
    """The rank of the score."""
    MEAN = "avg"
    """The mean of the ranks of all ranked metrics."""
    MEDIAN = "med"


class ResultDisplay(Enum):
    """Which results of a user are on the leaderboard."""

    ALL = "all"
    MOST_RECENT = "rec"
    BEST = "bst"


class Presence(Enum):
    """Whether participants hand in something beside their submission."""

    OFF = "off"
    OPTIONAL = "opt"
    REQUIRED = "req"


_KEYS = r"[^.$*\[\]]+(\.[^.$*\[\]]+)*"
"""The platform takes all other signs of JSONPath as part of a key."""
_Title = Annotated[str, Is(minLength=1, maxLength=64)]
_Label = Annotated[str, Is(maxLength=32)]
_Help = Annotated[str, Is(maxLength=128)]
_FORM = "keys with full stops between them"
_Path = Annotated[str, Is(pattern=f"^{_KEYS}$", form=_FORM, maxLength=255)]
_PathOrEmpty = Annotated[str, Is(pattern=f"^({_KEYS})?$", form=_FORM, maxLength=255)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Checked):
    """A column of the leaderboard beside the score."""

    title: _Title
    """Title of the column."""
    path: _Path
    """Keys of metrics.json that lead to its value, with full stops between them."""
    error_path: _PathOrEmpty = ""
    """The same for what is shown behind the value, and never counts; empty for none."""
    order: Order
    """Whether small values come first, or large ones."""
    exclude_from_ranking: bool = False
    """Whether the column is only shown."""


_ClosedColumn = Annotated[Column, Is(optional=True, additionalProperties=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Checked):
    """The settings of a phase that an organiser types in, by the platform's names."""

    score_title: _Title
    """Title of the score."""
    score_jsonpath: _Path
    """Keys of metrics.json that lead to the score, with full stops between them."""
    score_error_jsonpath: _PathOrEmpty = ""
    """The same for what is shown behind the score, and never counts; empty for none."""
    score_default_sort: Order = Order.DESCENDING
    """Whether small scores come first, or large ones."""
    score_decimal_places: Annotated[int, Is(minimum=0, maximum=20)] = 4
    """Decimals that the board shows."""
    extra_results_columns: tuple[_ClosedColumn, ...] = ()
    """Further columns of the board."""
    scoring_method_choice: ScoringMethod = ScoringMethod.ABSOLUTE
    """What results are ranked by: the score, or the mean or the median of the ranks of
    all ranked columns."""
    allow_submission_comments: bool = False
    """Whether a submission may have a comment."""
    display_submission_comments: bool = False
    """Whether the board shows it."""
    supplementary_file_label: _Label = ""
    """What that file is called."""
    supplementary_file_help_text: _Help = ""
    """What participants read about it."""
    show_supplementary_file_link: bool = False
    """Whether the board links to it."""
    supplementary_url_choice: Presence = Presence.OFF
    """Whether an address is handed in with a submission: off, optional, or required."""
    supplementary_url_label: _Label = ""
    """What that address is called."""
    supplementary_url_help_text: _Help = ""
    """What participants read about it."""
    show_supplementary_url: bool = False
    """Whether the board links to it."""
    display_all_metrics: bool = True
    """Whether everybody may see all of metrics.json."""
    give_algorithm_editors_job_view_permissions: bool = False
    """Whether editors of an algorithm see its jobs."""
    evaluation_requires_gpu_type: str = ""
    """Kind of the GPU that the evaluation needs; empty for none."""
    evaluation_requires_memory_gb: Annotated[int, Is(minimum=4, maximum=32)] = 8
    """Memory that the evaluation needs, in GB."""
    public: bool = True
    """Whether the phase is public."""
    title: _Title
    """Title of the phase."""
    result_display_choice: ResultDisplay = ResultDisplay.ALL
    """Which results of a user are on the board: all, the most recent, or the best."""
    supplementary_file_choice: Presence = Presence.OFF
    """Whether a file is handed in with a submission: off, optional, or required."""
    submissions_limit_per_user_per_period: Count = 0
    """Submissions that a user has in each period."""
    submission_limit_period: Positive | None = 1
    """The period in days; null for all time."""
    submission_page_markdown: str = ""
    """What participants read on the page of submissions."""
    auto_publish_new_results: bool = True
    """Whether results are public at once."""

    @property
    def ranked(self) -> dict[str, Order]:
        """Paths of the ranked metrics, the score first; a path counts once."""
        columns = [c for c in self.extra_results_columns if not c.exclude_from_ranking]
        orders = {column.path: column.order for column in columns}
        return {self.score_jsonpath: self.score_default_sort} | orders

    @property
    def columns(self) -> tuple[tuple[str, str, str], ...]:
        """Title and paths of value and error of all columns, the score first."""
        return (
            (self.score_title, self.score_jsonpath, self.score_error_jsonpath),
            *((c.title, c.path, c.error_path) for c in self.extra_results_columns),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of all columns."""
        return tuple(title for title, *_ in self.columns)

    def shown(self, metrics: object) -> tuple[str, ...]:
        """The cells of the board: a value in each, and its error if it has one."""
        cells = []
        for _, path, error_path in self.columns:
            cell = self._text(value_at(metrics, path))
            if error_path:
                cell += f" ± {self._text(value_at(metrics, error_path))}"
            cells.append(cell)
        return tuple(cells)

    def _text(self, value: Any) -> str:
        if is_rankable(value):
            return rounded(value, self.score_decimal_places)
        return str(value or "-")

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths, those of errors included."""
        paths = chain.from_iterable(paths for _, *paths in self.columns)
        return tuple(filter(None, paths))


PHASES = Annotated[
    Mapping[str, Annotated[Phase, Is(optional=True, additionalProperties=False)]],
    Is(
        entry=("PHASE", "Each phase, by the name that `--phase` gives."),
        about="The settings of the platform's phases, by the platform's own names.",
    ),
]
"""The file of settings."""


def read_phase(file: Path, name: str) -> Phase:
    """Read the settings of one phase.

    The file is JSON, as phase-settings.json: an object with an object for each phase. A
    PhaseSettingsError is raised if it cannot be read, or breaks a rule of the platform;
    the message names the file, the field, the value and what is allowed.
    """
    source = str(file)
    try:
        settings = json.loads(file.read_bytes())
    except OSError as error:
        raise PhaseSettingsError(source, f"cannot be read ({why(error)})") from error
    except (ValueError, RecursionError) as error:
        raise PhaseSettingsError(source, f"is not JSON ({safe(str(error))})") from error
    if not isinstance(settings, dict) or name not in settings:
        phases = listing(settings) if isinstance(settings, dict) else "no object"
        raise PhaseSettingsError(source, f"has no phase {safe(name)} (found {phases})")
    try:
        return build(Phase, settings[name], where=f"{name}.")
    except (ValueError, OverflowError) as error:
        raise PhaseSettingsError(source, str(error)) from error


def problem_at(metrics: object, path: str) -> str:
    """Why the platform would not rank a result by a path's value; empty if it would.

    Booleans are numbers to it.
    """
    value = value_at(metrics, path)
    if is_rankable(value):
        return ""
    if value == "":
        return f"{path} is missing"
    return f"{path} is no number ({json.dumps(value):.40})"


def is_rankable(value: object) -> bool:
    """Whether the platform ranks a result with such a value: booleans are numbers."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def rounded(value: float, places: int) -> str:
    """A number as the board shows it: its shortest decimals, halves rounded up.

    Examples
    --------
    >>> rounded(0.12345, 4), f"{0.12345:.4f}"
    ('0.1235', '0.1235')
    >>> rounded(0.00015, 4), f"{0.00015:.4f}"
    ('0.0002', '0.0001')
    """
    number = Decimal(repr(float(value)))
    step = Decimal(1).scaleb(-places)
    return f"{number.quantize(step, ROUND_HALF_UP, Context(prec=400)):f}"
