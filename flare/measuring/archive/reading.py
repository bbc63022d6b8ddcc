"""Reads a team's image archive, without loading it, and says what would go wrong."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.measuring.archive.checks import (
    Findings,
    check_configuration,
    check_content,
    environment_overrides,
)
from flare.measuring.archive.image_json import (
    Image,
    StoredLayer,
    find_image,
    manifest_of,
    without_volumes,
)
from flare.measuring.archive.image_tar import read_contents
from flare.measuring.archive.model import MODEL_SUFFIX, Model, read_model, sent_file
from flare.measuring.archive.strict import BrokenError
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract
from flare.measuring.errors import ArchiveError, ModelError
from flare.results.team_folder import REMEDY, name_problem

SUFFIX = ".tar.gz"

_TEAM = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
"""Docker's rule for the name of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What is known of an archive before it is loaded."""

    path: Path
    team: str
    sha256: str
    """Of the file."""
    configuration: bytes = b""
    """Of the image, byte by byte, but without volumes."""
    layers: tuple[StoredLayer, ...] = ()
    """The first is the lowest."""
    image: str = ""
    """SHA-256 of the configuration: the ID of the image in most engines."""
    manifest: str = ""
    """SHA-256 of the manifest that `write_image` writes: the ID in other engines."""
    overrides: tuple[str, ...] = ()
    """What has to be set in a container instead, as NAME=VALUE."""
    user: str = ""
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
        check_configuration(image.configuration, contract, found)
        check_content(image.layers, image.configuration, contract, mounted, found)
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
    manifest = manifest_of(configuration, image.stored)
    return {
        "configuration": configuration,
        "layers": image.stored,
        "image": hashlib.sha256(configuration).hexdigest(),
        "manifest": hashlib.sha256(manifest).hexdigest(),
        "overrides": environment_overrides(environment),
        "user": str(settings.get("User") or ""),
        "unpacked_bytes": sum(layer.unpacked_bytes for layer in image.layers),
    }


def _check_name(name: str, found: Findings) -> None:
    """Find out what is wrong with the name of the file."""
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
