"""Equal to the official FLARE21 script on real and synthetic label maps."""

import csv
import sys

import pytest

import flare
from tests.builders import ORGANS, run_command

pytestmark = pytest.mark.shared


def test_every_case_equals_the_official_value(shared):
    data = shared / "data" / "flare21"
    with (data / "official.csv").open(encoding="utf-8") as file:
        official = {row["Name"]: row for row in csv.DictReader(file)}

    results = flare.evaluate(data / "predictions", data / "reference")

    assert {case.prediction_file for case in results.cases} == set(official)
    for case in results.cases:
        row = official[case.prediction_file]
        for label, score in zip(ORGANS, case.organs, strict=True):
            assert score.dsc == float(row[f"DSC_{label}"])
            nsd = float(row[f"NSD-1mm_{label}"])
            assert score.nsd == pytest.approx(nsd, abs=1e-12)


def test_the_check_of_the_organisers_passes(shared):
    run = run_command(shared / "checks" / "official", sys.executable)

    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("7 cases, largest difference ")
