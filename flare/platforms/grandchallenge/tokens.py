"""Reads the API tokens of grand-challenge.org, and keeps them out of all texts."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import MutableMapping
from pathlib import Path
from urllib.parse import unquote

from flare.common.text import safe, shell_word, why
from flare.platforms.grandchallenge.errors import PlatformError

TOKEN_REMEDY = (
    "Make one under Your Profile, Manage API Tokens: of an external evaluator of the"
    " phase (for flare serve) or an admin of the challenge (for flare download). Put it"
    " into FLARE_GC_TOKEN, or its file's name into FLARE_GC_TOKEN_FILE."
)


def read_tokens(variables: MutableMapping[str, str] = os.environ) -> tuple[str, ...]:
    """The API tokens of FLARE_GC_TOKEN, or of the file that FLARE_GC_TOKEN_FILE names.

    FLARE_GC_TOKEN is removed: what we start does not need it, and so does not get it.
    Each line that is not empty is one, in their order; there is at least one. A
    PlatformError is raised if there is none, or others may use the file. No message
    holds any part of one.
    """
    text = variables.pop("FLARE_GC_TOKEN", "").strip()
    file = variables.get("FLARE_GC_TOKEN_FILE", "")
    if file and not text:
        text = _read_private(file)
    lines = [line.strip() for line in text.split("\n")]
    tokens = tuple(dict.fromkeys(line for line in lines if line))
    if not tokens:
        raise PlatformError("There is no API token", TOKEN_REMEDY)
    if not all(re.fullmatch("[!-~]+", token) for token in tokens):
        raise PlatformError("The token is not one word on a line", TOKEN_REMEDY)
    return tokens


def _read_private(file: str) -> str:
    """The text of a file that its owner alone may use, as ssh wants it of a key."""
    try:
        with Path(file).open(encoding="ascii") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & 0o077:
                raise PlatformError(
                    f"{safe(file)}: others may use this file (mode {mode:04o})",
                    f"Its token is yours alone: chmod 600 {shell_word(file)}.",
                )
            return stream.read()
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else "it is not a text"
        raise PlatformError(
            f"{safe(file)}: the token cannot be read ({reason})", TOKEN_REMEDY
        ) from error


def forms_of(token: str) -> re.Pattern[str]:
    r"""All that a token may look like, also in small letters: hosts have these.

    Each sign of it may be written as in JSON, or as in an address (%XX), even twice;
    the token itself may be so, too, and unquoted by somebody.

    Examples
    --------
    >>> forms_of("a%2Fb").sub("[token]", "a%2fb, a/b, %61%252F%62, a%25252Fb and a%b")
    '[token], [token], [token], [token] and a%b'
    """
    words = dict.fromkeys([token, unquote(token)])
    return re.compile("|".join(map(_forms_of_word, words)), re.IGNORECASE)


def _forms_of_word(word: str) -> str:
    forms = ""
    for sign in word:
        in_address = "".join(f"%(?:25)*{byte:02x}" for byte in sign.encode())
        as_it_is = dict.fromkeys([sign, json.dumps(sign)[1:-1]])
        # A form that stood here twice would be tried twice at each sign: 2^n times.
        forms += f"(?:{'|'.join([*map(re.escape, as_it_is), in_address])})"
    return forms
