"""FLARE22 to 24: every rule by hand, and switched off in the challenge's own file.

One case shows all rules. Every organ is a column of voxels of 1 mm along z, far from
the others, so that its DSC can be read off the strings below.
"""

import csv
import json

import numpy as np
import pytest

import flare
from flare.results.metrics_json import metrics_json
from tests.builders import ROOT, read_metrics, run_evaluate, write_file, write_nifti

FLARE23 = (ROOT / "flare/challenge/editions/flare23.toml").read_text(encoding="utf-8")

ORGANS = {
    # organ: label, reference and prediction from the lowest slice to the highest
    "liver": (1, "11111111....", "11111111...."),
    "spleen": (3, "111111111111", "1..........."),
    "pancreas": (4, "111.........", "1111........"),
    "aorta": (5, ".1111.......", ".111........"),
    "esophagus": (10, "..111.......", ".1111111...."),
    "lesion": (14, "............", "..11........"),
    "unknown": (40, "............", "......11...."),
}


@pytest.fixture
def folders(tmp_path):
    for index, kind in ((1, "reference"), (2, "predictions")):
        labels = np.zeros((12, 90, 90), dtype=np.uint8)
        for number, columns in enumerate(ORGANS.values()):
            mask = [voxel == "1" for voxel in columns[index]]
            labels[mask, 12 * number + 6, 12 * number + 6] = columns[0]
        write_nifti(tmp_path / kind / "case_1.nii.gz", labels, spacing=(1, 1, 1))
    return tmp_path / "predictions", tmp_path / "reference"


def scores(folders, challenge):
    (case,) = flare.evaluate(*folders, challenge=challenge).cases
    found = {"dsc": case.dsc, "nsd": case.nsd}
    for organ in case.organs:
        found |= {f"dsc_{organ.organ}": organ.dsc, f"nsd_{organ.organ}": organ.nsd}
    return found


def test_every_rule_of_flare23_by_hand(folders):
    found = scores(folders, "flare23")

    assert (found["dsc_liver"], found["nsd_liver"]) == (1, 1)
    # 1 of 12 voxels: 2 / 13 is under 0.2, so NSD is 0, though some is within 3 mm.
    assert (found["dsc_spleen"], found["nsd_spleen"]) == (round(2 / 13, 4), 0)
    # 3 voxels and a fourth: 6 / 7, to four decimals.
    assert found["dsc_pancreas"] == 0.8571
    # Slices 1 to 3 are compared, the top one is dropped: no difference is left.
    assert (found["dsc_aorta"], found["nsd_aorta"]) == (1, 1)
    # Slices 2 and 3: what the prediction has above and below does not count.
    assert (found["dsc_esophagus"], found["nsd_esophagus"]) == (1, 1)
    # Only the prediction has a lesion.
    assert (found["dsc_lesion"], found["nsd_lesion"]) == (0, 0)
    # Neither has any of the other eight: 1. The lesion does not count.
    assert found["dsc"] == pytest.approx((1 + 0.1538 + 0.8571 + 1 + 1 + 8) / 13)


SWITCHES = {
    "the z-range": (
        'organs = ["aorta", "inferior_vena_cava", "esophagus"]',
        "",
        # 3 of 4 voxels: 6 / 7. And 3 of 7: 6 / 10; within 3 mm of it is all.
        {"dsc_aorta": 0.8571, "dsc_esophagus": 0.6},
        {"dsc_aorta", "dsc_esophagus", "dsc"},
    ),
    "the dropped slice": (
        'top_slice = "dropped"',
        'top_slice = "kept"',
        # Slices 1 to 4: 6 / 7. The esophagus is filled in slices 2 to 4 as well.
        {"dsc_aorta": 0.8571, "dsc_esophagus": 1},
        {"dsc_aorta", "dsc"},
    ),
    "the smallest DSC for NSD": (
        "smallest_dsc_for_nsd = 0.2",
        "",
        {"dsc_spleen": 0.1538},
        {"nsd_spleen", "nsd"},
    ),
    "rounding": (
        "decimals = 4",
        "",
        {"dsc_spleen": 2 / 13, "dsc_pancreas": 6 / 7},
        {"dsc_spleen", "dsc_pancreas", "dsc"},
    ),
    "the lesion in the means": (
        "in_mean = false",
        "",
        {"dsc": pytest.approx((1 + 0.1538 + 0.8571 + 1 + 1 + 8 + 0) / 14)},
        {"dsc", "nsd"},
    ),
    "unknown labels": (
        'prediction = "ignore"',
        'prediction = "zero"',
        {"dsc": 0, "dsc_liver": 0, "nsd_liver": 0},
        None,
    ),
}


