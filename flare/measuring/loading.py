"""Loads the image of a checked archive into the engine."""

from __future__ import annotations

import logging
import re
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO, cast

from flare.common.engine import ANSWER_S, Engine
from flare.common.errors import EngineError, FlareError
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.repack import write_image
from flare.measuring.cleanup import TEAM_TAG
from flare.measuring.disk import DiskWatch
from flare.measuring.errors import LoadError

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
