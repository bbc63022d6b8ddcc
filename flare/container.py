"""Runs a team's image on one case, with limits, and always removes what it made.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_command`, each with its reason.
"""

from __future__ import annotations

import io
import json
import os
import re
import select
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from flare.archive import Archive
from flare.errors import EngineError
from flare.gpu import MemorySource
from flare.names import safe, why
from flare.sampling import Clock, ControlGroup, Probe, Sampler
from flare.traces import Trace
from flare.workers import end_with_parent

COMMAND = ("/bin/bash", "-c", "sh predict.sh")
NOTHING = ("/nothing",)
"""Run in an image of ours to measure what the engine itself costs."""

ANSWER_S = 120.0
"""An engine that does not answer for so long will not."""

SPARE_BYTES = 2**30
"""So much of a disk is left free; a container that takes more is ended."""

LABEL = "flare.measure"
"""Of all that a measurement makes; its value says which one."""

LOG_BYTES = 2**20
"""The end of a longer log is kept."""

_START_FAULTS = re.compile(
    r'exec: ".*": (?:executable file not found|stat .*: no such file|permission denied)'
    r"|unable to find (?:user|group)|no matching entries in|chdir to cwd"
)
"""When the engine says this, it is the image that cannot be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use."""

    timeout_s: float = 3600.0
    """FLARE22 counts a container as stuck after this time."""
    memory: str = "28g"
    """FLARE23's limit; swap is not added."""
    shm_size: str = "28g"
    """FLARE23's size of /dev/shm."""
    processes: int = 4096
    gpu: str = ""
    """UUID of the GPU; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRun:
    """What came of running a container."""

    runtime_s: float
    """From the request to start it until the engine said that it has ended."""
    engine_runtime_s: float | None
    """The same by the engine's own clock, which may be set while it runs."""
    exit_code: int
    is_late: bool
    """Whether the time limit ended it."""
    is_out_of_memory: bool
    has_filled_disk: bool
    """Whether it was ended because it left no room."""
    engine_problem: str
    """Why the engine could not run it; empty if it could."""
    trace: Trace
    log: bytes


