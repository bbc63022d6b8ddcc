"""Removes what a measurement has made when it ends, even when it is killed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from flare.container import LABEL, Engine
from flare.errors import MeasurementError, OutputError
from flare.names import safe, why

STATE = ".measuring.json"
"""In the folder of a team: what a measurement that was killed has left behind."""

WAIT_S = 60
"""So long a new run waits for the clean-up of one that was killed."""

_SCRIPT = """
read -r word && [ "$word" = done ] && exit 0
for _ in 1 2 3; do
    "$1" ps --all --quiet --filter "label=$2" | xargs -r "$1" rm --force --volumes
    for image in $3; do "$1" image rm --force "$image"; done
    rm -rf "$4"
    sleep 1
done
"""
"""Waits for the end of the process that has started it. What it still had asked the
engine to do may be done only then: so it is looked for three times."""


class Guard:
    """A process that outlives this one, and removes containers, image and folder.

    Parameters
    ----------
    engine : Engine
        What the containers run in.
    team_folder : Path
        Made if need be; it remembers what is to be removed.
    key : str
        Says which containers are meant, and names the folder `work`.
    tag : str
        The image, which is removed if it was not there before.
    lock : socket
        Of the image, which is closed with the guard.

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
        key: str,
        tag: str,
        lock: socket.socket,
    ) -> None:
        self._engine, self._folder = engine, team_folder
        self.key, self.work = key, team_folder.resolve() / f".work-{key}"
        self._lock = lock
        try:
            team_folder.mkdir(parents=True, exist_ok=True)
            clean_up(engine, team_folder)
            self.nothing = f"flare-nothing-{key}:latest"
            self._tags = [self.nothing]
            if not engine.image_id(tag):
                self._tags.append(tag)
            state = {"key": key, "tags": self._tags, "work": self.work.name}
            (team_folder / STATE).write_text(json.dumps(state), encoding="utf-8")
        except OSError as error:
            self._lock.close()
            problem = f"{safe(team_folder)}: it cannot be written to ({why(error)})"
            raise OutputError(problem) from error
        except BaseException:
            self._lock.close()
            raise
        label, tags = f"{LABEL}={key}", " ".join(self._tags)
        self._process = subprocess.Popen(
            [
                *("sh", "-c", _SCRIPT, "guard", engine.program),
                *(label, tags, str(self.work)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us alone
            pass_fds=(self._lock.fileno(),),
        )
        try:
            self.work.mkdir()
        except OSError as error:
            self.close()
            problem = f"{safe(self.work)}: it cannot be made ({why(error)})"
            raise OutputError(problem) from error

    @property
    def is_image_ours(self) -> bool:
        """Whether the image was not there before, and is removed at the end."""
        return len(self._tags) > 1

    def close(self) -> None:
        """Remove everything; nothing if that was done."""
        if self._process.returncode is not None:
            return
        clean_up(self._engine, self._folder)
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.write(b"done\n")
                self._process.stdin.close()
        self._process.wait()
        self._lock.close()


def take_lock(name: str) -> socket.socket:
    """Lock something against other measurements on this computer, until closed.

    An address that is no file is bound: it is free again as soon as the last process
    that has it ends, and nothing is left behind.

    Parameters
    ----------
    name : str
        Of what is locked, such as the tag of an image.

    Raises
    ------
    MeasurementError
        If another process has it, and does not let it go for a minute.
    """
    lock = socket.socket(socket.AF_UNIX)
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()
    address = f"\0flare-measure-{digest}"
    for _ in range(WAIT_S * 10):
        try:
            lock.bind(address)
        except OSError:
            time.sleep(0.1)
        else:
            return lock
    lock.close()
    problem = "it is being measured by another process on this computer"
    raise MeasurementError(name, problem, "Wait for it, or end it.")


def clean_up(engine: Engine, team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    Raises
    ------
    MeasurementError
        If a folder cannot be removed.
    """
    try:
        state = json.loads((team_folder / STATE).read_text(encoding="utf-8"))
        key, tags, work = str(state["key"]), list(state["tags"]), str(state["work"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    engine.remove_containers(key)
    folder = team_folder / Path(work).name
    if folder.exists():
        engine.hand_over(tags[-1], folder, key)
    for tag in tags:
        engine.remove_image(str(tag))
    remove_tree(folder)
    if folder.exists():
        problem = "a container's files cannot be removed"
        remedy = f"Remove it as root: sudo rm -r {safe(folder)}"
        raise MeasurementError(str(folder), problem, remedy)
    (team_folder / STATE).unlink(missing_ok=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all that a container has made in it, if that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # it is deeper than Python can go
        subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False)
