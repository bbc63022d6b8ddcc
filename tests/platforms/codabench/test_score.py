"""The scoring program, in folders as the site lays them out."""

import json
import os
import re
import subprocess
import sys
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pytest

from flare.challenge.reading import read_challenge
from flare.cli.main import main
from flare.evaluation.check import check_references
from flare.platforms.board import files_text
from flare.platforms.codabench.packages import package_names
from tests.builders import (
    ROOT,
    case_names,
    organ_boxes,
    read_metrics,
    run_evaluate,
    write_cases,
    write_file,
)
from tests.builders.codabench import lay_out, run_scoring, write_light_bundle
from tests.builders.npz import zip_bytes
from tests.evaluation.refusals import MESSAGES, REFUSALS

PAGE = "detailed_results.html"


@pytest.fixture
def make_app(monkeypatch, tmp_path):
    """Lay out a bundle of two cases, of the liver alone beside tables."""

    def make(tables=(), **options):
        label_map = organ_boxes() == 1 if tables else organ_boxes()
        labels = write_cases(tmp_path / "labels", case_names(2), labels=label_map)
        for name, text in dict(tables).items():
            (labels / name).write_text(text)
        bundle = tmp_path / "bundle.zip"
        write_light_bundle(monkeypatch, bundle, labels, **options)
        lay_out(bundle, tmp_path / "app")
        return tmp_path / "app"

    return make


def write_shifted(app):
    """Predict the liver a voxel too far: 6 of its 7 columns along x are right."""
    folder = app / "input" / "res" / "mine"
    write_cases(folder, case_names(2), labels=organ_boxes(shift=1))


def change_settings(app, **settings):
    file = app / "program" / "settings.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def outputs(app):
    return {file.name: file.read_text() for file in (app / "output").iterdir()}


def test_scores_are_means_with_a_decimal_more_than_on_the_page(make_app):
    app = make_app()
    write_shifted(app)
    (app / "input" / "res" / "metadata").write_text("exitCode: 0\n")
    (app / "input" / "res" / "__MACOSX").mkdir()
    (app / "input" / "res" / "__MACOSX" / "._case_1.nii.gz").write_text("junk")

    run = run_scoring(app)

    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert {*outputs(app)} == {"scores.json", PAGE}
    scores = json.loads(outputs(app)["scores.json"])
    assert scores["dsc_liver_mean"] == 0.8571
    assert scores["dsc_mean"] == round((3 + 6 / 7) / 4, 4)
    assert "validation_001" in outputs(app)[PAGE]
    assert "0.857142" not in outputs(app)[PAGE]


def test_what_is_left_out_of_all_cases_is_no_score(make_app, tmp_path, capfd):
    """No case has an aorta. A missing score is the best to the site: not Force_Best."""
    rule = '[absent_organs]\nin_both = "left_out"\nin_reference = "left_out"\n'
    text = f'extends = "flare22"\nname = "Mine"\n{rule}'
    challenge = write_file(tmp_path / "mine.toml", text)
    app = make_app(challenge=str(challenge), page="means")  # of no single case
    write_shifted(app)

    assert run_scoring(app).returncode == 0

    scores = json.loads(outputs(app)["scores.json"])
    assert scores["dsc_liver_mean"] == 0.8571
    assert not [key for key in scores if "aorta" in key]
    assert "0.857" in outputs(app)[PAGE]
    assert "validation_001" not in outputs(app)[PAGE]
    rules = read_challenge(challenge)
    assert "on no board that ranks by it" in files_text(rules)
    assert "on no board that" in check_references(tmp_path / "labels", rules)
    change_settings(app, columns=[(n, "dsc_liver_mean", 1, n) for n in (2, 3)])
    run_scoring(app)
    assert json.loads(outputs(app)["scores.json"]) == {"2": 0.9}  # of both cases
    bundle, scores_json = tmp_path / "bundle.zip", app / "output" / "scores.json"
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    settings = files["competition.yaml"].replace(b"Force_Last", b"Force_Best")
    assert settings != files["competition.yaml"]
    bundle.write_bytes(zip_bytes((files | {"competition.yaml": settings}).items()))
    for command in ("rehearse", "leaderboard"):
        words = [command, scores_json, "--platform", "codabench", "--bundle", bundle]
        assert main([*map(str, words)]) == 1
        line = capfd.readouterr().err
        assert (
            "submission_rule is 'Force_Best', expected \"Force_Last\": to the" in line
        )


