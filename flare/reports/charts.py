"""Describes the charts that several reports have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, product
from operator import attrgetter
from typing import Any

import numpy as np

from flare.challenge.metrics import Metric
from flare.common.text import count
from flare.reports.model import (
    ABSENT,
    GAINS,
    MANY_ROWS,
    NO_RESULT,
    Axis,
    Blobs,
    Cell,
    Chart,
    Column,
    Dots,
    Fields,
    Mark,
    Says,
    Steps,
    Table,
    Tips,
    number_cell,
    shade,
    table_of,
)
from flare.results.scores import present
from flare.results.traces_csv import MemoryCurve, Point

# --- Axes -------------------------------------------------------------------------

FAR = 3
"""An axis without an upper end ends at most at so many upper quartiles; one of means
begins at most so many times the width of their middle half below it."""

EDGE_NOTE = "What is beyond the axis stands at its edge, with its number."


def linear_axis(values: Sequence[float]) -> Axis:
    """An axis from 0 to beyond the largest value, with round ticks."""
    top = max([*values, 0.0]) or 1.0
    step = _round_step(top, (0.5, 1, 2, 5), 3)
    marks = [step * n for n in range(math.ceil(top / step) + 1)]
    end = marks[-1]
    return Axis(lambda value: value / end, tuple((m / end, f"{m:.10g}") for m in marks))


def _round_step(size: float, steps: Sequence[float], number: int) -> float:
    """The smallest round step of which this number covers a size."""
    unit = 10.0 ** math.floor(math.log10(size))
    return next(step * unit for step in steps if size <= number * step * unit)


def log_axis(values: Sequence[float]) -> Axis:
    """An axis on which equal factors are equally long, for values above 0."""
    low, high = math.log10(min(values)), math.log10(max(values))
    middle, half = (low + high) / 2, max((high - low) / 2 * 1.04, 0.17)
    start, width = middle - half, 2 * half
    # Beyond these, a power of ten is 0 or no float at all.
    powers = range(max(math.floor(start), -307), min(math.ceil(start + width), 307) + 1)

    def scale(value: float) -> float:
        return (math.log10(value) - start) / width

    ticks: list[tuple[float, str]] = []
    for factors in ((1,), (1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)):
        if len(ticks) < 3:
            marks = [factor * 10.0**power for power, factor in product(powers, factors)]
            inside = [mark for mark in marks if 0 <= scale(mark) <= 1]
            ticks = [(scale(mark), f"{mark:g}") for mark in inside]
    return Axis(scale, tuple(ticks), "On a logarithmic axis.")


def difference_axis(values: Sequence[float]) -> Axis:
    """An axis with 0 in its middle."""
    size = max(_far_end([abs(value) for value in values if value]), 0.02)
    end = _round_step(size, (1, 2, 5, 10), 1)
    ticks = ((0.0, f"{-end:+g}"), (0.5, "0"), (1.0, f"{end:+g}"))
    return Axis(lambda value: 0.5 + value / end / 2, ticks)


def _far_end(sizes: Sequence[float]) -> float:
    """The largest size; or less, where most would lie in a small part of the axis."""
    if not sizes:
        return 0.0
    largest = max(sizes)
    return min(largest, FAR * float(np.quantile(sizes, 0.75))) or largest


def zoomed_axis(values: Sequence[float]) -> Axis:
    """An axis from one round mark to another, no farther than scores lie apart.

    A score that is far below the middle half of them stands at its edge.
    """
    quarter, three = np.quantile(values, (0.25, 0.75)).tolist()
    low, high = max(min(values), quarter - FAR * (three - quarter)), max(values)
    span = max(high - low, 0.1)
    step = _round_step(span, (0.2, 0.5, 1, 2), 5)
    start = math.floor(low / step)
    steps = max(math.ceil(high / step) - start, 1)
    marks = (((n / steps), f"{(start + n) * step:.10g}") for n in range(steps + 1))
    note = "What is below the axis stands at its edge."
    return Axis(lambda value: (value / step - start) / steps, tuple(marks), note)


def value_axis(metric: Metric, values: Sequence[float]) -> Axis:
    """The axis of all values of a metric on each page.

    One bad team or case does not squeeze the others: an axis of scores begins at 0.5,
    unless a quarter of them are below that, and any other one but that of running times
    ends at three times the upper quartile. What is beyond stands at the edge.
    """
    if metric.is_running_time and values:
        return log_axis(values)
    if metric.is_share:
        return _share_axis(values)
    if metric.range[0] < 0:
        return difference_axis(values)
    return linear_axis([_far_end(values)])


def _share_axis(values: Sequence[float]) -> Axis:
    start = 0.5 if values and float(np.quantile(values, 0.25)) >= 0.5 else 0.0

    def scale(value: float) -> float:
        return (value - start) / (1 - start)

    marks = np.linspace(start, 1, 6).tolist()
    note = f"The axis begins at {start}." if start else ""
    return Axis(scale, tuple((scale(mark), f"{mark:.1f}") for mark in marks), note)


def rank_ticks(ranks: int) -> list[tuple[float, str]]:
    """The ticks of columns 1, 2, ...; of many, the first, and every fifth."""
    step = 1 if ranks <= MANY_ROWS else 5
    shown = [n for n in range(1, ranks + 1) if n == 1 or n % step == 0]
    return [((n - 0.5) / ranks, str(n)) for n in shown]


# --- Shades of ranks and gains ----------------------------------------------------

RANK_BOUNDS = (-5 / 6, -4 / 6, -3 / 6, -2 / 6, -1 / 6, 0.0)
"""Bounds of a rank's shades among the teams: 0 is the first rank, -1 the last."""

