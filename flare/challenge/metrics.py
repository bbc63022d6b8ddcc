"""Metrics: one record for what a column of results holds, from which all follows.

Columns of metrics.json and its schema, tables, titles, lines of progress, values of the
ranking and columns of a platform's phase are made from these records. `metric_named`
reads a name such as ``dsc_liver`` in a file or an option; all else asks the record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from flare.challenge.lesion_metrics import LESION_METRICS, LesionMetric
from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metric import LEFT_OUT as LEFT_OUT
from flare.challenge.metric import MOST as MOST
from flare.challenge.metric import NO_VALUE as NO_VALUE
from flare.challenge.metric import Better as Better
from flare.challenge.metric import Metric as Metric
from flare.common.schema import Is
from flare.common.text import joined

_Kind = TypeVar("_Kind", bound=Metric)


def _by_name(*metrics: _Kind) -> dict[str, _Kind]:
    return {metric.name: metric for metric in metrics}


_distance = partial(
    Metric,
    needs_distances=True,
    unit="mm",
    range=(0.0, math.inf),
    better=Better.LOWER,
    worst=None,
    decimals=2,
)

METRICS = _by_name(
    Metric(
        name="dsc",
        title="DSC",
        definition="twice the shared volume, divided by the sum of both volumes",
        bounds=(0.0, 0.5, 0.7, 0.8, 0.9, 0.95),
    ),
    Metric(
        name="nsd",
        title="NSD",
        definition="the share of both surfaces that lies within the organ's"
        " tolerance of the other surface",
        needs_tolerance=True,
        bounds=(0.0, 0.3, 0.5, 0.6, 0.75, 0.9),
    ),
    _distance(
        name="hd95",
        title="HD95",
        definition="the larger of two distances, within which 95 % of the area of"
        " either surface are from the nearest surfel of the other one",
        function="comparison:hausdorff_95",
        bounds=(100.0, 50.0, 20.0, 10.0, 5.0, 2.0),
    ),
    _distance(
        name="assd",
        title="ASSD",
        definition="the mean distance of all surfels of both surfaces from the"
        " nearest surfel of the other one, weighted by area",
        function="comparison:average_distance",
        bounds=(50.0, 20.0, 10.0, 5.0, 2.0, 1.0),
    ),
    Metric(
        name="volume_difference",
        title="Volume difference",
        definition="the volume of the prediction less that of the reference,"
        " divided by that of the reference",
        function="comparison:volume_difference",
        range=(-1.0, math.inf),
        better=None,
        worst=-1.0,
        tells_cases=False,
        tells_means=False,
    ),
    *LESION_METRICS,
)
"""All metrics by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMetric(Metric):
    """A metric of the answers of all cases, whose column is ``NAME_ANSWERS``."""

    is_of_each_case: bool = False
    # Sums of the same numbers in another order differ in their last bits.
    precision: str = ".12g"
    # Nobody compares them, and a mapping has no hash.
    functions: Mapping[str, tuple[str, str]] = field(compare=False)
    """By the kind of answers, two functions below `flare.answers`, as in
    ``module:function``: the one that makes a row of numbers of the reference and the
    prediction of a case, and the one that makes the value of all rows."""


_error = partial(AnswerMetric, range=(0.0, math.inf), better=Better.LOWER, worst=None)
_ACCURACY = ("pairs:is_right", "agreement:mean")
_MEAN_PRECISION = ("pairs:truths_and_scores", "agreement:mean_average_precision")
_WEIGHTED_F1 = ("pairs:decisions", "agreement:weighted_f1")
_WEIGHTED_PRECISION = ("pairs:decisions", "agreement:weighted_precision")
_BALANCED = ("pairs:decisions", "agreement:balanced_accuracy")

