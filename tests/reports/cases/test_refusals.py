"""Label maps that a metrics.json was not made from get no page."""

import json
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flare.common.errors import FlareError
from tests.builders import error_of, organ_boxes, write_cases, write_nifti
from tests.builders.case_pages import evaluated
from tests.builders.errors import told


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two cases that were evaluated, in folders of short names, and their CTs."""
    monkeypatch.chdir(tmp_path)
    boxes = organ_boxes()
    ct = np.where(boxes, 100, -20).astype(np.int16)
    for case in "ab":
        write_nifti(Path("images") / f"{case}_0000.nii.gz", ct, dtype="<i2")
    return evaluated(Path(), {"a": (boxes, organ_boxes(shift=1)), "b": (boxes, boxes)})


def change(*keys, value):
    def changed(made):
        content = found = json.loads(made.metrics.read_text())
        for key in keys[:-1]:
            found = found[key]
        found[keys[-1]] = value
        made.metrics.write_text(json.dumps(content))

    return changed


def cut(*parts):
    def changed(made):
        file = Path(*parts)
        file.write_bytes(file.read_bytes()[:-30])

    return changed


def predicted(labels):
    return lambda made: write_nifti(made.predictions / "a.nii.gz", labels)


def removed(*parts):
    return lambda made: Path(*parts).unlink()


def renamed(name):
    return lambda made: Path(name).rename("elsewhere")


RULES = "does not tell the rules that its scores were made by"
METRICS = "results/metrics.json"

REFUSALS = {
    # Of seven columns six are shared, when it is shifted by one, five by two.
    "a prediction with another score": (predicted(organ_boxes(shift=2)),
        "G05", "predictions/a.nii.gz", "DSC of liver is 0.714286, but metrics"),
    "an NSD that another program has written": (
        change("case", "nsd_spleen", "1", value=0.5),
        "G05", "predictions/b.nii.gz", "NSD of spleen is 1, but metrics.json sa"),
    "other references": (
        lambda made: write_cases(made.references, ["b"], labels=organ_boxes(shift=1)),
        "G05", "references", "these are not the references that metrics.json"),
    "a reference that is missing": (removed("references", "b.nii.gz"),
        "G05", "references", "no reference of case b, which metrics.json has"),
    "a prediction that is missing": (removed("predictions", "a.nii.gz"),
        "G05", "predictions", "no label map that can be scored of case a, which"),
    "a prediction that is damaged": (cut("predictions", "a.nii.gz"),
        "F09", "a.nii.gz", "its compressed data end early"),
    "a prediction on another grid": (predicted(organ_boxes()[:-1]),
        "F07", "a.nii.gz", "size is 20 x 16 x 9 voxels"),
    "no dsc": (change("case", "dsc", "1", value=None),
        "G05", METRICS, "it has no dsc of case b"),
    "no nsd_kidney": (change("case", "nsd_kidney", "1", value=None),
        "G05", METRICS, "it has no nsd_kidney of case b"),
    "no rules": (change("evaluation", "rules", value=None), "G05", METRICS, RULES),
    "empty rules": (change("evaluation", "rules", value={}), "G05", METRICS, RULES),
    "other rules": (change("evaluation", "rules", value={"decimals": 3}),
        "G05", METRICS, RULES),
    "no references": (renamed("references"),
        "H01", "references", "there is no such folder"),
    "no predictions": (renamed("predictions"),
        "H01", "predictions", "there is no such file or folder"),
    "a CT that is missing": (removed("images", "b_0000.nii.gz"),
        "H01", "images", "there is no CT of case b"),
    "a CT on another grid": (
        lambda made: write_nifti(
            Path("images") / "a_0000.nii.gz", np.zeros((9, 16, 20), np.int16)),
        "H01", "a_0000.nii.gz", "this CT is not on the grid of its reference"),
    "a CT that is damaged": (cut("images", "a_0000.nii.gz"),
        "F09", "a_0000.nii.gz", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSALS)
def test_a_report_of_wrong_sources_is_refused_and_writes_no_page(made, what):
    changed, code, file, problem = REFUSALS[what]
    changed(made)

    with pytest.raises(FlareError) as error:
        made.write(images=Path("images"))

    assert told(error.value) == (code, file)
    assert problem in str(error.value)
    assert not (made.pages / "index.html").exists()


def test_predictions_may_be_in_their_zip(made, tmp_path, monkeypatch):
    """As `flare score` takes them; nothing of it stays, and messages name the zip."""
    from_folder = {path.name: path.read_bytes() for path in made.write().iterdir()}
    with zipfile.ZipFile("predictions.zip", "w") as archive:
        for file in made.predictions.iterdir():
            archive.write(file, f"team/{file.name}")
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    zipped = replace(made, predictions=Path("predictions.zip"), pages=Path("zipped"))

    from_zip = {path.name: path.read_bytes() for path in zipped.write().iterdir()}

    assert from_zip == from_folder
    assert list(scratch.iterdir()) == []
    predicted(organ_boxes(shift=2))(made)
    with zipfile.ZipFile("predictions.zip", "w") as archive:
        archive.write(made.predictions / "a.nii.gz", "team/a.nii.gz")
    error = error_of(FlareError, zipped.write)
    assert told(error) == ("G05", "predictions.zip")


def test_cases_that_are_not_drawn_need_no_prediction(made):
    (made.predictions / "b.nii.gz").unlink()

    assert {file.name for file in made.write(worst=1).iterdir()} == {
        *("a.html", "index.html")
    }
