"""Unpacks a team's image into a folder for as long as it is needed."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from flare.common.errors import EngineError
from flare.common.own_tar import unpack_own
from flare.common.text import safe
from flare.measuring.apptainer import unpack_layers
from flare.measuring.apptainer.box import Box, opened_box
from flare.measuring.apptainer.cleanup import guarded_folder, remove_own
from flare.measuring.apptainer.command import exec_command
from flare.measuring.apptainer.engine import Apptainer, check_limits
from flare.measuring.apptainer.run import run_in_box
from flare.measuring.archive.image_json import BLOBS
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.repack import write_image
from flare.measuring.conditions import Conditions
from flare.measuring.container import ContainerRun
from flare.measuring.disk import SPARE_BYTES, DiskWatch, room
from flare.measuring.empty_image import image_tar
from flare.measuring.errors import LoadError
from flare.measuring.loading import wait_loaded
from flare.measuring.model_folder import model_folder
from flare.measuring.outputs import Output, unpack
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock

SPECIAL = ",:\"'\\"
"""What Apptainer would not take for a part of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackedImage:
    """A team's image in a folder, and one of ours beside it."""

    engine: Apptainer
    conditions: Conditions
    """Under which their containers are run."""
    archive: Archive
    """Of the team's."""
    work: Path
    """A folder that other users cannot enter, with both images."""
    model: Path | None = None
    """Folder of the model that was sent beside the team's, if one was."""

    @property
    def image(self) -> str:
        """ID of the team's."""
        return self.archive.image

    def fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""
        folder = self.work / name
        remove_own(folder)
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whoever the image's user is
        return folder

    @contextmanager
    def fresh_volume(self) -> Iterator[Box]:
        """A box, with an empty folder for an output."""
        outputs, shm = self.fresh_folder("volume"), self.fresh_folder("shm")
        with opened_box(outputs, shm, self.conditions.limits) as box:
            yield box

    def run(self, inputs: Path, volume: Box) -> ContainerRun:
        """Run the team's image on what is in a folder, and measure it."""
        return run_in_box(
            volume,
            self.work / "image",
            self._words(),
            program=self.engine.program,
            inputs=inputs,
            overlay=self.fresh_folder("overlay"),
            directory=self.archive.working_directory or "/",
            variables=(*self.archive.environment, *self.archive.overrides),
            conditions=self.conditions,
            model=self.model,
        )

    def run_ours(
        self,
        words: tuple[str, ...],
        inputs: Path,
        volume: Box,
        conditions: Conditions | None = None,
    ) -> ContainerRun:
        """Run a program of our own image, under the same conditions or others."""
        return run_in_box(
            volume,
            self.work / "empty",
            words,
            program=self.engine.program,
            inputs=inputs,
            overlay=self.fresh_folder("overlay"),
            directory="/",
            variables=(),
            conditions=conditions or self.conditions,
        )

    def take_out(self, volume: Box, folder: Path, most_bytes: int) -> Output:
        """Copy the files that were written to a volume to a folder."""
        packed = volume.begin(
            *("tar", "--create", "--file=-", "--format=pax", "--no-wildcards"),
            *(f"--directory={volume.outputs}", "."),
            stdout=subprocess.PIPE,
        )
        return unpack(packed, folder, most_bytes, volume.check)

    def command(self) -> str:
        """How a container is run, for the record."""
        words = exec_command(
            *(self.engine.program, self.archive.working_directory or "/"),
            inputs=Path("INPUTS"),
            outputs=Path("OUTPUTS"),
            shm=Path("SHM"),
            overlay=Path("OVERLAY"),
            limits=self.conditions.limits,
            contract=self.conditions.contract,
            model=Path("MODEL") if self.model else None,
        )
        return " ".join((*words, "IMAGE", shlex.join(self._words())))

    def _words(self) -> tuple[str, ...]:
        """What is run: what Docker would run, which knows an entrypoint."""
        settings = json.loads(self.archive.configuration).get("config") or {}
        command = self.conditions.contract.command or settings.get("Cmd") or ()
        return tuple(map(str, (*(settings.get("Entrypoint") or ()), *command)))

    def check_words(self) -> None:
        """See that Apptainer can be told what is run, and with which variables.

        Raises
        ------
        LoadError
            If it cannot.
        """
        archive = self.archive
        texts = (*self._words(), *archive.environment, archive.working_directory)
        if any("\0" in text or not _is_utf8(text) for text in texts):
            problem = "its command or its environment has characters that no text has"
            raise LoadError(archive.path.name, problem)


