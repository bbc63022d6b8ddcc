"""Reads the JSON files that say which image an archive holds.

``docker save`` writes ``manifest.json``, which names the configuration and the layers.
Archives of the Open Container Initiative have ``index.json`` instead, which leads to a
manifest by digests; newer archives have both files. All digests are verified, and so is
the SHA-256 of every unpacked layer, which the configuration has as its ``diff_ids``.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flare.common.text import count, listing, safe
from flare.measuring.archive.configuration import checked_configuration
from flare.measuring.archive.image_tar import Blob, Contents
from flare.measuring.archive.strict import (
    SENSELESS_JSON,
    BrokenError,
    fields_of,
    strict_json,
)

PLATFORM = ("linux", "amd64")

MANIFEST, INDEX = "manifest.json", "index.json"

BLOBS = "blobs/sha256/"
"""The folder of files that are named by their digest."""

_OCI_TYPE = "application/vnd.oci.image."
"""The beginning of the media types of the Open Container Initiative."""

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")

MOST_LAYERS = 125
"""Docker takes no image with more layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The one image of an archive, verified."""

    configuration_bytes: bytes
    """The file of its configuration, as it was read."""
    configuration: Mapping[str, Any]
    layers: tuple[Blob, ...]
    """Its layers, the lowest first."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of its containers, such as their command."""
        return self.configuration.get("config") or {}

    @property
    def environment(self) -> tuple[str, ...]:
        """The environment variables of its containers, as NAME=VALUE."""
        return tuple(self.settings.get("Env") or ())


def find_image(contents: Contents, team: str) -> Image:
    """Find the one image of an archive; without a team, it may have any name.

    A BrokenError is raised if there is not exactly one, if it has another name than the
    team, or if anything is not what its digest says.
    """
    index: dict[str, Any] = {}
    entry: dict[str, Any] = {}
    if INDEX in contents.blobs:
        index = fields_of(strict_json(contents.files.get(INDEX, b"")), "manifests")
    has_entry = MANIFEST in contents.blobs or not index
    if has_entry:
        entry = _read_entry(contents)
    if team:
        _check_tags(entry, index, team)
    names = []  # those of the configuration and the layers, by each of the two files
    if index:
        names.append(_follow_index(contents, index))
    if has_entry:
        names.append(_follow_entry(entry))
    config_name, layer_names = names[-1]
    configuration_bytes = _small_file(contents, config_name)
    if any(_small_file(contents, name) != configuration_bytes for name, _ in names):
        raise BrokenError(f"{MANIFEST} and {INDEX} in it lead to different images")
    configuration = checked_configuration(configuration_bytes)
    return Image(
        configuration_bytes=configuration_bytes,
        configuration=configuration,
        layers=tuple(_find_layers(contents, layer_names, configuration)),
    )


# --- docker save ------------------------------------------------------------------


def _read_entry(contents: Contents) -> dict[str, Any]:
    manifest = strict_json(contents.files.get(MANIFEST, b""))
    is_list = isinstance(manifest, list)
    if not is_list or not all(isinstance(entry, dict) for entry in manifest):
        for name, blob in contents.blobs.items():
            if f"/{MANIFEST}" in blob.layer.nodes:
                raise BrokenError(f"it holds the archive {safe(name)}, and is none")
        problem = "docker save has not written it (label maps belong into a zip)"
        raise BrokenError(f"it has no {MANIFEST}: {problem}")
    if len(manifest) != 1:
        raise BrokenError(f"it holds {len(manifest)} images, expected one")
    return fields_of(manifest[0], "Config", "RepoTags", "Layers")


