"""Archives that mean two things to two readers, or more than a computer can hold."""

import gzip
import io
import json
import tarfile

import pytest
from backports import zstd

from flare.measuring.archive import strict
from flare.measuring.archive.reading import read_archive
from tests.builders.archives import (
    FILES,
    configuration,
    findings,
    save,
    sha256,
    tar,
)

OTHER = b'[{"Config": "x", "RepoTags": ["victim:latest"], "Layers": []}]'
NOT_THERE = "c" * 64


def blob(content):
    """A file that is named by its digest."""
    return {f"blobs/sha256/{sha256(content)}": content}


def descriptor(content, **more):
    return {"digest": f"sha256:{sha256(content)}", **more}


def oci(folder, *, layer=None, packed=None, more=None, index=None, **settings):
    """An image whose only list is index.json; returns the file and its manifest."""
    layer = tar(FILES) if layer is None else layer
    packed = layer if packed is None else packed
    config = json.dumps(configuration(layer, **settings)).encode()
    described = {"config": descriptor(config), "layers": [descriptor(packed)]}
    manifest = json.dumps(described).encode()
    named = {"annotations": {"org.opencontainers.image.ref.name": "latest"}}
    content = {"manifests": index or [descriptor(manifest, **named)]}
    files = blob(config) | blob(packed) | blob(manifest) | (more or {})
    file = folder / "team_a.tar.gz"
    file.write_bytes(tar(files | {"index.json": json.dumps(content).encode()}))
    return file, manifest


# --- Two readers (C1) -------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"/manifest.json": OTHER},
            "it holds /manifest.json, which lies outside of it",
        ),
        (
            {"../manifest.json": OTHER},
            "it holds ../manifest.json, which lies outside of it",
        ),
        ({"./manifest.json": OTHER}, "it holds two files manifest.json"),
        ({"a/../manifest.json": OTHER}, "it holds two files manifest.json"),
        (
            {"x": "-> .", "x/manifest.json": OTHER},
            "it holds x, a link that leads to no layer",
        ),
        ({"x": "-> manifest.json"}, "it holds x, a link that leads to no layer"),
        ({"x": "-> /etc/passwd"}, "it holds x, a link that leads to no layer"),
    ],
)
def test_second_manifests_and_links(tmp_path, more, problem):
    assert findings(save(tmp_path, more=more)) == [problem]


def test_an_index_that_leads_to_another_image(tmp_path):
    (tmp_path / "other").mkdir()
    file, _manifest = oci(tmp_path / "other", User="other")
    with tarfile.open(file) as archive:
        more = {e.name: archive.extractfile(e).read() for e in archive}

    assert findings(save(tmp_path, more=more)) == [
        "manifest.json and index.json in it lead to different images"
    ]


@pytest.mark.parametrize(
    ("tag", "shown"),
    [
        ("docker.io/library/python:3.13-slim", "python:3.13-slim"),
        ("python", "python"),
        ("localhost/other:latest", "localhost/other:latest"),
        ("docker.io/evil/team_a:latest", "evil/team_a:latest"),
    ],
)
@pytest.mark.parametrize(
    "name", ["org.opencontainers.image.ref.name", "io.containerd.image.name"]
)
def test_names_in_an_index(tmp_path, name, tag, shown):
    """Containerd takes one or the other for a tag."""
    index = [{"digest": f"sha256:{NOT_THERE}", "annotations": {name: tag}}]

    file, _ = oci(tmp_path, index=index)

    assert findings(file) == [f"its tags are {shown}; expected team_a:latest alone"]


@pytest.mark.parametrize(
    "tag",
    ["team_a:latest", "docker.io/team_a:latest", "docker.io/library/team_a:latest",
     "localhost/team_a:latest"],
)  # fmt: skip
def test_spellings_of_the_right_name(tmp_path, tag):
    assert findings(save(tmp_path, tags=[tag])) == []


def test_a_digest_that_is_not_there(tmp_path):
    """C1b: an engine would have run what it already had under that digest."""
    index = [
        {
            "digest": f"sha256:{NOT_THERE}",
            "annotations": {"org.opencontainers.image.ref.name": "latest"},
        }
    ]

    file, _ = oci(tmp_path, index=index)

    (found,) = findings(file)
    assert found.startswith("it names blobs/sha256/cccccccc")
    assert found.endswith(", which is not in it, or no JSON")


