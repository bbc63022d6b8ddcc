"""Settings of phases of the platform, made to fit a challenge.

Three phases are evaluated by the platform, and an external one by ``flare serve``.
``docs/organisers/phase-settings.md`` says why each field is set as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge.formats import CASE, PLAIN_NAMES
from flare.challenge.metrics import METRICS, Better
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.environment import PHASE_SETTINGS
from flare.common.options import option
from flare.common.text import listing, safe
from flare.evaluation.errors import PhaseSettingsError
from flare.measuring.options import MODEL_FOLDER
from flare.platforms.grandchallenge.phase import (
    Column,
    Order,
    Phase,
    Presence,
    ResultDisplay,
    ScoringMethod,
    read_phase,
)

STANDARD = "flare21"
"""The challenge with the settings of phase-settings.json."""


def column_of(title: str, metric: str, order: Order = Order.DESCENDING) -> Column:
    """A column of the leaderboard that is shown, and not ranked."""
    return Column(
        title=title,
        path=f"aggregates.{metric}_mean",
        error_path=f"aggregates.{metric}_std",
        order=order,
        exclude_from_ranking=True,
    )


FILES = (
    "one zip with a .nii.gz label map for each case, named {names}."
    " Labels: {labels}. Save them with the header of the CT."
)
"""The files of a submission, for its page."""

VALIDATION = Phase(
    title="Validation",
    score_title="Mean DSC",
    score_jsonpath="aggregates.dsc_mean",
    score_error_jsonpath="aggregates.dsc_std",
    result_display_choice=ResultDisplay.BEST,
    display_all_metrics=False,
    supplementary_file_choice=Presence.REQUIRED,
    supplementary_file_label="Short paper",
    supplementary_file_help_text="Your short paper as a PDF file.",
    submissions_limit_per_user_per_period=5,
    submission_limit_period=None,
    submission_page_markdown=(
        f"Submit {FILES} You have five submissions in all; those that fail do not"
        " count. Please try your files in the sanity check first, and attach your short"
        " paper."
    ),
)

PHASES = {
    "sanity": replace(
        VALIDATION,
        title="Sanity check",
        score_error_jsonpath="",
        supplementary_file_choice=Presence.OFF,
        submissions_limit_per_user_per_period=10,
        submission_limit_period=1,
        submission_page_markdown=(
            "Try out, as often as you like, whether your files are as the evaluation"
            f" wants them: {FILES} These scores count for nothing."
        ),
    ),
    "validation": VALIDATION,
    "test": replace(
        VALIDATION,
        title="Test",
        result_display_choice=ResultDisplay.MOST_RECENT,
        submissions_limit_per_user_per_period=1,
        submission_page_markdown=(
            f"Submit {FILES} You have one submission, which is final; one that fails"
            " does not count. Please attach your short paper."
        ),
        auto_publish_new_results=False,
    ),
}
"""The settings that all challenges share; their columns and labels are filled in."""


def settings_for(challenge: Challenge) -> dict[str, Phase]:
    """Settings of three phases for a challenge, as in phase-settings.json."""
    columns = _metric_columns(challenge)
    if challenge.names == PLAIN_NAMES:
        names = "like its CT without `_0000`"
    else:
        names = f"`{challenge.names.prediction_of(CASE)}`, where {CASE} is the case"
    phases = {}
    for name, phase in PHASES.items():
        phase_columns = columns
        if not phase.score_error_jsonpath:  # a single case has no standard deviation
            phase_columns = [replace(column, error_path="") for column in columns]
        phases[name] = replace(
            phase,
            extra_results_columns=tuple(phase_columns),
            submission_page_markdown=phase.submission_page_markdown.format(
                labels=challenge.labels_text, names=names
            ),
        )
    return phases


def _metric_columns(challenge: Challenge) -> list[Column]:
    """The means of all metrics for participants, then the metrics of each organ.

    The mean of the first metric is the score, and no column beside it.
    """
    all_metrics = [METRICS[name] for name in challenge.metrics]
    metrics = [metric for metric in all_metrics if metric.for_participants]
    rows = {"Mean": ("", metrics[1:])}
    for organ in challenge.organs:
        title = organ.name.replace("_", " ").capitalize()
        rows[title] = (f"_{organ.name}", metrics)
    columns = []
    for title, (suffix, row_metrics) in rows.items():
        for metric in row_metrics:
            is_higher_better = metric.better is Better.HIGHER
            column = column_of(
                f"{title} {metric.title_with_unit}",
                f"{metric.name}{suffix}",
                Order.DESCENDING if is_higher_better else Order.ASCENDING,
            )
            columns.append(column)
    return columns


PAGE = (
    "Submit an algorithm. What its image reads and writes is said by the challenge."
    " Labels: {labels}. Upload the image as a .tar.gz; its Dockerfile needs a `USER`,"
    " as the platform refuses images that run as root. A model that is uploaded beside"
    " the image is in `{model}`, where nothing can be written. The image is run on the"
    " organisers' computer, without a network, and measured. A submission that fails"
    " does not count."
)

EFFICIENCY = (
    column_of("Running time (s)", "runtime_s", Order.ASCENDING),
    column_of("GPU memory (MB)", "max_gpu_memory_mb", Order.ASCENDING),
)
"""The measurements of ``flare serve``, the second only on a GPU."""


def external_settings_for(challenge: Challenge, *, has_gpu: bool = True) -> Phase:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of some columns, each of the means over
    cases: that is nearer to FLARE's ranking than the score alone, and still another
    one. They are those that the challenge file ranks by; if it names none, DSC, NSD,
    running time and memory. `has_gpu` is whether algorithms get a GPU: a result without
    a value that is ranked would be on no board.
    """
    test_phase = settings_for(challenge)["test"]
    dsc = column_of(test_phase.score_title, "dsc")
    nsd, *organ_columns = test_phase.extra_results_columns
    efficiency = EFFICIENCY if has_gpu else EFFICIENCY[:1]
    columns = [dsc, nsd, *efficiency, *organ_columns]
    ranked_paths = {f"aggregates.{rule.metric}_mean" for rule in challenge.ranking}
    ranked = [column for column in columns if column.path in ranked_paths]
    if not ranked:
        ranked = [dsc, nsd, *efficiency]
    score = ranked[0]
    return replace(
        test_phase,
        title="External test",
        score_title=score.title,
        score_jsonpath=score.path,
        score_error_jsonpath=score.error_path,
        score_default_sort=score.order,
        scoring_method_choice=ScoringMethod.MEAN,
        extra_results_columns=tuple(
            replace(column, exclude_from_ranking=column not in ranked)
            for column in columns
            if column is not score
        ),
        submission_page_markdown=PAGE.format(
            labels=challenge.labels_text, model=MODEL_FOLDER
        ),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseOptions:
    """The phase with the settings that apply."""

    phase: str = option(
        "Go by the settings of sanity, validation, test or external (default:"
        " validation).",
        default="validation",
        metavar="NAME",
    )
    phase_settings: Path | None = option(
        "Read them from this file (default: phase-settings.json beside evaluate.py; for"
        " any other challenge, the settings that fit it, but results of a challenge of"
        " your own need a file).",
        default=None,
        metavar="FILE",
    )

    def read(self, challenge: str = STANDARD) -> Phase:
        """The settings from the file, or those of an edition.

        Errors are those of `read_phase`.
        """
        is_in_file = challenge == STANDARD and self.phase != "external"
        if file := self.phase_settings or (PHASE_SETTINGS if is_in_file else None):
            return read_phase(file, self.phase)
        rules = read_challenge(challenge)
        phases = {**settings_for(rules), "external": external_settings_for(rules)}
        if self.phase not in phases:
            problem = f"has no phase {safe(self.phase)} (found {listing(phases)})"
            raise PhaseSettingsError(f"phase-settings of {rules.key}", problem)
        return phases[self.phase]
