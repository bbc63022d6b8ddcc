"""Keeps in measurement.json how a team was measured, for when values are questioned."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flare.common.files import read_regular, write_whole
from flare.common.installation import __version__, source_commit
from flare.common.text import listing, safe
from flare.results.errors import MeasurementError

MEASUREMENT_JSON = "measurement.json"
"""In the folder of a team."""


OF_HOST = ("gpu", "processor", "cpus")
"""Settings that another computer, or another GPU, may change."""


DEFAULTS = {
    "contract": "flare",
    "model_sha256": "none",
    "container_engine": "docker",
}
"""Settings that the file has only where they are others; earlier versions could run
containers by Apptainer, too."""


ACCEPT = "--unlike-host REASON"
"""Accepts that."""


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
    accepted : collection of str
        Settings that may have changed all the same: the file keeps what it has.

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
        accepted: Collection[str] = (),
    ) -> None:
        self.file, self._settings = file, dict(settings)
        self._sessions: list[Any] = []
        self.unlike: list[str] = []
        """Settings that have changed, as they were accepted."""
        if not file.exists():
            return
        try:
            content = json.loads(read_regular(file))
            before = {**DEFAULTS, **content["settings"]}
            self._sessions = list(content["sessions"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = "it is not what this program has written"
            raise MeasurementError(str(file), problem) from error
        found = {**DEFAULTS, **settings}
        for name, value in (former or {}).items():
            if name in before:
                # What was read then is not known: it has to be the same file.
                found = {n: v for n, v in found.items() if n in before} | {name: value}
        for name, value in found.items():
            if before.get(name) != value:
                was, now = safe(str(before.get(name))), safe(str(value))
                is_host = name in OF_HOST and _is_there(name, before.get(name), value)
                if is_host and name in accepted:
                    self._settings[name] = before.get(name)
                    self.unlike.append(f"{name} is {now} instead of {was}")
                    continue
                problem = f"the team was measured with {name} {was}, now it is {now}"
                remedy = "Measure it as before, or all anew with another --output."
                if is_host:
                    remedy += f" Or accept it: {ACCEPT}."
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
        self._write()

    def _write(self) -> None:
        """Write the file."""
        content = {"settings": self._settings, "sessions": self._sessions}
        write_whole(self.file, json.dumps(content, indent=2) + "\n")


def _is_there(name: str, *values: Any) -> bool:
    """Whether there is a GPU both times, if it is about GPUs."""
    return name != "gpu" or all(values)


# --- Reading it, to rank ----------------------------------------------------------

COMPARED = (
    *("timeout_s", "memory", "shm_size", "processes", "gpu", "interval_s"),
    *("repeats", "images_sha256", "processor", "caches", "cpus", "runtime"),
    *("output_size", "disk_bytes", "max_gpu_memory", "lanes", "contract"),
    "container_engine",
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
    unlike: tuple[str, ...] = ()
    """In what computers were unlike, or changed, and why that was accepted."""


def read_settings(file: Path) -> dict[str, Any] | None:
    """The settings by which a team was measured; None if that is not known."""
    try:
        return dict(json.loads(read_regular(file))["settings"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_measurement(file: Path) -> Measurement:
    """Read how a team was measured; empty if another program wrote the file."""
    settings: dict[str, str] = {}
    made_with: dict[str, str] = {}
    noise_s = None
    sessions: list[Any] = []
    with suppress(
        *(OSError, ValueError, KeyError, TypeError, AttributeError, IndexError),
        RecursionError,
    ):
        content = json.loads(read_regular(file))
        for name in COMPARED:
            if name in content["settings"]:
                settings[name] = str(content["settings"][name])
        sessions = [s for s in content["sessions"] if isinstance(s, dict)]
        session = content["sessions"][-1]
        made_with |= _made_with(session)
        cost = session["engine_cost_s"]
        noise_s = float(cost["largest"]) - float(cost["smallest"])
    return Measurement(
        settings=settings,
        made_with=made_with,
        noise_s=noise_s,
        unlike=tuple(text for session in sessions for text in _unlike(session)),
    )


def _unlike(session: Mapping[str, Any]) -> Iterator[str]:
    """In what a computer was unlike, or changed, as it was accepted."""
    unlike = session.get("unlike")
    if isinstance(unlike, dict) and isinstance(unlike.get("found"), list):
        for text in unlike["found"]:
            yield f"{text} (accepted: {unlike.get('reason')})"


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


def unlike_notes(teams: Mapping[str, Measurement]) -> tuple[str, ...]:
    """What is not the same of the computers that teams were measured on, in lines.

    Parameters
    ----------
    teams : mapping of str to Measurement
        How each team was measured.
    """
    devices = {
        team: own.made_with["device"]
        for team, own in teams.items()
        if "device" in own.made_with
    }
    notes = [
        f"{safe(team)} was not measured on one steady computer: {safe(text)}"
        for team, found in teams.items()
        for text in found.unlike
    ]
    if len(set(devices.values())) > 1:
        both = listing(f"{team} {device}" for team, device in devices.items())
        notes.insert(0, f"Teams were measured with different device: {both}")
    return tuple(notes)
