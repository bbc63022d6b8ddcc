"""Organs of several labels, which may share them, and labels that are each a lesion."""

import json

import numpy as np
import pytest

import flare
from flare.common.schema import build
from flare.evaluation.metrics.kernel import kernel_problem
from tests.evaluation.metrics.drawn import draw

REGIONS = {"wt": [1, 2, 3], "tc": [3, 1], "far": [255, 9]}


def challenge_of(labels, **keys):
    """A challenge of organs by name, each with a tolerance of its own."""
    organs = [
        {"name": name, "label": label, "tolerance_mm": 1.0 + number}
        for number, (name, label) in enumerate(labels.items())
    ]
    ignored = {"reference": "ignore", "prediction": "ignore"}
    rules = {"name": "Regions", "organs": organs, "unknown_labels": ignored} | keys
    return build(flare.Challenge, rules, key="regions", checksum="")


def test_a_region_is_scored_as_if_its_labels_were_merged():
    """200 drawn pairs (50 by NumPy): each value is that of merged maps, bit by bit."""
    for number in range(0, 200, 4 if kernel_problem() else 1):  # NumPy takes a while
        distances = ["hd95", "assd"] if number % 20 == 0 else []
        metrics = ["dsc", "nsd", *distances]
        regions = challenge_of(REGIONS, metrics=metrics)
        *masks, spacing, _ = draw(number)
        random = np.random.default_rng(number)
        labels = [0, 1, 2, 3, 5, 255]
        maps = [np.where(mask, random.choice(labels, mask.shape), 0) for mask in masks]

        score = flare.score_pair(*maps, regions, spacing=spacing)

        for organ, found in zip(regions.organs, score.organs, strict=True):
            merged = [np.isin(array, organ.region) * 7 for array in maps]
            rules = {"name": organ.name, "label": 7, "tolerance_mm": organ.tolerance_mm}
            alone = challenge_of({}, metrics=metrics, organs=[rules])
            (expected,) = flare.score_pair(*merged, alone, spacing=spacing).organs
            assert found == expected, number


def test_each_label_is_a_lesion_of_its_own():
    """In 1 x 1 x 10 voxels of 1 mm, with NSD 0 below a DSC of 0.2.

    ::

        reference   1 1 1 1 1 . . 2 3 .
        prediction  1 1 1 1 . . . 3 . 5

    Lesion 1 has DSC 8 / 9, and at 2 mm each surface is near. 2 is missed and 5 is
    added: 0. Of 3 no voxel is shared: DSC 0, below 0.2, so NSD 0, too, at 1 mm.
    """
    reference, prediction = np.zeros((2, 1, 1, 10), dtype=np.uint8)
    reference[..., :9] = [1, 1, 1, 1, 1, 0, 0, 2, 3]
    prediction[..., :10] = [1, 1, 1, 1, 0, 0, 0, 3, 0, 5]
    rules = {"smallest_dsc_for_nsd": 0.2, "metrics": ["dsc", "nsd", "hd95"]}
    organ = {"name": "lesion", "labels": "each", "tolerance_mm": 2.0}
    challenge = challenge_of({}, organs=[organ], worst_distance_mm=40, **rules)

    def score(*maps):
        return flare.score_pair(*maps, challenge, spacing=(1, 1, 1)).by_metric

    assert score(reference, prediction) == {
        "dsc": pytest.approx(8 / 9 / 4, abs=1e-15),
        "nsd": 1 / 4,
        "hd95": (1 + 40 + 1 + 40) / 4,
    }
    assert score(reference, reference) == {"dsc": 1, "nsd": 1, "hd95": 0}
    empty = np.zeros_like(reference)
    assert score(empty, empty) == {"dsc": 1, "nsd": 1, "hd95": 0}
    assert score(reference, empty) == {"dsc": 0, "nsd": 0, "hd95": 40}


def test_regions_are_told_by_label():
    challenge = challenge_of({"wt": [1, 2, 3], "tc": [3, 1], "et": 3, "far": [4, 9]})

    assert challenge.labels_text == (
        "0 background, 1 wt and tc, 2 wt, 3 wt, tc and et, 4 far, 9 far"
    )
    lesions = {"name": "lesion", "labels": "each", "tolerance_mm": 2.0}
    challenge = challenge_of({}, organs=[lesions])
    assert challenge.labels_text == "0 background, 1 to 255 one lesion each"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("edition", "program", "names"),
    [
        ("kits23", "kits23", {"dsc": "dice", "nsd": "sd"}),
        ("brats23-gli", "brats2023-gli", {"dsc": "Legacy_Dice", "hd95": "Legacy_HD95"}),
    ],
)
def test_regions_have_the_values_of_the_published_program(
    shared, edition, program, names
):
    data = shared / "data" / "lesions"
    cases = json.loads((data / "values.json").read_text("utf-8"))["cases"]

    results = flare.evaluate(
        data / "predictions", data / "reference", challenge=edition
    )

    assert len(results.cases) == len(cases) == 10
    for case in results.cases:
        official = cases[case.case]["values"][program]
        official = {region.lower(): values for region, values in official.items()}
        assert official.keys() == {organ.organ for organ in case.organs}
        for organ in case.organs:
            for metric, name in names.items():
                value = official[organ.organ][name]
                assert organ.by_metric[metric] == pytest.approx(value, abs=1e-12)
