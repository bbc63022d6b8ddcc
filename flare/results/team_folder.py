"""Says what the folder of a team in RESULTS may be called, and what lies in it.

There is one rule for folders, zip files, archives and users of the platform. Letters of
any script are allowed. What an image may be called is a narrower rule on top of it, in
`flare.measuring.archive.reading`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from os.path import lexists
from pathlib import Path

from flare.common.errors import OutputError
from flare.common.text import csv_cell, listing, safe, why
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.errors import MeasurementError, RankingError
from flare.results.measurement_json import MEASUREMENT_JSON
from flare.results.metrics_json import METRICS_JSON

PREDICTIONS = "predictions"
"""Folder of a team with the label maps that its container has written."""


def is_measured(folder: Path) -> bool:
    """Whether the image of a team was run, at least in part."""
    return any(lexists(folder / name) for name in (EFFICIENCY_CSV, MEASUREMENT_JSON))


def is_team(folder: Path) -> bool:
    """Whether a folder is that of one team, not of all."""
    return lexists(folder / METRICS_JSON) or is_measured(folder)


REMEDY = "Give the team another name."
"""The remedy for a name that no team can have."""

LONGEST_BYTES = 200
"""The longest name in UTF-8: file systems take 255 bytes, and files of a team are named
after it."""

_LONGEST_USER = 60
"""Characters of a user's name that are kept."""

_FILE_ENDS = (".csv", ".json", ".html", ".md", ".tex", ".txt", ".toml", ".zip", ".gz")
_DATABASE_ENDS = (".sqlite", ".sqlite-journal", ".sqlite-wal", ".sqlite-shm")
"""Ends of the names of files that lie beside the teams' folders in RESULTS, with those
that SQLite puts beside a database."""

_DEVICE = re.compile(r"(?:con|nul|aux|prn|com[0-9]|lpt[0-9])(?:\..*)?")
"""Names that Windows takes for a device, with any ending."""

_IMAGE = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
"""Names of users that are names of images, too."""

_DERIVED = re.compile(r".*-[0-9a-f]{8}")
"""Names as `folder_of` makes them."""

_DELETED = re.compile(r"deleted [0-9a-f]{8}")
"""Names as `deleted_user` makes them: no user has a space in its name."""


def name_problem(team: str) -> str:
    """The reason why no team can have a name, to stand behind it; empty if one can.

    Examples
    --------
    >>> name_problem("Team_A"), name_problem("scores.sqlite-wal")
    ('', 'a file of the results has this name, or one with its ending')
    """
    plain = plain_name(team)
    if not plain or plain[0] == ".":
        return "its name is empty, or that of something hidden"
    if has_unseen(team) or any(slash in team + plain for slash in "/\\"):
        return "its name has characters that no folder can have, or that nobody sees"
    if team != team.strip() or plain[-1] == ".":
        return "its name begins or ends with a space, or ends with a full stop"
    if csv_cell(team) != team:
        return "its name begins with a sign that a spreadsheet takes for a formula"
    if len(team.encode()) > LONGEST_BYTES:
        return f"its name is longer than {LONGEST_BYTES} bytes"
    if plain.endswith(_FILE_ENDS + _DATABASE_ENDS):
        return "a file of the results has this name, or one with its ending"
    if _DEVICE.fullmatch(plain):
        return "Windows takes its name for a device"
    return ""


def deleted_user(key: str) -> str:
    """The name of a user whose account the platform has deleted, by a submission's key.

    Examples
    --------
    >>> folder_of(deleted_user("4a46b539-119b-4889-90bf-18818ffa3dd8"))
    'deleted-4a46b539'
    """
    return f"deleted {key[:8]}"


def folder_of(user: str, *, is_image: bool = False) -> str:
    """The folder of a platform's user: the name itself, or one made from it.

    A folder that is made from a name ends with eight digits of its SHA-256, or of the
    key of a submission whose account was deleted. For a name with such an end one is
    made, too, so that nobody can take the folder of another. `is_image` is whether an
    image will be called like the folder.

    Examples
    --------
    >>> folder_of("Jane.Doe"), folder_of("Jane.Doe", is_image=True)
    ('Jane.Doe', 'jane-doe-4e148699')
    >>> folder_of("jane-doe-4e148699")
    'jane-doe-4e148699-a365f831'
    """
    if _DELETED.fullmatch(user):
        return user.replace(" ", "-")
    is_usable = not name_problem(user) and len(user) <= _LONGEST_USER
    is_usable &= not _DERIVED.fullmatch(plain_name(user))
    if is_image:
        is_usable &= _IMAGE.fullmatch(user) is not None
    return user if is_usable else derived_folder(user)