LOSSES = ("s2", "s4", "s5")
"""Classes of losses, small ones first: shades of bad scores."""


def rank_shade(rank: float, teams: int) -> str:
    """The class of a rank's shade among a number of teams.

    Examples
    --------
    >>> rank_shade(1, 11), rank_shade(11, 11), rank_shade(1, 1)
    ('s1', 's6', 's0')
    """
    if teams < 2:
        return "s0"
    return shade(-min(max((rank - 1) / (teams - 1), 0.0), 1.0), RANK_BOUNDS)


def gain_shade(gain: float, bounds: Sequence[float]) -> str:
    """The class of the shade of a gain, or of a loss; empty below all bounds.

    Examples
    --------
    >>> gain_shade(-4, (0, 1, 3)), gain_shade(1, (0, 1, 3)), gain_shade(0, (0, 1, 3))
    ('s5', 'g1', '')
    """
    steps = sum(abs(gain) > bound for bound in bounds)
    return ("", *(GAINS if gain > 0 else LOSSES))[steps]


# --- Charts -----------------------------------------------------------------------


def spread_chart(
    axis: Axis,
    labels: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    has_boxes: bool,
    title: str,
    counted: Sequence[Sequence[float | None]] | None = None,
    intervals: Sequence[tuple[float, float] | None] = (),
    means: Sequence[str] = (),
    summary: str = "",
    table: Table | None = None,
    tips: Tips | None = None,
) -> Chart:
    """A dot for each value in the row of its label; one without any says so.

    Boxes and means are of `counted`, where a missing value counts as something; it has
    no dot. `intervals` and `means` are those of each row. A summary stands instead of
    the means in words.
    """
    marks = []
    all_intervals = intervals or [None] * len(values)
    rows = zip(values, counted or values, all_intervals, strict=True)
    for row, counted_row, interval in rows:
        marks.append(_row_mark(row, counted_row, axis, interval, has_box=has_boxes))
    ends = tuple(map(_end_text, means, values))
    if means and not summary:
        named = zip(labels, means, strict=True)
        summary = "; ".join(f"{label} mean {mean}" for label, mean in named)
    boxed = (("boxed", "middle half"), ("line", "median"))
    is_beyond = any(isinstance(mark, Dots) and any(mark.edges) for mark in marks)
    return Chart(
        title=title,
        note=f"{axis.note} {EDGE_NOTE * is_beyond}".strip(),
        summary=summary,
        labels=tuple(labels),
        rows=marks,
        ends=ends,
        axis=axis.ticks,
        key=(("dot", "a case"), *(boxed if has_boxes else ())),
        table=table,
        tips=tips,
    )


def _statistics(values: Sequence[float]) -> list[float]:
    """The mean, and the quartiles of more than two values."""
    quarters = (0.25, 0.5, 0.75) if len(values) > 2 else ()
    return [float(np.mean(values)), *np.quantile(values, quarters).tolist()]


