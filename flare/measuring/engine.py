"""Speaks to Docker through its command: images, volumes, clean-up and what it is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from flare.common.errors import EngineError, FlareError
from flare.common.processes import end_with_parent
from flare.common.text import safe, why
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.repack import write_image
from flare.measuring.disk import DiskWatch
from flare.measuring.empty_image import HOLD, OUTPUTS, image_tar

ANSWER_S = 120.0
"""An engine that does not answer for so long will not."""

LOAD_S = 300.0
"""Loading an image may take so long,"""

LOAD_BYTES_PER_S = 20 * 2**20
"""and a second more for each so many bytes."""

LABEL = "flare.measure"
"""Of all that a measurement makes; its value says which one."""


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
        try:
            run = subprocess.run(
                [self.program, *arguments],
                input=content,
                capture_output=True,
                check=False,
                timeout=timeout_s,
                # Nothing is asked of the engine any more when we are killed. While
                # samples are taken, a thread runs, beside which this is not safe.
                preexec_fn=end_with_parent() if threading.active_count() < 2 else None,
            )
        except OSError as error:
            problem = f"{safe(self.program)}: it cannot be run ({why(error)})"
            raise EngineError(problem, "Install Docker, and start it.") from error
        except subprocess.TimeoutExpired as error:
            problem = f"{self.program} {arguments[0]}: no answer for {timeout_s:.0f} s"
            raise EngineError(problem, "Restart Docker, and go on.") from error
        if run.returncode and check:
            raise self._failed(run.stderr, *arguments)
        return run.stdout.decode("utf-8", "replace").strip()

    def _failed(self, stderr: bytes, *arguments: str) -> EngineError:
        """The error of a command, by the first line that it wrote."""
        lines = stderr.decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in lines if line.strip()), "")
        problem = f"{self.program} {arguments[0]}: {safe(said)}"
        return EngineError(problem, "See that Docker runs, and that you may use it.")

    def describe(self) -> dict[str, Any]:
        """Versions and settings of the engine, for the record.

        ``limits`` names what it cannot limit.

        Raises
        ------
        EngineError
            If it does not answer.
        """
        info = _table(self.call("info", "--format", "{{json .}}"))
        if not info.get("ServerVersion"):
            problem = f"{self.program}: no engine answers"
            raise EngineError(problem, "Start Docker, and see that you may use it.")
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
            info = _table(self.call("info", "--format", "{{json .}}"))
            self._folder = Path(str(info.get("DockerRootDir") or "/nowhere"))
        return self._folder if self._folder.is_dir() else None

    # --- Images -------------------------------------------------------------------

    def image_id(self, name: str) -> str:
        """The ID of an image that is there; empty if it is not."""
        return self.call(
            "image", "inspect", "--format", "{{.Id}}", name, check=False
        ).removeprefix("sha256:")

    def tags_of(self, image: str) -> frozenset[str]:
        """All tags of an image; none if it is not there."""
        found = self.call(
            "image", "inspect", "--format", "{{json .RepoTags}}", image, check=False
        )
        return frozenset(json.loads(found) or ()) if found else frozenset()

    def find_image(self, archive: Archive) -> str:
        """The ID that the engine gives the image of an archive; empty if not there."""
        for identity in (archive.image, archive.manifest):
            found = self.image_id(f"sha256:{identity}")
            if archive.is_image(found):
                return found
        return ""

    def load(self, archive: Archive, tag: str) -> str:
        """Load the image of an archive under a tag of ours, and return its ID.

        The engine never sees the file of the team: what it loads is written by
        `flare.measuring.archive.repack.write_image`, and names no tag.

        Raises
        ------
        ArchiveError
            If the file has changed since it was read.
        EngineError
            If the engine cannot load it, takes too long or too much of the disk, gives
            another image than was checked, or has moved a tag.
        """
        before = self.find_image(archive)
        tags = self.tags_of(before) if before else frozenset()
        self._feed(archive)
        name = safe(archive.path.name)
        found = self.find_image(archive)
        if not found:
            problem = f"{name}: loading it gave no image {archive.image[:12]}"
            raise EngineError(problem, "Do not run it; ask the team.")
        if self.tags_of(found) != tags:
            problem = f"{name}: loading it has given a tag to its image"
            raise EngineError(problem, "Do not run it; see docker image ls.")
        if not before or tags:  # an image without any tag would go with ours
            self.call("tag", found, tag)
        return found

    def _feed(self, archive: Archive) -> None:
        """Let the engine load what is written of an archive."""
        deadline = time.monotonic() + LOAD_S
        deadline += archive.unpacked_bytes / LOAD_BYTES_PER_S
        # The engine unpacks the whole archive, and then each layer from it.
        watch = DiskWatch(self.folder(), 3 * archive.unpacked_bytes + 2**30)
        process = subprocess.Popen(
            [self.program, "image", "load", "--quiet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=end_with_parent() if threading.active_count() < 2 else None,
        )
        problems: list[FlareError] = []
        writer = threading.Thread(
            target=_write, args=(archive, process, problems), daemon=True
        )
        writer.start()
        problem = ""
        try:
            while not problem:
                try:
                    process.wait(0.2)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() > deadline:
                        problem = "loading it takes too long"
                    elif watch.is_alarming():
                        problem = "loading it takes too much of the disk"
        finally:
            process.kill()
            process.wait()
            writer.join(ANSWER_S)
            said = _close(process)
        if problems:
            raise problems[0]
        if problem:
            text = f"{safe(archive.path.name)}: {problem}"
            raise EngineError(text, "Do not run it; ask the team.")
        if process.returncode:
            raise self._failed(said, "image", "load")

    def load_empty(self, tag: str) -> str:
        """Make the image of `flare.measuring.empty_image`, and return its ID.

        Raises
        ------
        EngineError
            If that fails.
        """
        self.call("import", "-", tag, content=image_tar())
        return self.image_id(tag)

    # --- Volumes ------------------------------------------------------------------

    @contextmanager
    def volume(
        self, empty: str, key: str, size: str, files: int
    ) -> Iterator[tuple[str, str]]:
        """A fresh volume in memory for the output of a container, and who holds it.

        It takes no more bytes or files than it is told, knows neither devices nor
        programs that change the user, and never lies where users of this computer can
        reach it. It vanishes when no container has it any more: so one of ours does
        nothing but hold it.

        Parameters
        ----------
        empty : str
            The image of `flare.measuring.empty_image`.
        key : str
            Says which measurement it belongs to.
        size : str
            Such as 4g.
        files : int
            Files and folders that fit.

        Yields
        ------
        tuple of str
            Name of the volume, and ID of the container that holds it.
        """
        options = f"size={size},nr_inodes={files},mode=0777,nosuid,nodev"
        label = ("--label", f"{LABEL}={key}")
        name, holder = "", ""
        try:
            name = self.call(
                *("volume", "create", "--driver", "local", *label),
                *("--opt", "type=tmpfs", "--opt", "device=tmpfs"),
                *("--opt", f"o={options}"),
            )
            holder = self.call(
                *("create", *label, "--network", "none", "--cap-drop", "ALL"),
                *("--security-opt", "no-new-privileges", "--read-only"),
                *("--volume", f"{name}:{OUTPUTS}", empty, *HOLD),
            )
            self.call("start", holder)
            yield name, holder
        finally:
            if holder:
                self.remove_container(holder)
            if name:
                self.call("volume", "rm", "--force", name, check=False)

    # --- Cleaning up --------------------------------------------------------------

    def remove_container(self, identity: str) -> None:
        """Remove a container by force, with its volumes.

        Raises
        ------
        EngineError
            If it is still there afterwards.
        """
        self.call("rm", "--force", "--volumes", identity, check=False)
        if self.call("ps", "--all", "--quiet", "--filter", f"id={identity}"):
            problem = f"container {identity[:12]} cannot be removed"
            raise EngineError(problem, "Restart Docker, and go on.")

    def remove_created(self, key: str) -> None:
        """Remove containers of a measurement that were made and not started."""
        found = self.call(
            *("ps", "--all", "--quiet", "--filter", f"label={LABEL}={key}"),
            *("--filter", "status=created"),
            check=False,
        )
        for identity in found.split():
            self.call("rm", "--force", "--volumes", identity, check=False)

    def remove_all(self, key: str) -> None:
        """Remove all containers and volumes of a measurement.

        Raises
        ------
        EngineError
            If one is still there afterwards.
        """
        mine = ("--quiet", "--filter", f"label={LABEL}={key}")
        for listed, removed in (
            (("ps", "--all"), ("rm", "--force", "--volumes")),
            (("volume", "ls"), ("volume", "rm", "--force")),
        ):
            found = self.call(*listed, *mine).split()
            if found:
                self.call(*removed, *found, check=False)
            left = self.call(*listed, *mine).split() if found else []
            if left:
                problem = f"{len(left)} containers or volumes cannot be removed"
                raise EngineError(problem, "Restart Docker, and go on.")

    def remove_image(self, name: str) -> None:
        """Remove a tag, and its image if it has no other one."""
        self.call("image", "rm", "--force", name, check=False)

    def remove_untagged(self, image: str) -> None:
        """Remove an image by its ID, unless it has a tag."""
        if self.image_id(image) and not self.tags_of(image):
            self.call("image", "rm", image, check=False)


def _write(
    archive: Archive, process: subprocess.Popen[bytes], problems: list[FlareError]
) -> None:
    """Write an image to a process; whatever goes wrong ends the process."""
    pipe = cast("BinaryIO", process.stdin)
    try:
        write_image(archive, pipe)
        pipe.close()
    except FlareError as error:
        problems.append(error)
        process.kill()
    except (OSError, ValueError):
        process.kill()  # it has ended, and says why


def _close(process: subprocess.Popen[bytes]) -> bytes:
    """Close the pipes of a process that has ended; what it wrote to stderr."""
    said = process.stderr.read() if process.stderr else b""
    for pipe in (process.stdin, process.stderr):
        if pipe:
            with suppress(OSError):
                pipe.close()
    return said


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
