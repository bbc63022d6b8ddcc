"""``flare report`` with pages of cases, as it is typed."""

import pytest

from flare.cli.main import main
from flare.common.text import safe
from tests.builders import organ_boxes
from tests.builders.case_pages import evaluated
from tests.builders.results import write_table


@pytest.fixture
def made(tmp_path):
    """Two cases that were evaluated."""
    boxes = organ_boxes()
    return evaluated(
        tmp_path, {"a": (boxes, organ_boxes(shift=1)), "b": (boxes, boxes)}
    )


def test_pages_of_cases_are_counted_as_they_are_drawn(made, capfd):
    words = ["--ground-truth", made.references, "--predictions", made.predictions]
    words += ["--output", made.pages, "--audience", "organiser"]

    assert main(["report", str(made.metrics), *map(str, words)]) == 0

    index = made.pages / "index.html"
    assert capfd.readouterr() == (
        f"[1/2] a drawn\n[2/2] b drawn\nWrote {safe(index)}: open it in a browser\n",
        "",
    )
    assert index.exists()
    assert (made.pages / "cases" / "index.html").exists()


def test_as_many_as_are_asked_for(made):
    words = ["--ground-truth", made.references, "--predictions", made.predictions]
    words += ["--output", made.pages, "--audience", "organiser", "--worst", 1]

    main(["report", str(made.metrics), *map(str, words)])

    assert not (made.pages / "cases" / "b.html").exists()


BOTH = ("--ground-truth", "x", "--predictions", "x")

ORGANISER = ("--audience", "organiser")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            (*BOTH, "--output", "out"),
            "argument --ground-truth: only with --audience organiser",
            id="participants",
        ),
        pytest.param(
            (*BOTH, "--output", "out", "--audience", "participant"),
            "argument --ground-truth: only with --audience organiser",
            id="participants, as it is said",
        ),
        pytest.param(
            (*BOTH, "--output", "out.html", *ORGANISER),
            "argument --ground-truth: only where --output is a folder",
            id="one page",
        ),
        pytest.param(
            (*BOTH, "--output", "out.HTM", *ORGANISER),
            "argument --ground-truth: only where --output is a folder",
            id="one page with another name",
        ),
        pytest.param(
            ("--ground-truth", "x", "--output", "out", *ORGANISER),
            "argument --ground-truth: only together with --predictions",
            id="references alone",
        ),
        pytest.param(
            ("--predictions", "x", "--output", "out", *ORGANISER),
            "argument --predictions: only together with --ground-truth",
            id="predictions alone",
        ),
        pytest.param(
            ("--images", "x", "--output", "out", *ORGANISER),
            "argument --images: only together with --ground-truth",
            id="images alone",
        ),
        pytest.param(
            ("--worst", "3", "--output", "out", *ORGANISER),
            "argument --worst: only together with --ground-truth",
            id="a number alone",
        ),
        pytest.param(
            (*BOTH, "--worst", "-1", "--output", "out", *ORGANISER),
            "argument --worst: '-1' is not a whole number",
            id="a number below 0",
        ),
    ],
)
def test_what_means_nothing_is_a_usage_error(tmp_path, capfd, words, message):
    metrics = str(tmp_path / "metrics.json")

    assert main(["report", metrics, *words]) == 2

    assert capfd.readouterr().err == (
        f"flare report: {message}; see flare report --help\n"
    )


def test_a_ranking_has_no_pages_of_cases(tmp_path, capfd):
    source = write_table(tmp_path / "table.csv", [("a", "1", "dsc", 0.9)])

    assert main(["report", str(source), *BOTH, "--output", "out", *ORGANISER]) == 2

    assert capfd.readouterr().err == (
        "flare report: argument --ground-truth: only for one evaluation;"
        " see flare report --help\n"
    )
