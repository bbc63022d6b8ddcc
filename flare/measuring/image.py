"""Loads a team's image into the engine, and keeps it there as long as it is needed."""

from __future__ import annotations

import io
import logging
import shutil
import struct
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, cast

from flare.common.errors import EngineError
from flare.common.files import remove_tree
from flare.common.text import safe, why
from flare.measuring.archive.model import unpack_model
from flare.measuring.archive.reading import Archive, write_image
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.cleanup import Workplace, guarded, label_of
from flare.measuring.container import Conditions, ContainerRun, run_container
from flare.measuring.engines.interface import Container, Engine
from flare.measuring.host import SPARE_BYTES, DiskWatch, check_room
from flare.measuring.options import MODEL_FOLDER
from flare.results.team_folder import FolderLock

LOAD_S = 300.0
"""Seconds that loading any image may take,"""

LOAD_BYTES_PER_S = 20 * 2**20
"""and the rate at which larger ones get more."""

LOOK_S = 0.2
"""Time between two looks at the disk meanwhile."""

TRIES = 3
"""Tries to load an image if the engine fails and the archive is not the cause."""

ALONE = "See that nobody else changes images meanwhile, and go on."
"""The remedy if somebody else is the cause."""

_log = logging.getLogger(__name__)


class LoadError(ArchiveError):
    """An engine cannot load what a team's archive holds."""


class UnexplainedError(EngineError):
    """An engine cannot load an image, and names nothing of the computer as why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedImage:
    """A team's image in the engine, and one of ours beside it."""

    engine: Engine
    conditions: Conditions
    """Their containers are run under these."""
    image: str
    """ID of the team's."""
    overrides: tuple[str, ...]
    """Variables that replace those of the image, as NAME=VALUE."""
    empty: str
    """ID of ours, see `image_tar`."""
    place: Workplace
    """All that is made for it has the key of this."""
    model: Path | None = None
    """A folder in it, with the model that was sent beside the image; never changed."""
    unanswered: list[str] = field(default_factory=list)
    """Requests for the team's containers that the engine has not answered in a row."""

    def fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""
        folder = self.place.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whichever user the image has
        return folder

    def fresh_volume(self) -> AbstractContextManager[Volume]:
        """An empty volume for an output."""
        size = self.conditions.limits.output_size
        return output_volume(self.engine, self.empty, label_of(self.place.key), size)

    def run(
        self, inputs: Path, volume: Volume, program: tuple[str, ...] = ()
    ) -> ContainerRun:
        """Run the team's image on what is in a folder, and measure it.

        Or, under the same conditions, a program of ours, see `image_tar`.
        """
        model = str(self.model) if self.model and not program else ""
        container = self._container(str(inputs), volume.name, model, self.place.key)
        if program:
            container = replace(
                container, image=self.empty, command=program, environment=()
            )
        return run_container(self.engine, container, self.conditions)

    def command(self) -> str:
        """How a container is made, for the record."""
        model = "MODEL" if self.model else ""
        container = self._container("INPUTS", "OUTPUTS", model, "KEY")
        return self.engine.command_line(replace(container, image="IMAGE"))

    def _container(self, inputs: str, outputs: str, model: str, key: str) -> Container:
        contract = self.conditions.contract
        models = ((model, MODEL_FOLDER),) if model else ()
        return Container(
            image=self.image,
            label=label_of(key),
            limits=self.conditions.limits,
            reads=((inputs, contract.inputs), *models),
            writes=(outputs, contract.outputs),
            environment=self.overrides,
            command=contract.command,
        )


