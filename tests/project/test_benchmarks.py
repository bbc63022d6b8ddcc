"""The benchmark's parts work; what they measure is no test."""

import re
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


def test_generated_cases_are_work_for_every_organ(cases):
    """All four are in both label maps, and disagree a little: real surfaces."""
    (case,) = flare.evaluate(cases / "predictions", cases / "reference").cases

    for organ in case.organs:
        assert 0.5 < organ.dsc < 1
        assert 0 < organ.nsd < 1


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["simpleitk", "surface-distance", "monai"])
def test_a_peer_goes_through_all_cases(cases, peer):
    if peer == "monai":
        pytest.importorskip("monai", reason="MONAI is not installed")
    command = [sys.executable, BENCHMARKS / "peers.py", peer, cases, *"1111"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_the_page_about_speed_quotes_the_table():
    results = (BENCHMARKS / "results.md").read_text(encoding="utf-8").splitlines()
    page = (ROOT / "docs" / "reference" / "speed.md").read_text(encoding="utf-8")
    quoted = [line for line in page.splitlines() if line.startswith("|")]

    assert len(quoted) > 4
    assert set(quoted) <= set(results)


def test_the_page_about_measuring_quotes_its_table():
    results = (BENCHMARKS / "measuring.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "organisers" / "measuring.md").read_text(encoding="utf-8")
    rows = [line for line in results.splitlines() if line.startswith("|")]

    assert len(rows) == 15
    assert "\n".join(rows) in page


def test_no_goal_of_the_table_is_missed():
    """As in the table: "at most" and "at least", compared with the median."""
    results = (BENCHMARKS / "results.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"\| ([\d.]+) \w+ \| [^|]*\| (at most|at least) ([\d.]+) \|", results
    )

    assert len(rows) == 12
    for median, kind, goal in rows:
        if kind == "at most":
            assert float(median) <= float(goal)
        else:
            assert float(median) >= float(goal)
