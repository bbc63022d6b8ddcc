"""Runs a case once: lays its image out, takes the output out, and judges it.

On the platform, /input/inputs.json lists what an algorithm gets. Newer editions call an
interface a socket there, and still have it under both names.

The engine hands an output over as a tar file, which is read as it comes. Nothing of it
is trusted: neither names, nor sizes, nor kinds. Only regular files are written, into a
closed folder, without their modes, owners and attributes.
"""

from __future__ import annotations

import json
import math
import shutil
import tarfile
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from flare.challenge.formats import ANY_SUFFIX, case_name, suffix_of
from flare.challenge.rules import Challenge
from flare.common.errors import EngineError, InputError, SubmissionError
from flare.common.text import listing, safe
from flare.evaluation.check import check_submission, find_images
from flare.evaluation.errors import EmptyError, FileFormatError
from flare.evaluation.options import Options
from flare.evaluation.plan import with_options
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME
from flare.measuring.archive.strict import BrokenError, StrictHeader, explained
from flare.measuring.cleanup import guarded
from flare.measuring.container import Conditions, ContainerRun, End
from flare.measuring.engines.interface import ANSWER_S, Engine, NoAnswerError
from flare.measuring.host import SPARE_BYTES, wait_until_idle
from flare.measuring.image import NOTHING, OUTPUTS, LoadedImage, image_tar
from flare.measuring.options import Contract
from flare.results.efficiency_csv import RunStatus
from flare.results.team_folder import FolderLock

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
    rules = with_options(challenge, Options(grid="size", unknown_labels="ignore"))
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
    doubt: str = ""
    """What is doubtful of it, although nothing is wrong."""

    @property
    def may_have_lost_gpu(self) -> bool:
        """Whether its container has failed by itself, after it had used the GPU."""
        if self.status is not RunStatus.FAILED or not self.run:
            return False
        return self.run.end is End.ENDED and self.run.trace.has_used_gpu


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

    A container that fails after it has used the GPU is run once more: a GPU can be
    taken from a running container, as systemd does when its units are read again.

    Raises
    ------
    EngineError
        If it cannot be run, and neither can an empty container.
    """
    trial = _run_case(image, case, challenge)
    if not trial.may_have_lost_gpu:
        return trial
    again = _run_case(image, case, challenge)
    doubt = f"before, it used the GPU, and {trial.message}: was the GPU taken from it?"
    return replace(again, doubt=doubt)


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
            problem = run.ended.problem if run else ""
            if not problem:
                return trial
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


def try_engine(engine: Engine, folder: Path, conditions: Conditions) -> None:
    """Run an empty container, without anything of a team.

    Parameters
    ----------
    engine : Engine
        What it runs in.
    folder : Path
        It remembers what is to be removed, and nobody else has it.
    conditions : Conditions
        Under which teams' containers are run.

    Raises
    ------
    EngineError
        If that does not work: no submission is at fault.
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
                key=place.key,
                work=place.work,
            )
        )


def _try_case(image: LoadedImage, case: LabelMapFile, challenge: Challenge) -> Trial:
    contract = image.conditions.contract
    inputs = image.fresh_folder("inputs")
    ct = lay_out(case, inputs, contract)
    # No number type of a label map takes more than 16 bytes, compressed or not.
    most_bytes = 16 * math.prod(case.read_grid().shape) + 2**20
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


# --- What a container is given, and what it gives -----------------------------------


MOST_ENTRIES = 10_000
"""Files and folders of an output."""

MOST_FILES = 100
"""Files that are taken out: a right output has one."""

MOST_MAPS = 4
"""All files together may be as large as this number of label maps."""

DEEPEST = 20
"""Folders within folders that a file may lie in."""


class WrongOutputError(Exception):
    """What a container has written cannot be right; the text says why."""


def lay_out(case: LabelMapFile, inputs: Path, contract: Contract) -> Path:
    """Put the image of a case where a container looks for it.

    Parameters
    ----------
    case : LabelMapFile
        The image, which is copied, under its own name.
    inputs : Path
        An empty folder, which the container will read.
    contract : Contract
        Says where.

    Returns
    -------
    Path
        The copy; nothing else is in its folder.
    """
    folder = inputs
    for part in PurePosixPath(contract.input_path).parts:
        folder /= part
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whichever user the image has
    image = folder / Path(case.name).name
    shutil.copyfile(case.path, image)
    image.chmod(0o644)
    if contract.is_algorithm:
        listed = inputs / INPUTS_FILE_NAME
        socket: dict[str, Any] = {
            "title": contract.input_slug,
            "description": "",
            "slug": contract.input_slug,
            "kind": "Image",
            "super_kind": "Image",
            "relative_path": contract.input_path,
            "default_value": None,
            "overlay_segments": [],
            "look_up_table": None,
        }
        pk = str(uuid.uuid5(uuid.NAMESPACE_URL, image.name))
        what = {"value": None, "file": None, "image": {"pk": pk, "name": image.name}}
        text = json.dumps([{**what, "interface": socket, "socket": socket}], indent=2)
        listed.write_text(f"{text}\n", encoding="utf-8")
        listed.chmod(0o644)
    return image


