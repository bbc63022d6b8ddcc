"""Loads a team's image, runs it on single cases, and removes everything again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from flare.challenge.cases import SUFFIXES
from flare.challenge.rules import Challenge
from flare.common.errors import EngineError
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.cases import Case
from flare.measuring.cleanup import Guard
from flare.measuring.container import COMMAND, ContainerRun, Limits, run_container
from flare.measuring.disk import SPARE_BYTES, room
from flare.measuring.empty_image import NOTHING
from flare.measuring.engine import Engine
from flare.measuring.errors import LoadError
from flare.measuring.host_load import Caches
from flare.measuring.lock import FolderLock
from flare.measuring.outputs import take_out
from flare.measuring.sampling.gpu import MemorySource
from flare.measuring.status import (
    label_maps,
    largest_bytes,
    status_of_output,
    status_of_run,
)
from flare.results.efficiency_csv import RunStatus
from flare.results.errors import MeasurementError

KEPT_FILES = 3
KEPT_BYTES = 2**26
"""Of an output that cannot be used, so many files, and so much of each, are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of running a case once."""

    run: ContainerRun | None
    """None if the engine could not even make a container."""
    status: RunStatus
    message: str
    """Why it is no good; empty if it is."""
    files: tuple[Path, ...] = ()
    """Label maps that it has written; gone when the next case is run."""


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
    caches : Caches
        What a run finds in the memory of the computer.
    gpu : MemorySource, optional
        What is sampled of the GPU.
    lock : FolderLock, optional
        Of the folder, if it was taken before.

    Raises
    ------
    FlareError
        If the image has no room, or cannot be loaded.
    """

    def __init__(
        self,
        archive: Archive,
        folder: Path,
        *,
        engine: Engine,
        limits: Limits,
        interval_s: float,
        caches: Caches = Caches.WARM,
        gpu: MemorySource | None = None,
        lock: FolderLock | None = None,
    ) -> None:
        lock = lock or FolderLock(folder)
        self._archive, self._engine, self._limits = archive, engine, limits
        self._interval_s, self._caches, self._gpu = interval_s, caches, gpu
        self._empty = ""
        try:
            _check_disk(archive, engine)
            is_there = bool(engine.find_image(archive))
        except BaseException:
            lock.close()
            raise
        images = () if is_there else (archive.image, archive.manifest)
        self._guard = Guard(engine, folder, images=images, lock=lock)
        try:
            self._empty = engine.load_empty(self._guard.empty)
            with self._guard.loading():
                self.image = load_image(archive, engine, self._guard.tag)
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

    def run_empty(self, times: int = 1) -> list[float]:
        """Running times, in seconds, of a container of ours that does nothing.

        Raises
        ------
        EngineError
            If not even that works: no team is at fault.
        """
        inputs = self._fresh_folder("inputs")
        with self._volume() as (outputs, _):
            runs = [
                self._run(inputs, outputs, NOTHING, self._empty, ())
                for _ in range(times)
            ]
        for run in runs:
            if run.engine_problem or run.exit_code:
                problem = run.engine_problem or f"exit code {run.exit_code}"
                text = f"An empty container cannot be run ({safe(problem)})"
                remedy = "Check the engine, --gpu, --memory, --shm-size and --runtime."
                raise EngineError(text, remedy)
        return [run.runtime_s for run in runs]

    def run_case(self, case: Case, challenge: Challenge) -> Outcome:
        """Run the image once, and judge what came of it.

        An image that cannot be started, twice, although an empty container can, is to
        blame itself.

        Raises
        ------
        EngineError
            If it cannot be run, and neither can an empty container.
        """
        problem, run = "", None
        for _ in range(2):
            try:
                found = self._try_case(case, challenge)
            except EngineError as error:
                problem = error.finding
            else:
                run = found.run
                if not run or not run.engine_problem:
                    return found
                problem = run.engine_problem
            self.run_empty()
        message = f"the engine cannot run it: {safe(problem)}"
        return Outcome(run=run, status=RunStatus.FAILED, message=message)

    def _try_case(self, case: Case, challenge: Challenge) -> Outcome:
        """Run the image, and judge what came of it if it could be started."""
        inputs = self._fresh_folder("inputs")
        image = inputs / Path(case.image.name).name
        shutil.copyfile(case.image.path, image)
        image.chmod(0o644)
        most_bytes = largest_bytes(image)
        folder = self._fresh_folder("outputs")
        with self._volume() as (outputs, holder):
            run = self._run(
                inputs, outputs, COMMAND, self.image, self._archive.overrides
            )
            status, message = status_of_run(run)
            if status is not RunStatus.OK:
                return Outcome(run=run, status=status, message=message)
            output = take_out(self._engine, holder, folder, most_bytes)
        status, message = status_of_output(output, inputs, challenge)
        files = label_maps(output)
        if status is not RunStatus.OK:
            files = _kept(files)
        return Outcome(run=run, status=status, message=message, files=files)

    def _fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""
        folder = self._guard.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whoever the image's user is
        return folder

    @contextmanager
    def _volume(self) -> Iterator[tuple[str, str]]:
        """A fresh volume for an output, and the container that holds it."""
        limits = self._limits
        with self._engine.volume(
            self._empty, self._guard.key, limits.output_size, limits.output_files
        ) as found:
            yield found

    def _run(
        self,
        inputs: Path,
        outputs: str,
        command: Sequence[str],
        image: str,
        environment: Sequence[str],
    ) -> ContainerRun:
        return run_container(
            self._engine,
            image,
            inputs,
            outputs,
            limits=self._limits,
            key=self._guard.key,
            interval_s=self._interval_s,
            gpu=self._gpu,
            command=command,
            environment=environment,
            is_cold=self._caches is Caches.COLD,
        )


def load_image(archive: Archive, engine: Engine, tag: str) -> str:
    """Load an image; the engine has just made one of ours, so it can.

    Raises
    ------
    LoadError
        If the engine refuses it.
    EngineError
        If the engine does not answer any more.
    """
    try:
        return engine.load(archive, tag)
    except EngineError as error:
        engine.describe()
        problem = f"the engine cannot load it ({error.finding})"
        raise LoadError(archive.path.name, problem) from error


def _check_disk(archive: Archive, engine: Engine) -> None:
    """See that an image has room."""
    needed = 2 * archive.unpacked_bytes + SPARE_BYTES
    folder = engine.folder()
    free = room(folder).free_bytes if folder else needed
    if free < needed:
        problem = (
            f"{free / 2**30:.1f} GiB are free in {safe(str(folder))}, and the image"
            f" needs {needed / 2**30:.1f}"
        )
        raise MeasurementError(archive.path.name, problem, "Make room there.")


def _kept(files: Sequence[Path]) -> tuple[Path, ...]:
    """A few of the files of an output that cannot be used, cut if they are large."""
    kept = tuple(files[:KEPT_FILES])
    for file in kept:
        with file.open("r+b") as content:
            content.truncate(min(KEPT_BYTES, file.stat().st_size))
    return kept


def suffix_of(file: Path) -> str:
    """The extension of a label map, as the program writes it."""
    return next(s for s in SUFFIXES if file.name.lower().endswith(s))
