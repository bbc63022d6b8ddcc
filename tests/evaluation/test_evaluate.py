"""The program as the platform starts it: exit status, stderr and metrics.json."""

import os
import re
import shutil
import sys

import numpy as np
import pytest

import flare
from flare.challenge.reading import challenge_text
from flare.cli.command import version_text
from flare.cli.main import main
from flare.common.environment import source_commit
from flare.common.text import safe
from flare.evaluation.check import check_references, check_submission
from flare.evaluation.errors import (
    DemonstrationSetError,
    GroundTruthError,
    MissingCasesError,
)
from tests.builders import (
    ORGANS,
    ROOT,
    SPACING,
    case_names,
    error_of,
    needs_checkout,
    organ_boxes,
    read_metrics,
    run_command,
    run_evaluate,
    run_flare,
    run_program,
    write_cases,
    write_nifti,
)
from tests.builders.errors import told
from tests.builders.fewer import few_fast
from tests.evaluation.refusals import FILE, MESSAGES, REFUSALS, SHIFTED, with_voxel
from tests.oracles import brute_force_dsc, brute_force_nsd

# --- A good submission ------------------------------------------------------------


def test_metrics_json_has_the_same_bytes_with_one_worker_and_two(
    predictions, ground_truth, output, tmp_path
):
    """The bytes are the same with one worker and with two, and whatever lay there."""
    output.mkdir()
    (output / "metrics.json").write_text("old")
    alone = flare.evaluate(predictions, ground_truth, workers=1)

    run = run_evaluate(predictions, ground_truth, output, workers=2)

    assert (run.returncode, run.stderr) == (0, b"")
    (file,) = output.iterdir()
    other = flare.write_metrics(alone, tmp_path / "other")
    assert file.read_bytes() == other.read_bytes()
    content = read_metrics(output)
    maps = organ_boxes(), organ_boxes(shift=1)
    spacing = tuple(float(np.float32(size)) for size in SPACING)
    for label, organ in ORGANS.items():
        masks = [labels == label for labels in maps]
        dsc, nsd = brute_force_dsc(*masks), brute_force_nsd(*masks, spacing, 1.0)
        for number in ("0", "1", "2"):
            assert content["case"][f"dsc_{organ}"][number] == dsc
            found = content["case"][f"nsd_{organ}"][number]
            assert found == pytest.approx(nsd, abs=1e-12)
    assert content["case"]["gt_fname"]["2"] == "validation_003.nii.gz"
    assert content["failed"] == {}
    evaluation = content["evaluation"]
    assert evaluation["challenge"] == "flare21"
    assert evaluation["cases"] == 3
    assert evaluation["version"] == flare.__version__
    assert evaluation["libraries"]["numpy"] == np.__version__
    assert re.fullmatch("[0-9a-f]{64}", evaluation["references_sha256"])
    assert content["warnings"] == []
    assert not {"low_scores", "jobs"} & set(content)
    lines = run.stdout.decode().splitlines()
    cases = [line for line in lines if line.startswith("[")]
    assert len(cases) == 3
    for number, line in enumerate(cases, start=1):
        pattern = rf"\[{number}/3\] validation_00{number} DSC 0\.\d+ NSD \d\.\d+ \S+ s"
        assert re.fullmatch(pattern, line)
    assert lines[-1] == f"Wrote {output / 'metrics.json'}"


def test_a_zip_is_scored_as_its_folder(predictions, ground_truth, output, tmp_path):
    """On the command line, in the place of the folder or behind --input; in Python."""
    submission = shutil.make_archive(str(tmp_path / "mine"), "zip", predictions)
    files = [flare.write_metrics(flare.evaluate(submission, ground_truth), output)]
    files.append(output.with_name("2") / "metrics.json")
    words = ("evaluate", submission, "--ground-truth", ground_truth)

    run = run_flare(*words, "--output", files[1].parent)

    assert (run.returncode, run.stderr) == (0, "")
    assert run_evaluate(submission, ground_truth, output.with_name("3")).stderr == b""
    files.append(output.with_name("3") / "metrics.json")
    assert run_evaluate(predictions, ground_truth, output.with_name("4")).stderr == b""
    expected = (output.with_name("4") / "metrics.json").read_bytes()
    assert [file.read_bytes() for file in files] == [expected] * 3


