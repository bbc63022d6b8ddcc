"""The kernel counts as NumPy does, to the last bit, and never outside of its arrays."""

import hashlib
import json
import re
import subprocess
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from flare.evaluation.metrics import kernel, pairs
from flare.evaluation.metrics.packed import PackedMap, PackedPair
from flare.evaluation.metrics.pairs import MapPair, map_of
from flare.evaluation.metrics.plain import PlainMap
from tests.builders import ROOT
from tests.conftest import need_tool
from tests.evaluation.metrics.drawn import BLOCK, PAIRS, digest, draw

FORMER = json.loads(Path(__file__).with_name("former_values.json").read_text())
SOURCE = ROOT / "flare" / "evaluation" / "metrics" / "kernel.c"
STARTS = [0] if kernel.kernel_problem() else range(0, PAIRS, 3 * BLOCK)
FLAGS = ("-std=c11", "-O2", "-g0", "-ffp-contract=off", "-fvisibility=hidden")

needs_kernel = pytest.mark.skipif(bool(kernel.kernel_problem()), reason="no kernel")


def compiled(request, file):
    """The kernel, compiled into a file."""
    command = [need_tool(request, "cc"), *FLAGS, "-shared", "-fPIC", "-o", file, SOURCE]
    subprocess.run(command, check=True)
    return file


def maps_of(labels):
    """A label map, packed and plain."""
    maps = PackedMap(labels.shape), PlainMap(labels.shape)
    for label_map in maps:
        for plane in labels:
            label_map.add(plane.reshape(-1).astype(np.uint8))
    return maps


@needs_kernel
def test_pairs_are_counted_as_by_numpy():
    """Voxels, surfels, their places, what is beyond, and what is how near."""
    for number in range(PAIRS):
        *masks, spacing, tolerance = draw(number)
        random = np.random.default_rng(number)
        label = int(random.integers(1, 256))  # among others
        arrays = [np.where(mask, label, random.integers(0, 4)) for mask in masks]
        both_ways = zip(*map(maps_of, arrays), strict=True)
        pairs = [MapPair(*maps, spacing).cut((label,)) for maps in both_ways]
        box = pairs[0].box
        assert box == pairs[1].box
        results = [[*pair.tally(tolerance)] for pair in pairs]
        if number % 12 == 0:  # NumPy takes a while
            part = slice(box[0].start, max(box[0].start + 1, box[0].stop - 1)), *box[1:]
            for pair, values in zip(pairs, results, strict=True):
                values += pair.tally(tolerance)  # the reference is counted by now
                values += replace(pair, box=part).tally(tolerance)
                values += chain.from_iterable(pair.surfels(tolerance))
                for near in pair.near(room=99):
                    values += [near.counts, *near.far]
        for of_kernel, of_numpy in zip(*results, strict=True):
            assert np.array_equal(of_kernel, of_numpy), number


