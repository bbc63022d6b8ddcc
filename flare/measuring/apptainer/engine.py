"""Knows the Apptainer of this computer: its version, and what it cannot do."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flare.common.engine import ANSWER_S
from flare.common.errors import EngineError
from flare.common.text import safe, why
from flare.measuring.apptainer.box import opened_box
from flare.measuring.container_command import Limits

NEEDED = ("unshare", "nsenter", "mount", "prlimit", "taskset", "tar")
"""Programs that every Linux has."""

GPUS = Path("/dev")
"""Has a file for each GPU: nvidia0, nvidia1, ..."""

GAPS = (
    "Apptainer limits no memory: what a container takes is looked at five times a"
    " second, and it is ended if that is more than --memory",
    "Apptainer keeps no program to the processors of --cpus: it begins on them, and may"
    " take others",
    "Apptainer filters no system calls: the kernel is all that is between a container"
    " and you, whose rights it has",
)
"""What Docker does, and this cannot."""


class Apptainer:
    """Apptainer, through its command.

    Parameters
    ----------
    program : str
        Name or path of the command.
    """

    def __init__(self, program: str = "apptainer") -> None:
        self.program = program

    def describe(self) -> dict[str, Any]:
        """Version of Apptainer, for the record; ``gaps`` says what it cannot do.

        Raises
        ------
        EngineError
            If it cannot be used here.
        """
        if os.geteuid() == 0:
            problem = "--engine apptainer: root of a container would be root here"
            raise EngineError(problem, "Run it as another user; root can use Docker.")
        self._check_programs()
        version = self._version()
        with tempfile.TemporaryDirectory() as folder:
            outputs, shm = Path(folder) / "outputs", Path(folder) / "shm"
            outputs.mkdir()
            shm.mkdir()
            with opened_box(outputs, shm, Limits(output_size="1m", shm_size="1m")):
                pass
        return {
            "version": f"Apptainer {version}",
            "containerd": "",
            "runc": "",
            "nvidia_toolkit": "",
            "runtimes": [],
            "default_runtime": "",
            "security": ["name=userns"],
            "limits": ["memory", "swap", "processors"],
            "storage": "",
            "cgroups": "",
            "kernel": platform.release(),
            "system": "",
            "folder": "",
            "gaps": list(GAPS),
        }

    def _check_programs(self) -> None:
        """See that all programs are there that measuring needs."""
        for name in (self.program, *NEEDED):
            if not shutil.which(name):
                problem = f"--engine apptainer: there is no program {safe(name)}"
                raise EngineError(problem, "Install it, or load its module.")

    def _version(self) -> str:
        """The version of Apptainer."""
        try:
            run = subprocess.run(
                [self.program, "--version"],
                capture_output=True,
                check=False,
                timeout=ANSWER_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = why(error) if isinstance(error, OSError) else "no answer"
            problem = f"{safe(self.program)}: it cannot be run ({reason})"
            raise EngineError(problem, "Install Apptainer.") from error
        found = re.search(r"\d+\.\d+\.\d+", run.stdout.decode("utf-8", "replace"))
        if not found:
            problem = f"{safe(self.program)}: it does not tell its version"
            raise EngineError(problem, "Install Apptainer.")
        return found[0]

    def folder(self) -> Path | None:
        """None: all that it makes lies in the folders of the teams."""
        return None

    def is_here(self) -> bool:
        """Whether it runs containers on this computer: always."""
        return True


def check_limits(limits: Limits, gpus: Path = GPUS) -> None:
    """See that a container can be kept to what it may use, as far as is asked for.

    Parameters
    ----------
    limits : Limits
        What it may use.
    gpus : Path
        Where the files of GPUs lie.

    Raises
    ------
    EngineError
        If it cannot.
    """
    if limits.runtime:
        problem = f"--runtime {safe(limits.runtime)}: Apptainer has no runtimes"
        raise EngineError(problem, "Leave it out.")
    usable = _usable_gpus(gpus) if limits.gpu else ()
    if len(usable) > 1:
        found = f"{len(usable)} GPUs can be used here, and Apptainer shows them all"
        problem = f"--gpu: {found} to a container"
        remedy = "Ask the cluster for one, such as --gpus=1 of Slurm, or use Docker."
        raise EngineError(problem, remedy)


def _usable_gpus(folder: Path) -> Sequence[str]:
    """The files of GPUs that this user can open."""
    found = []
    for file in folder.glob("nvidia[0-9]*"):
        try:
            os.close(os.open(file, os.O_RDWR))
        except OSError:
            continue  # as where a cluster gives it to somebody else
        found.append(file.name)
    return found
