"""Keeps what matters of an image's layers, and finds out what is left of it.

Of the files of a layer, only links, shells and scripts are kept by name.
"""

from __future__ import annotations

import posixpath
import tarfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

SCRIPT = "predict.sh"
"""What is run, in the working directory of the image."""

SCRIPT_BYTES = 2**20
"""A script is read up to this size."""

SHELLS = frozenset({"bash", "sh", "dash", "ash", "busybox"})

PATH_CHARACTERS = 4096
"""Linux knows no longer path."""

LINKS = 40
"""Nor does it follow more links."""


def _hashes() -> array[int]:
    """Numbers that stand for paths; an image may have millions."""
    return array("q")


@dataclass(slots=True)
class Layer:
    """What matters of a layer, by path."""

    links: dict[str, str] = field(default_factory=dict)
    """With their targets as they are written."""
    scripts: dict[str, bytes] = field(default_factory=dict)
    shells: set[str] = field(default_factory=set)
    files: array[int] = field(default_factory=_hashes)
    """Hashes of the paths of all that is neither a folder nor a link."""
    folders: array[int] = field(default_factory=_hashes)
    removed: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    unpacked_bytes: int = 0

    def add(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> int:
        """Keep what matters of a file; returns how many bytes of text were kept."""
        path = absolute(member.name)
        folder, name = posixpath.split(path)
        if name == ".wh..wh..opq":
            self.emptied.add(folder)
        elif name.startswith(".wh."):
            self.removed.add(posixpath.join(folder, name[4:]))
        elif member.issym():
            self.links[path] = member.linkname
            return len(path) + len(member.linkname)
        elif member.islnk():
            self.links[path] = f"/{member.linkname}"
            return len(path) + len(member.linkname)
        elif member.isdir():
            self.folders.append(hash(path))
            return 0
        else:
            self.files.append(hash(path))
            if member.isfile():
                self.unpacked_bytes += member.size
            if name == SCRIPT and member.isfile():
                content = archive.extractfile(member)
                self.scripts[path] = content.read(SCRIPT_BYTES) if content else b""
                return len(path) + len(self.scripts[path])
            if name not in SHELLS or not member.isfile():
                return 0
            self.shells.add(path)
        return len(path)


def absolute(path: str) -> str:
    """A path from the root on, without what is superfluous in it.

    Examples
    --------
    >>> absolute("./usr/../bin//sh")
    '/bin/sh'
    """
    return posixpath.normpath(f"/{path.lstrip('/')}")


def merge(layers: Sequence[Layer]) -> Layer:
    """What is left when layers lie on top of each other, the first at the bottom.

    Its files and folders are left out; `find_file` looks into the layers for them.
    """
    merged = Layer()
    for layer in layers:
        kept = [*merged.links, *merged.scripts, *merged.shells]
        others = {hash(path) for path in kept}
        others.intersection_update(chain(layer.files, layer.folders))
        for path in kept:
            if hash(path) in others or path in layer.links or _is_gone(path, layer):
                merged.links.pop(path, None)
                merged.scripts.pop(path, None)
                merged.shells.discard(path)
        merged.links |= layer.links
        merged.scripts |= layer.scripts
        merged.shells |= layer.shells
    return merged


def _is_gone(path: str, layer: Layer) -> bool:
    """Whether a path, or a folder that it is in, was removed by a layer."""
    return any(_is_removed(head, layer) for head in _heads(path))


def _is_removed(path: str, layer: Layer) -> bool:
    """Whether a layer removed just that path, or all that was in its folder."""
    return path in layer.removed or posixpath.dirname(path) in layer.emptied


def _heads(path: str) -> Iterator[str]:
    """The folders above a path, from the root on, and the path itself."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def find_file(path: str, layers: Sequence[Layer]) -> str | None:
    """The file that stands at a path without links, or where a folder above it is."""
    heads = list(_heads(path))
    for layer in reversed(layers):
        hashes = {hash(head) for head in heads}
        files = hashes.intersection(layer.files)
        for head in heads:
            if hash(head) in files:
                return head
        folders = hashes.intersection(layer.folders)
        gone = [n for n, head in enumerate(heads) if _is_removed(head, layer)]
        heads = [h for h in heads[: min(gone, default=None)] if hash(h) not in folders]
    return None


def resolve(path: str, links: Mapping[str, str]) -> str | None:
    """Where a path leads when all links are followed; None if that has no end.

    Examples
    --------
    >>> resolve("/bin/sh", {"/bin": "usr/bin", "/usr/bin/sh": "dash"})
    '/usr/bin/dash'
    """
    waiting = path.split("/")[::-1]
    place = "/"
    followed = 0
    while waiting:
        part = waiting.pop()
        if part in ("", ".", ".."):
            place = posixpath.dirname(place) if part == ".." else place
            continue
        here = posixpath.join(place, part)
        target = links.get(here)
        if target is None:
            place = here
        else:
            followed += 1
            place = "/" if target.startswith("/") else place
            waiting += target.split("/")[::-1]
        if followed > LINKS or max(len(here), len(target or "")) > PATH_CHARACTERS:
            return None
    return place
