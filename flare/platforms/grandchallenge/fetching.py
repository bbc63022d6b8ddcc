"""Fetches a file from the platform whole, going on where an earlier try has ended."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from flare.common.errors import OutputError
from flare.common.files import write_whole
from flare.common.text import printable, safe, why
from flare.platforms.grandchallenge.calls import Calls
from flare.platforms.grandchallenge.errors import FileRefusedError, PlatformError

LARGEST_BYTES = 64 * 2**30
"""Of an archive: the disk is ours."""

TRIES = 5
"""At a file whose size is not what the platform has said."""


class TooLargeError(Exception):
    """A file is larger than any may be, or does not end."""


class _ShortError(Exception):
    """A file has ended before its end."""


def fetch(calls: Calls, url: str, file: Path) -> None:
    """Fetch a file, unless it is there; it has its name when it is whole.

    What has arrived of it is kept, and not fetched again if the platform still has the
    same file.

    Raises
    ------
    TooLargeError
        If there is too much of it.
    FileRefusedError
        If its host does not give it.
    PlatformError
        If it does not arrive.
    OutputError
        If it cannot be written.
    """
    if file.exists():
        return
    if not url.startswith("https://"):
        problem = f"{printable(url)[:80]}: the archive is not at an https address"
        raise PlatformError(problem)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")

    def attempt() -> None:
        try:
            _fetch_rest(calls, url, part)
        except OSError as error:
            problem = f"{safe(part)}: it cannot be written ({why(error)})"
            raise OutputError(problem) from error

    for _ in range(TRIES):
        try:
            calls.again("the archive", attempt)
        except _ShortError:
            continue
        break
    else:
        problem = f"{safe(calls.api)}: the archive never has the size that is said"
        raise PlatformError(problem, "Start the service again.")
    part.replace(file)
    _note_of(part).unlink(missing_ok=True)


def _fetch_rest(calls: Calls, url: str, part: Path) -> None:
    """Fetch what is missing of a file."""
    have = part.stat().st_size if part.exists() else 0
    mark = _mark(part) if have else ""
    headers = {"Range": f"bytes={have}-", "If-Range": mark} if mark else {}
    # Unpacked on the way, it would have another size.
    with calls.stream(url, {**headers, "Accept-Encoding": "identity"}) as response:
        calls.check(response)
        if response.status_code == 416:  # nothing is missing, or it is another file
            part.unlink()
            raise _ShortError
        if response.status_code not in (200, 206):
            problem = (
                f"{safe(calls.api)}: it does not give the archive (status"
                f" {response.status_code})"
            )
            remedy = "The token's user has to be among the external evaluators."
            raise FileRefusedError(problem, remedy, response.status_code)
        is_rest = response.status_code == 206
        total = _total(response, have if is_rest else 0)
        if total is not None and total > LARGEST_BYTES:
            raise TooLargeError
        _keep_mark(part, response)
        with part.open("ab" if is_rest else "wb") as content:
            for block in response.iter_raw():
                content.write(block)
                if content.tell() > LARGEST_BYTES:
                    raise TooLargeError
    if total is not None and part.stat().st_size != total:
        if part.stat().st_size > total:
            part.unlink()
        raise _ShortError


def _total(response: Any, have: int) -> int | None:
    """The size of the whole file; None if the platform does not say it."""
    found = re.fullmatch(
        r"bytes \d+-\d+/(\d+)", response.headers.get("Content-Range", "")
    )
    if found and response.status_code == 206:
        return int(found[1])
    length = response.headers.get("Content-Length", "")
    return have + int(length) if length.isdecimal() else None


# --- Which file it is that has arrived in part ------------------------------------


def _note_of(part: Path) -> Path:
    """The file that says which file a part is of."""
    return part.with_name(f"{part.name}.json")


def _mark(part: Path) -> str:
    """What the platform called the file of which there is a part; empty if nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(_note_of(part).read_text(encoding="utf-8"))["mark"])
    return ""


def _keep_mark(part: Path, response: Any) -> None:
    """Note what the platform calls this file; a weak mark is none."""
    mark = response.headers.get("ETag", "")
    if not mark or mark.startswith("W/"):
        mark = response.headers.get("Last-Modified", "")
    write_whole(_note_of(part), json.dumps({"mark": mark}))