class Engine:
    """Docker, through its command.

    Parameters
    ----------
    program : str
        Name or path of the command.
    clock : callable
        Seconds that only go forward.
    """

    def __init__(
        self, program: str = "docker", clock: Clock = time.perf_counter
    ) -> None:
        self.program, self._clock = program, clock

    # --- Asking -------------------------------------------------------------------

    def call(
        self, *arguments: str, check: bool = True, timeout_s: float | None = ANSWER_S
    ) -> str:
        """What a command of the engine prints.

        Raises
        ------
        EngineError
            If it fails.
        """
        try:
            run = subprocess.run(
                [self.program, *arguments],
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
            lines = run.stderr.decode("utf-8", "replace").strip().splitlines()
            said = next((line for line in lines if line.strip()), "")
            problem = f"{self.program} {arguments[0]}: {safe(said)}"
            raise EngineError(problem, "See that Docker runs, and that you may use it.")
        return run.stdout.decode("utf-8", "replace").strip()

    def describe(self) -> dict[str, str]:
        """Version and settings of the engine, for the record.

        Raises
        ------
        EngineError
            If it does not answer.
        """
        text = self.call("info", "--format", "{{json .}}")
        info = json.loads(text)
        if not info.get("ServerVersion"):
            problem = f"{self.program}: no engine answers"
            raise EngineError(problem, "Start Docker, and see that you may use it.")
        keys = {
            "version": "ServerVersion",
            "storage": "Driver",
            "cgroups": "CgroupVersion",
            "kernel": "KernelVersion",
            "system": "OperatingSystem",
            "folder": "DockerRootDir",
        }
        return {name: str(info.get(key, "")) for name, key in keys.items()}

    def image_id(self, name: str) -> str:
        """The ID of an image that is there; empty if it is not."""
        return self.call(
            "image", "inspect", "--format", "{{.Id}}", name, check=False
        ).removeprefix("sha256:")

    # --- Images -------------------------------------------------------------------

    def load(self, archive: Archive) -> str:
        """Load an archive, and return the ID of its image.

        Raises
        ------
        EngineError
            If that fails, or gives another image than was checked.
        """
        self.call("image", "load", "--input", str(archive.path), timeout_s=None)
        found = self.image_id(archive.tag)
        if not archive.is_image(found):
            problem = (
                f"{safe(archive.path.name)}: loading it gave image"
                f" {found[:12] or 'none'}, not {archive.image[:12]}, which was checked"
            )
            raise EngineError(problem, "Do not run it; ask the team.")
        return found

    def load_nothing(self, tag: str) -> str:
        """Make an image whose only program ends at once, and return its ID."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            entry = tarfile.TarInfo("nothing")
            entry.size, entry.mode = len(_EXIT), 0o755
            archive.addfile(entry, io.BytesIO(_EXIT))
        subprocess.run(
            [self.program, "import", "-", tag],
            input=content.getvalue(),
            capture_output=True,
            check=False,
        )
        return self.image_id(tag)

    def remove_image(self, tag: str) -> None:
        """Remove an image, if it is there."""
        self.call("image", "rm", "--force", tag, check=False)

    def remove_containers(self, key: str) -> None:
        """Remove all containers of a measurement, with their volumes."""
        found = self.call("ps", "--all", "--quiet", "--filter", f"label={LABEL}={key}")
        if found:
            names = found.split()
            self.call("rm", "--force", "--volumes", *names, check=False)

    # --- Running ------------------------------------------------------------------

    def create_command(
        self, image: str, inputs: Path, outputs: Path, limits: Limits, key: str
    ) -> tuple[str, ...]:
        """The command that makes a container, without its name and what it runs."""
        volumes = (
            # Read-only: nobody changes the images of others.
            *("--volume", f"{inputs}:/workspace/inputs/:ro"),
            *("--volume", f"{outputs}:/workspace/outputs/"),
        )
        # Without a GPU, whatever the image and the engine have as their defaults.
        gpu = ("--env", "NVIDIA_VISIBLE_DEVICES=void")
        if limits.gpu:
            gpu = ("--gpus", f'"device={limits.gpu}"')
        return (
            # Made first and started later, so that making it is not timed.
            *(self.program, "create"),
            # So that it is found and removed, even by a later run.
            *("--label", f"{LABEL}={key}"),
            *gpu,
            # Nothing is fetched while time runs, and no image leaves the computer.
            *("--network", "none"),
            # FLARE23's memory; without --memory-swap as much swap would be added.
            *("--memory", limits.memory, "--memory-swap", limits.memory),
            *("--shm-size", limits.shm_size),
            # One team's runaway processes must not end the others' measurement.
            *("--pids-limit", str(limits.processes)),
            *("--security-opt", "no-new-privileges"),
            # A log without end must not fill the disk.
            *("--log-driver", "json-file", "--log-opt", "max-size=10m"),
            *volumes,
            image,
        )

    def run(
        self,
        image: str,
        inputs: Path,
        outputs: Path,
        *,
        limits: Limits,
        key: str,
        interval_s: float,
        gpu: MemorySource | None = None,
        command: Sequence[str] = COMMAND,
    ) -> ContainerRun:
        """Run an image on what is in a folder, and measure it.

        Parameters
        ----------
        image : str
            Its ID.
        inputs, outputs : Path
            Absolute folders; inputs cannot be written to.
        limits : Limits
            What it may use.
        key : str
            Says which measurement it belongs to.
        interval_s : float
            Between two samples.
        gpu : MemorySource, optional
            What is sampled of the GPU.
        command : sequence of str
            What is run.

        Raises
        ------
        EngineError
            If the container cannot even be made.
        """
        make = self.create_command(image, inputs, outputs, limits, key)
        identity = self.call(*make[1:], *command)
        probe = Probe(gpu=gpu, group=ControlGroup(identity))
        sampler = Sampler(probe, interval_s, self._clock)
        try:
            sampler.look_before()
            start = sampler.start()
            problem = ""
            process = subprocess.Popen(
                [self.program, "start", "--attach", identity],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            end = _wait(process, limits.timeout_s, outputs)
            runtime_s = self._clock() - start
            if end is not _End.ENDED:
                self.call("kill", identity, check=False)
            try:
                process.wait(ANSWER_S)
            except subprocess.TimeoutExpired as error:
                process.kill()
                problem = "a container cannot be ended"
                raise EngineError(problem, "Restart Docker, and go on.") from error
            trace = sampler.stop(runtime_s)
            state = json.loads(
                self.call("inspect", "--format", "{{json .State}}", identity)
            )
            if state.get("Error") or state.get("Status") in ("created", "running"):
                problem = str(state.get("Error") or "it did not start")
            return ContainerRun(
                runtime_s=runtime_s,
                engine_runtime_s=_engine_runtime_s(state),
                exit_code=int(state.get("ExitCode", -1)),
                is_late=end is _End.LATE,
                has_filled_disk=end is _End.DISK_FULL,
                is_out_of_memory=bool(state.get("OOMKilled")),
                engine_problem="" if _START_FAULTS.search(problem) else problem,
                trace=trace,
                log=self._log(identity, problem),
            )
        finally:
            sampler.stop(0.0)
            self.call("rm", "--force", "--volumes", identity, check=False)

    def _log(self, identity: str, problem: str) -> bytes:
        """The end of what a container has written."""
        run = subprocess.run(
            [self.program, "logs", "--tail", "20000", identity],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        note = f"{problem}\n".encode() if problem else b""
        return run.stdout[-LOG_BYTES:] + note

    def hand_over(self, image: str, folder: Path, key: str) -> None:
        """Let this user remove files that a container has written as another one.

        Only when they have been judged: it is the team's image that is run for it.
        """
        if os.geteuid() == 0:
            return
        owner = f"{os.geteuid()}:{os.getegid()}"
        script = f"chown -R {owner} /flare; chmod -R u+rwX /flare"
        with suppress(EngineError):
            self.call(
                *("run", "--rm", "--label", f"{LABEL}={key}", "--network", "none"),
                *("--memory", "1g", "--pids-limit", "64", "--user", "0"),
                *("--security-opt", "no-new-privileges", "--entrypoint", "/bin/bash"),
                *("--volume", f"{folder}:/flare", image, "-c", script),
                check=False,
            )


_EXIT = bytes.fromhex(
    # An ELF file for x86-64 of a single segment, which calls exit(0).
    "7f454c46020101000000000000000000" "02003e0001000000" "7800400000000000"
    "4000000000000000" "0000000000000000" "00000000" "4000" "3800" "0100"
    "4000" "0000" "0000"
    "0100000005000000" "0000000000000000" "0000400000000000" "0000400000000000"
    "8100000000000000" "8100000000000000" "0010000000000000"
    "31ffb83c0000000f05"
)  # fmt: skip


class _End(Enum):
    """Why a container is no longer waited for."""

    ENDED = "ended"
    LATE = "late"
    DISK_FULL = "disk full"


def _wait(process: subprocess.Popen[bytes], timeout_s: float, outputs: Path) -> _End:
    """Wait until a process has ended, is late, or leaves no room on the disk.

    `subprocess.Popen.wait` with a timeout looks only every 50 ms, which would be timed.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.pidfd_open(process.pid)
    try:
        while True:
            left = deadline - time.monotonic()
            ended, _, _ = select.select([descriptor], [], [], max(0, min(1, left)))
            if ended:
                return _End.ENDED
            if left <= 1:
                return _End.LATE
            if shutil.disk_usage(outputs).free < SPARE_BYTES:
                return _End.DISK_FULL
    finally:
        os.close(descriptor)


def _engine_runtime_s(state: dict[str, Any]) -> float | None:
    """From the engine's stamps, such as 2026-11-20T15:00:00.123456789Z."""
    try:
        start, end = (
            datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", str(state[key])))
            for key in ("StartedAt", "FinishedAt")
        )
    except (KeyError, ValueError):
        return None
    return (end - start).total_seconds()