@contextmanager
def loaded_image(
    archive: Archive,
    folder: Path,
    *,
    engine: Engine,
    conditions: Conditions,
    lock: FolderLock,
) -> Iterator[LoadedImage]:
    """An image that is loaded, and removed in the end with all that was made for it.

    The archive is without problems. Folders for the container are made in `folder`,
    which is locked. A LoadError is raised if the image would have room if it did not
    list layers again. A FlareError is raised if it or its model has no room, or cannot
    be loaded.
    """
    disk = engine.folder()
    if disk:
        _check_repeats(disk, archive)
        needed = _needed_bytes(archive.disk_bytes)
        check_room(disk, needed, archive.path.name, "image")
    is_there, _ = find_image(engine, archive)
    images = () if is_there else (archive.image, archive.manifest)
    with guarded(engine, folder, images=images, lock=lock) as place:
        empty = engine.import_image(image_tar(), place.tags[0])
        with place.loading():
            image = load_image(engine, archive, place.tags[1])
        model = None
        if archive.model:
            needed = archive.model.unpacked_bytes + SPARE_BYTES
            check_room(place.work, needed, archive.model.path.name, "model")
            model = place.work / "model"
            unpack_model(archive.model, model)
        yield LoadedImage(
            engine=engine,
            conditions=conditions,
            image=image,
            overrides=archive.overrides,
            empty=empty,
            place=place,
            model=model,
        )


def _needed_bytes(disk_bytes: int) -> int:
    """Room for an image: the engine unpacks it, and then each layer from that."""
    return 2 * disk_bytes + SPARE_BYTES


def _check_repeats(disk: Path, archive: Archive) -> None:
    """Refuse an image that has no room on a disk only as it lists layers repeatedly."""
    total = shutil.disk_usage(disk).total
    if _needed_bytes(archive.once_bytes) <= total < _needed_bytes(archive.disk_bytes):
        size = archive.disk_bytes / 2**30
        raise LoadError(
            archive.path.name,
            f"it lists the same layers again, and would take {size:.1f} GiB: an engine"
            " stores each as often as it is listed",
            "List each layer once.",
        )


def find_image(engine: Engine, archive: Archive) -> tuple[str, frozenset[str]]:
    """The ID that an engine gives the image of an archive, and all its tags.

    Both are empty if it is not there.
    """
    names = (f"sha256:{archive.image}", f"sha256:{archive.manifest}")
    for image, tags in engine.tags_of(*names).items():
        if archive.is_image(image):
            return image, tags
    return "", frozenset()


def load_image(engine: Engine, archive: Archive, tag: str) -> str:
    """Load the image of an archive under a tag of ours, and return its ID.

    The engine never sees the file of the team: what it loads is written by
    `flare.measuring.archive.reading.write_image`, and names no tag. What the engine
    says of its content is the archive's fault, a LoadError. Anything else is tried
    again, as others may use the engine at the same time. In the end, what the engine
    says of the computer is the host's fault, an EngineError. If it names neither, the
    archive is at fault: the engine works, as it has taken an image of ours just before.
    An image that was there before with a tag of its own does not get ours. A file that
    has changed since it was read is an ArchiveError.
    """
    for _ in range(TRIES - 1):
        try:
            return _load(engine, archive, tag)
        except EngineError as error:
            engine.describe()
            _log.info("Loading %s again: %s", safe(archive.path.name), error.finding)
    try:
        return _load(engine, archive, tag)
    except UnexplainedError as error:
        engine.describe()
        raise LoadError(archive.path.name, _cannot(error)) from error


def _load(engine: Engine, archive: Archive, tag: str) -> str:
    """Load an image, and see that it is the one that was checked."""
    earlier_image, tags = find_image(engine, archive)
    _feed(engine, archive)
    name = safe(archive.path.name)
    image, _ = find_image(engine, archive)
    if not image:
        # It has no tag yet: what was left of another measurement of the same image may
        # just have been removed, and this with it.
        raise EngineError(
            f"{name}: the engine has no image {archive.image[:12]} of it", ALONE
        )
    if not earlier_image or tags:  # an image without any tag would go with ours
        engine.tag(image, tag)
    return image


