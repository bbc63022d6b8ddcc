"""Label maps in .npz files: read as NumPy does, and refused where they are hostile."""

import random
import struct
import zlib

import numpy as np
import pytest

import flare
from flare.challenge.formats import NpzLayout, SpacingOrder
from flare.common.errors import FlareError
from flare.evaluation.errors import (
    DamagedFileError,
    FileFormatError,
    FractionError,
    GridPositionError,
    GridSizeError,
)
from flare.evaluation.submission.find import LabelMapFile
from flare.results.metrics_reading import read_evaluation
from tests.builders import ROOT, error_of, organ_boxes, write_nifti
from tests.builders.errors import told
from tests.builders.npz import npy_bytes, npz_bytes, overlapping, raw_zip, zip_bytes

LABELS = np.minimum(organ_boxes(), 1)
"""One lesion, of shape (10, 16, 20); the spacing of built files is 2.5, 0.8, 0.8."""

XYZ = np.array([0.8, 0.8, 2.5])
CHALLENGE = ROOT / "examples" / "challenges" / "recist.toml"
LAYOUT = NpzLayout(labels="segs", spacing_order=SpacingOrder.XYZ)
NAME = "case.npz"


@pytest.fixture
def read(tmp_path):
    def read_bytes(content, layout=LAYOUT):
        (tmp_path / NAME).write_bytes(content)
        file = LabelMapFile(case="", path=tmp_path / NAME, name=NAME, npz=layout)
        found = file.read_labels([1])
        assert file.read_grid() == found.grid
        return found

    return read_bytes


@pytest.fixture
def folders(tmp_path):
    """A prediction of some bytes, and its reference, a NIfTI file or bytes too."""

    def make(prediction, reference=None):
        for kind in ("predictions", "references"):
            (tmp_path / kind).mkdir(exist_ok=True)
        (tmp_path / "predictions" / NAME).write_bytes(prediction)
        if reference is None:
            write_nifti(tmp_path / "references" / "case.nii.gz", LABELS)
        else:
            (tmp_path / "references" / NAME).write_bytes(reference)
        return tmp_path / "predictions", tmp_path / "references"

    return make


# --- Files that are right ---------------------------------------------------------


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    "dtype", ["u1", "i1", "?", "<u2", ">i2", "<i4", "<u8", ">i8", "<f4", ">f8"]
)
def test_numpy_s_files_are_read_as_numpy_reads_them(read, dtype, compressed):
    labels = LABELS.astype(dtype)
    content = npz_bytes(segs=labels, spacing=XYZ, compressed=compressed)

    found = read(content)

    assert np.array_equal(found.labels, labels)
    assert found.present == (1,)
    assert found.grid.spacing == (2.5, 0.8, 0.8)
    assert not found.grid.is_placed


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_versions_of_the_array_format_are_read(read, version):
    line = "{'descr': '|u1', 'fortran_order': False, 'shape': (10, 16, 20), }\n"
    members = [
        ("segs.npy", npy_bytes(LABELS, line=line, version=version)),
        ("spacing.npy", npy_bytes(XYZ)),
    ]

    assert np.array_equal(read(zip_bytes(members)).labels, LABELS)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i4"])
@pytest.mark.parametrize("order", SpacingOrder)
def test_a_spacing_is_of_any_numbers_in_the_order_of_the_challenge(read, dtype, order):
    spacing = np.array([1, 2, 3], dtype=dtype)
    layout = NpzLayout(labels="segs", spacing_order=order)

    found = read(npz_bytes(segs=LABELS, spacing=spacing), layout)

    assert found.grid.spacing == ((3, 2, 1) if order is SpacingOrder.XYZ else (1, 2, 3))


def test_a_reference_may_hold_other_arrays(folders, tmp_path, output):
    """As the organisers' files do, whose `imgs` and `recist` nobody looks at."""
    image = np.zeros(LABELS.shape, dtype=np.float16)
    reference = npz_bytes(imgs=image, recist=LABELS, gts=LABELS, spacing=XYZ)
    moved = np.roll(LABELS, 1, axis=0)

    results = flare.evaluate(
        *folders(npz_bytes(segs=moved, spacing=XYZ), reference), challenge=CHALLENGE
    )

    (case,) = results.cases
    # Moved by one slice of 2.5 mm; NSD has a tolerance of 2 mm, in the spacing of gts.
    expected = flare.normalized_surface_dice(
        LABELS > 0, moved > 0, (2.5, 0.8, 0.8), tolerance=2
    )
    assert case.nsd == expected
    assert case.nsd < 1
    pair = tmp_path / "references" / NAME, tmp_path / "predictions" / NAME
    assert flare.score_pair(*pair, CHALLENGE).organs == case.organs
    written = flare.write_metrics(results, output)
    assert read_evaluation(written).cases == ("case",)


# --- A grid that is another one ---------------------------------------------------


