"""Every format, stored type, byte order and kind of damage, with the outcome."""

import bz2
import contextlib
import gzip
import lzma
import tracemalloc
from pathlib import Path
from unittest import mock

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.challenge.formats import FORMATS, SUFFIXES, case_name
from flare.common.errors import InputError
from flare.evaluation.errors import (
    ROUND,
    DamagedFileError,
    FileFormatError,
    FractionError,
)
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.nifti import write_label_map
from flare.evaluation.labelmaps.reading import PIECE_BYTES
from flare.evaluation.submission.find import LabelMapFile
from tests.builders import (
    AFFINE,
    ORGANS,
    ROOT,
    SPACING,
    error_of,
    metaimage_bytes,
    nifti_bytes,
    nrrd_bytes,
    organ_boxes,
)
from tests.builders.errors import told

KINDS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
TYPES = tuple(order + kind for kind in KINDS for order in "<>")
LPS = np.array([-1, -1, 1])
GOOD = nifti_bytes(organ_boxes())


def plain_nifti(labels, *, voxels=None, **keywords):
    content = nifti_bytes(labels, **keywords)
    return content if voxels is None else content[:352] + voxels


def packed_nifti(labels, **keywords):
    return gzip.compress(plain_nifti(labels, **keywords), mtime=0)


def plain(make):
    return lambda labels, **keywords: make(labels, compressed=False, **keywords)


MAKERS = {
    "nii.gz": packed_nifti,
    "nii": plain_nifti,
    "mha, zlib": metaimage_bytes,
    "mha, raw": plain(metaimage_bytes),
    "nrrd, gzip": nrrd_bytes,
    "nrrd, raw": plain(nrrd_bytes),
}
COMPRESSED = ("nii.gz", "mha, zlib", "nrrd, gzip")


@pytest.fixture
def read(tmp_path):
    def read_bytes(content, name="x", known=ORGANS):
        path = tmp_path / name
        path.write_bytes(content)
        file = LabelMapFile(case="", path=path, name=name)
        found = file.read_labels(known)
        assert file.read_grid() == found.grid
        return found

    return read_bytes


# --- What is written is read ------------------------------------------------------


def numbers(values):
    return " ".join(repr(float(value)) for value in np.ravel(values))


def placed(name, labels, axes, sizes, origin, dtype):
    """A file whose axes x, y, z point to rows of `axes`, in RAS as the origin in mm."""
    if name.startswith("nii"):
        affine = np.eye(4)
        affine[:3] = np.column_stack([(axes * sizes[:, np.newaxis]).T, origin])
        return MAKERS[name](labels, dtype=dtype, affine=affine, spacing=sizes[::-1])
    if name.startswith("mha"):
        fields = {"TransformMatrix": axes * LPS, "Offset": origin * LPS}
        fields |= {"ElementSpacing": sizes}
        fields = {key: numbers(value) for key, value in fields.items()}
    else:
        rows = [f"({','.join(numbers(r).split())})" for r in axes * sizes[:, None]]
        fields = {"space directions": " ".join(rows), "space": "RAS"}
        fields |= {"space origin": f"({','.join(numbers(origin).split())})"}
    return MAKERS[name](labels, dtype=dtype, **fields)


