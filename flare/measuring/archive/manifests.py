"""Writes the JSON files that say which image an archive of our own holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from flare.measuring.archive.image_json import BLOBS, PLATFORM, Image, StoredLayer

_OCI = "application/vnd.oci.image"


def without_volumes(image: Image) -> bytes:
    """The configuration of an image, in which no folder is a volume.

    An engine would copy what such a folder holds before the container is started, and
    nobody would see how long that takes, or what it takes of the disk.
    """
    settings = image.configuration.get("config") or {}
    if not settings.get("Volumes"):
        return image.content
    left = {key: value for key, value in settings.items() if key != "Volumes"}
    return json.dumps({**image.configuration, "config": left}).encode()


def manifest_of(configuration: bytes, layers: Iterable[StoredLayer]) -> bytes:
    """A manifest of an image whose layers are not compressed."""
    return _text(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _descriptor(f"{_OCI}.config.v1+json", configuration),
            "layers": [
                {
                    "mediaType": f"{_OCI}.layer.v1.tar",
                    "digest": f"sha256:{layer.diff_id}",
                    "size": layer.size,
                }
                for layer in layers
            ],
        }
    )


def index_of(manifest: bytes) -> bytes:
    """An index.json that leads to one manifest, and gives it no name."""
    entry = _descriptor(f"{_OCI}.manifest.v1+json", manifest)
    entry["platform"] = dict(zip(("os", "architecture"), PLATFORM, strict=True))
    return _text(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.index.v1+json",
            "manifests": [entry],
        }
    )


def docker_manifest_of(configuration: bytes, layers: Iterable[StoredLayer]) -> bytes:
    """A manifest.json that gives its image no name."""
    config = hashlib.sha256(configuration).hexdigest()
    names = [f"{BLOBS}{layer.diff_id}" for layer in layers]
    return _text([{"Config": f"{BLOBS}{config}", "RepoTags": None, "Layers": names}])


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    """What leads to a file by its digest."""
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return {"mediaType": kind, "digest": digest, "size": len(content)}


def _text(value: Any) -> bytes:
    """JSON that is the same wherever it is written."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
