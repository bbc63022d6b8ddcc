"""Loads a team's image, runs it on single cases, and removes everything again."""

from __future__ import annotations

import math
import os
import shutil
import socket
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from flare.archive import Archive
from flare.cases import Case
from flare.challenge import Challenge, GridComparison, UnknownLabels
from flare.checking import check_submission
from flare.container import (
    COMMAND,
    NOTHING,
    SPARE_BYTES,
    ContainerRun,
    Engine,
    Limits,
)
from flare.efficiency import RunStatus
from flare.errors import EngineError, InputError, MeasurementError, SubmissionError
from flare.gpu import MemorySource
from flare.guard import Guard, remove_tree, take_lock
from flare.labelmaps import SUFFIXES, read_grid
from flare.names import listing, safe

VOXEL_BYTES = 16
"""No number type of a label map takes more, compressed or not."""

HEADER_BYTES = 2**20

KEPT_FILES = 3
KEPT_BYTES = 2**26
"""Of an output that cannot be used, so many files, and so much of each, are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of running a case once."""

    run: ContainerRun
    status: RunStatus
    message: str
    """Why it is no good; empty if it is."""


class Runner:
    """An image that is loaded, until this is closed.

    Parameters
    ----------
    archive : Archive
        Without problems.
    folder : Path
        Where folders for the container are made.
    engine : Engine
        What it runs in.
    limits : Limits
        What its containers may use.
    interval_s : float
        Between two samples.
    gpu : MemorySource, optional
        What is sampled of the GPU.
    lock : socket, optional
        Of the image, if it was taken before.

    Raises
    ------
    HostError
        If the image has no room, cannot be loaded, or would take another one's name.
    """

    def __init__(
        self,
        archive: Archive,
        folder: Path,
        *,
        engine: Engine,
        limits: Limits,
        interval_s: float,
        gpu: MemorySource | None = None,
        lock: socket.socket | None = None,
    ) -> None:
        lock = lock or take_lock(archive.tag)
        self._engine, self._limits = engine, limits
        self._interval_s, self._gpu = interval_s, gpu
        self._nothing = ""
        try:
            _check_disk(archive, engine)
        except BaseException:
            lock.close()
            raise
        key = uuid.uuid4().hex[:12]
        self._guard = Guard(engine, folder, key=key, tag=archive.tag, lock=lock)
        try:
            if self._guard.is_image_ours:
                self.image = engine.load(archive)
            else:
                self.image = engine.image_id(archive.tag)
                if not archive.is_image(self.image):
                    problem = f"there is another image {archive.tag} on this computer"
                    remedy = f"Remove it: docker image rm {archive.tag}"
                    raise MeasurementError(archive.path.name, problem, remedy)
        except BaseException:
            self._guard.close()
            raise

    def __enter__(self) -> Self:
        """Nothing more is needed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove everything."""
        self.close()

    def close(self) -> None:
        """Remove containers, folders and the image; nothing if that was done."""
        self._guard.close()

    def run_empty(self) -> float:
        """Running time, in seconds, of a container of ours that does nothing.

        Raises
        ------
        EngineError
            If not even that works: no team is at fault.
        """
        if not self._nothing:
            self._nothing = self._engine.load_nothing(self._guard.nothing)
        with case_folders(self._guard.work) as (inputs, outputs):
            run = self._run(inputs, outputs, NOTHING, self._nothing)
        if run.engine_problem or run.exit_code:
            problem = run.engine_problem or f"exit code {run.exit_code}"
            text = f"An empty container cannot be run ({safe(problem)})"
            raise EngineError(text, "Check the engine, --gpu, --memory and --shm-size.")
        return run.runtime_s

    @contextmanager
    def run_case(
        self, case: Case, challenge: Challenge
    ) -> Iterator[tuple[Outcome, Path]]:
        """Run the image once; yields what came of it, and the folder of its output.

        Raises
        ------
        EngineError
            If the container cannot even be made.
        """
        with case_folders(self._guard.work) as (inputs, outputs):
            name = Path(case.image.name).name
            shutil.copyfile(case.image.path, inputs / name)
            (inputs / name).chmod(0o644)
            run = self._run(inputs, outputs, COMMAND, self.image)
            status, message = judge(run, outputs, inputs, challenge)
            yield Outcome(run=run, status=status, message=message), outputs
            self._engine.hand_over(self.image, outputs, self._guard.key)

    def set_aside(self, outputs: Path, status: RunStatus) -> list[Path]:
        """Copies of the label maps of an output, which outlive its folder.

        Nothing that they may lead to is copied. Of an output that cannot be used, there
        are at most three, and none that is too large.
        """
        folder = self._guard.work / "kept"
        remove_tree(folder)
        folder.mkdir()
        copies: list[Path] = []
        if status not in (RunStatus.OK, RunStatus.WRONG_OUTPUT):
            return copies
        for number, source in enumerate(label_maps(outputs)[:KEPT_FILES]):
            suffix = next(s for s in SUFFIXES if source.name.lower().endswith(s))
            copy = folder / f"{number}{suffix}"
            try:
                descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
            except PermissionError:
                continue  # it was judged wrong because nobody may read it
            with os.fdopen(descriptor, "rb") as content, copy.open("wb") as file:
                if status is RunStatus.WRONG_OUTPUT:
                    file.write(content.read(KEPT_BYTES))
                else:
                    shutil.copyfileobj(content, file)
            copies.append(copy)
        return copies

    def _run(
        self, inputs: Path, outputs: Path, command: Sequence[str], image: str
    ) -> ContainerRun:
        return self._engine.run(
            image,
            inputs,
            outputs,
            limits=self._limits,
            key=self._guard.key,
            interval_s=self._interval_s,
            gpu=self._gpu,
            command=command,
        )


