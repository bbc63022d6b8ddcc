"""The client of grand-challenge.org: its token, and calls and files, tried again.

A token goes to the platform alone, over TLS, and stands in nothing that is written.
"""

from __future__ import annotations

import json as json_module
import logging
import os
import random
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path
from string import punctuation
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import HTTPErrorProcessor, OpenerDirector, Request, build_opener

from flare.common.environment import __version__
from flare.common.errors import HostError, unwritable
from flare.common.options import option
from flare.common.text import printable, safe, shell_word, why
from flare.results.team_folder import deleted_user

_log = logging.getLogger(__name__)

API = "https://grand-challenge.org/api/v1/"

TIMEOUT_S = 60.0
"""Without a word from the platform."""

FIRST_PAUSE_S = 1.0
"""Before a call is made again; doubled each time."""

TRIES = 5
"""Of a call or a file; meanwhile others wait, and may have to be answered."""

LARGEST_MIB = 64
"""Of an answer to a call; a page of evaluations has some MiB."""

LARGEST_BYTES = 64 * 2**30
"""Of an archive: the disk is ours."""

TOKEN_REMEDY = (
    "Make one under Your Profile, Manage API Tokens: of an external evaluator of the"
    " phase (for flare serve) or an admin of the challenge (for flare download). Put it"
    " into FLARE_GC_TOKEN, or its file's name into FLARE_GC_TOKEN_FILE."
)

Found = TypeVar("Found")


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


class FileRefusedError(PlatformError):
    """A host refuses to give a file, with this status."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem, "See whether this token's user may fetch it.")
        self.status = status


class TooLargeError(PlatformError):
    """A file has more bytes than are taken of one."""

    remedy = "Ask the team for a smaller one."


class PassingError(Exception):
    """Something has failed that may not fail the next time."""


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


def user_of(submission: Mapping[str, Any], key: str) -> str:
    """The name of who has submitted; one made of the key if the account was deleted."""
    creator = submission["creator"]
    return deleted_user(key) if creator is None else str(creator["username"])


def read_token(variables: MutableMapping[str, str] = os.environ) -> str:
    """The API token of FLARE_GC_TOKEN, or of the file that FLARE_GC_TOKEN_FILE names.

    FLARE_GC_TOKEN is removed: what we start does not need it, and so does not get it.

    Raises
    ------
    PlatformError
        If there is none, or others may use the file. No message holds any part of it.
    """
    token = variables.pop("FLARE_GC_TOKEN", "").strip()
    file = variables.get("FLARE_GC_TOKEN_FILE", "")
    try:
        if file and not token:
            with Path(file).open(encoding="ascii") as opened:
                mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
                if mode & 0o077:  # ssh refuses such a key, too
                    raise PlatformError(
                        f"{safe(file)}: others may use this file (mode {mode:04o})",
                        f"Its token is yours alone: chmod 600 {shell_word(file)}.",
                    )
                token = opened.read().strip()
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else "it is not a text"
        raise PlatformError(
            f"{safe(file)}: the token cannot be read ({reason})", TOKEN_REMEDY
        ) from error
    if not token:
        raise PlatformError("There is no API token", TOKEN_REMEDY)
    if not re.fullmatch("[!-~]+", token):
        raise PlatformError("The token is not one word", TOKEN_REMEDY)
    return token


# --- Calls ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the platform has said to a call that it understood."""

    status: int
    content: Any
    """As JSON, without the token; None if it is not JSON."""
    is_certain: bool
    """Whether the call was made once: an earlier one may have been heard."""

    @property
    def reason(self) -> str:
        """Why it was refused, in the platform's words, on one line."""
        found = self.content
        if isinstance(found, dict):
            found = found.get("status") or found.get("detail") or found
        return printable(str(found))[:200].rstrip(".")


