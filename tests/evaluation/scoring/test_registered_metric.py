"""A metric besides DSC and NSD needs its record and its function alone."""

import json
import math
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import flare
from flare.challenge.metrics import METRICS, SCORES, Better, Metric
from flare.challenge.reading import recorded_challenge
from flare.evaluation.evaluate import score_cases
from flare.platforms.grandchallenge.phase_settings import settings_for
from flare.results.metrics_json import metrics_json
from flare.results.metrics_reading import read_evaluation
from flare.results.scores import results_table
from tests.builders import write_nifti

SPACING = (2.0, 1.0, 1.0)  # along z, y, x
DIAGONAL = math.hypot(2.0 * 4, 1.0 * 5, 1.0 * 6)


@pytest.fixture
def challenge(monkeypatch):
    """FLARE21 with a metric that counts by how many voxels sizes differ, in mm."""
    fake = ModuleType("flare.evaluation.metrics.fake")
    fake.difference = lambda found: (
        2.0 * (found.voxels.prediction - found.voxels.reference)
        if found.voxels.reference and found.voxels.prediction
        else None
    )
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    far = Metric(
        name="far",
        title="Far",
        definition="the voxels that differ",
        unit="mm",
        function="fake:difference",
        range=(0.0, math.inf),
        better=Better.LOWER,
        worst=None,
        decimals=1,
    )
    monkeypatch.setitem(METRICS, "far", far)
    return replace(flare.read_challenge("flare21"), metrics=("dsc", "nsd", "far"))


@pytest.fixture
def folders(tmp_path):
    """The liver two voxels larger, a spleen that is missed, and a case without file."""
    reference = np.zeros((4, 5, 6), dtype=np.uint8)
    reference[1:3, 1:4, 2:5] = 1
    reference[0, 0, 0:3] = 3
    prediction = reference.copy()
    prediction[prediction == 3] = 0
    prediction[3, 1, 2:4] = 1
    for case in ("a", "b"):
        write_nifti(tmp_path / "labels" / f"{case}.nii.gz", reference, spacing=SPACING)
    write_nifti(tmp_path / "own" / "a.nii.gz", prediction, spacing=SPACING)
    return tmp_path / "own", tmp_path / "labels"


def test_scores_files_tables_and_columns_have_it(challenge, folders, tmp_path):
    results = flare.evaluate(
        *folders, challenge=challenge, on_bad_case="worst", workers=1
    )

    found = {name: own for name, own in results.metrics.items() if "far" in name}
    assert found == {
        "far_liver": (4.0, DIAGONAL),  # 2 voxels of 2 mm; the whole diagonal
        "far_kidney": (0.0, DIAGONAL),  # neither has it
        "far_spleen": (DIAGONAL, DIAGONAL),  # only the reference has it
        "far_pancreas": (0.0, DIAGONAL),
        "far": (pytest.approx((4.0 + DIAGONAL) / 4), DIAGONAL),
    }
    content = json.loads(metrics_json(results))
    assert content["aggregates"]["far_liver_min"] == 4.0
    assert content["evaluation"]["rules"]["metrics"] == "dsc, nsd, far"
    assert "Far" in results_table(results).splitlines()[0]
    assert "Far " in repr(results)
    file = flare.write_metrics(results, tmp_path)
    assert read_evaluation(file).values["a", "far_liver"] == 4.0


MORE = ("dsc", "nsd", "hd95", "assd", "volume_difference")


@pytest.mark.parametrize("own", [None, 374.0], ids=["the diagonal", "a value"])
def test_distances_and_volumes_by_the_rules(folders, own):
    """The spleen is missed, b has no file; the liver's 18 voxels are 2 more."""
    challenge = replace(
        flare.read_challenge("flare21"), metrics=MORE, decimals=2, worst_distance_mm=own
    )
    far = own or DIAGONAL
    results = flare.evaluate(
        *folders, challenge=challenge, on_bad_case="worst", workers=1
    )
    found = results.metrics
    for metric in ("hd95", "assd"):
        assert found[f"{metric}_spleen"] == (round(far, 2), far)
        assert found[f"{metric}_pancreas"] == (0.0, far)  # neither has it
        assert 0 < found[f"{metric}_liver"][0] <= 2.0  # mm: a step along z
    assert found["volume_difference_liver"] == (0.11, -1.0)
    assert found["volume_difference_spleen"] == (-1.0, -1.0)
    assert found["volume_difference_pancreas"] == (0.0, -1.0)
    content = json.loads(metrics_json(results))
    assert content["aggregates"]["hd95_pancreas_median"] == far / 2
    rules = content["evaluation"]["rules"]
    assert rules.get("worst_distance_mm") == own
    organs = [organ.name for organ in challenge.organs]
    again = recorded_challenge("flare21", rules, organs)
    assert (again.metrics, again.worst_distance_mm) == (MORE, own)


def test_a_metric_that_nothing_computes_is_in_no_challenge():
    with pytest.raises(ValueError, match=r"^metrics\[3\] is 'hd', expected dsc, nsd,"):
        replace(flare.read_challenge("flare21"), metrics=("dsc", "nsd", "hd"))


def test_no_board_has_a_volume_difference():
    challenge = replace(flare.read_challenge("flare21"), metrics=MORE)
    for phase in settings_for(challenge).values():
        assert {"aggregates.hd95_mean", "aggregates.assd_liver_mean"} <= {
            path for _, path, _ in phase.columns
        }
        assert not any("volume" in path for _, path, _ in phase.columns)


@pytest.mark.parametrize(
    ("metrics", "problem", "expected"),
    [
        (SCORES, "", 2 * 50),
        (SCORES, "it was not compiled", 5 * 50),
        (MORE, "", 230 * 2**20 + 4 * 50),
    ],
)
def test_workers_have_memory_for_maps_and_for_distances_where_they_are_asked_for(
    monkeypatch, metrics, problem, expected
):
    said = []
    monkeypatch.setattr(
        "flare.evaluation.evaluate.default_workers",
        lambda case_bytes: said.append(case_bytes) or 1,
    )
    monkeypatch.setattr("flare.evaluation.scoring.case.kernel_problem", lambda: problem)
    monkeypatch.setattr("flare.evaluation.evaluate.attempt_case", lambda *_, **__: None)
    rules = replace(flare.read_challenge("flare21"), metrics=metrics)
    pairs = [SimpleNamespace(case=str(size), voxels=size) for size in (20, 50, 30)]
    assert len([*score_cases(pairs, rules, workers=None, check_only=False)]) == 3
    assert said == [expected]
