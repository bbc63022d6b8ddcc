"""Archives that mean two things to two readers, or more than a computer can hold."""

import gzip
import io
import json
import tarfile

import pytest
from backports import zstd

from flare.measuring.archive import strict
from flare.measuring.archive.reading import read_archive
from tests.builders.archives import FILES, configuration, findings, save, sha256, tar

OTHER = b'[{"Config": "x", "RepoTags": ["victim:latest"], "Layers": []}]'
NOT_THERE = f"sha256:{'c' * 64}"
NAMED = {"annotations": {"org.opencontainers.image.ref.name": "latest"}}
SENSELESS = "its manifest, or its configuration, makes no sense"
BEHIND = "there are other data behind its end"
OF_LAYER = "its layer 1 of 1 cannot be read: "


def blob(content):
    """A file that is named by its digest."""
    return {f"blobs/sha256/{sha256(content)}": content}


def descriptor(content, **more):
    return {"digest": f"sha256:{sha256(content)}", **more}


def on(system, architecture):
    return {"platform": {"os": system, "architecture": architecture}}


def oci(folder, *, more=None, index=None, **settings):
    """An image whose only list is index.json; returns the file and its manifest."""
    layer = tar(FILES)
    config = json.dumps(configuration(layer, **settings)).encode()
    described = {"config": descriptor(config), "layers": [descriptor(layer)]}
    manifest = json.dumps(described).encode()
    content = {"manifests": index or [descriptor(manifest, **NAMED)]}
    files = blob(config) | blob(layer) | blob(manifest) | (more or {})
    file = folder / "team_a.tar.gz"
    file.write_bytes(tar(files | {"index.json": json.dumps(content).encode()}))
    return file, manifest


def sent(folder, content):
    """A file as a team has sent it."""
    file = folder / "team_a.tar.gz"
    file.write_bytes(content)
    return file


# --- Two readers (C1) -------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"/manifest.json": OTHER}, "/manifest.json, which lies outside of it"),
        ({"../manifest.json": OTHER}, "../manifest.json, which lies outside of it"),
        ({"./manifest.json": OTHER}, "two files manifest.json"),
        ({"a/../manifest.json": OTHER}, "two files manifest.json"),
        ({"x": "-> .", "x/manifest.json": OTHER}, "x, a link that leads to no layer"),
        ({"x": "-> manifest.json"}, "x, a link that leads to no layer"),
        ({"x": "-> /etc/passwd"}, "x, a link that leads to no layer"),
        ({"x": "-> 0/layer.tar", "y": "-> x"}, "y, a link that leads to no layer"),
    ],
)
def test_an_archive_with_a_second_manifest_or_a_link_is_refused(
    tmp_path, more, problem
):
    assert findings(save(tmp_path, more=more)) == [f"it holds {problem}"]


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
def test_a_name_in_an_index_counts_as_a_tag(tmp_path, name, tag, shown):
    """Containerd takes one or the other for a tag."""
    file, _ = oci(tmp_path, index=[{"digest": NOT_THERE, "annotations": {name: tag}}])

    assert findings(file) == [f"its tags are {shown}; expected team_a:latest alone"]


def test_what_is_for_other_platforms_may_be_left_out(tmp_path):
    _, manifest = oci(tmp_path)
    inner = [
        {"digest": NOT_THERE, **on("linux", "arm64")},
        descriptor(manifest, **on("linux", "amd64")),
        {"digest": f"sha256:{'d' * 64}", **on("unknown", "unknown")},
    ]
    nested = json.dumps({"manifests": inner}).encode()

    file, _ = oci(tmp_path, index=[descriptor(nested, **NAMED)], more=blob(nested))

    assert findings(file) == []


def test_an_index_that_leads_to_another_image_is_refused(tmp_path):
    _, manifest = oci(tmp_path)
    config = json.dumps(configuration(User="other")).encode()
    other = json.dumps({"config": descriptor(config), "layers": []}).encode()
    both = b'{"manifests": [], "layers": []}'
    absent = f"it names blobs/sha256/{'c' * 64}, which is not in it, or no JSON"
    two = [descriptor(manifest, **NAMED), descriptor(other)]
    for index, blobs, problem in (
        # C1b: an engine would have run what it already had under that digest.
        ([{"digest": NOT_THERE, **NAMED}], {}, absent),
        (two, blob(config) | blob(other), "it holds 2 images for linux/amd64"),
        # CVE-2021-41190: which it is depends on who reads it.
        ([descriptor(both, **NAMED)], blob(both), SENSELESS),
    ):
        file, _ = oci(tmp_path, index=index, more=blobs)
        (found,) = findings(file)
        assert found.startswith(problem)


# --- Digests ----------------------------------------------------------------------


WITHOUT = {"RepoTags": ["team_a:latest"], "Config": "c.json", "Layers": ["x.tar"]}
CONFIG = {"c.json": json.dumps(configuration()).encode()}
LAYER = "its layer 1 of 1"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"more": {"0/layer.tar": tar(FILES | {"usr/bin/evil": b"x"})}},
         f"{LAYER} is not the one that its configuration names"),
        ({"rootfs": {"diff_ids": []}}, "it has 1 layer, but its configuration 0"),
        ({"manifest": [WITHOUT], "more": CONFIG}, f"{LAYER} (x.tar) is not in it"),
    ],
    ids=["another", "one more", "not there"],
)  # fmt: skip
def test_layers_that_the_configuration_does_not_name(tmp_path, options, problem):
    assert findings(save(tmp_path, **options)) == [problem]


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
    return gzip.compress(layer[:700]) + gzip.compress(layer[700:])


