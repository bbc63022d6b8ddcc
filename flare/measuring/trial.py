"""Runs a case once, and judges the outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge.formats import ANY_SUFFIX, case_name, suffix_of
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels
from flare.common.errors import EngineError, InputError, SubmissionError
from flare.common.text import listing, safe
from flare.evaluation.check import check_submission, find_images
from flare.evaluation.errors import EmptyError, FileFormatError
from flare.evaluation.submission.find import LabelMapFile
from flare.measuring.container import ContainerRun, End
from flare.measuring.exchange import (
    WrongOutputError,
    files_of,
    lay_out,
    move_map,
    take_out,
)
from flare.measuring.host import SPARE_BYTES
from flare.measuring.image import NOTHING, LoadedImage
from flare.results.efficiency_csv import RunStatus

VOXEL_BYTES = 16
"""No number type of a label map takes more, compressed or not."""

HEADER_BYTES = 2**20

TRIES = 2
"""An image that cannot be started so often, although ours can, is to blame itself."""


def status_of_run(run: ContainerRun) -> tuple[RunStatus, str]:
    """The status of a run by what the engine says of it; ``OK`` if it has ended well.

    A container that did not start is an engine error here; whose fault it is, only
    another container tells.
    """
    seconds = f"after {run.runtime_s:.1f} s"
    if run.ended.problem:
        return RunStatus.ENGINE_ERROR, f"the engine says: {safe(run.ended.problem)}"
    if run.end is End.FILLED_DISK:
        room = "it took too much of the disk (--disk), or left less than"
        text = f"the container was ended {seconds}: {room} {SPARE_BYTES >> 30} GiB"
        return RunStatus.FAILED, text
    if run.end is End.LOST_DISK:
        text = "the disk was filled meanwhile, but not by the container"
        return RunStatus.ENGINE_ERROR, text
    if run.trace.problem:
        # Without samples, its memory would be that of the idle GPU.
        return RunStatus.ENGINE_ERROR, f"sampling has ended early: {run.trace.problem}"
    if run.end is End.LATE:
        return RunStatus.TIMED_OUT, f"the container was ended {seconds}"
    if run.ended.exit_code:
        code = f"the container ended with exit code {run.ended.exit_code} {seconds}"
        if run.ended.is_out_of_memory:
            return RunStatus.OUT_OF_MEMORY, f"{code}: its memory did not suffice"
        return RunStatus.FAILED, code
    return RunStatus.OK, ""


def check_output(
    folder: Path, others: Mapping[str, str], inputs: Path, challenge: Challenge
) -> None:
    """See that a run has written one label map that can be evaluated.

    Parameters
    ----------
    folder : Path
        Of what it has written.
    others : mapping
        What is not a file there, see `take_out`.
    inputs : Path
        The folder of the one image that it was given.
    challenge : Challenge
        Whose labels are allowed; its grid is compared by size, and unknown labels are
        let pass, as when the team is evaluated.

    Raises
    ------
    WrongOutputError
        If it has not.
    """
    kinds = [(n, kind) for n, kind in others.items() if case_name(Path(n))]
    if kinds:
        remedy = "Put the file itself there."
        errors = [FileFormatError(n, f"it is {kind}", remedy) for n, kind in kinds[:3]]
        raise WrongOutputError(" ".join(map(str, errors)))
    rules = replace(
        challenge,
        grid=replace(challenge.grid, compare=GridComparison.SIZE),
        unknown_labels=replace(
            challenge.unknown_labels, prediction=UnknownLabels.IGNORE
        ),
    )
    try:
        report = check_submission(
            folder, rules, images=inputs, workers=1, are_jobs_read=False
        )
    except (SubmissionError, OSError, ValueError, RecursionError) as error:
        # It was provoked by what is there: nothing else was read.
        raise WrongOutputError(str(error)) from error
    # That nothing was found may be right.
    if not all(isinstance(problem, EmptyError) for problem in report.problems):
        raise WrongOutputError(" ".join(report.lines))
    if len(_label_maps(folder)) != 1:
        names = listing(files_of(folder))
        raise WrongOutputError(f"expected one label map, found {names}")


def _label_maps(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in files_of(folder) if suffix_of(name))


def largest_bytes(image: Path) -> int:
    """The most bytes that an honest label map of an image can take."""
    file = LabelMapFile(case="", path=image, name=image.name)
    voxels = math.prod(file.read_grid().shape)
    return VOXEL_BYTES * voxels + HEADER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of running a case once."""

    run: ContainerRun | None
    """None if the engine could not even make a container."""
    status: RunStatus
    message: str = ""
    """What is wrong with it; empty if nothing is."""
    files: tuple[Path, ...] = ()
    """The label map that it has predicted, gone when the next case is run; none if
    anything is wrong."""


def case_of(image: Path, challenge: Challenge) -> LabelMapFile:
    """An image, with its case by its name.

    Raises
    ------
    InputError
        If there is no such image.
    """
    if image.is_file():
        for case in find_images(image.parent, challenge.names):
            if case.path.resolve() == image.resolve():
                return case
    raise InputError(
        f"{safe(image)}: there is no such image",
        f"Give a CT, a {ANY_SUFFIX} file.",
    )


def run_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
    """Run an image once, and judge the outcome.

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
            if not run or not run.ended.problem:
                return found
            problem = run.ended.problem
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
        runs = [image.run(inputs, volume, NOTHING) for _ in range(times)]
    for run in runs:
        if run.ended.problem or run.ended.exit_code:
            problem = run.ended.problem or f"exit code {run.ended.exit_code}"
            raise EngineError(
                f"An empty container cannot be run ({safe(problem)})",
                "Check the engine, --gpu, --memory, --shm-size and --runtime.",
            )
    return [run.runtime_s for run in runs]


def _try_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
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
        try:
            others = take_out(image.engine, volume.holder, folder, most_bytes)
            if not others and not files_of(folder):
                message = f"it has written nothing to {contract.outputs}"
                return Trial(run=run, status=RunStatus.NO_OUTPUT, message=message)
            if contract.is_algorithm:
                taken = image.fresh_folder("taken")
                move_map(folder, others, taken / case.case, contract)
                folder, others = taken, {}
            check_output(folder, others, ct.parent, challenge)
        except WrongOutputError as error:
            return Trial(run=run, status=RunStatus.WRONG_OUTPUT, message=str(error))
    return Trial(run=run, status=RunStatus.OK, files=_label_maps(folder))
