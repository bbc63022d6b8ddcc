"""Submissions that are refused: how to spoil one prediction of three good ones."""

import os
import shutil
from pathlib import Path

import nibabel as nib
import numpy as np

from tests.builders import (
    AFFINE,
    case_names,
    nifti_bytes,
    organ_boxes,
    write_cases,
    write_gzip,
    write_nifti,
)

MIRRORED = AFFINE @ np.diag([-1.0, 1.0, 1.0, 1.0])
SHIFTED = AFFINE + np.outer([1, 0, 0, 0], [0, 0, 0, 100])

FILE = Path(__file__).with_suffix(".txt")
"""The message of each; ``pytest tests/evaluation/test_evaluate.py -p no:xdist
--update-messages`` writes it, and its changes are read by hand."""


def damage(change):
    def damage_file(folder):
        path = folder / "validation_002.nii.gz"
        path.write_bytes(change(path.read_bytes()))

    return damage_file


def rewrite(**changes):
    def rewrite_file(folder):
        content = {"labels": organ_boxes(), **changes}
        write_nifti(folder / "validation_002.nii.gz", **content)

    return rewrite_file


def flip_bit(content):
    damaged = bytearray(content)
    damaged[len(damaged) // 2] ^= 0x10
    return bytes(damaged)


def copy_to(name):
    def copy(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "validation_002.nii.gz", folder / name)

    return copy


def rename_to(name):
    return lambda folder: (folder / "validation_002.nii.gz").rename(folder / name)


def with_voxel(value):
    """Labels of which one is replaced."""
    labels = organ_boxes().astype(np.float64)
    labels[9, 15, 19] = value
    return labels


def link_to(target):
    """A refusal that puts a link in the place of the second file."""

    def link(folder):
        path = folder / "validation_002.nii.gz"
        path.unlink()
        path.symlink_to(target(folder))

    return link


def make_pipe(folder):
    """A pipe in the place of the second file; to open it would wait for ever."""
    (folder / "validation_002.nii.gz").unlink()
    os.mkfifo(folder / "validation_002.nii.gz")


def reorient(folder):
    """Turned to RAS by nibabel, header and voxels."""
    path = folder / "validation_002.nii.gz"
    nib.save(nib.as_closest_canonical(nib.load(path)), path)


def halve(folder):
    """Resampled to voxels twice as large in plane."""
    affine = AFFINE @ np.diag([2, 2, 1, 1])
    affine[:2, 3] -= 0.4
    labels = np.ascontiguousarray(organ_boxes()[:, ::2, ::2])
    write_nifti(folder / "validation_002.nii.gz", labels, affine=affine)


def many_labels():
    labels = organ_boxes()
    labels[0, 0, :9] = range(5, 14)
    return labels


REFUSALS = {
    "missing": lambda folder: (folder / "validation_002.nii.gz").unlink(),
    "duplicate": copy_to("again/validation_002.nii.gz"),
    "misnamed": rename_to("validation_2.nii.gz"),
    "unexpected": copy_to("liver.nii.gz"),
    "other format": rename_to("validation_002.mhd"),
    "truncated": damage(lambda content: content[:-20]),
    "bit-flipped": damage(flip_bit),
    "trailing bytes": damage(lambda content: content + b"more"),
    "too few voxels": lambda folder: write_gzip(
        folder / "validation_002.nii.gz", nifti_bytes(organ_boxes())[:-1]
    ),
    "empty": damage(lambda _: b""),
    "foreign": damage(lambda _: b"This is a text."),
    "wrongly sized": rewrite(labels=organ_boxes()[:-1]),
    "wrongly oriented": rewrite(affine=MIRRORED),
    "shifted": rewrite(affine=SHIFTED),
    "out of range": rewrite(labels=with_voxel(257), dtype="<i2"),
    "unknown label": rewrite(labels=with_voxel(5)),
    "negative": rewrite(labels=with_voxel(-1), dtype="<i2"),
    "non-integer": rewrite(labels=with_voxel(0.5), dtype="<f4"),
    "nothing": lambda folder: [path.unlink() for path in list(folder.iterdir())],
    "axes reversed": rewrite(labels=np.ascontiguousarray(organ_boxes().T)),
    "resampled": halve,
    "header lost": rewrite(affine=np.eye(4)),
    "reoriented": reorient,
    "probabilities": rewrite(labels=np.zeros((5, 10, 16, 20)), dtype="<f4"),
    "another edition": rewrite(labels=many_labels()),
    "a link to the references": link_to(
        lambda folder: folder.parent / "ground-truth/validation_002.nii.gz"
    ),
    "a pipe": make_pipe,
    "all empty": lambda folder: write_cases(
        folder, case_names(3), labels=np.zeros_like(organ_boxes())
    ),
}
"""By name; the messages are in refusals.txt."""

MESSAGES = dict(line.split(": ", 1) for line in FILE.read_text().splitlines())
