"""Every format, stored type, byte order and kind of damage, with what comes of it."""

import contextlib
import gzip
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk

from flare.challenge.formats import case_name
from flare.evaluation.errors import DamagedFileError, FileFormatError, FractionError
from flare.evaluation.labelmaps.reading import read_grid, read_label_map
from tests.builders import ORGANS, metaimage_bytes, nifti_bytes, nrrd_bytes, organ_boxes
from tests.builders.fewer import few_fast

TYPES = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def packed_nifti(labels, *, voxels=None, **keywords):
    """A gzipped NIfTI file."""
    return gzip.compress(plain_nifti(labels, voxels=voxels, **keywords), mtime=0)


def plain_nifti(labels, *, voxels=None, **keywords):
    """A NIfTI file as it is."""
    content = nifti_bytes(labels, **keywords)
    return content if voxels is None else content[:352] + voxels


def plain(make):
    """The same format without compression."""
    return lambda labels, **keywords: make(labels, compressed=False, **keywords)


FORMATS = {
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
    """Read a label map from the bytes of its file."""

    def read_bytes(content, name="x"):
        path = tmp_path / name
        path.write_bytes(content)
        return read_label_map(path, name, ORGANS)

    return read_bytes


# --- What is accepted -------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    few_fast(
        [*(f"<{kind}" for kind in TYPES), *(f">{kind}" for kind in TYPES)],
        fast=[*range(len(TYPES)), -8, -1],
    ),
)
@pytest.mark.parametrize("make", FORMATS.values(), ids=list(FORMATS))
def test_every_format_gives_the_same_labels_and_grid(read, make, dtype):
    expected = read(packed_nifti(organ_boxes()))

    found = read(make(organ_boxes(), dtype=dtype))

    np.testing.assert_array_equal(found.labels, organ_boxes())
    assert found.grid.corner_shift(expected.grid) < 1e-4
    np.testing.assert_allclose(found.grid.spacing, expected.grid.spacing, rtol=1e-7)


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".mha", ".nrrd"])
@pytest.mark.parametrize("compressed", [True, False])
def test_tilted_grids_are_those_that_simpleitk_sees(tmp_path, suffix, compressed):
    """Rotated about all axes, with a spacing of its own for each."""
    turn = sitk.Euler3DTransform((0, 0, 0), 0.3, -0.2, 0.5).GetMatrix()
    image = sitk.GetImageFromArray(np.zeros((4, 6, 9), dtype=np.uint8))
    image.SetSpacing((0.7421875, 0.8, 2.5))
    image.SetOrigin((-12.5, 101.25, -730.0))
    image.SetDirection(turn)
    path = tmp_path / f"x{suffix}"
    sitk.WriteImage(image, path, useCompression=compressed)

    grid = read_grid(path, path.name)

    assert grid.shape == (4, 6, 9)
    for voxel in ((0, 0, 0), (8, 0, 0), (0, 5, 0), (8, 5, 3)):
        left, back, top = image.TransformIndexToPhysicalPoint(voxel)
        found = np.array(grid.affine) @ (*voxel, 1)
        np.testing.assert_allclose(found, (-left, -back, top), atol=1e-3)
    np.testing.assert_allclose(grid.spacing, (2.5, 0.8, 0.7421875), rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["C.nii", "C.NII", "C.nii.gz", "C.NII.GZ", "C.Nii.Gz", "C.mha", "C.MHA", "C.nrrd"],
)
def test_the_content_decides_and_not_the_name(read, name):
    """Every extension in every spelling, also on a file of another format."""
    assert case_name(Path(name)) == "C"
    for make in FORMATS.values():
        found = read(make(organ_boxes()), name).labels
        np.testing.assert_array_equal(found, organ_boxes())


@pytest.mark.parametrize(
    ("content", "origin"),
    [
        (nrrd_bytes(organ_boxes(), space="RAS", space_origin="(1,2,3)"), (1, 2, 3)),
        (nrrd_bytes(organ_boxes(), space="LAS", space_origin="(1,2,3)"), (-1, 2, 3)),
        (nrrd_bytes(organ_boxes(), space=None, space_origin="(1,2,3)"), (-1, -2, 3)),
        (metaimage_bytes(organ_boxes(), Offset="1 2 3"), (-1, -2, 3)),
    ],
)
def test_positions_are_turned_to_ras(read, content, origin):
    affine = np.array(read(content).grid.affine)

    assert tuple(affine[:, 3]) == origin


def test_a_nrrd_file_with_spacings_alone(read):
    content = nrrd_bytes(
        organ_boxes(), spacings="0.8 0.7 2.5", **{"space directions": None}
    )

    assert read(content).grid.spacing == (2.5, 0.7, 0.8)


# --- Damage -----------------------------------------------------------------------

EARLY = (DamagedFileError, "its compressed data end early")
WRONG = (DamagedFileError, "its compressed data do not fit their checksum")
BEHIND = (DamagedFileError, "there are other data behind its compressed data")
FEWER = (DamagedFileError, "it holds fewer voxels than its header says")
MORE = (DamagedFileError, "it holds more voxels than its header says")
HEADER = (DamagedFileError, "it ends within its header")
EMPTY = (DamagedFileError, "the file is empty")
FOREIGN = (FileFormatError, "it is not a NIfTI, MetaImage or NRRD file")
UNNOTICED = None
"""Raw voxels have no checksum: only their number can be checked."""


