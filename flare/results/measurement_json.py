"""Keeps in measurement.json how a team was measured, for when values are questioned."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from flare.common.environment import __version__, source_commit
from flare.common.files import at, json_at, read_regular, write_whole
from flare.common.schema import (
    Amount,
    Count,
    DateTime,
    Is,
    Length,
    Positive,
    Sha256,
    Text,
)
from flare.common.text import listing, safe
from flare.results.errors import ChangedSettingError, MeasurementError
from flare.results.limits import Limits, Setting, setting

MEASUREMENT_JSON = "measurement.json"
"""In the folder of a team."""

DOCKER = "docker"
"""The engine that is used unless told otherwise."""


# --- Its keys ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Sent:
    """What the settings begin with."""

    archive_sha256: Sha256 = setting(is_compared=False)
    """SHA-256 of the team's archive."""


@dataclass(frozen=True, kw_only=True)
class Settings(Limits, _Sent):
    """What must not change while a team is measured. Going on with other settings is
    refused.
    """  # noqa: D205  a sentence of the public schema

    interval_s: Length
    """Time between two samples that is asked for, in s."""
    repeats: Positive
    """How often each case is run."""
    caches: Literal["cold", "warm"]
    """What a run finds in the memory of the computer: nothing, or what earlier runs
    have left."""
    max_gpu_memory: Literal["stable", "plain"]
    """What counts as the maximum of GPU memory: the largest value that fills more than
    2 % of the samples, or the largest of all."""
    labels: Text = setting(is_compared=False)
    """Labels of the challenge's organs, separated by commas."""
    images_sha256: Sha256
    """SHA-256 over the names and contents of all CT images."""
    processor: str = setting(is_of_host=True)
    """Name of the processor."""
    lanes: Positive = setting(default=None)
    """With several lanes, or on a cluster, how many containers a computer runs at once;
    not there otherwise."""
    contract: Text = setting(default="", absent="flare")
    """How a grand-challenge algorithm was run: `algorithm SLUG=PATH PATH`, by the slug
    and path of its input image and the path of its label map; not there for FLARE's
    way."""
    model_sha256: Sha256 = setting(default="", absent="none", is_compared=False)
    """SHA-256 of the model that was sent beside it; not there without one."""
    container_engine: Text = setting(default="", absent=DOCKER)
    """What has run the containers, such as `apptainer` in files of earlier versions;
    not there for Docker."""


SETTINGS: Mapping[str, Setting] = {
    each.name: each.metadata.get("setting", Setting()) for each in fields(Settings)
}
"""What is said of each, by name."""

OF_HOST = tuple(name for name, each in SETTINGS.items() if each.is_of_host)
"""Settings that another computer, or another GPU, may change."""

DEFAULTS = {name: each.absent for name, each in SETTINGS.items() if each.absent}
"""Settings that the file has only where they are others."""


class MeasurementFile(TypedDict):
    """How a team was measured, for when values are questioned."""

    settings: Settings
    sessions: list[Session]
    """All calls of `flare measure` that have run cases of the team, the oldest
    first."""


class Host(TypedDict):
    """The computer."""

    system: Text
    """Operating system and its release."""
    processor: str
    """Name of the processor."""
    cpus: Positive | None
    """Processors of the computer; null if that is not known."""
    cpus_available: Positive
    """Processors that the program may use."""
    memory_mb: Count
    """Memory that was available, in MB (2^20 bytes)."""
    python: Text
    """Version of Python."""


class Session(TypedDict):
    """One call of `flare measure` that has run at least one case of the team."""

    time: DateTime
    """When it began, in UTC."""
    version: Text
    """Version of the program."""
    commit: Text
    """Commit of the program's source; `unknown` where it is not known."""
    team: Text
    """Name of the team."""
    archive: Text
    """Name of the team's archive, without folders."""
    model: NotRequired[Text]
    """Name of the model that was sent beside it, without folders; not there without
    one."""
    image: Text
    """ID of the image that was run."""
    engine: EngineRecord
    weaknesses: list[str]
    """Walls that the engine lacks."""
    engine_cost_s: EngineCost
    calibration: NotRequired[dict[str, Any]]
    """How fast the computer was; only in files of earlier versions, and no longer
    read."""
    unlike: NotRequired[Unlike | None]
    host: Host
    gpu: Gpu | None
    lane: NotRequired[LaneRecord]
    command: Text
    """The command that made the containers; words in capitals stand for what differs
    between cases."""
    warm_up: bool
    """Whether a first run, if caches are warm, was thrown away."""
    interleaved: bool
    """Whether teams took turns, case by case."""
    doubts: list[str]
    """What is doubtful about the team's archive."""


class EngineRecord(TypedDict):
    """Versions and settings of the engine; empty where it does not tell."""

    version: Text
    """Version of the engine."""
    containerd: str
    """Version of containerd."""
    runc: str
    """Version of runc."""
    nvidia_toolkit: str
    """Version of the NVIDIA container toolkit."""
    runtimes: list[str]
    """Runtimes that it knows."""
    default_runtime: str
    """The runtime that it uses unless told otherwise."""
    security: list[str]
    """Its security options."""
    limits: list[str]
    """What it cannot limit: `memory`, `swap` or `processes`."""
    storage: str
    """Its storage driver."""
    cgroups: str
    """Version of control groups."""
    kernel: str
    """Version of the kernel."""
    system: str
    """Its operating system."""
    folder: str
    """Where it keeps its files."""


class EngineCost(TypedDict):
    """What the engine itself costs: running times of containers that do nothing, in
    s.
    """  # noqa: D205  a sentence of the public schema

    median: Amount
    """The median, in s."""
    smallest: Amount
    """The smallest, in s."""
    largest: Amount
    """The largest, in s."""
    runs: Positive
    """How many such containers were run."""