def _follow_entry(entry: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Names of the configuration and the layers, as manifest.json has them."""
    config, layers = entry.get("Config"), entry.get("Layers")
    if not isinstance(layers, list) or not isinstance(config, str):
        raise BrokenError("its manifest names no configuration, or no layers")
    return posixpath.normpath(config), [*map(str, layers)]


def _check_tags(entry: Mapping[str, Any], index: Mapping[str, Any], team: str) -> None:
    """Refuse an image that has another name than its team."""
    names = [_short(str(tag), team) for tag in entry.get("RepoTags") or []]
    for descriptor in _descriptors(index, "manifests"):
        names += _annotated_tags(descriptor, team)
    tags = [*dict.fromkeys(names)]
    if tags != [f"{team}:latest"]:
        shown = listing(tags) if tags else "none: it was saved by its ID"
        raise BrokenError(f"its tags are {shown}; expected {safe(team)}:latest alone")


def _annotated_tags(descriptor: Mapping[str, Any], team: str) -> Iterator[str]:
    annotations = descriptor.get("annotations") or {}
    # Engines take both of these for the name of an image.
    for key in ("io.containerd.image.name", "org.opencontainers.image.ref.name"):
        tag = str(annotations.get(key) or "")
        if tag == "latest":
            tag = f"{team}:latest"
        if tag:
            yield _short(tag, team)


def _short(tag: str, team: str) -> str:
    """A tag without what Docker, or Podman, puts before the team's name."""
    if tag == f"localhost/{team}:latest":
        return f"{team}:latest"
    return tag.removeprefix("docker.io/").removeprefix("library/")


# --- Open Container Initiative ----------------------------------------------------


def _follow_index(
    contents: Contents, index: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Names of the configuration and the layers, as index.json leads to them."""
    images = list(_find_images(contents, index))
    fitting = [image for image in images if _platform(image) in (None, PLATFORM)]
    layers_by_config: dict[str, list[str]] = {}
    # If none fits, the check of a configuration says which platform it is for.
    for image in fitting or images:
        manifest = _document(contents, _blob_name(image))
        config = _blob_name(fields_of(manifest.get("config"), "digest"))
        layers = [_blob_name(layer) for layer in _descriptors(manifest, "layers")]
        layers_by_config.setdefault(config, layers)
    if len(layers_by_config) != 1:
        number = len(layers_by_config)
        raise BrokenError(f"it holds {number} images for linux/amd64, expected one")
    return next(iter(layers_by_config.items()))


def _find_images(
    contents: Contents, index: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Descriptors of all images, also of those in an index within the index."""
    descriptors = list(_descriptors(index, "manifests"))
    seen: set[str] = set()
    for descriptor in descriptors:
        name = _blob_name(descriptor)
        if name in seen or _is_attestation(descriptor):
            continue
        seen.add(name)
        # Images for other platforms may have been left out of the archive.
        document = _document(contents, name) if name in contents.files else {}
        if "manifests" in document:
            # The loop goes on to these.
            descriptors += _descriptors(document, "manifests")
        else:
            yield descriptor


def _document(contents: Contents, name: str) -> dict[str, Any]:
    """An index or a manifest; a file that is both is refused."""
    content = strict_json(_small_file(contents, name))
    document = fields_of(content, "manifests", "config", "layers")
    if "manifests" in document and ("config" in document or "layers" in document):
        raise BrokenError(SENSELESS_JSON)
    return document


def _descriptors(document: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    for descriptor in document.get(key) or []:
        yield fields_of(descriptor, "digest", "platform", "annotations")


def _blob_name(descriptor: Mapping[str, Any]) -> str:
    digest = str(descriptor.get("digest"))
    match = _DIGEST.fullmatch(digest)
    if not match:
        raise BrokenError(f"it names a file by {safe(digest)}, expected sha256:...")
    return f"{BLOBS}{match[1]}"


def _platform(descriptor: Mapping[str, Any]) -> tuple[Any, Any] | None:
    platform = descriptor.get("platform")
    if not platform:
        return None
    platform = fields_of(platform, "os", "architecture")
    return platform.get("os"), platform.get("architecture")


def _is_attestation(descriptor: Mapping[str, Any]) -> bool:
    """Whether it leads to a statement about an image, which builders add."""
    annotations = descriptor.get("annotations") or {}
    kind = annotations.get("vnd.docker.reference.type")
    has_no_platform = _platform(descriptor) == ("unknown", "unknown")
    return kind == "attestation-manifest" or has_no_platform


# --- Files and layers -------------------------------------------------------------


def _small_file(contents: Contents, name: str) -> bytes:
    """The content of a JSON file, which must exist and have the digest in its name."""
    content = contents.files.get(name)
    if content is None:
        raise BrokenError(f"it names {safe(name)}, which is not in it, or no JSON")
    _check_digest(name, hashlib.sha256(content).hexdigest())
    return content


def _check_digest(name: str, sha256: str) -> None:
    """Refuse a file whose name is the digest of another one."""
    if name.startswith(BLOBS) and name != BLOBS + sha256:
        raise BrokenError(f"{safe(name)} in it is not what its name says")


def _find_layers(
    contents: Contents, names: Sequence[str], configuration: Mapping[str, Any]
) -> Iterator[Blob]:
    rootfs = configuration.get("rootfs") or {}
    layers = count(len(names), "layer")
    if len(names) > MOST_LAYERS:
        raise BrokenError(f"it has {layers}, and engines take {MOST_LAYERS} at most")
    expected = rootfs.get("diff_ids") or []
    if len(names) != len(expected):
        raise BrokenError(f"it has {layers}, but its configuration {len(expected)}")
    pairs = zip(names, expected, strict=True)
    for number, (written, diff_id) in enumerate(pairs, start=1):
        blob = contents.blobs.get(posixpath.normpath(written))
        text = f"its layer {number} of {len(names)}"
        if not blob:
            raise BrokenError(f"{text} ({safe(written)}) is not in it")
        if blob.problem:
            raise BrokenError(f"{text} cannot be read: {blob.problem}")
        _check_digest(blob.name, blob.sha256)
        if diff_id != f"sha256:{blob.diff_id}":
            raise BrokenError(f"{text} is not the one that its configuration names")
        yield blob


def without_volumes(image: Image) -> bytes:
    """The configuration of an image, in which no folder is a volume.

    An engine would copy what such a folder holds before the container is started, and
    nobody would see how long that takes, or what it takes of the disk.
    """
    if not image.settings.get("Volumes"):
        return image.configuration_bytes
    settings = {key: value for key, value in image.settings.items() if key != "Volumes"}
    return json.dumps({**image.configuration, "config": settings}).encode()


def documents_of(configuration: bytes, layers: Sequence[Blob]) -> dict[str, bytes]:
    """The JSON files of an archive from which an engine loads an image, by their names.

    They give the image no tag. The first file is its configuration, and the second a
    manifest of the Open Container Initiative, which names the uncompressed layers; the
    lists in which engines look for an image come last.
    """

    def descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
        media_type = f"{_OCI_TYPE}{kind}"
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}

    def document(kind: str, **fields: Any) -> bytes:
        media_type = f"{_OCI_TYPE}{kind}"
        return _text({"schemaVersion": 2, "mediaType": media_type, **fields})

    config_digest = hashlib.sha256(configuration).hexdigest()
    manifest = document(
        "manifest.v1+json",
        config=descriptor("config.v1+json", config_digest, len(configuration)),
        layers=[
            descriptor("layer.v1.tar", layer.diff_id, layer.unpacked_bytes)
            for layer in layers
        ],
    )
    manifest_digest = hashlib.sha256(manifest).hexdigest()
    index_entry = descriptor("manifest.v1+json", manifest_digest, len(manifest))
    index_entry["platform"] = dict(zip(("os", "architecture"), PLATFORM, strict=True))
    config_name = f"{BLOBS}{config_digest}"
    layer_names = [f"{BLOBS}{layer.diff_id}" for layer in layers]
    entry = {"Config": config_name, "RepoTags": None, "Layers": layer_names}
    return {
        config_name: configuration,
        f"{BLOBS}{manifest_digest}": manifest,
        INDEX: document("index.v1+json", manifests=[index_entry]),
        MANIFEST: _text([entry]),
    }


def _text(value: Any) -> bytes:
    """JSON of a value, which has the same bytes whenever it is written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
