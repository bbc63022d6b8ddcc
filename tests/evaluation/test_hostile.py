"""Nothing that a participant uploads crashes, stalls, exhausts or cheats an evaluation.

Each evaluation is a process of its own, with 3 GB of memory and a deadline, as small as
what the platform gives. Whatever happens, there is one line on stderr, with a code.
"""

import os
import re
import shutil
import zlib

import pytest

from tests.builders import (
    case_names,
    metaimage_bytes,
    nifti_bytes,
    nrrd_bytes,
    organ_boxes,
    write_gzip,
)
from tests.builders.errors import told
from tests.builders.warm import run_warm

pytestmark = pytest.mark.slow

MEMORY_BYTES = 3 * 2**30
DEADLINE_S = 30

CASE = "validation_002"


def run_limited(predictions, ground_truth, output, *, code=None):
    """Run an evaluation with little memory; the deadline is the test's."""
    program = ("evaluate.py",) if code is None else ("-c", code)
    folders = ["--input", predictions, "--ground-truth", ground_truth]
    arguments = [*folders, "--output", output, "--workers", "2"]
    limits = {"RLIMIT_DATA": MEMORY_BYTES}
    return run_warm(program, [*map(str, arguments)], timeout=DEADLINE_S, limits=limits)


def refusal(run):
    assert run.returncode == 1, run
    assert run.stderr.count(b"\n") == 1
    assert b"Traceback" not in run.stderr
    line = run.stderr.decode("utf-8").rstrip("\n")
    assert line.isprintable()
    assert len(line.encode()) < 1024
    return line


@pytest.fixture
def refused(predictions, ground_truth, output):
    def evaluate(content, suffix=".nii.gz"):
        (predictions / f"{CASE}.nii.gz").unlink(missing_ok=True)
        (predictions / f"{CASE}{suffix}").write_bytes(content)
        run = run_limited(predictions, ground_truth, output)
        assert not (output / "metrics.json").exists()
        return refusal(run)

    return evaluate


TERABYTES = "100000 100000 100000"


@pytest.mark.parametrize(
    ("code", "suffix", "content"),
    [
        ("F06", ".mha", metaimage_bytes(organ_boxes(), DimSize=f"{'9' * 5000} 1 1")),
        ("F06", ".mha", metaimage_bytes(organ_boxes(), ElementSpacing="1e308 1e308 1")),
        ("F07", ".mha", metaimage_bytes(organ_boxes(), DimSize=TERABYTES)),
        ("F07", ".nrrd", nrrd_bytes(organ_boxes(), sizes=TERABYTES)),
        ("F08", ".mha", metaimage_bytes(organ_boxes(), ElementSpacing="0 0.8 2.5")),
    ],
    ids=["thousands of digits", "infinite", "terabytes", "in NRRD", "zero spacing"],
)
def test_a_header_that_promises_too_much_is_refused(refused, code, suffix, content):
    assert told(refused(content, suffix)) == (code, f"{CASE}{suffix}")


def gzip_bomb():
    """Half a MB that is half a GB: no more than the header promises is decompressed."""
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [bomb.compress(nifti_bytes(organ_boxes())[:352])]
    parts += [bomb.compress(bytes(2**20)) for _ in range(512)]
    return b"".join([*parts, bomb.flush()])


def test_a_gzip_bomb_behind_a_small_header_is_refused(refused):
    assert "it holds more voxels than its header says" in refused(gzip_bomb())