def derived_folder(user: str) -> str:
    """A folder for a user whose name cannot be one, or looks as if it had been made."""
    plain = re.sub(r"[^a-z0-9]+", "-", user.lower())[:_LONGEST_USER].strip("-")
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'user'}-{digest[:8]}"


_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Controls, formats, halves of characters, and ends of lines."""

_UNSEEN = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
        *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9)),
        *range(0xE0000, 0xE1000),
    ]
)
"""Further characters that Unicode calls default-ignorable, and the blank of Braille."""


def check_names(file: str, kind: str, names: Sequence[str]) -> None:
    """Refuse names that differ in case or width alone, or whose characters nobody sees.

    No two are equal. The RankingError names their file, and their kind: a team or a
    case.
    """
    for name in names:
        if has_unseen(name):
            problem = f"{kind} {safe(ascii(name))} has characters that cannot be seen"
            raise RankingError(file, problem)
    for lookalikes in confusable(names).items():
        problem = f"{kind}s {listing(lookalikes)} differ only in spelling"
        raise RankingError(file, problem)


def confusable(names: Sequence[str], settled: Collection[str] = ()) -> dict[str, str]:
    """Names that a person takes for another one, each with that one; none is equal.

    One that is `settled`, in use already, is never among them. Of new ones that look
    alike, all are: nobody can tell which of them means to be taken for the other.

    Examples
    --------
    >>> confusable(["alpha", "Alpha", "beta"])
    {'alpha': 'Alpha', 'Alpha': 'alpha'}
    >>> confusable(["alpha", "Alpha"], settled=["alpha"])
    {'Alpha': 'alpha'}
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys([*settled, *names]):
        groups[plain_name(name)].append(name)
    lookalikes = {}
    for first, *similar_names in groups.values():
        # If any name of the group is settled, the first one is.
        if similar_names and first not in settled:
            lookalikes[first] = similar_names[0]
        for name in similar_names:
            if name not in settled:
                lookalikes[name] = first
    return lookalikes


def has_unseen(name: str) -> bool:
    """Whether a name has characters that cannot be seen."""
    return any(
        unicodedata.category(char) in _UNSEEN_CATEGORIES or ord(char) in _UNSEEN
        for char in name
    )


def plain_name(name: str) -> str:
    """A name without the differences that a person would overlook."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


WAIT_S = 60
"""How long a folder is waited for: a clean-up may be at work in it."""


class FolderLock(AbstractContextManager["FolderLock"]):
    """A lock of a folder, which is ours until this is closed; it is made if need be.

    Nothing is left in the folder. A process that inherits `fileno` keeps it locked. If
    it is moved while we wait, the new one in its place is locked. A MeasurementError
    says what another process uses it for that does not let it go in `wait_s`, and an
    OutputError why it cannot be made or read.
    """

    def __init__(
        self, folder: Path, use: str = "measured", wait_s: float | None = None
    ) -> None:
        deadline = time.monotonic() + (WAIT_S if wait_s is None else wait_s)
        while True:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                problem = f"{safe(folder)}: it cannot be written to ({why(error)})"
                raise OutputError(problem) from error
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # It may have been moved while we waited for it.
                if os.path.samestat(folder.stat(), os.fstat(self._descriptor)):
                    return
            except OSError:
                pass  # another process has locked it, or it was removed
            os.close(self._descriptor)
            if time.monotonic() > deadline:
                problem = f"it is being {use} by another process"
                raise MeasurementError(str(folder), problem, "Wait for it, or end it.")
            time.sleep(0.1)

    def fileno(self) -> int:
        """The number of the open folder; a process that inherits it keeps the lock."""
        return self._descriptor

    def close(self) -> None:
        """Let the folder go, if that was not done already."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __exit__(self, *_: object) -> None:
        """Let the folder go."""
        self.close()
