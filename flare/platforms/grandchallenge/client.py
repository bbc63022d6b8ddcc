"""The client of grand-challenge.org: it makes calls and fetches files, and tries again.

A token goes to the platform alone, over TLS, and stands in nothing that is written.
"""

from __future__ import annotations

import hashlib
import json as json_module
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from ssl import SSLCertVerificationError
from string import punctuation
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import Request

from flare.common.environment import __version__
from flare.common.errors import unwritable
from flare.common.options import option
from flare.common.text import printable, safe
from flare.platforms.grandchallenge.connection import (
    CONNECT_S,
    CallLimits,
    Pace,
    encoding_of,
    make_opener,
    requested_pause_s,
    without_credentials,
)
from flare.platforms.grandchallenge.errors import (
    LongAnswerError,
    PassingError,
    PlatformError,
    TokenError,
)
from flare.platforms.grandchallenge.partial_file import PartialFile
from flare.platforms.grandchallenge.tokens import TOKEN_REMEDY, forms_of
from flare.results.team_folder import deleted_user

_log = logging.getLogger(__name__)

API = "https://grand-challenge.org/api/v1/"

FIRST_PAUSE_S = 1.0
"""The pause before a call is made again; it is doubled each time."""

LONGEST_PAUSE_S = 60.0
"""Longest pause that a host may ask for with Retry-After: for more, nothing waits."""

TRIES = 5
"""Tries of a call or a file; meanwhile others wait, and may have to be answered."""

Result = TypeVar("Result")


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
    """The name of a submission's user; made of the key if the account was deleted."""
    creator = submission["creator"]
    return deleted_user(key) if creator is None else str(creator["username"])


# --- Calls ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The platform's answer to a call that it understood."""

    status: int
    content: Any
    """As JSON, without the token; None if it is not JSON."""
    is_certain: bool
    """Whether the call was made once: an earlier one may have been heard."""

    @property
    def reason(self) -> str:
        """Why it was refused, in the platform's words, on one line."""
        reason = self.content
        if isinstance(reason, dict):
            reason = reason.get("status") or reason.get("detail") or reason
        return printable(str(reason))[:200].rstrip(".")