def test_a_single_file_is_not_told_as_several(tmp_path, caplog):
    labels = write_cases(tmp_path / "labels", ["case_1"])
    predictions = write_cases(tmp_path / "predictions", ["case_1"])
    (predictions / "notes.txt").touch()

    with caplog.at_level("INFO"):
        flare.evaluate(predictions, labels, workers=1)

    first = ["Found 1 label map: case_1.nii.gz", "Ignored 1 file: notes.txt"]
    assert caplog.messages[:2] == first
    text = check_references(labels, flare.read_challenge("flare21"))
    assert text.startswith("FLARE 2021: 1 reference label map can be used\n")
    assert "Submit the file in one zip." in str(MissingCasesError(["case_1.nii.gz"], 1))


# --- Refusals ---------------------------------------------------------------------


@pytest.mark.parametrize("name", few_fast(REFUSALS, fast=range(0, len(REFUSALS), 3)))
def test_a_refusal_is_one_line_and_no_result(predictions, ground_truth, output, name):
    """An earlier metrics.json is gone as well; two processes read the label maps.

    A test below has every message, from the function, among the fast tests.
    """
    output.mkdir()
    (output / "metrics.json").write_text("old")
    REFUSALS[name](predictions)

    run = run_evaluate(predictions, ground_truth, output, workers=2)

    assert run.returncode == 1
    assert run.stderr.decode() == f"{MESSAGES[name]}\n"
    assert len(run.stderr) < 300
    assert list(output.iterdir()) == []


@pytest.fixture
def spoilt(tmp_path):
    """A submission of which one of nine cases is good, and its references."""
    names = case_names(9)
    folder = write_cases(tmp_path / "input", names)
    write_cases(tmp_path / "labels", names)
    (folder / "validation_002.nii.gz").unlink()
    (folder / "validation_003.nii.gz").rename(folder / "Validation-3.nii.gz")
    (folder / "b").mkdir()
    shutil.copy(folder / "validation_004.nii.gz", folder / "b")
    write_nifti(folder / "validation_005.nii.gz", organ_boxes()[:-1])
    write_nifti(folder / "validation_006.nii.gz", organ_boxes(), affine=SHIFTED)
    path = folder / "validation_007.nii.gz"
    path.write_bytes(path.read_bytes()[:-9])
    write_nifti(folder / "validation_008.nii.gz", with_voxel(9))
    (folder / "validation_009.nii.gz").rename(folder / "validation_009.mhd")
    write_cases(folder, ["liver"])
    return folder, tmp_path / "labels"


def test_all_that_is_wrong_is_said_at_once(spoilt):
    """Names, headers and voxels share the line, in the order of the contract."""
    error = error_of(flare.SubmissionError, flare.evaluate, *spoilt)

    line = str(error)
    assert len(line) <= 1024
    codes = " ".join(re.findall(r"\[(F\d\d)\]", line))
    assert codes == "F02 F03 F04 F05 F06 F07 F08 F09 F11"


