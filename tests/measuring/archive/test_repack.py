"""What is handed to the engine: the image that was checked, in a file of our own."""

import io
import json
import os
import shutil
import tarfile

import pytest

from flare.measuring.archive.reading import read_archive, write_image
from flare.measuring.archive.strict import ArchiveError
from tests.builders import ROOT, error_of
from tests.builders.archives import FILES, save, sha256

BUILT = "9762e4734fa8dc7a472d53de7de06e761409b8e093eae3a333ac77ef20f6aa9d"
PODMAN = "df09cda8673c1f8a49a1adf57ee72b9521773ceaf360163381a3c165761b8a10"
KINDS = {
    # Made by `docker image inspect`, `podman inspect` or `skopeo inspect --config`.
    "docker-20": "74676bd6899aabc5ed8bea4075c52e4a94ced36b66ef0fa118e37b16c970f25c",
    "docker-20-equal-layers":
        "3053c02024449164ccc9193bc70fc1a9fb381dd5e37915b8be21264961ae40e5",
    "docker-26-classic":
        "21852fcc16817c3afce9f09d62320224d7ec22c0263f3a7de5757b390d560a7d",
    "docker-26-ctd": BUILT,
    "buildx-oci": BUILT,
    "buildx-oci-zstd-attested": BUILT,
    "buildx-oci-estargz":
        "225d810f82cd57890e913a69b19d963a8ba62ee257193acc2aa3c3a303ce917e",
    "buildx-oci-two-platforms": BUILT,
    "buildx-docker": BUILT,
    "podman-docker-archive": PODMAN,
    "podman-oci-archive": PODMAN,
    "skopeo-docker-archive": PODMAN,
    "skopeo-oci-archive": PODMAN,
    "skopeo-oci-zstd": PODMAN,
    "umoci-tar": "e4cc12a7f4fabae9b2d165866d632990f3753013a6784640c84bf626423c83cf",
}  # fmt: skip


def written(archive):
    content = io.BytesIO()
    write_image(archive, content)
    return content.getvalue()


def make_pipe(file):
    file.unlink()
    os.mkfifo(file)


def unpack(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


@pytest.mark.parametrize("kind", KINDS)
def test_archives_of_all_tools_are_read_and_written_anew(tmp_path, kind):
    """tests/data/archives has the command lines."""
    file = tmp_path / "arc-team.tar.gz"
    shutil.copy(ROOT / "tests" / "data" / "archives" / f"{kind}.archive", file)

    archive = read_archive(file)

    assert (archive.problems, archive.doubts) == ((), ())
    assert archive.image == KINDS[kind]
    configured = json.loads(archive.configuration)["config"]
    assert configured["WorkingDir"] == "/workspace"
    files = unpack(written(archive))
    diff_ids = json.loads(archive.configuration)["rootfs"]["diff_ids"]
    layers = [f"blobs/sha256/{diff_id.removeprefix('sha256:')}" for diff_id in diff_ids]
    (entry,) = json.loads(files.pop("manifest.json"))
    config = f"blobs/sha256/{archive.image}"
    assert entry == {"Config": config, "RepoTags": None, "Layers": layers}
    (descriptor,) = json.loads(files.pop("index.json"))["manifests"]
    assert descriptor["digest"] == f"sha256:{archive.manifest}"
    assert descriptor["platform"] == {"os": "linux", "architecture": "amd64"}
    assert "annotations" not in descriptor
    manifest = json.loads(files[f"blobs/sha256/{archive.manifest}"])
    assert manifest["config"]["digest"] == f"sha256:{archive.image}"
    assert [layer["digest"] for layer in manifest["layers"]] == diff_ids
    assert files.pop("oci-layout") == b'{"imageLayoutVersion":"1.0.0"}'
    assert set(files) == {*layers, config, f"blobs/sha256/{archive.manifest}"}
    assert all(name.endswith(sha256(content)) for name, content in files.items())


def test_what_is_written_can_be_read_and_is_always_the_same(tmp_path):
    archive = read_archive(save(tmp_path, FILES, {"x": b"y" * 1000}))

    first = written(archive)

    assert written(archive) == first
    assert len(first) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(first)) as tar_file:
        entries = tar_file.getmembers()
    assert {(e.mtime, e.uid, e.gid, e.uname) for e in entries} == {(0, 0, 0, "")}
    # Without a manifest, a file that was cut off is no image to any engine.
    assert [e.name for e in entries[-2:]] == ["index.json", "manifest.json"]


def test_only_our_own_digests_are_the_image(tmp_path):
    archive = read_archive(save(tmp_path))

    assert archive.is_image(archive.image)
    assert archive.is_image(archive.manifest)
    assert not archive.is_image("")
    assert not archive.is_image("c" * 64)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: save(folder, FILES | {"bin/bash": b"y"}),
        lambda folder: save(folder, FILES | {"more": b"y" * 9000}),
        lambda folder: save(folder, {}),
        lambda folder: (folder / "team_a.tar.gz").write_bytes(b"x" * 2000),
        lambda folder: (folder / "team_a.tar.gz").unlink(),
        lambda folder: make_pipe(folder / "team_a.tar.gz"),
    ],
    ids=["other content", "longer", "shorter", "no archive", "gone", "a pipe"],
)
def test_an_archive_that_has_changed_is_not_written_to_the_end(tmp_path, change):
    archive = read_archive(save(tmp_path))
    change(tmp_path)
    content = io.BytesIO()

    error = error_of(ArchiveError, write_image, archive, content)

    assert (error.code, error.file) == ("F15", "team_a.tar.gz")
    assert error.problem == "it has changed since it was checked"
    assert b"manifest.json" not in content.getvalue()