ANSWER_METRICS = _by_name(
    AnswerMetric(
        name="accuracy",
        title="Accuracy",
        definition="the share of cases whose class is right",
        functions=dict.fromkeys(("binary", "classes", "choice"), _ACCURACY),
    ),
    AnswerMetric(
        name="balanced_accuracy",
        title="Balanced accuracy",
        definition="the mean recall of the classes that the references have",
        functions=dict.fromkeys(("binary", "classes", "choice"), _BALANCED),
    ),
    AnswerMetric(
        name="auroc",
        title="AUROC",
        definition="the area under the ROC curve; of classes, each against the"
        " others, weighted by their numbers of cases",
        functions={
            "binary": ("pairs:class_and_score", "agreement:auroc"),
            "classes": ("pairs:class_and_score", "agreement:weighted_auroc"),
        },
    ),
    AnswerMetric(
        name="auprc",
        title="AUPRC",
        definition="the average precision, not interpolated; of classes, each"
        " against the others, weighted by their numbers of cases",
        functions={
            "binary": ("pairs:class_and_score", "agreement:auprc"),
            "classes": ("pairs:class_and_score", "agreement:weighted_auprc"),
        },
    ),
    AnswerMetric(
        name="sensitivity",
        title="Sensitivity",
        definition="the share of the positive cases that are called positive",
        functions={"binary": ("pairs:decisions", "agreement:sensitivity")},
    ),
    AnswerMetric(
        name="specificity",
        title="Specificity",
        definition="the share of the negative cases that are called negative",
        functions={"binary": ("pairs:decisions", "agreement:specificity")},
    ),
    AnswerMetric(
        name="precision",
        title="Precision",
        definition="the share of the positive answers that are right; of classes,"
        " weighted by their numbers of cases; of words, the mean over cases",
        functions={
            "binary": ("pairs:decisions", "agreement:precision"),
            "classes": _WEIGHTED_PRECISION,
            "choice": _WEIGHTED_PRECISION,
            "label_set": ("pairs:set_precision", "agreement:mean"),
            "boxes": ("boxes:box_counts", "agreement:pooled_precision"),
        },
    ),
    AnswerMetric(
        name="recall",
        title="Recall",
        definition="the share of what the references have that is answered; of"
        " words, the mean over cases",
        functions={
            "binary": ("pairs:decisions", "agreement:sensitivity"),
            "label_set": ("pairs:set_recall", "agreement:mean"),
            "boxes": ("boxes:box_counts", "agreement:pooled_recall"),
        },
    ),
    AnswerMetric(
        name="f1",
        title="F1",
        definition="the harmonic mean of precision and recall; of classes, weighted"
        " by their numbers of cases; of words, the mean over cases",
        functions={
            "binary": ("pairs:decisions", "agreement:f1"),
            "classes": _WEIGHTED_F1,
            "choice": _WEIGHTED_F1,
            "label_set": ("pairs:set_f1", "agreement:mean"),
            "boxes": ("boxes:box_counts", "agreement:pooled_f1"),
        },
    ),
    AnswerMetric(
        name="micro_f1",
        title="F1 (pooled)",
        definition="the F1 of the words of all cases together",
        functions={"label_set": ("pairs:set_counts", "agreement:pooled_f1")},
    ),
    AnswerMetric(
        name="mean_average_precision",
        title="mAP",
        definition="the mean over classes or labels of the average precision, not"
        " interpolated",
        functions=dict.fromkeys(("classes", "labels"), _MEAN_PRECISION),
    ),
    _error(
        name="mean_absolute_error",
        title="MAE",
        definition="the mean absolute difference",
        functions={"number": ("pairs:absolute_error", "agreement:mean")},
    ),
    _error(
        name="rmse",
        title="RMSE",
        definition="the root of the mean squared difference",
        functions={"number": ("pairs:squared_error", "agreement:root_mean")},
    ),
    AnswerMetric(
        name="c_index",
        title="C-index",
        definition="the share of pairs with different times that are predicted in"
        " their order; equal predictions count as wrong",
        functions={"time": ("pairs:both_numbers", "agreement:c_index")},
    ),
    AnswerMetric(
        name="overlap",
        title="Overlap",
        definition="the number of right words divided by the larger of both numbers"
        " of words, 1 if there are none; the mean over cases",
        functions={"label_set": ("pairs:overlap", "agreement:mean")},
    ),
    AnswerMetric(
        name="chain_accuracy",
        title="Chain accuracy",
        definition="the share of a chain's answers that are right, 0 if the first"
        " is wrong; the mean over chains",
        functions={"chain": ("pairs:chain_share", "agreement:mean")},
    ),
)
"""All metrics of answers by name."""

NAME_FORM = "lower-case letters, digits and underscores, a letter first"
MetricName = Annotated[str, Is(pattern="^[a-z][a-z0-9_]*$", form=NAME_FORM)]
"""In files of rankings: of a record here, of a column, or another one."""

SCORES = ("dsc", "nsd")
"""The metrics of a challenge that names none."""


def _other(
    name: str, title: str = "", unit: str = "", decimals: int = 3, *, is_told: bool
) -> Metric:
    """A column that is not made of label maps or answers."""
    return Metric(
        name=name,
        title=title or name,
        unit=unit,
        decimals=decimals,
        range=(0.0, math.inf),
        better=None,
        worst=math.nan,
        is_scored=False,
        tells_cases=is_told,
        tells_means=is_told,
    )


_measured = partial(_other, is_told=True)  # it tells nothing of references

