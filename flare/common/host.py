"""Describes this computer, for when values that were measured on it are questioned."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from flare.common.machine import available_bytes, available_cpus


def describe_host() -> dict[str, Any]:
    """The computer that a measurement is made on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "cpus_available": available_cpus(),
        "memory_mb": available_bytes() >> 20,
        "python": platform.python_version(),
    }


def _processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line[:10] == "model name"),
        platform.processor(),
    )
