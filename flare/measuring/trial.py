"""Judges what comes of running a team's image once on a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.engine import Engine
from flare.common.errors import EngineError
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.conditions import Conditions
from flare.measuring.container import ContainerRun
from flare.measuring.contract_files import lay_out, renamed
from flare.measuring.empty_image import NOTHING
from flare.measuring.inputs import Case
from flare.measuring.status import (
    label_maps,
    largest_bytes,
    status_of_output,
    status_of_run,
)
from flare.measuring.team_image import LoadedImage, loaded_image
from flare.results.efficiency_csv import RunStatus
from flare.results.lock import FolderLock

KEPT_FILES = 3
KEPT_BYTES = 2**26
"""Of an output that cannot be used, so many files, and so much of each, are kept."""

TRIES = 2
"""An image that cannot be started so often, although ours can, is to blame itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of running a case once."""

    run: ContainerRun | None
    """None if the engine could not even make a container."""
    status: RunStatus
    message: str
    """Why it is no good; empty if it is."""
    files: tuple[Path, ...] = ()
    """Label maps that it has written; gone when the next case is run."""


@contextmanager
def try_archive(
    archive: Archive,
    folder: Path,
    case: Case,
    challenge: Challenge,
    *,
    engine: Engine,
    conditions: Conditions,
) -> Iterator[Trial]:
    """Load an image and run it on a case, as it will be measured; nothing is kept.

    Parameters
    ----------
    archive : Archive
        Without problems.
    folder : Path
        Where folders for the container are made, for as long as this lasts.
    case : Case
        What it is run on.
    challenge : Challenge
        Its rules decide what a wrong output is.
    engine : Engine
        What it runs in.
    conditions : Conditions
        Under which it is run.

    Yields
    ------
    Trial
        What came of it; its files are there meanwhile.

    Raises
    ------
    FlareError
        If the image cannot be loaded, or the engine not be used.
    """
    with (
        FolderLock(folder) as lock,
        loaded_image(
            archive, folder, engine=engine, conditions=conditions, lock=lock
        ) as image,
    ):
        yield run_case(image, case, challenge)


def run_case(image: LoadedImage, case: Case, challenge: Challenge) -> Trial:
    """Run an image once, and judge what came of it.

    An image that cannot be started, twice, although an empty container can, is to
    blame itself.

    Raises
    ------
    EngineError
        If it cannot be run, and neither can an empty container.
    """
    problem, run = "", None
    for _ in range(TRIES):
        try:
            found = _try_case(image, case, challenge)
        except EngineError as error:
            problem = error.finding
        else:
            run = found.run
            if not run or not run.engine_problem:
                return found
            problem = run.engine_problem
        run_empty(image)
    message = f"the engine cannot run it: {safe(problem)}"
    return Trial(run=run, status=RunStatus.FAILED, message=message)


def run_empty(image: LoadedImage, times: int = 1) -> list[float]:
    """Running times, in seconds, of a container of ours that does nothing.

    Raises
    ------
    EngineError
        If not even that works: no team is at fault.
    """
    inputs = image.fresh_folder("inputs")
    with image.fresh_volume() as volume:
        runs = [image.run_ours(NOTHING, inputs, volume) for _ in range(times)]
    for run in runs:
        if run.engine_problem or run.exit_code:
            problem = run.engine_problem or f"exit code {run.exit_code}"
            raise EngineError(
                f"An empty container cannot be run ({safe(problem)})",
                "Check the engine, --gpu, --memory, --shm-size and --runtime.",
            )
    return [run.runtime_s for run in runs]


def _try_case(image: LoadedImage, case: Case, challenge: Challenge) -> Trial:
    """Run an image, and judge what came of it if it could be started."""
    contract = image.conditions.contract
    inputs = image.fresh_folder("inputs")
    ct = lay_out(case, inputs, contract)
    most_bytes = largest_bytes(ct)
    folder = image.fresh_folder("outputs")
    with image.fresh_volume() as volume:
        run = image.run(inputs, volume)
        status, message = status_of_run(run)
        if status is not RunStatus.OK:
            return Trial(run=run, status=status, message=message)
        output = image.take_out(volume, folder, most_bytes)
    taken = image.fresh_folder("taken") if contract.is_algorithm else folder
    output = renamed(output, case.name, taken, contract)
    status, message = status_of_output(output, ct.parent, challenge, contract)
    files = label_maps(output)
    if status is not RunStatus.OK:
        files = _kept(files)
    return Trial(run=run, status=status, message=message, files=files)


def _kept(files: Sequence[Path]) -> tuple[Path, ...]:
    """A few of the files of an output that cannot be used, cut if they are large."""
    kept = tuple(files[:KEPT_FILES])
    for file in kept:
        with file.open("r+b") as content:
            content.truncate(min(KEPT_BYTES, file.stat().st_size))
    return kept
