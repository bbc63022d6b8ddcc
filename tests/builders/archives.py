"""Archives of images, as docker save writes them: byte by byte, without an engine."""

import contextlib
import gzip
import hashlib
import io
import json
import socket
import tarfile

from flare.measuring.archive.reading import read_archive

SCRIPT = b"python predict.py\n"
FILES = {"bin": "-> usr/bin", "usr/bin/bash": b"x", "usr/bin/sh": "-> dash",
         "usr/bin/dash": b"x", "workspace/predict.sh": SCRIPT}  # fmt: skip


def tar(files):
    """A tar file; a text that begins with an arrow is a link."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            if isinstance(data, str) and data.startswith("-> "):
                entry.type, entry.linkname = tarfile.SYMTYPE, data[3:]
                archive.addfile(entry)
            elif data is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def configuration(*layers, **settings):
    """The configuration of an image with such layers, which are tar files."""
    diff_ids = [f"sha256:{sha256(layer)}" for layer in layers or (tar(FILES),)]
    rootfs = {"type": "layers", "diff_ids": diff_ids}
    found = {"os": "linux", "architecture": "amd64", "rootfs": rootfs}
    found |= {key: settings.pop(key) for key in list(settings) if key in found}
    return found | {"config": {"WorkingDir": "/workspace", **settings}}


def save(
    folder, *layers, name="team_a.tar.gz", tags=("team_a:latest",), compress=True,
    layout="legacy", manifest=None, more=None, pack=bytes, **settings,
):  # fmt: skip
    """Write what `docker save` would write of an image with some layers.

    A layer is the files that are in it, or a tar file; `pack` compresses it.
    """
    plain = [
        layer if isinstance(layer, bytes) else tar(layer)
        for layer in layers or (FILES,)
    ]
    config = json.dumps(configuration(*plain, **settings)).encode()
    digest = sha256(config)
    blobs = [pack(layer) for layer in plain]
    names = [
        f"{n}/layer.tar" if layout == "legacy" else f"blobs/sha256/{sha256(blob)}"
        for n, blob in enumerate(blobs)
    ]
    config_name = f"{digest}.json" if layout == "legacy" else f"blobs/sha256/{digest}"
    entry = {"Config": config_name, "RepoTags": list(tags), "Layers": names}
    files = dict(zip(names, blobs, strict=True)) | {config_name: config}
    files["manifest.json"] = json.dumps(manifest or [entry]).encode()
    files |= more or {}
    content = tar(files)
    file = folder / name
    file.write_bytes(gzip.compress(content, 1) if compress else content)
    return file


def findings(file):
    return [problem.problem for problem in read_archive(file).problems]


def make_socket(path):
    """What is no file, nor may be opened as one."""
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(path.parent):
        bound.bind(path.name)  # the whole path may be too long for one
