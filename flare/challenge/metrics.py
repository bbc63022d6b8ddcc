"""The metrics of label maps and of answers: one record each, from which all follows.

Columns of metrics.json and its schema, tables, titles, lines of progress, values of the
ranking and columns of a platform's phase are made from these records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Annotated

from flare.common.schema import Is


class Better(Enum):
    """Which end of a metric is the good one."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric of two masks of one organ."""

    name: str
    """The name in the keys of metrics.json, where ``_ORGAN`` may follow."""
    title: str
    """The name in print."""
    definition: str
    """One sentence, for Methods and the documentation."""
    function: str = ""
    """Module below `flare.evaluation.metrics` and the function in it, which takes an
    `Agreement` and returns the value, or None for the worst one; it is imported when it
    is first needed, and not called where both masks are empty. `SCORES` need none."""
    needs_distances: bool = False
    """Whether it is made from distances of surfaces, which take as long as DSC and NSD;
    they are computed once for all such metrics."""
    unit: str = ""
    range: tuple[float, float] = (0.0, 1.0)
    """The smallest and the largest value."""
    better: Better | None = Better.HIGHER
    """None if 0 is best, and values to both sides of it are worse."""
    worst: float | None = 0.0
    """Of an organ that one mask lacks, and of a case that cannot be scored; None for
    what the challenge says, or the diagonal of the reference's grid in mm: infinity is
    not JSON and has no mean."""
    decimals: int = 3
    """On a line of progress, and the most that participants are told."""
    bounds: tuple[float, ...] = ()
    """Six values, from bad to good, between which pages have seven shades."""
    for_participants: bool = True
    """Whether participants may see it: a metric that tells a volume of the reference
    is for organisers alone."""

    @property
    def best(self) -> float:
        """The value of two masks that are equal, or both empty."""
        return self.range[1] if self.better is Better.HIGHER else 0.0

    @property
    def is_share(self) -> bool:
        """Whether it is from 0 (worst) to 1 (best), without a unit."""
        return self.range == (0.0, 1.0) and self.better is Better.HIGHER

    @property
    def statistics(self) -> tuple[str, ...]:
        """The numbers in tables over all cases, by their names in metrics.json.

        One missing organ decides the mean of distances, which have no upper end.
        """
        return ("mean",) if self.is_share else ("mean", "median")

    def text(self, value: float) -> str:
        """A value on a line of progress."""
        return f"{value:z.{self.decimals}f}"

    def told(self, value: float) -> float:
        """A value as participants may know it: more digits tell of the reference.

        Examples
        --------
        >>> METRICS["dsc"].told(0.97394)
        0.974
        """
        scale: int = 10**self.decimals
        return round(value * scale) / scale

    @property
    def title_with_unit(self) -> str:
        """The title in the heads of tables and beside axes."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


METRICS = {
    metric.name: metric
    for metric in (
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
            bounds=(0.0, 0.3, 0.5, 0.6, 0.75, 0.9),
        ),
        Metric(
            name="hd95",
            title="HD95",
            definition="the larger of two distances, within which 95 % of the area of"
            " either surface are from the nearest surfel of the other one",
            function="hd95_and_assd:hausdorff_95",
            needs_distances=True,
            unit="mm",
            range=(0.0, math.inf),
            better=Better.LOWER,
            worst=None,
            decimals=2,
            bounds=(100.0, 50.0, 20.0, 10.0, 5.0, 2.0),
        ),
        Metric(
            name="assd",
            title="ASSD",
            definition="the mean distance of all surfels of both surfaces from the"
            " nearest surfel of the other one, weighted by area",
            function="hd95_and_assd:average_distance",
            needs_distances=True,
            unit="mm",
            range=(0.0, math.inf),
            better=Better.LOWER,
            worst=None,
            decimals=2,
            bounds=(50.0, 20.0, 10.0, 5.0, 2.0, 1.0),
        ),
        Metric(
            name="volume_difference",
            title="Volume difference",
            definition="the volume of the prediction less that of the reference,"
            " divided by that of the reference",
            function="volume:volume_difference",
            range=(-1.0, math.inf),
            better=None,
            worst=-1.0,
            for_participants=False,
        ),
    )
}
"""All metrics by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMetric(Metric):
    """A metric of the answers of all cases, whose column is ``NAME_ANSWERS``."""

    functions: Mapping[str, tuple[str, str]]
    """By the kind of answers, two functions below `flare.answers`, as in
    ``module:function``: the one that makes a row of numbers of the reference and the
    prediction of a case, and the one that makes the value of all rows."""