@pytest.mark.parametrize(
    ("spacing", "problem"),
    [(XYZ[::-1], "2.5 x 0.8 x 0.8 mm, expected 0.8 x 0.8 x 2.5 mm: its spacing is in"
      " the reverse order"),
     (np.ones(3), "1 x 1 x 1 mm, expected 0.8 x 0.8 x 2.5 mm")],
    ids=["reversed", "lost"],
)  # fmt: skip
def test_a_spacing_is_held_against_the_reference(folders, spacing, problem):
    both = folders(npz_bytes(segs=LABELS, spacing=spacing))
    error = error_of(GridPositionError, flare.evaluate, *both, challenge=CHALLENGE)

    assert told(error) == ("F08", NAME)
    assert error.problem == f"voxel size is {problem}"


def test_another_size_is_refused_before_anything_is_unpacked(folders):
    """A bomb: the zeros of 4,096 voxels a side, packed into 70 MB, take 64 GiB."""
    line = "{'descr': '|u1', 'fortran_order': False, 'shape': (4000, 4000, 200), }\n"
    member = npy_bytes(np.zeros(0, dtype="u1"), line=line)
    size = len(member) + 4000 * 4000 * 200
    files = [
        {"name": "segs.npy", "content": member, "size": size},
        {"name": "spacing.npy", "content": npy_bytes(XYZ)},
    ]

    both = folders(raw_zip(files))
    error = error_of(GridSizeError, flare.evaluate, *both, challenge=CHALLENGE)
    assert error.problem.startswith("size is 200 x 4000 x 4000 voxels")


# --- Hostile files ----------------------------------------------------------------


def members(**changes):
    """The two members of a file, of which some are changed."""
    found = {"segs.npy": npy_bytes(LABELS), "spacing.npy": npy_bytes(XYZ)} | changes
    return [(name, content) for name, content in found.items() if content is not None]


def segs(line, content=LABELS):
    """A file whose array of labels is said to be something else."""
    return zip_bytes(members(**{"segs.npy": npy_bytes(content, line=line)}))


def plain(**changes):
    """The two members for `raw_zip`, the first of them changed."""
    return [
        {"name": "segs.npy", "content": npy_bytes(LABELS)} | changes,
        {"name": "spacing.npy", "content": npy_bytes(XYZ)},
    ]


def npz(**changes):
    return npz_bytes(**{"segs": LABELS, "spacing": XYZ} | changes)


GOOD, ARRAY = npz(), npy_bytes(LABELS)
SIZE = len(ARRAY)


def zip64(content):
    """A file whose directory ends in what leads to another, of any size."""
    end = bytearray(content[-22:])
    end[12] += 20
    return content[:-22] + b"PK\6\7".ljust(20, b"\0") + end


def in_64_bits(number, **changes):
    """A file whose first member has a number that takes more than 32 bits."""
    return raw_zip(plain(extra=struct.pack("<2HQ", 1, 8, number), **changes))


@pytest.mark.parametrize("name", [b"", b"gts.npy"])
def test_a_second_name_of_a_member_counts_on_no_python(read, name):
    """Python 3.13 takes it for the name, and warns where it is empty; 3.11 does not."""
    second = struct.pack("<2HBL", 0x7075, 5 + len(name), 1, zlib.crc32(b"segs.npy"))

    assert np.array_equal(read(raw_zip(plain(extra=second + name))).labels, LABELS)


SIZED = "{'descr': '%s', 'fortran_order': %s, 'shape': (10, 16, 20), }\n"

TYPED = "its array segs is of type {}, expected uint8"
ARRAYS = "its arrays are {}, expected segs and spacing"
EXPECTED = "expected a few arrays"