@pytest.mark.parametrize("rule", SWITCHES)
def test_switching_a_rule_off_changes_what_it_is_about_and_nothing_else(
    folders, tmp_path, rule
):
    found, instead, values, expected = SWITCHES[rule]
    assert FLARE23.count(found) == 1
    file = write_file(tmp_path / "switched.toml", FLARE23.replace(found, instead))

    before, after = scores(folders, "flare23"), scores(folders, file)

    changed = {key for key in before if before[key] != after[key]}
    assert changed == (expected or {key for key in before if before[key]})
    assert {key: after[key] for key in values} == values


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").rglob("*.toml")), ids=lambda path: path.stem
)
def test_perfect_predictions_by_an_example_are_perfect(example, tmp_path):
    labels = np.zeros((8, 8, 100), dtype=np.uint8)
    for number, organ in enumerate(flare.read_challenge(example).organs):
        labels[2:6, 2:6, 5 * number : 5 * number + 4] = organ.region[0]
    write_nifti(tmp_path / "case_1.nii.gz", labels)

    (case,) = flare.evaluate(tmp_path, tmp_path, challenge=example).cases
    assert (case.dsc, case.nsd) == (1, 1)


# --- The official scripts ---------------------------------------------------------


@pytest.mark.shared
@pytest.mark.parametrize(
    ("challenge", "folder", "official"),
    [
        ("flare22", "flare22", "official-flare22.csv"),
        ("flare23", "flare22", "official-flare23-cases.csv"),
        ("flare24", "flare22", "official-flare22.csv"),
        ("flare24-lesion", "flare24-lesion", "official.csv"),
    ],
)
def test_every_case_equals_its_official_values(
    shared, tmp_path, challenge, folder, official
):
    """To the last of four decimals, by the command that organisers type."""
    data = shared / "data" / folder
    with (data / official).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    run = run_evaluate(
        data / "predictions", data / "reference", tmp_path, "--challenge", challenge
    )

    assert (run.returncode, run.stderr) == (0, b"")
    case = read_metrics(tmp_path)["case"]
    organs = [organ.name for organ in flare.read_challenge(challenge).organs]
    assert list(case["alg_fname"].values()) == [row["Name"] for row in rows]
    for number, row in enumerate(rows):
        keys = [f"{metric}_{organ}" for metric in ("dsc", "nsd") for organ in organs]
        found = [case[key][str(number)] for key in keys]
        assert found == [float(value) for value in list(row.values())[1:]]


ABBREVIATIONS = {
    "RK": "right_kidney",
    "LK": "left_kidney",
    "IVC": "inferior_vena_cava",
    "RAG": "right_adrenal_gland",
    "LAG": "left_adrenal_gland",
}


@pytest.mark.shared
def test_the_means_of_flare23_are_the_official_ones(shared):
    """The mean of all organs, which leaves the lesion out, included."""
    data = shared / "data" / "flare22"
    lines = (data / "official-flare23-scores.txt").read_text(encoding="utf-8")
    official = dict(line.split(": ") for line in lines.splitlines())

    results = flare.evaluate(
        data / "predictions", data / "reference", challenge="flare23"
    )
    means = json.loads(metrics_json(results))["aggregates"]

    assert len(official) == 30
    for key, value in official.items():
        organ, metric = key.split("_")
        name = ABBREVIATIONS.get(organ, organ.lower())
        ours = metric.lower() + ("_mean" if organ == "Organ" else f"_{name}_mean")
        assert f"{means[ours]:.4f}" == value, key