MEASURED = _by_name(
    _measured("runtime_s", "Running time", "s", 1),
    _measured("max_gpu_memory_mb", "GPU memory", "MB", 0),
    _measured("peak_gpu_memory_mb", "Peak of GPU memory", "MB", 0),
    _measured("idle_gpu_memory_mb", "Idle GPU memory", "MB", 0),
    _measured("energy_j", "Energy of the GPU", "J", 1),
    _measured("idle_power_w", "Idle power of the GPU", "W", 1),
    _measured("gpu_memory_area_mb_s", "Area under GPU memory", "MB s", 1),
    _measured("cpu_area_percent_s", "Area under CPU use", "% s", 1),
    _measured("cpu_s", "Processor time", "s", 1),
    _measured("max_host_memory_mb", "Memory", "MB", 0),
    _measured("engine_runtime_s", "Running time by the engine", "s", 1),
    _measured("runtime_s_spread", decimals=1),
    _measured("max_gpu_memory_mb_spread", decimals=1),
)
"""What is measured of each run, by its column of efficiency.csv."""


_LESIONS: ContextVar[Mapping[str, str]] = ContextVar(
    "lesions", default=MappingProxyType({})
)


@contextmanager
def lesions_by(definitions: Mapping[str, str]) -> Iterator[None]:
    """Let titles of metrics tell the definitions of lesions, by organ, in a context.

    A page, a table or a text is written within it; what they are made of has names
    alone, as files have, which do not tell the definition.

    Examples
    --------
    >>> with lesions_by({"wt": "brats23-gli"}):
    ...     metric_named("lesion_hd95_wt").heading
    'Lesion-wise HD95 (BraTS 2023 GLI) of wt (mm)'
    """
    token = _LESIONS.set(definitions)
    try:
        yield
    finally:
        _LESIONS.reset(token)


def lesion_notes() -> list[str]:
    """The definitions of lesions that titles tell, each with its organs, for a note."""
    organs_by_name: dict[str, list[str]] = {}
    for organ, name in _LESIONS.get().items():
        organs_by_name.setdefault(name, []).append(organ.replace("_", " "))
    return [
        f"Lesions of {joined(organs)} by {DEFINITIONS[name].text()}"
        for name, organs in organs_by_name.items()
    ]


def lesions_in(rules: Mapping[str, Any], columns: Iterable[str]) -> dict[str, str]:
    """The definition of each organ with lesions, in the order of columns of results.

    Those of a later version, which are not known here, are left out.
    """
    definitions = {}
    for metric in map(metric_named, columns):
        name = rules.get(f"lesions of {metric.part}")
        if isinstance(metric, LesionMetric) and name in DEFINITIONS:
            definitions[metric.part] = str(name)
    return definitions


def metric_named(name: str) -> Metric:
    """The metric that a name in a file or an option stands for, also one of others.

    Examples
    --------
    >>> names = "runtime_s", "dsc_left_kidney", "hd95_liver", "volume"
    >>> [metric_named(name).heading for name in names]
    ['Running time (s)', 'DSC of left kidney', 'HD95 of liver (mm)', 'volume']
    >>> metric_named("dscent").is_scored, metric_named("f1").is_scored
    (False, False)
    """
    metric, lesions = _metric_named(name), _LESIONS.get()
    if not lesions or not isinstance(metric, LesionMetric):
        return metric
    names = [lesions[metric.part]] if metric.part in lesions else lesions.values()
    titles = dict.fromkeys(DEFINITIONS[name].title for name in names)
    return replace(metric, title=f"{metric.title} ({', '.join(titles)})")


@lru_cache(maxsize=4096)  # a ranking asks millions of times for a few names
def _metric_named(name: str) -> Metric:
    """The record of a metric, whatever the definition of its lesions is."""
    if name in MEASURED:
        return MEASURED[name]
    bases = [base for base in METRICS if f"{name}_".startswith(f"{base}_")]
    bases += [base for base in ANSWER_METRICS if name.startswith(f"{base}_")]
    if not bases:
        return _other(name, is_told=False)
    base = max(bases, key=len)
    metric = METRICS.get(base) or ANSWER_METRICS[base]
    if name == base:
        return metric
    return replace(metric, name=name, part=name[len(base) + 1 :])


def scored(names: Iterable[str]) -> Iterator[Metric]:
    """The metrics of label maps or answers among some names."""
    return (metric for metric in map(metric_named, names) if metric.is_scored)


def metrics_in(columns: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics whose means over organs are among some columns, in their order.

    Examples
    --------
    >>> [metric.title for metric in metrics_in(["runtime_s", "nsd", "dsc"])]
    ['DSC', 'NSD']
    """
    names = set(columns)
    return tuple(metric_named(name) for name in METRICS if name in names)


def shares_of_masks(columns: Iterable[str]) -> list[str]:
    """The shares among some columns that tell of a whole mask, not of lesions."""
    metrics = metrics_in(columns)
    return [m.name for m in metrics if m.is_share and not isinstance(m, LesionMetric)]
