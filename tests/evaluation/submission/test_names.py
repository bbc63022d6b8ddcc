"""Files that are called as the challenge file says: `[names]`."""

import json
from dataclasses import replace

import pytest

import flare
from flare.challenge.formats import FileNames
from flare.evaluation.check import check_submission, find_images
from flare.evaluation.errors import GroundTruthError
from flare.platforms.grandchallenge.phase_settings import settings_for
from flare.results.metrics_json import metrics_json
from tests.builders import case_names, error_of, organ_boxes, write_cases
from tests.builders.errors import told

NAMES = FileNames(
    reference="{case}_gt", prediction="pred_{case}", image="{case}_ct.old"
)
FLARE21 = flare.read_challenge("flare21")
RENAMED = replace(FLARE21, names=NAMES)


CHANNELS = FileNames(image="{case}_{channel}")


@pytest.mark.parametrize(
    ("names", "role", "stem", "cases", "case"),
    [
        (NAMES, "prediction", "pred_a", (), "a"),
        (NAMES, "prediction", "pred_a", ("a", "b"), "a"),
        (NAMES, "prediction", "a", ("a", "b"), "a"),
        (NAMES, "prediction", "a", (), "a"),
        (NAMES, "prediction", "pred_a_0000", ("a",), "a_0000"),
        (NAMES, "prediction", "a_gt", ("a", "b"), "a"),
        (NAMES, "prediction", "pred_a_gt", ("a", "b"), "a_gt"),
        (NAMES, "prediction", "pred_", (), "pred_"),
        (NAMES, "prediction", "pred_..", (), "pred_.."),
        (NAMES, "prediction", "pred_cafe\u0301", (), "caf\u00e9"),
        (NAMES, "prediction", "a_ct.old", ("a", "b"), "a"),
        (NAMES, "image", "a_ct.old", (), "a"),
        (NAMES, "image", "a_ct.old_0000", (), "a"),
        (NAMES, "image", "a_0000", (), "a"),
        (NAMES, "image", "a_0000", ("a", "a_0000"), "a_0000"),
        (NAMES, "image", "a_ct.old", ("a", "a_ct.old"), "a_ct.old"),
        (NAMES, "image", "_0000", (), "_0000"),
        (NAMES, "image", "b", ("a",), "b"),
        (CHANNELS, "image", "P_0001_0000", (), "P_0001"),
        (CHANNELS, "image", "P_0001_0012", (), "P_0001"),
        (CHANNELS, "image", "P_0001_T1", (), "P_0001_T1"),
        (CHANNELS, "image", "a", (), "a"),
        (CHANNELS, "image", "P_0001", ("P_0001",), "P_0001"),
        # Without the cases, the ending may be of their own names.
        (CHANNELS, "prediction", "P_0001", (), "P_0001"),
        (CHANNELS, "prediction", "P_0001", ("P_0001", "P"), "P_0001"),
        (CHANNELS, "prediction", "P_0001_0000", ("P_0001",), "P_0001"),
    ],
)
def test_the_case_of_a_file(names, role, stem, cases, case):
    """By hand: the very name of a case first, nnU-Net's ending last."""
    assert names.case_of(role, stem, cases) == case


@pytest.mark.parametrize(
    ("stem", "case"), [("a_gt", "a"), ("a", ""), ("_gt", ""), (".._gt", "")]
)
def test_the_case_of_a_reference_is_by_its_pattern_alone(stem, case):
    assert NAMES.case_of_reference(stem) == case


@pytest.fixture
def files(tmp_path):
    """References, predictions and images of three cases, by the names asked for."""
    names = case_names(3)
    for folder, pattern in (
        ("references", NAMES.reference),
        ("predictions", NAMES.prediction),
        ("images", NAMES.image),
    ):
        write_cases(tmp_path / folder, [pattern.format(case=name) for name in names])
    write_cases(
        tmp_path / "predictions", ["pred_validation_002"], labels=organ_boxes(shift=1)
    )
    return tmp_path


ONE = "pred_validation_001.nii.gz"

REFUSALS = {
    "F03": (lambda f: (f / ONE).rename(f / "pred_Validation-1.nii.gz"), ONE),
    "F04": (lambda f: write_cases(f, ["liver"]), ONE),
    "F05": (lambda f: (f / ONE).unlink(), ONE),
    "F02": (lambda f: write_cases(f, ["validation_001"]), f"{ONE}, validation_001.nii"),
}


@pytest.mark.parametrize("code", REFUSALS)
def test_messages_ask_for_the_names_of_the_challenge(files, code):
    change, words = REFUSALS[code]
    change(files / "predictions")

    folders = files / "predictions", files / "references"
    error = error_of(flare.SubmissionError, flare.evaluate, *folders, challenge=RENAMED)

    assert told(error)[0] == code
    assert words in str(error)
    for more in ({"ground_truth": "references"}, {"images": "images"}):
        known = {kind: files / folder for kind, folder in more.items()}
        report = check_submission(files / "predictions", RENAMED, workers=1, **known)
        assert report.lines == (str(error),)


def test_nothing_but_the_names_of_files_changes(files, tmp_path):
    for folder in ("references", "predictions"):
        (tmp_path / f"plain-{folder}").mkdir()
        for number, file in enumerate(sorted((files / folder).iterdir()), start=1):
            plain = tmp_path / f"plain-{folder}" / f"validation_{number:03}.nii.gz"
            plain.write_bytes(file.read_bytes())

    def content_of(folder, challenge):
        folders = (folder + kind for kind in ("predictions", "references"))
        return json.loads(metrics_json(flare.evaluate(*folders, challenge=challenge)))

    plain = content_of(f"{tmp_path}/plain-", FLARE21)
    renamed = content_of(f"{files}/", RENAMED)
    own = renamed["case"].pop("gt_fname"), renamed["case"].pop("alg_fname")
    names = renamed["evaluation"].pop("names")
    del plain["case"]["gt_fname"], plain["case"]["alg_fname"]

    assert renamed == plain
    assert (own[0]["0"], own[1]["0"]) == ("validation_001_gt.nii.gz", ONE)
    assert names == {"reference": "{case}_gt", "prediction": "pred_{case}",
                     "image": "{case}_ct.old"}  # fmt: skip


def test_two_images_of_one_case_are_refused(files):
    write_cases(files / "images", ["validation_001_0000"])

    with pytest.raises(flare.FlareError, match="2 files for case validation_001"):
        find_images(files / "images", NAMES)


def test_names_of_references_may_end_like_a_channel(tmp_path):
    challenge = replace(FLARE21, names=CHANNELS)
    names = ["P_0000", "P_0001"]
    images = [f"{name}_{channel}" for name in names for channel in ("0000", "0001")]
    for folder, files in (("labels", names), ("images", images)):
        write_cases(tmp_path / folder, files)
    labels = tmp_path / "labels"

    for known in ({"ground_truth": labels}, {"images": tmp_path / "images"}, {}):
        assert check_submission(labels, challenge, workers=1, **known).lines == ()

    write_cases(labels, ["P"])
    with pytest.raises(GroundTruthError, match="P_0000: a file of this case may be"):
        flare.evaluate(labels, labels, challenge=challenge)


def test_the_submission_page_of_a_phase_tells_the_name():
    plain, renamed = (
        settings_for(challenge)["sanity"].submission_page_markdown
        for challenge in (FLARE21, RENAMED)
    )

    assert "named like its CT without `_0000`." in plain
    assert "named `pred_{case}.nii.gz`, where {case} is the case." in renamed
