"""Feeds label maps that were changed in thousands of ways to the code that reads them.

Whatever a file holds, reading it either gives labels or one of the program's errors, in
time and within its memory. Half of the changes know the format: they put numbers into
fields of the header that nobody expects there, so that most files get past it. A file
that breaks the rule becomes a test.
"""

from __future__ import annotations

import gzip
import random
import struct
from functools import cache
from pathlib import Path

import numpy as np

from flare.common.errors import FlareError
from flare.evaluation.submission.find import LabelMapFile
from tests.builders import metaimage_bytes, nifti_bytes, nrrd_bytes, write_file

KNOWN = (1, 2, 3, 4)
VOXELS = 10**6
"""A larger map than its reference is refused by its header; so it is here."""

NIFTI_FIELDS = {
    "sizeof_hdr": (0, "i"),
    **{f"dim[{n}]": (40 + 2 * n, "h") for n in range(8)},
    "datatype": (70, "h"),
    "bitpix": (72, "h"),
    **{f"pixdim[{n}]": (76 + 4 * n, "f") for n in range(8)},
    "vox_offset": (108, "f"),
    "scl_slope": (112, "f"),
    "scl_inter": (116, "f"),
    "qform_code": (252, "h"),
    "sform_code": (254, "h"),
    **{f"quatern[{n}]": (256 + 4 * n, "f") for n in range(6)},
    **{f"srow[{n}]": (280 + 4 * n, "f") for n in range(12)},
    "magic": (344, "i"),
    "extension": (348, "i"),
}
"""Where the fields of a NIfTI-1 header are, and how they are stored."""

NUMBERS = (0, 1, -1, 2, 3, 4, 7, 8, 10, 16, 64, 127, 255, 256, 348, 352, 512, 32767)
FLOATS = (0.0, -0.0, 0.5, 1e-45, 1e38, -1e38, 352.0, 348.0, 1e9)
FLOATS += (float("nan"), float("inf"), float("-inf"))
WORDS = (
    *("", "0", "-1", "1", "2", "3", "nan", "inf", "-inf", "1e308", "1e-320"),
    *("9" * 5000, "x" * 20_000),
    *("1 2 3", "1 1 1 1", "20 16 10", "True", "False", "LOCAL", "LIST", "/etc/passwd"),
    *("MET_UCHAR", "MET_DOUBLE", "MET_UCHAR_ARRAY", "uint8", "double", "block", "raw"),
    *("gzip", "bzip2", "ascii", "(1,0,0) (0,1,0) (0,0,1)", "(nan,0,0)", "none", "RAS"),
    *("left-posterior-superior", "\xff\xfe", "%s%n", "\x00", "1_000", "0x10", "١٢"),
)


@cache
def seeds() -> list[tuple[str, bytes]]:
    """Good files of every format: the kind, and the content."""
    labels = np.random.default_rng(1).integers(0, 5, size=(4, 5, 6)).astype(np.uint8)
    found = []
    for dtype in ("<u1", ">i2", "<f4", "<i8", ">f8"):
        found += [
            ("nifti", nifti_bytes(labels, dtype=dtype, version=version))
            for version in (1, 2)
        ]
        for compressed in (True, False):
            mha = metaimage_bytes(labels, dtype=dtype, compressed=compressed)
            nrrd = nrrd_bytes(labels, dtype=dtype, compressed=compressed)
            found += [("text", mha), ("text", nrrd)]
    found.append(("nifti", nifti_bytes(labels, dtype="<i2", slope=2.0, intercept=-1.0)))
    return found


def change_bytes(content: bytes, chance: random.Random) -> bytes:
    """Change a few bytes anywhere, whatever they mean."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place = chance.randrange(len(changed)) if changed else 0
        kind = chance.randrange(6)
        if kind == 0 and changed:
            changed[place] ^= 1 << chance.randrange(8)
        elif kind == 1 and changed:
            changed[place] = chance.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            changed[place:place] = chance.randbytes(chance.choice((1, 4, 600)))
        elif kind == 3:
            del changed[place : place + chance.choice((1, 4, 100))]
        elif kind == 4:
            changed[place:] = changed[place : place + 64] * chance.choice((0, 1, 3))
        else:
            changed = changed[: chance.randrange(len(changed) + 1)]
    return bytes(changed)


def change_nifti(content: bytes, chance: random.Random) -> bytes:
    """Put numbers that nobody expects into fields of the header."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4))):
        offset, kind = NIFTI_FIELDS[chance.choice(list(NIFTI_FIELDS))]
        if kind == "f":
            value = chance.choice((*FLOATS, chance.uniform(-1e3, 1e3)))
        else:
            value = chance.choice((*NUMBERS, chance.randrange(-32768, 32768)))
        struct.pack_into(chance.choice("<>") + kind, changed, offset, value)
    return bytes(changed)


def change_text(content: bytes, chance: random.Random) -> bytes:
    """Change lines of a text header; the voxels stay behind it."""
    end = content.find(b"\n\n")
    if not content.startswith(b"NRRD"):
        end = content.find(b"LOCAL\n") + 5
    lines = content[:end].split(b"\n")
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(lines))
        kind = chance.randrange(5)
        if kind <= 2:
            key, sign, _ = lines[place].partition(chance.choice((b"=", b":")))
            word = chance.choice(WORDS).encode("utf-8", "surrogateescape")
            lines[place] = key + sign + b" " + word
        elif kind == 3:
            lines.insert(chance.randrange(len(lines)), lines[place])
        elif len(lines) > 1:
            del lines[place]
    return b"\n".join(lines) + content[end:]


def change_voxels(content: bytes, chance: random.Random) -> bytes:
    """Change the voxels alone, which are at the end of what is not compressed."""
    size = chance.randrange(1, 200)
    return content[:-size] + chance.randbytes(size)


def make(chance: random.Random, files: list[tuple[str, bytes]]) -> bytes:
    kind, content = chance.choice(files)
    structured = change_nifti if kind == "nifti" else change_text
    change = chance.choice((structured, structured, structured, change_voxels))
    if chance.random() < 0.2:
        change = change_bytes
    content = change(content, chance)
    if kind == "nifti" and chance.random() < 0.7:
        level = chance.choice((0, 1, 6))
        content = gzip.compress(content, compresslevel=level, mtime=0)
        if chance.random() < 0.2:
            content = change_bytes(content, chance)
    return content


def check(path: Path) -> str:
    """Read a file; the result is how far it got, and any broken rule is raised."""
    try:
        file = LabelMapFile(case="", path=path, name=path.name)
        grid = file.read_grid()
    except FlareError as error:
        assert str(error).isprintable()
        return "refused by its header"
    if np.prod(grid.shape, dtype=float) > VOXELS:
        return "larger than its reference"
    try:
        found = file.read_labels(KNOWN)
    except FlareError as error:
        assert str(error).isprintable()
        return "refused by its voxels"
    assert found.labels.shape == grid.shape
    for label in KNOWN:
        places = np.nonzero(found.labels == label)
        if places[0].size:
            box = tuple(slice(axis.min(), axis.max() + 1) for axis in places)
            assert found.box((label,)) == box
    return "read"


def attempt(chance: random.Random, work: Path) -> str:
    """Try a changed file; the result is how far it got."""
    path = write_file(work / "case.nii.gz", make(chance, seeds()))
    return check(path)