@pytest.mark.newest
@pytest.mark.parametrize("name", REFUSALS)
def test_no_word_of_a_refusal_depends_on_the_references_voxels(
    predictions, ground_truth, name, request
):
    """The references' labels are exchanged, moved and, but for one, removed.

    Their headers stay. Without any organ, empty predictions would be right.

    The check says what the evaluation says.
    """
    REFUSALS[name](predictions)
    labels = organ_boxes()
    messages = set()
    for voxels in (((5 - labels) % 5)[::-1, ::-1], labels // 4):
        write_cases(ground_truth, case_names(3), labels=np.ascontiguousarray(voxels))
        folders = predictions, ground_truth
        messages.add(str(error_of(flare.SubmissionError, flare.evaluate, *folders)))
    challenge = flare.read_challenge("flare21")
    report = check_submission(predictions, challenge, ground_truth=ground_truth)
    messages.add(" ".join(report.lines))

    if request.config.getoption("--update-messages"):
        MESSAGES[name] = messages.copy().pop()
        FILE.write_text("".join(f"{key}: {MESSAGES[key]}\n" for key in REFUSALS))
    assert messages == {MESSAGES[name]}


# --- Options ----------------------------------------------------------------------


def test_on_bad_case_worst_scores_what_there_is(spoilt, output):
    """Each other case has 0 for everything, and its reason."""
    run = run_evaluate(*spoilt, output, "--on-bad-case", "worst")

    assert (run.returncode, run.stderr) == (0, b"")
    content = read_metrics(output)
    assert content["case"]["dsc"] == {"0": 1.0} | {str(n): 0.0 for n in range(1, 9)}
    assert set(content["case"]["nsd_liver"].values()) == {0.0, 1.0}
    assert content["case"]["alg_fname"]["1"] == ""
    assert content["case"]["gt_fname"]["1"] == "validation_002.nii.gz"
    assert content["aggregates"]["dsc_mean"] == 1 / 9
    failed = content["failed"]
    reasons = [failed[name].rpartition(": ")[2] for name in case_names(9)[1:]]
    assert reasons == [
        "no file was submitted",
        "no case has this name",
        "2 files for one case",
        "size is 20 x 16 x 9 voxels, expected 20 x 16 x 10",
        "RAS origin is (190, 110, -300) mm, expected (90, 110, -300) mm",
        "its compressed data end early",
        "unknown label 9",
        "it is half of an image, whose header and voxels are two files",
    ]
    twice = "b/validation_004.nii.gz, validation_004.nii.gz"
    assert failed["validation_004"] == f"{twice}: 2 files for one case"
    assert "validation_003" not in failed["validation_003"]  # but the file's own name
    # The first five reasons are told apart, each with its files.
    counts = [text.partition(": ")[0] for text in content["warnings"]]
    assert counts == [
        *["1 of 9 cases scores 0"] * 5,
        "3 of 9 cases score 0",
        "liver.nii.gz",
    ]
    assert content["warnings"][2].endswith(f" 2 files for one case ({twice})")
    assert content["warnings"][5].endswith(
        " other reasons (validation_007.nii.gz, validation_008.nii.gz,"
        " validation_009.mhd)"
    )
    assert all(warning in run.stdout.decode() for warning in content["warnings"])
    reasons = [low["reason"] for low in content["low_scores"]]
    assert reasons == content["warnings"][:-1]  # the last one is about no case
    assert [len(low["cases"]) for low in content["low_scores"]] == [1] * 5 + [3]
    assert content["low_scores"][0]["cases"] == ["validation_002"]
    assert content["evaluation"]["options"] == {"on_bad_case": "worst"}


def test_ignored_labels_are_told(predictions, ground_truth, output):
    """As of a team that counts organs from 1 where the labels are others."""
    for case in case_names(2):
        write_nifti(predictions / f"{case}.nii.gz", organ_boxes() * 5)

    run = run_evaluate(predictions, ground_truth, output, "--unknown-labels", "ignore")

    line = (
        "labels 5, 10, 15 and 20 are no organs and count as background, in 2 of 3 files"
    )
    content = read_metrics(output)
    assert content["warnings"] == [line]
    assert content["low_scores"] == [{"reason": line, "cases": case_names(2)}]
    assert line in run.stdout.decode()
    write_nifti(ground_truth / "validation_002.nii.gz", with_voxel(9))
    with pytest.raises(GroundTruthError, match="labels that the challenge does not"):
        flare.evaluate(predictions, ground_truth, unknown_labels="ignore")


def test_on_bad_case_worst_of_an_empty_submission(tmp_path, ground_truth):
    (tmp_path / "input").mkdir()

    results = flare.evaluate(tmp_path / "input", ground_truth, on_bad_case="worst")

    assert [bool(case.failure) for case in results.cases] == [True] * 3


@pytest.mark.parametrize("submitted", [(), ("validation_002",)])
def test_on_bad_case_worst_tells_of_archives_that_are_not_opened(
    tmp_path, ground_truth, submitted
):
    """As of a zip within the zip: nobody learns else why all cases score 0."""
    folder = write_cases(tmp_path / "input", (*submitted, "more"))
    (folder / "more.nii.gz").rename(folder / "inner.zip")

    results = flare.evaluate(folder, ground_truth, on_bad_case="worst")

    reason = "no file was submitted but an archive, which is not opened"
    count = 3 - len(submitted)
    line = f"{count} of 3 cases score 0: {reason} (inner.zip)"
    assert line in results.warnings
    assert [low.reason for low in results.low_scores] == [line]
    failures = [case.failure for case in results.cases if case.failure]
    assert failures == [f"inner.zip: {reason}"] * count


def test_the_demonstration_set_is_meant_only_where_someone_says_so(tmp_path):
    """To score 0 for bad cases is another matter, and to submit nothing, too."""
    labels = write_cases(tmp_path / "labels", ["demo_001"])
    folder = write_cases(tmp_path / "predictions", case_names(1))

    (tmp_path / "none").mkdir()
    for submitted, truth in (
        (folder, labels),
        (tmp_path / "none", ROOT / "ground-truth"),
    ):
        with pytest.raises(DemonstrationSetError):
            flare.evaluate(submitted, truth, on_bad_case="worst")
    results = flare.evaluate(folder, labels, on_bad_case="worst", is_measured=True)
    assert results.metrics["dsc"] == (0.0,)


def test_grid_size_warns_of_another_position(predictions, ground_truth, output):
    write_nifti(predictions / "validation_002.nii.gz", organ_boxes(), affine=SHIFTED)

    run = run_evaluate(predictions, ground_truth, output, "--grid", "size")

    assert (run.returncode, run.stderr) == (0, b"")
    content = read_metrics(output)
    assert content["case"]["dsc"]["1"] == 1.0
    assert len(content["warnings"]) == 1
    assert content["warnings"][0].startswith("validation_002.nii.gz: it lies up to 100")
    assert content["evaluation"]["options"] == {"grid": "size"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("on_bad_case", value) for value in ("Worst", None)),
        *(("grid", value) for value in ("Strict", "")),
        ("unknown_labels", "ignored"),
        *(("decimals", value) for value in (-1, 2.5)),
        *(("workers", value) for value in (0, True, "2")),
    ],
)
def test_impossible_arguments_are_refused_before_anything_is_read(name, value):
    with pytest.raises(ValueError, match=f"^{name} is {value!r}, expected "):
        flare.evaluate("nowhere", "nowhere", **{name: value})