def test_label_maps_and_answers_have_the_scores_of_an_evaluation(make_app, tmp_path):
    """Of two answers, one is right."""
    table = "identifier,{}\nvalidation_001,1\nvalidation_002,0\n"
    app = make_app(
        {"reference.csv": table.format("label")}, challenge="flare26-automsc"
    )
    write_cases(app / "input" / "res", case_names(2), labels=organ_boxes() == 1)
    (app / "input" / "res" / "results.csv").write_text(table.format("probs"))

    assert run_scoring(app).returncode == 0

    words = ("--challenge", "flare26-automsc")
    run_evaluate(app / "input" / "res", tmp_path / "labels", tmp_path, *words)
    expected = read_metrics(tmp_path)["aggregates"]
    scores = json.loads(outputs(app)["scores.json"])
    assert scores["auroc_diagnosis"] == 1.0
    assert scores == {key: round(expected[key], 4) for key in scores}


@pytest.mark.parametrize(
    ("count", "settings", "line"),
    [
        (1, {}, r"Missing 1 of 2 cases: validation_002.nii.gz\..*\[F05\]"),
        (0, {}, r".* holds no label map \(it is empty\)\..*\[F01\]"),
        (1, {"time_limit_s": 0}, "The evaluation was not done in its time"),
        (
            2,
            {"columns": [("dsc", "dsc_x", 4, 1)]},
            "The evaluation has no number for dsc",
        ),
    ],
    ids=["refused", "nothing", "late", "no number"],
)
def test_without_scores_there_is_a_page_with_the_reason(
    make_app, count, settings, line
):
    app = make_app()
    if count:
        write_cases(app / "input" / "res", case_names(count), labels=organ_boxes())
    (app / "input" / "res" / "metadata").write_text("exitCode: 0\n")
    change_settings(app, **settings)

    run = run_scoring(app)

    assert run.returncode == 1
    assert re.match(line, run.stderr)
    assert {*outputs(app)} == {PAGE}
    assert f"<p>{run.stderr.strip()}</p>" in outputs(app)[PAGE]


@pytest.mark.parametrize("key", ["reoriented", "probabilities", "missing"])
def test_no_refusal_needs_a_package_that_bundles_lack(tmp_path, key):
    names = [f"validation_{number:03}" for number in (1, 2, 3)]
    labels = write_cases(tmp_path / "labels", names, labels=organ_boxes())
    submission = write_cases(tmp_path / "submission", names, labels=organ_boxes())
    REFUSALS[key](submission)
    (tmp_path / "packages").mkdir()
    for package in package_names(read_challenge("flare21"), is_plain=False):
        with suppress(PackageNotFoundError):  # of one that this Python has no need of
            paths = files(package)
            place = Path(paths[0].locate()).parents[len(paths[0].parts) - 1]
            for name in {path.parts[0] for path in paths} - {"..", "__pycache__"}:
                (tmp_path / "packages" / name).symlink_to(place / name)

    command = [sys.executable, "-S", "-m", "flare", "evaluate"]
    command += [f"--ground-truth={labels}", f"--output={tmp_path / 'output'}"]
    path = os.pathsep.join([str(ROOT), str(tmp_path / "packages")])
    environment = {"PYTHONPATH": path, "FLARE_INPUT": str(submission)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert run.stderr.strip() == MESSAGES[key]
