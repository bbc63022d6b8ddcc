"""The benchmark's parts work; what they measure is no test."""

import json
import subprocess
import sys

import pytest

import flare
from tests.builders import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A small generated case with four organs."""
    folder = tmp_path_factory.mktemp("benchmark") / "cases"
    flags = ["--cases=1", "--slices=12", "--organs=4", "--dtype=uint8"]
    subprocess.run(
        [sys.executable, BENCHMARKS / "cases.py", folder, *flags], check=True
    )
    return folder


@pytest.mark.slow
def test_generated_cases_are_work_for_every_organ(cases):
    """All four are in both label maps, and disagree a little: real surfaces."""
    (case,) = flare.evaluate(cases / "predictions", cases / "reference").cases

    for organ in case.organs:
        assert 0.5 < organ.dsc < 1
        assert 0 < organ.nsd < 1


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["simpleitk", "inflate", "surface-distance", "monai"])
def test_a_peer_goes_through_all_cases(cases, peer):
    if peer == "monai":
        pytest.importorskip("monai", reason="MONAI is not installed")
    command = [sys.executable, BENCHMARKS / "peers.py", peer, cases, *"1111"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["ranking", "evaluation", "running", "report", "cases"]
)
def test_pages_are_drawn_and_told(tmp_path, kind):
    command = [sys.executable, BENCHMARKS / "pages.py", kind, "1", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found
    assert all(page["bytes"] > 10_000 for page in found)
