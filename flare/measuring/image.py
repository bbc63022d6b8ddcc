"""Loads a team's image into the engine, and keeps it there as long as it is needed."""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from flare.common.engine import ANSWER_S, Engine
from flare.common.errors import EngineError, FlareError
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.measuring.archive.model import unpack_model
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.repack import write_image
from flare.measuring.cleanup import TEAM_TAG, guarded
from flare.measuring.conditions import Conditions
from flare.measuring.container import ContainerRun, run_container
from flare.measuring.container_command import create_command
from flare.measuring.empty_image import Volume, make_empty_image, output_volume
from flare.measuring.errors import LoadError
from flare.measuring.host import SPARE_BYTES, DiskWatch, room
from flare.measuring.outputs import Output, take_out
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock

LOAD_S = 300.0
"""Loading an image may take so long,"""

LOAD_BYTES_PER_S = 20 * 2**20
"""and a second more for each so many bytes."""

LOOK_S = 0.2
"""So often the disk is looked at meanwhile."""

TRIES = 3
"""So often an image is loaded if the engine fails at it, and the archive is not why."""

ALONE = "See that nobody else changes images meanwhile, and go on."
"""What to do if it is."""

_CONTENT = re.compile(
    r"register layer|processing tar|apply(ing )?layer|tar header|diff ?id|xattr|unpack",
    re.IGNORECASE,
)
"""What engines say where they cannot use what an image holds."""

_HOST = re.compile(
    r"no space|quota|input/output|memory|open files|read-only|connect|time ?out"
    r"|deadline|kill|cancel",
    re.IGNORECASE,
)
"""What they say where the computer is why."""

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
"""Names of files, as some messages have them,"""

_PATH = re.compile(r"(?<![^\s(])/")
"""and where one begins in others."""