def frames(layer):
    return zstd.compress(layer[:700]) + zstd.compress(layer[700:])


PACKS = pytest.mark.parametrize("pack", [gzip.compress, members, zstd.compress, frames])


@PACKS
def test_compressed_layers_are_read_to_their_end(tmp_path, pack):
    layer = tar({f"{n}": bytes(600) for n in range(9)} | FILES)

    archive = read_archive(save(tmp_path, layer, pack=pack))

    assert (archive.problems, archive.doubts) == ((), ())
    assert archive.unpacked_bytes == 9 * 600 + 2 + len(FILES["workspace/predict.sh"])


@PACKS
def test_bytes_behind_the_first_member_count_for_the_limit(tmp_path, monkeypatch, pack):
    """What is behind the first member, or frame, counts as well."""
    monkeypatch.setattr(strict, "UNPACKED_BYTES", 2**20)

    file = save(tmp_path, tar(FILES) + bytes(2**21), pack=pack)

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
    assert findings(save(tmp_path, pack=pack)) == [f"{OF_LAYER}{problem}"]


def test_a_layer_of_too_many_frames_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(strict, "MOST_ENTRIES", 50)

    file = save(tmp_path, pack=lambda x: zstd.compress(b"") * 60 + zstd.compress(x))

    assert findings(file) == [f"{OF_LAYER}{strict._END}"]


# --- Tar files --------------------------------------------------------------------


def header(kind=tarfile.REGTYPE, **fields):
    """The header of an entry, which may claim anything."""
    entry = tarfile.TarInfo("x")
    entry.type = kind
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


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
        (header(tarfile.GNUTYPE_SPARSE) + tar(FILES), "a file with holes (sparse)"),
        (sparse(), "a file with holes (sparse)"),
        (header(tarfile.XGLTYPE) + tar(FILES), "headers that only some programs"),
        (header(size=-512) + tar(FILES), "headers make no sense"),
        # tarfile takes either for the end; what is behind it would not be checked.
        (tar(FILES)[:512] + b"x" * 512 + tar(FILES), strict._END),
        (tar(FILES)[:512] + bytes(512) + tar(FILES), strict._END),
    ],
    ids=["sparse", "sparse PAX", "global", "negative", "no header", "one empty block"],
)
def test_tar_files_that_two_readers_read_differently(tmp_path, layer, problem):
    (found,) = findings(save(tmp_path, layer))

    assert found.startswith(OF_LAYER)
    assert problem in found


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", strict._END),
        (b"hello" * 1000, strict._END),
        (gzip.compress(tar(FILES))[:100], strict._END),
        (gzip.compress(b""), strict._END),
        (tar({"x": b"1"}), "it has no manifest.json: docker save has not written it"),
        (tar({"manifest.json": b"[" * 99999}), "it has no manifest.json"),
        # As by PowerShell: UTF-16 with its mark, line ends of Windows.
        ("\ufefflayers\r\n".encode("utf-16le"), "it begins with FF FE: the > of"),
        (gzip.compress(gzip.compress(tar(FILES))), "it is compressed by gzip twice"),
        (b"PK\x03\x04" + bytes(600), "it is a zip file"),
        (
            tar({"a/x.tar": tar({"manifest.json": b"[]"})}),
            "it holds the archive a/x.tar, and is none",
        ),
        (header(size=2**62), "it holds more than 128 GiB, or too many files"),
        # It would be read whole, and compresses to a few megabytes.
        (
            gzip.compress(header(tarfile.XHDTYPE, size=3 << 30) + bytes(2**16)),
            "a name in it is too long",
        ),
        # Which of them counts depends on who reads the archive.
        (
            tar({"manifest.json": b"[]"})[:1024] + tar({"manifest.json": b"[1]"}),
            "it holds two files manifest.json",
        ),
        (
            header(tarfile.FIFOTYPE)[:512] + tar(FILES),
            "it holds x, which is neither a file nor a folder",
        ),
    ],
    ids=["empty", "text", "cut", "gzip of nothing", "other tar", "deep",
         "PowerShell", "gzip twice", "zip", "tar in tar", "huge",
         "long name", "two files", "pipe"],
)  # fmt: skip
def test_files_that_are_no_archives(tmp_path, content, problem):
    (found,) = findings(sent(tmp_path, content))

    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("behind", "found"),
    [
        (bytes(2**19), []),
        (bytes(2**22), [BEHIND]),
        (tar({"manifest.json": OTHER}), [BEHIND]),
    ],
    ids=["a few zeros", "zeros without end", "another archive"],
)
def test_what_is_behind_an_archive(tmp_path, behind, found):
    content = save(tmp_path, compress=False).read_bytes()

    assert findings(sent(tmp_path, content + behind)) == found


def test_small_files_by_the_thousand_are_not_kept(tmp_path):
    more = {f"{n}.json": b"[" + bytes(2**22 - 1) for n in range(17)}

    (problem,) = findings(save(tmp_path, more=more))

    assert problem == "its small files take more than 64 MB"


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("MOST_ENTRIES", 100, "it holds more than 128 GiB, or too many files"),
        ("NOTED_BYTES", 20_000, "it has too many files, or their paths are too long"),
    ],
)
@pytest.mark.parametrize(
    "layer", [{f"{n}": "-> x" for n in range(99)}, {f".wh.{n}": b"" for n in range(99)}]
)
def test_a_layer_with_too_many_links_is_refused(
    tmp_path, monkeypatch, limit, value, problem, layer
):
    monkeypatch.setattr(strict, limit, value)

    assert findings(save(tmp_path, FILES | layer)) == [problem]
