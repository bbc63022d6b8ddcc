"""Finding and matching files: any nesting, no guessing, everything reported."""

import os
import subprocess

import pytest

from flare.common.errors import InputError
from flare.evaluation.errors import (
    DuplicateCasesError,
    FileFormatError,
    FolderError,
    GroundTruthError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import (
    find_label_maps,
    find_references,
    is_demonstration,
)
from flare.evaluation.submission.match import match_cases


@pytest.fixture
def make_folder(tmp_path):
    """Make a folder of empty files, of which only the names matter here."""

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
    """Match names of submitted files with names of cases."""

    def match_names(submitted, cases=("case_001", "case_002", "case_003")):
        references = make_folder(*(f"{c}.nii.gz" for c in cases), folder="references")
        folder = find_label_maps(make_folder(*submitted))
        return match_cases(folder, find_references(references))

    return match_names


def paired(matching):
    return {pair.case: pair.prediction.name for pair in matching.pairs}


def test_files_are_found_in_any_nesting_and_paired_by_name(match):
    matching = match(
        ["a/b/case_002.nii.gz", "case_001.nii.gz", "a/deep/er/case_003.nii.gz"]
    )

    assert matching.problems == ()
    assert paired(matching) == {
        "case_001": "case_001.nii.gz",
        "case_002": "a/b/case_002.nii.gz",
        "case_003": "a/deep/er/case_003.nii.gz",
    }
    assert all(p.reference.name == f"{p.case}.nii.gz" for p in matching.pairs)


def test_what_others_put_there_is_ignored(make_folder):
    ignored = [
        "inputs.json",
        ".hidden.nii.gz",
        "._case_001.nii.gz",
        ".hidden/case_001.nii.gz",
        "__MACOSX/case_001.nii.gz",
        "a/__MACOSX/._case_001.nii.gz",
        "desktop.ini",
        "a/Thumbs.db",
        ".DS_Store",
        "readme.txt",
        "case_001.json",
        "case_001",
    ]

    folder = find_label_maps(make_folder("case_001.nii.gz", *ignored))

    assert [file.name for file in folder.files] == ["case_001.nii.gz"]
    assert folder.ignored == tuple(sorted(ignored))


def test_missing_cases_are_named(match):
    matching = match(["case_002.nii.gz"])

    (problem,) = matching.problems
    assert isinstance(problem, MissingCasesError)
    assert problem.missing == ("case_001.nii.gz", "case_003.nii.gz")
    assert paired(matching) == {"case_002": "case_002.nii.gz"}


def test_duplicates_are_named_with_their_folders_and_not_paired(match):
    matching = match(
        ["a/case_001.nii.gz", "b/case_001.nii.gz", "case_002.nii.gz", "case_003.nii.gz"]
    )

    (problem,) = matching.problems
    assert isinstance(problem, DuplicateCasesError)
    assert str(problem) == (
        "a/case_001.nii.gz, b/case_001.nii.gz: 2 files for case case_001."
        " Keep one file for each case. [F02]"
    )
    assert sorted(paired(matching)) == ["case_002", "case_003"]


@pytest.mark.parametrize(
    "name",
    [
        "case_1",
        "Case_001",
        "CASE-001",
        "case_001_0000",
        "case001",
        "case_001_seg",
        "case_001 (1)",
        "case_001 - Copy",
        "pred_case_001",
        "cse_001",
    ],
)
def test_a_name_that_nearly_is_a_missing_case_is_reported_once(match, name):
    matching = match([f"x/{name}.nii.gz", "case_002.nii.gz", "case_003.nii.gz"])

    (problem,) = matching.problems
    assert isinstance(problem, MisnamedCasesError)
    assert str(problem) == (
        f"x/{name}.nii.gz: no case has this name."
        " Rename: did you mean case_001.nii.gz? [F03]"
    )


def test_all_names_wrong_in_the_same_way_are_matched_by_number(match):
    """case_1 is case_001, not case_011 or case_010, whose letters are as near."""
    cases = [f"case_{n:03}" for n in range(1, 13)]

    matching = match([f"case_{n}.nii.gz" for n in range(1, 13)], cases)

    (problem,) = matching.problems
    assert sorted(problem.renames) == sorted(
        (f"case_{n}.nii.gz", f"case_{n:03}.nii.gz") for n in range(1, 13)
    )


def test_another_number_is_another_case(match):
    """To call the first a slip of the last would move them all."""
    matching = match(["case_000.nii.gz", "case_001.nii.gz"])

    unexpected, missing = matching.problems
    assert isinstance(unexpected, UnexpectedCasesError)
    assert unexpected.files == ("case_000.nii.gz",)
    assert missing.missing == ("case_002.nii.gz", "case_003.nii.gz")


def test_files_of_another_set_are_not_called_misnamed(match):
    matching = match(["train_001.nii.gz", "train_002.nii.gz", "train_003.nii.gz"])

    assert [type(problem) for problem in matching.problems] == [
        UnexpectedCasesError,
        MissingCasesError,
    ]


def test_the_same_name_in_every_folder_is_unexpected_and_no_duplicate(match):
    matching = match([f"case_{n:03}/segmentation.nii.gz" for n in range(1, 4)])

    unexpected, missing = matching.problems
    assert isinstance(unexpected, UnexpectedCasesError)
    assert len(unexpected.files) == 3
    assert isinstance(missing, MissingCasesError)


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


def test_several_files_with_a_nearly_right_name_are_misnamed_all(match):
    """And no duplicates of a case that does not exist."""
    names = ["a/case_1.nii.gz", "b/case_1.nii.gz", "case_002.nii.gz", "case_003.nii.gz"]

    (found,) = match(names).problems

    assert str(found) == (
        "a/case_1.nii.gz, b/case_1.nii.gz: no case has this name."
        " Rename, such as a/case_1.nii.gz to case_001.nii.gz. [F03]"
    )


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("demo_001", True),
        ("demo_case1", False),
        ("demo_1", False),
        ("demo_0001", False),
    ],
)
def test_only_the_bundled_names_are_the_demonstration_set(case, expected):
    assert is_demonstration(case) == expected


