"""What runs containers, as the kit sees it: an interface, and the engines that fill it.

An engine is a module of its own, and a line in `ENGINES`. Everything that it has to be
told, and what its answers mean, stands there and nowhere else. The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_words`, with a reason for each flag.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

from flare.common.errors import EngineError
from flare.common.options import option, seconds
from flare.common.schema import OMIT, Count, Is, Length, Positive, Text
from flare.common.text import listing

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""What root in a container may do beyond other users: use all files of its image, and
be another user. The rest of Docker's fourteen, such as making devices and raw packets,
is not needed to predict."""


def size(text: str) -> str:
    """A size as Docker takes it."""
    if not re.fullmatch(r"[1-9]\d{0,9}[bkmg]?", text):
        raise ValueError(f"{text!r} is not a size such as 28g or 512m")
    return text


def size_bytes(text: str) -> int:
    """A size as Docker takes it, in bytes.

    Examples
    --------
    >>> size_bytes("512"), size_bytes("2k"), size_bytes("28g") >> 30
    (512, 2048, 28)
    """
    unit = "bkmg".find(size(text)[-1])
    return int(text.rstrip("bkmg")) << 10 * max(unit, 0)


def processors(text: str) -> str:
    """Numbers of processors as Docker takes them; empty for all."""
    if text == "all":
        return ""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise ValueError(f"{text!r} are no numbers of processors such as 1-7 or 0,2")
    return text


@dataclass(frozen=True, slots=True)
class Setting:
    """What is said of a setting besides its value."""

    is_of_host: bool = False
    """Whether another computer, or another GPU, may change it."""
    absent: str = ""
    """What it is where the file does not have it."""
    is_compared: bool = True
    """Whether it should be equal for all teams."""


def setting(*, default: Any = MISSING, **said: Any) -> Any:
    """A field of which something is to be said; not written where it is the default."""
    found = {"setting": Setting(**said)}
    if default is MISSING:
        return field(metadata=found)
    return field(default=default, metadata={**found, **OMIT})


def limit(help: str, *, default: Any, is_of_host: bool = False, **more: Any) -> Any:
    """An option that is a limit of a container, and a setting of its measurement."""
    told = option(help, default=default, title="Limits of a container", **more)
    about = {**told.metadata, "setting": Setting(is_of_host=is_of_host)}
    return field(default=default, metadata=about)


NO_GPU = "none"
"""What is asked for instead of a GPU; an empty text is a GPU that nobody has named."""

MEMORY = "28g"
"""FLARE23's limit of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use: as it is asked for, or as it is on one computer.

    Below each is what measurement.json means by it, in which they are settings.
    """

    gpu: str = limit(
        "Give it this GPU, as nvidia-smi counts (default: none).",
        default=NO_GPU,
        is_of_host=True,
        metavar="INDEX|UUID|none",
    )
    """UUID of the GPU; empty without one. With several lanes, its name: a team may go
    on on another one of that kind."""
    timeout_s: Length = limit(  # FLARE22 counts a container as stuck after an hour
        "End it after S seconds on a case (default: 3600).",
        default=3600.0,
        parse=seconds,
        metavar="S",
    )
    """Time limit of a case, in s."""
    memory: Text = limit(  # swap is not added
        "Give it so much memory of the host, such as 28g (default: 28g).",
        default="",
        parse=size,
        metavar="SIZE",
    )
    """Memory that a container may use, as Docker writes it; swap is not added."""
    shm_size: Text = limit(  # FLARE23's
        "Give it so much memory of /dev/shm, such as 28g (default: 28g).",
        default="28g",
        parse=size,
        metavar="SIZE",
    )
    """Size of /dev/shm, as Docker writes it."""
    output_size: Text = limit(
        "Give it so much of /workspace/outputs, which is in memory (default: 4g).",
        default="4g",
        parse=size,
        metavar="SIZE",
    )
    """Size of /workspace/outputs, or /output, which is in memory, as Docker writes
    it."""
    disk_bytes: Count = limit(
        "Let it write so much anywhere else (default: 64g).",
        default=64 * 2**30,
        parse=size_bytes,
        metavar="SIZE",
    )
    """What a container may write to the disk, in bytes."""
    processes: Positive = 4096
    """Processes that a container may have."""
    cpus: Annotated[str | None, Is(type="string")] = limit(
        "Give it the processors of these numbers, such as 1-7 (default: all; all but"
        " the first one where there are more than two).",
        default=None,
        is_of_host=True,
        parse=processors,
        metavar="LIST|all",
    )
    """Numbers of the processors that it may use, such as 1-7; empty for all. With
    several lanes, how many each has, such as `4 processors`."""
    runtime: str = limit(
        "Run it by this runtime of the engine, such as runsc (default: the engine's).",
        default="",
        metavar="NAME",
    )
    """Runtime of the engine, such as runsc; empty for its default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How a container is to be made."""

    image: str
    """ID of its image."""
    label: str
    """By which all that belongs to a measurement is found."""
    limits: Limits
    reads: tuple[tuple[str, str], ...]
    """Folders of this computer, and where it has them: nothing can be written there."""
    writes: tuple[str, str]
    """A volume, and where it has it."""
    environment: tuple[str, ...] = ()
    """Variables that replace those of the image, as NAME=VALUE."""
    command: tuple[str, ...] = ()
    """What is run; empty for what the image itself starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a container has ended, as its engine tells it."""

    exit_code: int = 0
    runtime_s: float | None = None
    """By the engine's own clock, which may be set while it runs."""
    is_out_of_memory: bool = False
    problem: str = ""
    """Why the engine could not run it; empty if it could."""


