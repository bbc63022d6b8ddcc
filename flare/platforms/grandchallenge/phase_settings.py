"""Settings of phases of the platform, made to fit a challenge.

Three phases are evaluated by the platform, and an external one by ``flare serve``.
``docs/organisers/phase-settings.md`` says why each field is set as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge.metrics import MEASURED, SCORES, Metric
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.environment import PHASE_SETTINGS
from flare.common.options import option
from flare.common.text import listing, safe
from flare.evaluation.errors import PhaseSettingsError
from flare.measuring.options import MODEL_FOLDER
from flare.platforms.board import (
    check_ranked,
    files_text,
    key_of,
    order_of,
    organ_metrics,
    ranked_metrics,
    tables_text,
    title_of,
    total_metrics,
)
from flare.platforms.grandchallenge.phase import (
    Column,
    Phase,
    ScoringMethod,
    read_phase,
)

STANDARD = "flare21"
"""The challenge with the settings of phase-settings.json."""

TEMPLATE = Path(__file__).with_name("template") / "phases.json"
"""The settings that all challenges share; their columns and files are filled in."""


def settings_for(challenge: Challenge) -> dict[str, Phase]:
    """Settings of three phases for a challenge, as in phase-settings.json.

    Results are ranked by the first mean of label maps. Of answers alone, the mean of
    the ranks of the values that the challenge ranks by is FLARE's ranking.
    """
    metrics = [*total_metrics(challenge), *organ_metrics(challenge)]
    columns, method = _columns(metrics), ScoringMethod.ABSOLUTE
    if not challenge.organs:
        check_ranked(challenge, metrics)
        ranked = ranked_metrics(challenge, metrics) or metrics[:1]
        columns = _ranking_by(ranked, metrics)
        method = ScoringMethod.MEAN
    files = files_text(challenge)
    phases = {}
    for name in ("sanity", "validation", "test"):
        phase = read_phase(TEMPLATE, name)
        phase_columns = columns
        if not phase.score_error_jsonpath:  # a single case has no standard deviation
            phase_columns = [replace(column, error_path="") for column in columns]
        phases[name] = replace(
            _with_columns(phase, phase_columns),
            scoring_method_choice=method,
            submission_page_markdown=phase.submission_page_markdown.format(files=files),
        )
    return phases


def _with_columns(phase: Phase, columns: Sequence[Column]) -> Phase:
    """A phase whose score is the first of some columns, with the others beside it."""
    score, *extra_columns = columns
    return replace(
        phase,
        score_title=score.title,
        score_jsonpath=score.path,
        score_error_jsonpath=score.error_path,
        score_default_sort=score.order,
        extra_results_columns=tuple(extra_columns),
    )


def _ranking_by(ranked: Sequence[Metric], metrics: Sequence[Metric]) -> list[Column]:
    """The columns of ranked metrics, of which the first is the score, then all."""
    score, *_ = ranked_columns = _columns(ranked)
    extra_columns = [
        replace(column, exclude_from_ranking=column not in ranked_columns)
        for column in _columns(metrics)
        if column != score
    ]
    return [score, *extra_columns]


def _columns(metrics: Iterable[Metric]) -> list[Column]:
    """The columns of metrics, which are shown, and not ranked.

    Only the mean over cases has a standard deviation beside it; not if no single case
    may be told, as of two cases both follow from these.
    """
    columns = []
    for metric in metrics:
        has_deviation = metric.is_of_each_case and metric.tells_cases
        error_path = f"aggregates.{metric.name}_std" if has_deviation else ""
        column = Column(
            title=title_of(metric),
            path=f"aggregates.{key_of(metric)}",
            error_path=error_path,
            order=order_of(metric),
            exclude_from_ranking=True,
        )
        columns.append(column)
    return columns


EFFICIENCY = (MEASURED["runtime_s"], MEASURED["max_gpu_memory_mb"])
"""The measurements of ``flare serve``, the second only on a GPU."""


def external_settings_for(challenge: Challenge, *, has_gpu: bool = True) -> Phase:
    """Settings of one phase, with columns of running time and GPU memory.

    The platform ranks by the mean of the ranks of some columns, each of the means over
    cases: that is nearer to FLARE's ranking than the score alone, and still another
    one; a ``[scheme]`` of means may have the same but for what it breaks ties by. They
    are those that the challenge file ranks by; if it names none, DSC, NSD, running time
    and memory. `has_gpu` is whether algorithms get a GPU: a result without
    a value that is ranked would be on no board.
    """
    totals = total_metrics(challenge)
    efficiency = EFFICIENCY if has_gpu else EFFICIENCY[:1]
    metrics = [*totals, *efficiency, *organ_metrics(challenge)]
    scores = [metric for metric in totals if metric.is_of_each_case][: len(SCORES)]
    check_ranked(challenge, metrics)
    ranked = ranked_metrics(challenge, metrics)
    ranked = ranked or [*(scores or totals[:1]), *efficiency]
    files = f"Labels: {challenge.labels_text}." if challenge.organs else ""
    files = f"{files} {challenge.gaps_text}".strip()
    if challenge.answers:
        files = f"{files} Answers: {tables_text(challenge)}.".strip()
    phase = _with_columns(
        read_phase(TEMPLATE, "external"), _ranking_by(ranked, metrics)
    )
    page = phase.submission_page_markdown.format(files=files, model=MODEL_FOLDER)
    return replace(phase, submission_page_markdown=page)


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
        if self.phase == "external":
            return external_settings_for(rules)
        phases = settings_for(rules)
        if self.phase not in phases:
            names = listing([*phases, "external"])
            problem = f"has no phase {safe(self.phase)} (found {names})"
            raise PhaseSettingsError(f"phase-settings of {rules.key}", problem)
        return phases[self.phase]
