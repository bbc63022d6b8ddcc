"""Reading: good files of every kind give the same labels, bad ones say why not."""

import gzip
import itertools
import tracemalloc
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk

from flare.challenge.formats import case_name
from flare.common.errors import InputError
from flare.evaluation.errors import DamagedFileError, FileFormatError, FractionError
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.nifti import write_label_map
from flare.evaluation.labelmaps.reading import PIECE_BYTES, read_grid, read_label_map
from tests.builders import (
    AFFINE,
    ORGANS,
    SPACING,
    nifti_bytes,
    organ_boxes,
    write_gzip,
    write_nifti,
)
from tests.builders.fewer import few_fast

TYPES = ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")


def read(path, known=ORGANS):
    return read_label_map(path, path.name, known)


# --- What is read -----------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_stored_type_gives_the_same_labels(tmp_path, kind, order, version):
    labels = organ_boxes()
    path = write_nifti(
        tmp_path / "x.nii.gz", labels, dtype=order + kind, version=version
    )

    label_map = read(path)

    assert label_map.labels.dtype == np.uint8
    np.testing.assert_array_equal(label_map.labels, labels)
    assert label_map.unknown == ()


@pytest.mark.parametrize(
    ("stored", "slope", "intercept"),
    [
        pytest.param(lambda labels: labels, 1.0, 0.0, id="slope 1"),
        pytest.param(lambda labels: labels, 0.0, 0.0, id="slope 0: none"),
        pytest.param(
            lambda labels: labels, 0.0, 7.0, id="slope 0: no intercept either"
        ),
        pytest.param(lambda labels: labels, float("nan"), 0.0, id="slope not a number"),
        pytest.param(lambda labels: labels * 2 + 4, 0.5, -2.0, id="slope 0.5"),
    ],
)
@pytest.mark.parametrize("dtype", ["<u1", "<i2", "<f4"])
def test_stored_values_are_scaled_as_the_header_says(
    tmp_path, stored, slope, intercept, dtype
):
    labels = organ_boxes()
    path = write_nifti(
        tmp_path / "x.nii.gz",
        stored(labels),
        dtype=dtype,
        slope=slope,
        intercept=intercept,
    )

    np.testing.assert_array_equal(read(path).labels, labels)


def test_axes_and_spacing_are_turned_once(tmp_path):
    """The file's x, y, z become z, y, x; the affine stays as in the file."""
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes())

    grid = read_grid(path, path.name)

    assert grid == read(path).grid
    assert grid.shape == (10, 16, 20)
    assert grid.spacing == tuple(float(np.float32(size)) for size in SPACING)
    np.testing.assert_array_equal(grid.affine, AFFINE[:3].astype(np.float32))


def test_each_axis_has_its_own_spacing(tmp_path):
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes(), spacing=(5.0, 0.5, 0.25))

    assert read_grid(path, path.name).spacing == (5.0, 0.5, 0.25)


def test_larger_than_a_piece(tmp_path):
    """Pieces of the stream meet where voxels are several bytes wide."""
    random = np.random.default_rng(5)
    labels = np.zeros((9, 300, 301), dtype=np.uint8)
    labels[:, ::20] = random.integers(0, 5, size=(9, 15, 301))
    assert labels.size * 8 > 3 * PIECE_BYTES

    for dtype in ("u1", "<f8"):
        path = write_nifti(tmp_path / "x.nii.gz", labels, dtype=dtype)
        np.testing.assert_array_equal(read(path).labels, labels)


def test_a_wide_type_takes_no_more_memory(tmp_path):
    """64-bit numbers are turned into labels in pieces: not eight times the memory."""
    labels = np.zeros((15, 400, 500), dtype=np.uint8)
    labels[5:10, 100:200, 50:300] = 2
    peaks = {}
    for dtype in ("u1", "<f8"):
        path = write_nifti(tmp_path / f"{dtype[1:]}.nii.gz", labels, dtype=dtype)
        tracemalloc.start()
        read(path)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert peaks["u1"] > labels.nbytes
    assert peaks["<f8"] < peaks["u1"] + 4 * PIECE_BYTES


def test_several_gzip_members_are_one_file(tmp_path):
    content = nifti_bytes(organ_boxes())
    packed = b"".join(
        gzip.compress(content[i : i + 999]) for i in range(0, len(content), 999)
    )
    path = tmp_path / "x.nii.gz"
    path.write_bytes(packed)

    np.testing.assert_array_equal(read(path).labels, organ_boxes())


@pytest.mark.parametrize("shape", [(20, 16, 10, 1), (20, 16, 10, 1, 1, 1, 1)])
def test_further_axes_of_length_one_do_not_count(tmp_path, shape):
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes(), shape=shape)

    np.testing.assert_array_equal(read(path).labels, organ_boxes())


