"""Goes through the tar file of an image, front to back.

The layers are tar files within it. Whoever has made the file may mean harm, so all that
is read is limited; and what two readers could understand in two ways is refused.
"""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from flare.common.files import open_regular
from flare.common.streams import PIECE_BYTES
from flare.common.text import safe
from flare.measuring.archive.budget import BrokenError, Budget, LimitError
from flare.measuring.archive.layers import Layer
from flare.measuring.archive.strict_tar import (
    Hashed,
    TarContent,
    compression_of,
    entries_of,
    explained,
    unpacked,
)

SMALL_BYTES = 2**22
"""Files of the archive up to this size may be JSON, and are kept."""

_ROOT_FOLDERS = ("bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr", "var")
"""What a whole file system has at its top, and no image as it is saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A file of the archive that may be a layer."""

    sha256: str = ""
    """Of the file as it lies there."""
    diff_id: str = ""
    """SHA-256 of what it unpacks to."""
    unpacked_bytes: int = 0
    """Of the unpacked tar file."""
    layer: Layer | None = None
    problem: str = ""
    """Why it is none."""


@dataclass(slots=True)
class Contents:
    """What an archive holds, by name."""

    files: dict[str, bytes] = field(default_factory=dict)
    """All that may be JSON."""
    blobs: dict[str, Blob] = field(default_factory=dict)
    """Every file."""
    links: dict[str, str] = field(default_factory=dict)
    """Names of layers that are stored under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file or a link of the archive."""

    name: str
    target: str
    """Where a link leads; nothing for a file."""
    content: io.BufferedReader
    """To be read before the next member is asked for."""
    size: int


def open_members(path: Path, budget: Budget) -> Iterator[Member]:
    """Every file and link of an archive, in its order.

    Raises
    ------
    BrokenError
        If it cannot be read, or two readers could take it for two things.
    """
    names: set[str] = set()
    is_file_system = False
    with explained(), open_regular(path) as file:
        content = TarContent(unpacked(file, compression_of(file)), budget)
        for entry, archive in entries_of(content, budget):
            name = posixpath.normpath(entry.name)
            if name.partition("/")[0] in _ROOT_FOLDERS or name == ".dockerenv":
                is_file_system = True
            if is_file_system:
                continue  # nothing of it matters, but that it ends
            if name.startswith(("/", "..")) or entry.name.endswith("/.."):
                raise BrokenError(
                    f"it holds {safe(entry.name)}, which lies outside of it"
                )
            if entry.isdir():
                continue
            if name in names:
                # Which of them counts depends on who reads it.
                raise BrokenError(f"it holds two files {safe(name)}")
            names.add(name)
            budget.note(len(name))
            target = ""
            if entry.issym() or entry.islnk():
                # Links lead from folder to folder.
                folder = posixpath.dirname(name) if entry.issym() else ""
                target = posixpath.normpath(posixpath.join(folder, entry.linkname))
            elif not entry.isfile():
                raise BrokenError(
                    f"it holds {safe(name)}, which is neither a file nor a folder"
                )
            data = archive.extractfile(entry) if entry.isfile() else None
            yield Member(
                name=name,
                target=target,
                content=cast("io.BufferedReader", data or io.BytesIO()),
                size=entry.size,
            )
        if not content.finish(is_strict=True):
            raise BrokenError("there are other data behind its end")
        if is_file_system:
            raise BrokenError(
                "it is a file system (docker export), not an image: docker save"
            )


def unpacked_pieces(member: Member) -> Iterator[bytes]:
    """What a member unpacks to, piece by piece.

    Raises
    ------
    BrokenError
        If it cannot be unpacked.
    """
    with explained():
        content = unpacked(member.content, compression_of(member.content))
        while piece := content.read(PIECE_BYTES):
            yield piece


def read_contents(path: Path) -> Contents:
    """Go through an archive once; what might be a layer is read as one.

    Raises
    ------
    BrokenError
        If it cannot be read, or there is too much in it.
    """
    found = Contents()
    budget = Budget()
    for member in open_members(path, budget):
        if member.target:
            found.links[member.name] = member.target
            budget.note(len(member.target))
            continue
        content = member.content
        if member.size <= SMALL_BYTES:
            with explained():
                data = content.read()
            if data.lstrip()[:1] in (b"{", b"["):
                budget.keep(len(data))
                found.files[member.name] = data
            content = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(data)))
        found.blobs[member.name] = _read_blob(content, budget)
    for name, target in found.links.items():
        blob = found.blobs.get(target)
        if not blob or not blob.layer:
            raise BrokenError(f"it holds {safe(name)}, a link that leads to no layer")
    return found


def _read_blob(file: io.BufferedReader, budget: Budget) -> Blob:
    """Read a file as a layer."""
    layer = Layer()
    try:
        with explained():
            kind = compression_of(file)
            stored = Hashed(file)
            plain = Hashed(unpacked(stored, kind)) if kind else stored
            content = TarContent(plain, budget)
            for entry, archive in entries_of(content, budget):
                if noted := layer.add(entry, archive):
                    budget.note(noted)
            # Some builders put a table of contents behind the end.
            content.finish()
    except LimitError:
        raise
    except BrokenError as error:
        return Blob(problem=str(error))
    return Blob(
        sha256=stored.sha256(),
        diff_id=plain.sha256(),
        unpacked_bytes=plain.size,
        layer=layer,
    )