@contextmanager
def unpacked_image(
    archive: Archive,
    folder: Path,
    *,
    engine: Apptainer,
    conditions: Conditions,
    lock: FolderLock,
) -> Iterator[UnpackedImage]:
    """An image that is unpacked, and removed in the end with all that was made for it.

    Parameters
    ----------
    archive, folder, engine, conditions, lock
        As in `flare.measuring.engines.runnable_image`.

    Raises
    ------
    FlareError
        If the image has no room, or cannot be unpacked.
    """
    check_limits(conditions.limits)
    _check_folder(archive, folder.resolve())
    with guarded_folder(folder, lock) as work:
        with tarfile.open(fileobj=io.BytesIO(image_tar())) as ours:
            unpack_own(ours, work / "empty")
        image = UnpackedImage(
            engine=engine, conditions=conditions, archive=archive, work=work
        )
        image.check_words()
        _unpack(image)
        yield replace(image, model=model_folder(archive, work))


def _is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_folder(archive: Archive, folder: Path) -> None:
    """See that an image has room in a folder, and that Apptainer knows its path."""
    if set(SPECIAL) & set(str(folder)):
        problem = "Apptainer takes commas, colons and quotes in its path for more"
        remedy = "Measure into another folder: --output."
        raise MeasurementError(str(folder), problem, remedy)
    needed = 3 * archive.unpacked_bytes + SPARE_BYTES
    free = room(folder).free_bytes
    if free < needed:
        problem = (
            f"{free / 2**30:.1f} GiB are free in {safe(str(folder))}, and the image"
            f" needs {needed / 2**30:.1f}"
        )
        raise MeasurementError(archive.path.name, problem, "Make room there.")


def _unpack(image: UnpackedImage) -> None:
    """Unpack what was checked of an archive, and nothing else.

    What is unpacked is written by `flare.measuring.archive.repack.write_image`.
    """
    archive = image.archive
    layout, folder = image.fresh_folder("layout"), image.fresh_folder("image")
    _write_layout(archive, layout)
    watch = DiskWatch(image.work, 3 * archive.unpacked_bytes + 2**30)
    layers = [str(layout / BLOBS / layer.diff_id) for layer in archive.layers]
    with image.fresh_volume() as box, (image.work / "log").open("w+b") as log:
        process = box.begin(
            *(sys.executable, "-I", "-X", "utf8", unpack_layers.__file__),
            *(str(folder), *layers),
            stderr=log.fileno(),
        )
        problem = wait_loaded(process, watch, archive.unpacked_bytes)
        box.end()  # and with it the process, if it is still there
        process.wait()
        log.seek(0)
        said = log.read(2**16).decode("utf-8", "replace").strip().splitlines()
    if not problem and process.returncode:
        problem = f"it cannot be unpacked ({safe(''.join(said[-1:]))})"
    if problem:
        raise LoadError(archive.path.name, problem)
    remove_own(layout)


def _write_layout(archive: Archive, folder: Path) -> None:
    """Write an image of our own making as a folder in the layout of OCI."""
    process = subprocess.Popen(
        ["tar", "--extract", "--file=-", "--directory", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with cast("BinaryIO", process.stdin) as pipe:
            write_image(archive, pipe)
    except OSError:
        process.wait()  # it has ended, and its status says so
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
    if process.returncode:
        problem = f"{safe(folder)}: what is in the archive cannot be written there"
        raise EngineError(problem, "Make room there, and go on.")
