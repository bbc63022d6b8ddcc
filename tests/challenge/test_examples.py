"""The example challenge files: the program takes them, and they do what they say."""

import json

import numpy as np
import pytest

import flare
from tests.builders import ROOT, run_evaluate, run_flare, write_nifti

EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request):
    return request.param


def boxes(challenge):
    """A label map with a box of 4 x 4 x 4 voxels for each organ."""
    labels = np.zeros((8, 8, 5 * len(challenge.organs)), dtype=np.uint8)
    for number, organ in enumerate(challenge.organs):
        labels[2:6, 2:6, 5 * number : 5 * number + 4] = organ.label
    return labels


def test_references_and_perfect_predictions_can_be_scored(example, tmp_path, output):
    challenge = flare.read_challenge(example)
    labels = tmp_path / "labels"
    for case in ("case_1", "case_2"):
        write_nifti(labels / f"{case}.nii.gz", boxes(challenge))

    checked = run_flare("check-references", labels, "--challenge", example)
    scored = run_evaluate(labels, labels, output, "--challenge", example)

    assert (checked.returncode, checked.stderr) == (0, "")
    assert "2 reference label maps can be used" in checked.stdout
    assert (scored.returncode, scored.stderr) == (0, b"")
    aggregates = json.loads((output / "metrics.json").read_text())["aggregates"]
    assert (aggregates["dsc_mean"], aggregates["nsd_mean"]) == (1, 1)
