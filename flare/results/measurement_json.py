"""Writes down what may matter when values are questioned: host, driver, limits."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flare.common.files import write_whole
from flare.common.machine import available_bytes, available_cpus
from flare.common.text import safe
from flare.common.version import __version__, source_commit
from flare.results.errors import MeasurementError

RECORD = "measurement.json"
"""In the folder of a team."""


class Record:
    """The record of a team, which a measurement that goes on adds to.

    Parameters
    ----------
    file : Path
        Where it is, or will be.
    settings : mapping
        What must not change while a team is measured.
    former : mapping, optional
        Settings that records of earlier versions have in the place of new ones.

    Raises
    ------
    MeasurementError
        If it is there, and has other settings.
    """

    def __init__(
        self,
        file: Path,
        settings: Mapping[str, Any],
        former: Mapping[str, Any] | None = None,
    ) -> None:
        self._file, self._settings = file, dict(settings)
        self._sessions: list[Any] = []
        if not file.exists():
            return
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            before = dict(content["settings"])
            self._sessions = list(content["sessions"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = "it is not what this program has written"
            raise MeasurementError(str(file), problem) from error
        found = dict(settings)
        for name, value in (former or {}).items():
            if name in before:
                # What was read then is not known: it has to be the same file.
                found = {n: v for n, v in found.items() if n in before} | {name: value}
        for name, value in found.items():
            if before.get(name) != value:
                was, now = safe(str(before.get(name))), safe(str(value))
                problem = f"the team was measured with {name} {was}, now it is {now}"
                remedy = "Measure it as before, or all anew with another --output."
                if former and name in former:
                    remedy += " What is measured can be scored anew: flare rescore."
                raise MeasurementError(str(file), problem, remedy)

    def add(self, session: Mapping[str, Any]) -> None:
        """Add what a measurement was made with; the file is whole or as before.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        program = {"version": __version__, "commit": source_commit()}
        self._sessions.append({"time": now, **program, **session})
        content = {"settings": self._settings, "sessions": self._sessions}
        write_whole(self._file, json.dumps(content, indent=2) + "\n")


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