def test_other_names_are_unexpected_and_their_cases_missing(match):
    matching = match(["liver.nii.gz", "case_002.nii.gz", "case_003.nii.gz"])

    unexpected, missing = matching.problems
    assert isinstance(unexpected, UnexpectedCasesError)
    assert str(unexpected) == (
        "liver.nii.gz: no case has this name."
        " Remove, or name like the cases, such as case_001.nii.gz. [F04]"
    )
    assert isinstance(missing, MissingCasesError)


def test_one_file_too_many_is_unexpected(match):
    matching = match([f"case_{n:03}.nii.gz" for n in range(1, 5)])

    (problem,) = matching.problems
    assert isinstance(problem, UnexpectedCasesError)
    assert problem.files == ("case_004.nii.gz",)
    assert len(matching.pairs) == 3


@pytest.mark.parametrize("found", [(), ("readme.txt", "inputs.json")])
def test_a_submission_without_label_maps(match, found):
    matching = match(found)

    (problem,) = matching.problems
    assert isinstance(problem, NothingToScoreError)
    shown = "it is empty" if not found else "found inputs.json, readme.txt"
    assert str(problem) == (
        f"The submission holds no label map ({shown})."
        " Zip the .nii.gz files themselves, one for each case, such as case_001.nii.gz."
        " [F01]"
    )


PAIR = "it is half of an image, whose header and voxels are two files"
ARCHIVE = "it is an archive within the zip, which is not opened"


@pytest.mark.parametrize(
    ("suffix", "problem"),
    [
        (".mhd", PAIR),
        (".nhdr", PAIR),
        (".HDR", PAIR),
        (".img.gz", PAIR),
        (".tif", "its format does not say where the voxels are"),
        (".npy", "it is a NumPy file, which has no grid"),
        (
            ".npz",
            "it is a NumPy file, which has no grid; only the tasks from RECIST to 3-D"
            " of FLARE 2025 and 2026 use them",
        ),
        (".mgz", "its format is not accepted"),
        (".zip", ARCHIVE),
        (".rar", ARCHIVE),
        (".7z", ARCHIVE),
        (".tar.gz", ARCHIVE),
        (".csv", "it is a table, not a label map"),
    ],
)
def test_another_format_is_named_and_its_case_not_missing(match, suffix, problem):
    matching = match([f"case_001{suffix}", "case_002.nii.gz", "case_003.nii.gz"])

    (found,) = matching.problems
    assert isinstance(found, FileFormatError)
    assert found.finding == f"case_001{suffix}: {problem}"


