"""The client of grand-challenge.org: its token, and calls and files, tried again.

A token goes to the platform alone, over TLS, and stands in nothing that is written.
"""

from __future__ import annotations

import hashlib
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
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path
from ssl import SSLCertVerificationError
from string import punctuation
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import Request

from flare.common.environment import __version__
from flare.common.errors import HostError, unwritable
from flare.common.options import option
from flare.common.text import printable, safe, shell_word, why
from flare.platforms.grandchallenge.connection import (
    CONNECT_S,
    GZIP,
    Limits,
    Pace,
    asked_pause_s,
    encoding_of,
    is_gzip_twice,
    make_opener,
    without_credentials,
)
from flare.results.team_folder import deleted_user

_log = logging.getLogger(__name__)

API = "https://grand-challenge.org/api/v1/"

FIRST_PAUSE_S = 1.0
"""Before a call is made again; doubled each time."""

LONGEST_PAUSE_S = 60.0
"""That a host may ask for with Retry-After; if it asks for more, it is not tried."""

TRIES = 5
"""Of a call or a file; meanwhile others wait, and may have to be answered."""

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
    that of an admin of the challenge. A network with a proxy needs HTTPS_PROXY, and
    SSL_CERT_FILE if the proxy looks into TLS.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


class FileRefusedError(PlatformError):
    """A host refuses to give a file, with this status."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem, "See whether this token's user may fetch it.")
        self.status = status


class TokenError(PlatformError):
    """The platform does not accept a token, such as one that has run out."""


class TooLargeError(PlatformError):
    """A file has more bytes than are taken of one."""

    remedy = "Ask the team for a smaller one."


class LongAnswerError(PlatformError):
    """An answer to a call has more bytes than are taken of one."""

    remedy = "Is --api right?"


class PassingError(Exception):
    """Something has failed that may not fail the next time.

    Parameters
    ----------
    problem : str
        What has failed.
    pause_s : float, optional
        Seconds after which the host wants to be asked again.
    """

    def __init__(self, problem: str, pause_s: float = 0.0) -> None:
        super().__init__(problem)
        self.pause_s = pause_s


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


def check_whole(response: HTTPResponse, host: str, size: int) -> None:
    """Refuse a file of which a host may have sent a part alone.

    Parameters
    ----------
    response : HTTPResponse
        The answer, read to its end.
    host : str
        Its host, for the message.
    size : int
        The bytes that the file has now.

    Raises
    ------
    PassingError
        If nothing tells how long the file is, or it has another length.
    """
    if not response.chunked and response.headers.get("Content-Length") is None:
        # A connection that was cut looks like the end of such a file.
        raise PassingError(f"{host} does not tell how long the file is")
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal() and int(total) != size:
        raise PassingError(f"{host} has sent fewer bytes than it said")
    if not size:
        raise PassingError(f"{host} has sent an empty file")


def user_of(submission: Mapping[str, Any], key: str) -> str:
    """The name of who has submitted; one made of the key if the account was deleted."""
    creator = submission["creator"]
    return deleted_user(key) if creator is None else str(creator["username"])


def read_tokens(variables: MutableMapping[str, str] = os.environ) -> tuple[str, ...]:
    """The API tokens of FLARE_GC_TOKEN, or of the file that FLARE_GC_TOKEN_FILE names.

    FLARE_GC_TOKEN is removed: what we start does not need it, and so does not get it.

    Returns
    -------
    tuple of str
        One for each line that is not empty, in their order; at least one.

    Raises
    ------
    PlatformError
        If there is none, or others may use the file. No message holds any part of one.
    """
    text = variables.pop("FLARE_GC_TOKEN", "").strip()
    file = variables.get("FLARE_GC_TOKEN_FILE", "")
    try:
        if file and not text:
            with Path(file).open(encoding="ascii") as opened:
                mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
                if mode & 0o077:  # ssh refuses such a key, too
                    raise PlatformError(
                        f"{safe(file)}: others may use this file (mode {mode:04o})",
                        f"Its token is yours alone: chmod 600 {shell_word(file)}.",
                    )
                text = opened.read()
    except (OSError, ValueError) as error:
        reason = why(error) if isinstance(error, OSError) else "it is not a text"
        raise PlatformError(
            f"{safe(file)}: the token cannot be read ({reason})", TOKEN_REMEDY
        ) from error
    lines = (line.strip() for line in text.split("\n"))
    tokens = tuple(dict.fromkeys(line for line in lines if line))
    if not tokens:
        raise PlatformError("There is no API token", TOKEN_REMEDY)
    if not all(re.fullmatch("[!-~]+", token) for token in tokens):
        raise PlatformError("The token is not one word on a line", TOKEN_REMEDY)
    return tokens


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
    limits : Limits
        How long a host may take, and how much it may say.
    """

    def __init__(
        self,
        api: str,
        token: str,
        sleep: Callable[[float], None] = time.sleep,
        limits: Limits = Limits(),  # noqa: B008
    ) -> None:
        if not api.startswith("https://"):
            raise PlatformError(
                f"{safe(api)}: the token is sent to no http address",
                "Give the address with https:// as --api.",
            )
        self.api = f"{api.rstrip('/')}/"
        self._token, self._sleep, self._limits = token, sleep, limits

    @property
    def mark(self) -> str:
        """A fingerprint of the token: it tells tokens apart, and nobody the token."""
        return hashlib.sha256(self._token.encode()).hexdigest()[:8]

    def _redact(self, text: str) -> str:
        """A text without the token, also in small letters: hosts have these."""
        return re.sub(re.escape(self._token), "[token]", text, flags=re.IGNORECASE)

    def _host_of(self, url: str) -> str:
        """The host of an address, without the token."""
        return safe(self._redact(urlsplit(url).hostname or "an unknown host"))

    def _place(self, url: str) -> str:
        """An address for a message, without the token and what may be a signature."""
        return printable(self._redact(url.partition("?")[0]))[:80]

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
        it gives: a proxy says so, too. The limits hold for each try.

        Returns
        -------
        Reply
            Also if the platform refuses it, but not the token.

        Raises
        ------
        PlatformError
            If it does not accept the token, or cannot be reached.
        LongAnswerError
            If its answer is too long.
        """
        url = f"{self.api}{path}{f'?{urlencode(params)}' if params else ''}"
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        body = None if json is None else json_module.dumps(json).encode()

        def attempt(tried: int) -> Reply:
            pace = Pace(time.monotonic() + self._limits.call_s)
            with self._opened(method, url, headers, pace, body) as response:
                status, to = response.status, response.headers.get("Location")
                if status == 401:
                    problem = f"{safe(self.api)}: it does not accept the token"
                    raise TokenError(problem, TOKEN_REMEDY)
                content = self._json_of(response, pace)
            if status == 200 and content is None:
                as_what = encoding_of(response) or "no JSON"
                raise PassingError(f"{self._host_of(url)} answers with {as_what}")
            if to and 300 <= status < 400:
                content = {"detail": f"it leads to {self._place(to)}"}
            return Reply(status=status, content=content, is_certain=tried == 1)

        return self._again(f"{method} {path}", attempt)

    def fetch(self, url: str, file: Path) -> None:  # noqa: C901
        """Fetch a file, unless it is there; it has its name when it is whole.

        Where the network fails, only what is missing is fetched again, if the host
        still has the same file. An address of the platform leads to a newly signed one
        each time. Of a file, a part of 8 MiB has to arrive each minute, and all of it
        within six hours, unless the client has other limits.

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
        limits, end = self._limits, time.monotonic() + self._limits.file_s

        def fetch_rest(_: int) -> None:
            nonlocal mark
            have = content.tell() if mark else 0
            headers = {"Range": f"bytes={have}-", "If-Range": mark} if have else {}
            pace = Pace(end, limits.call_s, limits.part_bytes)
            with self._led(url, headers, pace) as response:
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
                for block in self._blocks(response, pace):
                    if not content.tell():
                        self._refuse_encoded(response, block)
                    whole = content.tell() + len(block) + (response.length or 0)
                    if whole > LARGEST_BYTES:
                        raise TooLargeError(f"{host}: {safe(file.name)} is too large")
                    content.write(block)
                check_whole(response, host, content.tell())

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
                wait_s = max(wait_s, passing.pause_s)
                if wait_s > LONGEST_PAUSE_S:
                    problem = f"{safe(self.api)}: {what}: {passing}"
                    remedy = f"It asks us to wait: try again in {wait_s:.0f} s."
                    raise PlatformError(problem, remedy) from passing
                _log.warning("%s: %s; again in %.0f s", what, passing, wait_s)
            self._sleep(wait_s)
            tried += 1

    @contextmanager
    def _led(
        self, url: str, headers: dict[str, str], pace: Pace
    ) -> Iterator[HTTPResponse]:
        """An answer from wherever the platform leads, if it is an https address."""
        for _ in range(5):
            url = quote(url, safe=punctuation)  # what is no ASCII, or a space
            if not url.startswith("https://"):
                raise PlatformError(
                    f"{self._place(url)}: the file is not at an https address",
                    "Ask the platform's staff.",
                )
            with self._opened("GET", url, headers, pace) as response:
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
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        pace: Pace,
        body: bytes | None = None,
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
        request = Request(url, data=body, headers=headers, method=method)
        try:
            response = make_opener(pace).open(request, timeout=CONNECT_S)
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            proxy = "" if request.host == urlsplit(url).netloc else request.host or ""
            raise self._failure(url, reason, pace, proxy) from error
        with response:
            status = response.status
            if status >= 500 or status in passing:
                raise PassingError(
                    f"{self._host_of(url)} answers with status {status}",
                    asked_pause_s(response.headers.get("Retry-After", "")),
                )
            yield response

    def _blocks(self, response: HTTPResponse, pace: Pace) -> Iterator[bytes]:
        """What a host sends, to its end."""
        block = b"-"
        while block:
            try:
                block = response.read(2**20)
            except (OSError, ValueError, HTTPException) as error:  # of odd lengths, too
                raise self._unreachable(response.url, error, pace) from error
            yield block
        if response.length:
            host = self._host_of(response.url)
            raise PassingError(f"{host} has sent fewer bytes than it said")

    def _failure(
        self, url: str, reason: object, pace: Pace, proxy: str
    ) -> PassingError | PlatformError:
        """Why an address was not opened; if a proxy is named, it was asked to."""
        if isinstance(reason, SSLCertVerificationError):
            return PlatformError(
                f"{self._host_of(url)}: its certificate is not trusted"
                f" ({printable(reason.verify_message)[:120]})",
                "If a proxy of yours looks into TLS, give your CA as SSL_CERT_FILE;"
                " else see whether --api is right.",
            )
        # A text is said of an address that is none.
        if isinstance(reason, ValueError | InvalidURL | str):
            text = self._redact(printable(repr(reason)))[:120]
            problem = f"{safe(self.api)}: it cannot be used ({text})"
            return PlatformError(problem, "Is --api right?")
        _, _, refusal = str(reason).partition("Tunnel connection failed: ")
        if not refusal:
            return self._unreachable(url, reason, pace, proxy)
        refusal = printable(self._redact(without_credentials(refusal)))[:120]
        problem = f"the proxy {safe(proxy)} refuses to lead to {self._host_of(url)}"
        if not refusal.startswith("407"):
            return PassingError(f"{problem} ({refusal})")
        return PlatformError(
            f"{problem} ({refusal})",
            "Give HTTPS_PROXY as http://USER:PASSWORD@HOST:PORT, with other signs than"
            " letters and digits as %XX.",
        )

    def _unreachable(
        self, url: str, error: object, pace: Pace, proxy: str = ""
    ) -> PassingError:
        place = self._host_of(url)
        if proxy:
            place += f", by the proxy {safe(proxy)},"
        if pace.left_s <= 0:
            return PassingError(f"{place} has not sent all, or enough, in time")
        return PassingError(f"{place} cannot be reached ({type(error).__name__})")

    def _refuse_encoded(self, response: HTTPResponse, start: bytes) -> None:
        """Refuse what was encoded once more on its way, which nobody has asked for.

        Storages say gzip of a .tar.gz file, too, that they give as it is: only what has
        another gzip or zip file within was encoded.
        """
        encoding = encoding_of(response)
        if encoding and (encoding != GZIP or is_gzip_twice(start)):
            host = self._host_of(response.url)
            raise PassingError(f"{host} gives {encoding} in place of the file")

    def _json_of(self, response: HTTPResponse, pace: Pace) -> Any:
        """The content of an answer; None if it is not JSON that can be read."""
        content, largest = bytearray(), self._limits.answer_bytes
        for block in self._blocks(response, pace):
            content += block
            if len(content) > largest:
                host = self._host_of(response.url)
                raise LongAnswerError(
                    f"{host}: its answer is longer than {largest / 2**20:g} MiB"
                )
        token = json_module.dumps(self._token)[1:-1]
        try:
            value = json_module.loads(content.decode("utf-8", "replace"))
            # Written anew, no escapes hide the token.
            text, hidden = re.subn(
                re.escape(token), "[token]", json_module.dumps(value), flags=re.I
            )
            return json_module.loads(text) if hidden else value
        except (ValueError, RecursionError):  # also a number of thousands of digits
            return None


def _mark_of(headers: HTTPMessage) -> str:
    """What a host calls the file that it sends; a weak mark does not count."""
    mark = headers.get("ETag", "")
    return headers.get("Last-Modified", "") if not mark or mark[:2] == "W/" else mark
