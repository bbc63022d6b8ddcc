"""Removes the folder of a measurement when it ends, even when it is killed.

Processes and mounts need no such care: the kernel ends a box with the process that has
opened it, see `flare.measuring.apptainer.box`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from flare.common.files import remove_tree, write_whole
from flare.common.text import safe
from flare.measuring import cleanup
from flare.measuring.cleanup import (
    STATE,
    Made,
    end_guard,
    make_private,
    new_key,
    read_state,
)
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock

SCRIPT = Path(__file__).with_name("remove_folder.sh")
"""What the guard runs."""


@contextmanager
def guarded_folder(team_folder: Path, lock: FolderLock) -> Iterator[Path]:
    """A folder that other users cannot enter, and a process that removes it.

    That process outlives this one, and holds the lock until it is done.

    Parameters
    ----------
    team_folder : Path
        It remembers what is to be removed.
    lock : FolderLock
        Of that folder; it stays locked.

    Yields
    ------
    Path
        The folder.

    Raises
    ------
    OutputError
        If it cannot be made.
    """
    clean_up_folder(team_folder)
    key = new_key(team_folder)
    work = team_folder.resolve() / f".work-{key}"
    made = Made(key=key, tags=(), images=(), work=work.name)
    write_whole(team_folder / STATE, json.dumps(asdict(made)))
    guard = subprocess.Popen(
        # Its text, not its file, which somebody may replace while it is run.
        [
            *("sh", "-c", SCRIPT.read_text(encoding="utf-8"), SCRIPT.name, str(work)),
            str(cleanup.PAUSE_S),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us alone
        pass_fds=(lock.fileno(),),
    )
    try:
        make_private(work)
        yield work
    finally:
        end_guard(guard, lambda: clean_up_folder(team_folder))


def clean_up_folder(team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    Raises
    ------
    MeasurementError
        If it cannot be removed, or Docker has it.
    """
    made = read_state(team_folder / STATE)
    if not made:
        return
    if made.tags:
        problem = "what was begun with Docker is not removed yet"
        remedy = "Measure the team with Docker, or with another --output."
        raise MeasurementError(str(team_folder), problem, remedy)
    folder = team_folder / Path(made.work).name
    remove_own(folder)
    if folder.exists():
        problem = "it cannot be removed"
        remedy = f"Remove it: chmod -R u+rwX {safe(folder)}; rm -r {safe(folder)}"
        raise MeasurementError(str(folder), problem, remedy)
    (team_folder / STATE).unlink(missing_ok=True)


def remove_own(folder: Path) -> None:
    """Remove a folder in which a container may have closed other folders."""
    if folder.exists():
        subprocess.run(
            ["chmod", "-R", "u+rwX", "--", folder], capture_output=True, check=False
        )
        remove_tree(folder)