NAMES = {
    "255 bytes": b"n" * 248 + b".nii.gz",
    "newlines": b"a\nb\r\nc [F01]\n.nii.gz",
    "escape sequences": b"\x1b[2J\x1b]0;title\x07\x08.nii.gz",
    "invalid UTF-8": b"\xff\xfe\xc3.nii.gz",
    "right to left": "\u202egz.iin.\u2066x.nii.gz".encode(),
    "surrogates": b"\xed\xa0\x80.nii.gz",
    "only spaces": b"   .nii.gz",
    "braces": b"{0} %s %n.nii.gz",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_file_name_is_told_as_no_case(
    predictions, ground_truth, output, name
):
    (predictions / os.fsdecode(NAMES[name])).write_bytes(b"")

    line = refusal(run_limited(predictions, ground_truth, output))

    assert "no case has this name" in line
    assert line.endswith("[F04]")


CHANGES = {
    "another size": "write_nifti(path, organ_boxes()[:-1])",
    "gone": "path.unlink()",
    "a link": "path.unlink(); path.symlink_to('/etc/passwd')",
    "a pipe": "path.unlink(); os.mkfifo(path)",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_it_is_read(
    predictions, ground_truth, output, change
):
    """After its header has been checked, and before its voxels are read."""
    code = (
        "import os, sys, flare.evaluation.evaluate\n"
        "from pathlib import Path\n"
        "from tests.builders import organ_boxes, write_nifti\n"
        "from flare.cli.main import main\n"
        "score = flare.evaluation.evaluate.score_cases\n"
        "def score_cases(*arguments, **options):\n"
        f"    path = Path({str(predictions)!r}, '{CASE}.nii.gz')\n"
        f"    {CHANGES[change]}\n"
        "    return score(*arguments, **options)\n"
        "flare.evaluation.evaluate.score_cases = score_cases\n"
        "sys.exit(main(['evaluate', *sys.argv[1:]]))\n"
    )

    line = refusal(run_limited(predictions, ground_truth, output, code=code))

    assert line.startswith((f"{CASE}.nii.gz: ", "validation_002.nii.gz: "))
    assert "Internal error" not in line


SENTINEL = "sentinel7f3a"


@pytest.fixture
def secret(tmp_path):
    """References whose header, voxels and place hold something to search for.

    The liver has a number of voxels that is found nowhere else.
    """
    labels = organ_boxes()
    labels[0, 0, :17] = 1
    folder = tmp_path / f"labels-{SENTINEL}" / SENTINEL
    for name in case_names(3):
        content = bytearray(nifti_bytes(labels))
        content[148 : 148 + len(SENTINEL)] = SENTINEL.encode()  # descrip
        write_gzip(folder / f"{name}.nii.gz", bytes(content))
    return folder


def nothing_leaks(run, output):
    """Neither messages, nor the log behind its first line, nor a result say it."""
    assert run.returncode == 1
    assert not (output / "metrics.json").exists()
    log = run.stdout.decode().splitlines()
    assert log[0].endswith(SENTINEL)  # which folder the organisers have given
    for text in (run.stderr.decode(), *log[1:]):
        assert SENTINEL not in text
        assert not re.search(r"\bDSC 1\.0|\bDSC 0\.\d", text)


@pytest.mark.parametrize(
    ("link", "code"), [(f"{CASE}.nii.gz", "F06"), ("", "F01")], ids=["file", "folder"]
)
def test_cheating_by_a_link_to_the_references(predictions, secret, output, link, code):
    if link:
        (predictions / link).unlink()
    else:
        shutil.rmtree(predictions)
        predictions.mkdir()
    (predictions / (link or "mine")).symlink_to(secret / link)

    run = run_limited(predictions, secret, output)

    assert refusal(run).endswith(f"[{code}]")
    nothing_leaks(run, output)


def test_a_result_holds_no_more_of_the_references_than_its_scores(
    predictions, secret, output
):
    run = run_limited(predictions, secret, output)

    assert run.returncode == 0
    text = (output / "metrics.json").read_text(encoding="utf-8")
    assert SENTINEL not in text
    assert sorted(path.name for path in output.iterdir()) == ["metrics.json"]


def test_a_submission_cannot_bring_files_along(predictions, ground_truth, output):
    """Not a program, nor settings: what is not a label map is not looked at."""
    for name in ("evaluate.py", "sitecustomize.py", "flare21.toml", "metrics.json"):
        (predictions / name).write_text("raise SystemExit('taken over')")

    run = run_limited(predictions, ground_truth, output)

    assert (run.returncode, run.stderr) == (0, b"")
    assert b"taken over" not in run.stdout