def flip(content, position):
    """Flip a bit."""
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
    "empty": (lambda _: b"", EMPTY, EMPTY),
    "foreign": (lambda _: b"<html>Not found</html>" * 50, FOREIGN, FOREIGN),
    "trailing bytes": (lambda content: content + b"more", BEHIND, MORE),
}


def noisy_labels():
    """Labels that do not compress well, so that hardly any bit is redundant."""
    return np.random.default_rng(4).integers(0, 5, (9, 10, 11)).astype(np.uint8)


def outcome(damage, name, dtype):
    """The expected error; where it is not that of the table, the reason is given."""
    _, compressed, raw = DAMAGE[damage]
    if name not in COMPRESSED:
        return raw
    if damage == "truncated early" and name != "nii.gz":
        return HEADER  # the header of the others is not compressed
    return compressed


@pytest.mark.parametrize(
    "dtype", few_fast(["u1", "<i2", ">i2", "<f4", ">f8"], fast=[1])
)
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FORMATS)
def test_damage(read, name, damage, dtype):
    content = DAMAGE[damage][0](FORMATS[name](noisy_labels(), dtype=dtype))
    expected = outcome(damage, name, dtype)

    if expected is UNNOTICED:
        # ... unless the bit makes a label a fraction.
        with contextlib.suppress(FractionError):
            assert read(content).labels.shape == noisy_labels().shape
        return
    kind, problem = expected
    with pytest.raises(kind) as caught:
        read(content)
    assert type(caught.value) is kind
    assert caught.value.problem == problem


@pytest.mark.parametrize("dtype", few_fast(["u1", "<i2", ">f8"], fast=[-1]))
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("cut", "expected"), [(-1, FEWER), (None, MORE)])
def test_a_wrong_number_of_voxels(read, name, dtype, cut, expected):
    """Properly compressed, but one voxel too few or too many."""
    labels = noisy_labels()
    voxels = np.append(labels.ravel(), 0).astype(dtype)
    voxels = voxels[:-2] if cut else voxels

    with pytest.raises(DamagedFileError) as caught:
        read(FORMATS[name](labels, dtype=dtype, voxels=voxels.tobytes()))

    assert caught.value.problem == expected[1]


# --- What is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            metaimage_bytes(organ_boxes(), ElementDataFile="x.raw"),
            "its voxels are in another file",
        ),
        (
            metaimage_bytes(organ_boxes(), BinaryData="False"),
            "its voxels are written as text",
        ),
        (
            metaimage_bytes(organ_boxes(), ElementNumberOfChannels=3),
            "its voxels have several channels",
        ),
        (metaimage_bytes(organ_boxes(), HeaderSize=9), "its header has a HeaderSize"),
        (
            metaimage_bytes(organ_boxes(), ElementType="MET_STRING"),
            "its voxels are of type MET_STRING, expected numbers",
        ),
        (
            metaimage_bytes(organ_boxes(), DimSize="20 16"),
            "its header has 3 numbers for ElementSpacing, expected 2",
        ),
        (
            metaimage_bytes(organ_boxes(), DimSize="20 16 -10"),
            "its header has impossible numbers of voxels",
        ),
        (
            metaimage_bytes(organ_boxes(), Offset="a b c"),
            "its header has a b c where numbers should be",
        ),
        (
            metaimage_bytes(organ_boxes(), Offset="nan 0 0"),
            "its header has positions that are not finite",
        ),
        (
            metaimage_bytes(organ_boxes(), Comment="x" * 20_000),
            "its header is too long",
        ),
        (b"ObjectType = Image\n" * 2000, "its header is too long"),
        (
            nrrd_bytes(organ_boxes(), data_file="x.raw"),
            "its voxels are in another file",
        ),
        (nrrd_bytes(organ_boxes(), byte_skip="-1"), "its header has a byteskip"),
        (nrrd_bytes(organ_boxes(), line_skip="1"), "its header has a lineskip"),
        (
            nrrd_bytes(organ_boxes(), encoding="bzip2"),
            "its encoding is bzip2, expected gzip or raw",
        ),
        (
            nrrd_bytes(organ_boxes(), type="block"),
            "its voxels are of type block, expected numbers",
        ),
        (
            nrrd_bytes(organ_boxes(), space="scanner-xyz"),
            "its space is scanner-xyz, expected LPS or RAS",
        ),
        (
            nrrd_bytes(organ_boxes(), sizes="5 20 16 10"),
            "it has 4 dimensions (5 x 20 x 16 x 10), expected 3",
        ),
        (
            nrrd_bytes(organ_boxes(), **{"space directions": "none (1,0,0)"}),
            "its header has none  1 0 0  where numbers should be",
        ),
        (
            nrrd_bytes(organ_boxes(), **{"space directions": "(1,0,0)"}),
            "its header has an impossible orientation",
        ),
    ],
)
def test_what_would_change_the_meaning_of_voxels_is_refused(read, content, problem):
    with pytest.raises(FileFormatError) as caught:
        read(content)

    assert caught.value.problem == problem
