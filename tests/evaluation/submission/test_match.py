"""Finding and matching files: any nesting, no guessing, everything reported."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flare
from flare.common.errors import InputError
from flare.evaluation.errors import (
    DuplicateCasesError,
    FolderError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import find_label_maps, find_references
from flare.evaluation.submission.match import match_cases, nearest_cases
from tests.builders.errors import told


@pytest.fixture
def make_folder(tmp_path):
    def make(*names, folder="submission"):
        for name in names:
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (tmp_path / folder).mkdir(exist_ok=True)
        return tmp_path / folder

    return make


@pytest.fixture
def match(make_folder):
    def match_names(submitted, cases=("case_001", "case_002", "case_003")):
        references = make_folder(*(f"{c}.nii.gz" for c in cases), folder="references")
        folder = find_label_maps(make_folder(*submitted))
        rules = flare.read_challenge("flare21")
        return match_cases(folder, find_references(references), rules)

    return match_names


def paired(matching):
    return {pair.case: pair.prediction.name for pair in matching.pairs}


FIELDS = {
    MissingCasesError: "missing",
    DuplicateCasesError: "duplicates",
    MisnamedCasesError: "renames",
    UnexpectedCasesError: "files",
    NothingToScoreError: "names",
}


def facts(matching):
    """Of each problem: its code, what it is about, and the first words of advice."""
    return [
        (
            problem.code,
            getattr(problem, FIELDS.get(type(problem), "file")),
            " ".join(problem.remedy.split()[:2]),
        )
        for problem in matching.problems
    ]


def cases(*numbers, start="case_"):
    return [f"{start}{n:03}.nii.gz" for n in numbers]


def missing(*numbers):
    """Cases 1 to 3 are expected."""
    return "F05", tuple(cases(*numbers)), "Submit all"


def nothing(*files):
    return "F01", files, "Zip the"


def unexpected(*files):
    return "F04", files, "Submit one"


def misnamed(*renames, advice="Rename: did"):
    return "F03", renames, advice


def test_what_others_put_there_is_ignored(make_folder):
    ignored = [
        *("inputs.json", ".hidden.nii.gz", "._case_001.nii.gz", "a/Thumbs.db"),
        *(".hidden/case_001.nii.gz", "__MACOSX/case_001.nii.gz", "desktop.ini"),
        *("a/__MACOSX/._case_001.nii.gz", ".DS_Store", "readme.txt"),
        *("case_001.json", "case_001"),
    ]

    folder = find_label_maps(make_folder("case_001.nii.gz", *ignored))

    assert [file.name for file in folder.files] == ["case_001.nii.gz"]
    assert list(folder.ignored) == sorted(ignored)


BOTH = ("a/case_001.nii.gz", "b/case_001.nii.gz")

SUBMISSIONS = {
    "one of three": (cases(2), [missing(1, 3)], [2]),
    "one too many": (cases(1, 2, 3, 4), [unexpected("case_004.nii.gz")], [1, 2, 3]),
    "a case twice": (
        [*BOTH, *cases(2, 3)],
        [("F02", (("case_001", BOTH),), "Keep one")],
        [2, 3],
    ),
    # And no duplicates of a case that does not exist.
    "nearly a case, twice": (
        ["a/case_1.nii.gz", "b/case_1.nii.gz", *cases(2, 3)],
        [
            misnamed(
                ("a/case_1.nii.gz", "case_001.nii.gz"),
                ("b/case_1.nii.gz", "case_001.nii.gz"),
                advice="Rename, such",
            )
        ],
        [2, 3],
    ),
    # To call the first a slip of the last would move them all.
    "another number": (cases(0, 1), [unexpected(*cases(0)), missing(2, 3)], [1]),
    "of another set": (
        cases(1, 2, 3, start="train_"),
        [unexpected(*cases(1, 2, 3, start="train_")), missing(1, 2, 3)],
        [],
    ),
    "one name in every folder": (
        [f"case_{n:03}/segmentation.nii.gz" for n in (1, 2, 3)],
        [
            unexpected(*(f"case_{n:03}/segmentation.nii.gz" for n in (1, 2, 3))),
            missing(1, 2, 3),
        ],
        [],
    ),
    "another name": (
        ["liver.nii.gz", *cases(2, 3)],
        [unexpected("liver.nii.gz"), missing(1)],
        [2, 3],
    ),
    "nothing": ([], [nothing()], []),
    "texts alone": (["readme.txt", "inputs.json"], [nothing("readme.txt")], []),
    "an archive alone": (["submission.zip"], [nothing("submission.zip")], []),
    "a table alone": (["a.csv", "inputs.json"], [nothing("a.csv")], []),
    "two halves of an image are no duplicates": (
        ["case_001.hdr", "case_001.img", *cases(2, 3)],
        [("F06", "case_001.hdr", "Save the")],
        [2, 3],
    ),
    "one file for all": (
        ["all/predictions.nii.gz"],
        [unexpected("all/predictions.nii.gz"), missing(1, 2, 3)],
        [],
    ),
    "several without extensions": (
        ["case_001", "case_002.gz", "case_3.nii.gz"],
        [
            misnamed(
                ("case_3.nii.gz", "case_003.nii.gz"),
                ("case_001", "case_001.nii.gz"),
                ("case_002.gz", "case_002.nii.gz"),
                advice="Rename, such",
            )
        ],
        [],
    ),
    **{
        f"{name} has lost its extension": (
            [name, *cases(2, 3)],
            [misnamed((name, "case_001.nii.gz"))],
            [2, 3],
        )
        for name in (
            *("case_001.nii (1).gz", "case_001.nii(2).gz", "case_001.nii.gz (1)"),
            *("case_001.gz", "sub/case_001.GZ"),
        )
    },
    **{
        f"{name} beside the cases": ([name, *cases(1, 2, 3)], [], [1, 2, 3])
        for name in (
            *("notes.csv", "code.zip", "more/old.tar.gz", "plans.npy", "case_001.npz"),
        )
    },
    **{
        f"{name} is no case": ([name, *cases(2, 3)], [missing(1)], [2, 3])
        for name in (
            *(".case_001", "__MACOSX/case_001", "case_0011", "case_001.txt", "case"),
        )
    },
    **{
        f"{name} is nearly a case": (
            [f"x/{name}.nii.gz", *cases(2, 3)],
            [misnamed((f"x/{name}.nii.gz", "case_001.nii.gz"))],
            [2, 3],
        )
        for name in (
            *("case_1", "Case_001", "CASE-001", "case_001_0000", "case001", "cse_001"),
            *("case_001_seg", "case_001 (1)", "case_001 - Copy", "pred_case_001"),
            "case_001_0000_seg",  # as MONAI has it
        )
    },
    "3D Slicer's name": (
        ["case_001.seg.nrrd", *cases(2, 3)],
        [],
        [1, 2, 3],
    ),
    # Named, and its case is not missing.
    **{
        f"{suffix} is another format": (
            [f"case_001{suffix}", *cases(2, 3)],
            [("F06", f"case_001{suffix}", "Save the")],
            [2, 3],
        )
        for suffix in (
            *(".mhd", ".nhdr", ".HDR", ".img.gz", ".mgz", ".tif", ".npy", ".npz"),
            *(".zip", ".rar", ".7z", ".tar.gz", ".csv"),
        )
    },
}
"""What is submitted for cases 1 to 3, what is said of it, and what is scored."""


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_what_is_submitted_is_matched_or_named(match, name):
    submitted, problems, scored = SUBMISSIONS[name]

    matching = match(submitted)

    assert facts(matching) == problems
    assert sorted(paired(matching)) == [f"case_{n:03}" for n in scored]


def test_letters_of_other_scripts_are_seen(match):
    (problem,) = match(["v\u0430lidation_1.nii.gz"], ["validation_1"]).problems

    assert told(problem) == ("F03", "v\\u0430lidation_1.nii.gz")


def test_cases_that_are_there_twice_are_named_together(match):
    names = [*BOTH, "a/case_002.nii.gz", "c/case_002.nii.gz", "case_003.nii.gz"]

    (problem,) = match(names).problems

    assert problem.finding.endswith("files for case case_001, likewise for case_002")


def test_missing_cases_may_be_in_an_archive(match):
    (problem,) = match(["case_001.nii.gz", "more/rest.zip"]).problems

    assert problem.missing == tuple(cases(2, 3))
    assert "more/rest.zip" in problem.finding


@pytest.mark.newest
@given(
    st.lists(st.from_regex(r"[a-z]{1,3}[_-]?\d{1,3}", fullmatch=True), max_size=8),
    st.lists(st.from_regex(r"[A-Z]{1,3}_?\d{1,3}", fullmatch=True), max_size=8),
)
def test_no_case_is_given_to_two_names_and_none_with_another_number(names, absent):
    names, absent = dict.fromkeys(names), dict.fromkeys(absent)

    found = nearest_cases(list(names), list(absent))

    assert found.keys() <= names.keys()
    assert len(set(found.values())) == len(found)
    numbers = [
        [int("".join(filter(str.isdigit, n))) for n in pair] for pair in found.items()
    ]
    assert all(own == other for own, other in numbers)


def test_thousands_of_foreign_names_take_no_time(match):
    matching = match([f"other{n}.nii.gz" for n in range(2000)])

    assert [problem.code for problem in matching.problems] == ["F04", "F05"]


# --- Links, pipes and folders -----------------------------------------------------


def test_a_folder_that_cannot_be_read_is_told(make_folder, monkeypatch):
    """Also where tests run as root, who may read everything."""
    folder = make_folder("case_001.nii.gz", "closed/case_002.nii.gz")
    scandir = os.scandir

    def scan(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", scan)

    with pytest.raises(InputError, match="closed: the folder cannot be read"):
        find_label_maps(folder)


def test_links_are_not_followed_and_pipes_not_opened(match, make_folder, tmp_path):
    """A link could lead to the references."""
    make_folder("case_001.nii.gz", folder="references")
    folder = make_folder("case_003.nii.gz")
    (folder / "case_001.nii.gz").symlink_to(tmp_path / "references/case_001.nii.gz")
    os.mkfifo(folder / "case_002.nii.gz")
    (folder / "more").symlink_to(tmp_path / "references")

    matching = match([])

    assert [told(problem) for problem in matching.problems] == [
        ("F06", "case_001.nii.gz"),
        ("F06", "case_002.nii.gz"),
    ]
    assert sorted(paired(matching)) == ["case_003"]


def test_a_submission_that_is_itself_a_link(make_folder, tmp_path):
    """/input is a symbolic link on the platform; of references, files may be some."""
    folder = make_folder("case_001.nii.gz", "a/case_002.nii.gz")
    (tmp_path / "link").symlink_to(folder)
    references = make_folder(folder="references")
    (references / "case_009.nii.gz").symlink_to(folder / "case_001.nii.gz")

    names = [file.name for file in find_label_maps(tmp_path / "link").files]

    assert names == ["case_001.nii.gz", "a/case_002.nii.gz"]
    assert [file.case for file in find_references(references)] == ["case_009"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "name", "limit"),
    [
        (210, "d", "deeper than 200"),
        (2100, "d", "deeper than 200"),
        (60, "d" * 100, "4000"),
    ],
)
def test_folders_without_end_are_the_submissions_fault(tmp_path, depth, name, limit):
    """Deeper than Python goes, and than a path can tell."""
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=place)
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)

    with pytest.raises(FolderError, match=limit) as error:
        find_label_maps(tmp_path)

    assert told(error.value) == ("F16", f"{tmp_path.name[:80]}/")
    subprocess.run(["rm", "-rf", tmp_path / name], check=True)


# --- Files of single organs -------------------------------------------------------


@pytest.mark.parametrize("pattern", ["{}_{}.nii.gz", "{}/{}.nii.gz"])
def test_organs_are_not_to_be_renamed_to_cases(match, pattern):
    """Each would count as a whole case."""
    files = [pattern.format("case_001", organ) for organ in ("liver", "spleen")]

    matching = match([*files, *cases(2, 3)])

    assert facts(matching) == [unexpected(*files), missing(1)]


def test_a_case_whose_name_ends_in_an_organ_is_that_case(match):
    """Beside the case that is called so without the organ."""
    names = ["case_1", "case_1_liver", "case_1_spleen"]

    matching = match([f"{name}.nii.gz" for name in names], names)

    assert not matching.problems
    assert sorted(paired(matching)) == names
