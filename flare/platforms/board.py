"""The columns of a board and the files of a submission, as any platform tells them.

A column is the `Metric` of a value that participants may know, under the key that this
value has among the aggregates of metrics.json.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from flare.challenge.answers import KINDS
from flare.challenge.formats import CASE, PLAIN_NAMES
from flare.challenge.metrics import (
    ANSWER_METRICS,
    LEFT_OUT,
    Better,
    Metric,
    lesions_by,
    metric_named,
    scored,
)
from flare.challenge.rules import Challenge
from flare.common.text import listing
from flare.evaluation.errors import PhaseSettingsError


class Order(Enum):
    """Which values of a metric come first."""

    ASCENDING = "asc"
    DESCENDING = "desc"


def total_metrics(challenge: Challenge) -> list[Metric]:
    """The means over all organs, for participants, and the values of answers."""
    metrics = _means(challenge) if challenge.organs else []
    for rules in challenge.answers:
        for name, column in zip(rules.metrics, rules.columns, strict=True):
            answers = replace(ANSWER_METRICS[name], name=column, part=rules.name)
            metrics.append(answers)
    return metrics


def organ_metrics(challenge: Challenge) -> list[Metric]:
    """The metrics of each organ for participants."""
    metrics = []
    for organ in challenge.organs:
        for metric in _means(challenge):
            if organ.has(metric.name):
                name = f"{metric.name}_{organ.name}"
                metrics.append(replace(metric, name=name, part=organ.name))
    return metrics


def _means(challenge: Challenge) -> list[Metric]:
    # A prediction that decides what is left out decides how many cases a mean is of.
    is_chosen = challenge.absent_organs.in_prediction == LEFT_OUT
    with lesions_by(challenge.lesions):
        metrics = [*map(metric_named, challenge.metrics)]
    return [
        m for m in metrics if m.is_told(1 if is_chosen and m.needs_reference else 2)
    ]


def ranked_metrics(challenge: Challenge, metrics: Iterable[Metric]) -> list[Metric]:
    """The metrics among some that the challenge file ranks by, if it names any."""
    names = [rule.metric for rule in challenge.ranking]
    return [metric for metric in metrics if metric.name in names]


def check_ranked(challenge: Challenge, metrics: Iterable[Metric]) -> None:
    """Refuse a board of some metrics that lacks a score that the challenge ranks by."""
    names = {metric.name for metric in metrics}
    scores = scored(rule.metric for rule in challenge.ranking)
    if missing := [metric.name for metric in scores if metric.name not in names]:
        raise PhaseSettingsError(
            challenge.key,
            f"[[ranking]] has {listing(missing)}, which no board can show: it is not"
            " computed, or may be of a single case, whose reference it would tell"
            f' (one reference, or in_prediction = "{LEFT_OUT}")',
            "Change that, or take it out of [[ranking]].",
        )


def title_of(metric: Metric) -> str:
    """The head of the column: organ or answers, else that it is a mean, come first.

    Examples
    --------
    >>> from flare.challenge.metrics import metric_named
    >>> [title_of(metric_named(name)) for name in ("hd95_liver", "dsc", "runtime_s")]
    ['Liver HD95 (mm)', 'Mean DSC', 'Running time (s)']
    """
    if not metric.is_scored:
        return metric.heading
    heading = replace(metric, name=metric.base, part="").heading
    return f"{(metric.part_title or 'mean').capitalize()} {heading}"


def order_of(metric: Metric) -> Order:
    """The good end of its values comes first."""
    return Order.DESCENDING if metric.better is Better.HIGHER else Order.ASCENDING


def key_of(metric: Metric) -> str:
    """The key of its value over all cases among the aggregates of metrics.json."""
    return f"{metric.name}_mean" if metric.is_of_each_case else metric.name


# --- The files of a submission ------------------------------------------------------


def files_text(challenge: Challenge) -> str:
    """The label maps and the tables of a submission; one sentence, or more."""
    if not challenge.organs:
        return f"{tables_text(challenge)}."
    names = "like its CT without `_0000`"
    if challenge.names != PLAIN_NAMES:
        pattern = challenge.names.prediction_of(CASE)
        names = f"`{pattern}`, where {CASE} is the case"
    text = (
        f"a .nii.gz label map for each case, named {names}. Labels:"
        f" {challenge.labels_text}. Save them with the header of the CT."
        f" {challenge.gaps_text}"
    ).rstrip()
    tables = tables_text(challenge)
    return f"{text} Beside them is {tables}." if tables else text


def tables_text(challenge: Challenge) -> str:
    """The files of answers, each with its columns and how an answer is written."""
    tables = []
    for file in dict.fromkeys(rules.file for rules in challenge.answers):
        columns: dict[str, None] = {}
        names_by_kind: dict[str, list[str]] = {}
        for rules in challenge.answers:
            if rules.file == file:
                names = (*rules.only, *rules.case, *rules.prediction)
                columns |= dict.fromkeys(names)
                names_by_kind.setdefault(rules.kind, []).append(rules.name)
        answers = [
            f"{', '.join(names)}: {KINDS[kind].about}"
            for kind, names in names_by_kind.items()
        ]
        columns_text = listing(f"`{column}`" for column in columns)
        text = f"`{file}` with the columns {columns_text} ({'; '.join(answers)})"
        tables.append(text)
    return ", and ".join(tables)
