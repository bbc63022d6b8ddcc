"""Removes what a measurement has made when it ends, even when it is killed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from flare.common.errors import OutputError
from flare.common.files import remove_tree
from flare.common.text import safe, why
from flare.measuring.engine import LABEL, Engine
from flare.measuring.lock import FolderLock
from flare.results.errors import MeasurementError

STATE = ".measuring.json"
"""In the folder of a team: what a measurement that was killed has left behind."""

KEY_START = 8
"""So many letters of a key tell which folder is measured."""

_SCRIPT = """
engine=$1 label=$2 tags=$3 images=$4 work=$5
read -r word && [ "$word" = done ] && exit 0
quiet=0 least=3
# What an engine has begun to load, it may finish only in a while.
[ ! -e "$work/loading" ] || least=40
for _ in $(seq 100); do
    containers=$("$engine" ps --all --quiet --filter "$label")
    [ -z "$containers" ] || "$engine" rm --force --volumes $containers
    volumes=$("$engine" volume ls --quiet --filter "$label")
    [ -z "$volumes" ] || "$engine" volume rm --force $volumes
    for tag in $tags; do "$engine" image rm --force "$tag"; done
    for image in $images; do
        [ "$("$engine" image inspect --format '{{len .RepoTags}}' "$image")" = 0 ] &&
            "$engine" image rm "$image" && least=3
    done
    rm -rf "$work"
    quiet=$((quiet + 1))
    [ -z "$containers$volumes" ] || quiet=0
    [ "$quiet" -ge "$least" ] && exit 0
    sleep 1
done
"""
"""Waits for the end of the process that has started it. What it still had asked the
engine to do may be done only then: so it looks until three times nothing was there, and
forty times if an image was being loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a measurement makes outside its results, and has to remove."""

    key: str
    """Label of its containers and volumes."""
    tags: tuple[str, ...]
    """Of its images."""
    images: tuple[str, ...]
    """IDs of images that were not there before, and may lack a tag yet."""
    work: str
    """Name of its folder in that of the team."""


class Guard:
    """A process that outlives this one, and removes containers, image and folder.

    Parameters
    ----------
    engine : Engine
        What the containers run in.
    team_folder : Path
        It remembers what is to be removed.
    images : sequence of str
        IDs that the image will have, if it is not there yet.
    lock : FolderLock
        Of the team's folder, which is closed with the guard.

    Raises
    ------
    OutputError
        If the folder cannot be written to.
    """

    def __init__(
        self,
        engine: Engine,
        team_folder: Path,
        *,
        images: Sequence[str],
        lock: FolderLock,
    ) -> None:
        self._engine, self._folder, self._lock = engine, team_folder, lock
        # It says which containers are meant, and names a folder that other users of
        # the computer cannot enter.
        self.key = key = new_key(team_folder)
        self.work = team_folder.resolve() / f".work-{key}"
        self.empty, self.tag = (
            f"flare-measure-{name}-{key}:latest" for name in ("empty", "team")
        )
        made = Made(
            key=key,
            tags=(self.empty, self.tag),
            images=tuple(images),
            work=self.work.name,
        )
        try:
            clean_up(engine, team_folder)
            content = json.dumps(asdict(made))
            (team_folder / STATE).write_text(content, encoding="utf-8")
        except OSError as error:
            self._lock.close()
            problem = f"{safe(team_folder)}: it cannot be written to ({why(error)})"
            raise OutputError(problem) from error
        except BaseException:
            self._lock.close()
            raise
        self._process = subprocess.Popen(
            [
                *("sh", "-c", _SCRIPT, "guard", engine.program),
                *(f"label={LABEL}={key}", " ".join(made.tags)),
                *(" ".join(f"sha256:{i}" for i in made.images), str(self.work)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us alone
            pass_fds=(self._lock.fileno(),),
        )
        try:
            self.work.mkdir(mode=0o700)
        except OSError as error:
            self.close()
            problem = f"{safe(self.work)}: it cannot be made ({why(error)})"
            raise OutputError(problem) from error

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Remember that the engine is loading an image."""
        mark = self.work / "loading"
        mark.touch()
        yield
        mark.unlink()

    def close(self) -> None:
        """Remove everything; nothing if that was done."""
        if self._process.returncode is not None:
            return
        try:
            clean_up(self._engine, self._folder)
            if self._process.stdin:
                with suppress(OSError):
                    self._process.stdin.write(b"done\n")
        finally:
            # Where the clean-up has failed, the process goes on with it.
            if self._process.stdin:
                with suppress(OSError):
                    self._process.stdin.close()
            self._process.wait()
            self._lock.close()


def new_key(team_folder: Path) -> str:
    """A key that nobody can guess; it begins alike for one folder."""
    digest = hashlib.sha256(os.fsencode(team_folder.resolve())).hexdigest()
    return f"{digest[:KEY_START]}{uuid.uuid4().hex[:8]}"


def clean_up(engine: Engine, team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    Raises
    ------
    EngineError
        If a container or a volume cannot be removed.
    MeasurementError
        If a folder cannot be removed.
    """
    try:
        state = json.loads((team_folder / STATE).read_text(encoding="utf-8"))
        made = Made(**{field.name: state[field.name] for field in fields(Made)})
        names = [made.key, made.work, *made.tags, *made.images]
        if not all(isinstance(name, str) for name in names):
            return
    except (OSError, ValueError, KeyError, TypeError):
        return
    engine.remove_all(made.key)
    for tag in made.tags:
        engine.remove_image(tag)
    for image in made.images:
        engine.remove_untagged(f"sha256:{image}")
    folder = team_folder / Path(made.work).name
    remove_tree(folder)
    if folder.exists():
        problem = "it cannot be removed"
        remedy = f"Remove it as root: sudo rm -r {safe(folder)}"
        raise MeasurementError(str(folder), problem, remedy)
    (team_folder / STATE).unlink(missing_ok=True)
