"""The client of the platform: calls and files, tried again where the network fails."""

from __future__ import annotations

import errno
import hashlib
import json as json_module
import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from flare.common.files import read_regular, unwritable, write_whole
from flare.common.text import printable, safe
from flare.platforms.grandchallenge.access import (
    NEW_TOKEN,
    PlatformError,
    open_client,
    redacted,
    without_tokens,
)

_log = logging.getLogger(__name__)

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
    """Something has failed that may not fail the next time.

    Parameters
    ----------
    reason : str
        What has failed.
    end : PlatformError, optional
        What it has come to after the last try.
    """

    def __init__(self, reason: str, end: PlatformError | None = None) -> None:
        super().__init__(reason)
        self.end = end


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
        try:
            return printable(str(found))[:200].rstrip(".")
        except RecursionError:  # a list in a list in a list ...
            return "its reason cannot be read"


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
        It is given to gcapi's client, and to nobody else.
    tries : int
        So often a call is tried at most.
    sleep, chance : callable
        Wait for some seconds; a number from 0 to 1.
    """

    def __init__(
        self,
        api: str,
        token: str,
        *,
        tries: int = TRIES,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not api.startswith("https://"):
            raise PlatformError(
                f"{safe(api)}: the token is sent to no http address",
                "Give the address with https:// as --api.",
            )
        self.api = f"{api.rstrip('/')}/"
        self._token, self._tries = token, tries
        self._sleep, self._chance = sleep, chance
        self._opened: Any = None

    def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        json: dict[str, Any] | None = None,
    ) -> Reply:
        """Make a call until the platform answers it.

        Returns
        -------
        Reply
            Also if the platform refuses it, but not the token.

        Raises
        ------
        PlatformError
            If it does not accept the token, or cannot be reached.

        What answers a call without a word of JSON is not the platform, whatever status
        it gives: a proxy says so, too.
        """
        tried = 0

        def attempt() -> Reply:
            nonlocal tried
            tried += 1
            # Unpacked on the way, a small answer could fill the memory.
            with self._client().stream(
                method,
                f"{self.api}{path}",
                params=params,
                json=json,
                headers={**self._headers(), "Accept-Encoding": "identity"},
            ) as response:
                status = response.status_code
                if status == 401:
                    raise PlatformError(
                        f"{safe(self.api)}: it does not accept the token", NEW_TOKEN
                    )
                if fault := self._fault_of(response):
                    raise fault
                content = self._json_of(response)
            if response.is_success and content is None:
                raise PassingError(
                    f"{self.host_of(response)} answers with status {status}, but no"
                    f" JSON of at most {LARGEST_MIB} MiB"
                )
            return Reply(status=status, content=content, is_certain=tried == 1)

        return self.again(f"{method} {path}", attempt)

    def again(self, what: str, attempt: Callable[[], Found]) -> Found:
        """Try something until it does not fail on the way.

        Raises
        ------
        PlatformError
            If it fails each time, or will not do better later.
        """
        pause_s, tried = FIRST_PAUSE_S, 0
        while True:
            tried += 1
            try:
                return attempt()
            except Exception as error:
                passing = self._passing(error)
                if not passing and type(error).__module__.startswith("httpx"):
                    words = self.redact(printable(str(error)))[:120]
                    text = f"{type(error).__name__}: {words}"
                    raise PlatformError(
                        f"{safe(self.api)}: it cannot be used ({text})",
                        "Is --api right?",
                    ) from error
                if not passing:
                    raise
                if tried >= self._tries:
                    problem = f"{safe(self.api)}: {what}: {passing}, {tried} times"
                    end = PlatformError(problem, "Try again later.")
                    raise passing.end or end from error
            wait_s = pause_s * (0.5 + self._chance())
            _log.warning("%s: %s; again in %.0f s", what, passing, wait_s)
            self._sleep(wait_s)
            pause_s *= 2

    @contextmanager
    def stream(self, url: str, headers: dict[str, str]) -> Iterator[Any]:
        """Open a file, wherever the platform leads, if it is an https address.

        The token goes to the platform alone. Another host that refuses does not know
        us: its addresses are signed, and each is good for some minutes.

        Raises
        ------
        PlatformError
            If it leads elsewhere.
        PassingError, httpx.HTTPError
            If it may be given later, from a new address.
        """
        for _ in range(MOST_REDIRECTS):
            if not url.startswith("https://"):
                place = printable(self.redact(url.partition("?")[0]))[:80]
                raise PlatformError(
                    f"{place}: the file is not at an https address",
                    "Ask the platform's staff.",
                )
            is_own = url.startswith(str(self._client().base_url.join("/")))
            own = self._headers() if is_own else {}
            with self._client().stream(
                "GET", url, headers={**headers, **own}, follow_redirects=False
            ) as response:
                if not response.next_request:
                    if fault := self._fault_of(response):
                        raise fault
                    status = response.status_code
                    if not is_own and status in (400, 401, 403):
                        host = self.host_of(response)
                        reason = f"{host} answers with status {status}"
                        raise PassingError(reason, FileRefusedError(reason, status))
                    yield response
                    return
                url = str(response.next_request.url)
        raise PlatformError(
            f"{safe(self.api)}: it leads from one address to the next",
            "Ask the platform's staff.",
        )

    def host_of(self, message: Any) -> str:
        """The host of a request or response, without the token."""
        return safe(self.redact(message.url.host))

    @property
    def mark(self) -> str:
        """What tells this token from others, and tells nobody the token."""
        return hashlib.sha256(self._token.encode()).hexdigest()[:8]

    def redact(self, text: str) -> str:
        """What the platform has said, without the token."""
        return without_tokens(text, self._token)

    def _passing(self, error: Exception) -> PassingError | None:
        """What has failed on the way, if it may pass."""
        if isinstance(error, PassingError):
            return error
        kind = type(error)
        if not kind.__module__.startswith("httpx") or not hasattr(error, "request"):
            return None
        response = getattr(error, "response", None)
        if response is not None:
            return self._fault_of(response)
        is_refused = "CERTIFICATE_VERIFY_FAILED" in str(error)
        if is_refused or kind.__name__ == "UnsupportedProtocol":
            return None
        host = self.host_of(error.request)
        return PassingError(f"{host} cannot be reached ({kind.__name__})")

    def _fault_of(self, response: Any) -> PassingError | None:
        """What a status comes to that says nothing of the request itself."""
        status = response.status_code
        if status < 500 and status != 429:
            return None
        return PassingError(f"{self.host_of(response)} answers with status {status}")

    def _json_of(self, response: Any) -> Any:
        """The content of an answer; None if it is no JSON, or none that can be read."""
        content = bytearray()
        for block in response.iter_raw():
            content += block
            if len(content) > LARGEST_MIB << 20:
                return None
        try:
            value = json_module.loads(content.decode("utf-8", "replace"))
            return redacted(value, self._token)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            return None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}

    def _client(self) -> Any:
        """The platform's own client, opened when it is needed: that asks the platform.

        It verifies the certificate of the platform, and knows if it is too old for it.
        """
        if self._opened is None:
            self._opened = open_client(self.api, self._token)
        return self._opened


# --- Files ----------------------------------------------------------------------


def fetch(calls: Client, url: str, file: Path) -> None:
    """Fetch a file, unless it is there; it has its name when it is whole.

    What has arrived of it is kept, and not fetched again if the platform still has the
    same file. An address of the platform leads to a newly signed one at each try.

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
    part = file.with_name(f".{file.name}.part")

    def attempt() -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if part.exists() and not part.is_file():  # opening a pipe would wait
                raise FileExistsError(errno.EEXIST, "it is no file")
            _fetch_rest(calls, url, part)
            part.replace(file)
        except OSError as error:
            raise unwritable(part, error) from error

    try:
        calls.again(safe(file.name), attempt)
    except TooLargeError:
        part.unlink(missing_ok=True)
        raise
    _note_of(part).unlink(missing_ok=True)


