"""Label maps that a metrics.json was not made from get no page."""

import json
from pathlib import Path

import numpy as np
import pytest

from flare.common.errors import FlareError
from tests.builders import organ_boxes, write_cases, write_nifti
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
    """Change what metrics.json says."""

    def changed(made):
        content = found = json.loads(made.metrics.read_text())
        for key in keys[:-1]:
            found = found[key]
        found[keys[-1]] = value
        made.metrics.write_text(json.dumps(content))

    return changed


def cut(*parts):
    """Let a file end early."""

    def changed(made):
        file = Path(*parts)
        file.write_bytes(file.read_bytes()[:-30])

    return changed


RULES = "does not tell the rules that its scores were made by"


@pytest.mark.parametrize(
    ("changed", "code", "file", "problem"),
    [
        pytest.param(
            # Of seven columns six are shared, when it is shifted by one, five by two.
            lambda made: write_nifti(
                made.predictions / "a.nii.gz", organ_boxes(shift=2)
            ),
            *("G05", "predictions/a.nii.gz", "DSC of liver is 0.714286, but metrics"),
            id="a prediction with another score",
        ),
        pytest.param(
            change("case", "nsd_spleen", "1", value=0.5),
            *("G05", "predictions/b.nii.gz", "NSD of spleen is 1, but metrics.json sa"),
            id="an NSD that another program has written",
        ),
        pytest.param(
            lambda made: write_cases(
                made.references, ["b"], labels=organ_boxes(shift=1)
            ),
            *("G05", "references", "these are not the references that metrics.json"),
            id="other references",
        ),
        pytest.param(
            lambda made: (made.references / "b.nii.gz").unlink(),
            *("G05", "references", "no reference of case b, which metrics.json has"),
            id="a reference that is missing",
        ),
        pytest.param(
            lambda made: (made.predictions / "a.nii.gz").unlink(),
            *("G05", "predictions", "no label map that can be scored of case a, which"),
            id="a prediction that is missing",
        ),
        pytest.param(
            cut("predictions", "a.nii.gz"),
            *("F09", "a.nii.gz", "its compressed data end early"),
            id="a prediction that is damaged",
        ),
        pytest.param(
            lambda made: write_nifti(made.predictions / "a.nii.gz", organ_boxes()[:-1]),
            *("F07", "a.nii.gz", "size is 20 x 16 x 9 voxels"),
            id="a prediction on another grid",
        ),
        *(
            pytest.param(
                change("case", metric, "1", value=None),
                *("G05", "results/metrics.json", f"it has no {metric} of case b"),
                id=f"no {metric}",
            )
            for metric in ("dsc", "nsd_kidney")
        ),
        *(
            pytest.param(
                change("evaluation", "rules", value=rules),
                *("G05", "results/metrics.json", RULES),
                id=f"rules {rules}",
            )
            for rules in (None, {}, {"decimals": 3})
        ),
        *(
            pytest.param(
                lambda made, name=name: Path(name).rename("elsewhere"),
                *("H01", name, "there is no such folder"),
                id=f"no {name}",
            )
            for name in ("references", "predictions")
        ),
        pytest.param(
            lambda made: Path("images", "b_0000.nii.gz").unlink(),
            *("H01", "images", "there is no CT of case b"),
            id="a CT that is missing",
        ),
        pytest.param(
            lambda made: write_nifti(
                Path("images") / "a_0000.nii.gz", np.zeros((9, 16, 20), np.int16)
            ),
            *("H01", "a_0000.nii.gz", "this CT is not on the grid of its reference"),
            id="a CT on another grid",
        ),
        pytest.param(
            cut("images", "a_0000.nii.gz"),
            *("F09", "a_0000.nii.gz", ""),
            id="a CT that is damaged",
        ),
    ],
)
def test_a_report_is_refused(made, changed, code, file, problem):
    changed(made)

    with pytest.raises(FlareError) as error:
        made.write(images=Path("images"))

    assert told(error.value) == (code, file)
    assert problem in str(error.value)
    assert not (made.pages / "index.html").exists()


def test_cases_that_are_not_drawn_need_no_prediction(made):
    (made.predictions / "b.nii.gz").unlink()

    assert {file.name for file in made.write(worst=1).iterdir()} == {
        *("a.html", "index.html")
    }