def _row_mark(
    values: Sequence[float | None],
    counted: Sequence[float | None],
    axis: Axis,
    interval: Sequence[float] | None,
    *,
    has_box: bool,
) -> Dots | Says:
    """Dots, with a box for the middle half of more than two; words without any."""
    results = present(values)
    if not results:
        return Says()
    mean, *box = map(axis.place, _statistics(present(counted)))
    places = list(map(axis.scale, results))
    below = [value for value, x in zip(results, places, strict=True) if x < 0]
    above = [value for value, x in zip(results, places, strict=True) if x > 1]
    return Dots(
        places=tuple(min(max(x, 0.0), 1.0) for x in places),
        box=tuple(box) if has_box and box else None,
        mean=mean,
        interval=tuple(map(axis.place, interval)) if interval else None,
        missing=len(values) - len(results),
        edges=(
            _edge_text("\u25c2 {}", below, has_room=not above),
            _edge_text("{} \u25b8", above, has_room=not below),
        ),
    )


def _edge_number(value: float) -> str:
    return f"{value:z.{0 if abs(value) >= 100 else 2}f}"


def _edge_text(form: str, values: Sequence[float], *, has_room: bool) -> str:
    """The values that are beyond an end of an axis: the only one, or how many.

    Without room for two numbers, as where the other end has some too, the farthest.
    """
    if not values:
        return ""
    low, high = map(_edge_number, (min(values), max(values)))
    text = low if low == high else f"{low} to {high}"
    if low != high and not has_room:
        text = f"to {_edge_number(max(values, key=abs))}"
    return form.format(f"{len(values)}: {text}" if len(values) > 1 else text)


def _end_text(mean: str, values: Sequence[float | None]) -> str:
    """A mean, and the number of values where some, but not all, are missing."""
    number = len(present(values))
    return f"{mean} (n = {number})" if 0 < number < len(values) else mean


def field_chart(
    labels: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    shade_of: Callable[[float], str],
    form: str,
    **chart_fields: Any,
) -> Chart:
    """A shaded field for each label and column; a line marks what is not there.

    Labels are names of the rows, and columns those of their fields; values are by row
    and column. `shade_of` tells the class of a value's shade, and `form` is in which
    numbers are written on paper.
    """
    fields = []
    for row in values:
        shades = [ABSENT if value is None else shade_of(value) for value in row]
        texts = []
        for css, value in zip(shades, row, strict=True):
            texts.append("" if value is None or not css else f"{value:{form}}")
        fields.append(Fields(shades, texts))
    return Chart(
        labels=tuple(labels), columns=tuple(columns), rows=fields, **chart_fields
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
    """Charts of GPU memory and of the container's, each if it was sampled.

    Of many cases, one chart is enough.
    """
    gpu, host = [curve.gpu for curve in curves], [curve.host for curve in curves]
    charts: list[Chart] = []
    if any(gpu):
        charts.append(_memory_chart(curves, gpu, "GPU memory over time"))
    if any(host) and (len(curves) <= MANY_ROWS or not charts):
        title = "Memory of the container over time"
        charts.append(_memory_chart(curves, host, title))
    return charts


def _memory_chart(
    curves: Sequence[MemoryCurve], rows: Sequence[tuple[Point, ...]], title: str
) -> Chart:
    """An area for each case, all on the same two scales."""
    points = list(chain.from_iterable(rows))
    highest = max((mb for _, mb in points), default=0)
    axis = linear_axis([t / 100 for t, _ in points])
    marks: list[Mark] = []
    cells = []
    for row in rows:
        steps = [(axis.scale(t / 100), mb / (highest or 1)) for t, mb in row]
        marks.append(Steps(steps) if row else Says())
        cells.append(_memory_cells(row))
    heads = ("last sample (s)", "highest (MB)", "first at (s)")
    cases = tuple(map(attrgetter("case"), curves))
    columns = (
        Column("case", cases, is_text=True),
        *map(Column, heads, zip(*cells, strict=True)),
        Column("samples", map(attrgetter("samples"), curves)),
    )
    used = "none was used."
    if highest:
        used = f"every row is as high as {highest} MB, the most of any."
    return Chart(
        title=title,
        note=f"In seconds; {used}",
        summary=f"{count(len(rows), 'curve')}; the most is {highest} MB",
        labels=cases,
        rows=marks,
        axis=axis.ticks,
        table=table_of(title, columns),
    )


def _memory_cells(points: Sequence[Point]) -> tuple[Cell, str, Cell]:
    """When a curve ends, its highest point, and when that was reached first."""
    if not points:
        return number_cell(None), NO_RESULT, number_cell(None)
    last, _ = points[-1]
    first, highest = max(points, key=lambda point: point[1])
    return (
        number_cell(last / 100, decimals=1),
        str(highest),
        number_cell(first / 100, decimals=1),
    )
