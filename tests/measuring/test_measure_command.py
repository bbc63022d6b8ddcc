"""The commands that measure, with an engine that plays by a script."""

import csv
import json

import pytest

from flare.cli.main import main
from tests.builders import case_names
from tests.builders.teams import PREDICT, SCRIPTS

LIMITS = ("--gpu", "none", "--caches", "warm", "--interval", "0.02", "--no-warm-up")


@pytest.fixture
def flare(bench, capfd):
    """Run a command of the program; its status and what it has written."""

    def run(*arguments):
        status = main([str(word) for word in arguments])
        return status, *capfd.readouterr()

    return run


def test_two_teams_and_a_refused_archive(bench, flare):
    """Measured, scored, told; the refused one is in refused.csv, and the status 1."""
    bench.archive("good", PREDICT)
    bench.archive("crash", SCRIPTS["crash"])
    (bench.folder / "archives" / "bad.tar.gz").write_bytes(b"")

    status, stdout, stderr = flare(
        *("measure", bench.folder / "archives", "--images", bench.images),
        *("--ground-truth", bench.labels, "--output", bench.results, *LIMITS),
    )

    assert status == 1
    assert stderr.startswith("bad.tar.gz: it is no tar file that can be read")
    assert "good: 3 ok\n" in stdout
    assert "crash: 3 failed\n" in stdout
    assert "3 of 3 cases score 0: failed: the container ended with exit code" in stdout
    with (bench.results / "refused.csv").open() as content:
        (row,) = csv.DictReader(content)
    assert (row["team"], row["archive"]) == ("bad", "bad.tar.gz")
    means = {
        team: json.loads((bench.results / team / "metrics.json").read_text())
        for team in ("good", "crash")
    }
    assert means["good"]["aggregates"]["dsc_mean"] == 1
    assert means["crash"]["aggregates"]["dsc_mean"] == 0
    assert bench.engine.left() == []


@pytest.mark.slow
@pytest.mark.tools(package="matplotlib")
def test_pictures_of_the_memory(bench, flare):
    status, _, _ = flare(
        *("measure", bench.archive("good", PREDICT), "--images", bench.images),
        *("--output", bench.results, *LIMITS, "--plots"),
    )

    assert status == 0
    pictures = sorted((bench.results / "good" / "plots").iterdir())
    assert [file.name for file in pictures] == [f"{c}.png" for c in case_names(3)]
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in pictures)


def test_an_image_is_tried_on_one_case(bench, flare):
    """Nothing is kept of it."""
    image = bench.images / "validation_001_0000.nii.gz"
    good, crash = (
        bench.archive("good", PREDICT),
        bench.archive("crash", SCRIPTS["crash"]),
    )

    status, stdout, _ = flare("check", good, "--run", image, "--gpu", "none")
    assert status == 0
    assert "validation_001: ok, " in stdout

    status, stdout, stderr = flare("check", crash, "--run", image, "--gpu", "none")
    assert (status, stderr) == (1, "")
    assert "The container says:\n  no model\n" in stdout
    assert "crash, validation_001: failed: the container ended with exit" in stdout
    assert bench.engine.left() == []
