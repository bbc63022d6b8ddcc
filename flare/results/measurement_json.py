"""Keeps in measurement.json how a team was measured, for when values are questioned."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    build,
)
from flare.common.text import listing, safe
from flare.results.errors import ChangedSettingError, MeasurementError
from flare.results.limits import Limits, Setting, setting

MEASUREMENT_JSON = "measurement.json"
"""The file in the folder of a team."""

DOCKER = "docker"
"""The engine that is used unless told otherwise."""


# --- Its keys ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Sent:
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
    answers: Text = setting(default="", absent="none", is_compared=False)
    """Files of answers that are kept, with their columns; not there without any."""
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
    field.name: field.metadata.get("setting", Setting()) for field in fields(Settings)
}
"""The remarks on each, by name."""

OF_HOST = tuple(name for name, remarks in SETTINGS.items() if remarks.is_of_host)
"""Settings that another computer, or another GPU, may change."""

DEFAULTS = {
    name: remarks.absent for name, remarks in SETTINGS.items() if remarks.absent
}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasurementKeys:
    """The keys that are read here; a file of a later version may have further ones."""

    settings: Mapping[str, Any]
    sessions: list[Any]


# --- Written ----------------------------------------------------------------------


class MeasurementLog:
    """The file of a team, which a measurement that goes on adds to.

    Settings must not change while a team is measured; of those that are accepted all
    the same, the file keeps what it has. A MeasurementError is raised if it is there,
    but cannot be read. A ChangedSettingError is raised if it has other settings.
    """

    def __init__(
        self, file: Path, settings: Mapping[str, Any], accepted: Collection[str] = ()
    ) -> None:
        self.file, self._settings = file, dict(settings)
        self._sessions: list[Any] = []
        self.unlike: list[str] = []
        """Settings that have changed, as they were accepted."""
        if not file.exists():
            return
        try:
            keys = build(
                _MeasurementKeys, json.loads(read_regular(file)), is_lenient=True
            )
        except (OSError, ValueError) as error:
            problem = "it is not what this program has written"
            raise MeasurementError(str(file), problem) from error
        self._sessions = keys.sessions
        old_settings = {**DEFAULTS, **keys.settings}
        for name, value in {**DEFAULTS, **settings}.items():
            if old_settings.get(name) != value:
                self._change(name, old_settings.get(name), value, name in accepted)

    def _change(self, name: str, old: Any, new: Any, is_accepted: bool) -> None:
        """Keep what the file has of a setting, if another computer may change it."""
        old_text, new_text = safe(str(old)), safe(str(new))
        # A team that was measured with a GPU does not go on without one.
        has_both = name != "gpu" or (new and old)
        may_change = name in OF_HOST and has_both
        if may_change and is_accepted:
            self._settings[name] = old
            self.unlike.append(f"{name} is {new_text} instead of {old_text}")
            return
        problem = f"the team was measured with {name} {old_text}, now it is {new_text}"
        remedy = "Measure it as before, or all anew with another --output."
        if may_change:
            remedy += " Or accept it: --unlike-host REASON."
        raise ChangedSettingError(str(self.file), problem, remedy)

    def add(self, session: Mapping[str, Any]) -> None:
        """Add what a measurement was made with; the file is complete or unchanged."""
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
"""The order of settings since the first version; further ones come behind."""

COMPARED = tuple(
    name for name in dict.fromkeys((*_ORDER, *SETTINGS)) if SETTINGS[name].is_compared
)
"""Settings that should be equal for all teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How a team was measured, as far as its measurement.json tells it."""

    settings: Mapping[str, str]
    """The values of `COMPARED` that the file has; and device and engine of the last
    session, as a paper would name them."""
    noise_s: float | None
    """How far the running times of an empty container lay apart."""
    unlike: tuple[str, ...] = ()
    """How computers were unlike, or changed, and why that was accepted."""


def read_measurement(file: Path) -> Measurement:
    """Read how a team was measured; empty if another program wrote the file."""
    try:
        keys = build(_MeasurementKeys, json_at(file), is_lenient=True)
    except ValueError:
        return Measurement(settings={}, noise_s=None)
    last_session = at(keys.sessions, -1)
    settings = {
        name: str(keys.settings[name]) for name in COMPARED if name in keys.settings
    }
    return Measurement(
        settings={**settings, **_device_and_engine(last_session)},
        noise_s=_noise_s(last_session),
        unlike=tuple(_accepted_changes(keys.sessions)),
    )


def _device_and_engine(session: Any) -> dict[str, str]:
    """The GPU and the engine's version, as far as a session has them."""
    names = {}
    if isinstance(session, dict) and "gpu" in session:
        gpu = session["gpu"]
        names["device"] = "no GPU"
        if isinstance(gpu, dict):
            names["device"] = f"{gpu.get('name')} (driver {gpu.get('driver')})"
    version = at(session, "engine", "version")
    if version:
        names["engine"] = str(version)
    return names


def _noise_s(session: Any) -> float | None:
    """The spread of the engine's own cost in a session; None if it has none."""
    cost = at(session, "engine_cost_s")
    try:
        return float(at(cost, "largest")) - float(at(cost, "smallest"))
    except (TypeError, ValueError):
        return None


def _accepted_changes(sessions: Sequence[Any]) -> Iterator[str]:
    """Each change of the computer, and why it was accepted."""
    for session in sessions:
        unlike = at(session, "unlike")
        changes = at(unlike, "found")
        if isinstance(changes, list):
            for change in changes:
                yield f"{change} (accepted: {at(unlike, 'reason')})"


def by_setting(teams: Mapping[str, Measurement]) -> dict[str, dict[str, str]]:
    """The values of teams that were measured, by setting and then by team."""
    values_by_setting = {}
    for setting_name in (*COMPARED, "device", "engine"):
        values = {
            team: measurement.settings[setting_name]
            for team, measurement in teams.items()
            if setting_name in measurement.settings
        }
        if values:
            values_by_setting[setting_name] = values
    return values_by_setting


def unlike_teams(teams: Mapping[str, Measurement]) -> Iterator[str]:
    """Tell what differs among teams in how, and on what, they were measured."""
    measured_teams = [name for name, team in teams.items() if team.settings]
    for name, values in by_setting(teams).items():
        if name in DEFAULTS:
            values = {**dict.fromkeys(measured_teams, DEFAULTS[name]), **values}
        if len(set(values.values())) > 1 and name != "engine":
            all_values = listing(f"{team} {value}" for team, value in values.items())
            yield f"Teams were measured with different {name}: {all_values}"
    for team, measurement in teams.items():
        for text in measurement.unlike:
            yield f"{safe(team)} was not measured on one steady computer: {safe(text)}"