@pytest.mark.parametrize("start", STARTS)
def test_values_are_those_of_the_way_before(start):
    """In whichever way it counts here: DSC, NSD, HD95 and ASSD, to the last bit."""
    assert digest(start) == FORMER[start // BLOCK]


@needs_kernel
@pytest.mark.parametrize("width", [1, 3, 4, 5, 63, 64, 65, 700])
@pytest.mark.parametrize("number", [1, 2, 256])
def test_what_was_packed_is_unpacked(width, number):
    """Rows of runs and rows of voxels; a run may go on through many rows."""
    random = np.random.default_rng(width)
    labels = random.integers(0, number, size=(3, 5, width)).astype(np.uint8)
    labels[1] = 7
    labels[2, :, width // 2 :] = 0

    packed_map, plain_map = maps_of(labels)

    for part in (slice(None), slice(1, 2), slice(2, 9), slice(3, 3)):
        assert np.array_equal(packed_map.slices(part), labels[part])
    assert packed_map.present == plain_map.present
    assert packed_map._items.nbytes <= labels.size + 4 * labels[..., 0].size * 4


@needs_kernel
@pytest.mark.parametrize("broken", ["starts", "items", "rows", "box"])
def test_a_broken_map_is_refused(broken):
    """Whatever it holds, no place outside of its arrays is touched."""
    labels = np.zeros((4, 6, 40), dtype=np.uint8)
    labels[1:3, 2:5, 10:30] = 1
    first, second = map_of(labels), map_of(labels)
    box = first.box((1,))
    if broken == "starts":
        second._starts[8] = 2**31
    elif broken == "items":
        second._map.item_count = 3
    elif broken == "rows":
        second._map.row_count = second._map.row_room = 5
    else:
        box = (slice(0, 5), *box[1:])

    with pytest.raises(ValueError, match=r"labels \(1,\) cannot be compared"):
        PackedPair((first, second), (1,), (1.0, 1.0, 1.0), box).tally(1.0)


@needs_kernel
def test_rows_that_are_missing_or_too_many_are_refused():
    label_map = PackedMap((1, 2, 5))
    with pytest.raises(ValueError, match="whole rows"):
        label_map.add(np.zeros(7, dtype=np.uint8))
    with pytest.raises(ValueError, match="when all rows are there"):
        label_map.slices(slice(None))
    label_map.add(np.zeros(10, dtype=np.uint8))
    with pytest.raises(ValueError, match="each once"):
        label_map.add(np.zeros(5, dtype=np.uint8))


@needs_kernel
def test_no_room_is_made_for_what_a_header_alone_promises():
    """A map of 2**38 voxels, of which the first row has come: 4,096 runs."""
    label_map = PackedMap((2**12, 2**12, 2**14))
    label_map.add(np.arange(2**14, dtype=np.uint8) // 4 % 2)
    assert label_map._items.nbytes <= 2**21


# --- Where it is used ---------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder in which the kernel is looked for anew."""
    monkeypatch.delenv(kernel.PLAIN, raising=False)
    monkeypatch.setattr(kernel, "__file__", str(tmp_path / "kernel.py"))
    kernel._library.cache_clear()
    yield tmp_path
    kernel._library.cache_clear()


@pytest.mark.parametrize(
    ("content", "variable", "problem"),
    [
        (None, "", "it was not compiled"),
        (b"no library", "", "it cannot be loaded ("),
        (b"no library", "1", "FLARE_PLAIN is set"),
    ],
)
def test_without_a_kernel_numpy_counts(folder, monkeypatch, content, variable, problem):
    monkeypatch.setenv(kernel.PLAIN, variable)
    if content:
        (folder / "_kernel.abi3.so").write_bytes(content)
    assert kernel.kernel_problem().startswith(problem)
    assert isinstance(map_of(np.zeros((1, 1, 1), dtype=np.uint8)), PlainMap)


def test_a_kernel_of_another_version_is_not_used(request, folder, monkeypatch):
    compiled(request, folder / "_kernel.abi3.so")
    assert kernel.kernel_problem() == ""
    kernel._library.cache_clear()
    monkeypatch.setattr(kernel, "VERSION", kernel.VERSION + 1)
    problem = f"it is of version {kernel.VERSION - 1}, expected {kernel.VERSION}"
    assert kernel.kernel_problem() == problem


def test_each_kernel_has_a_version_of_its_own():
    """So one that was compiled before a change is not used after it."""
    text = re.sub(r"VERSION = \d+", "VERSION", SOURCE.read_text("utf-8"))
    number = int(hashlib.sha256(text.encode()).hexdigest()[:7], 16)
    assert number == kernel.VERSION, f"write {number} into kernel.py and kernel.c"
    assert f"VERSION = {number}" in SOURCE.read_text("utf-8")


def test_rows_too_wide_for_a_packed_map_are_counted_by_numpy(monkeypatch):
    monkeypatch.setattr(pairs, "WIDEST", 2)
    assert isinstance(map_of(np.zeros((1, 1, 3), dtype=np.uint8)), PlainMap)


@pytest.mark.newest
def test_two_compilations_give_the_same_bytes_and_no_path(request, tmp_path):
    files = [compiled(request, tmp_path / name) for name in ("a.so", "b.so")]
    (content,) = {file.read_bytes() for file in files}
    assert str(ROOT).encode() not in content


def test_no_compiled_file_is_kept(request):
    """Neither in git nor in what the image is built from."""
    git = need_tool(request, "git")
    files = subprocess.check_output([git, "ls-files"], cwd=ROOT, text=True)
    assert not [name for name in files.split() if name.endswith((".so", ".pyd"))]
    assert "**/*.so" in (ROOT / ".dockerignore").read_text().split()
