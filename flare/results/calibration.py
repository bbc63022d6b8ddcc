"""Says how fast a computer was, and whether another one is like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf
from statistics import median
from typing import Any, Self

from flare.common.text import safe

FLAGGED = {"integers": 1.10, "memory": 1.50}
"""So many times as long, or as short, each kind of work may take before a ranking says
so. On a computer with two processors and a load of 14 to 23, 30 calibrations lay apart
by a factor of 1.02 and of 1.44: benchmarks/calibrations.md."""

REFUSED = {"integers": 1.25, "memory": 2.00}
"""And before a team is not measured any further: this costs more than a look. A
processor changes its clock, and its memory has less to give, with how many others
work beside it."""

VERBS = {"integers": "take", "memory": "takes"}
"""What each kind of work does in a sentence."""

GPU_SETTINGS = ("name", "max_sm_clock_mhz", "max_memory_clock_mhz", "power_limit_w")
"""What has to be equal for GPUs to count as alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Processor time of one kind of work, in seconds, over all rounds."""

    median: float
    smallest: float
    """The one that counts: whatever else is done can only make a round longer."""
    largest: float

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Self:
        """Those of some rounds; whole microseconds."""
        found = (median(rounds), min(rounds), max(rounds))
        middle, least, most = (round(seconds, 6) for seconds in found)
        return cls(median=middle, smallest=least, largest=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpeed:
    """What decides how fast a GPU can be, and its state; None where not told."""

    name: str = ""
    max_sm_clock_mhz: float | None = None
    max_memory_clock_mhz: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    """At that moment, while nothing is computed: not compared."""
    temperature_c: float | None = None
    is_throttled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How fast a computer was at one moment."""

    integers: Times | None = None
    memory: Times | None = None
    gpu: GpuSpeed | None = None
    problem: str = ""
    """Why there are no times; empty if there are."""

    @property
    def times(self) -> Mapping[str, Times]:
        """Those that are known, by kind of work."""
        both = {"integers": self.integers, "memory": self.memory}
        return {kind: own for kind, own in both.items() if own}

    def to_json(self) -> dict[str, Any]:
        """It, as measurement.json has it."""
        return {
            "integers_s": asdict(self.integers) if self.integers else None,
            "memory_s": asdict(self.memory) if self.memory else None,
            "gpu": asdict(self.gpu) if self.gpu else None,
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """What a file has; empty where that is not what this program writes."""
        found = content if isinstance(content, dict) else {}
        return cls(
            integers=_times(found.get("integers_s")),
            memory=_times(found.get("memory_s")),
            gpu=_gpu(found.get("gpu")),
            problem=str(found.get("problem") or ""),
        )


def _times(content: Any) -> Times | None:
    """Times of a file; None if they are no positive numbers."""
    if not isinstance(content, dict):
        return None
    values = [content.get(field.name) for field in fields(Times)]
    found = [v for v in values if isinstance(v, float) and 0 < v < inf]
    if len(found) < len(values):
        return None
    middle, least, most = found
    return Times(median=middle, smallest=least, largest=most)


def _gpu(content: Any) -> GpuSpeed | None:
    """The GPU of a file."""
    if not isinstance(content, dict):
        return None
    return GpuSpeed(
        **{f.name: content[f.name] for f in fields(GpuSpeed) if f.name in content}
    )


def calibrations_of(session: Mapping[str, Any]) -> tuple[Calibration, Calibration]:
    """What a session of measurement.json has: before the team's cases, and behind.

    They are empty where it has none.
    """
    found = session.get("calibration")
    both = found if isinstance(found, dict) else {}
    before, after = (Calibration.from_json(both.get(n)) for n in ("before", "after"))
    return before, after


# --- Comparing --------------------------------------------------------------------


def ratios(usual: Calibration, other: Calibration) -> Mapping[str, float]:
    """How many times as long each kind of work takes on the other computer.

    Empty if one of them has no times.
    """
    return {
        kind: other.times[kind].smallest / before.smallest
        for kind, before in usual.times.items()
        if kind in other.times
    }


def is_beyond(bound: float, ratio: float) -> bool:
    """Whether work takes too much longer, or shorter.

    Examples
    --------
    >>> is_beyond(1.1, 1.11), is_beyond(1.1, 1 / 1.11), is_beyond(1.1, 1 / 1.09)
    (True, True, False)
    """
    return max(ratio, 1 / ratio) > bound


def find_unlike(
    usual: Calibration, other: Calibration, bounds: Mapping[str, float] = REFUSED
) -> tuple[str, ...]:
    """In what another computer is unlike the usual one; empty if in nothing.

    Only what both of them tell is compared.

    Parameters
    ----------
    usual, other : Calibration
        Of the two, or of one at two moments.
    bounds : mapping of str to float
        `REFUSED`, or `FLAGGED`.

    Returns
    -------
    tuple of str
        Words of a sentence.

    Examples
    --------
    >>> slow = Times(median=0.03, smallest=0.03, largest=0.04)
    >>> fast = Times(median=0.02, smallest=0.02, largest=0.02)
    >>> find_unlike(Calibration(integers=fast), Calibration(integers=slow))
    ('integers take 1.50 times as long',)
    """
    times = [
        f"{kind} {VERBS[kind]} {ratio:.2f} times as long"
        for kind, ratio in ratios(usual, other).items()
        if is_beyond(bounds[kind], ratio)
    ]
    return (*times, *_unlike_gpus(usual.gpu, other.gpu))


def _unlike_gpus(usual: GpuSpeed | None, other: GpuSpeed | None) -> Iterator[str]:
    """Settings of GPUs that differ."""
    for name in GPU_SETTINGS if usual and other else ():
        was, now = getattr(usual, name), getattr(other, name)
        if was is not None and now is not None and was != now:
            yield f"{name} of the GPU is {safe(str(now))} instead of {safe(str(was))}"


def changes_of(
    session: Mapping[str, Any], bounds: Mapping[str, float] = REFUSED
) -> tuple[str, ...]:
    """In what a computer was unlike after a session of measurement.json."""
    found = find_unlike(*calibrations_of(session), bounds)
    return tuple(f"{text} afterwards" for text in found)
