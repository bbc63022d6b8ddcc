"""Submissions that are refused: how to spoil one prediction of three good ones."""

import os
from pathlib import Path

import nibabel as nib
import numpy as np

from tests.builders import (
    AFFINE,
    case_names,
    nifti_bytes,
    organ_boxes,
    write_cases,
    write_file,
    write_gzip,
    write_nifti,
)

MIRRORED = AFFINE @ np.diag([-1.0, 1.0, 1.0, 1.0])
SHIFTED = AFFINE + np.outer([1, 0, 0, 0], [0, 0, 0, 100])

FILE = Path(__file__).with_suffix(".txt")
"""The message of each; ``pytest tests/evaluation/test_evaluate.py -p no:xdist
--update-messages`` writes it, and its changes are read by hand."""


SECOND = "validation_002.nii.gz"
"""The prediction that is spoilt."""


def damage(folder, change):
    path = folder / SECOND
    path.write_bytes(change(path.read_bytes()))


def rewrite(folder, **changes):
    write_nifti(folder / SECOND, **{"labels": organ_boxes(), **changes})


def flip_bit(content):
    damaged = bytearray(content)
    damaged[len(damaged) // 2] ^= 0x10
    return bytes(damaged)


def copy(folder, name):
    write_file(folder / name, (folder / SECOND).read_bytes())


def rename(folder, name):
    (folder / SECOND).rename(folder / name)


def with_voxel(value):
    """Labels of which one is replaced."""
    labels = organ_boxes().astype(np.float64)
    labels[9, 15, 19] = value
    return labels


def link(folder):
    """A link to the reference in the place of the second file."""
    (folder / SECOND).unlink()
    (folder / SECOND).symlink_to(folder.parent / "ground-truth" / SECOND)


def make_pipe(folder):
    """A pipe in the place of the second file; to open it would wait for ever."""
    (folder / SECOND).unlink()
    os.mkfifo(folder / SECOND)


def reorient(folder):
    """Turned to RAS by nibabel, header and voxels."""
    path = folder / SECOND
    nib.save(nib.as_closest_canonical(nib.load(path)), path)


def halve(folder):
    """Resampled to voxels twice as large in plane."""
    affine = AFFINE @ np.diag([2, 2, 1, 1])
    affine[:2, 3] -= 0.4
    labels = np.ascontiguousarray(organ_boxes()[:, ::2, ::2])
    write_nifti(folder / SECOND, labels, affine=affine)


def many_labels():
    labels = organ_boxes()
    labels[0, 0, :9] = range(5, 14)
    return labels


REFUSALS = {
    "missing": lambda f: (f / SECOND).unlink(),
    "duplicate": lambda f: copy(f, f"again/{SECOND}"),
    "misnamed": lambda f: rename(f, "validation_2.nii.gz"),
    "unexpected": lambda f: copy(f, "liver.nii.gz"),
    "other format": lambda f: rename(f, "validation_002.mhd"),
    "truncated": lambda f: damage(f, lambda content: content[:-20]),
    "bit-flipped": lambda f: damage(f, flip_bit),
    "trailing bytes": lambda f: damage(f, lambda content: content + b"more"),
    "too few voxels": lambda f: write_gzip(f / SECOND, nifti_bytes(organ_boxes())[:-1]),
    "empty": lambda f: (f / SECOND).write_bytes(b""),
    "foreign": lambda f: (f / SECOND).write_bytes(b"This is a text."),
    "wrongly sized": lambda f: rewrite(f, labels=organ_boxes()[:-1]),
    "wrongly oriented": lambda f: rewrite(f, affine=MIRRORED),
    "shifted": lambda f: rewrite(f, affine=SHIFTED),
    "out of range": lambda f: rewrite(f, labels=with_voxel(257), dtype="<i2"),
    "unknown label": lambda f: rewrite(f, labels=with_voxel(5)),
    "negative": lambda f: rewrite(f, labels=with_voxel(-1), dtype="<i2"),
    "non-integer": lambda f: rewrite(f, labels=with_voxel(0.5), dtype="<f4"),
    "nothing": lambda f: [path.unlink() for path in list(f.iterdir())],
    "axes reversed": lambda f: rewrite(f, labels=np.ascontiguousarray(organ_boxes().T)),
    "resampled": halve,
    "header lost": lambda f: rewrite(f, affine=np.eye(4)),
    "reoriented": reorient,
    "probabilities": lambda f: rewrite(
        f, labels=np.zeros((5, 10, 16, 20)), dtype="<f4"
    ),
    "another edition": lambda f: rewrite(f, labels=many_labels()),
    "a link to the references": link,
    "a pipe": make_pipe,
    "all empty": lambda f: write_cases(f, case_names(3), labels=0 * organ_boxes()),
}
"""By name; the messages are in refusals.txt."""

MESSAGES = dict(line.split(": ", 1) for line in FILE.read_text().splitlines())