HOSTILE = {
    "its array segs holds Python objects (a pickle)": [
        npz(segs=np.array([{"a": 1}], dtype=object))
    ],
    "its array spacing holds Python objects (a pickle)": [
        npz(spacing=np.array([1, 2, None], dtype=object))
    ],
    "its member segs is no array of NumPy": [
        zip_bytes(members(**{"segs.npy": b"cos\nsystem\n(S'true'\ntR."}))
    ],
    "what its array segs is cannot be read": [
        segs("{'descr': '|u1', 'fortran_order': False, 'shape': (exit(), 2, 3), }\n"),
        segs("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1,), }\n"),
        segs(SIZED % ("|u1", "False") + " " * 5000),
    ],
    "its array segs is in Fortran order": [npz(segs=np.asfortranarray(LABELS))],
    TYPED.format("<f2"): [npz(segs=LABELS.astype(np.float16))],
    TYPED.format("<c16"): [npz(segs=LABELS.astype(complex))],
    TYPED.format("<U1"): [npz(segs=LABELS.astype("U1"))],
    "it has 4 dimensions (20 x 16 x 10 x 2), expected 3": [
        npz(segs=np.stack([LABELS, LABELS]))
    ],
    "its header has impossible numbers of voxels": [npz(segs=LABELS[:0])],
    "voxels are not whole numbers (found 0.5)": [npz(segs=LABELS * 0.5)],
    ARRAYS.format("segs.npy"): [npz_bytes(segs=LABELS)],
    ARRAYS.format("arr_0.npy, spacing.npy"): [npz_bytes(arr_0=LABELS, spacing=XYZ)],
    ARRAYS.format("gts.npy, segs.npy, spacing.npy"): [npz(gts=LABELS)],
    ARRAYS.format("readme.txt, segs.npy, spacing.npy"): [
        zip_bytes([*members(), ("readme.txt", b"hello")])
    ],
    "its array spacing has not three numbers": [npz(spacing=XYZ[:2])],
    "its array spacing has numbers that are no voxel sizes": [
        npz(spacing=XYZ * 0),
        npz(spacing=XYZ * np.nan),
    ],
    "its header has impossible positions": [npz(spacing=XYZ * 1e10)],
    "two of its members have one name": [raw_zip([*plain(), *plain()[:1]])],
    "its members lie over one another": [overlapping(*members())],
    "a member is not where its directory says": [
        raw_zip(plain(place=0)),
        raw_zip(plain(place=2**32 - 1)),
    ],
    "it is a ZIP64 file, for more than 4 GiB": [
        in_64_bits(2**62, place=2**32 - 1),
        in_64_bits(2**64 - 1, place=2**32 - 1),
        in_64_bits(2**32, size=2**32 - 1),
        in_64_bits(2**32, packed_size=2**32 - 1),
    ],
    "its directory is damaged": [GOOD.replace(b"PK\1\2", b"PK\1\3")],
    None: [
        raw_zip(plain(packed_size=99)),
        raw_zip(plain(), count=0xFFFF),
        zip_bytes([]),
    ],
    f"it has 17 members, or long names, {EXPECTED}": [
        zip_bytes([(f"a{n}.npy", b"") for n in range(17)])
    ],
    f"it has 3 members, or long names, {EXPECTED}": [
        zip_bytes([*members(), ("a" * 5000 + ".npy", b"")])
    ],
    "its arrays are segs.npy, spacing.npy, é.npy, expected segs and spacing": [
        zip_bytes([*members(), ("é.npy", b"")])
    ],
    "it is encrypted, or not compressed by Deflate": [
        raw_zip(plain(), flags=1),
        zip_bytes(members(), method=14),
    ],
    "its end is not that of a .npz file: was it cut off?": [
        zip_bytes(members(), comment=b"hello"),
        GOOD[:-30],
    ],
    "it ends early": [GOOD[:10]],
    "its directory is not where it says, or in ZIP64": [
        GOOD[:4] + b"\0" * 64 + GOOD[4:],
        zip64(GOOD),
    ],
    "its compressed data do not fit their checksum": [
        raw_zip(plain(crc=1)),
        raw_zip(plain(packed=b"\xff" * 200)),
    ],
    "its compressed data end early": [raw_zip(plain(content=ARRAY[:-9], size=SIZE))],
    "its array segs is not as large as it says": [
        raw_zip(plain(size=0xFFFFFFFF)),
        segs(SIZED % ("|u1", "False"), np.zeros(5000, dtype="u1")),
        segs(SIZED % ("<i4", "False")),
    ],
    "it holds more than it says": [
        raw_zip(plain(content=ARRAY + bytes(10**6), size=SIZE))
    ],
}
"""Files by what is said of them."""


@pytest.mark.parametrize(
    ("problem", "content"),
    [(problem, each) for problem, files in HOSTILE.items() for each in files],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_a_hostile_file_is_refused(read, problem, content):
    error = error_of((FileFormatError, DamagedFileError, FractionError), read, content)

    assert error.file == NAME
    assert problem in (None, error.problem)


@pytest.mark.parametrize("name", ["flare21", "flare25-pancancer"])
def test_elsewhere_the_message_names_the_tasks_that_use_them(folders, name):
    both = folders(GOOD)
    for folder in both:
        write_nifti(folder / "other.nii.gz", LABELS)

    with pytest.raises(FileFormatError, match="only the tasks from RECIST to 3-D of"):
        flare.evaluate(*both, challenge=name)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_byte_that_changed_is_noticed(read, compressed):
    """Whatever it is: the labels are the same, or the file is refused."""
    drawn = random.Random(22)
    content = npz_bytes(segs=LABELS, spacing=XYZ, compressed=compressed)
    refused = 0
    for _ in range(150):
        place, value = drawn.randrange(len(content)), drawn.randrange(256)
        changed = content[:place] + bytes([value]) + content[place + 1 :]
        try:
            found = read(changed)
        except FlareError:
            refused += 1
        else:
            assert np.array_equal(found.labels, LABELS)
            assert found.grid.spacing == (2.5, 0.8, 0.8)
    assert refused > 50