def test_a_single_slice_with_two_axes(tmp_path):
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes()[5], shape=(20, 16))

    assert read(path).labels.shape == (1, 16, 20)


def test_a_header_extension_is_skipped(tmp_path):
    content = bytearray(nifti_bytes(organ_boxes()))
    content[108:112] = np.float32(352 + 160).tobytes()
    content[352:352] = bytes(160)
    path = write_gzip(tmp_path / "x.nii.gz", bytes(content))

    np.testing.assert_array_equal(read(path).labels, organ_boxes())


def test_negative_voxel_sizes_count_without_their_sign(tmp_path):
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes(), spacing=(-2.5, 0.8, -0.8))

    expected = tuple(float(np.float32(size)) for size in SPACING)
    assert read_grid(path, "x").spacing == expected


def test_what_is_written_is_read_by_everybody(tmp_path):
    """SimpleITK and nibabel see the labels and the grid that were written."""
    grid = Grid(
        shape=(10, 16, 20), spacing=SPACING, affine=tuple(map(tuple, AFFINE[:3]))
    )
    path = tmp_path / "x.nii.gz"
    write_label_map(path, organ_boxes(), grid)

    image, other = sitk.ReadImage(path), nib.load(path)

    np.testing.assert_array_equal(sitk.GetArrayFromImage(image), organ_boxes())
    np.testing.assert_allclose(image.GetSpacing(), SPACING[::-1], rtol=1e-6)
    np.testing.assert_allclose(image.GetOrigin(), (-90, -110, -300), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(other.dataobj).T, organ_boxes())
    np.testing.assert_allclose(other.affine, AFFINE, rtol=1e-6)
    np.testing.assert_array_equal(read(path).labels, organ_boxes())
    first = path.read_bytes()
    write_label_map(path, organ_boxes(), grid)
    assert path.read_bytes() == first


# --- Labels that are not known ----------------------------------------------------


def types_with_unknown_labels():
    """Stored types, each with unknown labels that it can hold."""
    for dtype in ("u1", "<i2", ">u2", "<i4", "<i8", "<u8", "<f4", "<f8"):
        is_whole = np.dtype(dtype).kind in "iu"
        info = np.iinfo(dtype) if is_whole else np.finfo(dtype)
        for value in (5, 255, 256, 257, 260, 1025, 32766, -1, -255):
            if info.min <= value <= info.max:
                yield dtype, value


@pytest.mark.parametrize(
    ("dtype", "value"),
    few_fast(types_with_unknown_labels(), fast=range(0, 60, 3), several=True),
)
def test_an_unknown_label_is_told_and_never_wraps(tmp_path, dtype, value):
    """257 is not 1, 256 is not 0, and -255 is not 1."""
    labels = organ_boxes().astype(np.int64)
    labels[0, 0, 0] = value
    path = write_nifti(tmp_path / "x.nii.gz", labels, dtype=dtype)

    label_map = read(path)

    assert label_map.unknown == (value,)
    np.testing.assert_array_equal(label_map.labels, organ_boxes())


def test_a_known_label_need_not_follow_the_others(tmp_path):
    labels = np.zeros((2, 3, 4), dtype=np.uint8)
    labels[0, 0, :3] = 3, 9, 200
    path = write_nifti(tmp_path / "x.nii.gz", labels)

    label_map = read(path, known=[3, 200])

    assert label_map.unknown == (9,)
    assert label_map.labels[0, 0].tolist() == [3, 0, 200, 0]


def test_of_very_many_unknown_labels_the_first_are_kept(tmp_path):
    labels = np.arange(2 * 30 * 40).reshape(2, 30, 40)
    path = write_nifti(tmp_path / "x.nii.gz", labels, dtype="<i4")

    assert read(path).unknown == tuple(range(256, 276))


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8"])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "found 0.5"),
        (1.5, "found 1.5"),
        (0.9999, "found 0.9999"),
        (300.25, "found 300.25"),
        (float("nan"), "found nan"),
        (float("inf"), "found inf"),
        (float("-inf"), "found -inf"),
    ],
)
def test_fractions_are_refused(tmp_path, dtype, value, text):
    labels = organ_boxes().astype(np.float64)
    labels[9, 15, 19] = value
    path = write_nifti(tmp_path / "x.nii.gz", labels, dtype=dtype)

    with pytest.raises(FractionError) as caught:
        read(path)

    assert str(caught.value) == (
        f"x.nii.gz: voxels are not whole numbers ({text}). If you saved"
        " probabilities, take their argmax; if you resampled labels, use nearest"
        " neighbours; then save as uint8. Rounding alone gives wrong labels. [F10]"
    )