@pytest.mark.parametrize(
    "name", ["notes.csv", "code.zip", "more/old.tar.gz", "plans.npy", "case_001.npz"]
)
def test_archives_arrays_and_tables_beside_the_cases_do_not_matter(match, name):
    matching = match([name, *(f"case_{n:03}.nii.gz" for n in range(1, 4))])

    assert matching.problems == ()


def test_missing_cases_may_be_in_an_archive(match):
    (found,) = match(["case_001.nii.gz", "more/rest.zip"]).problems

    assert str(found) == (
        "Missing 2 of 3 cases: case_002.nii.gz, case_003.nii.gz (archives are not"
        " opened: more/rest.zip). Submit all 3 files in one zip. [F05]"
    )


def test_the_two_halves_of_an_image_are_no_duplicates(match):
    names = ["case_001.hdr", "case_001.img", "case_002.nii.gz", "case_003.nii.gz"]

    (found,) = match(names).problems

    assert found.finding == f"case_001.hdr: {PAIR}"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            ["submission.zip"],
            "submission.zip: it is an archive within the zip, which is not opened, and"
            " no label map is beside it. Zip the .nii.gz files themselves, one for each"
            " case, such as case_001.nii.gz. [F01]",
        ),
        (
            ["predictions.csv", "inputs.json"],
            "predictions.csv: it is a table, not a label map, and no label map is"
            " beside it. Zip the .nii.gz files themselves, one for each case, such as"
            " case_001.nii.gz. [F01]",
        ),
    ],
)
def test_an_archive_or_a_table_alone_is_nothing_to_score(match, names, text):
    (found,) = match(names).problems

    assert str(found) == text


@pytest.mark.parametrize("numbers", [range(3), range(2, 5)])
def test_numbering_off_by_one(match, numbers):
    """From 0 instead of 1, or from 2: every file is the wrong one."""
    matching = match([f"case_{n:03}.nii.gz" for n in numbers])

    (found,) = matching.problems
    extra, missing = ("000", "003") if 0 in numbers else ("004", "001")
    assert str(found) == (
        f"case_{extra}.nii.gz: no case has this name, and case_{missing}.nii.gz is"
        " missing. If the numbering is off by one, rename every file, not only this"
        " one: each takes the name of its CT. [F03]"
    )


def test_one_file_for_all_cases(match):
    (found,) = match(["all/predictions.nii.gz"]).problems

    assert str(found) == (
        "all/predictions.nii.gz: one file for 3 cases."
        " Submit a file for each case, such as case_001.nii.gz. [F04]"
    )


def test_two_folders_with_the_same_cases_are_named_and_not_their_files(match):
    names = [f"{a}/case_{n:03}.nii.gz" for a in ("new", "old") for n in range(1, 4)]

    (found,) = match(names).problems

    assert isinstance(found, DuplicateCasesError)
    assert str(found) == (
        "new/, old/: these folders hold the same 3 cases."
        " Keep one of the folders. [F02]"
    )


def test_links_are_not_followed(match, make_folder, tmp_path):
    """A link could lead to the references."""
    make_folder("case_001.nii.gz", folder="references")
    folder = make_folder("case_002.nii.gz", "case_003.nii.gz")
    (folder / "case_001.nii.gz").symlink_to(tmp_path / "references/case_001.nii.gz")
    (folder / "more").symlink_to(tmp_path / "references")

    matching = match([])

    (problem,) = matching.problems
    assert problem.finding == "case_001.nii.gz: it is a link or no regular file"
    assert sorted(paired(matching)) == ["case_002", "case_003"]


def test_a_pipe_is_refused_without_opening_it(match, make_folder):
    folder = make_folder("case_002.nii.gz", "case_003.nii.gz")
    os.mkfifo(folder / "case_001.nii.gz")

    (problem,) = match([]).problems

    assert problem.finding == "case_001.nii.gz: it is a link or no regular file"


def test_a_submission_that_is_itself_a_link(match, make_folder, tmp_path):
    """/input is a symbolic link on the platform."""
    folder = make_folder("case_001.nii.gz", "a/case_002.nii.gz")
    link = tmp_path / "link"
    link.symlink_to(folder)

    names = [file.name for file in find_label_maps(link).files]

    assert names == ["case_001.nii.gz", "a/case_002.nii.gz"]


def test_thousands_of_foreign_names_take_no_time(match):
    matching = match([f"other{n}.nii.gz" for n in range(2000)])

    assert [type(problem) for problem in matching.problems] == [
        UnexpectedCasesError,
        MissingCasesError,
    ]


