"""Fetches a file from the platform whole, going on where an earlier try has ended."""

from __future__ import annotations

import errno
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from flare.common.files import read_regular, unwritable, write_whole
from flare.common.text import safe
from flare.platforms.grandchallenge.calls import Calls, PassingError
from flare.platforms.grandchallenge.errors import FileRefusedError, TooLargeError

LARGEST_BYTES = 64 * 2**30
"""Of an archive: the disk is ours."""


def fetch(calls: Calls, url: str, file: Path) -> None:
    """Fetch a file, unless it is there; it has its name when it is whole.

    What has arrived of it is kept, and not fetched again if the platform still has the
    same file.

    Parameters
    ----------
    calls : Calls
        To the platform.
    url : str
        Its address. One of the platform leads to a newly signed one at each try.
    file : Path
        Where it will lie.

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


def _fetch_rest(calls: Calls, url: str, part: Path) -> None:
    """Fetch what is missing of a file.

    Raises
    ------
    PassingError
        If what arrives is not what was asked for.
    """
    have = part.stat().st_size if part.exists() else 0
    mark = _mark(part) if have else ""
    headers = {"Range": f"bytes={have}-", "If-Range": mark} if mark else {}
    # Unpacked on the way, it would have another size.
    with calls.stream(url, {**headers, "Accept-Encoding": "identity"}) as response:
        status, host = response.status_code, calls.host_of(response)
        offered = calls.redact(_mark_of(response))
        span = response.headers.get("Content-Range", "")
        is_same = bool(mark) and offered in ("", mark)
        is_rest = is_same and span.startswith(f"bytes {have}-")
        if status == 416 or (status == 206 and not is_rest):
            part.unlink(missing_ok=True)  # nothing is missing, or it is another file
            raise PassingError(f"{host} gives another part than was asked for")
        if status not in (200, 206):
            name = safe(part.name[1:-5])
            raise FileRefusedError(
                f"{host}: it does not give {name} (status {status})", status
            )
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise PassingError(f"{host} gives a page in place of the file")
        is_rest = status == 206
        total = _total(response, have if is_rest else 0)
        if total is not None and total > LARGEST_BYTES:
            raise TooLargeError(
                f"{host}: {safe(part.name[1:-5])} has {total >> 30} GiB"
            )
        _keep_mark(part, offered)
        with part.open("ab" if is_rest else "wb") as content:
            for block in response.iter_raw():
                content.write(block)
                if content.tell() > LARGEST_BYTES:
                    raise TooLargeError(f"{host}: {safe(part.name[1:-5])} does not end")
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
    """The file that says which file a part is of."""
    return part.with_name(f"{part.name}.json")


def _mark(part: Path) -> str:
    """What the platform called the file of which there is a part; empty if nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(read_regular(_note_of(part)))["mark"])
    return ""


def _mark_of(response: Any) -> str:
    """What the platform calls this file; a weak mark is none."""
    mark = str(response.headers.get("ETag", ""))
    if not mark or mark.startswith("W/"):
        mark = str(response.headers.get("Last-Modified", ""))
    return mark


def _keep_mark(part: Path, mark: str) -> None:
    """Note which file a part is of."""
    write_whole(_note_of(part), json.dumps({"mark": mark}))
