"""Ordinary headers are read as nibabel reads them; all others are left to it."""

import random

import nibabel as nib
import numpy as np
import pytest

from flare.common.errors import FileError
from flare.evaluation.labelmaps import nifti
from flare.evaluation.labelmaps.nifti import HEADER_BYTES, plain_header

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "i8", "u8", "f4", "f8")
SHAPES = ((5, 6, 7), (5, 6), (5,), (5, 6, 7, 1, 1))


def header(dtype="u1", shape=(5, 6, 7), **fields):
    made = nib.Nifti1Header()
    made.set_data_shape(shape)
    made.set_data_dtype(dtype)
    made.set_sform(np.random.default_rng(7).normal(size=(4, 4)) * 3, 1)
    made["pixdim"][1:4] = (0.7, -0.8, 2.5)
    made["vox_offset"] = 352
    for name, value in fields.items():
        made[name] = value
    made["magic"] = b"n+1"
    return bytes(made.binaryblock)


def outcome(read, content):
    """What comes of a header, or what is wrong with it."""
    try:
        return read(content)
    except FileError as error:
        return type(error), error.args


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_ordinary_header_is_read_as_nibabel_reads_it(dtype, shape):
    content = header(dtype, shape, scl_slope=2, scl_inter=-1)

    found = plain_header(content)

    assert found == nifti.any_header(content)
    assert found.grid.affine == tuple(
        map(tuple, nib.Nifti1Header(content).get_sform()[:3].tolist())
    )


@pytest.mark.filterwarnings("ignore")  # of NumPy, about what nibabel computes
def test_headers_that_are_damaged_at_random_have_the_same_outcome():
    draw = random.Random(21)
    made = [header(dtype, shape) for dtype in TYPES for shape in SHAPES]
    fields = (*range(40, 56), *range(70, 124), *range(252, 328))
    read = 0
    for _ in range(1500):
        content = bytearray(draw.choice(made))
        for _ in range(draw.choice((0, 1, 1, 2, 4))):
            place = draw.choice((draw.randrange(4, HEADER_BYTES), draw.choice(fields)))
            flipped = content[place] ^ (1 << draw.randrange(8))
            content[place] = draw.choice((draw.randrange(256), 0, 127, 255, flipped))
        found = outcome(plain_header, bytes(content))
        if found is not None:
            read += 1
            assert found == outcome(nifti.any_header, bytes(content))
    assert read > 500