def test_a_slope_that_makes_fractions_is_refused(tmp_path):
    path = write_nifti(
        tmp_path / "x.nii.gz", organ_boxes(), dtype="u1", slope=0.3, intercept=0
    )

    with pytest.raises(FractionError) as caught:
        read(path)

    assert caught.value.problem == (
        "voxels are not whole numbers (found 0.3) after scaling by scl_slope 0.3"
    )


# --- Files that are not whole, or no label maps -----------------------------------

GOOD = nifti_bytes(organ_boxes())


def patched(offset, content):
    """The good file with some bytes of its header replaced."""
    return GOOD[:offset] + content + GOOD[offset + len(content) :]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (GOOD[:-1], "it holds fewer voxels than its header says"),
        (GOOD[:400], "it holds fewer voxels than its header says"),
        (GOOD[:352], "it holds fewer voxels than its header says"),
        (GOOD[:350], "it holds fewer voxels than its header says"),
        (GOOD + b"\0", "it holds more voxels than its header says"),
    ],
)
def test_a_wrong_length_is_refused(tmp_path, content, problem):
    path = write_gzip(tmp_path / "x.nii.gz", content)

    with pytest.raises(DamagedFileError) as caught:
        read(path)

    assert caught.value.problem == problem


def test_a_nifti_2_file_that_ends_within_its_header_is_refused(tmp_path):
    content = nifti_bytes(organ_boxes(), version=2)[:500]
    path = write_gzip(tmp_path / "x.nii.gz", content)

    with pytest.raises(DamagedFileError, match="it ends within its header"):
        read_grid(path, "x")


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "x.nii.gz"
    path.write_bytes(b"")

    with pytest.raises(DamagedFileError, match="the file is empty"):
        read_grid(path, "x")


@pytest.mark.parametrize("length", [20, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, length):
    path = write_nifti(tmp_path / "x.nii.gz", organ_boxes())
    path.write_bytes(path.read_bytes()[:length])

    with pytest.raises(DamagedFileError) as caught:
        read(path)

    assert str(caught.value) == (
        "x.nii.gz: its compressed data end early."
        " Check your own copy (gzip -t); write it anew if it is damaged, then zip and"
        " submit all files again. [F09]"
    )


def test_a_flipped_bit_in_the_compressed_data_never_changes_a_voxel(tmp_path):
    """Nearly every one is refused; a few lie in padding, or spell the same run."""
    labels = np.random.default_rng(2).integers(0, 5, (9, 10, 11)).astype(np.uint8)
    path = write_nifti(tmp_path / "x.nii.gz", labels)
    good = path.read_bytes()
    bits = range(10 * 8, len(good) * 8, 7)
    refused = 0
    for bit in bits:
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        try:
            np.testing.assert_array_equal(read(path).labels, labels)
        except (DamagedFileError, FileFormatError):
            refused += 1

    assert refused > 0.98 * len(bits)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"hello" * 200, "it is not a NIfTI file", id="foreign"),
        pytest.param(b"", "it is not a NIfTI file", id="nothing inside"),
        pytest.param(
            patched(344, b"ni1\0"),
            "it is not a NIfTI file with its voxels inside",
            id="detached",
        ),
        pytest.param(
            patched(40, np.int16([3, 0, 16, 10]).tobytes()),
            "its header has impossible numbers of voxels",
            id="no voxels",
        ),
        pytest.param(
            patched(40, np.int16([3, -20, 16, 10]).tobytes()),
            "its header has impossible numbers of voxels",
            id="negative size",
        ),
        pytest.param(
            patched(40, np.int16([8]).tobytes()),
            "its header has impossible numbers of voxels",
            id="eight axes",
        ),
        pytest.param(
            patched(40, np.int16([0]).tobytes()),
            "its header has impossible numbers of voxels",
            id="no axes",
        ),
        pytest.param(
            patched(70, np.int16([128, 24]).tobytes()),
            "its voxels are of type [('R', 'u1'), ('G', 'u1'), ('B', 'u1')], expected"
            " numbers",
            id="colours",
        ),
        pytest.param(
            patched(70, np.int16([32, 64]).tobytes()),
            "its voxels are of type complex64, expected numbers",
            id="complex",
        ),
        pytest.param(
            patched(70, np.int16([999, 8]).tobytes()),
            "its voxels have the unknown type 999",
            id="unknown type",
        ),
        pytest.param(
            patched(70, np.int16([0, 0]).tobytes()),
            "its voxels are of no type (datatype 0), expected uint8",
            id="no type",
        ),
        pytest.param(
            patched(70, np.int16([1, 1]).tobytes()),
            "its voxels are single bits (datatype 1), expected uint8",
            id="bits",
        ),
        pytest.param(
            patched(70, np.int16([1536, 128]).tobytes()),
            "its voxels are numbers of 128 bits (datatype 1536), expected uint8",
            id="128 bits",
        ),
        pytest.param(
            patched(112, np.float32([1, np.inf]).tobytes()),
            "its header has an impossible scl_inter",
            id="intercept",
        ),
        pytest.param(
            patched(108, np.float32([0]).tobytes()),
            "its voxels cannot begin at byte 0",
            id="no offset, which every reader reads in another way",
        ),
        pytest.param(
            patched(108, np.float32([20]).tobytes()),
            "its voxels cannot begin at byte 20",
            id="offset within the header",
        ),
        pytest.param(
            patched(108, np.float32([1e12]).tobytes()),
            "its voxels cannot begin at byte 999999995904",
            id="offset far away",
        ),
        pytest.param(
            patched(108, np.float32([np.nan]).tobytes()),
            "its voxels cannot begin at byte nan",
            id="offset not a number",
        ),
        pytest.param(
            patched(280, np.float32([np.nan]).tobytes()),
            "its header has positions that are not finite",
            id="sform not a number",
        ),
        pytest.param(
            patched(80, np.float32([np.inf]).tobytes()),
            "its header has positions that are not finite",
            id="voxel size not finite",
        ),
        pytest.param(
            patched(252, np.int16([1, 0]).tobytes() + np.float32([2, 2, 2]).tobytes()),
            "its header has an impossible orientation",
            id="quaternion",
        ),
    ],
)
def test_what_is_no_label_map_is_refused(tmp_path, content, problem):
    path = write_gzip(tmp_path / "x.nii.gz", content)

    with pytest.raises(FileFormatError) as caught:
        read_grid(path, path.name)

    assert str(caught.value) == (
        f"x.nii.gz: {problem}."
        " Save the label map as .nii.gz with SimpleITK or nibabel. [F06]"
    )


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(InputError) as caught:
        read_grid(tmp_path / "none.nii.gz", "none.nii.gz")

    assert str(caught.value) == (
        "none.nii.gz: it cannot be read (no such file or directory). Check the path,"
        " or what is mounted there, and that this user may read it (chmod -R a+rX)."
        " [H01]"
    )


