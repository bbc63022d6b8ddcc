"""What the platform makes of a metrics.json, by the settings of a phase.

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
from pathlib import Path
from typing import Any

from flare.challenge.metrics import METRICS, Better, Metric
from flare.challenge.rules import Challenge
from flare.common.schema import build, check
from flare.common.text import listing, safe, why
from flare.evaluation.organiser_errors import PhaseSettingsError
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract

TITLE_CHARACTERS = 64
PATH_CHARACTERS = 255


class Order(Enum):
    """Which values of a metric come first."""

    ASCENDING = "asc"
    DESCENDING = "desc"


class ScoringMethod(Enum):
    """What the platform ranks results by."""

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


def _check_title(key: str, value: str) -> None:
    expected = f"1 to {TITLE_CHARACTERS} characters"
    check(0 < len(value) <= TITLE_CHARACTERS, key, value, expected)


def _check_path(key: str, value: str) -> None:
    expected = f"keys with full stops between them, at most {PATH_CHARACTERS}"
    is_path = len(value) <= PATH_CHARACTERS and all(value.split("."))
    # What JSONPath has, the platform takes as part of a key.
    check(is_path and not set("$[]*") & set(value), key, value, expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the leaderboard beside the score."""

    title: str
    path: str
    order: Order
    error_path: str = ""
    """Shown behind the value; never counts."""
    exclude_from_ranking: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        _check_title("title", self.title)
        _check_path("path", self.path)
        if self.error_path:
            _check_path("error_path", self.error_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The settings of a phase that an organiser types in, by the platform's names."""

    title: str
    score_title: str
    score_jsonpath: str
    score_error_jsonpath: str = ""
    score_default_sort: Order = Order.DESCENDING
    score_decimal_places: int = 4
    extra_results_columns: tuple[Column, ...] = ()
    scoring_method_choice: ScoringMethod = ScoringMethod.ABSOLUTE
    result_display_choice: ResultDisplay = ResultDisplay.ALL
    allow_submission_comments: bool = False
    display_submission_comments: bool = False
    supplementary_file_choice: Presence = Presence.OFF
    supplementary_file_label: str = ""
    supplementary_file_help_text: str = ""
    show_supplementary_file_link: bool = False
    supplementary_url_choice: Presence = Presence.OFF
    supplementary_url_label: str = ""
    supplementary_url_help_text: str = ""
    show_supplementary_url: bool = False
    submissions_limit_per_user_per_period: int = 0
    submission_limit_period: int | None = 1
    """In days; None is all time."""
    submission_page_markdown: str = ""
    auto_publish_new_results: bool = True
    display_all_metrics: bool = True
    give_algorithm_editors_job_view_permissions: bool = False
    evaluation_requires_gpu_type: str = ""
    evaluation_requires_memory_gb: int = 8
    public: bool = True

    def __post_init__(self) -> None:
        """Check the values."""
        _check_title("title", self.title)
        _check_title("score_title", self.score_title)
        _check_path("score_jsonpath", self.score_jsonpath)
        if self.score_error_jsonpath:
            _check_path("score_error_jsonpath", self.score_error_jsonpath)
        for key, most in (
            ("supplementary_file_label", 32),
            ("supplementary_url_label", 32),
            ("supplementary_file_help_text", 128),
            ("supplementary_url_help_text", 128),
        ):
            text = getattr(self, key)
            check(len(text) <= most, key, text, f"at most {most} characters")
        places = self.score_decimal_places
        check(0 <= places <= 20, "score_decimal_places", places, "0 to 20")
        limit = self.submissions_limit_per_user_per_period
        check(limit >= 0, "submissions_limit_per_user_per_period", limit, "0 or more")
        period = self.submission_limit_period
        is_period = period is None or period >= 1
        check(is_period, "submission_limit_period", period, "1 or more days, or null")
        memory = self.evaluation_requires_memory_gb
        check(4 <= memory <= 32, "evaluation_requires_memory_gb", memory, "4 to 32")

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
    def paths(self) -> tuple[str, ...]:
        """All paths, those of errors included."""
        paths = [self.score_jsonpath, self.score_error_jsonpath]
        for column in self.extra_results_columns:
            paths += [column.path, column.error_path]
        return tuple(path for path in paths if path)


def read_phase(file: Path, name: str) -> Phase:
    """Read the settings of one phase.

    Parameters
    ----------
    file : Path
        A JSON file like phase-settings.json: an object with an object for each phase.
    name : str
        The phase.

    Raises
    ------
    PhaseSettingsError
        If the file cannot be read, or breaks a rule of the platform; the message names
        the field, the value and what is allowed.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        reason = why(error)
        raise PhaseSettingsError(str(file), f"cannot be read ({reason})") from error
    return parse_phase(content, name, source=str(file))


def parse_phase(content: bytes | str, name: str, *, source: str) -> Phase:
    """The settings of one phase, from what such a file holds.

    Raises
    ------
    PhaseSettingsError
        As `read_phase`; `source` is the file in its message.
    """
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PhaseSettingsError(source, f"is not JSON ({safe(str(error))})") from error
    if not isinstance(settings, dict) or name not in settings:
        found = listing(settings) if isinstance(settings, dict) else "no object"
        raise PhaseSettingsError(source, f"has no phase {safe(name)} (found {found})")
    try:
        return build(Phase, settings[name], where=f"{name}.")
    except (ValueError, OverflowError) as error:
        raise PhaseSettingsError(source, str(error)) from error


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


COMMON: dict[str, Any] = {
    "score_title": "Mean DSC",
    "score_jsonpath": "aggregates.dsc_mean",
    "score_error_jsonpath": "aggregates.dsc_std",
    "score_default_sort": "desc",
    "score_decimal_places": 4,
    "extra_results_columns": [],
    "scoring_method_choice": "abs",
    "allow_submission_comments": False,
    "display_submission_comments": False,
    "supplementary_file_label": "Short paper",
    "supplementary_file_help_text": "Your short paper as a PDF file.",
    "show_supplementary_file_link": False,
    "supplementary_url_choice": "off",
    "supplementary_url_label": "",
    "supplementary_url_help_text": "",
    "show_supplementary_url": False,
    "display_all_metrics": False,
    "give_algorithm_editors_job_view_permissions": False,
    "evaluation_requires_gpu_type": "",
    "evaluation_requires_memory_gb": 8,
    "public": True,
}
"""Settings that all phases share."""

FILES = (
    "one zip with a .nii.gz label map for each case, named like its CT without `_0000`."
    " Labels: {labels}. Save them with the header of the CT."
)
"""What is to be submitted."""

SANITY: dict[str, Any] = {
    "title": "Sanity check",
    "score_error_jsonpath": "",  # there is none if there is a single case
    "extra_results_columns": [],
    "result_display_choice": "bst",
    "supplementary_file_choice": "off",
    "submissions_limit_per_user_per_period": 10,
    "submission_limit_period": 1,
    "submission_page_markdown": (
        "Try out, as often as you like, whether your files are as the evaluation wants"
        f" them: {FILES} These scores count for nothing."
    ),
    "auto_publish_new_results": True,
}

VALIDATION: dict[str, Any] = {
    "title": "Validation",
    "result_display_choice": "bst",
    "supplementary_file_choice": "req",
    "submissions_limit_per_user_per_period": 5,
    "submission_limit_period": None,
    "submission_page_markdown": (
        f"Submit {FILES} You have five submissions in all; those that fail do not"
        " count. Please try your files in the sanity check first, and attach your short"
        " paper."
    ),
    "auto_publish_new_results": True,
}

TEST: dict[str, Any] = {
    "title": "Test",
    "result_display_choice": "rec",
    "supplementary_file_choice": "req",
    "submissions_limit_per_user_per_period": 1,
    "submission_limit_period": None,
    "submission_page_markdown": (
        f"Submit {FILES} You have one submission, which is final; one that fails does"
        " not count. Please attach your short paper."
    ),
    "auto_publish_new_results": False,
}


def settings_for(challenge: Challenge) -> dict[str, dict[str, Any]]:
    """Settings of three phases for a challenge, as in phase-settings.json.

    ``docs/organisers/phase-settings.md`` says why each field is set as it is.
    """
    first, *others = (METRICS[name] for name in challenge.metrics)
    columns = [_metric_column("Mean", metric) for metric in others]
    for organ in challenge.organs:
        title = organ.name.replace("_", " ").capitalize()
        columns += [
            _metric_column(title, metric, organ.name) for metric in (first, *others)
        ]
    found = {}
    for name, own in (("sanity", SANITY), ("validation", VALIDATION), ("test", TEST)):
        text = own["submission_page_markdown"].replace(
            "{labels}", challenge.labels_text
        )
        found[name] = {
            **COMMON,
            "extra_results_columns": columns,
            **own,
            "submission_page_markdown": text,
        }
    # A single case has no standard deviation.
    found["sanity"]["extra_results_columns"] = [
        {**column, "error_path": ""} for column in columns
    ]
    return found


def _metric_column(title: str, metric: Metric, organ: str = "") -> dict[str, Any]:
    """The column of a metric of label maps, or of one organ."""
    name = f"{metric.name}_{organ}" if organ else metric.name
    order = "desc" if metric.better is Better.HIGHER else "asc"
    return column_of(f"{title} {metric.title_with_unit}", name, order)


def column_of(title: str, metric: str, order: str = "desc") -> dict[str, Any]:
    """A column of the leaderboard that is shown, and not ranked."""
    return {
        "title": title,
        "path": f"aggregates.{metric}_mean",
        "error_path": f"aggregates.{metric}_std",
        "order": order,
        "exclude_from_ranking": True,
    }


OF_FLARE = (
    "Submit an algorithm whose image is made for FLARE: `sh predict.sh` reads CTs in"
    " `/workspace/inputs` and writes a label map for each into `/workspace/outputs`."
)

OF_ALGORITHM = (
    "Submit an algorithm. Its image is run once for each case, by its own ENTRYPOINT"
    " and CMD: it reads the one CT in `{inputs}` (listed in `/input/inputs.json` as"
    " `{slug}`), and writes one label map into `{outputs}`, under any name, with the"
    " header of the CT. No other outputs count."
)

PAGE = (
    "{contract} Labels: {labels}. Upload the image as a .tar.gz; its Dockerfile needs a"
    " `USER`, as the platform refuses images that run as root. A model that is uploaded"
    " beside the image is in `{model}`, where nothing can be written. The image is run"
    " on the organisers' computer, without a network, and {measured} measured. A"
    " submission that fails does not count."
)

EFFICIENCY = (
    column_of("Running time (s)", "runtime_s", "asc"),
    column_of("GPU memory (MB)", "max_gpu_memory_mb", "asc"),
)
"""What ``flare serve`` measures, the second only on a GPU."""


def external_settings_for(
    challenge: Challenge, contract: Contract = FLARE, *, has_gpu: bool = True
) -> dict[str, dict[str, Any]]:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of some columns, each of the means over
    cases: that is nearer to FLARE's ranking than the score alone, and still another
    one. They are those that the challenge file ranks by; if it names none, DSC, NSD,
    running time and memory.

    Parameters
    ----------
    challenge : Challenge
        Its rules.
    contract : Contract
        How ``flare serve`` runs images, for the submission page.
    has_gpu : bool
        Whether it gives them a GPU: a result without a value that is ranked would be
        on no board.
    """
    own = settings_for(challenge)["test"]
    dsc = column_of(own["score_title"], "dsc")
    nsd, *organs = own["extra_results_columns"]
    efficiency = EFFICIENCY if has_gpu else EFFICIENCY[:1]
    columns = [dsc, nsd, *efficiency, *organs]
    asked = {f"aggregates.{rule.metric}_mean" for rule in challenge.ranking}
    ranked = [c for c in columns if c["path"] in asked] or [dsc, nsd, *efficiency]
    score = ranked[0]
    settings = {
        **own,
        "title": "External test",
        "score_title": score["title"],
        "score_jsonpath": score["path"],
        "score_error_jsonpath": score["error_path"],
        "score_default_sort": score["order"],
        "scoring_method_choice": "avg",
        "extra_results_columns": [
            {**column, "exclude_from_ranking": column not in ranked}
            for column in columns
            if column is not score
        ],
        "submission_page_markdown": page_for(challenge, contract, has_gpu=has_gpu),
        "auto_publish_new_results": TEST["auto_publish_new_results"],
    }
    return {"external": settings}


def not_ranked(challenge: Challenge, settings: dict[str, Any]) -> tuple[str, ...]:
    """Metrics of the challenge file by which such a phase cannot rank."""
    paths = {settings["score_jsonpath"]}
    paths |= {column["path"] for column in settings["extra_results_columns"]}
    metrics = [rule.metric for rule in challenge.ranking]
    return tuple(m for m in metrics if f"aggregates.{m}_mean" not in paths)


def page_for(challenge: Challenge, contract: Contract, *, has_gpu: bool) -> str:
    """The text of the submission page: what an image has to do."""
    measured = "running time and GPU memory are" if has_gpu else "running time is"
    text = OF_ALGORITHM if contract.is_algorithm else OF_FLARE
    for name, value in {
        "inputs": f"{contract.inputs}/{contract.input_path}",
        "slug": contract.input_slug,
        "outputs": contract.written_to,
    }.items():
        text = text.replace(f"{{{name}}}", value)
    return (
        PAGE.replace("{contract}", text)
        .replace("{measured}", f"its {measured}")
        .replace("{labels}", challenge.labels_text)
        .replace("{model}", MODEL_FOLDER)
    )
