"""Builds the files that tests need: small, with named arguments, nothing random."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from tests.builders.warm import PROGRAMS, run_warm

ROOT = Path(__file__).parents[2]

needs_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="this is no checkout of git"
)

SPACING = (2.5, 0.8, 0.8)
"""Of built label maps, along z, y, x, in mm."""

AFFINE = np.array(
    [
        [-0.8, 0.0, 0.0, 90.0],
        [0.0, -0.8, 0.0, 110.0],
        [0.0, 0.0, 2.5, -300.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
)
"""Of built label maps: x to the left, y to the back, z to the head."""

ORGANS = {1: "liver", 2: "kidney", 3: "spleen", 4: "pancreas"}


def organ_boxes(*, shift=0):
    """A label map of shape (10, 16, 20) with a box for each of the four organs.

    `shift` moves the liver along x.
    """
    labels = np.zeros((10, 16, 20), dtype=np.uint8)
    labels[2:8, 2:9, 2 + shift : 9 + shift] = 1
    labels[3:7, 11:15, 3:7] = 2
    labels[2:6, 3:8, 14:18] = 3
    labels[4:6, 11:13, 11:18] = 4
    return labels


def nifti_bytes(
    labels,
    *,
    dtype="<u1",
    version=1,
    affine=AFFINE,
    spacing=SPACING,
    slope=float("nan"),
    intercept=float("nan"),
    shape=None,
):
    """An uncompressed single-file NIfTI; `labels` has shape (Z, Y, X) or more axes."""
    dtype = np.dtype(dtype)
    kind = {1: nib.Nifti1Header, 2: nib.Nifti2Header}[version]
    header = kind(endianness=">" if dtype.byteorder == ">" else "<")
    header.set_data_shape(shape or labels.T.shape)
    header.set_data_dtype(dtype)
    header.set_sform(affine, code=1)
    header["qform_code"] = 0
    header["pixdim"][1:4] = spacing[::-1]
    header["vox_offset"] = header.single_vox_offset
    header["magic"] = header.single_magic
    header["scl_slope"], header["scl_inter"] = slope, intercept
    padding = b"\0" * (header.single_vox_offset - len(header.binaryblock))
    return header.binaryblock + padding + labels.astype(dtype).tobytes()


TYPES = {
    # stored type: its name in MetaImage, and in NRRD
    "i1": ("MET_CHAR", "signed char"),
    "u1": ("MET_UCHAR", "unsigned char"),
    "i2": ("MET_SHORT", "short"),
    "u2": ("MET_USHORT", "unsigned short"),
    "i4": ("MET_INT", "int"),
    "u4": ("MET_UINT", "unsigned int"),
    "i8": ("MET_LONG_LONG", "long long"),
    "u8": ("MET_ULONG_LONG", "unsigned long long"),
    "f4": ("MET_FLOAT", "float"),
    "f8": ("MET_DOUBLE", "double"),
}


class Tensor:
    """As torch's, which NumPy makes an array of."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None):
        return self._values


def metaimage_bytes(labels, *, dtype="<u1", compressed=True, voxels=None, **changes):
    """A .mha file on the grid of `AFFINE`; keywords replace lines of its header."""
    dtype = np.dtype(dtype)
    content = labels.astype(dtype).tobytes() if voxels is None else voxels
    fields = {
        "ObjectType": "Image",
        "NDims": 3,
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": dtype.byteorder == ">",
        "CompressedData": compressed,
        "TransformMatrix": "1 0 0 0 1 0 0 0 1",
        "Offset": "-90 -110 -300",
        "ElementSpacing": "0.8 0.8 2.5",
        "DimSize": "{} {} {}".format(*reversed(labels.shape)),
        "ElementType": TYPES[dtype.str[1:]][0],
        **changes,
    }
    fields.setdefault("ElementDataFile", "LOCAL")
    header = "".join(f"{key} = {value}\n" for key, value in fields.items())
    return header.encode() + (zlib.compress(content) if compressed else content)