def test_what_is_for_other_platforms_may_be_left_out(tmp_path):
    _, manifest = oci(tmp_path)
    named = {"annotations": {"org.opencontainers.image.ref.name": "latest"}}
    arm = {"os": "linux", "architecture": "arm64"}
    unknown = {"os": "unknown", "architecture": "unknown"}
    nested = json.dumps(
        {
            "manifests": [
                {"digest": f"sha256:{NOT_THERE}", "platform": arm},
                descriptor(manifest, platform={"os": "linux", "architecture": "amd64"}),
                {"digest": f"sha256:{'d' * 64}", "platform": unknown},
            ]
        }
    ).encode()
    index = [descriptor(nested, **named)]

    file, _ = oci(tmp_path, index=index, more=blob(nested))

    assert findings(file) == []


def test_two_images_in_an_index(tmp_path):
    config = json.dumps(configuration(User="other")).encode()
    other = json.dumps({"config": descriptor(config), "layers": []}).encode()
    _, manifest = oci(tmp_path)
    named = {"annotations": {"org.opencontainers.image.ref.name": "latest"}}

    file, _ = oci(
        tmp_path,
        index=[descriptor(manifest, **named), descriptor(other)],
        more=blob(config) | blob(other),
    )

    assert findings(file) == ["it holds 2 images for linux/amd64, expected one"]


def test_a_manifest_that_is_an_index_as_well(tmp_path):
    """CVE-2021-41190: which it is depends on who reads it."""
    both = b'{"manifests": [], "layers": []}'
    named = {"annotations": {"org.opencontainers.image.ref.name": "latest"}}

    file, _ = oci(tmp_path, index=[descriptor(both, **named)], more=blob(both))

    assert findings(file) == ["its manifest, or its configuration, makes no sense"]


# --- Digests ----------------------------------------------------------------------


def test_a_layer_that_the_configuration_does_not_name(tmp_path):
    more = {"0/layer.tar": tar(FILES | {"bin/evil": b"x"})}

    assert findings(save(tmp_path, more=more)) == [
        "its layer 1 of 1 is not the one that its configuration names"
    ]


def test_more_layers_than_the_configuration_names(tmp_path):
    rootfs = {"diff_ids": []}

    assert findings(save(tmp_path, rootfs=rootfs)) == [
        "it has 1 layers, but its configuration 0"
    ]


def test_a_layer_that_is_not_there(tmp_path):
    config = json.dumps(configuration()).encode()
    entry = {"RepoTags": ["team_a:latest"], "Config": "c.json", "Layers": ["x.tar"]}

    file = save(tmp_path, manifest=[entry], more={"c.json": config})

    assert findings(file) == ["its layer 1 of 1 (x.tar) is not in it"]


@pytest.mark.parametrize("what", ["layer", "config", "manifest"])
def test_files_that_are_not_what_their_names_say(tmp_path, what):
    """Each is right but for a space, a line end or data behind the end."""
    layer = tar(FILES)
    file, manifest = oci(tmp_path)
    config = json.dumps(configuration(layer)).encode()
    wrong = {"layer": layer, "config": config, "manifest": manifest}[what]
    name = f"blobs/sha256/{sha256(wrong)}"

    file, _ = oci(tmp_path, more={name: wrong + (b"x" if what == "layer" else b"\n")})

    (found,) = findings(file)
    assert found.startswith("blobs/sha256/")
    assert found.endswith(" in it is not what its name says")


# --- Compressed layers (C6) -------------------------------------------------------


def members(layer):
    """In two gzip members, as parallel compressors write it."""
    return gzip.compress(layer[:700]) + gzip.compress(layer[700:])


def frames(layer):
    return zstd.compress(layer[:700]) + zstd.compress(layer[700:])


@pytest.mark.parametrize("pack", [gzip.compress, members, zstd.compress, frames])
def test_compressed_layers_are_read_to_their_end(tmp_path, pack):
    layer = tar({f"{n}": bytes(600) for n in range(9)} | FILES)

    archive = read_archive(save(tmp_path, layer, pack=pack))

    assert (archive.problems, archive.doubts) == ((), ())
    assert archive.unpacked_bytes == 9 * 600 + 2 + len(FILES["workspace/predict.sh"])