def create_words(container: Container) -> Iterator[str]:
    """The command of Docker that makes a container, without what it runs."""
    limits = container.limits
    # Made first and started later, so that making it is not timed.
    yield "create"
    # So that it is found and removed, even by a later run.
    yield from ("--label", container.label)
    if limits.runtime:
        yield from ("--runtime", limits.runtime)
    # One GPU, or none, whatever the image and the engine have as their defaults; of one
    # that is to be measured, the name is known by now.
    if limits.gpu not in ("", NO_GPU):
        yield from ("--gpus", f'"device={limits.gpu}"')
    else:
        yield from ("--env", "NVIDIA_VISIBLE_DEVICES=void")
    for line in container.environment:
        yield from ("--env", line)
    # Nothing is fetched while time runs, and no image leaves the computer.
    yield from ("--network", "none")
    # FLARE23's memory; without --memory-swap as much swap would be added.
    memory = limits.memory or MEMORY
    yield from ("--memory", memory, "--memory-swap", memory)
    yield from ("--shm-size", limits.shm_size)
    # One processor is left to the engine and the sampler, where there are enough.
    if limits.cpus:
        yield from ("--cpuset-cpus", limits.cpus)
    # One team's runaway processes must not end the others' measurement.
    yield from ("--pids-limit", str(limits.processes))
    # What predicting does not need, an attack could use.
    yield from ("--cap-drop", "ALL")
    for name in CAPABILITIES:
        yield from ("--cap-add", name)
    yield from ("--security-opt", "no-new-privileges")
    yield from ("--ulimit", "core=0:0")
    # The image's own would run beside the prediction, and be timed.
    yield "--no-healthcheck"
    # A log without end must not fill the disk.
    yield from ("--log-driver", "json-file", "--log-opt", "max-size=10m")
    # Read-only: nobody changes the images of others, and no case may leave
    # something behind for the next one.
    for source, place in container.reads:
        yield from ("--volume", f"{source}:{place}/:ro")
    # No folder of the computer: see `make_volume`.
    volume, place = container.writes
    yield from ("--volume", f"{volume}:{place}/")
    yield container.image


# --- The interface ----------------------------------------------------------------

DOCKER = "docker"
"""The engine that is used unless told otherwise."""

ENGINES = {DOCKER: "flare.common.docker:Docker"}
"""Where the engines are; a module is loaded when its engine is used."""

ANSWER_S = 120.0
"""An engine that does not answer for so long will not."""


class NoAnswerError(EngineError):
    """An engine has not answered in time; it may go on with what it was asked for."""


def find_engine(name: str = DOCKER) -> Engine:
    """An engine by its name in `ENGINES`."""
    module, _, kind = ENGINES[name].partition(":")
    engine: Engine = getattr(import_module(module), kind)()
    return engine


