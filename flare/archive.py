"""Reads a team's image archive, without loading it, and says what would go wrong.

``docker save`` writes a tar file, compressed or not: ``manifest.json`` names the
configuration and the layers of an image.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.errors import ArchiveError, InputError
from flare.imagechecks import Findings, configuration_problems, content_problems
from flare.imagetar import BrokenError, merge, read_members
from flare.names import listing, safe, why

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
    image: str
    """ID of the image: the digest of its configuration."""
    manifests: tuple[str, ...]
    """Digests of its manifests, which newer engines take for the ID."""
    unpacked_bytes: int
    """Of all layers together."""
    problems: tuple[ArchiveError, ...]
    """Why it cannot be run."""
    doubts: tuple[str, ...]
    """What may go wrong."""

    def is_image(self, identity: str) -> bool:
        """Whether an engine's ID is that of the image which was checked."""
        return bool(identity) and identity in (self.image, *self.manifests)

    @property
    def tag(self) -> str:
        """The name by which the image is run."""
        return f"{self.team}:latest"


def read_archive(path: Path) -> Archive:
    """Read an archive and check everything that can be checked without running it.

    Raises
    ------
    InputError
        If there is no such file, or it may not be read.
    """
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        problem = f"{safe(path)}: it cannot be read ({why(error)})"
        raise InputError(
            problem, "Give TEAMNAME.tar.gz as the team has sent it."
        ) from (error)
    team = path.name.removesuffix(SUFFIX)
    problems, doubts = _name_problems(path.name), []
    image, unpacked = "", 0
    manifests: tuple[str, ...] = ()
    try:
        files, layers = read_members(path)
        image, configuration, order = _find_image(files, team)
        manifests = tuple(_oci_digests(files))
        unpacked = sum(layer.unpacked_bytes for layer in layers.values())
        absent = [name for name in order if name not in layers]
        if absent:
            doubts.append(f"{len(absent)} of its layers cannot be looked into")
        found = configuration_problems(configuration)
        problems += found[0]
        doubts += found[1]
        if not absent:
            merged = merge([layers[name] for name in order])
            found = content_problems(merged, configuration)
            problems += found[0]
            doubts += found[1]
    except BrokenError as error:
        problems.append((str(error), ""))
    except (TypeError, AttributeError, KeyError, ValueError):
        problems.append(("its manifest, or its configuration, makes no sense", ""))
    return Archive(
        path=path,
        team=team,
        sha256=sha256,
        image=image,
        manifests=manifests,
        unpacked_bytes=unpacked,
        problems=tuple(ArchiveError(path.name, *problem) for problem in problems),
        doubts=tuple(doubts),
    )


def _name_problems(name: str) -> Findings:
    """What is wrong with the name of the file."""
    team = name.removesuffix(SUFFIX)
    if not name.endswith(SUFFIX):
        return [(f"its name does not end in {SUFFIX}", f"Call it TEAMNAME{SUFFIX}.")]
    if _TEAM.fullmatch(team):
        return []
    remedy = "Use lower-case letters and digits, with single . _ or - between them."
    return [("a team's name cannot be the name of an image", remedy)]


# --- What the image is ------------------------------------------------------------


def _find_image(
    files: Mapping[str, bytes], team: str
) -> tuple[str, dict[str, Any], list[str]]:
    """ID, configuration, and names of the layers of the one image of an archive."""
    manifest = _json(files, "manifest.json")
    if not isinstance(manifest, list) or not all(isinstance(m, dict) for m in manifest):
        text = "it has no manifest.json: docker save has not written it"
        raise BrokenError(text)
    if len(manifest) != 1:
        text = f"it holds {len(manifest)} images, expected one"
        raise BrokenError(text)
    tags = [str(tag) for tag in manifest[0].get("RepoTags") or []]
    tags += [tag for tag in _oci_tags(files) if tag not in tags]
    if tags != [f"{team}:latest"]:
        found = listing(tags) if tags else "none: it was saved by its ID"
        text = f"its tags are {found}; expected {safe(team)}:latest alone"
        raise BrokenError(text)
    name = str(manifest[0].get("Config"))
    configuration = _json(files, posixpath.normpath(name))
    layers = manifest[0].get("Layers")
    if not isinstance(configuration, dict) or not isinstance(layers, list):
        text = "its manifest names no configuration, or no layers"
        raise BrokenError(text)
    image = hashlib.sha256(files[posixpath.normpath(name)]).hexdigest()
    return image, configuration, [posixpath.normpath(str(layer)) for layer in layers]


def _oci_tags(files: Mapping[str, bytes]) -> Iterator[str]:
    """Tags of the second list that newer archives have, which an engine may prefer."""
    index = _json(files, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    for entry in manifests if isinstance(manifests, list) else []:
        annotations = entry.get("annotations") if isinstance(entry, dict) else None
        if isinstance(annotations, dict):
            name = str(annotations.get("io.containerd.image.name", ""))
            if name:
                yield name.removeprefix("docker.io/").removeprefix("library/")


def _oci_digests(files: Mapping[str, bytes]) -> Iterator[str]:
    """Digests of the manifests in the second list."""
    index = _json(files, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    for entry in manifests if isinstance(manifests, list) else []:
        yield str(entry.get("digest", "")).removeprefix("sha256:")


def _json(files: Mapping[str, bytes], name: str) -> Any:
    """What a small file of the archive holds; None if that is no JSON.

    Raises
    ------
    BrokenError
        If a key is there twice, be it in other capitals: Docker would take the other.
    """
    try:
        return json.loads(files.get(name, b""), object_pairs_hook=_table)
    except (ValueError, RecursionError):
        return None


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys nobody can read in two ways."""
    keys = [key.casefold() for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        text = f"its manifest, or its configuration, has {safe(twice)} twice"
        raise BrokenError(text)
    return dict(pairs)
