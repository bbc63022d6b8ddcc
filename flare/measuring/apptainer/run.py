"""Runs a container in a box once: limited, sampled, and ended with the box."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from flare.common.errors import EngineError
from flare.common.machine import size_bytes
from flare.common.text import safe
from flare.measuring.apptainer.box import Box
from flare.measuring.apptainer.cleanup import remove_own
from flare.measuring.apptainer.command import exec_command, exec_environment
from flare.measuring.apptainer.processes import BoxProcesses
from flare.measuring.conditions import Conditions
from flare.measuring.container import LOG_BYTES, ContainerRun
from flare.measuring.container_command import Limits
from flare.measuring.disk import DiskWatch
from flare.measuring.host_load import Caches, empty_caches
from flare.measuring.sampling.sampler import Clock
from flare.measuring.watching import End, watch_container

FATAL_CODE = 255
"""How Apptainer ends if it cannot run anything; it says why in a line,"""

FATAL = b"FATAL:"
"""which begins like this."""


@dataclass(slots=True)
class BoxWatch:
    """Watches what a container takes of the disk and of the memory."""

    disk: DiskWatch
    processes: BoxProcesses
    memory_bytes: int
    """So much it may have."""
    is_out_of_memory: bool = False

    def is_alarming(self) -> bool:
        """Whether it takes too much of either."""
        if self.disk.is_alarming():
            return True
        self.is_out_of_memory = self.processes.is_above(self.memory_bytes)
        return self.is_out_of_memory


def run_in_box(
    box: Box,
    image: Path,
    words: Sequence[str],
    *,
    program: str,
    inputs: Path,
    overlay: Path,
    directory: str,
    variables: Sequence[str],
    conditions: Conditions,
    model: Path | None = None,
    clock: Clock = time.perf_counter,
) -> ContainerRun:
    """Run an image on what is in a folder, and measure it.

    Parameters
    ----------
    box : Box
        In which nothing was run yet.
    image : Path
        The folder of the image's files.
    words : sequence of str
        What is run.
    program : str
        Name or path of Apptainer.
    inputs : Path
        What it reads.
    overlay : Path
        An empty folder for what it writes elsewhere than to its outputs.
    directory : str
        Of the image, in which it is run.
    variables : sequence of str
        Those of the image, as NAME=VALUE; the last of several counts.
    conditions : Conditions
        What it may use, and what is sampled.
    model : Path, optional
        A folder with the model that was sent beside it.
    clock : callable
        Seconds that only go forward.

    Raises
    ------
    EngineError
        If there is no room for it, or it cannot be ended.
    """
    limits, work = conditions.limits, overlay.parent
    disk = _watched_disk(work, limits)
    command = exec_command(
        *(program, directory),
        inputs=inputs,
        outputs=box.outputs,
        shm=box.shm,
        overlay=overlay,
        limits=limits,
        contract=conditions.contract,
        model=model,
    )
    environment = exec_environment(work, variables, limits)
    group = BoxProcesses(box)
    watch = BoxWatch(disk, group, size_bytes(limits.memory))
    if conditions.caches is Caches.COLD:
        empty_caches()
    with (work / "log").open("w+b") as log:

        def begin() -> subprocess.Popen[bytes]:
            whole = (*command, str(image), *words)
            output = log.fileno()
            return box.begin(
                *whole, stdout=output, stderr=output, environment=environment
            )

        seen = watch_container(begin, box.end, group, watch, conditions, clock)
        text = _taken_out(log)
    is_disk = seen.end is End.ALARM and not watch.is_out_of_memory
    if is_disk:
        remove_own(overlay)
    has_filled_disk = is_disk and disk.is_given_back()
    code = seen.exit_code
    return ContainerRun(
        runtime_s=seen.runtime_s,
        engine_runtime_s=None,
        exit_code=code if code >= 0 else 128 - code,
        is_late=seen.end is End.LATE,
        has_filled_disk=has_filled_disk,
        has_lost_disk=is_disk and not has_filled_disk,
        is_out_of_memory=watch.is_out_of_memory,
        engine_problem=_problem(code, text),
        trace=seen.trace,
        log=text,
        other_cpu_s=seen.other_cpu_s,
    )


def _watched_disk(folder: Path, limits: Limits) -> DiskWatch:
    """The disk of a folder, with room for a container."""
    disk = DiskWatch(folder, limits.disk_bytes)
    if disk.is_full:
        problem = f"There is too little room left in {safe(folder)}"
        raise EngineError(problem, "Make room there, and go on.")
    return disk


def _taken_out(log: BinaryIO) -> bytes:
    """The end of a log, of which nothing is left."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_BYTES))
    text = log.read()
    log.truncate(0)
    return text


def _problem(code: int, log: bytes) -> str:
    """Why Apptainer could not run anything; empty if it could."""
    lines = log.splitlines()
    if code != FATAL_CODE or not lines or not lines[-1].startswith(FATAL):
        return ""
    return lines[-1].removeprefix(FATAL).decode("utf-8", "replace").strip()