@settings(max_examples=80)
@given(
    name=st.sampled_from(list(MAKERS)),
    dtype=st.sampled_from(TYPES),
    shape=st.tuples(*[st.integers(1, 7)] * 3),
    angles=st.tuples(*[st.sampled_from([0, 0.01, -0.3, 1.5])] * 3),
    signs=st.tuples(*[st.sampled_from([-1, 1])] * 3),
    sizes=st.tuples(*[st.sampled_from([0.1, 0.7421875, 0.8, 2.5, 12])] * 3),
    origin=st.tuples(*[st.floats(-2000, 2000, width=32)] * 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_is_written_is_read(
    read, name, dtype, shape, angles, signs, sizes, origin, seed
):
    """Labels, size, spacing and place of every format, type and orientation."""
    labels = np.random.default_rng(seed).integers(0, 5, shape).astype(np.uint8)
    turn = np.array(sitk.Euler3DTransform((0, 0, 0), *angles).GetMatrix())
    axes, sizes = turn.reshape(3, 3).T * np.array(signs)[:, None], np.array(sizes)

    found = read(placed(name, labels, axes, sizes, np.array(origin), dtype))

    np.testing.assert_array_equal(found.labels, labels)
    assert (found.labels.dtype, found.unknown) == (np.uint8, ())
    assert found.present == tuple(n for n in ORGANS if (labels == n).any())
    assert found.grid.shape == shape
    np.testing.assert_allclose(found.grid.spacing, sizes[::-1], rtol=1e-6)
    affine = np.column_stack([(axes * sizes[:, None]).T, origin])
    np.testing.assert_allclose(found.grid.affine, affine, rtol=1e-6, atol=2e-4)


def test_what_we_write_is_read_by_everybody(tmp_path):
    affine = tuple(map(tuple, AFFINE[:3]))
    grid = Grid(shape=(10, 16, 20), spacing=SPACING, affine=affine)
    files = tmp_path / "x.nii.gz", tmp_path / "y.nii.gz"
    for path in files:
        write_label_map(path, organ_boxes(), grid)

    image, other = sitk.ReadImage(files[0]), nib.load(files[0])

    np.testing.assert_array_equal(sitk.GetArrayFromImage(image), organ_boxes())
    np.testing.assert_allclose(image.GetOrigin(), (-90, -110, -300), rtol=1e-6)
    np.testing.assert_allclose(other.affine, AFFINE, rtol=1e-6)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("end", ["", *SUFFIXES, ".NII", ".Nii.Gz", ".MHA"])
def test_the_content_decides_and_not_the_name(read, end):
    """Every extension in every spelling, also on a file of another format."""
    assert case_name(Path(f"a/b.c/C.d{end}")) == ("C.d" if end else None)
    for make in MAKERS.values():
        found = read(make(organ_boxes()), f"C{end}").labels
        np.testing.assert_array_equal(found, organ_boxes())


def test_a_format_has_suffixes_of_its_own():
    """None ends like one of another format, or like one that comes later."""
    every = [suffix for each in FORMATS for suffix in each.suffixes]
    for place, suffix in enumerate(every):
        assert not any(other.endswith(suffix) for other in every[place + 1 :])
    tried = {f".{name.partition(',')[0]}" for name in MAKERS}
    assert tried | {".npz", ".seg.nrrd"} == {*every}, "each is damaged below"
    assert case_name(Path("C.npz")) is None
    assert case_name(Path("C.npz"), may_be_npz=True) == "C"


def test_participants_are_told_of_every_format():
    text = (ROOT / "docs" / "participants" / "submission.md").read_text()

    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in text] == []


DIRECTIONS = {"space directions": None}
UNPLACED = {"space": None, "space origin": None, **DIRECTIONS}
ENDS = {"spacings": "0.8 0.7 2.5", "axis mins": "-100 -50 -200", **UNPLACED}
LONE = {"sizes": "1 20 16 10", "space origin": "(1,2,3)",
        "space directions": "none (0.8,0,0) (0,0.8,0) (0,0,2.5)"}  # fmt: skip
LAST = {"sizes": "20 16 10 1", "space origin": "(1,2,3)",
        "space directions": "(0.8,0,0) (0,0.8,0) (0,0,2.5) none"}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "spacing", "origin"),
    [
        (nrrd_bytes(organ_boxes(), space="LAS", space_origin="(1,2,3)"), SPACING,
         (-1, 2, 3)),
        (nrrd_bytes(organ_boxes(), space=None, space_origin="(1,2,3)"), SPACING,
         (-1, -2, 3)),
        (nrrd_bytes(organ_boxes(), space_origin=None), SPACING, (0, 0, 0)),
        (metaimage_bytes(organ_boxes(), Position="1 2 3", Offset=""), SPACING,
         (-1, -2, 3)),
        (nrrd_bytes(organ_boxes(), spacings="0.8 0.7 2.5", **DIRECTIONS),
         (2.5, 0.7, 0.8), None),
        (nrrd_bytes(organ_boxes(), **ENDS), (2.5, 0.7, 0.8), (99.6, 49.65, -198.75)),
        (nrrd_bytes(organ_boxes(), centers="node cell node", **ENDS), (2.5, 0.7, 0.8),
         (100, 49.65, -200)),
        (nrrd_bytes(organ_boxes(), **ENDS | {"axis mins": "nan nan nan"}),
         (2.5, 0.7, 0.8), (0, 0, 0)),
        (nrrd_bytes(organ_boxes(), **LONE), SPACING, (-1, -2, 3)),
        (nrrd_bytes(organ_boxes(), **LAST), SPACING, (-1, -2, 3)),
        (metaimage_bytes(organ_boxes(), ElementSpacing=""), (1, 1, 1), None),
        (nifti_bytes(organ_boxes(), spacing=(-2.5, 0.5, -0.25)), (2.5, 0.5, 0.25),
         None),
    ],
    ids=range(12),
)  # fmt: skip
def test_places_and_sizes_that_are_told_in_other_ways(read, content, spacing, origin):
    """Positions are turned to RAS; those of NRRD are as SimpleITK reads them."""
    found = read(content).grid

    assert found.spacing == spacing
    assert origin in (None, tuple(np.array(found.affine)[:, 3]))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 160), (1, 160, 20)), ((3200,), (1, 1, 3200))]
    + [((20, 16, 10, *[1] * more), (10, 16, 20)) for more in (1, 4)],
)
@pytest.mark.parametrize("version", [1, 2])
def test_missing_axes_and_further_ones_of_length_one(read, shape, expected, version):
    found = read(nifti_bytes(organ_boxes(), shape=shape, version=version))

    np.testing.assert_array_equal(found.labels, organ_boxes().reshape(expected))


