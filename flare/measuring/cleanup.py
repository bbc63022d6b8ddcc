"""Removes what a measurement has made when it ends, even when it is killed."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flare.common.errors import OutputError, StoppedError
from flare.common.files import json_at, remove_tree, write_whole
from flare.common.schema import build, check
from flare.common.text import listing, safe, why
from flare.measuring.engines.interface import Engine, NoAnswerError, NotRemovedError
from flare.results.errors import MeasurementError
from flare.results.team_folder import FolderLock

LABEL = "flare.measure"
"""The label of all that a measurement makes in the engine. Its value is the key of the
measurement, which nobody can guess, and which is also in the names of what it makes."""

STATE = ".measuring.json"
"""A file in the folder of a team: it names what a killed measurement has left."""

_WORK = ".work-"
"""The beginning of the name of a folder of a measurement; its key follows."""

KEY_START = 8
"""This many letters at the beginning of a key tell which folder is measured."""

PAUSE_S = 1.0
"""After a kill, the guard waits this long between two looks at the engine."""

LOADING_S = 40
"""If an image was being loaded at the kill, the guard goes on at least this long: the
engine may finish late. The next run waits longer for the lock: a minute."""

GUARD_ANSWER_S = 30
"""The guard repeats a command that the engine has not done after this time."""

GUARD_S = 150
"""The guard ends after this time at the latest: five commands may hang until then."""

SLACK_S = 15
"""The guard is waited for this much longer, and then left alone: it hangs."""

_log = logging.getLogger(__name__)


class LeftoverError(MeasurementError):
    """An engine that answers does not remove what a measurement has made in it."""


def label_of(key: str) -> str:
    """The label of what the measurement with a key makes."""
    return f"{LABEL}={key}"


def new_key(team_folder: Path) -> str:
    """A new key that nobody can guess; all keys of one folder begin alike."""
    return f"{_key_start(team_folder)}{uuid.uuid4().hex[:8]}"


def _key_start(team_folder: Path) -> str:
    path = os.fsencode(team_folder.resolve())
    return hashlib.sha256(path).hexdigest()[:KEY_START]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """All that a measurement makes outside its results, and has to remove."""

    folder: Path
    """The folder of the team."""
    key: str
    """The value of the label of its containers and volumes, and a part of paths."""
    images: tuple[str, ...]
    """IDs of images that it loads; these may have no tag yet."""

    def __post_init__(self) -> None:
        """Check the key, which a file may tell."""
        check(self.key.isalnum(), "key", self.key, "letters and digits")

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags of our own image and of the team's."""
        return tuple(f"flare-measure-{n}-{self.key}:latest" for n in ("empty", "team"))

    @property
    def work(self) -> Path:
        """A folder that other users of the computer cannot enter."""
        return self.folder / f"{_WORK}{self.key}"

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Tell the guard that an image is loaded in the block, by a file."""
        # If this process is killed in the block, the file stays.
        mark = self.work / "loading"
        mark.touch()
        yield
        mark.unlink()


@contextmanager
def guarded(
    engine: Engine, team_folder: Path, *, images: Sequence[str], lock: FolderLock
) -> Iterator[Workplace]:
    """Give names to what a measurement makes, and remove it when the block ends.

    If this process is killed, a second one, the guard, removes it, and holds the lock
    of the team's folder until that is done. `images` are the IDs that the loaded image
    may get; there are none if the engine has it already.
    """
    clean_up(engine, team_folder)
    folder = team_folder.resolve()
    place = Workplace(folder=folder, key=new_key(folder), images=tuple(images))
    state = {"key": place.key, "images": place.images}
    write_whole(team_folder / STATE, json.dumps(state))
    guard = _start_guard(engine, place, lock)
    # Ctrl-C, whose error is no `Exception`, leaves this as it is.
    is_stopped = True
    is_clean = False
    try:
        _make_work_folder(place)
        yield place
        is_stopped = False
    except Exception as error:
        is_stopped = isinstance(error, StoppedError)
        raise
    finally:
        try:
            clean_up(engine, team_folder)
            is_clean = True
        finally:
            # After a stop, the engine may still make something: the guard looks again.
            _end_guard(guard, place, is_done=is_clean and not is_stopped)


def _start_guard(
    engine: Engine, place: Workplace, lock: FolderLock
) -> subprocess.Popen[bytes]:
    """Start the guard, which waits until its standard input is closed."""
    command = engine.guard_command(
        label_of(place.key),
        place.tags,
        place.images,
        place.work,
        (PAUSE_S, LOADING_S, GUARD_ANSWER_S, GUARD_S),
    )
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C does not reach it
        pass_fds=(lock.fileno(),),
    )


def _make_work_folder(place: Workplace) -> None:
    try:
        place.work.mkdir(mode=0o700)
    except OSError as error:
        problem = f"{safe(place.work)}: it cannot be made ({why(error)})"
        raise OutputError(problem) from error


def _end_guard(
    guard: subprocess.Popen[bytes], place: Workplace, *, is_done: bool
) -> None:
    """Let the guard remove what is left, and log what remains if it fails or hangs."""
    assert guard.stdin
    with suppress(OSError):
        if is_done:
            guard.stdin.write(b"done\n")
        guard.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        guard.wait(GUARD_S + SLACK_S)
    if guard.returncode != 0:
        names = f"the label {label_of(place.key)}, and images {listing(place.tags)}"
        _log.info(
            "%s: in the engine may remain what has %s; the next start removes it",
            safe(place.folder.name),
            names,
        )


def clean_up(engine: Engine, team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    An EngineError is raised if no engine answers. A LeftoverError is raised if an
    engine answers, but a container, a volume or an image cannot be removed. A
    MeasurementError is raised if a folder cannot be removed.
    """
    for place in _left_workplaces(team_folder):
        _remove(engine, place)
        (team_folder / STATE).unlink(missing_ok=True)


def _remove(engine: Engine, place: Workplace) -> None:
    try:
        engine.remove_labelled(label_of(place.key))
        engine.remove_tags(*place.tags)
        engine.remove_untagged(*(f"sha256:{image}" for image in place.images))
    except (NoAnswerError, NotRemovedError) as error:
        # Called only to raise: an engine that does not answer at all has another error.
        engine.describe()
        raise LeftoverError(
            place.folder.resolve().name,
            f"what its measurement has made stays in the engine ({error.finding})",
            error.remedy,
        ) from error
    remove_tree(place.work)
    if place.work.exists():
        raise MeasurementError(
            str(place.work),
            "it cannot be removed",
            f"Remove it as root: sudo rm -r {safe(place.work)}",
        )


def _left_workplaces(team_folder: Path) -> list[Workplace]:
    """The workplace that a killed measurement has left, if there is one."""
    try:
        state = json_at(team_folder / STATE)
        return [build(Workplace, state, is_lenient=True, folder=team_folder)]
    except ValueError:
        return _workplaces_without_state(team_folder)


def _workplaces_without_state(team_folder: Path) -> list[Workplace]:
    """The workplaces whose keys are in the names of folders, as no file tells them."""
    # Such a folder is made before anything else, and removed last.
    start = f"{_WORK}{_key_start(team_folder)}"
    keys = [work.name.removeprefix(_WORK) for work in team_folder.glob(f"{start}*")]
    places = []
    for key in filter(str.isalnum, keys):
        places.append(Workplace(folder=team_folder, key=key, images=()))
    if places:
        _log.info(
            "%s: %s cannot be read; an image without a tag may remain in the engine",
            safe(team_folder.resolve().name),
            STATE,
        )
    return places
