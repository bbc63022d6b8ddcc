"""Speaks to Docker, or to Podman, through its command: the one place that calls it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flare.common.errors import EngineError
from flare.common.machine import end_with_parent
from flare.common.text import safe, why

ANSWER_S = 120.0
"""An engine that does not answer for so long will not."""

LOG_LINES = 20_000
"""Of a longer log, so many lines at its end are asked for."""

_LIMITS = {"MemoryLimit": "memory", "SwapLimit": "swap", "PidsLimit": "processes"}
"""What an engine can say that it limits."""


class Engine:
    """Docker, or what stands in for it, through its command.

    Parameters
    ----------
    program : str
        Name or path of the command.
    """

    def __init__(self, program: str = "docker") -> None:
        self.program = program
        self._folder: Path | None = None

    # --- Asking -------------------------------------------------------------------

    def is_installed(self) -> bool:
        """Whether there is such a command."""
        return shutil.which(self.program) is not None

    def begin(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Begin a command of the engine, and do not wait for it.

        Parameters
        ----------
        *arguments : str
            The command.
        stdin, stdout, stderr : int
            As in `subprocess.Popen`; nothing is read or kept unless told.
        """
        return subprocess.Popen(
            [self.program, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=_end_with_us(),
        )

    def run(
        self,
        *arguments: str,
        timeout_s: float | None = ANSWER_S,
        content: bytes = b"",
        stderr: int = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the engine, whether it fails or not.

        Parameters
        ----------
        *arguments : str
            The command.
        timeout_s : float or None
            It is killed after this time; None if it may take for ever.
        content : bytes
            What it can read.
        stderr : int
            As in `subprocess.run`.

        Raises
        ------
        EngineError
            If there is no such engine, or it does not answer.
        """
        try:
            return subprocess.run(
                [self.program, *arguments],
                input=content,
                stdout=subprocess.PIPE,
                stderr=stderr,
                check=False,
                timeout=timeout_s,
                preexec_fn=_end_with_us(),
            )
        except OSError as error:
            raise EngineError(
                f"{safe(self.program)}: it cannot be run ({why(error)})",
                "Install Docker, and start it.",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise EngineError(
                f"{self.program} {arguments[0]}: no answer for {timeout_s:.0f} s",
                "Restart Docker, and go on.",
            ) from error

    def call(
        self,
        *arguments: str,
        check: bool = True,
        timeout_s: float = ANSWER_S,
        content: bytes = b"",
    ) -> str:
        """What a command of the engine prints.

        Parameters
        ----------
        *arguments : str
            The command.
        check : bool
            Whether it is an error if it fails.
        timeout_s : float
            It is killed after this time.
        content : bytes
            What it can read.

        Raises
        ------
        EngineError
            If it fails, or does not answer.
        """
        run = self.run(*arguments, timeout_s=timeout_s, content=content)
        if run.returncode and check:
            raise self.failure(run.stderr, arguments[0])
        return run.stdout.decode("utf-8", "replace").strip()

    def failure(self, stderr: bytes, command: str) -> EngineError:
        """The error of a command that has failed, by the first line that it wrote."""
        lines = stderr.decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in lines if line.strip()), "")
        problem = f"{self.program} {command}: {safe(said)}"
        return EngineError(problem, "See that Docker runs, and that you may use it.")

    def describe(self) -> dict[str, Any]:
        """Versions and settings of the engine, for the record.

        ``limits`` names what it cannot limit.

        Raises
        ------
        EngineError
            If it does not answer.
        """
        info = self._info()
        if not info.get("ServerVersion"):
            raise EngineError(
                f"{self.program}: no engine answers",
                "Start Docker, and see that you may use it.",
            )
        server = _table(
            self.call("version", "--format", "{{json .Server}}", check=False)
        )
        parts = {
            str(part.get("Name", "")).lower(): str(part.get("Version", ""))
            for part in server.get("Components") or []
        }
        return {
            "version": str(info["ServerVersion"]),
            "containerd": parts.get("containerd", ""),
            "runc": parts.get("runc", ""),
            "nvidia_toolkit": _toolkit_version(),
            "runtimes": sorted(info.get("Runtimes") or {}),
            "default_runtime": str(info.get("DefaultRuntime", "")),
            "security": [str(option) for option in info.get("SecurityOptions") or []],
            "limits": [what for key, what in _LIMITS.items() if not info.get(key)],
            "storage": str(info.get("Driver", "")),
            "cgroups": str(info.get("CgroupVersion", "")),
            "kernel": str(info.get("KernelVersion", "")),
            "system": str(info.get("OperatingSystem", "")),
            "folder": str(info.get("DockerRootDir", "")),
        }

    def folder(self) -> Path | None:
        """Where the engine keeps its files; None if that is not on this computer."""
        if self._folder is None:
            self._info()
        return self._folder if self._folder and self._folder.is_dir() else None

    def is_here(self) -> bool:
        """Whether it runs containers on this computer, as far as is known."""
        return self.folder() is not None

    def _info(self) -> Mapping[str, Any]:
        """What the engine says of itself; where its files lie is remembered."""
        info = _table(self.call("info", "--format", "{{json .}}"))
        self._folder = Path(str(info.get("DockerRootDir") or "/nowhere"))
        return info

    # --- Images -------------------------------------------------------------------

    def tags_of(self, *names: str) -> dict[str, frozenset[str]]:
        """All tags of images, by the IDs of those that are there.

        Parameters
        ----------
        *names : str
            IDs or tags of images.
        """
        form = "{{.Id}} {{json .RepoTags}}"
        found = self.call("image", "inspect", "--format", form, *names, check=False)
        lines = [line.partition(" ") for line in found.splitlines()]
        return {
            image.removeprefix("sha256:"): frozenset(json.loads(tags) or ())
            for image, _, tags in lines
        }

    def image_id(self, name: str) -> str:
        """The ID of an image that is there; empty if it is not."""
        return next(iter(self.tags_of(name)), "")

    def inspect_image(self, name: str) -> dict[str, Any] | None:
        """All that the engine says of an image; None if it is not there."""
        run = self.run("image", "inspect", name)
        if run.returncode:
            return None
        (found,) = json.loads(run.stdout)
        return dict(found)

    def remove_tags(self, *names: str) -> None:
        """Remove tags, and images that have no other one."""
        if names:
            self.call("image", "rm", "--force", *names, check=False)

    def remove_untagged(self, *images: str) -> None:
        """Remove images by their IDs, but for those that have a tag."""
        for image, tags in self.tags_of(*images).items() if images else ():
            if not tags:
                self.call("image", "rm", f"sha256:{image}", check=False)

    # --- Containers ---------------------------------------------------------------

    def state(self, container: str) -> dict[str, Any]:
        """What the engine says of how a container runs, or has ended.

        Raises
        ------
        EngineError
            If it does not answer.
        """
        text = self.call("inspect", "--format", "{{json .State}}", container)
        return dict(json.loads(text))

    def log(self, container: str) -> bytes:
        """The end of what a container has written to stdout and stderr.

        Raises
        ------
        EngineError
            If the engine does not answer.
        """
        command = ("logs", "--tail", str(LOG_LINES), container)
        return self.run(*command, stderr=subprocess.STDOUT).stdout

    def written_bytes(self, container: str) -> int:
        """What a container has written to its own layer; 0 if that is not known."""
        command = ("inspect", "--size", "--format", "{{.SizeRw}}", container)
        found = self.call(*command, check=False)
        return int(found) if found.isdigit() else 0

    def remove_container(self, container: str) -> None:
        """Remove a container by force, with its volumes.

        Raises
        ------
        EngineError
            If it is still there afterwards.
        """
        run = self.run("rm", "--force", "--volumes", container)
        if not run.returncode:
            return  # an engine says so only when it is gone
        if self.call("ps", "--all", "--quiet", "--filter", f"id={container}"):
            raise EngineError(
                f"container {container[:12]} cannot be removed",
                "Restart Docker, and go on.",
            )

    # --- All with a label ---------------------------------------------------------

    def remove_created(self, label: str) -> None:
        """Remove containers with a label that were made and not started."""
        found = self.call(
            *("ps", "--all", "--quiet", "--filter", f"label={label}"),
            *("--filter", "status=created"),
            check=False,
        )
        for container in found.split():
            self.call("rm", "--force", "--volumes", container, check=False)

    def remove_labelled(self, label: str) -> None:
        """Remove all containers and volumes with a label.

        Raises
        ------
        EngineError
            If one is still there afterwards.
        """
        mine = ("--quiet", "--filter", f"label={label}")
        for listed, removed in (
            (("ps", "--all"), ("rm", "--force", "--volumes")),
            (("volume", "ls"), ("volume", "rm", "--force")),
        ):
            found = self.call(*listed, *mine).split()
            if found:
                self.call(*removed, *found, check=False)
            left = self.call(*listed, *mine).split() if found else []
            if left:
                raise EngineError(
                    f"{len(left)} containers or volumes cannot be removed",
                    "Restart Docker, and go on.",
                )


def _end_with_us() -> Callable[[], None] | None:
    """What a command calls first, so that nothing is asked for when we are killed.

    While samples are taken, a thread runs, beside which this is not safe.
    """
    return end_with_parent() if threading.active_count() < 2 else None


def _table(text: str) -> Mapping[str, Any]:
    """A JSON object; empty if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _toolkit_version() -> str:
    """Version of the NVIDIA container toolkit on this computer; empty if none is."""
    for program in ("nvidia-ctk", "nvidia-container-cli"):
        if not shutil.which(program):
            continue
        try:
            run = subprocess.run(
                [program, "--version"],
                capture_output=True,
                check=False,
                timeout=ANSWER_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        found = re.search(r"\d+\.\d+\.\d+", run.stdout.decode("utf-8", "replace"))
        if found:
            return found[0]
    return ""