def _feed(engine: Engine, archive: Archive) -> None:
    """Let the engine load what is written of an archive."""
    # The engine unpacks the whole archive, and then each layer from it.
    watch = DiskWatch(engine.folder(), 3 * archive.disk_bytes + 2**30)
    deadline = time.monotonic() + LOAD_S + archive.disk_bytes / LOAD_BYTES_PER_S
    process = engine.begin_load()
    with _watched(process, watch, deadline) as problems:
        stderr = _write(archive, process)
    if problems:
        raise EngineError(f"{safe(archive.path.name)}: {problems[0]}", ALONE)
    if process.returncode:
        error, is_of_content = engine.load_error(stderr)
        if is_of_content:
            raise LoadError(archive.path.name, _cannot(error))
        raise error if is_of_content is False else UnexplainedError(error.finding)


def _write(archive: Archive, process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdin
    assert process.stderr
    with suppress(OSError):  # it has ended, and says why
        write_image(archive, cast("BinaryIO", process.stdin))
    with suppress(OSError):
        process.stdin.close()  # else it may wait for more
    stderr = process.stderr.read()
    process.wait()
    return stderr


@contextmanager
def _watched(
    process: subprocess.Popen[bytes], watch: DiskWatch, deadline: float
) -> Iterator[list[str]]:
    """Kill a process that takes too long, or too much of the disk.

    Yields why it was killed, as soon as it is. Behind the block, the process has ended.
    """
    has_ended, problems = threading.Event(), list[str]()

    def end_if_needed() -> None:
        try:
            while not problems and not has_ended.wait(LOOK_S):
                if time.monotonic() > deadline:
                    problems.append("loading it takes too long")
                elif watch.is_alarming():
                    problems.append("loading it takes too much of the disk")
        except OSError as error:
            problems.append(f"the engine's disk cannot be looked at ({why(error)})")
        process.kill()

    watcher = threading.Thread(target=end_if_needed, daemon=True)
    watcher.start()
    try:
        yield problems
    finally:
        has_ended.set()
        watcher.join()
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stderr)):
            with suppress(OSError):
                pipe.close()


def _cannot(error: EngineError) -> str:
    return f"the engine cannot load it ({error.finding})"


# --- An image of our own ----------------------------------------------------------

# A container of its first program tells what the engine itself costs. One of the second
# keeps a volume mounted while another container writes to it: nothing of a team is run.


NOTHING, HOLD = ("/nothing",), ("/hold",)
"""Programs of it: one ends at once, with exit code 0; one waits until it is killed."""

_MACHINE_CODE = {
    NOTHING: "31ff b83c000000 0f05",  # xor edi, edi; mov eax, 60 (exit); syscall
    HOLD: "b822000000 0f05 ebf7",  # mov eax, 34 (pause); syscall; jump to the start
}

OUTPUTS = "/outputs"
"""A folder of it, for a volume."""


def _elf_program(code: bytes) -> bytes:
    """An ELF file for x86-64 Linux with a single segment, which holds the code."""
    base, headers = 0x400000, 64 + 56  # where Linux loads programs; the code is behind
    size = headers + len(code)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)  # 64 bits, little-endian
    # An executable for x86-64, where it starts, and where its one segment is described.
    fields = (2, 62, 1, base + headers, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    header = struct.pack("<16sHHIQQQIHHHHHH", identity, *fields)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096)
    return header + segment + code


def image_tar() -> bytes:
    """The file system of the image, as a tar file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for (path,), code in _MACHINE_CODE.items():
            program = _elf_program(bytes.fromhex(code))
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(program), 0o755
            archive.addfile(entry, io.BytesIO(program))
        folder = tarfile.TarInfo(OUTPUTS.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    return content.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume that vanishes with the container that holds it."""

    name: str
    holder: str
    """ID of the container of ours that does nothing but hold it."""


@contextmanager
def output_volume(
    engine: Engine, empty: str, label: str, size: str
) -> Iterator[Volume]:
    """A fresh volume in memory for the output of a container.

    It vanishes when no container has it any more: so one of ours holds it, made of our
    own image, `empty`. A size is such as 4g.
    """
    name, holder = "", ""
    try:
        name = engine.make_volume(label, size, files=10_000)
        holder = engine.hold_volume(name, OUTPUTS, label, empty, HOLD)
        yield Volume(name=name, holder=holder)
    finally:
        if holder:
            engine.remove_container(holder)
        if name:
            engine.remove_volume(name)