_TAIL = re.compile(r"(\)|: unknown|: exit status \d+)+\s*\Z")
"""What may come behind the reason."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedImage:
    """A team's image in the engine, and one of ours beside it."""

    engine: Engine
    conditions: Conditions
    """Under which their containers are run."""
    image: str
    """ID of the team's."""
    overrides: tuple[str, ...]
    """What has to be set in its containers, as NAME=VALUE."""
    empty: str
    """ID of ours, see `flare.measuring.empty_image`."""
    key: str
    """Of all that is made for it."""
    work: Path
    """A folder that other users cannot enter."""
    model: Path | None = None
    """In it, what was sent beside the image; never changed."""

    def fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""
        folder = self.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whoever the image's user is
        return folder

    @contextmanager
    def fresh_volume(self) -> Iterator[Volume]:
        """An empty volume for an output."""
        limits = self.conditions.limits
        with output_volume(
            self.engine,
            empty=self.empty,
            key=self.key,
            size=limits.output_size,
            files=limits.output_files,
        ) as volume:
            yield volume

    def run(self, inputs: Path, volume: Volume) -> ContainerRun:
        """Run the team's image on what is in a folder, and measure it."""
        return run_container(
            *(self.engine, self.image, inputs, volume.name),
            conditions=self.conditions,
            key=self.key,
            command=self.conditions.contract.command,
            environment=self.overrides,
            model=self.model,
        )

    def run_ours(
        self,
        words: Sequence[str],
        inputs: Path,
        volume: Volume,
    ) -> ContainerRun:
        """Run a program of our own image, under the same conditions.

        See `flare.measuring.empty_image` for the programs.
        """
        return run_container(
            *(self.engine, self.empty, inputs, volume.name),
            conditions=self.conditions,
            key=self.key,
            command=words,
        )

    def take_out(self, volume: Volume, folder: Path, most_bytes: int) -> Output:
        """Copy the files that were written to a volume to a folder."""
        return take_out(self.engine, volume.holder, folder, most_bytes)

    def command(self) -> str:
        """How a container is made, for the record."""
        contract = self.conditions.contract
        words = (
            self.engine.program,
            *create_command(
                *("IMAGE", "INPUTS", "OUTPUTS", self.conditions.limits, "KEY"),
                *(self.overrides, contract),
                model="MODEL" if self.model else "",
            ),
            *((shlex.join(own),) if (own := contract.command) else ()),
        )
        return " ".join(words)


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

    Parameters
    ----------
    archive : Archive
        Without problems.
    folder : Path
        Where folders for the container are made.
    engine : Engine
        What it is run by.
    conditions : Conditions
        Under which its containers are run.
    lock : FolderLock
        Of the folder.

    Yields
    ------
    LoadedImage
        To be run.

    Raises
    ------
    FlareError
        If the image or its model has no room, or cannot be loaded.
    """
    _check_disk(archive, engine)
    is_there, _ = find_image(engine, archive)
    images = () if is_there else (archive.image, archive.manifest)
    with guarded(engine, folder, images=images, lock=lock) as place:
        empty = make_empty_image(engine, place.empty_tag)
        with place.loading():
            image = load_image(engine, archive, place.team_tag)
        model = model_folder(archive, place.work)
        yield LoadedImage(
            engine=engine,
            conditions=conditions,
            image=image,
            overrides=archive.overrides,
            empty=empty,
            key=place.key,
            work=place.work,
            model=model,
        )


def _check_disk(archive: Archive, engine: Engine) -> None:
    """See that an image has room."""
    needed = 2 * archive.unpacked_bytes + SPARE_BYTES
    folder = engine.folder()
    free = room(folder).free_bytes if folder else needed
    if free < needed:
        raise MeasurementError(
            archive.path.name,
            f"{free / 2**30:.1f} GiB are free in {safe(str(folder))}, and the image"
            f" needs {needed / 2**30:.1f}",
            "Make room there.",
        )


def find_image(engine: Engine, archive: Archive) -> tuple[str, frozenset[str]]:
    """The ID that an engine gives the image of an archive, and all its tags.

    Both are empty if it is not there.
    """
    known = engine.tags_of(
        *(f"sha256:{identity}" for identity in (archive.image, archive.manifest))
    )
    for image, tags in known.items():
        if archive.is_image(image):
            return image, tags
    return "", frozenset()


def load_image(engine: Engine, archive: Archive, tag: str) -> str:
    """Load the image of an archive under a tag of ours, and return its ID.

    The engine never sees the file of the team: what it loads is written by
    `flare.measuring.archive.repack.write_image`, and names no tag. Only what the engine
    says of its content is the archive's fault. Anything else is the host's, as where
    others use the engine at the same time, and is tried again.

    Parameters
    ----------
    engine : Engine
        What gets the image.
    archive : Archive
        Without problems.
    tag : str
        For the image, unless it was there before with a tag of its own.

    Raises
    ------
    LoadError
        If the engine cannot use what the archive holds.
    ArchiveError
        If the file has changed since it was read.
    EngineError
        If the engine does not answer any more, or fails each time otherwise.
    """
    for _ in range(TRIES - 1):
        try:
            return _load(engine, archive, tag)
        except EngineError as error:
            engine.describe()
            _log.info("Loading %s again: %s", safe(archive.path.name), error.finding)
    return _load(engine, archive, tag)


def _load(engine: Engine, archive: Archive, tag: str) -> str:
    """Load an image, and see that it is the one that was checked."""
    before, tags = find_image(engine, archive)
    _feed(engine, archive)
    name = safe(archive.path.name)
    found, found_tags = find_image(engine, archive)
    if not found:
        # It has no tag yet: what was left of another measurement of the same image may
        # just have been removed, and this with it.
        raise EngineError(
            f"{name}: the engine has no image {archive.image[:12]} of it", ALONE
        )
    if _of_others(found_tags) != _of_others(tags):
        raise EngineError(
            f"{name}: tags of its image have changed while it was loaded", ALONE
        )
    if not before or tags:  # an image without any tag would go with ours
        engine.call("tag", found, tag)
    return found


def _of_others(tags: Iterable[str]) -> set[str]:
    """Tags without those of measurements, of which several may use the engine."""
    return {tag for tag in tags if TEAM_TAG not in tag}


def _feed(engine: Engine, archive: Archive) -> None:
    """Let the engine load what is written of an archive."""
    # The engine unpacks the whole archive, and then each layer from it.
    watch = DiskWatch(engine.folder(), 3 * archive.unpacked_bytes + 2**30)
    process = engine.begin(
        *("image", "load", "--quiet"), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    problems: list[FlareError] = []
    writer = threading.Thread(
        target=_write, args=(archive, process, problems), daemon=True
    )
    writer.start()
    try:
        problem = wait_loaded(process, watch, archive.unpacked_bytes)
    finally:
        process.kill()
        process.wait()
        writer.join(ANSWER_S)
        said = _close(process)
    if problems:
        raise problems[0]
    if problem:
        raise EngineError(f"{safe(archive.path.name)}: {problem}", ALONE)
    if process.returncode:
        error = engine.failure(said, "image")
        if is_of_content(said.decode("utf-8", "replace")):
            raise LoadError(
                archive.path.name, f"the engine cannot load it ({error.finding})"
            )
        raise error


def is_of_content(said: str) -> bool:
    """Whether an engine that cannot load an image names what the image holds.

    Whoever made the image chose the names of files in it, so they decide nothing: what
    counts is what comes before the first one, and the reason behind the last colon.

    Examples
    --------
    >>> is_of_content("failed to register layer: lsetxattr /x: invalid argument")
    True
    >>> is_of_content("failed to register layer: lsetxattr /kill: invalid argument")
    True
    >>> is_of_content("failed to register layer: write /x: no space left on device")
    False
    >>> is_of_content("No such image: sha256:1")
    False
    """
    own, *rest = _PATH.split(_TAIL.sub("", _QUOTED.sub("", said)), maxsplit=1)
    _, colon, reason = "".join(rest).rpartition(": ")
    reason = _PATH.split(reason)[0] if colon else ""
    return bool(_CONTENT.search(own)) and not _HOST.search(f"{own}\n{reason}")


def wait_loaded(process: subprocess.Popen[bytes], watch: DiskWatch, size: int) -> str:
    """Wait until an image is loaded; why it has to be ended, if it has to."""
    deadline = time.monotonic() + LOAD_S + size / LOAD_BYTES_PER_S
    while True:
        try:
            process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                return "loading it takes too long"
            if watch.is_alarming():
                return "loading it takes too much of the disk"
        else:
            return ""


def _write(
    archive: Archive, process: subprocess.Popen[bytes], problems: list[FlareError]
) -> None:
    """Write an image to a process; whatever goes wrong ends the process."""
    pipe = cast("BinaryIO", process.stdin)
    try:
        write_image(archive, pipe)
        pipe.close()
    except FlareError as error:
        problems.append(error)
        process.kill()
    except (OSError, ValueError):
        process.kill()  # it has ended, and says why


def _close(process: subprocess.Popen[bytes]) -> bytes:
    """Close the pipes of a process that has ended; what it wrote to stderr."""
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()  # first: what it has started may wait for more
    if not process.stderr:
        return b""
    with process.stderr as stderr:
        return stderr.read()


def model_folder(archive: Archive, work: Path) -> Path | None:
    """The folder of the model that was sent beside an image; None if none was.

    It is for `flare.measuring.contract.MODEL_FOLDER` of each of its containers, where
    nobody may change it, and is removed with the folder that it is in.

    Parameters
    ----------
    archive : Archive
        Without problems.
    work : Path
        A folder of ours, without a model yet.

    Raises
    ------
    MeasurementError
        If there is no room for it.
    ModelError
        If the file has changed since it was read.
    OutputError
        If it cannot be written.
    """
    model = archive.model
    if not model:
        return None
    needed = model.unpacked_bytes + SPARE_BYTES
    free = room(work).free_bytes
    if free < needed:
        raise MeasurementError(
            model.path.name,
            f"{free / 2**30:.1f} GiB are free in {safe(work)}, and the model needs"
            f" {needed / 2**30:.1f}",
            "Make room there.",
        )
    folder = work / "model"
    unpack_model(model, folder)
    return folder
