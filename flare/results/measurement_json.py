"""Keeps in measurement.json how a team was measured, for when values are questioned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flare.common.files import write_whole
from flare.common.text import safe
from flare.common.version import __version__, source_commit
from flare.results.errors import MeasurementError

MEASUREMENT_JSON = "measurement.json"
"""In the folder of a team."""


class MeasurementLog:
    """The file of a team, which a measurement that goes on adds to.

    Parameters
    ----------
    file : Path
        Where it is, or will be.
    settings : mapping
        What must not change while a team is measured.
    former : mapping, optional
        Settings that files of earlier versions have in the place of new ones.

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
        """Add what a measurement was made with; the file is complete or unchanged.

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


# --- Reading it, to rank ----------------------------------------------------------

COMPARED = (
    *("timeout_s", "memory", "shm_size", "processes", "gpu", "interval_s"),
    *("repeats", "images_sha256", "processor", "caches", "cpus", "runtime"),
    *("output_size", "disk_bytes", "max_gpu_memory", "lanes"),
)
"""Settings that should be equal for all teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How a team was measured, as far as its measurement.json tells it."""

    settings: Mapping[str, str]
    """Those of `COMPARED` that the file has."""
    made_with: Mapping[str, str]
    """Device and engine of the last session, as a paper would name them."""
    noise_s: float | None
    """How far the running times of an empty container lay apart."""


def read_settings(file: Path) -> dict[str, Any] | None:
    """The settings by which a team was measured; None if that is not known."""
    try:
        return dict(json.loads(file.read_text(encoding="utf-8"))["settings"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_measurement(file: Path) -> Measurement:
    """Read how a team was measured; empty if another program wrote the file."""
    settings: dict[str, str] = {}
    made_with: dict[str, str] = {}
    noise_s = None
    with suppress(
        *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError),
        RecursionError,
    ):
        content = json.loads(file.read_text(encoding="utf-8"))
        for name in COMPARED:
            if name in content["settings"]:
                settings[name] = str(content["settings"][name])
        session = content["sessions"][-1]
        made_with |= _made_with(session)
        cost = session["engine_cost_s"]
        noise_s = float(cost["largest"]) - float(cost["smallest"])
    return Measurement(settings=settings, made_with=made_with, noise_s=noise_s)


def _made_with(session: Mapping[str, Any]) -> dict[str, str]:
    """What a session was made with, as a paper would name it."""
    gpu, engine = session.get("gpu"), session.get("engine")
    found = {}
    if "gpu" in session:
        found["device"] = "no GPU"
        if isinstance(gpu, dict):
            found["device"] = f"{gpu.get('name')} (driver {gpu.get('driver')})"
    if isinstance(engine, dict) and engine.get("version"):
        found["engine"] = str(engine["version"])
    return found
