"""The client of grand-challenge.org: calls and files, tried again where that helps.

A token goes to the platform alone, over TLS, and stands in nothing that is written.
"""

from __future__ import annotations

import hashlib
import json as json_module
import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from flare.common.environment import __version__
from flare.common.errors import unwritable
from flare.common.text import printable, safe
from flare.platforms.grandchallenge.access import TOKEN_REMEDY, PlatformError

if TYPE_CHECKING:
    from http.client import HTTPMessage, HTTPResponse
    from urllib.request import OpenerDirector

_log = logging.getLogger(__name__)

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

MOST_REDIRECTS = 5
"""From the address of a file to the host that has it."""

BLOCK_BYTES = 2**20

_RIGHTS = (
    "Check --phase and --api, and the rights of the token's user: an external evaluator"
    " of the phase serves, an admin of the challenge downloads."
)

Found = TypeVar("Found")


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
    sleep, chance : callable
        Wait for some seconds; a number from 0 to 1.
    """

    def __init__(
        self,
        api: str,
        token: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not api.startswith("https://"):
            raise PlatformError(
                f"{safe(api)}: the token is sent to no http address",
                "Give the address with https:// as --api.",
            )
        self.api = f"{api.rstrip('/')}/"
        self._token, self._sleep, self._chance = token, sleep, chance

    @property
    def mark(self) -> str:
        """What tells this token from others, and tells nobody the token."""
        return hashlib.sha256(self._token.encode()).hexdigest()[:8]

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
        return PlatformError(problem, _RIGHTS)

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
        tried = 0
        url = f"{self.api}{path}{f'?{urlencode(params)}' if params else ''}"
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        body = None if json is None else json_module.dumps(json).encode()

        def attempt() -> Reply:
            nonlocal tried
            tried += 1
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

        def fetch_rest() -> None:
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
                if have + (response.length or 0) > LARGEST_BYTES:
                    raise TooLargeError(f"{host}: {safe(file.name)} is too large")
                for block in self._blocks(response):
                    content.write(block)
                    if content.tell() > LARGEST_BYTES:
                        raise TooLargeError(f"{host}: {safe(file.name)} does not end")

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

    def _again(self, what: str, attempt: Callable[[], Found]) -> Found:
        """Try something until it does not fail on the way."""
        pause_s, tried = FIRST_PAUSE_S, 1
        while True:
            try:
                return attempt()
            except PassingError as passing:
                if tried >= TRIES:
                    problem = f"{safe(self.api)}: {what}: {passing}, {tried} times"
                    raise PlatformError(problem, "Try again later.") from passing
                wait_s = pause_s * (0.5 + self._chance())
                _log.warning("%s: %s; again in %.0f s", what, passing, wait_s)
            self._sleep(wait_s)
            pause_s, tried = 2 * pause_s, tried + 1

    @contextmanager
    def _led(self, url: str, headers: dict[str, str]) -> Iterator[HTTPResponse]:
        """An answer from wherever the platform leads, if it is an https address.

        Another host that refuses does not know us: its addresses are signed, and each
        is good for some minutes.
        """
        for _ in range(MOST_REDIRECTS):
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
                if not self._is_own(url) and status in (400, 401, 403):
                    host = self._host_of(url)
                    raise PassingError(f"{host} answers with status {status}")
                yield response
                return
        raise PlatformError(
            f"{safe(self.api)}: it leads from one address to the next",
            "Ask the platform's staff.",
        )

    @contextmanager
    def _opened(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> Iterator[HTTPResponse]:
        """An answer of a host, whatever it says; only the platform gets the token."""
        # Not at the top: help, which asks nobody, starts sooner.
        from http.client import HTTPException, InvalidURL
        from urllib.error import URLError
        from urllib.request import Request

        headers = {"User-Agent": f"flare/{__version__}", **headers}
        if self._is_own(url):
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            request = Request(url, data=body, headers=headers, method=method)
            response = self._opener.open(request, timeout=TIMEOUT_S)
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            # So is a bad certificate; a text is said of an address that is none.
            if isinstance(reason, ValueError | InvalidURL | str):
                words = self._redact(printable(str(reason)))[:120]
                kind = type(error if isinstance(reason, str) else reason).__name__
                text = f"{kind}: {words}"
                raise PlatformError(
                    f"{safe(self.api)}: it cannot be used ({text})", "Is --api right?"
                ) from error
            raise self._unreachable(url, reason) from error
        with response:
            status = response.status
            if status >= 500 or status == 429:
                host = self._host_of(url)
                raise PassingError(f"{host} answers with status {status}")
            yield response

    def _blocks(self, response: HTTPResponse) -> Iterator[bytes]:
        """What a host sends, to its end."""
        from http.client import HTTPException

        while True:
            try:
                block = response.read(BLOCK_BYTES)
            except (OSError, ValueError, HTTPException) as error:  # of odd lengths, too
                raise self._unreachable(response.url, error) from error
            if not block:
                break
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

    def _is_own(self, url: str) -> bool:
        """Whether an address is on the platform's own host."""
        return url.startswith(urljoin(self.api, "/"))

    @cached_property
    def _opener(self) -> OpenerDirector:
        """It verifies certificates, and leads nowhere by itself."""
        from urllib.request import HTTPErrorProcessor, build_opener

        class AsItIs(HTTPErrorProcessor):
            """Takes each status for an answer, that of a redirection as well."""

            def http_response(self, request: Any, response: Any) -> Any:
                return response

            https_response = http_response

        return build_opener(AsItIs)


def _mark_of(headers: HTTPMessage) -> str:
    """What a host calls the file that it sends; a weak mark does not count."""
    mark = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not mark or mark[:2] == "W/" else mark