class Client:
    """The API of a platform, as it is called with one token.

    A call that fails on the way, or by a fault of the platform (status 500 and above,
    or 429), is tried again after pauses that grow, and that chance makes longer or
    shorter, so that many services do not come back at the same moment. The address of
    the API is one with https; the token is sent to that host, and to no other.
    """

    def __init__(
        self,
        api: str,
        token: str,
        sleep: Callable[[float], None] = time.sleep,
        limits: CallLimits = CallLimits(),  # noqa: B008
    ) -> None:
        if not api.startswith("https://"):
            raise PlatformError(
                f"{safe(api)}: the token is sent to no http address",
                "Give the address with https:// as --api.",
            )
        self.api = f"{api.rstrip('/')}/"
        self._token, self._sleep, self._limits = token, sleep, limits
        self._forms = forms_of(token)

    @property
    def mark(self) -> str:
        """A fingerprint of the token: it tells tokens apart, and nobody the token."""
        return hashlib.sha256(self._token.encode()).hexdigest()[:8]

    def _redact(self, text: str) -> str:
        return self._forms.sub("[token]", text)

    def _host_of(self, url: str) -> str:
        """The host of an address, without the token."""
        return safe(self._redact(urlsplit(url).hostname or "an unknown host"))

    def _place(self, url: str) -> str:
        """An address for a message, without the token and a signature."""
        return printable(self._redact(url.partition("?")[0]))[:80]

    def unknown_platform(self) -> PlatformError:
        """The error of an answer that the platform we know does not give."""
        problem = f"{safe(self.api)}: it does not answer as grand-challenge.org"
        return PlatformError(problem, "Is --api right?")

    def refusal(self, reply: Reply) -> PlatformError:
        """The error of a reply that does not answer the call."""
        if reply.status == 200:
            return self.unknown_platform()
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

        An answer without a word of JSON is not the platform's, even if its status is
        200: a proxy says so, too. The limits hold for each try. An answer is returned
        also if the platform refuses the call, but not the token. A PlatformError is
        raised if it does not accept the token, or cannot be reached. A LongAnswerError
        is raised if its answer is too long.
        """
        url = f"{self.api}{path}{f'?{urlencode(params)}' if params else ''}"
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        body = None if json is None else json_module.dumps(json).encode()

        def attempt(tried: int) -> Reply:
            pace = Pace(time.monotonic() + self._limits.call_s)
            with self._open(method, url, headers, pace, body) as response:
                status, location = response.status, response.headers.get("Location")
                if status == 401:
                    problem = f"{safe(self.api)}: it does not accept the token"
                    raise TokenError(problem, TOKEN_REMEDY)
                content = self._json_of(response, pace)
            if status == 200 and content is None:
                kind = encoding_of(response) or "no JSON"
                raise PassingError(f"{self._host_of(url)} answers with {kind}")
            if location and 300 <= status < 400:
                content = {"detail": f"it leads to {self._place(location)}"}
            return Reply(status=status, content=content, is_certain=tried == 1)

        return self._repeat(f"{method} {path}", attempt)

    def fetch(self, url: str, file: Path) -> None:
        """Fetch a file, unless it is there; it has its name when it is whole.

        Where the network fails, only the missing bytes are fetched again, if the host
        still has the same file. An address of the platform leads to a newly signed one
        each time. Of a file, a part of 8 MiB has to arrive each minute, and all of it
        within six hours, unless the client has other limits.

        A FileRefusedError is raised if the host refuses it, where a new address may
        help; a TooLargeError if it is too large, a PlatformError if it does not arrive,
        and an OutputError if it cannot be written.
        """
        if file.exists():
            return
        part = file.with_name(f".{file.name}.part")
        limits, end = self._limits, time.monotonic() + self._limits.file_s

        def attempt(_: int) -> None:
            pace = Pace(end, limits.call_s, limits.part_bytes)
            with self._follow(url, partial_file.headers, pace) as response:
                blocks, host = self._blocks(response, pace), self._host_of(response.url)
                partial_file.take(response, blocks, host)

        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)  # of a program that was ended
            try:
                with part.open("xb") as content:
                    partial_file = PartialFile(content, file.name)
                    self._repeat(safe(file.name), attempt)
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(part, error) from error
        except ValueError as error:  # of a text that is not an address
            raise self.unknown_platform() from error

    def _repeat(self, title: str, attempt: Callable[[int], Result]) -> Result:
        """Try something until it does not fail on the way; it gets the try's number."""
        number = 1
        while True:
            try:
                return attempt(number)
            except PassingError as error:
                if number == TRIES:
                    problem = f"{safe(self.api)}: {title}: {error}, {TRIES} times"
                    raise PlatformError(problem, "Try again later.") from error
                pause_s = FIRST_PAUSE_S * 2 ** (number - 1) * (0.5 + random.random())
                pause_s = max(pause_s, error.pause_s)
                if pause_s > LONGEST_PAUSE_S:
                    problem = f"{safe(self.api)}: {title}: {error}"
                    remedy = f"It asks us to wait: try again in {pause_s:.0f} s."
                    raise PlatformError(problem, remedy) from error
                _log.warning("%s: %s; again in %.0f s", title, error, pause_s)
            self._sleep(pause_s)
            number += 1

    @contextmanager
    def _follow(
        self, url: str, headers: dict[str, str], pace: Pace
    ) -> Iterator[HTTPResponse]:
        """The answer behind the redirections of an address, all of them with https."""
        for _ in range(5):
            url = quote(url, safe=punctuation)  # spaces, and letters beyond ASCII
            if not url.startswith("https://"):
                raise PlatformError(
                    f"{self._place(url)}: the file is not at an https address",
                    "Ask the platform's staff.",
                )
            with self._open("GET", url, headers, pace) as response:
                location = response.headers.get("Location")
                if not (location and 300 <= response.status < 400):
                    yield response
                    return
                # Python reads all headers as Latin-1, whatever they are.
                url = urljoin(url, quote(location, punctuation, "latin-1"))
        raise self.unknown_platform()

    @contextmanager
    def _open(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        pace: Pace,
        body: bytes | None = None,
    ) -> Iterator[HTTPResponse]:
        """An answer of a host, of any status; only the platform gets the token.

        Another host that refuses does not know us: its addresses are signed, and each
        is good for some minutes. So a refusal may pass there, and not at the platform.
        """
        headers = {"User-Agent": f"flare/{__version__}", **headers}
        passing_statuses: tuple[int, ...] = (400, 401, 403, 429)
        if url.startswith(urljoin(self.api, "/")):
            passing_statuses = (429,)
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
            if status >= 500 or status in passing_statuses:
                raise PassingError(
                    f"{self._host_of(url)} answers with status {status}",
                    requested_pause_s(response.headers.get("Retry-After", "")),
                )
            yield response

    def _blocks(self, response: HTTPResponse, pace: Pace) -> Iterator[bytes]:
        """The content of an answer, to its end."""
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
        """Why an address was not opened, by a proxy if one is named."""
        if isinstance(reason, SSLCertVerificationError):
            return PlatformError(
                f"{self._host_of(url)}: its certificate is not trusted"
                f" ({printable(reason.verify_message)[:120]})",
                "If a proxy of yours looks into TLS, give your CA as SSL_CERT_FILE;"
                " else see whether --api is right.",
            )
        # The reason is a text where the address is not one.
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
        try:
            value = json_module.loads(content.decode("utf-8", "replace"))
            # Written anew, no escapes hide the token.
            text, hidden = self._forms.subn("[token]", json_module.dumps(value))
            return json_module.loads(text) if hidden else value
        except (ValueError, RecursionError):  # also a number of thousands of digits
            return None
