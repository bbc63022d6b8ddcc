"""Reads a team's image archive, without loading it, and writes it anew for an engine.

Engines read archives in different ways, which hostile ones have used to load another
image than the one that was checked, or to move tags. What is written here holds the
configuration and the layers that were checked, without any name, and nothing else.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from flare.measuring.archive.checks import (
    Findings,
    check_configuration,
    check_content,
    environment_overrides,
)
from flare.measuring.archive.image_json import (
    BLOBS,
    Image,
    documents_of,
    find_image,
    without_volumes,
)
from flare.measuring.archive.image_tar import (
    Blob,
    Layer,
    open_members,
    read_contents,
    unpacked_pieces,
)
from flare.measuring.archive.model import MODEL_SUFFIX, Model, read_model, sent_file
from flare.measuring.archive.strict import ArchiveError, BrokenError, Budget, ModelError
from flare.measuring.options import FLARE, MODEL_FOLDER, Contract
from flare.results.team_folder import REMEDY, name_problem

SUFFIX = ".tar.gz"

_TEAM = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
"""Docker's rule for the name of an image."""

_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'

_CHANGED = "it has changed since it was checked"

_REMEDY = "Leave it alone while it is measured, and start again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What is known of an archive before it is loaded."""

    path: Path
    team: str
    sha256: str
    """Of the file."""
    configuration: bytes = b""
    """Of the image, byte by byte, but without volumes."""
    layers: tuple[Blob, ...] = ()
    """The first is the lowest; without what they hold."""
    image: str = ""
    """SHA-256 of the configuration: the ID of the image in most engines."""
    manifest: str = ""
    """SHA-256 of the manifest that `write_image` writes: the ID in other engines."""
    overrides: tuple[str, ...] = ()
    """What has to be set in a container instead, as NAME=VALUE."""
    unpacked_bytes: int = 0
    """Of all layers together."""
    model: Model | None = None
    """What was sent beside it, if anything was."""
    problems: tuple[ArchiveError | ModelError, ...]
    """Why it cannot be run."""
    doubts: tuple[str, ...]
    """What may go wrong."""

    def is_image(self, identity: str) -> bool:
        """Whether an engine's ID is that of the image which was checked."""
        return bool(identity) and identity in (self.image, self.manifest)


def read_archive(
    path: Path,
    *,
    is_named: bool = True,
    contract: Contract = FLARE,
    model: Path | None = None,
) -> Archive:
    """Read an archive and check everything that can be checked without running it.

    Parameters
    ----------
    path : Path
        TEAMNAME.tar.gz.
    is_named : bool
        Whether the image in it has to be called teamname:latest; never an algorithm's.
    contract : Contract
        How it will be run.
    model : Path, optional
        The model that was sent beside it.

    Raises
    ------
    InputError
        If there is no such file, or one may not be read.
    ArchiveError
        If it is a folder, a device, a pipe or a socket.
    """
    with sent_file(path, ArchiveError, f"TEAMNAME{SUFFIX}") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    found, described = Findings(), {}
    _check_name(path.name, found)
    is_named = is_named and not contract.is_algorithm
    mounted = (contract.inputs, contract.outputs, *((MODEL_FOLDER,) if model else ()))
    try:
        image = find_image(read_contents(path), team_of(path) if is_named else "")
        described = _describe(image)
        layers = [blob.layer for blob in image.layers]
        check_configuration(image.configuration, contract, found)
        check_content(layers, image.configuration, contract, mounted, found)
    except BrokenError as error:
        found.wrong(str(error))
    except (TypeError, AttributeError, KeyError, ValueError):
        found.wrong("its manifest, or its configuration, makes no sense")
    problems: list[ArchiveError | ModelError] = [
        ArchiveError(path.name, *problem) for problem in found.problems
    ]
    found_model = None
    if model:
        try:
            found_model = read_model(model)
        except ModelError as error:
            problems.append(error)
    return Archive(
        path=path,
        team=team_of(path),
        sha256=sha256,
        model=found_model,
        problems=tuple(problems),
        doubts=tuple(found.doubts),
        **described,
    )


def team_of(archive: Path) -> str:
    """The team whose archive it is, by its name."""
    return archive.name.removesuffix(SUFFIX)


def _describe(image: Image) -> dict[str, Any]:
    """What is known of an image that was found, by the names in `Archive`."""
    settings = image.configuration.get("config") or {}
    environment = tuple(map(str, settings.get("Env") or ()))
    configuration = without_volumes(image)
    image_name, manifest, *_ = documents_of(configuration, image.layers)
    return {
        "configuration": configuration,
        "layers": tuple(replace(blob, layer=Layer()) for blob in image.layers),
        "image": image_name.removeprefix(BLOBS),
        "manifest": manifest.removeprefix(BLOBS),
        "overrides": environment_overrides(environment),
        "unpacked_bytes": sum(b.layer.unpacked_bytes for b in image.layers),
    }


def _check_name(name: str, found: Findings) -> None:
    team = name.removesuffix(SUFFIX)
    if name.endswith(MODEL_SUFFIX):
        found.wrong("its name is that of a model", f"Call the image TEAMNAME{SUFFIX}.")
    elif not name.endswith(SUFFIX):
        found.wrong(f"its name does not end in {SUFFIX}", f"Call it TEAMNAME{SUFFIX}.")
    elif problem := name_problem(team):
        found.wrong(problem, REMEDY)
    elif not _TEAM.fullmatch(team):
        remedy = "Use lower-case letters and digits, with single . _ or - between them."
        found.wrong("a team's name cannot be the name of an image", remedy)


# --- An archive of our own --------------------------------------------------------


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
    for name, content in documents_of(archive.configuration, archive.layers).items():
        _write_file(file, name, content)
    file.write(bytes(2 * tarfile.BLOCKSIZE))


def _write_layer(file: BinaryIO, layer: Blob, pieces: Iterable[bytes]) -> None:
    """Write a layer, and make sure that it still is the one that was checked."""
    file.write(_header(BLOBS + layer.diff_id, layer.unpacked_bytes))
    digest = hashlib.sha256()
    left = layer.unpacked_bytes
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            break
        digest.update(piece)
        file.write(piece)
    if left or digest.hexdigest() != layer.diff_id:
        raise BrokenError(_CHANGED)
    file.write(_padding(layer.unpacked_bytes))


def _write_file(file: BinaryIO, name: str, content: bytes) -> None:
    file.write(_header(name, len(content)) + content + _padding(len(content)))


def _header(name: str, size: int) -> bytes:
    """The header of a file: of nobody, and of no time."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    # Beyond 8 GiB, in the way that all engines read.
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
