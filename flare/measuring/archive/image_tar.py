"""Goes through the tar file of an image, front to back.

The layers are tar files within it. Its author may mean harm, so all that
is read is limited; and what two readers could understand in two ways is refused.
"""

from __future__ import annotations

import io
import os
import posixpath
import tarfile
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple, cast

from flare.common.files import open_regular
from flare.common.streams import PIECE_BYTES
from flare.common.text import safe
from flare.measuring.archive.strict import (
    BrokenError,
    Budget,
    Hashed,
    LimitError,
    TarContent,
    compression_of,
    entries_of,
    explained,
    unpacked,
)

SMALL_BYTES = 2**22
"""Files of the archive up to this size may be JSON, and are kept."""

_ROOT_FOLDERS = ("bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr", "var")
"""Folders at the top of a whole file system, which no saved image has there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A file of the archive that may be a layer."""

    name: str
    sha256: str = ""
    """SHA-256 of the file as it lies there."""
    diff_id: str = ""
    """SHA-256 of what it unpacks to."""
    unpacked_bytes: int = 0
    """Size of the unpacked tar file."""
    layer: Layer = field(default_factory=lambda: Layer())
    """The files that it holds."""
    problem: str = ""
    """Why it is not a layer."""


@dataclass(slots=True)
class Contents:
    """The files of an archive, by name."""

    files: dict[str, bytes] = field(default_factory=dict)
    """All that may be JSON."""
    blobs: dict[str, Blob] = field(default_factory=dict)
    """Every file, and layers that are stored under another name by both."""


class Member(NamedTuple):
    """A file or a link of the archive."""

    name: str
    target: str
    """The target of a link; empty for a file."""
    content: io.BufferedReader
    """To be read before the next member is asked for."""
    size: int


def open_members(path: Path, budget: Budget) -> Iterator[Member]:
    """Every file and link of an archive, in its order.

    A BrokenError is raised if it cannot be read, or two readers could take it for two
    things.
    """
    names: set[str] = set()
    is_file_system = False
    with explained(), open_regular(path) as file:
        budget.packed_bytes += 2 * os.fstat(file.fileno()).st_size
        content = TarContent(unpacked(file, compression_of(file)), budget)
        for entry, archive in entries_of(content):
            name = posixpath.normpath(entry.name)
            top = name.partition("/")[0]
            if top in _ROOT_FOLDERS or name == ".dockerenv":
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
            budget.take_noted(len(name))
            yield _member(name, entry, archive)
        if is_file_system:
            problem = "it is a file system (docker export), not an image: docker save"
            raise BrokenError(problem)


def _member(name: str, entry: tarfile.TarInfo, archive: tarfile.TarFile) -> Member:
    """A file, or a link with its target from the top of the archive on."""
    if entry.isfile():
        content = cast("io.BufferedReader", archive.extractfile(entry))
        return Member(name, "", content, entry.size)
    if entry.issym():
        target = posixpath.join(posixpath.dirname(name), entry.linkname)
    elif entry.islnk():
        target = entry.linkname
    else:
        raise BrokenError(
            f"it holds {safe(name)}, which is neither a file nor a folder"
        )
    empty = cast("io.BufferedReader", io.BytesIO())
    return Member(name, posixpath.normpath(target), empty, entry.size)


def unpacked_pieces(member: Member) -> Iterator[bytes]:
    """The unpacked content of a member, in pieces; a BrokenError if it is damaged."""
    with explained():
        content = unpacked(member.content, compression_of(member.content))
        while piece := content.read(PIECE_BYTES):
            yield piece