def _check_disk(archive: Archive, engine: Engine) -> None:
    """See that an image has room."""
    needed = 2 * archive.unpacked_bytes + SPARE_BYTES
    folder = Path(engine.describe()["folder"])
    place = folder if folder.is_dir() else Path("/")
    free = shutil.disk_usage(place).free
    if free < needed:
        problem = (
            f"{free / 2**30:.1f} GiB are free in {safe(place)}, and the image needs"
            f" {needed / 2**30:.1f}"
        )
        raise MeasurementError(archive.path.name, problem, "Make room there.")


@contextmanager
def case_folders(work: Path) -> Iterator[tuple[Path, Path]]:
    """Two fresh folders, for input and output of a container, removed afterwards."""
    inputs, outputs = work / "inputs", work / "outputs"
    for folder in (inputs, outputs):
        remove_tree(folder)
        folder.mkdir()
    outputs.chmod(0o777)  # whoever the image's user is
    try:
        yield inputs, outputs
    finally:
        for folder in (inputs, outputs):
            remove_tree(folder)


# --- What came of a run -----------------------------------------------------------


def judge(
    run: ContainerRun, outputs: Path, inputs: Path, challenge: Challenge
) -> tuple[RunStatus, str]:
    """The status of a run, and why it is no good.

    Parameters
    ----------
    run : ContainerRun
        What came of the container.
    outputs, inputs : Path
        What it has written, and the one image that it was given.
    challenge : Challenge
        Whose labels are allowed; its grid is compared by size, and unknown labels are
        let pass, as when the team is evaluated.
    """
    seconds = f"after {run.runtime_s:.1f} s"
    if run.engine_problem:
        return RunStatus.ENGINE_ERROR, f"the engine says: {safe(run.engine_problem)}"
    if run.has_filled_disk:
        room = f"less than {SPARE_BYTES >> 30} GiB were left on the disk"
        return RunStatus.FAILED, f"the container was ended {seconds}: {room}"
    if run.trace.problem:
        # Without samples, its memory would be that of the idle GPU.
        return RunStatus.ENGINE_ERROR, f"sampling has ended early: {run.trace.problem}"
    if run.is_late:
        return RunStatus.TIMED_OUT, f"the container was ended {seconds}"
    if run.exit_code:
        code = f"the container ended with exit code {run.exit_code} {seconds}"
        if run.is_out_of_memory:
            return RunStatus.OUT_OF_MEMORY, f"{code}: its memory did not suffice"
        return RunStatus.FAILED, code
    found = list(_entries(outputs))
    if not found:
        return RunStatus.NO_OUTPUT, "it has written nothing to /workspace/outputs"
    most = _largest_bytes(inputs)
    for name in found:
        size = (outputs / name).lstat().st_size
        if size > most:
            text = f"{safe(name)}: {size} bytes are more than any label map of this CT"
            return RunStatus.WRONG_OUTPUT, text
    rules = replace(
        challenge,
        grid=replace(challenge.grid, compare=GridComparison.SIZE),
        unknown_labels=replace(
            challenge.unknown_labels, prediction=UnknownLabels.IGNORE
        ),
    )
    try:
        report = check_submission(outputs, rules, images=inputs, workers=1)
        lines = report.lines
    except (SubmissionError, InputError, OSError, RecursionError) as error:
        lines = (str(error),)
    if lines and not _is_empty_only(lines):
        return RunStatus.WRONG_OUTPUT, " ".join(lines)
    if len(label_maps(outputs)) != 1:
        return RunStatus.WRONG_OUTPUT, f"expected one label map, found {listing(found)}"
    return RunStatus.OK, ""


def _largest_bytes(inputs: Path) -> int:
    """The most bytes that an honest label map of the one image there can take."""
    (image,) = inputs.iterdir()
    return VOXEL_BYTES * math.prod(read_grid(image, image.name).shape) + HEADER_BYTES


def _is_empty_only(lines: Sequence[str]) -> bool:
    """Whether all that is wrong is that nothing was found, which may be right."""
    return len(lines) == 1 and lines[0].endswith("[F12]")


def _entries(folder: Path) -> Iterator[str]:
    """Names of all that is in a folder but folders; links are not followed."""
    for path, _, files in os.walk(folder):
        for name in files:
            yield str((Path(path) / name).relative_to(folder))


def label_maps(folder: Path) -> tuple[Path, ...]:
    """Regular files of a folder that are label maps by their names."""
    return tuple(
        path
        for path in (folder / name for name in sorted(_entries(folder)))
        if path.name.lower().endswith(SUFFIXES) and stat.S_ISREG(path.lstat().st_mode)
    )