@pytest.mark.parametrize("pack", [gzip.compress, members, zstd.compress, frames])
def test_bombs_are_counted(tmp_path, monkeypatch, pack):
    """What is behind the first member, or frame, counts as well."""
    monkeypatch.setattr(strict, "UNPACKED_BYTES", 2**20)
    layer = tar(FILES) + bytes(2**21)

    file = save(tmp_path, layer, pack=pack)

    assert file.stat().st_size < 2**17
    assert findings(file) == ["it holds more than 0 GiB, or too many files"]


@pytest.mark.parametrize(
    ("pack", "problem"),
    [
        (lambda x: b"BZh9" + x, "it is compressed by bzip2, expected gzip or zstd"),
        (lambda x: b"\xfd7zXZ" + x, "it is compressed by xz, expected gzip or zstd"),
        (lambda x: gzip.compress(x)[:-9], strict._END),
        (lambda x: zstd.compress(x)[:-9], strict._END),
        (lambda x: zstd.compress(x) + b"more", strict._END),
        (lambda x: gzip.compress(x) + b"more", strict._END),
        (lambda _: b"", strict._END),
    ],
    ids=["bzip2", "xz", "gzip cut", "zstd cut", "zstd more", "gzip more", "nothing"],
)
def test_layers_that_cannot_be_read(tmp_path, pack, problem):
    assert findings(save(tmp_path, pack=pack)) == [
        f"its layer 1 of 1 cannot be read: {problem}"
    ]


def test_frames_without_number(tmp_path, monkeypatch):
    monkeypatch.setattr(strict, "MOST_ENTRIES", 50)

    file = save(tmp_path, pack=lambda x: zstd.compress(b"") * 60 + zstd.compress(x))

    assert findings(file) == [f"its layer 1 of 1 cannot be read: {strict._END}"]


# --- Tar files --------------------------------------------------------------------


def with_entry(kind, name="x", **more):
    """A layer with one entry of a kind."""
    entry = tarfile.TarInfo(name)
    entry.type = kind
    for field, value in more.items():
        setattr(entry, field, value)
    return entry.tobuf(tarfile.GNU_FORMAT) + tar(FILES)


def sparse():
    """A file of a terabyte, by its header in the way of PAX."""
    content = io.BytesIO()
    headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0",
               "GNU.sparse.realsize": str(2**40), "GNU.sparse.name": "x"}  # fmt: skip
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("x")
        entry.pax_headers, entry.size = headers, 512
        archive.addfile(entry, io.BytesIO(b"0\n" + bytes(510)))
    return content.getvalue()


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        (with_entry(tarfile.GNUTYPE_SPARSE), "it holds a file with holes (sparse)"),
        (sparse(), "it holds a file with holes (sparse)"),
        (
            with_entry(tarfile.XGLTYPE),
            "it has headers that only some programs understand",
        ),
        (with_entry(tarfile.REGTYPE, size=-512), "its headers make no sense"),
        # tarfile takes either for the end; what is behind it would not be checked.
        (tar(FILES)[:512] + b"x" * 512 + tar(FILES), strict._END),
        (tar(FILES)[:512] + bytes(512) + tar(FILES), strict._END),
    ],
    ids=["sparse", "sparse PAX", "global", "negative", "no header", "one empty block"],
)
def test_tar_files_that_two_readers_read_differently(tmp_path, layer, problem):
    assert findings(save(tmp_path, layer)) == [
        f"its layer 1 of 1 cannot be read: {problem}"
    ]


def test_data_behind_the_end_of_the_archive(tmp_path):
    file = save(tmp_path, compress=False)
    file.write_bytes(file.read_bytes() + tar({"manifest.json": OTHER}))

    assert findings(file) == ["there are other data behind its end"]


def test_an_archive_holds_only_files_folders_and_links(tmp_path):
    file = save(tmp_path, compress=False)
    file.write_bytes(with_entry(tarfile.FIFOTYPE)[:512] + file.read_bytes())

    assert findings(file) == ["it holds x, which is neither a file nor a folder"]


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("MOST_ENTRIES", 100, "it holds more than 128 GiB, or too many files"),
        ("NOTED_BYTES", 20_000, "it has too many links, or files that layers remove"),
    ],
)
@pytest.mark.parametrize(
    "layer", [{f"{n}": "-> x" for n in range(99)}, {f".wh.{n}": b"" for n in range(99)}]
)
def test_links_without_number(tmp_path, monkeypatch, limit, value, problem, layer):
    monkeypatch.setattr(strict, limit, value)

    assert findings(save(tmp_path, FILES | layer)) == [problem]
