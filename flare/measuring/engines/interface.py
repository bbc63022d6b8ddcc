"""The interface of what runs containers, and the list of engines that fill it.

An engine is a module of its own, and a line in `ENGINES`. Everything that it has to be
told, and what its answers mean, stands there and nowhere else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from flare.common.errors import EngineError
from flare.common.options import option
from flare.common.text import listing
from flare.results.limits import Limits
from flare.results.measurement_json import DOCKER, EngineRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How a container is to be made."""

    image: str
    """ID of its image."""
    label: str
    """All that belongs to a measurement is found by it."""
    limits: Limits
    reads: tuple[tuple[str, str], ...]
    """Folders of this computer, and where it has them: nothing can be written there."""
    writes: tuple[str, str]
    """A volume, and where it has it."""
    environment: tuple[str, ...] = ()
    """Variables that replace those of the image, as NAME=VALUE."""
    command: tuple[str, ...] = ()
    """The words that are run; empty for what the image itself starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a container has ended, as its engine tells it."""

    exit_code: int = 0
    runtime_s: float | None = None
    """Seconds by the engine's own clock, which may be set while it runs."""
    is_out_of_memory: bool = False
    problem: str = ""
    """Why the engine could not run it; empty if it could."""


ENGINES = {DOCKER: "flare.measuring.engines.docker:Docker"}
"""Modules and classes of engines; a module is loaded when its engine is used."""

ANSWER_S = 120.0
"""An engine that has not answered for this time will not."""


class NoAnswerError(EngineError):
    """An engine has not answered in time; it may go on with what it was asked for."""


class NotRemovedError(EngineError):
    """An engine has answered, but not removed what it was told to."""


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


class Engine(Protocol):
    """A program that runs containers.

    A method raises an EngineError if the engine does not answer, or cannot do what it
    is asked for. One that removes something is content if that is not there.
    """

    def describe(self) -> EngineRecord:
        """Versions and settings, for the record; an error if no engine answers."""

    def busy_s(self) -> float | None:
        """Seconds that its own processes have worked; None if they cannot be seen."""

    def folder(self) -> Path | None:
        """The folder of its files; None if it is not on this computer."""

    def tags_of(self, *names: str) -> dict[str, frozenset[str]]:
        """All tags of images, by the IDs of those that are there.

        Names are tags, or IDs behind ``sha256:``.
        """

    def import_image(self, content: bytes, tag: str) -> str:
        """Make an image of a tar file of its file system; returns its ID."""

    def begin_load(self) -> subprocess.Popen[bytes]:
        """Begin to load what ``docker save`` writes; its stderr is for `load_error`."""

    def load_error(self, stderr: bytes) -> tuple[EngineError, bool | None]:
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

    def exit_of(self, container: str) -> Exit:
        """How a container has ended."""

    def log(self, container: str) -> bytes:
        """The end of what a container has written to stdout and stderr."""

    def written_bytes(self, container: str) -> int:
        """Bytes that a container has written to its layer; 0 if they are not known."""

    def remove_container(self, container: str) -> None:
        """Remove a container by force; an error if it is still there afterwards."""

    def make_volume(self, label: str, size: str, files: int) -> str:
        """Make a volume in memory, which vanishes with the last container that has it.

        It takes no more bytes than its size, such as 4g, and no more files and folders;
        no devices, nor programs that change the user.
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
        """Remove all containers and volumes with a label, or raise NotRemovedError."""

    def guard_command(
        self,
        label: str,
        tags: Sequence[str],
        images: Sequence[str],
        work: Path,
        times_s: Sequence[float],
    ) -> tuple[str, ...]:
        """A command that removes everything when its parent was killed.

        It waits for the end of its standard input; a line "done" there says that there
        is nothing to remove. What its starter still had asked the engine to do may be
        done only then: so it looks again until nothing was there three times, and for
        longer while ``work/loading`` tells that an image is being loaded. If something
        may remain in the end, it fails. It needs nothing of Python, nor any file that
        may be gone. Images are IDs of those that may have no tag yet. The times are
        that between two looks, that in which an image may still come, that of the
        engine for a command, and that in which all ends.
        """
