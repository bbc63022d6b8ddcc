"""Writes an image archive of our own making: what is handed to a container engine.

Engines read archives in different ways, which hostile ones have used to load another
image than the one that was checked, or to move tags. This one holds the configuration
and the layers that were checked, without any name, and nothing else.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable
from typing import BinaryIO

from flare.measuring.archive.image_json import (
    BLOBS,
    INDEX,
    MANIFEST,
    StoredLayer,
    docker_manifest_of,
    index_of,
    manifest_of,
)
from flare.measuring.archive.image_tar import open_members, unpacked_pieces
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.strict import BrokenError, Budget
from flare.measuring.errors import ArchiveError

_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'

_CHANGED = "it has changed since it was checked"

_REMEDY = "Leave it alone while it is measured, and start again."


def write_image(archive: Archive, file: BinaryIO) -> None:
    """Write the image of a checked archive as an uncompressed tar file.

    The team's file is gone through once more, and the layers are written in its order.

    Parameters
    ----------
    archive : Archive
        As `read_archive` gives it, without problems.
    file : file object
        Only written to, front to back; it may be a pipe.

    Raises
    ------
    ArchiveError
        If the archive has changed since it was checked. What was written so far has no
        manifest yet, and is not the image of anything.
    """
    _write_file(file, "oci-layout", _LAYOUT)
    waiting = {layer.name: layer for layer in archive.layers}
    # Layers that are equal are written once.
    once = {layer.diff_id: layer for layer in archive.layers}
    try:
        for member in open_members(archive.path, Budget()):
            layer = waiting.get(member.name)
            if layer and once.pop(layer.diff_id, None):
                _write_layer(file, layer, unpacked_pieces(member))
    except BrokenError as error:
        raise ArchiveError(archive.path.name, _CHANGED, _REMEDY) from error
    if once:
        raise ArchiveError(archive.path.name, _CHANGED, _REMEDY)
    manifest = manifest_of(archive.configuration, archive.layers)
    for content in (archive.configuration, manifest):
        _write_file(file, BLOBS + hashlib.sha256(content).hexdigest(), content)
    # These come last: before them, no engine finds an image.
    _write_file(file, INDEX, index_of(manifest))
    described = docker_manifest_of(archive.configuration, archive.layers)
    _write_file(file, MANIFEST, described)
    file.write(bytes(2 * tarfile.BLOCKSIZE))


def _write_layer(file: BinaryIO, layer: StoredLayer, pieces: Iterable[bytes]) -> None:
    """Write a layer, and make sure that it still is the one that was checked."""
    file.write(_header(BLOBS + layer.diff_id, layer.size))
    digest = hashlib.sha256()
    left = layer.size
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            break
        digest.update(piece)
        file.write(piece)
    if left or digest.hexdigest() != layer.diff_id:
        raise BrokenError(_CHANGED)
    file.write(_padding(layer.size))


def _write_file(file: BinaryIO, name: str, content: bytes) -> None:
    """Write a small file."""
    file.write(_header(name, len(content)) + content + _padding(len(content)))


def _header(name: str, size: int) -> bytes:
    """The header of a file: of nobody, and of no time."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    # Beyond 8 GiB, in the way that all engines read.
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    """What fills the last block of a file."""
    return bytes(-size % tarfile.BLOCKSIZE)