@pytest.mark.parametrize(
    ("option", "variable", "board", "decimals"),
    [
        ([], None, None, ""),
        ([], "", 0, "0"),
        ([], "3", 2, "3"),
        (["--decimals", "4"], "3", 2, "4"),
    ],
)
def test_the_nearest_decimals_count(
    predictions, ground_truth, output, monkeypatch, option, variable, board, decimals
):
    """The option, else the variable, which the image has, else the challenge file."""
    mine = predictions.parent / "mine.toml"
    more = "" if board is None else f"\n[board]\ndecimals = {board}\n"
    mine.write_text(challenge_text("flare21") + more)
    monkeypatch.delenv("FLARE_DECIMALS", raising=False)
    if variable is not None:
        monkeypatch.setenv("FLARE_DECIMALS", variable)
    folders = ("--input", predictions, "--ground-truth", ground_truth)
    words = ("evaluate", *folders, "--output", output, "--challenge", mine, *option)

    assert main([*map(str, words)]) == 0

    content = read_metrics(output)
    assert content["evaluation"]["options"].get("decimals", "") == decimals
    rounded = round(6 / 7, int(decimals)) if decimals else 6 / 7
    assert content["case"]["dsc_liver"]["0"] == pytest.approx(rounded, abs=1e-12)


# --- The organisers' and the operator's mistakes ----------------------------------


def test_an_image_without_its_references_is_no_fault_of_the_submission(
    predictions, tmp_path, monkeypatch
):
    """A participant reads it: the place in the image tells nothing."""
    gone = tmp_path / "ground-truth"
    folder = sys.modules["flare.evaluation.submission.find"]
    monkeypatch.setattr(folder, "BUNDLED_GROUND_TRUTH", gone)

    error = error_of(GroundTruthError, flare.evaluate, predictions, gone)

    assert error.problem == "there is no such folder"


