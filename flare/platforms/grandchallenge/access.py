"""Lets the platform in: its address, its keys, and tokens, which no message holds."""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from flare.common.errors import HostError
from flare.common.options import option
from flare.common.text import safe, shell_word, why

API = "https://grand-challenge.org/api/v1/"

TOKEN_REMEDY = (
    "Make one under Your Profile, Manage API Tokens: of an external evaluator of the"
    " phase (for flare serve) or an admin of the challenge (for flare download). Put it"
    " into FLARE_GC_TOKEN, or its file's name into FLARE_GC_TOKEN_FILE."
)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""What ssh, too, allows nobody but the owner of a key."""


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


def api_option() -> Any:
    """The address of the API."""
    return option(
        f"Address of the platform's API (default: {API}).", default=API, metavar="URL"
    )


def key(text: str) -> str:
    """A key of the platform.

    Examples
    --------
    >>> key("4A46B539119B488990BF18818FFA3DD8")
    '4a46b539-119b-4889-90bf-18818ffa3dd8'
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a key such as 4a46b539-119b-4889-90bf-18818ffa3dd8"
        ) from None


def read_tokens(variables: MutableMapping[str, str] = os.environ) -> tuple[str, ...]:
    """The API tokens of FLARE_GC_TOKEN, or of the file that FLARE_GC_TOKEN_FILE names.

    FLARE_GC_TOKEN is removed: what we start does not need it, and so does not get it.

    Spaces or lines are between them.

    Returns
    -------
    tuple of str
        Each once, in their order; at least one.

    Raises
    ------
    PlatformError
        If there is none, or others may use the file. No message holds any part of one.
    """
    text = variables.pop("FLARE_GC_TOKEN", "")
    file = variables.get("FLARE_GC_TOKEN_FILE")
    if file and not text.strip():
        text = _own_text(Path(file))
    found = tuple(dict.fromkeys(text.split()))
    if not found:
        raise PlatformError("There is no API token", TOKEN_REMEDY)
    if not all(re.fullmatch("[!-~]+", token) for token in found):
        raise PlatformError("The token is not a word", TOKEN_REMEDY)
    return found


def _own_text(file: Path) -> str:
    """What a file of tokens holds, if it is its owner's alone."""
    try:
        with file.open(encoding="ascii") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if mode & _OTHERS:
                raise PlatformError(
                    f"{safe(file)}: others may use this file (mode {mode:04o})",
                    f"Its tokens are yours alone: chmod 600 {shell_word(file)}.",
                )
            return opened.read()
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else "it is not a text"
        raise PlatformError(
            f"{safe(file)}: the token cannot be read ({reason})", TOKEN_REMEDY
        ) from error