_ACCURACY = ("pairs:is_right", "agreement:mean")
_MEAN_PRECISION = ("pairs:truths_and_scores", "agreement:mean_average_precision")
_WEIGHTED_F1 = ("pairs:decisions", "agreement:weighted_f1")
_WEIGHTED_PRECISION = ("pairs:decisions", "agreement:weighted_precision")
_BALANCED = ("pairs:decisions", "agreement:balanced_accuracy")

ANSWER_METRICS = {
    metric.name: metric
    for metric in (
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
        AnswerMetric(
            name="mean_absolute_error",
            title="MAE",
            definition="the mean absolute difference",
            range=(0.0, math.inf),
            better=Better.LOWER,
            worst=None,
            functions={"number": ("pairs:absolute_error", "agreement:mean")},
        ),
        AnswerMetric(
            name="rmse",
            title="RMSE",
            definition="the root of the mean squared difference",
            range=(0.0, math.inf),
            better=Better.LOWER,
            worst=None,
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
}
"""All metrics of answers by name."""

MetricName = Annotated[str, Is(pattern="^[a-z][a-z0-9_]*$")]
"""In files of rankings: of a record here, of a column, or another one."""

SCORES = ("dsc", "nsd")
"""The metrics of every challenge."""

RUNTIME = "runtime"
"""Columns that begin with this are running times."""


@lru_cache(maxsize=4096)  # a ranking asks millions of times for a few columns
def metric_of(column: str) -> Metric | None:
    """The metric of a column, also of one organ; None for another kind of column.

    Examples
    --------
    >>> metric_of("dsc_liver").title, metric_of("dscent")
    ('DSC', None)
    >>> metric_of("f1_findings").title, metric_of("f1")
    ('F1', None)
    """
    names = [name for name in METRICS if f"{column}_".startswith(f"{name}_")]
    names += [name for name in ANSWER_METRICS if column.startswith(f"{name}_")]
    if not names:
        return None
    name = max(names, key=len)
    return METRICS.get(name) or ANSWER_METRICS[name]


def organ_of(column: str) -> str:
    """The organ, or the answers, of a metric's column; empty for a mean over organs.

    Examples
    --------
    >>> organ_of("dsc_left_kidney"), organ_of("dsc")
    ('left_kidney', '')
    """
    metric = metric_of(column)
    return column[len(metric.name) + 1 :] if metric else ""


def is_of_answers(column: str) -> bool:
    """Whether a column is a metric of answers.

    Examples
    --------
    >>> is_of_answers("auroc_diagnosis"), is_of_answers("dsc_liver")
    (True, False)
    """
    return isinstance(metric_of(column), AnswerMetric)


def metrics_in(columns: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics whose means over organs are among some columns, in their order.

    Examples
    --------
    >>> [metric.title for metric in metrics_in(["runtime_s", "nsd", "dsc"])]
    ['DSC', 'NSD']
    """
    names = set(columns)
    return tuple(metric for name, metric in METRICS.items() if name in names)


def is_score(column: str) -> bool:
    """Whether a column is of a metric of label maps that is from 0 (worst) to 1 (best).

    Examples
    --------
    >>> is_score("dsc_liver"), is_score("runtime_s")
    (True, False)
    """
    metric = metric_of(column)
    return metric is not None and metric.is_share


MOST = 10**15
"""No value is above this: nothing that is ranked comes near such a number."""

ROUNDING = 1e-9
"""A mean of ones may be above 1 by less than this."""


def value_problem(value: float, metric: str) -> str:
    """Why a metric cannot have a value; empty if it can."""
    our_metric = metric_of(metric)
    if not math.isfinite(value) or value > MOST:
        return f"{metric} is {value}, which nothing that was measured is"
    if value < (our_metric.range[0] if our_metric else 0):
        # Not a sentinel of some other program: it would be the best running time.
        return f"{metric} is {value:g}, negative; leave a missing value empty"
    if value > 1 + ROUNDING and is_score(metric):
        return f"{metric} is {value}, above 1; is it percent? Divide it by 100"
    if value == 0 and metric.startswith(RUNTIME):
        return f"{metric} is 0, which no run takes; leave a missing value empty"
    return ""
