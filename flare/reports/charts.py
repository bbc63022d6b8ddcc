"""Describes the charts that several reports have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from flare.challenge.metrics import RUNTIME, Metric
from flare.common.text import count
from flare.reports.model import (
    ABSENT,
    MANY_ROWS,
    NO_RESULT,
    Axis,
    Blobs,
    Chart,
    Dots,
    Fields,
    Mark,
    Says,
    Steps,
    number_cell,
    table,
)
from flare.results.traces_csv import MemoryCurve, Point

# --- Axes -------------------------------------------------------------------------


def linear_axis(values: Sequence[float]) -> Axis:
    """An axis from 0 to beyond the largest value, with round ticks."""
    marks = _round_marks(max([*values, 0.0]) or 1.0)
    end = marks[-1]
    return Axis(lambda value: value / end, tuple((m / end, f"{m:.10g}") for m in marks))


def _round_marks(top: float) -> list[float]:
    """From 0 to beyond a value, in round steps."""
    unit = 10 ** math.floor(math.log10(top))
    step = next(s * unit for s in (0.5, 1, 2, 5) if top <= 3 * s * unit)
    return [step * n for n in range(math.ceil(top / step) + 1)]


def root_axis(values: Sequence[float]) -> Axis:
    """An axis from 0 for values of which a few are much larger than most."""
    end = _round_marks(max(values))[-1]
    marks = [end * part for part in (0, 0.1, 0.5, 1)]
    ticks = tuple((math.sqrt(mark / end), f"{mark:.10g}") for mark in marks)
    note = "The axis is stretched towards 0 (square root)."
    return Axis(lambda value: math.sqrt(value / end), ticks, note)


def log_axis(values: Sequence[float]) -> Axis:
    """An axis on which equal factors are equally long, for values above 0."""
    low, high = math.log10(min(values)), math.log10(max(values))
    middle, half = (low + high) / 2, max((high - low) / 2 * 1.04, 0.17)
    start, width = middle - half, 2 * half
    # Beyond these, a power of ten is 0 or no float at all.
    powers = range(max(math.floor(start), -307), min(math.ceil(start + width), 307) + 1)
    ticks: list[tuple[float, str]] = []
    for factors in ((1,), (1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)):
        if len(ticks) < 3:
            marks = (factor * 10.0**power for power in powers for factor in factors)
            places = (((math.log10(m) - start) / width, f"{m:g}") for m in marks)
            ticks = [place for place in places if 0 <= place[0] <= 1]
    note = "On a logarithmic axis."
    return Axis(lambda value: (math.log10(value) - start) / width, tuple(ticks), note)


def difference_axis(values: Sequence[float]) -> Axis:
    """An axis with 0 in its middle, which is stretched there if it has to be.

    Where a few have changed much, and most have hardly changed, these could not be told
    from 0 otherwise: then places follow the square root.
    """
    sizes = [abs(value) for value in values if value] or [0.0]
    most = max(sizes)
    usual = (e for e in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if most <= e)
    end = next(usual, 0) or 10.0 ** math.ceil(math.log10(most))
    is_stretched = end > 0.2 and float(np.median(sizes)) < end / 20

    def scale(value: float) -> float:
        part = abs(value) / end
        part = math.sqrt(part) if is_stretched else part
        return 0.5 + math.copysign(part, value) / 2

    ticks = tuple((scale(m), f"{m:+g}" if m else "0") for m in (-end, 0.0, end))
    note = "The axis is stretched about 0 (square root)." if is_stretched else ""
    return Axis(scale, ticks, note)


def value_axis(metric: Metric | str, values: Sequence[float]) -> Axis:
    """The axis that fits the values of a metric, or of a measured column."""
    if isinstance(metric, str):
        if metric.startswith(RUNTIME) and values:
            return log_axis(values)
    elif metric.is_share:
        start = 0.5 if values and min(values) >= 0.5 else 0.0
        steps = np.linspace(start, 1, 6)
        ticks = tuple((float((s - start) / (1 - start)), f"{s:.1f}") for s in steps)
        note = "The axis begins at 0.5." if start else ""
        return Axis(lambda value: (value - start) / (1 - start), ticks, note)
    elif metric.range[0] < 0:
        return difference_axis(values)
    # Most of what is drawn would lie in the first fifth.
    is_squeezed = len(values) > 2 and max(values) > 5 * np.quantile(values, 0.75)
    return root_axis(values) if is_squeezed else linear_axis(values)


def rank_ticks(ranks: int) -> list[tuple[float, str]]:
    """The ticks of columns 1, 2, ...; of many, the first, and every fifth."""
    step = 1 if ranks <= MANY_ROWS else 5
    shown = [n for n in range(1, ranks + 1) if n == 1 or n % step == 0]
    return [((n - 0.5) / ranks, str(n)) for n in shown]


# --- Charts -----------------------------------------------------------------------


def spread_chart(
    axis: Axis | Metric | str,
    labels: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    has_boxes: bool,
    intervals: Sequence[tuple[float, float] | None] | None = None,
    means: Sequence[str] = (),
    **more: Any,
) -> Chart:
    """A dot for each value in the row of its label; one without any says so.

    Parameters
    ----------
    axis : Axis, Metric or str
        Where values lie; or the metric, or the measured column, that they are of.
    labels, values : sequence
        Of the rows.
    has_boxes : bool
        Whether there is a box for the middle half of each row.
    intervals, means : sequence, optional
        Of each row: the interval of its mean, and that mean, which stands at its end.
    **more
        Other fields of the chart.
    """
    rows = [[value for value in row if value is not None] for row in values]
    if not isinstance(axis, Axis):
        axis = value_axis(axis, list(chain.from_iterable(rows)))
    told = intervals or [None] * len(rows)
    key = (("dot", "a case"), ("boxed", "middle half"), ("line", "median"))
    shown: dict[str, Any] = {"note": axis.note, "key": key if has_boxes else key[:1]}
    if means:
        told_of = zip(labels, means, strict=True)
        shown["summary"] = "; ".join(f"{label} mean {mean}" for label, mean in told_of)
        shown["ends"] = tuple(
            mean + (f" (n = {len(row)})" if 0 < len(row) < len(every) else "")
            for mean, row, every in zip(means, rows, values, strict=True)
        )
    return Chart(
        labels=tuple(labels),
        rows=[
            _dots(row, axis, interval, len(every) - len(row), has_box=has_boxes)
            if row
            else Says()
            for row, every, interval in zip(rows, values, told, strict=True)
        ],
        axis=axis.ticks,
        **shown | more,
    )


def _dots(
    values: Sequence[float],
    axis: Axis,
    interval: Sequence[float] | None,
    missing: int,
    *,
    has_box: bool,
) -> Dots:
    """Dots, with a box for the middle half of more than two."""
    is_box = has_box and len(values) > 2
    box = np.quantile(values, (0.25, 0.5, 0.75)).tolist() if is_box else ()
    places, boxed, ends = (
        tuple(map(axis.scale, own)) for own in (values, box, interval or ())
    )
    mean = axis.scale(float(np.mean(values)))
    return Dots(places, boxed or None, mean, ends or None, missing)


def field_chart(
    labels: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    shade_of: Callable[[float], str],
    form: str,
    **more: Any,
) -> Chart:
    """A shaded field for each label and column; a line marks what is not there.

    Parameters
    ----------
    labels, columns, values : sequence
        Names of the rows, and of their fields; and the values by row and column.
    shade_of : callable
        The class of a value's shade.
    form : str
        In which numbers are written on paper.
    **more
        Other fields of the chart.
    """
    return Chart(
        labels=tuple(labels),
        columns=tuple(columns),
        rows=[
            Fields(
                [ABSENT if value is None else shade_of(value) for value in row],
                ["" if value is None else f"{value:{form}}" for value in row],
            )
            for row in values
        ],
        **more,
    )


def blobs(frequencies: Sequence[float], lowest: int, highest: int) -> Blobs:
    """A blob at each rank, as large as the rank is frequent."""
    ranks = len(frequencies)
    return Blobs(
        [
            ((rank - 0.5) / ranks, part, f"rank {rank} in {part:.1%} of the draws")
            for rank, part in enumerate(frequencies, start=1)
            if part > 0
        ],
        ((lowest - 0.5) / ranks, (highest - 0.5) / ranks),
    )


def memory_charts(curves: Sequence[MemoryCurve]) -> list[Chart]:
    """Charts of GPU memory and of the container's; of none that was not sampled.

    Of many cases, one is enough.
    """
    found: list[Chart] = []
    for kind, name in (("gpu", "GPU memory"), ("host", "Memory of the container")):
        rows: list[tuple[Point, ...]] = [getattr(own, kind) for own in curves]
        if any(rows) and (kind == "gpu" or len(rows) <= MANY_ROWS or not found):
            found.append(_memory_chart(curves, rows, f"{name} over time"))
    return found


def _memory_chart(
    curves: Sequence[MemoryCurve], rows: Sequence[tuple[Point, ...]], title: str
) -> Chart:
    """An area for each case, all on the same two scales."""
    highest = max((mb for row in rows for _, mb in row), default=0)
    axis = linear_axis([t / 100 for row in rows for t, _ in row])
    marks: list[Mark] = []
    cells = []
    for own, row in zip(curves, rows, strict=True):
        points = [(axis.scale(t / 100), mb / (highest or 1)) for t, mb in row]
        marks.append(Steps(points) if row else Says())
        peak = max(row, key=lambda point: point[1], default=None)
        last = number_cell(row[-1][0] / 100 if row else None, decimals=1)
        when = number_cell(peak[0] / 100 if peak else None, decimals=1)
        most = str(peak[1]) if peak else NO_RESULT
        cells.append((own.case, last, most, when, str(own.samples)))
    heads = ("case", "last sample (s)", "highest (MB)", "first at (s)", "samples")
    used = f"every row is as high as {highest} MB, the most of any."
    return Chart(
        title=title,
        note=f"In seconds; {used if highest else 'none was used.'}",
        summary=f"{count(len(rows), 'curve')}; the most is {highest} MB",
        labels=tuple(own.case for own in curves),
        rows=marks,
        axis=axis.ticks,
        table=table(title, heads, cells, words=("case",)),
    )
