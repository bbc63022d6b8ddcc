"""Label maps that a metrics.json was not made from get no page."""

import json
from pathlib import Path

import numpy as np
import pytest

from flare.common.errors import FlareError
from flare.results.errors import MetricsFileError
from tests.builders import organ_boxes, write_cases, write_nifti
from tests.builders.case_pages import evaluated

REMEDY = "Give the label maps that the evaluation has scored. [G05]"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two cases that were evaluated, in folders of short names."""
    monkeypatch.chdir(tmp_path)
    boxes = organ_boxes()
    return evaluated(Path(), {"a": (boxes, organ_boxes(shift=1)), "b": (boxes, boxes)})


def refusal(made, **settings):
    """The message of a report that is refused."""
    with pytest.raises(FlareError) as error:
        made.write(**settings)
    return str(error.value)


def change(made, edit):
    """Change what metrics.json says."""
    content = json.loads(made.metrics.read_text())
    edit(content)
    made.metrics.write_text(json.dumps(content))


def test_a_prediction_with_another_score(made):
    """Of seven columns six are shared, when it is shifted by one, and five by two."""
    write_nifti(made.predictions / "a.nii.gz", organ_boxes(shift=2))

    assert refusal(made) == (
        f"{made.predictions}/a.nii.gz: its DSC of liver is 0.714286, but metrics.json"
        f" says 0.857143. {REMEDY}"
    )
    assert not (made.pages / "index.html").exists()


def test_an_nsd_that_another_program_has_written(made):
    def edit(content):
        content["case"]["nsd_spleen"]["1"] = 0.5

    change(made, edit)

    assert refusal(made) == (
        f"{made.predictions}/b.nii.gz: its NSD of spleen is 1, but metrics.json says"
        f" 0.5. {REMEDY}"
    )


def test_other_references(made):
    write_cases(made.references, ["b"], labels=organ_boxes(shift=1))

    assert refusal(made) == (
        f"{made.references}: these are not the references that metrics.json was made"
        f" with. {REMEDY}"
    )


def test_a_reference_that_is_missing(made):
    (made.references / "b.nii.gz").unlink()

    assert refusal(made) == (
        f"{made.references}: there is no reference of case b, which metrics.json has."
        f" {REMEDY}"
    )


def test_a_prediction_that_is_missing(made):
    (made.predictions / "a.nii.gz").unlink()

    assert refusal(made) == (
        f"{made.predictions}: there is no label map that can be scored of case a, which"
        f" metrics.json has. {REMEDY}"
    )


def test_a_prediction_that_is_damaged(made):
    file = made.predictions / "a.nii.gz"
    file.write_bytes(file.read_bytes()[:-30])

    assert refusal(made).startswith("a.nii.gz: its compressed data end early")


def test_a_prediction_on_another_grid(made):
    write_nifti(made.predictions / "a.nii.gz", organ_boxes()[:-1])

    assert refusal(made).startswith("a.nii.gz: size is 20 x 16 x 9 voxels")


@pytest.mark.parametrize("metric", ["dsc", "nsd_kidney"])
def test_a_score_that_is_missing(made, metric):
    def edit(content):
        content["case"][metric]["1"] = None

    change(made, edit)

    assert refusal(made) == (
        f"results/metrics.json: it has no {metric} of case b. Give the metrics.json"
        " that an evaluation has written. [G05]"
    )


@pytest.mark.parametrize("rules", [None, {}, {"decimals": 3}])
def test_rules_that_are_not_told(made, rules):
    change(made, lambda content: content["evaluation"].update(rules=rules))

    with pytest.raises(MetricsFileError) as error:
        made.write()

    assert str(error.value) == (
        f"{made.metrics}: it does not tell the rules that its scores were made by. Give"
        " the metrics.json that an evaluation has written. [G05]"
    )


@pytest.mark.parametrize(
    ("folder", "name"), [("references", "reference labels"), ("predictions", "")]
)
def test_a_folder_that_is_not_there(made, folder, name):
    path = getattr(made, folder)
    path.rename(path.with_name("elsewhere"))

    assert refusal(made) == (
        f"{path}: there is no such folder. Give the folder of the"
        f" {name or folder}. [H01]"
    )


@pytest.fixture
def images(made):
    """A CT of each case."""
    ct = np.where(organ_boxes(), 100, -20).astype(np.int16)
    for case in "ab":
        write_nifti(Path("images") / f"{case}_0000.nii.gz", ct, dtype="<i2")
    return Path("images")


def test_a_ct_that_is_missing(made, images):
    (images / "b_0000.nii.gz").unlink()

    assert refusal(made, images=images) == (
        f"{images}: there is no CT of case b. Give a folder with a CT for each case, or"
        " none. [H01]"
    )


def test_a_ct_on_another_grid(made, images):
    ct = np.zeros((9, 16, 20), dtype=np.int16)
    write_nifti(images / "a_0000.nii.gz", ct, dtype="<i2")

    assert refusal(made, images=images) == (
        "a_0000.nii.gz: this CT is not on the grid of its reference. Give the CTs that"
        " the references were drawn on. [H01]"
    )


def test_a_ct_that_is_damaged(made, images):
    file = images / "a_0000.nii.gz"
    file.write_bytes(file.read_bytes()[:-30])

    assert refusal(made, images=images).startswith("a_0000.nii.gz: ")


def test_cases_that_are_not_drawn_need_no_prediction(made):
    (made.predictions / "b.nii.gz").unlink()

    assert {file.name for file in made.write(worst=1).iterdir()} == {
        *("a.html", "index.html")
    }
