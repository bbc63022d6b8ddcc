"""Keeps what was sampled while a container ran in traces/CASE.csv."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from flare.challenge.rules import MaxMemory
from flare.common.files import write_whole
from flare.common.schema import Amount
from flare.common.text import count
from flare.results.csv_rows import cell_types, read_rows, rows_text
from flare.results.errors import RankingError

if TYPE_CHECKING:
    import pandas as pd


TRACES = "traces"
"""Folder of a team with what was sampled of each case, CASE.csv."""

STABLE_SHARE = 0.02
"""FLARE21's and FLARE22's rule, "when the inference is stable" (load_json.py): a value
of the memory counts if it fills more than this part of the samples."""

FEWEST_SAMPLES, LONGEST_GAP = 10, 5
"""With fewer samples, or a gap of more intervals, a peak is easily missed."""

END_GAP_S, END_GAP_SHARE = 1.0, 0.05
"""A trace may end this long, plus this share of the running time, before the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What was sampled while the container of a case ran, a row for each moment; empty
    where something is not measured.
    """  # noqa: D205  a sentence of the public schema

    seconds: Amount
    """Time since the container was started, in s."""
    gpu_memory_mb: float | None = None
    """GPU memory that processes have allocated, total less free less reserved, in MB
    (2^20 bytes)."""
    gpu_total_mb: Amount | None = None
    """All memory of the GPU, in MB (2^20 bytes)."""
    gpu_free_mb: Amount | None = None
    """Its free memory, in MB (2^20 bytes)."""
    gpu_used_mb: Amount | None = None
    """Its used memory as the driver tells it, in MB (2^20 bytes)."""
    gpu_reserved_mb: Amount | None = None
    """What the driver reserves, in MB (2^20 bytes); 0 with a driver that does not
    tell."""
    sm_clock_mhz: Amount | None = None
    """Clock of its processors, in MHz."""
    temperature_c: float | None = None
    """Its temperature, in degrees Celsius."""
    host_memory_mb: Amount | None = None
    """Memory of the container, in MB (2^20 bytes), without files that are only
    cached."""
    cpu_s: Amount | None = None
    """Processor time of the container so far, in s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All samples of a run."""

    samples: tuple[Sample, ...]
    interval_s: float
    """The interval that was asked for."""
    runtime_s: float
    """How long the container ran."""
    idle_mb: float | None = None
    """GPU memory that was allocated before it was started."""
    energy_j: float | None = None
    """Energy that the GPU has taken meanwhile, in J; None where it does not count."""
    strangers: frozenset[int] = frozenset()
    """Other processes that used the GPU."""
    is_throttled: bool = False
    is_blind: bool = False
    """Whether it is unknown which processes are the container's."""
    has_used_gpu: bool = False
    """Whether one of the container's was seen on the GPU."""
    problem: str = ""
    """Why sampling ended before the container."""

    @property
    def gpu_memory_mb(self) -> tuple[tuple[float, float], ...]:
        """Seconds and memory of the samples that have it."""
        return tuple(
            (sample.seconds, sample.gpu_memory_mb)
            for sample in self.samples
            if sample.gpu_memory_mb is not None
        )

    @property
    def mean_interval_s(self) -> float | None:
        """The interval that was achieved; None with fewer than two samples."""
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0].seconds, self.samples[-1].seconds
        return (last - first) / (len(self.samples) - 1)

    @property
    def longest_gap_s(self) -> float:
        """The longest time without a sample, from the start to the end of the run."""
        times = [0.0, *(sample.seconds for sample in self.samples), self.runtime_s]
        return max(later - earlier for earlier, later in pairwise(times))

    @property
    def doubts(self) -> tuple[str, ...]:
        """The reasons to doubt the samples of a GPU; none where it was not sampled."""
        if self.idle_mb is None:
            return ()
        doubts = []
        if len(self.samples) < FEWEST_SAMPLES:
            doubts.append(f"only {count(len(self.samples), 'sample')}")
        if self.longest_gap_s > LONGEST_GAP * self.interval_s:
            doubts.append(f"no sample for {self.longest_gap_s:.1f} s")
        if self.problem:
            doubts.append(self.problem)
        if self.strangers:
            noun = "process" if len(self.strangers) == 1 else "processes"
            doubts.append(f"{len(self.strangers)} other {noun} used the GPU")
        if self.is_blind:
            doubts.append("which processes used the GPU is not known")
        if self.is_throttled:
            doubts.append("the GPU was throttled")
        return tuple(doubts)


def max_memory_mb(values: Sequence[float], rule: MaxMemory) -> tuple[float, bool]:
    """The maximum of a run's samples by a challenge's rule, and whether it is defined.

    The official rule of FLARE21 and FLARE22 takes the largest of the values that,
    exactly, fill more than 2 % of the samples. Where no value is that frequent, the
    official script crashes; here the plain maximum is taken.

    Examples
    --------
    >>> max_memory_mb([0.0] * 96 + [5200.0] * 4, MaxMemory.STABLE)
    (5200.0, True)
    >>> max_memory_mb([0.0] * 98 + [5200.0] * 2, MaxMemory.STABLE)
    (0.0, True)
    """
    if rule is MaxMemory.PLAIN:
        return max(values), True
    counts = Counter(values)
    fewest = STABLE_SHARE * len(values)
    frequent = [value for value, number in counts.items() if number > fewest]
    return (max(frequent), True) if frequent else (max(values), False)


