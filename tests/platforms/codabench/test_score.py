"""The scoring program, in folders as the site lays them out."""

import json

import pytest

from tests.builders import case_names, organ_boxes, write_cases
from tests.builders.codabench import lay_out, run_scoring, write_light_bundle


@pytest.fixture
def app(monkeypatch, tmp_path):
    labels = write_cases(tmp_path / "labels", case_names(2), labels=organ_boxes())
    bundle = write_light_bundle(monkeypatch, tmp_path / "bundle.zip", labels)
    lay_out(bundle, tmp_path / "app")
    return tmp_path / "app"


def test_scores_are_means_with_a_decimal_more_than_on_the_page(app):
    """The liver has 6 x 7 x 7 voxels in both, of which a shift by 1 shares 6 / 7."""
    shifted = organ_boxes(shift=1)
    write_cases(app / "input" / "res" / "mine", case_names(2), labels=shifted)
    (app / "input" / "res" / "metadata").write_text("exitCode: 0\n")
    (app / "input" / "res" / "__MACOSX").mkdir()
    (app / "input" / "res" / "__MACOSX" / "._case_1.nii.gz").write_text("junk")

    run = run_scoring(app)

    scores = json.loads((app / "output" / "scores.json").read_text())
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert scores["dsc_liver_mean"] == 0.8571
    assert scores["dsc_mean"] == round((3 + 6 / 7) / 4, 4)
    assert {f.name for f in (app / "output").iterdir()} == {
        "scores.json",
        "detailed_results.html",
    }
    page = (app / "output" / "detailed_results.html").read_text()
    assert "For the participant" in page


def test_a_refused_submission_has_a_page_with_its_line(app):
    write_cases(app / "input" / "res", case_names(1), labels=organ_boxes())

    run = run_scoring(app)

    page = (app / "output" / "detailed_results.html").read_text()
    assert run.returncode == 1
    assert "[F05]" in run.stderr
    assert run.stderr.strip() in page
    assert [file.name for file in (app / "output").iterdir()] == [
        "detailed_results.html"
    ]
