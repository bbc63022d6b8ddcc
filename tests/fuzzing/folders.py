"""Feeds file trees and zip files to the code that looks for label maps.

Whatever a participant sends, it is scored, or refused by one of the program's errors,
on one line, in time. What a tree or a zip is refused for is never called the fault of
the organisers, or of the computer; in a phase for predictions, neither is a
predictions.json, which is always refused.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import zipfile
from pathlib import Path

import flare
from flare.cli.console import _fitting
from flare.common.errors import FlareError, SubmissionError
from flare.evaluation.check import check_submission
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.unpack import is_container_image, unpack_zip
from flare.platforms.grandchallenge.upload import prepare_input
from flare.results.metrics_json import metrics_json
from tests.builders import case_names, nifti_bytes, organ_boxes, write_cases, write_gzip

CASES = case_names(3)

NAMES = [
    *(f"{case}.nii.gz" for case in CASES * 4),
    *(f"{case}{end}" for case in CASES for end in (".nii", ".mha", ".NII.GZ", "")),
    *("validation_1.nii.gz", "Validation-002.nii.gz", "validation_001 (1).nii.gz"),
    *("validation_001.nii (1).gz", "validation_001.gz", "validation_001_0000.nii.gz"),
    *("validation_001_liver.nii.gz", "liver.nii.gz", "validation_001_kidney.nii.gz"),
    *("validation_001_seg.nii.gz", "validation_001.seg.nrrd", "segmentations"),
    *("v\u0430lidation_001.nii.gz", "validation_00\u00b2.nii.gz", "\u0661.nii.gz"),
    *("inputs.json", "predictions.json", ".DS_Store", "__MACOSX", "a.zip", "x.csv"),
    *("\ud800.nii.gz", "9" * 200 + ".nii.gz"),
    *("-", "~", "a\nb.nii.gz", "\x1b[31m.nii.gz", "%s%n.nii.gz", " .nii.gz", "..."),
    *(os.fsdecode(b"\xff\xfe.nii.gz"), os.fsdecode(b"validation_001\xe9.nii.gz")),
    *("\u202egz.iin.1.nii.gz", "\u00e9.nii.gz", "e\u0301.nii.gz", ".nii.gz", ".nii"),
    *("validation_" + "1" * 240, "\u0c66" * 60 + ".nii.gz", "\u2460.nii.gz", "d", "e"),
]


def contents():
    good = nifti_bytes(organ_boxes())
    return [good, good[:-9], b"", b"PK\x03\x04", b"\x1f\x8b", b"NRRD", good[:200]]


def plant(folder: Path, chance: random.Random, files: list[bytes]) -> None:
    """Fill a folder with what a participant might send, and might not."""
    folders = [folder]
    for _ in range(chance.choice((0, 1, 3, 6, 30))):
        parent, name = chance.choice(folders), chance.choice(NAMES)
        path = parent / name
        if os.path.lexists(path):  # a link must not be written through
            continue
        with contextlib.suppress(OSError, ValueError):
            kind = chance.randrange(12)
            if kind < 6:
                write_gzip(path, chance.choice(files[:1] * 6 + files))
            elif kind == 6:
                path.write_bytes(chance.choice(files))
            elif kind == 7:
                path.mkdir()
                folders.append(path)
            elif kind == 8:
                targets = ("/etc/os-release", ".", "..", str(path), "/no", "/dev/zero")
                path.symlink_to(chance.choice(targets))
            elif kind == 9:
                os.mkfifo(path)
            elif kind == 10:
                dig(path, chance.choice((3, 150, 210, 2100)), chance)
            else:
                write_cases(path, CASES)
    if chance.random() < 0.3:  # otherwise too few are whole
        for name in CASES:
            if not os.path.lexists(folder / f"{name}.nii.gz"):
                write_cases(folder, [name])


def dig(top: Path, depth: int, chance: random.Random) -> None:
    """Make folders in folders, deeper than a path can tell."""
    name, place = "d" * chance.choice((1, 1, 100)), os.open(top.parent, os.O_RDONLY)
    try:
        for number in range(depth):
            here = top.name if not number else name
            os.mkdir(here, dir_fd=place)
            inner = os.open(here, os.O_RDONLY, dir_fd=place)
            os.close(place)
            place = inner
        end = chance.choice(NAMES)
        os.close(os.open(end, os.O_CREAT | os.O_WRONLY, dir_fd=place))
    finally:
        os.close(place)


def zipped(chance: random.Random, files: list[bytes]) -> bytes:
    target = io.BytesIO()
    odd = ("../x.nii.gz", "/x", "a\\b.nii.gz", "a//b", "a/", "", ".", "a/../b", "C:\\x")
    with zipfile.ZipFile(target, "w") as archive:
        for _ in range(chance.choice((0, 1, 3, 8))):
            name = chance.choice((*NAMES, *NAMES, *odd))
            name = f"{chance.choice(('', 'x/', 'x/y/'))}{name}"
            entry = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
            entry.compress_type = chance.choice(kinds)
            entry.external_attr = chance.choice((0, 0o120777 << 16, 0o10644 << 16))
            archive.writestr(entry, chance.choice(files))
    content = bytearray(target.getvalue())
    for _ in range(chance.choice((0, 0, 1, 4))):
        place = chance.randrange(len(content))
        content[place] = chance.choice((0, 1, 8, 127, 255, content[place] ^ 1))
    if chance.random() < 0.1:
        del content[chance.randrange(len(content)) :]
    return bytes(content)


def judge(folder: Path, truth: Path, chance: random.Random, *, is_ours: bool) -> str:
    """Evaluate and check a folder; the result is what came of it."""
    outcome = "scored"
    try:
        results = flare.evaluate(
            folder,
            truth,
            challenge=chance.choice(("flare21", "flare22")),
            on_bad_case=chance.choice(("refuse", "worst")),
        )
        json.loads(metrics_json(results))
    except FlareError as error:
        outcome = _refusal(error, is_ours=is_ours)
    for images in (None, truth):
        try:
            report = check_submission(
                folder, flare.read_challenge("flare21"), images=images, workers=1
            )
            assert all(_fitting(line).isprintable() for line in report.lines)
        except FlareError as error:
            _refusal(error, is_ours=is_ours)
    return outcome


def _refusal(error: FlareError, *, is_ours: bool) -> str:
    line = _fitting(str(error))
    assert line.isprintable(), line
    assert re.search(r"\[[FGH]\d\d\]$", line), line
    assert is_ours or isinstance(error, SubmissionError), line
    return f"refused {error.code}"


def attempt(chance: random.Random, work: Path) -> str:
    """Try one input; the result is the outcome, and any broken rule is raised."""
    folder, files = work / "input", contents()
    truth = work.parent / "truth"
    if not truth.exists():
        write_cases(truth, CASES)
    folder.mkdir()
    kind = chance.choice(("tree", "zip", "upload"))
    if kind == "tree":
        plant(folder, chance, files)
        has_jobs = os.path.lexists(folder / "predictions.json")
        return f"tree {judge(folder, truth, chance, is_ours=has_jobs)}"
    file = work / "submission.zip"
    file.write_bytes(zipped(chance, files))
    is_container_image(file)
    if kind == "upload":
        try:
            prepare_input(file, folder)
        except UploadError as error:
            return f"upload {_refusal(error, is_ours=True)}"
        outcome = judge(folder, truth, chance, is_ours=False)
        has_jobs = os.path.lexists(folder / "predictions.json")
        assert not has_jobs or outcome == "refused F14", outcome
        return f"upload {outcome}"
    try:
        unpack_zip(file, folder)
    except UploadError as error:
        return f"zip {_refusal(error, is_ours=True)}"
    assert {path.name for path in work.iterdir()} == {"input", "submission.zip"}
    return f"zip {judge(folder, truth, chance, is_ours=True)}"