def area(points: Sequence[tuple[float, float]]) -> float:
    """Area under a curve through points of time and height, by trapezoids.

    Examples
    --------
    >>> area([(0.0, 100.0), (0.5, 100.0), (2.0, 300.0)])
    350.0
    """
    return math.fsum(
        (later[0] - earlier[0]) * (earlier[1] + later[1]) / 2
        for earlier, later in pairwise(points)
    )


def write_trace(trace: Trace, file: Path) -> None:
    """Write the samples as a table."""
    write_whole(file, rows_text(Sample, trace.samples))


def area_above(file: Path, tolerance_mb: float, runtime_s: float | None) -> float:
    """Area under the GPU memory above a tolerance, in MB s, by true time stamps.

    A RankingError is raised if the trace cannot be read, or ends before the run, which
    took `runtime_s`.
    """
    points = _points_above(file, tolerance_mb)
    # A sampler that has died has seen no memory: that is no small area.
    end = points[-1][0] if len(points) > 1 else 0.0
    allowed = END_GAP_S + END_GAP_SHARE * (runtime_s or 0.0)
    if len(points) < 2 or (runtime_s is not None and runtime_s - end > allowed):
        problem = f"{count(len(points), 'sample')}, up to {end:.1f} s"
        if runtime_s is not None:
            problem += f" of {runtime_s:.1f} s"
        raise RankingError(str(file), f"{problem}: measure the case again")
    return area(points)


def _points_above(file: Path, tolerance_mb: float) -> list[tuple[float, float]]:
    """The seconds of each sample, and its GPU memory above the tolerance."""
    points: list[tuple[float, float]] = []
    for row in read_rows(file, ("seconds", "gpu_memory_mb")):
        seconds, memory_mb = row.number("seconds"), row.number("gpu_memory_mb")
        if seconds is None or memory_mb is None or (points and seconds < points[-1][0]):
            raise row.error("expected seconds, in order, and the memory in MB")
        points.append((seconds, max(0.0, memory_mb - tolerance_mb)))
    return points


BUCKETS = 60
"""A curve has the lowest and highest sample of this many equal times."""

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
    """The same of the memory of the container."""


def read_curves(folder: Path) -> tuple[MemoryCurve, ...]:
    """The memory of a team's runs over time; of traces as any program has written them.

    A RankingError is raised if a trace cannot be read, or a cell is no number.
    """
    traces = sorted((folder / TRACES).glob("*.csv"), key=lambda file: file.stem)
    return tuple(map(_curve, traces))


def _curve(file: Path) -> MemoryCurve:
    curves: dict[str, list[Point]] = {"gpu_memory_mb": [], "host_memory_mb": []}
    samples = 0
    for row in read_rows(file, ("seconds",)):
        seconds = row.number("seconds")
        if seconds is None:
            continue
        samples += 1
        for name, points in curves.items():
            memory = row.number(name)
            if memory is not None:
                points.append((round(seconds * 100), round(memory)))
    gpu, host = map(thinned, curves.values())
    return MemoryCurve(case=file.stem, samples=samples, gpu=gpu, host=host)


def thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    """The first and last point, and the lowest and highest of each time between.

    Examples
    --------
    >>> thinned([(time, time % 7) for time in range(1000)])[:4]
    ((0, 0), (6, 6), (20, 6), (21, 0))
    """
    if len(points) <= 2 * BUCKETS:
        return tuple(points)
    start, end = points[0][0], points[-1][0]
    width = (end - start) / BUCKETS or 1
    buckets: dict[int, list[Point]] = {}
    for point in points:
        buckets.setdefault(int((point[0] - start) / width), []).append(point)
    extremes = {points[0], points[-1]}
    for bucket in buckets.values():
        extremes |= {min(bucket, key=itemgetter(1)), max(bucket, key=itemgetter(1))}
    return tuple(sorted(extremes))


def read_trace(file: str | Path) -> pd.DataFrame:
    """Read what was sampled while the container of a case ran.

    Parameters
    ----------
    file : str or Path
        A traces/CASE.csv, as ``flare measure`` writes it into the folder of a team.

    Returns
    -------
    DataFrame
        By seconds since the container was started: memory in MB (2^20 bytes), clock,
        temperature and processor time. What was not sampled is NaN.

    Raises
    ------
    RankingError
        If the file cannot be read; the message names the line.
    """
    import pandas as pd

    rows = list(read_rows(Path(file), ("seconds",)))
    columns = [c for c in cell_types(Sample) if not rows or c in rows[0].cells]
    numbers = [[row.number(column) for column in columns] for row in rows]
    return pd.DataFrame(numbers, columns=columns, dtype="float64").set_index("seconds")