@pytest.mark.parametrize(
    ("factor", "more", "slope", "intercept"),
    [(1, 0, 1.0, 0.0), (1, 0, 0.0, 7.0), (1, 0, float("nan"), 0.0), (2, 4, 0.5, -2.0)],
)
@pytest.mark.parametrize("dtype", ["<u1", ">i2", "<f4"])
def test_stored_values_are_scaled_as_the_header_says(
    read, factor, more, slope, intercept, dtype
):
    """A slope of 0, or of no number, is none at all."""
    stored = organ_boxes() * factor + more
    found = read(nifti_bytes(stored, dtype=dtype, slope=slope, intercept=intercept))

    np.testing.assert_array_equal(found.labels, organ_boxes())


def test_a_wide_type_is_read_in_pieces_and_takes_no_more_memory(tmp_path):
    """Pieces meet within rows; 64-bit numbers do not take eight times the memory."""
    random = np.random.default_rng(5)
    labels = np.zeros((16, 401, 500), dtype=np.uint8)
    labels[:, ::20] = random.integers(0, 5, size=(16, 21, 500))
    peaks = {}
    for dtype in ("u1", "<f8"):
        path = tmp_path / f"{dtype[1:]}.nii.gz"
        path.write_bytes(gzip.compress(nifti_bytes(labels, dtype=dtype), 1))
        tracemalloc.start()
        found = LabelMapFile(case="", path=path, name="x").read_labels(ORGANS)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        np.testing.assert_array_equal(found.labels, labels)

    assert labels.nbytes > 3 * PIECE_BYTES
    assert peaks["<f8"] < peaks["u1"] + 4 * PIECE_BYTES


# --- Labels that are not known, and fractions -------------------------------------