def nrrd_bytes(labels, *, dtype="<u1", compressed=True, voxels=None, **changes):
    """A .nrrd file on the grid of `AFFINE`; keywords replace lines of its header."""
    dtype = np.dtype(dtype)
    content = labels.astype(dtype).tobytes() if voxels is None else voxels
    fields = {
        "type": TYPES[dtype.str[1:]][1],
        "dimension": 3,
        "space": "left-posterior-superior",
        "sizes": "{} {} {}".format(*reversed(labels.shape)),
        "space directions": "(0.8,0,0) (0,0.8,0) (0,0,2.5)",
        "kinds": "domain domain domain",
        "endian": "big" if dtype.byteorder == ">" else "little",
        "encoding": "gzip" if compressed else "raw",
        "space origin": "(-90,-110,-300)",
        **{key.replace("_", " "): value for key, value in changes.items()},
    }
    lines = [f"{key}: {value}\n" for key, value in fields.items() if value is not None]
    header = "NRRD0004\n# a comment\n" + "".join(lines) + "\n"
    packed = gzip.compress(content, mtime=0) if compressed else content
    return header.encode() + packed


def write_nifti(path, labels, **header):
    """Write a .nii.gz file; keywords as `nifti_bytes`."""
    return write_gzip(path, nifti_bytes(labels, **header))


def write_file(path, content):
    """Write a text or bytes; folders that are not there are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_gzip(path, content):
    """Write a gzip file that depends on nothing but the content."""
    return write_file(path, gzip.compress(content, compresslevel=6, mtime=0))


def gzip_with(content, *, extra=b"", name=b"", comment=b""):
    """A gzip file with fields in its header, as RFC 1952 has them."""
    flags = (4 if extra else 0) + (8 if name else 0) + (16 if comment else 0)
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    if extra:
        header += len(extra).to_bytes(2, "little") + extra
    header += b"".join(text + b"\0" for text in (name, comment) if text)
    trailer = [zlib.crc32(content), len(content)]
    packed = zlib.compress(content, wbits=-15)
    return header + packed + b"".join(n.to_bytes(4, "little") for n in trailer)


def case_names(count):
    """validation_001, validation_002, ..."""
    return [f"validation_{number:03}" for number in range(1, count + 1)]


def write_cases(folder, names, *, labels=None, suffix=".nii.gz"):
    labels = organ_boxes() if labels is None else labels
    first, *others = (folder / f"{name}{suffix}" for name in names)
    content = write_nifti(first, labels).read_bytes()
    for path in others:
        path.write_bytes(content)
    return folder


def error_of(kind, call, *arguments, **options):
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    return caught.value


def wait_until(condition, seconds=60):
    """Wait until something is true; so long that a busy computer is no failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_equal(look, expected, seconds=60):
    """Wait until a function gives something; a failure shows what it gives."""
    with suppress(AssertionError):
        wait_until(lambda: look() == expected, seconds)
    assert look() == expected


def run_evaluate(predictions, ground_truth, output, *arguments, env=None, workers=1):
    """Run evaluate.py as the platform does; two workers take twice as long to start."""
    folders = ["--input", predictions, "--output", output, "--workers", workers]
    if ground_truth is not None:
        folders += ["--ground-truth", ground_truth]
    return run_program(*folders, *arguments, env=env)


def read_metrics(output):
    return json.loads((output / "metrics.json").read_bytes())


def run_flare(*arguments, **options):
    if options.keys() <= {"cwd", "env"} and _is_plain(options.get("env")):
        run = run_warm(("-m", "flare"), [*map(str, arguments)], **options)
        run.stdout, run.stderr = run.stdout.decode(), run.stderr.decode()
        return run
    return run_command(sys.executable, "-m", "flare", *arguments, **options)


def run_command(*words, **options):
    usual = {"cwd": ROOT, "capture_output": True, "text": True, "check": False}
    return subprocess.run([str(word) for word in words], **usual | options)


def run_program(*arguments, program=("evaluate.py",), env=None):
    """Run a program of the project; its streams come back as bytes."""
    if program in PROGRAMS and _is_plain(env):
        return run_warm(program, [*map(str, arguments)], env=env, timeout=120)
    words = (sys.executable, *program, *arguments)
    return run_command(*words, env=env, text=False, timeout=120)


def _is_plain(environment):
    """Whether Python itself starts by it as it does by that of the tests."""
    read_at_start = ("PYTHON", "LC_", "LANG", "LD_")
    names = {name for name in (environment or {}) if name.startswith(read_at_start)}
    return all(environment[name] == os.environ.get(name) for name in names)
