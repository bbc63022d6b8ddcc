"""Says which folder a team has in RESULTS, and which names no team can have.

There is one rule for folders, zip files, archives and users of the platform. Letters of
any script are allowed. What an image may be called is a narrower rule on top of it, in
`flare.measuring.archive.reading`.
"""

from __future__ import annotations

import hashlib
import re

from flare.common.text import csv_cell
from flare.results.lookalikes import has_unseen, plain_name

REMEDY = "Give the team another name."
"""What to do about a name that no team can have."""

LONGEST_BYTES = 200
"""Of a name in UTF-8: file systems take 255, and files of a team are named after it."""

_LONGEST_USER = 60
"""Characters of a user's name that are kept."""

_TAKEN = (
    *(".csv", ".json", ".html", ".md", ".tex", ".txt", ".toml", ".zip", ".gz"),
    *(".sqlite", ".sqlite-journal", ".sqlite-wal", ".sqlite-shm"),
)
"""Ends of the names of files that lie beside the teams' folders in RESULTS, with those
that SQLite puts beside a database."""

_DEVICE = re.compile(r"(?:con|nul|aux|prn|com[0-9]|lpt[0-9])(?:\..*)?")
"""What Windows takes for a device, with any ending."""

_IMAGE = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
"""Names of users that are names of images, too."""

_DERIVED = re.compile(r".*-[0-9a-f]{8}")
"""Names as `folder_of` makes them."""


def name_problem(team: str) -> str:
    """Why no team can have a name, to follow that name; empty if one can.

    Examples
    --------
    >>> name_problem("Team_A"), name_problem("scores.sqlite-wal")
    ('', 'a file of the results has this name, or one with its ending')
    """
    plain = plain_name(team)
    if not plain or plain[0] == ".":
        return "its name is empty, or that of something hidden"
    if has_unseen(team) or {"/", "\\"} & {*team, *plain}:
        return "its name has characters that no folder can have, or that nobody sees"
    if team != team.strip() or plain[-1] == ".":
        return "its name begins or ends with a space, or ends with a full stop"
    if csv_cell(team) != team:
        return "its name begins with a sign that a spreadsheet takes for a formula"
    if len(team.encode()) > LONGEST_BYTES:
        return f"its name is longer than {LONGEST_BYTES} bytes"
    if plain.endswith(_TAKEN):
        return "a file of the results has this name, or one with its ending"
    if _DEVICE.fullmatch(plain):
        return "Windows takes its name for a device"
    return ""


def folder_of(user: str, *, is_image: bool = False) -> str:
    """The folder of a platform's user: the name itself, or one made from it.

    What is made ends with eight digits of the name's SHA-256. A user whose own name has
    such an end gets a made one, too, so that nobody can take the folder of another.

    Parameters
    ----------
    user : str
        As the platform has it.
    is_image : bool
        Whether an image will be called like the folder.

    Examples
    --------
    >>> folder_of("Jane.Doe"), folder_of("Jane.Doe", is_image=True)
    ('Jane.Doe', 'jane-doe-4e148699')
    >>> folder_of("jane-doe-4e148699")
    'jane-doe-4e148699-a365f831'
    """
    is_usable = not name_problem(user) and len(user) <= _LONGEST_USER
    is_usable &= not _DERIVED.fullmatch(plain_name(user))
    if is_usable and (_IMAGE.fullmatch(user) or not is_image):
        return user
    return derived_folder(user)


def derived_folder(user: str) -> str:
    """The folder of a user whose name cannot be that of a folder, or looks like one."""
    plain = re.sub(r"[^a-z0-9]+", "-", user.lower())[:_LONGEST_USER].strip("-")
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'user'}-{digest[:8]}"