@st.composite
def stored_values(draw):
    """A stored type, and a whole number that it holds exactly."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    info = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    edges = [5, 255, 256, 257, 260, 1025, 32766, -1, -128, -255]
    value = draw(st.sampled_from(edges) | st.integers(-(2**24), 2**24))
    if dtype.kind == "f" or info.min <= value <= info.max:
        return dtype, value
    return dtype, int(info.max)


@settings(max_examples=60)
@given(stored=stored_values(), name=st.sampled_from(list(MAKERS)))
def test_an_unknown_label_is_told_and_never_wraps(read, stored, name):
    """257 is not 1, 256 is not 0, and -255 is not 1."""
    dtype, value = stored
    labels = organ_boxes().astype(dtype)
    labels[0, 0, 0] = value

    found = read(MAKERS[name](labels, dtype=dtype.str))

    expected = organ_boxes()
    expected[0, 0, 0] = value if value in ORGANS else 0
    assert found.unknown == (() if value in (0, *ORGANS) else (value,))
    np.testing.assert_array_equal(found.labels, expected)


def test_of_very_many_unknown_labels_the_first_are_kept(read):
    labels = np.arange(2 * 30 * 40).reshape(2, 30, 40)

    assert read(nifti_bytes(labels, dtype="<i4")).unknown == tuple(range(256, 276))


@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
@pytest.mark.parametrize(
    ("value", "text", "is_rounded"),
    [
        (0.5, "0.5", False),
        (0.9999, "0.9999", True),
        (1.00392, "1.00392", True),
        (13.13, "13.13", False),
        (1e-3, "0.001", True),
        (1.02, "1.02", False),
        (1.999998, "1.999998", True),
        (300.25, "300.25", False),
        *((value, str(value), False) for value in (np.nan, np.inf, -np.inf)),
    ],
)
def test_fractions_are_refused(read, dtype, value, text, is_rounded):
    """Labels that were scaled, by 1 % at most, are rounded; others are not."""
    labels = organ_boxes().astype(np.float64)
    labels[9, 15, 19] = value

    error = error_of(FractionError, read, nifti_bytes(labels, dtype=dtype))

    assert error.problem == f"voxels are not whole numbers (found {text})"
    assert (error.remedy == ROUND) == is_rounded


@pytest.mark.parametrize("dtype", [np.int16, np.uint8])
def test_what_nibabel_scales_into_another_type_is_rounded(read, dtype):
    """Labels of floating point under a header of integers, as `get_fdata` gives."""
    image = nib.Nifti1Image(organ_boxes().T.astype(np.float64), AFFINE)
    image.header.set_data_dtype(dtype)

    error = error_of(FractionError, read, image.to_bytes())

    assert error.remedy == ROUND
    values = np.unique(nib.Nifti1Image.from_bytes(image.to_bytes()).get_fdata())
    assert f"(found {values[values != 0][0]:.6g})" in error.problem


def test_a_slope_that_makes_fractions_is_refused(read):
    content = nifti_bytes(organ_boxes(), dtype="u1", slope=0.3, intercept=0)

    problem = error_of(FractionError, read, content).problem
    assert problem.endswith("(found 0.3) after scaling by scl_slope 0.3")


# --- Damage -----------------------------------------------------------------------

EARLY = "its compressed data end early"
WRONG = "its compressed data do not fit their checksum"
BEHIND = "there are other data behind its compressed data"
FEWER = "it holds fewer voxels than its header says"
MORE = "it holds more voxels than its header says"
HEADER = "it ends within its header"
UNNOTICED = None
"""Raw voxels have no checksum: only their number can be checked."""


def flip(content, position):
    damaged = bytearray(content)
    damaged[position] ^= 0x10
    return bytes(damaged)


DAMAGE = {
    # what happens to the file: (compressed, not compressed)
    "truncated early": (lambda content: content[:60], EARLY, HEADER),
    "truncated late": (lambda content: content[:-40], EARLY, FEWER),
    "truncated by one byte": (lambda content: content[:-1], EARLY, FEWER),
    "bit flipped in the data": (lambda c: flip(c, -60), WRONG, UNNOTICED),
    # The last four bytes are a length (gzip) or a checksum (zlib).
    "bit flipped in the trailer": (lambda c: flip(c, -4), WRONG, UNNOTICED),
    "bit flipped at the end": (lambda c: flip(c, -1), WRONG, UNNOTICED),
    "empty": (lambda _: b"", "the file is empty", "the file is empty"),
    "trailing bytes": (lambda content: content + b"more", BEHIND, MORE),
}


def noisy_labels():
    """Labels that do not compress well, so that hardly any bit is redundant."""
    return np.random.default_rng(4).integers(0, 5, (9, 10, 11)).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["u1", ">i2", "<f4"])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", MAKERS)
def test_a_damaged_file_is_refused_and_told_as_such(read, name, damage, dtype):
    break_it, compressed, raw = DAMAGE[damage]
    content = break_it(MAKERS[name](noisy_labels(), dtype=dtype))
    problem = compressed if name in COMPRESSED else raw
    if damage == "truncated early" and name != "nii.gz":
        problem = HEADER  # the header of the others is not compressed

    if problem is UNNOTICED:
        # ... unless the bit makes a label a fraction.
        with contextlib.suppress(FractionError):
            assert read(content).labels.shape == noisy_labels().shape
        return
    assert error_of(DamagedFileError, read, content).problem == problem


@pytest.mark.parametrize("dtype", ["u1", ">f8"])
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("cut", "problem"), [(-2, FEWER), (None, MORE)])
def test_a_file_with_a_voxel_too_few_or_too_many_is_refused(
    read, name, dtype, cut, problem
):
    """Properly compressed, but one voxel too few or too many."""
    labels = noisy_labels()
    voxels = np.append(labels.ravel(), 0).astype(dtype)[:cut]
    content = MAKERS[name](labels, dtype=dtype, voxels=voxels.tobytes())

    assert error_of(DamagedFileError, read, content).problem == problem


@pytest.mark.parametrize("length", [400, 352, 350, 348, 347, 100])
def test_a_nifti_file_that_ends_in_its_header_or_extension(read, length):
    error = error_of(DamagedFileError, read, GOOD[:length])

    assert error.problem == (HEADER if length < 348 else FEWER)


# --- What is refused --------------------------------------------------------------


def patched(offset, kind, *values):
    """The good NIfTI file, packed, with other numbers in its header."""
    content = np.array(values, dtype=kind).tobytes()
    changed = GOOD[:offset] + content + GOOD[offset + len(content) :]
    return gzip.compress(changed, 1)


def mha(**changes):
    return metaimage_bytes(organ_boxes(), **changes)


def nrrd(**changes):
    return nrrd_bytes(organ_boxes(), **changes)


FOREIGN = "it is not a NIfTI, MetaImage or NRRD file"
SIZES = "its header has impossible numbers of voxels"
POSITIONS = "its header has positions that are not finite"
OFFSET = "its voxels cannot begin at byte "
NAN = float("nan")

KINDS_BY_START = {
    "a bzip2 file": bz2.compress(b"x"),
    "an xz file": lzma.compress(b"x"),
    "a zstd file": b"\x28\xb5\x2f\xfd\x04\x00\x09\x00\x00x",
    "a zip file": b"PK\x03\x04\x14\x00",
    "a RAR archive": b"Rar!\x1a\x07\x01\x00",
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\x00\x04",
    "a web page (HTML)": b"\n<!DOCTYPE html>\n<html>Not found</html>",
}
"""As the programs of their names write them; zstd's frame is by RFC 8878."""

