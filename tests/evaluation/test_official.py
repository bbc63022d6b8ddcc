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


def test_flare22_equals_its_official_values(shared):
    """13 organs, z-ranges, NSD only from a DSC of 0.2 on, four decimals."""
    data = shared / "data" / "flare22"
    with (data / "official-flare22.csv").open(encoding="utf-8") as file:
        official = {row.pop("Name"): row for row in csv.DictReader(file)}

    results = flare.evaluate(
        data / "predictions", data / "reference", challenge="flare22"
    )

    assert {case.prediction_file for case in results.cases} == set(official)
    for case in results.cases:
        found = [organ.dsc for organ in case.organs]
        found += [organ.nsd for organ in case.organs]
        assert found == [float(v) for v in official[case.prediction_file].values()]


def test_the_check_of_the_organisers_passes(shared):
    run = run_command(shared / "checks" / "official", sys.executable)

    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith("7 cases, largest difference ")
