"""The commands that measure, with an engine that plays by a script."""

import re
import sys

import pytest

from flare.common.files import write_whole
from flare.measuring import team as team_module
from flare.results.archives_csv import read_refused
from tests.builders import case_names
from tests.builders.errors import told
from tests.builders.pages import Page
from tests.builders.schemas import file_problems
from tests.builders.teams import PREDICT, SCRIPTS


@pytest.mark.slow
def test_two_teams_and_a_refused_archive(bench, measure):
    """Measured, scored, told; the refused one is in refused.csv, and the status 1."""
    bench.archive("good", PREDICT)
    bench.archive("crash", SCRIPTS["crash"])
    (bench.sent / "bad.tar.gz").write_bytes(b"")

    status, stdout, stderr = measure("--ground-truth", bench.labels)

    assert (status, told(stderr)) == (1, ("F15", "bad.tar.gz"))
    assert "good: 3 ok\n" in stdout
    assert "crash: 3 failed\n" in stdout
    (row,) = read_refused(bench.results)
    assert (row.team, row.archive) == ("bad", "bad.tar.gz")
    good, crash = bench.metrics("good"), bench.metrics("crash")
    assert (good["aggregates"]["dsc_mean"], good["efficiency"]["cases_ok"]) == (1, 3)
    assert crash["aggregates"]["dsc_mean"] == 0
    assert crash["efficiency"] == {"cases": 3, "cases_ok": 0}
    assert list(crash["failed"]) == case_names(3)
    told_of = re.findall(r"^\[\d/6.*?\] (\w+) ", stdout, re.MULTILINE)
    assert told_of == ["crash"] * 3 + ["good"] * 3
    assert stdout.count(" the container ended with exit code 3 after ") >= 3
    for name, kind in {
        **{f"{name}.csv": f"{name}-row" for name in ("ledger", "refused")},
        **{f"good/{name}.json": name for name in ("metrics", "measurement")},
        "good/efficiency.csv": "efficiency-row",
        "crash/metrics.json": "metrics",
        "good/traces/validation_001.csv": "trace-row",
    }.items():
        assert file_problems(bench.results / name, kind) == []
    assert bench.engine.left() == []


def test_how_many_other_teams_are_refused(bench, measure):
    for team in "bcd":
        (bench.sent / f"{team}.tar.gz").write_bytes(b"")

    assert measure()[2].endswith(" (and 2 other teams)\n")


def test_an_image_is_tried_on_one_case(bench, flare):
    """Nothing is kept of it."""
    image = bench.images / "validation_001_0000.nii.gz"
    good = bench.archive("good", PREDICT)
    crash = bench.archive("crash", SCRIPTS["crash"])

    status, stdout, _ = flare("check", good, "--run", image, "--gpu", "none")
    assert status == 0
    assert "validation_001: ok, " in stdout

    status, stdout, stderr = flare("check", crash, "--run", image, "--gpu", "none")
    assert (status, stderr) == (1, "")
    assert "The container says:\n  no model\n" in stdout
    assert "crash, validation_001: failed: the container ended with exit" in stdout
    assert bench.engine.left() == []


def test_going_on_is_told_and_needs_a_reason(bench, measure):
    """What goes on with what, test_measuring_by_script.py has."""
    bench.archive("good", PREDICT)
    words = ("--output", bench.results / "good")
    assert measure(*words)[0] == 0

    status, stdout, _ = measure(*words)
    assert (status, "[1/" in stdout) == (0, False)
    assert "3 of 3 cases are done\n" in stdout
    assert "good: 3 ok" in stdout

    for more, problem in (
        (["--rerun", "validation_002"], "--rerun: no reason was given. Say why"),
        (["--rerun", "x", "--reason", "y"], "x: there is no such case to run again, "),
    ):
        status, _, stderr = measure(*words, *more)
        assert (status, stderr.startswith(problem)) == (1, True)


def test_cold_caches_are_refused_side_by_side(bench, measure):
    bench.archive("good", PREDICT)

    status, _, stderr = measure("--lanes", "2", "--caches", "cold")

    assert (status, told(stderr)[1]) == (1, "")
    assert stderr.startswith("--caches cold: lanes of a computer share its caches")


@pytest.fixture
def pages(monkeypatch, bench):
    written = []

    def write(file, text):
        left = [name for name in bench.engine.left() if name.startswith("containers")]
        written.append((text, left))
        write_whole(file, text)

    monkeypatch.setattr("flare.cli.commands.measure.write_whole", write)
    return written


@pytest.mark.slow
def test_a_page_shows_how_measuring_goes_on(bench, measure, pages):
    """It is never written while there is a container.

    But at the start, after each case and each team, and in the end.
    """
    bench.archive("good", PREDICT)
    bench.archive("crash", SCRIPTS["crash"])
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    file = bench.folder / "live.html"

    status, stdout, _ = measure("--page", file)

    assert status == 1
    assert "live.html shows how it goes on: open it in a browser\n" in stdout
    assert [left for _, left in pages] == [[]] * 10
    texts = [" ".join(Page(html).text.split()) for html, _ in pages]
    done = [re.search(r"(\d) of 6 cases are measured", text)[1] for text in texts]
    assert done == list("0123345666")
    assert ['http-equiv="refresh"' in html for html, _ in pages] == [*[True] * 9, False]
    assert file.read_text(encoding="utf-8") == pages[-1][0]
    assert "archive refused" in texts[-1]  # what else it has, tests of reports tell


def test_whoever_interrupts_reads_what_is_kept(bench, measure, monkeypatch):
    """In the second case. What its page says, tests/cli/test_measuring_page.py has."""
    runs = iter((team_module.run_case, None))

    def run_case(*arguments):
        play = next(runs)
        if not play:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(team_module, "run_case", run_case)
    bench.archive("good", PREDICT)

    status, _, stderr = measure()

    assert status == 130
    assert stderr.startswith("Measuring was interrupted. 1 of 3 cases are measured")


def test_without_jinja2_nothing_is_measured(bench, measure, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    bench.archive("good", PREDICT)

    status, _, stderr = measure("--page", "live.html")

    assert (status, told(stderr)[1]) == (1, "live.html")
    assert "jinja2 is not installed" in stderr
    assert not bench.results.exists()