class Client:
    """The API of a platform, as it is called with one token.

    What fails on the way, or by a fault of the platform (status 500 and above, or 429),
    is tried again after pauses that grow, and that chance makes longer or shorter, so
    that many services do not come back at the same moment.

    Parameters
    ----------
    api : str
        Address of the API, with https.
    token : str
        It is sent to that host, and to no other.
    sleep : callable
        Waits for some seconds.
    """

    def __init__(
        self, api: str, token: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not api.startswith("https://"):
            raise PlatformError(
                f"{safe(api)}: the token is sent to no http address",
                "Give the address with https:// as --api.",
            )
        self.api = f"{api.rstrip('/')}/"
        self._token, self._sleep = token, sleep

    def _redact(self, text: str) -> str:
        """A text without the token, also in small letters: hosts have these."""
        return re.sub(re.escape(self._token), "[token]", text, flags=re.IGNORECASE)

    def _host_of(self, url: str) -> str:
        """The host of an address, without the token."""
        return safe(self._redact(urlsplit(url).hostname or "an unknown host"))

    def stranger(self) -> PlatformError:
        """It is not the platform that we know."""
        problem = f"{safe(self.api)}: it does not answer as grand-challenge.org"
        return PlatformError(problem, "Is --api right?")

    def refusal(self, reply: Reply) -> PlatformError:
        """The error of a reply that is not what was asked for."""
        if reply.status == 200:
            return self.stranger()
        problem = f"{safe(self.api)}: status {reply.status}: {reply.reason}"
        return PlatformError(
            problem,
            "Check --phase and --api, and the rights of the token's user: an external"
            " evaluator of the phase serves, an admin of the challenge downloads.",
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        json: dict[str, Any] | None = None,
    ) -> Reply:
        """Make a call until the platform answers it.

        What answers a call without a word of JSON is not the platform, whatever status
        it gives: a proxy says so, too.

        Returns
        -------
        Reply
            Also if the platform refuses it, but not the token.

        Raises
        ------
        PlatformError
            If it does not accept the token, or cannot be reached.
        """
        url = f"{self.api}{path}{f'?{urlencode(params)}' if params else ''}"
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        body = None if json is None else json_module.dumps(json).encode()

        def attempt(tried: int) -> Reply:
            with self._opened(method, url, headers, body) as response:
                status = response.status
                if status == 401:
                    raise PlatformError(
                        f"{safe(self.api)}: it does not accept the token", TOKEN_REMEDY
                    )
                content = self._json_of(response)
            if status == 200 and content is None:
                raise PassingError(
                    f"{self._host_of(url)} answers with status {status}, but no JSON of"
                    f" at most {LARGEST_MIB} MiB"
                )
            return Reply(status=status, content=content, is_certain=tried == 1)

        return self._again(f"{method} {path}", attempt)

    def fetch(self, url: str, file: Path) -> None:
        """Fetch a file, unless it is there; it has its name when it is whole.

        Where the network fails, only what is missing is fetched again, if the host
        still has the same file. An address of the platform leads to a newly signed one
        each time.

        Raises
        ------
        FileRefusedError
            If the host refuses it; a new address may help.
        TooLargeError
            If it is too large.
        PlatformError
            If it does not arrive.
        OutputError
            If it cannot be written.
        """
        if file.exists():
            return
        part, mark = file.with_name(f".{file.name}.part"), ""

        def fetch_rest(_: int) -> None:
            nonlocal mark
            have = content.tell() if mark else 0
            headers = {"Range": f"bytes={have}-", "If-Range": mark} if have else {}
            with self._led(url, headers) as response:
                status, host = response.status, self._host_of(response.url)
                before, mark = mark, _mark_of(response.headers)
                span = response.headers.get("Content-Range", "")
                is_rest = have and status == 206 and span.startswith(f"bytes {have}-")
                if not (is_rest and mark in ("", before)):
                    have = 0
                    content.seek(0)
                    content.truncate()
                if status == 416 or (status == 206 and not have):
                    raise PassingError(f"{host} gives another part than was asked for")
                if status not in (200, 206):
                    problem = f"{host}: it does not give {safe(file.name)}"
                    raise FileRefusedError(f"{problem} (status {status})", status)
                if response.headers.get_content_type() == "text/html":
                    raise PassingError(f"{host} gives a page in place of the file")
                for block in self._blocks(response):
                    whole = content.tell() + len(block) + (response.length or 0)
                    if whole > LARGEST_BYTES:
                        raise TooLargeError(f"{host}: {safe(file.name)} is too large")
                    content.write(block)

        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)  # of a program that was ended
            try:
                with part.open("xb") as content:
                    self._again(safe(file.name), fetch_rest)
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(part, error) from error
        except ValueError as error:  # of an address that is none
            raise self.stranger() from error

    def _again(self, what: str, attempt: Callable[[int], Found]) -> Found:
        """Try something, given which try it is, until it does not fail on the way."""
        tried = 1
        while True:
            try:
                return attempt(tried)
            except PassingError as passing:
                if tried == TRIES:
                    problem = f"{safe(self.api)}: {what}: {passing}, {TRIES} times"
                    raise PlatformError(problem, "Try again later.") from passing
                wait_s = FIRST_PAUSE_S * 2 ** (tried - 1) * (0.5 + random.random())
                _log.warning("%s: %s; again in %.0f s", what, passing, wait_s)
            self._sleep(wait_s)
            tried += 1

    @contextmanager
    def _led(self, url: str, headers: dict[str, str]) -> Iterator[HTTPResponse]:
        """An answer from wherever the platform leads, if it is an https address."""
        for _ in range(5):
            url = quote(url, safe=punctuation)  # what is no ASCII, or a space
            if not url.startswith("https://"):
                place = printable(self._redact(url.partition("?")[0]))[:80]
                raise PlatformError(
                    f"{place}: the file is not at an https address",
                    "Ask the platform's staff.",
                )
            with self._opened("GET", url, headers) as response:
                status, to = response.status, response.headers.get("Location")
                if to and 300 <= status < 400:
                    # Headers are read as Latin-1, whatever they are.
                    url = urljoin(url, quote(to, punctuation, "latin-1"))
                    continue
                yield response
                return
        raise self.stranger()

    @contextmanager
    def _opened(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> Iterator[HTTPResponse]:
        """An answer of a host, whatever it says; only the platform gets the token.

        Another host that refuses does not know us: its addresses are signed, and each
        is good for some minutes.
        """
        headers = {"User-Agent": f"flare/{__version__}", **headers}
        passing: tuple[int, ...] = (400, 401, 403, 429)
        if url.startswith(urljoin(self.api, "/")):
            passing = (429,)
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            request = Request(url, data=body, headers=headers, method=method)
            response = self._opener.open(request, timeout=TIMEOUT_S)
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            # So is a bad certificate; a text is said of an address that is none.
            if not isinstance(reason, ValueError | InvalidURL | str):
                raise self._unreachable(url, reason) from error
            text = self._redact(printable(repr(reason)))[:120]
            raise PlatformError(
                f"{safe(self.api)}: it cannot be used ({text})", "Is --api right?"
            ) from error
        with response:
            status = response.status
            if status >= 500 or status in passing:
                host = self._host_of(url)
                raise PassingError(f"{host} answers with status {status}")
            yield response

    def _blocks(self, response: HTTPResponse) -> Iterator[bytes]:
        """What a host sends, to its end."""
        block = b"-"
        while block:
            try:
                block = response.read(2**20)
            except (OSError, ValueError, HTTPException) as error:  # of odd lengths, too
                raise self._unreachable(response.url, error) from error
            yield block
        if response.length:
            host = self._host_of(response.url)
            raise PassingError(f"{host} has sent fewer bytes than it said")

    def _unreachable(self, url: str, error: object) -> PassingError:
        kind = type(error).__name__
        return PassingError(f"{self._host_of(url)} cannot be reached ({kind})")

    def _json_of(self, response: HTTPResponse) -> Any:
        """The content of an answer; None if it is not JSON that can be read."""
        content = bytearray()
        for block in self._blocks(response):
            content += block
            if len(content) > LARGEST_MIB << 20:
                return None
        token = json_module.dumps(self._token)[1:-1]
        try:
            value = json_module.loads(content.decode("utf-8", "replace"))
            # Written anew, no escapes hide the token.
            text = re.sub(
                re.escape(token), "[token]", json_module.dumps(value), flags=re.I
            )
            return json_module.loads(text)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            return None

    @cached_property
    def _opener(self) -> OpenerDirector:
        """It verifies certificates, and leads nowhere by itself."""
        return build_opener(_AsItIs)


class _AsItIs(HTTPErrorProcessor):
    """Takes each status for an answer, that of a redirection as well."""

    def https_response(self, request: Any, response: Any) -> Any:
        return response


def _mark_of(headers: HTTPMessage) -> str:
    """What a host calls the file that it sends; a weak mark does not count."""
    mark = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not mark or mark[:2] == "W/" else mark
