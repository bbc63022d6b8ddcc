"""Runs a team's image on one case, with limits, and always removes what it made.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_command`, each with its reason.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from flare.errors import EngineError
from flare.gpu import MemorySource
from flare.names import safe, why
from flare.sampling import Clock, ControlGroup, Probe, Sampler
from flare.traces import Trace
from flare.workers import end_with_parent

COMMAND = ("/bin/bash", "-c", "sh predict.sh")
NOTHING = ("/bin/bash", "-c", "exit 0")
"""Run to measure what the engine itself costs."""

LABEL = "flare.measure"
"""Of all that a measurement makes; its value says which one."""

LOG_BYTES = 2**20
"""The end of a longer log is kept."""

_START_FAULTS = re.compile("executable file not found|no such file|permission denied")
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

    def call(self, *arguments: str, check: bool = True) -> str:
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
                # Nothing is asked of the engine any more when we are killed. While
                # samples are taken, a thread runs, beside which this is not safe.
                preexec_fn=end_with_parent() if threading.active_count() < 2 else None,
            )
        except OSError as error:
            problem = f"{safe(self.program)}: it cannot be run ({why(error)})"
            raise EngineError(problem, "Install Docker, and start it.") from error
        if run.returncode and check:
            lines = run.stderr.decode("utf-8", "replace").strip().splitlines()
            problem = f"{self.program} {arguments[0]}: {safe(' '.join(lines[-1:]))}"
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

    def load(self, archive: Path, tag: str) -> str:
        """Load an archive, and return the ID of its image.

        Raises
        ------
        EngineError
            If that fails, or gives another image than it should.
        """
        self.call("image", "load", "--quiet", "--input", str(archive))
        found = self.image_id(tag)
        if not found:
            problem = f"{safe(archive)}: loading it gave no image {tag}"
            raise EngineError(problem, "Check it: flare check ARCHIVE.")
        return found

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
        gpu = ("--gpus", f'"device={limits.gpu}"') if limits.gpu else ()
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
            is_late = not _has_ended(process, limits.timeout_s)
            runtime_s = self._clock() - start
            if is_late:
                self.call("kill", identity, check=False)
            process.wait()
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
                is_late=is_late,
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
        """Let this user remove files that a container has written as another one."""
        if os.geteuid() == 0:
            return
        owner = f"{os.geteuid()}:{os.getegid()}"
        self.call(
            *("run", "--rm", "--label", f"{LABEL}={key}", "--network", "none"),
            *("--user", "0", "--volume", f"{folder}:/flare", "--entrypoint", "chown"),
            *(image, "--recursive", owner, "/flare"),
            check=False,
        )


def _has_ended(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for a process, and say whether it has ended in time.

    `subprocess.Popen.wait` with a timeout looks only every 50 ms, which would be timed.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        ended, _, _ = select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    return bool(ended)


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
