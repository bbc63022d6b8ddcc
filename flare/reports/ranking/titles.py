"""Names metrics for print, in tables and papers."""

from __future__ import annotations

from collections.abc import Sequence

from flare.challenge.metrics import METRICS, metric_of
from flare.common.text import listing
from flare.results.efficiency_csv import MEASURED

TITLES = {
    **{metric.name: metric.title_with_unit for metric in METRICS.values()},
    **{
        name: column.title_with_unit
        for name, column in MEASURED.items()
        if column.title
    },
}


def left_out_text(metrics: Sequence[str]) -> str:
    """That nobody is ranked by some metrics of the challenge; empty without any.

    Examples
    --------
    >>> left_out_text(["runtime_s", "max_gpu_memory_mb"])
    'Not ranked: Running time (s) and GPU memory (MB), as no team was measured.'
    """
    if not metrics:
        return ""
    names = listing(map(metric_title, metrics), last=" and ")
    return f"Not ranked: {names}, as no team was measured."


def metric_title(metric: str) -> str:
    """What a metric is called in print; its own name if there is no other.

    Examples
    --------
    >>> metric_title("runtime_s"), metric_title("dsc_left_kidney"), metric_title("hd95")
    ('Running time (s)', 'DSC of left kidney', 'hd95')
    """
    if metric in TITLES:
        return TITLES[metric]
    score, organ = metric_of(metric), metric.partition("_")[2]
    if score and organ:
        unit = f" ({score.unit})" if score.unit else ""
        return f"{score.title} of {organ.replace('_', ' ')}{unit}"
    return metric
