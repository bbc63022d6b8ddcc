"""The work of reading an archive is bounded, whatever its author intends."""

import gzip
import io
import itertools
import posixpath
import random
import tarfile

import pytest

from flare.measuring.archive import strict
from flare.measuring.archive.image_tar import FileSystem, Kind, Layer
from flare.measuring.archive.model import read_model
from tests.builders.archives import FILES, findings, layer_of, save, tar
from tests.builders.models import WEIGHTS, entry, write_model

SENSELESS = "its headers make no sense"


def plain_at(layers, path):
    """The node at a path by going through all layers, as it is defined."""
    parts = path.split("/")
    heads = ["/".join(parts[: n + 1]) for n in range(1, len(parts))]
    for layer in reversed(layers):
        if path in layer.nodes:
            return layer.nodes[path]
        for head in heads:
            if head in layer.removed or posixpath.dirname(head) in layer.emptied:
                return None
            if layer.nodes.get(head, Kind.FOLDER) is not Kind.FOLDER:
                return None
    return None


def plain_resolve(layers, path):
    """The end of a path, with links followed one by one; None without one."""
    waiting, place, links = path.split("/")[::-1], "/", 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            place = posixpath.dirname(place)
        if part in ("", ".", ".."):
            continue
        here = posixpath.join(place, part)
        node = plain_at(layers, here)
        if not isinstance(node, str):
            place = here
            continue
        links += 1
        place = "/" if node.startswith("/") else place
        waiting += node.split("/")[::-1]
        if links > 40:
            return None
    return place


@pytest.mark.parametrize("seed", range(40))
def test_layers_together_hold_what_they_hold_one_by_one(seed):
    """Against a plain definition, on small trees where names collide often."""
    chance = random.Random(seed)
    names = "abc"
    depths = (1, 2, 3)
    paths = [
        "/" + "/".join(parts)
        for depth in depths
        for parts in itertools.product(names, repeat=depth)
    ]
    nodes = [Kind.FILE, Kind.FOLDER, Kind.FOLDER, b"x", "../b", "/a", "c/a", "."]
    layers = [
        Layer(
            nodes={path: chance.choice(nodes) for path in chance.sample(paths, 9)},
            removed=set(chance.sample(paths, chance.randint(0, 2))),
            emptied=set(chance.sample(["/", *paths], chance.randint(0, 1))),
        )
        for _ in range(4)
    ]
    layers = [*layers, layers[chance.randint(0, 3)]]
    files = FileSystem(layers)

    assert {p: files.at(p) for p in paths} == {p: plain_at(layers, p) for p in paths}
    for path in [*paths, "/a/../b/./c", "/../a/b/../../c"]:
        assert files.resolve(path) == plain_resolve(layers, path)


def counted(monkeypatch, owner, name):
    calls, function = [], getattr(owner, name)

    def call(*arguments):
        calls.append(arguments[-1])
        return function(*arguments)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_links_through_deep_folders_are_followed_folder_by_folder(
    tmp_path, monkeypatch
):
    """39 links into a folder 1,000 deep, below 124 layers, took hours.

    By hand: each of 39 links asks for 1,000 folders, and then each folder of the place
    for those above it, 1,000 x 1,001 / 2; however many layers there are.
    """
    folder = "/".join("a" * 1000)
    links = {f"{folder}/l{n}": f"-> /{folder}/l{n + 1}" for n in range(38)}
    links["workspace/inputs"] = f"-> /{folder}/l0"
    layers = [{**FILES, **links}, *({f"x{n}": b""} for n in range(124))]
    steps = counted(monkeypatch, FileSystem, "_lowest")

    findings(save(tmp_path, *layers))

    assert 39 * 1000 < len(steps) < 40 * 1000 + 1000 * 1001 // 2 + 10_000


def test_scripts_that_are_only_named_to_help_are_few(tmp_path, monkeypatch):
    files = {name: data for name, data in FILES.items() if "predict" not in name}
    scripts = {f"opt/{n:03}/predict.sh": b"x" for n in range(500)}
    paths = counted(monkeypatch, FileSystem, "at")

    (problem,) = findings(save(tmp_path, {**files, **scripts}))

    assert "but /opt/000/predict.sh" in problem
    assert sum(path.startswith("/opt/") for path in paths) == 100


def pax(content, number=1):
    layer = io.BytesIO()
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, len(content)
    for n in range(number):
        layer.write(header.tobuf() + content + bytes(-len(content) % 512))
        layer.write(tarfile.TarInfo(f"y{n}").tobuf())
    return layer.getvalue() + bytes(1024)


def test_a_pax_header_that_takes_long_is_refused_before_python_reads_it(
    tmp_path, monkeypatch
):
    read = counted(monkeypatch, tarfile.TarInfo, "_proc_pax")

    (problem,) = findings(save(tmp_path, FILES, pax(b"1" * 60_000)))

    assert problem.endswith(SENSELESS)
    assert read == []


def test_honest_pax_headers_are_read(tmp_path):
    """Long names, sizes, times, and bytes that are no text."""
    headers = {
        "mtime": "1700000000.123456789",
        "SCHILY.xattr.user.digits": "1" * 255,
        "comment": "a=b\nc",
    }
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        file = tarfile.TarInfo("ü/" * 100 + "x")
        file.pax_headers = headers
        archive.addfile(file)
    raw = pax(b"28 SCHILY.xattr.user.x=\xff\0\xfe\x80\n")

    assert findings(save(tmp_path, FILES, layer.getvalue(), raw)) == []


