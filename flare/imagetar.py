"""Goes through the tar file of an image, and keeps what matters of its layers.

The layers are tar files within it. Each is gone through once, as it comes; of their
files only links, shells and scripts are kept. Whoever has made the file may mean harm:
so all that is read is limited.
"""

from __future__ import annotations

import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from flare.names import safe

SCRIPT = "predict.sh"
"""What is run, in the working directory of the image."""

SMALL_BYTES = 2**22
"""Files of the archive up to this size may be JSON, and are kept."""

SCRIPT_BYTES = 2**20
"""A script is read up to this size."""

UNPACKED_BYTES = 2**37
"""An image with layers beyond this, 128 GiB, is not gone through."""

MOST_ENTRIES = 5_000_000
"""Nor one with more files."""

KEPT_BYTES = 2**26
"""So much of small files is kept at most."""

NAME_BYTES = 2**16
"""Headers that hold a longer name are no header of an honest file."""

SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})


@dataclass(slots=True)
class Layer:
    """What matters of a layer, by path."""

    links: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, bytes] = field(default_factory=dict)
    shells: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    """Files and folders that stand in the place of what is looked for."""
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    unpacked_bytes: int = 0


class BrokenError(Exception):
    """The archive cannot be read; the text says why."""


class _Entry(tarfile.TarInfo):
    """A member of a tar file, whose header cannot be of any length."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        special = (
            *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
            *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
        )
        if self.type in special and self.size > NAME_BYTES:
            text = "a name in it is too long"
            raise BrokenError(text)
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


def read_members(path: Path) -> tuple[dict[str, bytes], dict[str, Layer]]:
    """The small files of an archive, and its layers, by name."""
    files: dict[str, bytes] = {}
    layers: dict[str, Layer] = {}
    links: dict[str, str] = {}
    names: set[str] = set()
    budget = _Budget()
    try:
        with (
            _open(path) as content,
            tarfile.open(fileobj=content, mode="r|*", tarinfo=_Entry) as archive,
        ):
            for member in archive:
                budget.spend(member)
                name = posixpath.normpath(member.name)
                if name in names and not member.isdir():
                    # Which of them counts depends on who reads it.
                    text = f"it holds two files {safe(name)}"
                    raise BrokenError(text)
                names.add(name)
                if member.issym() or member.islnk():
                    # Equal layers are stored once; links lead from folder to folder.
                    base = posixpath.dirname(name) if member.issym() else ""
                    target = posixpath.join(base, member.linkname)
                    links[name] = posixpath.normpath(target)
                data = archive.extractfile(member) if member.isfile() else None
                if data is None:
                    continue
                if member.size <= SMALL_BYTES:
                    budget.keep(member)
                    files[name] = data.read()
                    layer = _read_layer(io.BytesIO(files[name]), budget)
                else:
                    layer = _read_layer(data, budget)
                if layer:
                    layers[name] = layer
            # A file that was cut off may look like one that has ended.
            for _ in range(UNPACKED_BYTES >> 20):
                if not content.read(2**20):
                    break
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        text = "it is no tar file that can be read to its end"
        raise BrokenError(text) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        text = "its headers make no sense"
        raise BrokenError(text) from error
    for name, target in links.items():
        if target in layers:
            layers[name] = layers[target]
    return files, layers


def _open(path: Path) -> IO[bytes]:
    """The tar file, whose checksum is verified at its end if it is compressed."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if is_gzip else path.open("rb")


@dataclass(slots=True)
class _Budget:
    """What may still be read."""

    unpacked_bytes: int = UNPACKED_BYTES
    entries: int = MOST_ENTRIES
    kept_bytes: int = KEPT_BYTES

    def keep(self, member: tarfile.TarInfo) -> None:
        """Take a member off that is kept."""
        self.kept_bytes -= member.size
        if self.kept_bytes < 0:
            text = f"its small files take more than {KEPT_BYTES >> 20} MB"
            raise BrokenError(text)

    def spend(self, member: tarfile.TarInfo) -> None:
        """Take a member off."""
        self.unpacked_bytes -= member.size
        self.entries -= 1
        if self.unpacked_bytes < 0 or self.entries < 0:
            text = f"it holds more than {UNPACKED_BYTES >> 30} GiB, or too many files"
            raise BrokenError(text)


def _read_layer(content: IO[bytes], budget: _Budget) -> Layer | None:
    """What matters of a layer; None if it is none, or cannot be read."""
    layer = Layer()
    try:
        with tarfile.open(fileobj=content, mode="r|*", tarinfo=_Entry) as archive:
            for member in archive:
                budget.spend(member)
                layer.unpacked_bytes += member.size
                _note(layer, member, archive)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        return None
    return layer


def _note(layer: Layer, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Keep what matters of a file."""
    path = posixpath.normpath(f"/{member.name}").replace("//", "/")
    folder, name = posixpath.split(path)
    if name == ".wh..wh..opq":
        layer.emptied.add(folder)
    elif name.startswith(".wh."):
        layer.removed.add(posixpath.join(folder, name[4:]))
    elif member.issym():
        layer.links[path] = posixpath.join(folder, member.linkname)
    elif member.islnk():
        layer.links[path] = posixpath.join("/", member.linkname)
    elif name == SCRIPT and member.isfile():
        content = archive.extractfile(member)
        layer.scripts[path] = content.read(SCRIPT_BYTES) if content else b""
    elif name in SHELLS and member.isfile():
        layer.shells.add(path)
    elif name == SCRIPT or name in SHELLS:
        layer.others.add(path)


def merge(layers: Sequence[Layer]) -> Layer:
    """What is left when layers lie on top of each other, the first at the bottom."""
    merged = Layer()
    for layer in layers:
        replaced = {*layer.links, *layer.scripts, *layer.shells, *layer.others}
        for table in (merged.links, merged.scripts):
            for path in [p for p in table if p in replaced or _is_gone(p, layer)]:
                del table[path]
        for names in (merged.shells, merged.others):
            for path in [p for p in names if p in replaced or _is_gone(p, layer)]:
                names.remove(path)
        merged.links |= layer.links
        merged.scripts |= layer.scripts
        merged.shells |= layer.shells
        merged.others |= layer.others
    return merged


def _is_gone(path: str, layer: Layer) -> bool:
    """Whether a path, or a folder that it is in, was removed by a layer."""
    folder = path
    while folder != "/":
        if folder in layer.removed:
            return True
        folder = posixpath.dirname(folder)
        if folder in layer.emptied:
            return True
    return False


def resolve(path: str, links: Mapping[str, str]) -> str:
    """Where a path leads when all links are followed."""
    path = posixpath.normpath(path)
    for _ in range(40):
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            head = "/" + "/".join(parts[:count])
            if head in links:
                rest = "/".join(parts[count:])
                path = posixpath.normpath(posixpath.join(links[head], rest))
                break
        else:
            return path
    return path
