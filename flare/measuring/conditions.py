"""Says under which conditions containers are run: limits, caches, sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

from flare.measuring.container_command import Limits
from flare.measuring.contract import FLARE, Contract
from flare.measuring.host import Caches
from flare.measuring.sampling.nvml import MemorySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which all containers of a measurement are run."""

    limits: Limits = field(default_factory=Limits)
    """What a container may use."""
    interval_s: float = 0.1
    """Between two samples, as in the official scripts."""
    caches: Caches = Caches.WARM
    """What a run finds in the memory of the computer."""
    gpu: MemorySource | None = None
    """What is sampled of the GPU of the limits."""
    own_cpus: tuple[int, ...] = ()
    """Where other containers run beside these, processors that those have not."""
    contract: Contract = FLARE
    """Where they read and write, and how they are started."""