def read_contents(path: Path) -> Contents:
    """Go through an archive once; what might be a layer is read as one.

    A BrokenError is raised if it cannot be read, or there is too much in it.
    """
    contents, budget = Contents(), Budget()
    links: dict[str, str] = {}
    for member in open_members(path, budget):
        if member.target:
            links[member.name] = member.target
            budget.take_noted(len(member.target))
            continue
        file = member.content
        if member.size <= SMALL_BYTES:
            with explained():
                data = file.read()
            if data.lstrip()[:1] in (b"{", b"["):
                budget.take_kept(len(data))
                contents.files[member.name] = data
            file = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(data)))
        contents.blobs[member.name] = _read_blob(member.name, file, budget)
    for name, target in links.items():
        blob = contents.blobs.get(target)
        if target in links or not blob or blob.problem:
            raise BrokenError(f"it holds {safe(name)}, a link that leads to no layer")
        contents.blobs[name] = blob
    return contents


def _read_blob(name: str, file: io.BufferedReader, budget: Budget) -> Blob:
    layer = Layer()
    try:
        with explained():
            kind = compression_of(file)
            stored = Hashed(file, budget.take_packed if kind else None)
            plain = Hashed(unpacked(stored, kind)) if kind else stored
            content = TarContent(plain, budget)
            # Some builders put a table of contents behind the end.
            for entry, archive in entries_of(content, is_strict=False):
                budget.take_noted(layer.add(entry, archive))
            layer.check_links()
    except LimitError:
        raise
    except BrokenError as error:
        return Blob(name=name, problem=str(error))
    return Blob(
        name=name,
        sha256=stored.sha256(),
        diff_id=plain.sha256(),
        unpacked_bytes=plain.size,
        layer=layer,
    )


SCRIPT = "predict.sh"
"""The script that is run, in the working directory of the image."""

PATH_CHARACTERS = 4096
"""Linux knows no longer path, nor does it follow more than 40 links."""

MOST_SCRIPTS = 100
"""More of them are not looked for: they are only named to help."""

BLOCK_BYTES = 4096
"""The block of a file system: an entry takes one, and a file as many as it fills."""


class Kind(Enum):
    """A file, a folder, or what is neither."""

    FILE = "a file"
    FOLDER = "a folder"
    SPECIAL = "a pipe or a device"


Node = Kind | str | bytes
"""A thing at a path; a link is kept as its target, and a script as its content."""


