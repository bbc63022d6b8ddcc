"""Equal to what the program of each definition gives for ten pairs of label maps."""

import json
import math

import nibabel as nib
import numpy as np
import pytest

from flare.challenge.lesion_metrics import LESION_METRICS
from flare.challenge.lesions import DEFINITIONS
from flare.evaluation.lesions.case import Surfaces, lesions_of
from flare.evaluation.metrics.pairs import pair_of_masks

pytestmark = pytest.mark.shared

METRICS = {metric.name: metric.of_lesions for metric in LESION_METRICS}
SURFACES = Surfaces(tolerance=1.0, has_distances=True)
REGIONS = {"WT": (1, 2, 3), "TC": (1, 3), "ET": (3,)}
ISLES = {
    "f1": "lesion_f1",
    "instance_count_difference": "lesion_count_difference",
    "absolute_volume_difference_ml": "absolute_volume_difference",
}
AUTOPET = {
    "false_positive_volume_ml": "false_volume",
    "false_negative_volume_ml": "missed_volume",
}
WMH = {"f1": "lesion_f1", "recall": "lesion_recall"}
PROGRAMS = [
    ("isles24", "isles24", ISLES),  # by its compute_dice_f1_instance_difference
    ("isles24-before-2025-12", "isles24-iou0.5", ISLES),
    ("autopet3", "autopet", AUTOPET),  # by its compute_metrics
    ("autopet4", "autopet", AUTOPET),
    ("wmh2017", "wmh17", WMH),  # by its getLesionDetection
]


def official_cases(shared):
    """The label maps, the spacing and the values by program of each pair."""
    data = shared / "data" / "lesions"
    cases = json.loads((data / "values.json").read_text(encoding="utf-8"))["cases"]
    for name, case in cases.items():
        files = (
            data / kind / f"{name}.nii.gz" for kind in ("reference", "predictions")
        )
        reference, prediction = map(nib.load, files)
        spacing = tuple(float(mm) for mm in reference.header.get_zooms()[::-1])
        maps = [np.asarray(image.dataobj).T for image in (reference, prediction)]
        yield maps, spacing, case["values"]


def lesions(maps, labels, spacing, name):
    pair = pair_of_masks(*(np.isin(voxels, labels) for voxels in maps), spacing)
    return lesions_of(pair, DEFINITIONS[name], SURFACES)


@pytest.mark.parametrize("name", ["gli", "men", "met"])
def test_brats_2023(shared, name):
    """By get_LesionWiseResults: Dice to the last bit but one; HD95 to 1e-9 mm."""
    for maps, spacing, values in official_cases(shared):
        for region, official in values[f"brats2023-{name}"].items():
            case = lesions(maps, REGIONS[region], spacing, f"brats23-{name}")
            dsc, hd95 = METRICS["lesion_dsc"](case), METRICS["lesion_hd95"](case)
            expected = official["LesionWise_Score_HD95"]
            counts = case.found, len(case.missed), len(case.false)
            assert dsc == pytest.approx(official["LesionWise_Score_Dice"], abs=2e-16)
            assert hd95 == pytest.approx(expected, abs=1e-9)
            assert counts == tuple(official[f"Num_{key}"] for key in ("TP", "FN", "FP"))


@pytest.mark.parametrize(("program", "name", "keys"), PROGRAMS)
def test_the_other_programs(shared, program, name, keys):
    """Volumes to 1e-6: the programs read spacings of 32 bits."""
    for maps, spacing, values in official_cases(shared):
        case = lesions(maps, (1, 2, 3), spacing, name)
        for key, metric in keys.items():
            value, expected = METRICS[metric](case), float(values[program][key])
            if value is None:
                assert math.isnan(expected)
            else:
                tolerance = 1e-6 if "_ml" in key else 1e-15
                assert value == pytest.approx(expected, rel=tolerance, abs=1e-15)
