"""Files of single organs are known by their names, and nothing else is."""

import pytest

import flare
from flare.evaluation.check import check_submission
from flare.evaluation.submission.match import find_organ_files
from tests.builders import case_names, organ_boxes, write_cases, write_nifti

ORGANS = {"liver": 1, "kidney": 2, "spleen": 3, "pancreas": 4}


@pytest.mark.parametrize(
    "pattern",
    [
        "{case}_{organ}.nii.gz",
        "{case}/{organ}.nii.gz",
        "{case}/segmentations/{organ}.nii.gz",
        "{organ}/{case}.nii.gz",
        "{case}-{organ}.mha",
        "{case}_0000/{organ}.nii.gz",
    ],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["cases known", "unknown"])
def test_both_organs_of_a_case_are_found(pattern, is_known):
    names = [
        pattern.format(case=case, organ=organ)
        for case in ("case_1", "case_2")
        for organ in ("Liver", "left_kidney")
    ]

    found = find_organ_files(names, ORGANS, ["case_1", "case_2"] if is_known else None)

    assert list(found) == names
    assert list(found.values()) == ["case_1", "case_1", "case_2", "case_2"]


@pytest.mark.parametrize(
    "names",
    [
        ["case_1.nii.gz", "case_2.nii.gz"],
        ["case_1_liver.nii.gz", "case_2_liver.nii.gz"],
        ["liver.nii.gz", "spleen.nii.gz"],
        ["team/case_1.nii.gz", "old/case_1.nii.gz"],
        ["liver_1.nii.gz", "spleen_1.nii.gz"],
    ],
    ids=["cases", "one organ alone", "no case", "folders", "organs in front"],
)
def test_other_names_are_no_organs(names):
    assert find_organ_files(names, ORGANS, None) == {}


@pytest.mark.parametrize("pattern", ["{}_{}.nii.gz", "{}/{}.nii.gz", "{1}/{0}.nii.gz"])
def test_organs_are_to_be_merged_and_not_renamed(tmp_path, pattern):
    """In the evaluation and in the check, with references and without."""
    truth = write_cases(tmp_path / "truth", case_names(2))
    for case in case_names(2):
        for organ in ("liver", "spleen"):
            write_nifti(tmp_path / "input" / pattern.format(case, organ), organ_boxes())

    with pytest.raises(flare.SubmissionError) as error:
        flare.evaluate(tmp_path / "input", truth)
    reports = [
        check_submission(
            tmp_path / "input", flare.read_challenge("flare21"), ground_truth=labels
        )
        for labels in (None, truth)
    ]

    line = str(error.value)
    assert line.endswith(
        "each is one organ of a case. Merge the organs of each case into one label map,"
        " such as validation_001.nii.gz, with the labels 0 background, 1 liver, 2"
        " kidney, 3 spleen and 4 pancreas. [F04]"
    )
    assert "ename" not in line
    assert [report.lines for report in reports] == [(line,)] * 2


def test_a_case_that_scores_0_because_of_them_says_so(tmp_path):
    """Its files were submitted, after all."""
    truth = write_cases(tmp_path / "truth", ["case_1", "case_2"])
    write_cases(tmp_path / "input", ["case_2"])
    for organ in ("liver", "spleen"):
        write_nifti(tmp_path / "input" / f"case_1_{organ}.nii.gz", organ_boxes())

    results = flare.evaluate(tmp_path / "input", truth, on_bad_case="worst")

    files = "case_1_liver.nii.gz, case_1_spleen.nii.gz"
    (zero,) = results.low_scores
    assert zero.cases == ("case_1",)
    assert (
        zero.reason
        == f"1 of 2 cases scores 0: each file holds one organ alone ({files})"
    )