@pytest.mark.parametrize("package", ["numpy", "click"])
def test_without_its_packages_the_program_says_how_to_get_them(tmp_path, package):
    stand_in = f"raise ModuleNotFoundError(name={package!r})"
    (tmp_path / f"{package}.py").write_text(stand_in)

    run = run_program(
        *("--input", "examples/predictions", "--output", tmp_path),
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )

    assert run.returncode == 1
    assert run.stderr.decode() == (
        f"evaluate.py: the Python package {package} is not installed."
        " Run ./demo.sh once, then: .venv/bin/python evaluate.py\n"
    )


def test_an_output_that_cannot_be_written(predictions, ground_truth, tmp_path):
    (tmp_path / "file").touch()

    run = run_evaluate(predictions, ground_truth, tmp_path / "file")

    assert run.returncode == 1
    file = safe(tmp_path / "file" / "metrics.json")
    assert told(run.stderr.decode()) == ("H02", file)


# --- Environment, command line, processes -----------------------------------------


def test_in_the_image_folders_are_those_of_the_platform(
    predictions, ground_truth, output
):
    """Which sets two variables; elsewhere nothing is ever written to /output."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ENV (.*\\\n)* *FLARE_INPUT=/input \\$", dockerfile, re.M)
    assert re.search(r"^ENV (.*\\\n)* *FLARE_OUTPUT=/output$", dockerfile, re.M)
    assert "\nLABEL org.grand-challenge.api-method=exec\n" in dockerfile
    folders = {"FLARE_INPUT": str(predictions), "FLARE_OUTPUT": str(output)}

    unset = {"FLARE_WORKERS": "", "FLARE_CHALLENGE": ""}

    run = run_program("--ground-truth", ground_truth, env=os.environ | folders | unset)

    assert (run.returncode, run.stderr) == (0, b"")
    assert (output / "metrics.json").exists()
    run = run_program(env=os.environ | {"FLARE_INPUT": "", "FLARE_OUTPUT": "/output"})
    assert run.returncode == 2
    assert b"Missing argument 'PREDICTIONS'; see" in run.stderr


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("FLARE_CHALLENGE", "nonsense", "nonsense: no such challenge"),
        ("FLARE_WORKERS", "many", "'many' is not a whole number above 0"),
        ("FLARE_DECIMALS", "16", "'--decimals': "),
    ],
)
def test_environment_variables_stand_in_for_arguments(
    predictions, monkeypatch, capfd, name, value, text
):
    monkeypatch.setenv(name, value)

    assert main(["evaluate", "--input", str(predictions), "--output", "/no"]) != 0

    (line,) = capfd.readouterr().err.splitlines()
    assert text in line


@pytest.mark.slow
def test_the_program_has_three_names_and_a_version():
    commit = source_commit()
    text = f"flare {flare.__version__}"
    text += "\n" if commit == "unknown" else f" ({commit})\n"
    for program in (("evaluate.py",), ("-m", "flare")):
        for word in ("--version", "-V"):
            run = run_program(word, program=program)
            assert (run.returncode, run.stdout.decode()) == (0, text)
    for program in (("evaluate.py",), ("-m", "flare", "evaluate")):
        run = run_program("--help", program=program)
        assert run.returncode == 0
        assert b"--ground-truth" in run.stdout


@pytest.mark.tools("git")
@needs_checkout
def test_the_commit_comes_from_the_environment_or_from_git(monkeypatch):
    git = run_command("git", "-C", ROOT, "rev-parse", "HEAD")
    monkeypatch.delenv("FLARE_COMMIT", raising=False)
    monkeypatch.setenv("GIT_DIR", "/somewhere/else/.git")
    assert source_commit().removesuffix("-changed") == git.stdout.strip()
    monkeypatch.setenv("FLARE_COMMIT", "abc")
    assert source_commit() == "abc"
    assert version_text() == f"flare {flare.__version__} (abc)"
    monkeypatch.setenv("FLARE_COMMIT", "unknown")
    assert version_text() == f"flare {flare.__version__}"


def test_nothing_that_libraries_print_reaches_stderr(predictions, ground_truth, output):
    """Whatever writes to file descriptor 2 while we run writes to the log."""
    folders = ("--input", predictions, "--ground-truth", ground_truth)
    program = """
