"""summary.json, as nnU-Net writes it, against its formulas on the very files."""

import json
import math
import shutil
from functools import partial

import nibabel as nib
import numpy as np
import pytest

import flare
from flare.results.summary_json import summary_of, write_summary
from tests.builders import ORGANS, organ_boxes, run_program, write_nifti
from tests.builders.errors import told

COUNTS = ("TP", "FP", "FN", "TN", "n_pred", "n_ref")


def oracle(references, predictions, labels):
    """nnU-Net's evaluation, slow and plain, with NaN as it has them."""
    cases = []
    for file in sorted(references.iterdir()):
        reference, prediction = (
            np.asarray(nib.load(folder / file.name).dataobj)
            for folder in (references, predictions)
        )
        metrics = {}
        for label in labels:
            first, second = reference == label, prediction == label
            tp, fp = np.sum(first & second), np.sum(~first & second)
            fn, tn = np.sum(first & ~second), np.sum(~first & ~second)
            with np.errstate(invalid="ignore"):
                dice, iou = 2 * tp / (2 * tp + fp + fn), tp / (tp + fp + fn)
            metrics[str(label)] = dict(
                zip(
                    ("Dice", "IoU", *COUNTS),
                    map(float, (dice, iou, tp, fp, fn, tn, fp + tp, fn + tp)),
                    strict=True,
                )
            )
        names = dict.fromkeys(("reference_file", "prediction_file"), file.name)
        cases.append({"metrics": metrics, **names})
    means = {
        label: {
            key: float(np.nanmean(own)) if not np.isnan(own).all() else math.nan
            for key in cases[0]["metrics"][label]
            if (own := np.array([case["metrics"][label][key] for case in cases])).size
        }
        for label in map(str, labels)
    }
    overall = {
        key: float(np.mean([mean[key] for mean in means.values()]))
        for key in next(iter(means.values()))
    }
    return {"metric_per_case": cases, "mean": means, "foreground_mean": overall}


def filled(found):
    """The same with NaN for null, as nnU-Net's own files have it."""
    if isinstance(found, dict):
        return {key: filled(value) for key, value in found.items()}
    if isinstance(found, list):
        return [filled(value) for value in found]
    return math.nan if found is None else found


def flat(found, path=()):
    """All values by their paths; of NaN, which equals nothing, the word."""
    if isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        return {k: v for key, own in items for k, v in flat(own, (*path, key)).items()}
    return {path: found if isinstance(found, str) else f"{found:.12g}"}


@pytest.fixture
def files(tmp_path):
    """Two cases; one has no pancreas, and in the other no spleen was found."""
    random = np.random.default_rng(7)
    for number in range(2):
        for name in ("references", "predictions"):
            labels = organ_boxes()
            labels[random.random(labels.shape) < 0.2] = 2
            if not number:
                labels[labels == 4] = 0
            elif name == "predictions":
                labels[labels == 3] = 0
            write_nifti(tmp_path / name / f"case_{number}.nii.gz", labels)
    return tmp_path


def scored(folder, **options):
    return flare.evaluate(folder / "predictions", folder / "references", **options)


def test_it_is_what_nnunet_says(files):
    expected = oracle(files / "references", files / "predictions", ORGANS)

    found = filled(summary_of(scored(files)))

    assert flat(found) == flat(expected)
    assert math.isnan(expected["metric_per_case"][0]["metrics"]["4"]["Dice"])


def test_an_organ_that_is_nowhere_has_no_mean(files):
    """In flare23 labels 13 and 14 are in no case; JSON has no NaN."""
    text = json.dumps(summary_of(scored(files, challenge="flare23")), allow_nan=False)

    found = json.loads(text)
    assert found["mean"]["14"]["Dice"] is None
    assert found["mean"]["14"]["n_ref"] == 0
    assert found["foreground_mean"]["Dice"] is None
    assert found["foreground_mean"]["TP"] > 0


def test_a_case_that_was_not_scored_counts_as_0(files):
    (files / "predictions/case_0.nii.gz").unlink()

    case, _ = summary_of(scored(files, on_bad_case="worst"))["metric_per_case"]

    assert case["prediction_file"] == ""
    assert case["metrics"]["1"] == {
        "Dice": 0.0,
        "IoU": 0.0,
        **dict.fromkeys(COUNTS),
    }


def best_model(*folders):
    """What people do with these files, as nnU-Net does to find its best model."""
    means = {}
    for folder in folders:
        summary = json.loads((folder / "summary.json").read_text())
        labels = {int(label) for label in summary["mean"]}
        for case in summary["metric_per_case"]:
            assert {int(label) for label in case["metrics"]} == labels
            assert case["reference_file"] == case["prediction_file"]
        means[folder.name] = summary["foreground_mean"]["TP"]
    return max(means, key=means.get)


def test_scripts_read_those_of_all_teams(files, tmp_path):
    """Also where all was scored before; a team that is refused has none any more."""
    teams, summaries = tmp_path / "teams", tmp_path / "summaries"
    shutil.copytree(files / "references", teams / "good")
    shutil.copytree(files / "predictions", teams / "bad")
    score = partial(
        flare.evaluate_many,
        *(teams, files / "references", tmp_path / "results"),
        workers=1,
        nnunet_summary=summaries,
    )

    score()
    assert best_model(summaries / "good", summaries / "bad") == "good"
    own = write_summary(scored(files), tmp_path / "own").read_bytes()
    for _ in range(2):
        assert (summaries / "bad/summary.json").read_bytes() == own
        (summaries / "bad/summary.json").unlink()
        score()
    (teams / "bad/case_0.nii.gz").unlink()
    score()
    assert not (summaries / "bad/summary.json").exists()


def test_evaluate_writes_it_where_it_is_told(files, tmp_path):
    run = run_program(
        *("--input", files / "predictions", "--output", tmp_path / "out"),
        *("--ground-truth", files / "references", "--workers", 1),
        *("--nnunet-summary", tmp_path / "summaries"),
    )

    assert run.returncode == 0, run.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["metrics.json"]
    assert best_model(tmp_path / "summaries") == "summaries"


@pytest.mark.parametrize("where", ["out", "out/deeper", "a_file"])
def test_nobody_else_gets_to_see_it_and_a_folder_is_asked_for(files, tmp_path, where):
    (tmp_path / "a_file").touch()
    run = run_program(
        *("--input", files / "predictions", "--output", tmp_path / "out"),
        *("--ground-truth", files / "references"),
        *("--nnunet-summary", tmp_path / where, "--workers", 1),
    )

    assert run.returncode == 1
    assert told(run.stderr.decode())[0] == "H01"
    assert not [*tmp_path.rglob("summary.json"), *tmp_path.rglob("metrics.json")]