def take_out(
    engine: Engine, holder: str, folder: Path, most_bytes: int
) -> dict[str, str]:
    """Copy the files of a volume to a folder.

    Parameters
    ----------
    engine : Engine
        Which has the volume.
    holder : str
        ID of the container of ours that holds it.
    folder : Path
        Empty, and closed to other users.
    most_bytes : int
        No honest file is larger.

    Returns
    -------
    dict of str to str
        Names of what is not a file, and what it is; folders are not counted.

    Raises
    ------
    WrongOutputError
        If not all can be taken out; some of it may be in the folder.
    EngineError
        If the engine does not answer any more.
    """
    process = engine.copy_out(holder, OUTPUTS)
    alarm = threading.Timer(ANSWER_S, process.kill)
    alarm.start()
    try:
        with explained():
            others = _copy(cast("IO[bytes]", process.stdout), folder, most_bytes)
            is_read = process.wait() == 0
    except BrokenError:
        is_read = False
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        with suppress(OSError):
            if process.stdout:
                process.stdout.close()
    if not is_read:
        engine.describe()  # if it does not answer, no team is at fault
        raise WrongOutputError("the engine cannot read it")
    return others


def _copy(content: IO[bytes], folder: Path, most_bytes: int) -> dict[str, str]:  # noqa: C901
    """Copy label maps; of other files only the names count: they stay empty."""
    count = files = 0
    others: dict[str, str] = {}
    left_bytes = MOST_MAPS * most_bytes
    with tarfile.open(
        fileobj=content, mode="r|", tarinfo=StrictHeader, errors="surrogateescape"
    ) as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # they are not needed
            count += 1
            if count > MOST_ENTRIES:
                raise WrongOutputError(
                    f"there are more than {MOST_ENTRIES} files and folders"
                )
            parts = [part for part in PurePosixPath(member.name).parts if part != "/"]
            name = "/".join(parts)
            if member.isdir():
                continue
            if not member.isreg():
                is_link = member.issym() or member.islnk()
                others[name] = "a link" if is_link else "no regular file"
                continue
            if member.size > most_bytes:
                size = f"{member.size} bytes are more than any label map of this CT"
                raise WrongOutputError(f"{safe(name)}: {size}")
            if len(parts) > DEEPEST or ".." in parts or not parts:
                raise WrongOutputError(
                    f"{safe(name)}: it lies deeper than {DEEPEST} folders"
                )
            left_bytes -= member.size  # holes are read as zeros, and take no room
            if left_bytes < 0:
                raise WrongOutputError(
                    f"its files take more than {MOST_MAPS} label maps of this CT"
                )
            files += 1
            if files > MOST_FILES:
                raise WrongOutputError(f"there are more than {MOST_FILES} files")
            file = folder.joinpath(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as target:
                source = archive.extractfile(member)
                if source and case_name(Path(name)):
                    shutil.copyfileobj(source, target)
    return others


def files_of(folder: Path) -> list[str]:
    """Names of the files of an output, below its folder, in their order."""
    return sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()
    )


def move_map(
    folder: Path, others: Mapping[str, str], file: Path, contract: Contract
) -> Path:
    """Move the label map of an algorithm to where FLARE's contract has it.

    Parameters
    ----------
    folder : Path
        Of what it has written.
    others : mapping
        What is not a file there, see `take_out`.
    file : Path
        On the same file system; its name is that of the case, and gets an ending.
    contract : Contract
        Says where the label map should be.

    Raises
    ------
    WrongOutputError
        If there is not one file where the contract wants it.
    """
    kinds = dict.fromkeys(files_of(folder), "") | dict(others)
    place = PurePosixPath(contract.output_path)
    there = sorted(name for name in kinds if PurePosixPath(name).parent == place)
    if len(there) != 1:
        found = listing(there or sorted(kinds))
        raise WrongOutputError(
            f"expected one label map in {contract.written_to}, found {found}"
        )
    (name,) = there
    if kinds[name]:
        raise WrongOutputError(f"{safe(name)}: it is {kinds[name]}")
    suffix = suffix_of(name)
    if not suffix:
        raise WrongOutputError(
            f"{safe(name)}: it is no label map; let the algorithm write .mha"
        )
    return (folder / name).replace(file.with_name(f"{file.name}{suffix}"))
