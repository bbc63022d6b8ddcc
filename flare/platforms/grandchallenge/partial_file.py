"""A file that arrives from a host, in one answer or in several."""

from __future__ import annotations

from collections.abc import Iterable
from http.client import HTTPMessage, HTTPResponse
from typing import BinaryIO

from flare.common.text import safe
from flare.platforms.grandchallenge.connection import GZIP, encoding_of, is_gzip_twice
from flare.platforms.grandchallenge.errors import (
    FileRefusedError,
    PassingError,
    TooLargeError,
)

LARGEST_BYTES = 64 * 2**30
"""Most bytes of an archive: the disk is ours."""


class PartialFile:
    """The part of a file that has arrived, and what a host has to send of it.

    `content` is an empty file, which is written; the name is for messages.
    """

    def __init__(self, content: BinaryIO, name: str) -> None:
        self._content, self._name = content, safe(name)
        self._validator = ""

    @property
    def _offset(self) -> int:
        """Bytes that need not be sent again; 0 without a validator of the file."""
        return self._content.tell() if self._validator else 0

    @property
    def headers(self) -> dict[str, str]:
        """They ask for the missing bytes alone, if the host still has the same file."""
        if not self._offset:
            return {}
        return {"Range": f"bytes={self._offset}-", "If-Range": self._validator}

    def take(self, response: HTTPResponse, blocks: Iterable[bytes], host: str) -> None:
        """Add the bytes of an answer to those that have arrived, or begin anew.

        The answer is that to a request with `headers`, and `blocks` are its content. A
        FileRefusedError is raised if the host refuses the file. A TooLargeError is
        raised if the file is too large. A PassingError is raised if the file is not
        whole, or another one came in its place.
        """
        self._begin(response, host)
        for block in blocks:
            if not self._content.tell():
                _refuse_encoded(response, block, host)
            missing_bytes = response.length or 0
            if self._content.tell() + len(block) + missing_bytes > LARGEST_BYTES:
                raise TooLargeError(f"{host}: {self._name} is too large")
            self._content.write(block)
        _check_whole(response, host, self._content.tell())

    def _begin(self, response: HTTPResponse, host: str) -> None:
        """Look at the head of an answer; drop the bytes that it does not go on from.

        A host may send the whole file although a part was asked for, or a part of
        another file: that has another validator.
        """
        offset, status = self._offset, response.status
        previous_validator = self._validator
        self._validator = _validator_of(response.headers)
        is_same_file = self._validator in ("", previous_validator)
        is_continued = is_same_file and _continues_at(offset, response)
        if not is_continued:
            self._content.seek(0)
            self._content.truncate()
        if status == 416 or (status == 206 and not is_continued):
            raise PassingError(f"{host} gives another part than was asked for")
        if status not in (200, 206):
            problem = f"{host}: it does not give {self._name}"
            raise FileRefusedError(f"{problem} (status {status})", status)
        if response.headers.get_content_type() == "text/html":
            raise PassingError(f"{host} gives a page in place of the file")


def _validator_of(headers: HTTPMessage) -> str:
    """HTTP's word for what tells a file from others; a weak ETag does not count."""
    etag = headers.get("ETag", "")
    is_strong = etag and not etag.startswith("W/")
    return etag if is_strong else headers.get("Last-Modified", "")


def _continues_at(offset: int, response: HTTPResponse) -> bool:
    """Whether an answer is the part of a file that begins at an offset above 0."""
    span = response.headers.get("Content-Range", "")
    is_part = response.status == 206 and span.startswith(f"bytes {offset}-")
    return offset > 0 and is_part


def _refuse_encoded(response: HTTPResponse, start: bytes, host: str) -> None:
    """Refuse a file that was encoded once more on its way, which nobody has asked for.

    Storages say gzip of a .tar.gz file, too, that they give as it is: only a file with
    another gzip or zip file within was encoded.
    """
    encoding = encoding_of(response)
    if encoding and (encoding != GZIP or is_gzip_twice(start)):
        raise PassingError(f"{host} gives {encoding} in place of the file")


def _check_whole(response: HTTPResponse, host: str, size: int) -> None:
    """Refuse a file of `size` bytes if its host may have sent a part of it alone."""
    if not response.chunked and response.headers.get("Content-Length") is None:
        # A connection that was cut looks like the end of such a file.
        raise PassingError(f"{host} does not tell how long the file is")
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    if total.isdecimal() and int(total) != size:
        raise PassingError(f"{host} has sent fewer bytes than it said")
    if not size:
        raise PassingError(f"{host} has sent an empty file")
