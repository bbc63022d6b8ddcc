"""Messages: what they say, in which order, and that nothing can break their line."""

import pickle
import re

import pytest

from flare.cli.commands.explain import error_classes
from flare.common import text as names
from flare.common.errors import (
    MESSAGE_LIMIT,
    SeveralProblemsError,
    SubmissionError,
    raise_problems,
)
from flare.evaluation.errors import (
    DamagedFileError,
    DuplicateCasesError,
    LabelError,
    MisnamedCasesError,
    MissingCasesError,
    UnexpectedCasesError,
)
from tests.builders import ROOT, error_of

EXAMPLES = {
    "F01": (["readme.txt"], "validation_001.nii.gz"),
    "F02": ([("case_1", ("a/case_1.nii.gz", "b/case_1.nii.gz"))],),
    "F03": ([("Case-1.nii.gz", "case_1.nii.gz")],),
    "F04": (["ct.nii.gz"], "validation_001.nii.gz"),
    "F05": (["case_2.nii.gz", "case_4.nii.gz"], 5),
    "F06": ("case_1.nii.gz", "it is not a NIfTI file"),
    "F07": ("case_1.nii.gz", "size is 2 x 2 x 2 voxels, expected 3 x 3 x 3"),
    "F08": ("case_1.nii.gz", "it lies up to 100 mm off"),
    "F09": ("case_1.nii.gz", "its compressed data end early"),
    "F10": ("case_1.nii.gz", "voxels are not whole numbers (found 0.5)"),
    "F11": ("case_1.nii.gz", "unknown label 5", "0 background, 1 liver"),
    "F12": (5,),
    "F13": ("case 7 of 100", "the algorithm wrote no image"),
    "F14": ("it is not JSON",),
    "F15": ("team_a.tar.gz", "it has no /bin/bash"),
    "F16": ("input/: it holds more than 1000000 files",),
    "F17": (5, "3 failed, 2 timed out (the first: exit code 3)"),
    "F18": (24.0, 12, 50),
    "F19": ("team_a.model.tar.gz", "it holds a, a hard link"),
    "F20": ("results.csv", "it is missing", ["identifier", "probs"]),
    "F21": ("results.csv", "3 of 60 answers to task are missing: a, b, c"),
    "F22": ("results.csv", "line 2 (a: 41.7): not from 0 to 1", "task", "binary"),
    "G01": ("my.toml", "name is missing"),
    "G02": ("case_1.nii.gz: its compressed data end early",),
    "G03": (),
    "G04": ("mine.json", "is not JSON"),
    "G05": ("a/metrics.json", "it is not JSON"),
    "G06": ("results.csv", "line 3 and line 7 are both a case_1 dsc"),
    "G07": ("cases.csv", "line 3: there is no case case_9"),
    "H01": ("/input: there is no such folder",),
    "H02": ("/output: metrics.json cannot be written here (read-only)",),
    "H03": ("The evaluation ran out of memory",),
    "H04": ("The evaluation was interrupted",),
    "H05": ("flare-eval: there is no such image",),
    "H06": ("a.nii.gz: the platform takes a zip file or a table, and this is neither",),
    "H07": ("results/team_a", "another measurement is running"),
    "H08": ("there is no GPU 1, but 1, counted from 0",),
    "H09": ("https://a.org/api/v1/: it does not accept the token",),
    "H10": ("tcp://10.0.0.1:8786: no worker answers there",),
    "X01": ("ValueError in scoring/case.py, line 7",),
}  # fmt: skip
"""What an error of each code is made of."""

KINDS = {kind.code: kind for kind in error_classes()}

ERRORS = [KINDS[code](*parts) for code, parts in EXAMPLES.items()]


MESSAGES = ROOT / "tests" / "messages.txt"
"""The message of each example; ``pytest tests/common --update-messages`` writes it, and
its changes are read by hand."""


def test_the_messages_are_those_of_the_golden_file(request):
    text = "".join(f"{error}\n" for error in ERRORS)

    if request.config.getoption("--update-messages"):
        MESSAGES.write_text(text)

    assert text == MESSAGES.read_text()