# --- References -------------------------------------------------------------------


def test_references_may_be_links(make_folder, tmp_path):
    store = make_folder("one.nii.gz", folder="store")
    folder = make_folder(folder="references")
    (folder / "case_001.nii.gz").symlink_to(store / "one.nii.gz")

    assert [file.case for file in find_references(folder)] == ["case_001"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["readme.txt"], "there is no label map in their folder"),
        (["a/c.nii.gz", "b/c.nii.gz"], "a/c.nii.gz, b/c.nii.gz: 2 files for case c"),
        (["a.nii.gz", "b.mhd"], "b.mhd: it is half of an image, whose header"),
        (
            ["case_1.nii.gz", "demo_001.nii.gz", "demo_002.nii.gz"],
            "demo_001.nii.gz, demo_002.nii.gz: the demonstration set lies beside other"
            " label maps",
        ),
    ],
)
def test_bad_references_are_the_organisers_fault(make_folder, names, problem):
    with pytest.raises(GroundTruthError) as caught:
        find_references(make_folder(*names))

    assert str(caught.value).startswith(f"Reference labels: {problem}")
    assert str(caught.value).endswith(
        ". The organisers have to repair this; the submission is not at fault. [G02]"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "name", "text"),
    [
        (210, "d", "it holds more than 1000000 files, or folders deeper than 200"),
        (2100, "d", "it holds more than 1000000 files, or folders deeper than 200"),
        (60, "d" * 100, "it holds paths longer than 4000 bytes"),
    ],
)
def test_folders_without_end_are_the_submissions_fault(tmp_path, depth, name, text):
    """Deeper than Python goes, and than a path can tell."""
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=place)
        inner = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)

    with pytest.raises(FolderError) as error:
        find_label_maps(tmp_path)

    assert error.value.problem == f"{tmp_path.name[:80]}/: {text}"
    subprocess.run(["rm", "-rf", tmp_path / name], check=True)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("validation_001_0000_seg.nii.gz", "validation_001_0000_seg.nii.gz"),
        ("validation_001.seg.nrrd", "validation_001.seg.nrrd"),
        ("v\u0430lidation_001.nii.gz", "v\\u0430lidation_001.nii.gz"),
    ],
    ids=["MONAI", "3D Slicer", "Cyrillic"],
)
def test_names_that_programs_give_are_to_be_changed(make_folder, name, shown):
    make_folder("validation_001.nii.gz", folder="references")
    make_folder(name)

    folder = find_label_maps(make_folder())
    references = find_references(make_folder(folder="references"))

    assert [str(problem) for problem in match_cases(folder, references).problems] == [
        f"{shown}: no case has this name. Rename: did you mean validation_001.nii.gz?"
        " [F03]"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "validation_001.nii (1).gz",
        "validation_001.nii(2).gz",
        "validation_001.nii.gz (1)",
        "validation_001.gz",
        "validation_001",
        "sub/validation_001.GZ",
    ],
)
@pytest.mark.parametrize("others", [(), ("validation_002.nii.gz",)])
def test_a_case_that_has_lost_its_extension_is_to_be_renamed(make_folder, name, others):
    """Whether or not another file of the submission is a label map."""
    references = ("validation_001.nii.gz", *others)
    folder = find_label_maps(make_folder(name, *others))
    found = find_references(make_folder(*references, folder="references"))

    matching = match_cases(folder, found)

    assert [str(problem) for problem in matching.problems] == [
        f"{name}: no case has this name. Rename: did you mean validation_001.nii.gz?"
        " [F03]"
    ]
    assert len(matching.pairs) == len(others)


def test_several_cases_without_extensions_are_told_together(match):
    matching = match(["case_001", "case_002.gz", "case_3.nii.gz"])

    assert [str(problem) for problem in matching.problems] == [
        "case_3.nii.gz, case_001, case_002.gz: no case has this name. Rename, such as"
        " case_3.nii.gz to case_003.nii.gz. [F03]"
    ]


@pytest.mark.parametrize(
    "name", [".case_001", "__MACOSX/case_001", "case_0011", "case_001.txt", "case"]
)
def test_other_files_without_extensions_are_no_cases(match, name):
    matching = match([name, "case_002.nii.gz", "case_003.nii.gz"])

    (problem,) = matching.problems
    assert isinstance(problem, MissingCasesError)
    assert problem.missing == ("case_001.nii.gz",)
