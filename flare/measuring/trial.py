"""Runs a case once, and judges the outcome."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flare.challenge.formats import ANY_SUFFIX, case_name, suffix_of
from flare.challenge.rules import Challenge
from flare.common.errors import EngineError, InputError, SubmissionError
from flare.common.text import count, listing, safe
from flare.evaluation.check import check_submission, find_images
from flare.evaluation.errors import EmptyError, FileFormatError
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import with_options
from flare.evaluation.submission.find import LabelMapFile
from flare.measuring.answers import CaseAnswers, read_case_answers
from flare.measuring.cleanup import guarded
from flare.measuring.container import Conditions, ContainerRun, End
from flare.measuring.engines.interface import Engine, NoAnswerError
from flare.measuring.exchange import (
    WrongOutputError,
    files_of,
    lay_out,
    move_answers,
    move_map,
    take_out,
)
from flare.measuring.host import SPARE_BYTES, wait_until_idle
from flare.measuring.image import NOTHING, LoadedImage, image_tar
from flare.measuring.options import Contract
from flare.results.efficiency_csv import RunStatus
from flare.results.team_folder import FolderLock

_log = logging.getLogger(__name__)

TRIES = 2
"""If an image cannot be started in this many tries, and ours can, it is to blame."""


def status_of_run(run: ContainerRun) -> tuple[RunStatus, str]:
    """The status of a run by what the engine says of it; ``OK`` if it has ended well.

    A container that did not start is an engine error here; whose fault it is, only
    another container tells.
    """
    seconds = f"after {run.runtime_s:.1f} s"
    if run.exit.problem:
        return RunStatus.ENGINE_ERROR, f"the engine says: {safe(run.exit.problem)}"
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
    if run.exit.exit_code:
        code = f"the container ended with exit code {run.exit.exit_code} {seconds}"
        if run.exit.is_out_of_memory:
            return RunStatus.OUT_OF_MEMORY, f"{code}: its memory did not suffice"
        return RunStatus.FAILED, code
    return RunStatus.OK, ""


def check_output(
    folder: Path, irregular: Mapping[str, str], inputs: Path, challenge: Challenge
) -> None:
    """See that a run has written what can be evaluated: one label map, and answers.

    A WrongOutputError is raised if not. `irregular` is what is not a regular file in
    the folder, see `take_out`, and `inputs` the folder of the images that it was
    given. Grids are compared by size, and unknown labels are let pass, as when the team
    is evaluated.
    """
    errors = []
    for name, kind in irregular.items():
        if case_name(Path(name)) or Path(name).name in challenge.answer_files:
            remedy = "Put the file itself there."
            errors.append(FileFormatError(name, f"it is {kind}", remedy))
    if errors:
        raise WrongOutputError(" ".join(map(str, errors[:3])))
    rules = with_options(
        challenge, EvaluationOptions(grid="size", unknown_labels="ignore")
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
    if challenge.organs and len(_label_maps(folder)) != 1:
        names = listing(files_of(folder))
        raise WrongOutputError(f"expected one label map, found {names}")


def _label_maps(folder: Path) -> tuple[Path, ...]:
    return tuple(folder / name for name in files_of(folder) if suffix_of(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of running a case once."""

    run: ContainerRun | None
    """None if the engine could not even make a container."""
    status: RunStatus
    message: str = ""
    """The problem; empty if nothing is wrong."""
    folder: Path = Path()
    """Its output, gone when the next case is run."""
    files: tuple[Path, ...] = ()
    """The label map that it has predicted, in the folder; none if anything is wrong."""
    answers: tuple[CaseAnswers, ...] = ()
    """The answers that it has written, likewise."""
    doubt: str = ""
    """A reason to doubt it, although nothing is wrong."""

    @property
    def may_have_lost_gpu(self) -> bool:
        """Whether its container has failed by itself, after it had used the GPU."""
        if self.status is not RunStatus.FAILED or not self.run:
            return False
        return self.run.end is End.ENDED and self.run.trace.has_used_gpu


def find_cases(
    images: Path, challenge: Challenge, contract: Contract
) -> tuple[LabelMapFile, ...]:
    """The images of each case in a folder, as containers by a contract can read them.

    An InputError is raised if there are none, or a case has more than its container
    would get.
    """
    cases = find_images(images, challenge.names)
    channels = cases[0].channels  # all cases have the same
    if not channels:
        return cases
    names = listing(file.name for file in (cases[0], *channels))
    if contract.is_algorithm:
        raise InputError(
            f"{safe(images)}: {names}: an algorithm gets one image of a case",
            "Measure images with several by FLARE's contract.",
        )
    case = safe(cases[0].case)
    number = count(len(cases), "case")
    _log.info("%s with several images, such as %s: %s", number, case, names)
    return cases