import os, sys, warnings, flare.cli.main, flare.evaluation.plan as plan
def noisy(*arguments, check=plan.check_headers):
    os.write(2, b"from C++\\n")
    print("from Python", file=sys.stderr)
    warnings.warn("a warning")
    return check(*arguments)
plan.check_headers = noisy
sys.exit(flare.cli.main.main(["evaluate", *sys.argv[1:]]))
"""
    run = run_command(sys.executable, "-c", program, *folders, "--output", output)

    assert (run.returncode, run.stderr) == (0, "")
    for text in ("from C++", "from Python", "a warning"):
        assert text in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "> /dev/full", "| true"])
@pytest.mark.parametrize("is_good", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_closed_and_full_streams_do_no_harm(
    predictions, ground_truth, output, closed, is_good, workers
):
    """Of any two of these, all pairs occur, beside streams that are buffered or not."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    if is_good != (workers == 1):
        environment["PYTHONUNBUFFERED"] = "1"
    if not is_good:
        (predictions / "validation_002.nii.gz").unlink()
    command = f"{sys.executable} evaluate.py --input {predictions}"
    command += f" --workers {workers}"
    command += f" --ground-truth {ground_truth} --output {output} {closed}"

    run = run_command(
        "bash", "-o", "pipefail", "-c", command, env=environment, text=False
    )

    assert run.returncode == (0 if is_good else 1)
    assert (output / "metrics.json").exists() == is_good
    lines = 0 if is_good or "2>&-" in closed else 1
    assert run.stderr.count(b"\n") == lines


def test_the_demonstration_set_need_not_fit_a_challenge_of_ones_own(tmp_path):
    """An image without labels, for which a tarball will be uploaded."""
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "M"\n[[organs]]\nlabel = 1\nname = "liver"\ntolerance_mm = 1\n'
    )

    run = run_program("check-references", "--challenge", file, program=("-m", "flare"))

    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.endswith(b"the demonstration set, which was not read.\n")


@pytest.mark.parametrize(
    ("folders", "advice"),
    [
        (("labels", "images"), "If they lie in one of images/, labels/ alone, give"),
        (("", "labels"), "If they lie in one of labels/ alone, give that one. Mend it"),
        (("labels",), "Mend it, and check again: flare explain G02 says how."),
    ],
)
def test_references_that_are_checked_excuse_no_submission(tmp_path, folders, advice):
    """Nobody has submitted yet; the folder may be the one above that of the labels."""
    for folder in folders:
        write_cases(tmp_path / folder, ["case_001"], labels=organ_boxes() * 2)

    flare21 = flare.read_challenge("flare21")
    error = error_of(GroundTruthError, check_references, tmp_path, flare21)

    assert error.remedy.startswith(advice)
    assert "submission" not in str(error)


def test_references_that_differ_and_an_organ_that_none_has(tmp_path):
    """Livers of 5 voxels of 1 ml and 10 of 2 ml, and a spleen of one; nothing else."""
    labels = np.zeros((2, 3, 4), dtype=np.uint8)
    labels.flat[:5] = 1
    write_nifti(tmp_path / "a.nii.gz", labels, affine=np.eye(4) * 10, spacing=[10] * 3)
    labels.flat[:10], labels.flat[10] = 1, 3
    affine = np.diag([10.0, 10, 20, 1])
    write_nifti(tmp_path / "b.nii.gz", labels, affine=affine, spacing=(20, 10, 10))

    table = check_references(tmp_path, flare.read_challenge("flare21"))

    assert table.splitlines() == [
        "FLARE 2021: 2 reference label maps can be used",
        "          in      smallest  median   largest",
        "liver     2 of 2  5.0 ml    12.5 ml  20.0 ml",
        "kidney    0 of 2  -         -        -",
        "spleen    1 of 2  2.0 ml    2.0 ml   2.0 ml",
        "pancreas  0 of 2  -         -        -",
        "No label map has kidney, pancreas: is --challenge flare21 the right one?",
        "Cases: a, b (submitted as a.nii.gz)",
    ]
