"""Archives of images, as docker save writes them: byte by byte, without an engine."""

import contextlib
import gzip
import hashlib
import json
import socket
import tarfile

from flare.measuring.archive.reading import read_archive
from tests.builders.models import entry, tar_of

SCRIPT = b"python predict.py\n"
FILES = {"bin": "-> usr/bin", "usr/bin/bash": b"x", "usr/bin/sh": "-> dash",
         "usr/bin/dash": b"x", "workspace/predict.sh": SCRIPT}  # fmt: skip


def tar(files):
    """A tar file; a text that begins with an arrow is a link, and None a folder."""
    entries = []
    for name, data in files.items():
        if isinstance(data, str) and data.startswith("-> "):
            entries.append(entry(name, type=tarfile.SYMTYPE, linkname=data[3:]))
        elif data is None:
            entries.append(entry(name, type=tarfile.DIRTYPE))
        else:
            entries.append(entry(name, data))
    return tar_of(entries)


def layer_of(entries):
    """A layer of such names, types and targets of links, in their order."""
    return tar_of(entry(n, type=kind, linkname=link) for n, kind, link in entries)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def configuration(*layers, top=None, **settings):
    """The configuration of an image with such layers, which are tar files.

    `top` has what stands beside the settings.
    """
    diff_ids = [f"sha256:{sha256(layer)}" for layer in layers or (tar(FILES),)]
    rootfs = {"type": "layers", "diff_ids": diff_ids}
    found = {"os": "linux", "architecture": "amd64", "rootfs": rootfs}
    found |= {key: settings.pop(key) for key in list(settings) if key in found}
    return found | {"config": {"WorkingDir": "/workspace", **settings}} | (top or {})


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


A_TIME = "a time such as 2026-11-24T10:00:00Z"

OF_NO_ENGINE = [
    ({"top": {"created": 5}}, f"5 for created, expected {A_TIME}"),
    *(
        ({"top": {"created": text}}, f'"{text}" for created, expected {A_TIME}')
        for text in (
            *("yesterday", "", "2026-01-01 10:00:00Z"),
            *("2026-02-30T10:00:00Z", "2026-01-01T10:00:60Z"),
        )
    ),
    ({"top": {"author": 5}}, "5 for author, expected a text"),
    ({"top": {"comment": []}}, "[] for comment, expected a text"),
    ({"top": {"Size": "5"}}, '"5" for Size, expected a whole number'),
    ({"top": {"os.features": "x"}}, '"x" for os.features, expected a list'),
    ({"top": {"history": "x"}}, '"x" for history, expected a list'),
    ({"top": {"history": ["x"]}}, '"x" for history[1], expected an object'),
    (
        {"top": {"history": [{}, {"empty_layer": "true"}]}},
        '"true" for history[2].empty_layer, expected true or false',
    ),
    (
        {"top": {"history": [{"created": "x"}]}},
        f'"x" for history[1].created, expected {A_TIME}',
    ),
    ({"top": {"config": []}}, "[] for config, expected an object"),
    (
        {"top": {"container_config": {"Env": "x"}}},
        '"x" for container_config.Env, expected a list',
    ),
    ({"User": 0}, "0 for config.User, expected a text"),
    ({"StopSignal": 9}, "9 for config.StopSignal, expected a text"),
    ({"Tty": "yes"}, '"yes" for config.Tty, expected true or false'),
    ({"Env": 5}, "5 for config.Env, expected a list"),
    ({"Env": ["A=b", 5]}, "5 for config.Env[2], expected a text"),
    ({"Entrypoint": 5}, "5 for config.Entrypoint, expected a list"),
    ({"Cmd": [["x"]]}, '["x"] for config.Cmd[1], expected a text'),
    ({"Labels": ["a"]}, '["a"] for config.Labels, expected an object'),
    ({"Labels": {"a": True}}, "true for config.Labels.a, expected a text"),
    (
        {"ExposedPorts": {"80/tcp": 1}},
        "1 for config.ExposedPorts.80/tcp, expected an o",
    ),
    ({"Volumes": ["/x"]}, '["/x"] for config.Volumes, expected an object'),
    ({"StopTimeout": 1.5}, "1.5 for config.StopTimeout, expected a whole number"),
    ({"StopTimeout": 2**63}, "9223372036854775808 for config.StopTimeout, expected a"),
    ({"Healthcheck": []}, "[] for config.Healthcheck, expected an object"),
    (
        {"Healthcheck": {"Interval": "30s"}},
        '"30s" for config.Healthcheck.Interval, expected a whole number',
    ),
]
"""Configurations that Docker 20.10 loads none of, and what is said of them. It says,
such as "json: cannot unmarshal number into Go struct field Config.config.User"."""


def findings(file):
    return [problem.problem for problem in read_archive(file).problems]


def make_socket(path):
    """What is no file, nor may be opened as one."""
    with socket.socket(socket.AF_UNIX) as bound, contextlib.chdir(path.parent):
        bound.bind(path.name)  # the whole path may be too long for one
