"""Loads the image of a checked archive into the engine."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import suppress
from typing import BinaryIO, cast

from flare.common.engine import ANSWER_S, Engine
from flare.common.errors import EngineError, FlareError
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.repack import write_image
from flare.measuring.disk import DiskWatch
from flare.measuring.errors import LoadError

LOAD_S = 300.0
"""Loading an image may take so long,"""

LOAD_BYTES_PER_S = 20 * 2**20
"""and a second more for each so many bytes."""

LOOK_S = 0.2
"""So often the disk is looked at meanwhile."""


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
    `flare.measuring.archive.repack.write_image`, and names no tag. It has just made an
    image of ours, so whatever stands in the way is the archive's fault.

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
        If the engine cannot load it, takes too long or too much of the disk, gives
        another image than was checked, or has moved a tag.
    ArchiveError
        If the file has changed since it was read.
    EngineError
        If the engine does not answer any more.
    """
    try:
        return _load(engine, archive, tag)
    except EngineError as error:
        engine.describe()
        problem = f"the engine cannot load it ({error.finding})"
        raise LoadError(archive.path.name, problem) from error


def _load(engine: Engine, archive: Archive, tag: str) -> str:
    """Load an image, and see that it is the one that was checked."""
    before, tags = find_image(engine, archive)
    _feed(engine, archive)
    name = safe(archive.path.name)
    found, found_tags = find_image(engine, archive)
    if not found:
        # It has no tag yet: what was left of another measurement of the same image may
        # just have been removed, and this with it.
        _feed(engine, archive)
        found, found_tags = find_image(engine, archive)
    if not found:
        problem = f"{name}: loading it gave no image {archive.image[:12]}"
        raise EngineError(problem, "Do not run it; ask the team.")
    if found_tags != tags:
        problem = f"{name}: loading it has given a tag to its image"
        raise EngineError(problem, "Do not run it; see docker image ls.")
    if not before or tags:  # an image without any tag would go with ours
        engine.call("tag", found, tag)
    return found


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
        text = f"{safe(archive.path.name)}: {problem}"
        raise EngineError(text, "Do not run it; ask the team.")
    if process.returncode:
        raise engine.failure(said, "image")


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
