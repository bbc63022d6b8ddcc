"""Declares options as fields of a frozen dataclass, for Python and the command line.

Each room has a dataclass with the options of its work, and `flare.cli.command.takes`
lets a command fill it. The field's type is that of the value, and its default is the
option's.

::

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Options:
        images: Path = option("Folder of the CTs.", metavar="DIR")
        repeats: int = option("Run each case N times.", default=1, parse=positive)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

KEY = "option"
"""The key of `Declared` in the metadata of a field."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """How a command gets the value of a field."""

    help: str
    """The sentence in the help, with the default."""
    flag: str = ""
    """The flag, such as ``--time-limit``; empty to make it from the field's name."""
    metavar: str | None = None
    """The word for the value in the help."""
    parse: Callable[[str], Any] | None = None
    """The function that makes the value from a text, or raises a ValueError."""
    envvar: str | None = None
    """A variable of the environment that gives the value if the command does not."""
    title: str = "Options"
    """The title above it in the help."""
    is_argument: bool = False
    """Whether its place says what it is, and not a flag."""
    is_hidden: bool = False
    """Whether the help leaves it out."""


def option(help: str, *, default: Any = MISSING, **keywords: Any) -> Any:
    """A field that is an option; it is required if it has no default.

    A flag, of type bool, negates its default. The keywords are fields of `Declared`.
    """
    return field(default=default, metadata={KEY: Declared(help=help, **keywords)})


def argument(help: str, *, default: Any = MISSING, **keywords: Any) -> Any:
    """A field that is an argument without a flag; several if its type is a tuple."""
    return option(help, default=default, is_argument=True, **keywords)


# --- Fields that several commands have --------------------------------------------


def challenge_option() -> Any:
    """The name or the file of the challenge whose rules apply."""
    return option(
        "Apply the rules of this challenge (default: $FLARE_CHALLENGE, else flare21).",
        default="flare21",
        envvar="FLARE_CHALLENGE",
        metavar="NAME|FILE.toml",
    )


def workers_option() -> Any:
    """The number of processes that score; None for as many as fit this computer."""
    return option(
        "Use N processes (default: $FLARE_WORKERS, else what CPUs and memory allow).",
        default=None,
        parse=positive,
        envvar="FLARE_WORKERS",
        metavar="N",
    )


def csv_option() -> Any:
    """The file of a table of the scores."""
    return option(
        "Also write the scores as a table with the columns team, case, metric and"
        " value, which flare rank reads.",
        default=None,
        metavar="FILE",
    )


# --- Values -----------------------------------------------------------------------


def _number(text: str, kind: type[Any], expected: str, least: Any, below: Any) -> Any:
    """A number from `least` up to, but not including, `below`; else a ValueError."""
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    # Python would also accept spaces around a number, and underscores in it.
    if not least <= value < below or re.search(r"[\s_]", text):
        raise ValueError(f"{text!r} is not {expected}")
    return value


def positive(text: str) -> int:
    """A whole number above 0."""
    return int(_number(text, int, "a whole number above 0", 1, math.inf))


def whole(text: str) -> int:
    """A whole number from 0 on."""
    return int(_number(text, int, "a whole number", 0, 10**18))


def share(text: str) -> float:
    """A number from 0 to 1."""
    return float(_number(text, float, "a number from 0 to 1", 0, math.nextafter(1, 2)))


def seconds(text: str) -> float:
    """A time above 0, and below a year."""
    least = math.nextafter(0, 1)
    return float(_number(text, float, "a number of seconds above 0", least, 3e7))


def decimals(text: str) -> int:
    """A number of decimals."""
    return int(_number(text, int, "a whole number from 0 to 15", 0, 16))


def page_file(text: str) -> Path:
    """The file of a page, which has the extension of one."""
    if Path(text).suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{text!r} is no page, such as live.html")
    return Path(text)
