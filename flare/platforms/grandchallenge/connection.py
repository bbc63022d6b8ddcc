"""Connections of the client: over TLS, and with an end, however slowly a host sends.

The timeout of a socket is one for each part that arrives: a host that sends a byte
every few seconds never runs into it. Here, the remainder of the whole time is set as
the timeout before each part. `http.client` also takes a chunk of -1 bytes, which it
would read without any limit, and takes 103 Early Hints for the answer.
"""
# httpx2 2.16.2 was tried in its place. Its timeouts are of each part, too, and its
# transport takes no network of ours; its lower half, httpcore2, does, but reads neither
# HTTPS_PROXY nor NO_PROXY. With it, this file, client.py and partial_file.py had 770
# lines instead of 750, for three packages more, and an untrusted certificate was told
# as a host that cannot be reached. So http.client stays, with what is reached into.

from __future__ import annotations

import base64
import io
import math
import socket
import time
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import unquote
from urllib.request import (
    HTTPErrorProcessor,
    HTTPSHandler,
    OpenerDirector,
    build_opener,
    getproxies,
)

from flare.common.text import safe

CONNECT_S = 20.0
"""The time for each address of a host, and then for TLS."""

_PIECE_BYTES = 2**14
"""Bytes that are sent at a time: a record of TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How long a host may take, and how much it may say."""

    call_s: float = 60.0
    """The time for a call, from the connection to the last byte of its answer."""
    answer_bytes: int = 8 * 2**20
    """Most bytes of an answer to a call; JSON takes up to 40 times as much memory."""
    file_s: float = 6 * 3600.0
    """The time for a file, with all tries."""
    part_bytes: int = 8 * 2**20
    """The bytes of a file that have to arrive in each `call_s`."""


class Pace:
    """The end of an exchange with a host, by the monotonic clock, and of its parts.

    A part has `part_bytes`, which have to arrive in `part_s` seconds.
    """

    def __init__(
        self, end: float, part_s: float = math.inf, part_bytes: int = 1
    ) -> None:
        self._end, self._part_s, self._part_bytes = end, part_s, part_bytes
        self._part_end, self._arrived = time.monotonic() + part_s, 0

    def count(self, arrived: int) -> None:
        """Count bytes that have arrived; a whole part gives time for the next one."""
        self._arrived += arrived
        if self._arrived >= self._part_bytes:
            self._part_end, self._arrived = time.monotonic() + self._part_s, 0

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 or fewer if the time is over."""
        return min(self._end, self._part_end) - time.monotonic()

    def limit(self, connection: socket.socket) -> None:
        """Let the next part end in time; a TimeoutError if the time is over."""
        left_s = self.left_s
        if left_s <= 0:
            raise TimeoutError("the time is over")
        connection.settimeout(left_s)


def make_opener(pace: Pace) -> OpenerDirector:
    """An opener of https addresses, by the proxy of HTTPS_PROXY if there is one.

    It verifies certificates, leads nowhere by itself, and keeps to the pace.
    """
    return build_opener(_Handler(pace))


class _Handler(HTTPSHandler, HTTPErrorProcessor):
    """Takes each status for an answer, that of a redirection as well."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def https_open(self, req: Any) -> HTTPResponse:
        make_connection: Any = partial(_Connection, pace=self._pace)
        return self.do_open(make_connection, req)

    def https_response(self, request: Any, response: Any) -> Any:
        return response


class _Connection(HTTPSConnection):
    """Keeps to a pace, also while a proxy answers, and while it sends."""

    def __init__(self, host: str, *, pace: Pace, **options: Any) -> None:
        super().__init__(host, **options)
        self._pace = pace
        self.response_class = partial(  # type: ignore[assignment]
            _Response, pace=pace
        )

    def _tunnel(self) -> None:
        """Ask a proxy, and close its answer, which Python 3.11.2 leaves open."""
        make_response: Any = self.response_class
        with ExitStack() as answers:
            self.response_class = lambda *words, **options: (  # type: ignore[assignment]
                answers.enter_context(make_response(*words, **options))
            )
            super()._tunnel()  # type: ignore[misc]
        self.response_class = make_response

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        for start in range(0, len(data), _PIECE_BYTES):
            self._pace.limit(self.sock)
            super().send(data[start : start + _PIECE_BYTES])


class _Response(HTTPResponse):
    """Is read at a pace, and begins with the last of several statuses."""

    def __init__(self, sock: socket.socket, *words: Any, pace: Pace, **options: Any):
        super().__init__(sock, *words, **options)
        buffered: Any = self.fp
        self.fp = _Whole(_Timed(sock, buffered.detach(), pace))

    def begin(self) -> None:
        super().begin()
        while 100 < self.status < 200:  # such as 103 Early Hints
            self.headers = None  # type: ignore[assignment]
            super().begin()


class _Timed(io.RawIOBase):
    """The bytes that arrive at a socket, at a pace."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, pace: Pace) -> None:
        self._sock, self._raw, self._pace = sock, raw, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._pace.limit(self._sock)
        arrived = self._raw.readinto(buffer) or 0
        self._pace.count(arrived)
        return arrived

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Whole(io.BufferedReader):
    """Never reads to the end of a stream, as a chunk of -1 bytes would ask for."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise ValueError("read length must be non-negative")
        return super().read(size)


# --- The headers of hosts, and words of proxies ------------------------------------

GZIP = "what it has encoded as gzip, unasked"
"""The most frequent answer of `encoding_of`."""


def encoding_of(response: HTTPResponse) -> str:
    """Words for content that a host has encoded, for a message; else empty."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    is_plain = encoding in ("", "identity")
    return "" if is_plain else GZIP.replace("gzip", safe(encoding))


def is_gzip_twice(start: bytes) -> bool:
    """Whether a file that begins like this is a gzip file of another, or of a zip."""
    try:
        within = zlib.decompressobj(wbits=31).decompress(start, 2)
    except zlib.error:
        return False
    return within in (b"\x1f\x8b", b"PK")


def requested_pause_s(retry_after: str) -> float:
    """Seconds that a host wants us to wait; 0 if it does not say it clearly.

    Examples
    --------
    >>> requested_pause_s("120"), requested_pause_s("Wed, 21 Oct 2015 07:28:00 GMT")
    (120.0, 0.0)
    """
    try:
        if retry_after.isdecimal():
            return float(retry_after)
        wait = parsedate_to_datetime(retry_after) - datetime.now(UTC)
        return max(0.0, wait.total_seconds())
    except (ValueError, TypeError, ArithmeticError):
        return 0.0


def without_credentials(text: str) -> str:
    """A text of a proxy without the user and password of HTTPS_PROXY."""
    start, _, _ = getproxies().get("https", "").rpartition("@")
    quoted = start.rpartition("/")[2]
    plain = unquote(quoted)
    encoded = base64.b64encode(plain.encode()).decode()
    words = (*quoted.split(":", 1), *plain.split(":", 1))
    for secret in filter(None, (quoted, plain, encoded, *words)):
        text = text.replace(secret, "[...]")
    return text