# --- Grids ------------------------------------------------------------------------


def grid(affine=AFFINE, shape=(10, 16, 20)):
    return Grid(shape=shape, spacing=SPACING, affine=tuple(map(tuple, affine[:3])))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shift", [-100.0, 100.0, 0.2, -0.2])
def test_an_origin_that_is_off_moves_all_corners(axis, shift):
    affine = AFFINE.copy()
    affine[axis, 3] += shift

    assert grid(affine).corner_shift(grid()) == pytest.approx(abs(shift))


def test_a_voxel_size_that_is_off_moves_the_far_corners():
    """0.81 instead of 0.8 mm along x: 19 steps of 0.01 mm."""
    affine = AFFINE.copy()
    affine[0, 0] = -0.81

    assert grid(affine).corner_shift(grid()) == pytest.approx(0.19)


@pytest.mark.parametrize(
    "signs", list(itertools.product([-1, 1], repeat=3)), ids=lambda s: str(s)
)
def test_a_grid_saved_by_nibabel_and_by_simpleitk_is_the_same(tmp_path, signs):
    """Tilted by half a degree, as a gantry is, and mirrored in every way."""
    angle = np.radians(0.5)
    turn = np.array(
        [
            [1, 0, 0],
            [0, np.cos(angle), -np.sin(angle)],
            [0, np.sin(angle), np.cos(angle)],
        ]
    )
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.diag(signs) @ np.diag([0.7421875, 0.7421875, 5.0])
    affine[:3, 3] = -181.3, 142.77, -1044.5
    labels = np.zeros((60, 64, 64), dtype=np.uint8)
    first, second = tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"
    nib.save(nib.Nifti1Image(labels.T, affine), first)
    sitk.WriteImage(sitk.ReadImage(first), second)

    shift = read_grid(first, "a").corner_shift(read_grid(second, "b"))

    assert shift < 0.05


def test_corners_are_those_of_the_whole_grid():
    """The far corner stays where it is, and the near one moves by 19 * 0.01 mm."""
    affine = AFFINE.copy()
    affine[0, 0] = -0.81
    affine[0, 3] += 0.19

    assert grid(affine).corner_shift(grid()) == pytest.approx(0.19)


def test_case_names():
    assert case_name(Path("a/b.c/validation_001.nii.gz")) == "validation_001"
    assert case_name(Path("CASE.NII.GZ")) == "CASE"
    assert case_name(Path("two.parts.nii.gz")) == "two.parts"
    assert case_name(Path("readme.txt")) is None
