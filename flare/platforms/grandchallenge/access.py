"""Lets the platform in: API tokens, kept out of all that is written, and its client."""

from __future__ import annotations

import logging
import os
import re
import stat
import uuid
import warnings
from pathlib import Path
from typing import Any

from flare.common.errors import HostError
from flare.common.installation import install_remedy
from flare.common.options import option
from flare.common.text import safe, shell_word, why

API = "https://grand-challenge.org/api/v1/"

TOKEN_REMEDY = (
    "Make one under Your Profile, Manage API Tokens, and put it into FLARE_GC_TOKEN, or"
    " its file's name into FLARE_GC_TOKEN_FILE."
)

NEW_TOKEN = (
    "Make one of an external evaluator of the phase (for flare serve) or an admin of"
    " the challenge (for flare download), and put its file's name into"
    " FLARE_GC_TOKEN_FILE."
)

TIMEOUT_S = 60.0
"""Without a word from the platform."""

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
    """The address of the API, as commands are told it."""
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


def read_token(token: str, file: str) -> str:
    """The one token that is given, or that a file holds.

    Raises
    ------
    PlatformError
        As `read_tokens`; or if there are several.
    """
    tokens = read_tokens(token, file)
    if len(tokens) > 1:
        raise PlatformError(
            f"There are {len(tokens)} API tokens, and one is expected", TOKEN_REMEDY
        )
    return tokens[0]


def read_tokens(tokens: str, file: str) -> tuple[str, ...]:
    """The tokens that are given, or that a file holds, with spaces or lines between.

    Parameters
    ----------
    tokens : str
        They go before those of the file.
    file : str
        Its name, or nothing. Nobody but its owner may read or write it.

    Returns
    -------
    tuple of str
        Each once, in their order; at least one.

    Raises
    ------
    PlatformError
        If there is none, or others may read the file. No message holds any part of
        one.
    """
    if not tokens.strip() and file:
        tokens = _content(Path(file))
    found = tuple(dict.fromkeys(tokens.split()))
    problem = "" if found else "There is no API token"
    if not all(re.fullmatch("[!-~]+", token) for token in found):
        problem = "The token is no word"
    if problem:
        raise PlatformError(problem, TOKEN_REMEDY)
    return found


def _content(file: Path) -> str:
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
        reason = why(error) if isinstance(error, OSError) else "it is no text"
        raise PlatformError(
            f"{safe(file)}: the token cannot be read ({reason})", TOKEN_REMEDY
        ) from error


def without_tokens(text: str, *tokens: str) -> str:
    """A text in which no token stands, in capitals or small letters: hosts have these.

    Examples
    --------
    >>> without_tokens("Invalid token 0F3C.", "0f3c")
    'Invalid token [token].'
    """
    for token in tokens:
        text = re.sub(re.escape(token), "[token]", text, flags=re.IGNORECASE)
    return text


def redacted(value: Any, token: str) -> Any:
    """What was JSON without a token: before, escapes could have hidden it."""
    if isinstance(value, str):
        return without_tokens(value, token)
    if isinstance(value, list):
        return [redacted(item, token) for item in value]
    if isinstance(value, dict):
        pairs = value.items()
        return {without_tokens(k, token): redacted(item, token) for k, item in pairs}
    return value


def open_client(api: str, token: str) -> Any:
    """The client of gcapi; it makes each call once, as we wait in our own way.

    Raises
    ------
    PlatformError
        If it is not installed, or too old for the platform.
    """
    try:
        import gcapi
        from gcapi.retries import BaseRetryStrategy
    except ImportError as error:
        raise PlatformError(
            "gcapi is not installed", install_remedy("gcapi", "platform")
        ) from error

    class Once(BaseRetryStrategy):  # type: ignore[misc, unused-ignore]
        """No call is made again by the client."""

        def get_delay(self, latest_response: object) -> None:
            """Return no pause."""

    # They would log what the platform answers to a refused request.
    for name in ("gcapi.client", "gcapi.transports", "httpx"):
        logging.getLogger(name).disabled = True
    options = {"base_url": api, "timeout": TIMEOUT_S, "retry_strategy": Once}
    try:
        # It would warn of a newer version, in the platform's words.
        with warnings.catch_warnings(action="ignore"):
            return gcapi.Client(token=token, **options)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise PlatformError(
            f"{safe(api)}: it does not answer as grand-challenge.org", "Is --api right?"
        ) from error
    except Exception as error:
        if type(error).__name__ == "UnsupportedVersionError":
            raise PlatformError(
                f"{safe(api)}: gcapi is too old for it",
                "Upgrade it: pip install --upgrade gcapi.",
            ) from error
        raise