def case_of(image: Path, challenge: Challenge, contract: Contract) -> LabelMapFile:
    """The images of the case that an image is of; an InputError if there is none."""
    if image.is_file():
        for case in find_cases(image.parent, challenge, contract):
            paths = [file.path.resolve() for file in (case, *case.channels)]
            if image.resolve() in paths:
                return case
    raise InputError(
        f"{safe(image)}: there is no such image",
        f"Give a CT, a {ANY_SUFFIX} file.",
    )


def run_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
    """Run an image once, and judge the outcome.

    A container that fails after it has used the GPU is run once more: a GPU can be
    taken from a running container, as systemd does when its units are read again. An
    EngineError is raised if neither it nor an empty container can be run.
    """
    trial = _run_case(image, case, challenge)
    if not trial.may_have_lost_gpu:
        return trial
    second_trial = _run_case(image, case, challenge)
    doubt = f"before, it used the GPU, and {trial.message}: was the GPU taken from it?"
    return replace(second_trial, doubt=doubt)


def _run_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
    """Run an image until the engine says how it has ended.

    An image that cannot be started, twice, although an empty container can, is to
    blame itself. If the engine has not even answered, it is not asked any more.
    """
    problem, run = "", None
    for _ in range(TRIES):
        if len(image.unanswered) >= TRIES:
            problem = image.unanswered[-1]
            break
        try:
            trial = _try_case(image, case, challenge)
        except NoAnswerError as error:
            problem = error.finding
            image.unanswered.append(problem)
            wait_until_idle(image.engine)
        except EngineError as error:
            problem = error.finding
        else:
            image.unanswered.clear()
            run = trial.run
            problem = run.exit.problem if run else ""
            if not problem:
                return trial
        run_empty(image)
    message = f"the engine cannot run it: {safe(problem)}"
    return Trial(run=run, status=RunStatus.FAILED, message=message)


def run_empty(image: LoadedImage, times: int = 1) -> list[float]:
    """Running times, in seconds, of a container of ours that does nothing.

    An EngineError is raised if not even that works: no team is at fault.
    """
    inputs = image.fresh_folder("inputs")
    with image.fresh_volume() as volume:
        runs = [image.run(inputs, volume, NOTHING) for _ in range(times)]
    for run in runs:
        if run.exit.problem or run.exit.exit_code:
            problem = run.exit.problem or f"exit code {run.exit.exit_code}"
            raise EngineError(
                f"An empty container cannot be run ({safe(problem)})",
                "Check the engine, --gpu, --memory, --shm-size and --runtime.",
            )
    return [run.runtime_s for run in runs]


def try_engine(engine: Engine, folder: Path, conditions: Conditions) -> None:
    """Run an empty container, without anything of a team.

    The folder remembers what is to be removed, and nobody else has it. An EngineError
    is raised if that does not work: no submission is at fault.
    """
    with (
        FolderLock(folder) as lock,
        guarded(engine, folder, images=(), lock=lock) as place,
    ):
        empty = engine.import_image(image_tar(), place.tags[0])
        run_empty(
            LoadedImage(
                engine=engine,
                conditions=conditions,
                image=empty,
                overrides=(),
                empty=empty,
                place=place,
            )
        )


def _try_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
    contract = image.conditions.contract
    inputs = image.fresh_folder("inputs")
    image_folder = lay_out(case, inputs, contract)
    # No number type of a label map takes more than 16 bytes, compressed or not.
    most_bytes = 16 * math.prod(case.read_grid().shape) + 2**20
    folder = image.fresh_folder("outputs")
    with image.fresh_volume() as volume:
        run = image.run(inputs, volume)
        status, message = status_of_run(run)
        if status is not RunStatus.OK:
            return Trial(run=run, status=status, message=message)
        try:
            files = challenge.answer_files
            irregular = take_out(
                image.engine, volume.holder, folder, most_bytes, answer_files=files
            )
            if not irregular and not files_of(folder):
                message = f"it has written nothing to {contract.outputs}"
                return Trial(run=run, status=RunStatus.NO_OUTPUT, message=message)
            if contract.is_algorithm:
                taken = image.fresh_folder("taken")
                move_answers(folder, taken, files)
                if challenge.organs:
                    move_map(folder, irregular, taken / case.case, contract)
                folder = taken
                # What lies in a folder of an algorithm's output is no label map.
                irregular = {n: kind for n, kind in irregular.items() if "/" not in n}
            check_output(folder, irregular, image_folder, challenge)
            answers = read_case_answers(folder, challenge, case.case)
        except WrongOutputError as error:
            return Trial(run=run, status=RunStatus.WRONG_OUTPUT, message=str(error))
    return Trial(
        run=run,
        status=RunStatus.OK,
        folder=folder,
        files=_label_maps(folder) if challenge.organs else (),
        answers=answers,
    )