class Unlike(TypedDict):
    """In what the computer was unlike that of the team's earlier cases, and why that
    was accepted; null if in nothing. Files of earlier versions do not have it.
    """  # noqa: D205  a sentence of the public schema

    reason: Text
    """What was given with `--unlike-host`."""
    found: Annotated[list[str], Is(minItems=1)]
    """What is unlike, each in words of a sentence."""


class Gpu(TypedDict):
    """The GPU; null without one."""

    uuid: Text
    """UUID of the GPU."""
    name: Text
    """Name of the GPU."""
    driver: Text
    """Version of its driver."""
    version: Literal["v1", "v2"]
    """Which call of NVML told the memory: `v2` also tells what the driver reserves."""


class LaneRecord(TypedDict):
    """With several lanes, or on a cluster, the one that has measured the team in this
    session; not there otherwise.
    """  # noqa: D205  a sentence of the public schema

    host: str
    """Name of its computer."""
    number: Count
    """Which lane of its computer it is, from 0."""
    lanes: Positive
    """How many lanes the computer had."""
    gpu: str
    """UUID of its GPU; empty without one."""
    cpus: Text
    """Numbers of its processors."""
    memory: Text
    """Memory of its containers, as Docker writes it."""


# --- Written ----------------------------------------------------------------------


class MeasurementLog:
    """The file of a team, which a measurement that goes on adds to.

    Parameters
    ----------
    file : Path
        Where it is, or will be.
    settings : mapping
        What must not change while a team is measured.
    accepted : collection of str
        Settings that may have changed all the same: the file keeps what it has.

    Raises
    ------
    MeasurementError
        If it is there, but cannot be read.
    ChangedSettingError
        If it has other settings.
    """

    def __init__(
        self,
        file: Path,
        settings: Mapping[str, Any],
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
        for name, value in found.items():
            if before.get(name) != value:
                was, now = safe(str(before.get(name))), safe(str(value))
                has_both = name != "gpu" or (value and before.get(name))
                is_host = name in OF_HOST and has_both
                if is_host and name in accepted:
                    self._settings[name] = before.get(name)
                    self.unlike.append(f"{name} is {now} instead of {was}")
                    continue
                problem = f"the team was measured with {name} {was}, now it is {now}"
                remedy = "Measure it as before, or all anew with another --output."
                if is_host:
                    remedy += " Or accept it: --unlike-host REASON."
                raise ChangedSettingError(str(file), problem, remedy)

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
        write_whole(self.file, json.dumps(content, indent=2) + "\n")


# --- Reading it, to rank ----------------------------------------------------------

_ORDER = (
    *("timeout_s", "memory", "shm_size", "processes", "gpu", "interval_s"),
    *("repeats", "images_sha256", "processor", "caches", "cpus", "runtime"),
    *("output_size", "disk_bytes", "max_gpu_memory", "lanes", "contract"),
    "container_engine",
)
"""In which settings have been named since the first version; others come behind."""

COMPARED = tuple(
    name for name in dict.fromkeys((*_ORDER, *SETTINGS)) if SETTINGS[name].is_compared
)
"""Settings that should be equal for all teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How a team was measured, as far as its measurement.json tells it."""

    settings: Mapping[str, str]
    """Those of `COMPARED` that the file has; and device and engine of the last session,
    as a paper would name them."""
    noise_s: float | None
    """How far the running times of an empty container lay apart."""
    unlike: tuple[str, ...] = ()
    """In what computers were unlike, or changed, and why that was accepted."""


def read_measurement(file: Path) -> Measurement:
    """Read how a team was measured; empty if another program wrote the file."""
    content = json_at(file)
    told, sessions = at(content, "settings"), at(content, "sessions")
    if not isinstance(told, dict) or not isinstance(sessions, list):
        told, sessions = {}, []
    last = at(sessions, -1)
    settings = {name: str(told[name]) for name in COMPARED if name in told}
    if isinstance(last, dict) and "gpu" in last:
        gpu = last["gpu"]
        settings["device"] = "no GPU"
        if isinstance(gpu, dict):
            settings["device"] = f"{gpu.get('name')} (driver {gpu.get('driver')})"
    if version := at(last, "engine", "version"):
        settings["engine"] = str(version)
    noise_s = None
    with suppress(TypeError, ValueError):
        cost = at(last, "engine_cost_s")
        noise_s = float(at(cost, "largest")) - float(at(cost, "smallest"))
    unlike = []
    for own in (at(session, "unlike") for session in sessions):
        texts = at(own, "found")
        if isinstance(texts, list):
            unlike += [f"{text} (accepted: {at(own, 'reason')})" for text in texts]
    return Measurement(settings=settings, noise_s=noise_s, unlike=tuple(unlike))


def by_setting(teams: Mapping[str, Measurement]) -> dict[str, dict[str, str]]:
    """What teams were measured with: by setting, and then by team."""
    found = {
        name: {
            t: own.settings[name] for t, own in teams.items() if name in own.settings
        }
        for name in (*COMPARED, "device", "engine")
    }
    return {name: own for name, own in found.items() if own}


def unlike_teams(teams: Mapping[str, Measurement]) -> Iterator[str]:
    """What is not the same of how teams were measured, and on what, in lines."""
    known = [team for team, own in teams.items() if own.settings]
    for name, found in by_setting(teams).items():
        if name in DEFAULTS:
            found = {**dict.fromkeys(known, DEFAULTS[name]), **found}
        if len(set(found.values())) > 1 and name != "engine":
            both = listing(f"{team} {value}" for team, value in found.items())
            yield f"Teams were measured with different {name}: {both}"
    for team, own in teams.items():
        for text in own.unlike:
            yield f"{safe(team)} was not measured on one steady computer: {safe(text)}"
