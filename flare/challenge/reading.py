"""Reads a challenge from its TOML file: one of the bundled, or a file of your own."""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources
from pathlib import Path

from flare.challenge.errors import ChallengeError
from flare.challenge.rules import Challenge
from flare.common.schema import build
from flare.common.text import listing, safe, why


def challenge_names() -> tuple[str, ...]:
    """Return the names of the challenges that come with the program."""
    files = resources.files("flare.challenge.editions").iterdir()
    return tuple(
        sorted(file.name[:-5] for file in files if file.name.endswith(".toml"))
    )


def challenge_text(name: str) -> str:
    """The file of a challenge, to start another one from.

    Raises
    ------
    ChallengeError
        As `read_challenge`.
    """
    read_challenge(name)
    return _read_file(name)[1].decode("utf-8")


def _read_file(name: str) -> tuple[Path, bytes]:
    """Find the file of a challenge, and read it."""
    if name.endswith(".toml"):
        source = Path(name)
    elif name in challenge_names():
        source = Path(str(resources.files("flare.challenge.editions") / f"{name}.toml"))
    else:
        problem = f"no such challenge; there are {listing(challenge_names())}, or give"
        raise ChallengeError(name, f"{problem} a file that ends in .toml")
    try:
        return source, source.read_bytes()
    except OSError as error:
        reason = why(error)
        raise ChallengeError(name, f"cannot be read ({reason})") from error


def read_challenge(name: str | Path) -> Challenge:
    """Read a challenge.

    Parameters
    ----------
    name : str or Path
        Name of a bundled challenge, or the path of a TOML file (it ends in ``.toml``).

    Returns
    -------
    Challenge
        Its rules, which functions that take a ``challenge`` accept.

    Raises
    ------
    ChallengeError
        If there is no such challenge, or its file breaks a rule; the message names
        the file, the key, the value found and what is allowed.
    """
    name = str(name)
    source, content = _read_file(name)
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ChallengeError(name, f"is not TOML ({safe(str(error))})") from error
    given = {"key": source.stem, "checksum": hashlib.sha256(content).hexdigest()}
    try:
        return build(Challenge, values, **given)
    except (ValueError, OverflowError) as error:
        raise ChallengeError(name, str(error)) from error