def engine_name(text: str) -> str:
    """The name of an engine that is known."""
    if text not in ENGINES:
        raise ValueError(
            f"{text!r} is not {listing(ENGINES, last=' or ')}; Podman is used through"
            " its Docker socket (DOCKER_HOST): leave --engine out"
        )
    return text


def engine_option() -> Any:
    """The engine that containers run in."""
    return option(
        f"Run containers by this engine (default: {DOCKER}).",
        default=DOCKER,
        parse=engine_name,
        is_hidden=True,
    )


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


class Engine(Protocol):
    """What runs containers.

    A method raises an EngineError if the engine does not answer, or cannot do what it
    is asked for. One that removes something is content if that is not there.
    """

    def describe(self) -> EngineRecord:
        """Versions and settings, for the record; an error if no engine answers."""

    def busy_s(self) -> float | None:
        """Seconds that its own processes have worked; None if they cannot be seen."""

    def folder(self) -> Path | None:
        """Where it keeps its files; None if that is not on this computer."""

    def tags_of(self, *names: str) -> dict[str, frozenset[str]]:
        """All tags of images, by the IDs of those that are there.

        Parameters
        ----------
        *names : str
            IDs, behind ``sha256:``, or tags.
        """

    def import_image(self, content: bytes, tag: str) -> str:
        """Make an image of a tar file of its file system; returns its ID."""

    def begin_load(self) -> subprocess.Popen[bytes]:
        """Begin to load what ``docker save`` writes; its stderr is for `load_error`."""

    def load_error(self, said: bytes) -> tuple[EngineError, bool | None]:
        """Why an image could not be loaded, and whether its content is why.

        None if the engine names neither that nor anything of the computer.
        """

    def tag(self, image: str, tag: str) -> None:
        """Give an image a tag."""

    def remove_tags(self, *names: str) -> None:
        """Remove tags, and images that have no other one."""

    def remove_untagged(self, *images: str) -> None:
        """Remove images by their IDs, but for those that have a tag."""

    def create(self, container: Container) -> str:
        """Make a container, which is not started yet; returns its ID."""

    def command_line(self, container: Container) -> str:
        """How a container is made, for the record."""

    def start(self, container: str) -> subprocess.Popen[bytes]:
        """Start a container: the process ends when the container does."""

    def kill(self, container: str) -> None:
        """End a container, if it still runs."""

    def ended(self, container: str) -> Ended:
        """How a container has ended."""

    def log(self, container: str) -> bytes:
        """The end of what a container has written to stdout and stderr."""

    def written_bytes(self, container: str) -> int:
        """What a container has written to its own layer; 0 if that is not known."""

    def remove_container(self, container: str) -> None:
        """Remove a container by force; an error if it is still there afterwards."""

    def make_volume(self, label: str, size: str, files: int) -> str:
        """Make a volume in memory, which vanishes with the last container that has it.

        Parameters
        ----------
        label : str
            See `Container`.
        size : str
            It takes no more bytes, such as 4g,
        files : int
            and no more files and folders; no devices, nor programs that change the
            user.
        """

    def hold_volume(
        self, volume: str, at: str, label: str, image: str, command: Sequence[str]
    ) -> str:
        """Start a container that does nothing but hold a volume; returns its ID."""

    def copy_out(self, container: str, folder: str) -> subprocess.Popen[bytes]:
        """Begin to write what is in a folder of a container as a tar file to stdout."""

    def remove_volume(self, volume: str) -> None:
        """Remove a volume that no container has."""

    def remove_labelled(self, label: str) -> None:
        """Remove all containers and volumes with a label; an error if one stays."""

    def guard_command(
        self,
        label: str,
        tags: Sequence[str],
        images: Sequence[str],
        work: Path,
        *,
        pause_s: float,
        loading_s: float,
    ) -> tuple[str, ...]:
        """A command that removes everything when its parent was killed.

        It waits for the end of its standard input; a line "done" there says that there
        is nothing to remove. What its starter still had asked the engine to do may be
        done only then: so it looks again until nothing was there three times, and for
        longer while ``work/loading`` tells that an image is being loaded. It needs
        nothing of Python, nor any file that may be gone.

        Parameters
        ----------
        label : str
            Of containers and volumes.
        tags, images : sequence of str
            Of images, and IDs of those that may have no tag yet.
        work : Path
            A folder.
        pause_s, loading_s : float
            Seconds between two looks, and for how long an image may still come.
        """