def test_headers_without_number_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(strict, "HEADER_BYTES", 2**20)

    (problem,) = findings(save(tmp_path, FILES, pax(b"11 path=ab\n", number=2100)))

    assert problem == "its headers take more than 1 MB"


FAR_LARGER = "its layers are far larger than it, even compressed"


def test_compressed_layers_that_become_small_again_are_not_unpacked(
    tmp_path, monkeypatch
):
    """Of a gzip member without content, 20 bytes are left: a million take a second.

    By hand: 7,000 layers of a million members fit in 128 GiB, and took two hours.
    """
    monkeypatch.setattr(strict, "PACKED_BYTES", 2**19, raising=False)
    members = gzip.compress(b"", mtime=0) * 30_000

    def pack(layer):
        return members + gzip.compress(layer)

    assert findings(save(tmp_path, FILES, pack=pack)) == [FAR_LARGER]
    monkeypatch.setattr(strict, "PACKED_BYTES", 2**20)
    assert findings(save(tmp_path, FILES, pack=pack)) == []


def test_what_goes_by_does_so_in_pieces_that_keep_their_memory(tmp_path, monkeypatch):
    """The allocator gives pieces of 128 KiB and more back to the system by default."""
    sizes = counted(monkeypatch, strict.Hashed, "read")

    file = save(tmp_path, FILES, {"a": bytes(2**22)}, pack=gzip.compress)
    assert findings(file) == []

    assert sum(sizes) > 2**22
    assert max(sizes) < 2**17


def test_honest_compressed_layers_are_no_smaller_in_the_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(strict, "PACKED_BYTES", 0, raising=False)
    weights = random.Random(1).randbytes(2**20)

    layers = (FILES, {"a": weights}, {"b": weights[::-1]})
    assert findings(save(tmp_path, *layers, pack=gzip.compress)) == []


def test_a_path_that_linux_does_not_know(tmp_path):
    assert findings(save(tmp_path, FILES, tar({"a/" * 2049: b""}))) == [
        "its layer 2 of 2 cannot be read: a name in it is too long"
    ]
    assert findings(save(tmp_path, FILES, tar({"a/" * 2040: b""}))) == []


def test_files_deep_in_a_model_do_not_ask_for_all_folders_above_each(
    tmp_path, monkeypatch
):
    """By hand: a thousand folders are entered, and each of 1,500 files asks for one."""
    folder = "/".join("a" * 1000)
    more = (entry(f"{folder}/{n}", b"") for n in range(1500))
    file = write_model(tmp_path, WEIGHTS, *more)
    folders = counted(monkeypatch, posixpath, "dirname")

    read_model(file)

    assert 1000 < len(folders) < 1000 + 10 * 1500


PIPE = tarfile.FIFOTYPE
LINK = tarfile.SYMTYPE
HARD = tarfile.LNKTYPE
FOLDER = tarfile.DIRTYPE


BELOW = "it holds /x/passwd, which lies below a link"
SENSELESS_PAX = [
    *(b"1" * 60_000, b"11 path=ab\n" + b"1" * 100, b"11 path=ab\n\0\0"),
    *(b"12 path=ab\n", b"10 path=ab\n", b"8 pathab\n", b"0 \n"),
    *(b"512 a=" + b"1" * 300 + b"\n", b"312 a=" + b"1" * 305 + b"\n"),
]
"""Python searched in the first for a second, and takes others in its own way."""


@pytest.mark.parametrize(
    ("layer", "problem"),
    [
        *((pax(content), SENSELESS) for content in SENSELESS_PAX),
        # Otherwise a pipe could become /etc/passwd, where nobody sees it.
        (layer_of([("etc", FOLDER, ""), ("x", LINK, "etc"), ("x/passwd", PIPE, "")]),
         BELOW),
        # The link that it was written through is gone at the end.
        (layer_of([("x", LINK, "etc"), ("x/passwd", PIPE, ""), ("x", FOLDER, "")]),
         BELOW),
        (layer_of([("y", LINK, "etc"), ("x", HARD, "y"), ("x/passwd", PIPE, "")]),
         BELOW),
        (layer_of([("x", LINK, "etc"), ("x/.wh.passwd", tarfile.REGTYPE, "")]), BELOW),
        (layer_of([("x", LINK, "dev"), ("dev/p", PIPE, ""), ("etc/passwd", HARD,
         "x/p")]), "it holds /etc/passwd, a hard link to nothing that is before it"),
    ],
)  # fmt: skip
def test_a_layer_that_engines_read_in_their_own_way_is_refused(
    tmp_path, layer, problem
):
    assert findings(save(tmp_path, FILES, layer)) == [
        f"its layer 2 of 2 cannot be read: {problem}"
    ]


def test_a_hard_link_is_what_it_was_when_it_was_made(tmp_path):
    entries = [("p", PIPE, ""), ("etc/passwd", HARD, "p"), ("p", tarfile.REGTYPE, "")]

    (problem,) = findings(save(tmp_path, FILES, layer_of(entries)))

    assert problem.startswith("its /etc/passwd is a pipe or a device")


def test_hard_links_to_files_are_files(tmp_path):
    files = {name: data for name, data in FILES.items() if name != "usr/bin/bash"}
    entries = [("usr/bin/b", tarfile.REGTYPE, ""), ("usr/bin/bash", HARD, "usr/bin/b")]

    assert findings(save(tmp_path, files, layer_of(entries))) == []
