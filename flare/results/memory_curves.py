"""Reads memory over time from traces, as it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.results.csv_rows import read_rows
from flare.results.traces_csv import TRACES
from flare.results.values import number

BUCKETS = 60
"""A curve has the lowest and highest sample of so many equal times."""

Point = tuple[int, int]
"""Hundredths of a second since the start, and MB (2^20 bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """The memory of a run over time."""

    case: str
    samples: int
    gpu: tuple[Point, ...]
    """Not all samples, but every peak; empty where no GPU was sampled."""
    host: tuple[Point, ...]
    """Of the container, the same."""


def traced_cases(folder: Path) -> tuple[str, ...]:
    """The cases of a team that have a trace."""
    return tuple(sorted(file.stem for file in (folder / TRACES).glob("*.csv")))


def read_curve(folder: Path, case: str, buckets: int = BUCKETS) -> MemoryCurve:
    """The memory of a team's run over time; of a trace as any program has written it.

    Of so many equal times, the lowest and highest sample are kept.

    Raises
    ------
    RankingError
        If the trace cannot be read, or a cell is no number.
    """
    file = folder / TRACES / f"{case}.csv"
    found: dict[str, list[Point]] = {"gpu_memory_mb": [], "host_memory_mb": []}
    samples = 0
    for where, cells in read_rows(file, ("seconds",)):
        seconds = number(cells["seconds"], file, where)
        if seconds is None:
            continue
        samples += 1
        for name, points in found.items():
            memory = number(cells.get(name, ""), file, where)
            if memory is not None:
                points.append((round(seconds * 100), round(memory)))
    gpu, host = (thinned(points, buckets) for points in found.values())
    return MemoryCurve(case=case, samples=samples, gpu=gpu, host=host)


def thinned(points: Sequence[Point], buckets: int = BUCKETS) -> tuple[Point, ...]:
    """The first and last point, and the lowest and highest of each time between.

    Examples
    --------
    >>> thinned([(time, time % 7) for time in range(1000)])[:4]
    ((0, 0), (6, 6), (20, 6), (21, 0))
    """
    if len(points) <= 2 * buckets:
        return tuple(points)
    start, end = points[0][0], points[-1][0]
    width = (end - start) / buckets or 1
    found: dict[int, list[Point]] = {}
    for point in points:
        found.setdefault(int((point[0] - start) / width), []).append(point)
    kept = {points[0], points[-1]}
    for own in found.values():
        kept |= {min(own, key=_memory), max(own, key=_memory)}
    return tuple(sorted(kept))


def _memory(point: Point) -> int:
    """What is drawn upwards."""
    return point[1]
