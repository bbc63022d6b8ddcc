"""Removes what a measurement has made when it ends, even when it is killed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from flare.common.engine import Engine
from flare.common.errors import OutputError, StoppedError
from flare.common.files import remove_tree, write_whole
from flare.common.text import safe, why
from flare.results.errors import MeasurementError
from flare.results.team_folder import FolderLock

LABEL = "flare.measure"
"""Of all that a measurement makes in the engine; its value says which measurement."""

TEAM_TAG = "flare-measure-team-"
"""How the tags of teams' images begin, while they are measured."""

STATE = ".measuring.json"
"""In the folder of a team: what a measurement that was killed has left behind."""

KEY_START = 8
"""Number of letters of a key that tell which folder is measured."""

PAUSE_S = 1.0
"""After a kill, the guard waits so long before it looks again what is still there."""

LOADING_S = 40
"""It goes on at least so long if an image was being loaded: the engine may end that
only in a while. Less than a minute, which is how long the next run waits."""


def label_of(key: str) -> str:
    """The label of what the measurement with a key makes."""
    return f"{LABEL}={key}"


def new_key(team_folder: Path) -> str:
    """A key that nobody can guess; it begins alike for one folder."""
    digest = hashlib.sha256(os.fsencode(team_folder.resolve())).hexdigest()
    return f"{digest[:KEY_START]}{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a measurement makes outside its results, and has to remove."""

    key: str
    """Value of the label of its containers and volumes."""
    tags: tuple[str, ...]
    """Of its images."""
    images: tuple[str, ...]
    """IDs of images that were not there before, and may lack a tag yet."""
    work: str
    """Name of its folder in that of the team."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Names, and a folder, for what is removed in the end whatever happens."""

    key: str
    """Value of `LABEL`, for containers and volumes."""
    empty_tag: str
    """For the image of `flare.measuring.empty_image`."""
    team_tag: str
    """For the team's image."""
    work: Path
    """A folder that other users of the computer cannot enter."""

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Remember that the engine is loading an image, which it may do for a while."""
        mark = self.work / "loading"
        mark.touch()
        yield
        mark.unlink()


@contextmanager
def guarded(
    engine: Engine, team_folder: Path, *, images: Sequence[str], lock: FolderLock
) -> Iterator[Guarded]:
    """Names for what a measurement makes, and a process that removes it.

    That process outlives this one, and holds the lock until it is done.

    Parameters
    ----------
    engine : Engine
        What the containers run in.
    team_folder : Path
        It remembers what is to be removed.
    images : sequence of str
        IDs that the image will have, if it is not there yet.
    lock : FolderLock
        Of the team's folder; it stays locked.

    Yields
    ------
    Guarded
        The names, and the folder.

    Raises
    ------
    OutputError
        If the folder cannot be written to.
    """
    key = new_key(team_folder)
    place = Guarded(
        key=key,
        empty_tag=f"flare-measure-empty-{key}:latest",
        team_tag=f"{TEAM_TAG}{key}:latest",
        work=team_folder.resolve() / f".work-{key}",
    )
    made = Made(
        key=key,
        tags=(place.empty_tag, place.team_tag),
        images=tuple(images),
        work=place.work.name,
    )
    clean_up(engine, team_folder)
    write_whole(team_folder / STATE, json.dumps(asdict(made)))
    guard = _start_guard(engine, made, place.work, lock)
    is_cut = True
    try:
        try:
            place.work.mkdir(mode=0o700)
        except OSError as error:
            problem = f"{safe(place.work)}: it cannot be made ({why(error)})"
            raise OutputError(problem) from error
        yield place
        is_cut = False
    except Exception as error:
        is_cut = isinstance(error, StoppedError)
        raise
    finally:
        end_guard(guard, lambda: clean_up(engine, team_folder), is_cut=is_cut)


def _start_guard(
    engine: Engine, made: Made, work: Path, lock: FolderLock
) -> subprocess.Popen[bytes]:
    """Start the process that removes everything if this one is killed."""
    return subprocess.Popen(
        engine.guard_command(
            *(label_of(made.key), made.tags, made.images, work),
            pause_s=PAUSE_S,
            loading_s=LOADING_S,
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us alone
        pass_fds=(lock.fileno(),),
    )


def end_guard(
    guard: subprocess.Popen[bytes], remove: Callable[[], None], *, is_cut: bool = False
) -> None:
    """Remove everything here; where that fails, the guard goes on with it.

    So it does where we were cut off, as by Ctrl-C: a command that was on its way to the
    engine then may be done only now.
    """
    try:
        remove()
        if guard.stdin and not is_cut:
            with suppress(OSError):
                guard.stdin.write(b"done\n")
    finally:
        if guard.stdin:
            with suppress(OSError):
                guard.stdin.close()
        guard.wait()


def clean_up(engine: Engine, team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    Raises
    ------
    EngineError
        If a container or a volume cannot be removed.
    MeasurementError
        If a folder cannot be removed.
    """
    made = read_state(team_folder / STATE)
    if not made:
        return
    engine.remove_labelled(label_of(made.key))
    engine.remove_tags(*made.tags)
    engine.remove_untagged(*(f"sha256:{image}" for image in made.images))
    folder = team_folder / Path(made.work).name
    remove_tree(folder)
    if folder.exists():
        raise MeasurementError(
            str(folder),
            "it cannot be removed",
            f"Remove it as root: sudo rm -r {safe(folder)}",
        )
    (team_folder / STATE).unlink(missing_ok=True)


def read_state(file: Path) -> Made | None:
    """What a measurement has made; None if that is not, or no longer, known."""
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        made = Made(**{field.name: state[field.name] for field in fields(Made)})
        names = [made.key, made.work, *made.tags, *made.images]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if all(isinstance(name, str) for name in names) else None
