"""Tells how fast this computer is, in a container that has the limits of a team's."""

from __future__ import annotations

import platform
from dataclasses import replace

from flare.common.errors import EngineError
from flare.common.text import safe
from flare.measuring.calibration_program import read_times
from flare.measuring.container import ContainerRun
from flare.measuring.empty_image import CALIBRATE
from flare.measuring.engines import RunnableImage
from flare.results.calibration import Calibration, Times

MACHINES = ("x86_64", "AMD64")
"""Names of the only architecture that there is a program for."""

TIMEOUT_S = 60.0
"""The work takes about a second; a computer that is very busy needs longer."""


def calibrate(image: RunnableImage) -> Calibration:
    """Do a fixed amount of work in a container of ours, and ask the GPU for its clocks.

    The container has the memory, the processors, the GPU and the runtime of a team's.
    Whatever goes wrong is in the result, and ends nothing.

    Parameters
    ----------
    image : RunnableImage
        The container is made from the image of ours beside it.
    """
    gpu = image.conditions.gpu.speed() if image.conditions.gpu else None
    machine = platform.machine()
    if machine not in MACHINES:
        return Calibration(gpu=gpu, problem=f"there is no program for {safe(machine)}")
    try:
        run = _run(image)
    except EngineError as error:
        return Calibration(gpu=gpu, problem=error.finding)
    problem = _problem(run)
    if problem:
        return Calibration(gpu=gpu, problem=problem)
    try:
        integers, memory = read_times(run.log)
        times = Times.of(integers), Times.of(memory)
    except ValueError as error:
        return Calibration(gpu=gpu, problem=f"what it wrote cannot be read ({error})")
    return Calibration(integers=times[0], memory=times[1], gpu=gpu)


def _run(image: RunnableImage) -> ContainerRun:
    """Run the program once."""
    conditions = image.conditions
    limits = replace(conditions.limits, timeout_s=TIMEOUT_S)
    with image.fresh_volume() as volume:
        return image.run_ours(
            CALIBRATE,
            image.fresh_folder("inputs"),
            volume,
            replace(conditions, limits=limits),
        )


def _problem(run: ContainerRun) -> str:
    """Why a run tells nothing; empty if it does."""
    if run.engine_problem:
        return safe(run.engine_problem)
    if run.is_late:
        return f"it took more than {TIMEOUT_S:.0f} s"
    return f"it ended with exit code {run.exit_code}" if run.exit_code else ""