@dataclass(slots=True)
class Layer:
    """The files of a layer, by path, and the paths that it removes from those below."""

    nodes: dict[str, Node] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    """Paths that were a symbolic link, even if something else came there later."""
    unpacked_bytes: int = 0
    disk_bytes: int = 0
    """Its size on a disk at most, where the smallest file takes a block."""

    def add(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> int:
        """Note a file, and return how many bytes of text were kept.

        A BrokenError is raised if its path is too long.
        """
        if len(member.name) > PATH_CHARACTERS:
            raise BrokenError("a name in it is too long")
        path = absolute(member.name)
        folder, name = posixpath.split(path)
        blocks = 1 - (-member.size // BLOCK_BYTES if member.isfile() else 0)
        self.disk_bytes += blocks * BLOCK_BYTES
        if name == ".wh..wh..opq":
            self.emptied.add(folder)
            return len(path)
        if name.startswith(".wh."):
            self.removed.add(posixpath.join(folder, name[4:]))
            return len(path)
        if member.isfile():
            self.unpacked_bytes += member.size
        node = self.nodes.get(absolute(member.linkname))
        if not member.islnk():
            node = _node(name, member, archive)
        elif node is None:
            text = f"it holds {safe(path)}, a hard link to nothing that is before it"
            raise BrokenError(text)
        self.nodes[path] = node
        if isinstance(node, str):
            self.links.add(path)
        return len(path) if isinstance(node, Kind) else len(path) + len(node)

    def check_links(self) -> None:
        """Refuse a layer that holds something below one of its own links.

        An engine would write it to where the link leads, and not to where it is noted.
        No layer that was made of a file system has such a file.
        """
        paths = sorted([*self.nodes, *self.removed, *self.emptied])
        for link in self.links:
            number = bisect_left(paths, f"{link}/")
            for path in paths[number : number + 1]:
                if path.startswith(f"{link}/"):
                    text = f"it holds {safe(path)}, which lies below a link"
                    raise BrokenError(text)


def _node(name: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> Node:
    if member.isdir():
        return Kind.FOLDER
    if member.issym():
        return member.linkname
    if member.isfifo() or member.ischr() or member.isblk():
        return Kind.SPECIAL
    if member.isfile() and name == SCRIPT:
        content = archive.extractfile(member)
        return content.read(2**20) if content else b""
    return Kind.FILE


def absolute(path: str) -> str:
    """A path from the root on, without what is superfluous in it.

    Examples
    --------
    >>> absolute("./usr/../bin//sh")
    '/bin/sh'
    """
    return posixpath.normpath(f"/{path.lstrip('/')}")


def heads(path: str) -> Iterator[str]:
    """The folders above a path, from the root on, and the path itself."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


class FileSystem:
    """Layers that lie on top of each other, the first at the bottom."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        # A layer that lies there again, further down, adds nothing.
        unique = {id(layer): layer for layer in reversed(layers)}
        self._layers = [*unique.values()]
        self._holding: dict[str, int] = {}
        """Of each path, the highest layer that holds it, counted from the top,"""
        self._ending: dict[str, int] = {}
        """the highest below which nothing counts of it, or of what is in it,"""
        self._emptied: dict[str, int] = {}
        """and the highest below which nothing counts of what is in it."""
        for number, layer in enumerate(self._layers):
            for path, node in layer.nodes.items():
                self._holding.setdefault(path, number)
                if node is not Kind.FOLDER:
                    self._ending.setdefault(path, number)
            for path in layer.removed:
                self._ending.setdefault(path, number)
            for path in layer.emptied:
                self._emptied.setdefault(path, number)

    def at(self, path: str) -> Node | None:
        """The node at a path, whose links are not followed; None without one."""
        lowest = len(self._layers)
        for head in heads(path):
            lowest = self._lowest(head, lowest)
        return self._node(path, lowest)

    def _lowest(self, path: str, lowest: int) -> int:
        """The lowest layer that counts at a path; `lowest` is that of its folder."""
        folder = posixpath.dirname(path)
        return min(
            lowest, self._ending.get(path, lowest), self._emptied.get(folder, lowest)
        )

    def _node(self, path: str, lowest: int) -> Node | None:
        number = self._holding.get(path)
        if number is None or number > lowest:
            return None
        return self._layers[number].nodes[path]

    def scripts(self) -> list[str]:
        """Paths of scripts: those that are there of the first hundred."""
        paths: set[str] = set()
        for layer in self._layers:
            paths.update(
                p for p, node in layer.nodes.items() if isinstance(node, bytes)
            )
        first = sorted(paths)[:MOST_SCRIPTS]
        return [path for path in first if isinstance(self.at(path), bytes)]

    def resolve(self, path: str) -> str | None:
        """The end of a path when all links are followed; None if they have no end.

        Examples
        --------
        >>> layer = Layer({"/bin": "usr/bin", "/usr/bin/sh": "dash"})
        >>> FileSystem([layer]).resolve("/bin/sh")
        '/usr/bin/dash'
        """
        waiting = path.split("/")[::-1]
        place, followed = "/", 0
        # The lowest layers that count at the folders above, so that none is asked for
        # again at each step: a path may have thousands, and many links lead back.
        lowest = [len(self._layers)]
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                place = posixpath.dirname(place)
                lowest = lowest[:-1] or lowest
                continue
            here = posixpath.join(place, part)
            lowest_here = self._lowest(here, lowest[-1])
            target = self._node(here, lowest_here)
            if isinstance(target, str):
                followed += 1
                waiting += target.split("/")[::-1]
                if target.startswith("/"):
                    place, lowest = "/", lowest[:1]
            else:
                place, target = here, ""
                lowest.append(lowest_here)
            if followed > 40 or max(len(here), len(target)) > PATH_CHARACTERS:
                return None
        return place