def test_there_is_an_example_of_every_code_which_is_given_once():
    assert sorted(kind.code for kind in error_classes()) == list(EXAMPLES)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_is_one_short_line_that_ends_with_its_code(error):
    text = str(error)

    assert text == f"{error.finding}. {error.remedy} [{error.code}]"
    assert text.isprintable()
    assert len(text) < 300


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_comes_back_whole_from_a_worker(error):
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_lists_of_long_names_are_short():
    long = names.listing("x" * 60 + str(n) for n in range(50))
    assert long == f"{'x' * 60}0, {'x' * 60}1 and 48 more"


def test_several_problems_share_the_line_in_the_order_of_their_codes():
    error = SeveralProblemsError(
        [
            DamagedFileError("b.nii.gz", "the file is empty"),
            MissingCasesError(["c.nii.gz"], 4),
            DamagedFileError("a.nii.gz", "its compressed data end early"),
            DuplicateCasesError([("d", ("x/d.nii.gz", "y/d.nii.gz"))]),
        ]
    )

    assert str(error) == (
        "x/d.nii.gz, y/d.nii.gz: 2 files for case d."
        " Keep one file for each case, with all its organs. [F02]"
        " Missing 1 of 4 cases: c.nii.gz. Submit all 4 files in one zip. [F05]"
        " b.nii.gz: the file is empty; a.nii.gz: its compressed data end early."
        " Check your own copy (gzip -t); write it anew if it is damaged, then zip and"
        " submit all files again. [F09]"
    )
    assert isinstance(error, SubmissionError)


def test_only_the_same_finding_is_shared():
    """Not "unknown label 77" of a file that has another one."""
    known = "0 background, 1 liver"
    findings = [("a", "unknown label 77"), ("b", "unknown label 5")]
    findings += [("c", "unknown label 77"), ("d", "unknown label 5")]
    error = SeveralProblemsError(
        [LabelError(file, problem, known) for file, problem in findings]
    )

    assert str(error) == (
        "a, c: unknown label 77; b, d: unknown label 5."
        " Use 0 background, 1 liver; map other labels to one of these, or to 0. [F11]"
    )


def test_very_many_findings_are_not_all_told():
    known = "0 background, 1 liver"
    error = SeveralProblemsError(
        [
            LabelError(f"case_{n}.nii.gz", f"unknown label {n + 9}", known)
            for n in range(50)
        ]
    )

    text = str(error)
    assert text.startswith("case_0.nii.gz: unknown label 9; case_1.nii.gz: unknown")
    assert "; similar problems in case_" in text
    assert text.endswith("or to 0. [F11]")
    assert len(text) < 450


@pytest.mark.parametrize("letter", ["x", "\u00fc", "\u808c"])
def test_a_line_that_grows_too_long_keeps_every_code(letter):
    """The limit is one of bytes: letters may have two or three."""
    problems = [e for e in ERRORS if isinstance(e, SubmissionError)]
    many = [f"{letter * 70}_{n}.nii.gz" for n in range(99)]
    problems += [MissingCasesError(many, 99)]
    problems += [UnexpectedCasesError(many, many[0])]
    problems += [MisnamedCasesError([(name, name) for name in many])]
    problems += [DamagedFileError(name, f"it is {name}") for name in many]

    text = str(SeveralProblemsError(problems))

    assert len(text.encode()) < MESSAGE_LIMIT
    codes = {f"[{problem.code}]" for problem in problems}
    assert set(re.findall(r"\[F\d\d\]", text)) == codes
    assert text.endswith((f"... {max(codes)}", f". {max(codes)}"))


def test_a_single_problem_is_raised_as_it_is_and_none_is_not():
    raise_problems([])
    problem = MissingCasesError(["a.nii.gz"], 1)

    assert error_of(MissingCasesError, raise_problems, [problem]) is problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("a\nb", "a\\nb", id="new line"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="escape sequence"),
        pytest.param("a\udcffb", "a\\udcffb", id="invalid UTF-8"),
        pytest.param("a\u202eb", "a\\u202eb", id="right to left"),
        pytest.param("Übung", "Übung", id="other letters"),
        pytest.param("x" * 90, f"{'x' * 38}...{'x' * 38}", id="long"),
    ],
)
def test_names_are_made_safe(name, text):
    assert names.safe(name) == text


def test_a_name_that_is_only_made_printable_stays_whole():
    assert names.printable("\n" + "x" * 200) == "\\n" + "x" * 200
