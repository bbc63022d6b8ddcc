"""A lane: a GPU, processors and memory that one team at a time is measured on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flare.common.text import safe
from flare.measuring.container_command import Limits
from flare.measuring.sampling.nvml import Device
from flare.results.errors import MeasurementError


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one container at a time has for itself."""

    host: str
    """Name of its computer."""
    number: int
    """Among the lanes of its computer, from 0."""
    of: int
    """So many lanes its computer has: what runs side by side is slower."""
    processor: str
    """Name of the processor."""
    cpus: tuple[int, ...]
    """Numbers of its processors."""
    spare: tuple[int, ...]
    """Processors that no lane has: for the engine and the samplers."""
    gpu: Device | None
    limits: Limits
    """Of its containers, with these processors and this GPU."""

    @property
    def name(self) -> str:
        """It, for messages."""
        return f"{safe(self.host)}, lane {self.number}"

    def settings(self) -> dict[str, Any]:
        """What must not change while a team is measured: of which kind its lane is.

        A team may go on on another lane of the same kind.
        """
        count = len(self.cpus)
        return {
            "gpu": self.gpu.name if self.gpu else "",
            "processor": self.processor,
            "cpus": f"{count} processor{'s' if count > 1 else ''}",
            "memory": self.limits.memory,
            "lanes": self.of,
        }

    def record(self) -> dict[str, Any]:
        """Which lane it is, for the record."""
        return {
            "host": self.host,
            "number": self.number,
            "lanes": self.of,
            "gpu": self.gpu.uuid if self.gpu else "",
            "cpus": self.limits.cpus,
            "memory": self.limits.memory,
        }


def unlike(
    lane: Lane, settings: Mapping[str, Any], accepted: Collection[str] = ()
) -> str:
    """What a lane has otherwise than these settings; empty if nothing.

    Of the accepted settings, nothing is said.
    """
    for name, value in lane.settings().items():
        if name not in accepted and settings.get(name) != value:
            was, now = safe(str(settings.get(name))), safe(str(value))
            return f"{name} {now or 'none'}, not {was or 'none'}"
    return ""


def check_alike(lanes: Sequence[Lane]) -> None:
    """See that times of all lanes can be compared.

    Raises
    ------
    MeasurementError
        If two are of other kinds.
    """
    first, *others = lanes
    for lane in others:
        other = unlike(lane, first.settings())
        if other:
            problem = f"it has {other} as {first.name}"
            remedy = "Times of unlike lanes cannot be compared: leave one out."
            raise MeasurementError(lane.name, problem, f"{remedy} Or --unlike-lanes.")