REFUSED = {
    FOREIGN: [b"This is a text." * 50],
    **{
        f"it is {kind}, {FOREIGN.replace('it is not', 'expected')}": [start * 50]
        for kind, start in KINDS_BY_START.items()
    },
    **{
        f"it is {kind}": [gzip.compress(start * 50)]
        for kind, start in KINDS_BY_START.items()
    },
    "it is a tar archive": [gzip.compress(b"x" * 257 + b"ustar\x0000" * 40)],
    "it is compressed by gzip twice": [gzip.compress(gzip.compress(GOOD))],
    "it is not a NIfTI file": [
        gzip.compress(b"hello" * 200),
        gzip.compress(b""),
    ],
    "it is not a NIfTI file with its voxels inside": [patched(344, "S4", b"ni1")],
    SIZES: [
        patched(40, "<i2", 3, 0, 16, 10),
        patched(40, "<i2", 3, -20, 16, 10),
        patched(40, "<i2", 8),
        patched(40, "<i2", 0),
        mha(DimSize="20 16 -10"),
    ],
    "it has 4 dimensions (20 x 16 x 5 x 2), expected 3": [
        patched(40, "<i2", 4, 20, 16, 5, 2)
    ],
    "its voxels are colours (RGB), expected numbers": [patched(70, "<i2", 128, 24)],
    "its voxels are colours (RGBA), expected numbers": [patched(70, "<i2", 2304, 32)],
    "its voxels are of type complex64, expected numbers": [patched(70, "<i2", 32, 64)],
    "its voxels have the unknown type 999": [patched(70, "<i2", 999, 8)],
    "its voxels have the unknown type 0": [patched(70, "<i2", 0, 0)],
    "its voxels have the unknown type 1": [patched(70, "<i2", 1, 1)],
    "its voxels have the unknown type 1536": [patched(70, "<i2", 1536, 128)],
    "its header has an impossible scl_inter": [patched(112, "<f4", 1, np.inf)],
    f"{OFFSET}0": [patched(108, "<f4", 0)],
    f"{OFFSET}351": [patched(108, "<f4", 351)],
    f"{OFFSET}999999995904": [patched(108, "<f4", 1e12)],
    f"{OFFSET}nan": [patched(108, "<f4", NAN)],
    POSITIONS: [
        patched(280, "<f4", NAN),
        patched(80, "<f4", np.inf),
        mha(Offset="nan 0 0"),
        nrrd(**{"space directions": ""}),
    ],
    "its header has impossible positions": [patched(292, "<f4", 2e9)],
    "its header has an impossible orientation": [
        patched(252, "<i2", 1, 0, *np.float32([2, 2, 2]).view("<i2")),
    ],
    "its header has 3 numbers for spacedirections, expected 9": [
        nrrd(**{"space directions": "(1,0,0)"})
    ],
    "its voxels are in another file": [
        mha(ElementDataFile="x.raw"),
        nrrd(data_file="x.raw"),
    ],
    "its voxels are written as text": [mha(BinaryData="False")],
    "its voxels have several channels": [mha(ElementNumberOfChannels=3)],
    "its header has a HeaderSize": [mha(HeaderSize=9)],
    "its voxels are of type MET_STRING, expected numbers": [
        mha(ElementType="MET_STRING")
    ],
    "its header has 3 numbers for ElementSpacing, expected 2": [mha(DimSize="20 16")],
    "its header has 1 number for ElementSpacing, expected 3": [mha(ElementSpacing=1)],
    "its header has a b c where numbers should be": [mha(Offset="a b c")],
    "its header is too long": [
        mha(Comment="x" * 20_000),
        b"ObjectType = Image\n" * 2000,
        b"NRRD0004\n" + b"# a comment\n" * 2000,
    ],
    "its header has a byteskip": [nrrd(byte_skip="-1")],
    "its header has a lineskip": [nrrd(line_skip="1")],
    "its encoding is bzip2, expected gzip or raw": [nrrd(encoding="bzip2")],
    "its voxels are of type block, expected numbers": [nrrd(type="block")],
    "its space is scanner-xyz, expected LPS or RAS": [nrrd(space="scanner-xyz")],
    "it has 4 dimensions (5 x 20 x 16 x 10), expected 3": [nrrd(sizes="5 20 16 10")],
    ("it has 4 dimensions (2 x 20 x 16 x 10), expected 3"): [nrrd(sizes="2 20 16 10")],
    "its header has none  1 0 0  where numbers should be": [
        nrrd(**{"space directions": "none (1,0,0)"})
    ],
    "its segments lie in layers": [
        nrrd(sizes="2 20 16 5").replace(b"# a comment", b"Segment0_ID:=Segment_1")
    ],
    "its header has ends of axes, and no spacings": [
        nrrd(axis_mins="0 0 0", axis_maxs="16 12.8 25", **UNPLACED),
        nrrd(axis_maxs="16 12.8 25", **UNPLACED),
    ],
}
"""Files by what is said of them."""


@pytest.mark.parametrize(
    ("problem", "content"),
    [(problem, each) for problem, files in REFUSED.items() for each in files],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_what_is_not_a_label_map_is_refused(read, problem, content):
    error = error_of(FileFormatError, read, content)

    assert (error.file, error.problem) == ("x", problem)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_file_that_cannot_be_read_is_not_called_damaged(
    tmp_path, monkeypatch, is_there
):
    """Also where tests run as root, who may read everything."""
    path = tmp_path / "x.nii.gz"
    if is_there:
        path.write_bytes(GOOD)
        denied = PermissionError(13, "Permission denied")
        monkeypatch.setattr("os.open", mock.Mock(side_effect=denied))

    file = LabelMapFile(case="", path=path, name=path.name)

    error = error_of(InputError, file.read_grid)
    assert told(error) == ("H01", "x.nii.gz")
    assert error.problem.startswith("x.nii.gz: it cannot be read (")