def _fetch_rest(calls: Client, url: str, part: Path) -> None:
    """Fetch what is missing of a file.

    Raises
    ------
    PassingError
        If what arrives is not what was asked for.
    """
    name = safe(part.name.removeprefix(".").removesuffix(".part"))
    have = part.stat().st_size if part.exists() else 0
    mark = _mark(part) if have else ""
    headers = {"Range": f"bytes={have}-", "If-Range": mark} if mark else {}
    # Unpacked on the way, it would have another size.
    with calls.stream(url, {**headers, "Accept-Encoding": "identity"}) as response:
        status, host = response.status_code, calls.host_of(response)
        offered = calls.redact(_mark_of(response))
        span = response.headers.get("Content-Range", "")
        is_same = bool(mark) and offered in ("", mark)
        is_next = is_same and span.startswith(f"bytes {have}-")
        if status == 416 or (status == 206 and not is_next):
            part.unlink(missing_ok=True)  # nothing is missing, or it is another file
            raise PassingError(f"{host} gives another part than was asked for")
        if status not in (200, 206):
            problem = f"{host}: it does not give {name} (status {status})"
            raise FileRefusedError(problem, status)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise PassingError(f"{host} gives a page in place of the file")
        is_rest = status == 206
        total = _total(response, have if is_rest else 0)
        if total is not None and total > LARGEST_BYTES:
            raise TooLargeError(f"{host}: {name} has {total >> 30} GiB")
        _keep_mark(part, offered)
        with part.open("ab" if is_rest else "wb") as content:
            for block in response.iter_raw():
                content.write(block)
                if content.tell() > LARGEST_BYTES:
                    raise TooLargeError(f"{host}: {name} does not end")
    if total is not None and part.stat().st_size != total:
        if part.stat().st_size > total:
            part.unlink()
        raise PassingError(f"{host} has sent another number of bytes than it said")


def _total(response: Any, have: int) -> int | None:
    """The size of the whole file; None if the platform does not say it."""
    span = response.headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes \d+-\d+/([0-9]{1,18})", span)
    if found and response.status_code == 206:
        return int(found[1])
    length = response.headers.get("Content-Length", "")
    return have + int(length) if re.fullmatch("[0-9]{1,18}", length) else None


# --- Which file it is that has arrived in part ------------------------------------


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _mark(part: Path) -> str:
    """What the platform called the file of which there is a part; empty if nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json_module.loads(read_regular(_note_of(part)))["mark"])
    return ""


def _mark_of(response: Any) -> str:
    """What the platform calls this file; a weak mark does not count."""
    mark = str(response.headers.get("ETag", ""))
    if not mark or mark.startswith("W/"):
        mark = str(response.headers.get("Last-Modified", ""))
    return mark


def _keep_mark(part: Path, mark: str) -> None:
    write_whole(_note_of(part), json_module.dumps({"mark": mark}))
