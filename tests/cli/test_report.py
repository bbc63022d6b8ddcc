"""``flare report``, as it is typed."""

import sys

import pytest

from flare.cli.main import main
from flare.common.text import safe
from tests.builders import run_flare
from tests.builders.pages import metrics_content, write_json
from tests.builders.results import write_table


@pytest.fixture
def metrics(tmp_path):
    """A small metrics.json."""
    return write_json(tmp_path / "metrics.json", metrics_content({"liver": [0.9, 0.8]}))


def test_participants_are_who_a_page_is_for_if_nothing_is_said(
    metrics, tmp_path, capfd
):
    for name, words in (("a", ()), ("b", ("--audience", "participant"))):
        page = tmp_path / f"{name}.html"
        assert main(["report", str(metrics), "--output", str(page), *words]) == 0
        assert capfd.readouterr() == (f"Wrote {safe(page)}: open it in a browser\n", "")

    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "data-v" not in (tmp_path / "a.html").read_text()


def test_organisers_get_what_only_they_may_see(metrics, tmp_path):
    page = tmp_path / "page.html"

    main(["report", str(metrics), "--output", str(page), "--audience", "organiser"])

    assert 'data-v="0.9"' in page.read_text()


def test_a_name_that_is_no_page_is_a_usage_error(metrics, tmp_path, capfd):
    assert main(["report", str(metrics), "--output", "page.pdf"]) == 2

    assert capfd.readouterr().err == (
        "flare report: argument --output: 'page.pdf' is neither a page, such as"
        " report.html, nor a folder; see flare report --help\n"
    )


@pytest.mark.parametrize(
    ("is_checkout", "remedy"),
    [
        (True, "Install it: .venv/bin/pip install '.[report]'."),
        (False, "Install it: pip install Jinja2."),
    ],
)
def test_without_jinja2_it_says_what_to_install(
    metrics, monkeypatch, capfd, is_checkout, remedy
):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("flare.common.installation.is_checkout", lambda: is_checkout)

    assert main(["report", str(metrics), "--output", "page.html"]) == 1

    assert capfd.readouterr().err == (
        f"page.html: it cannot be written, as Jinja2 is not installed. {remedy} [H02]\n"
    )


def test_results_of_all_teams_are_ranked_by_the_options_of_rank(tmp_path, capfd):
    rows = [("a", "1", "dsc", 0.9), ("b", "1", "dsc", 0.8)]
    source = write_table(tmp_path / "table.csv", rows)
    page = tmp_path / "page.html"

    words = ["--metrics", "dsc", "--bootstrap", "9", "--seed", "5"]
    status = main(["report", str(source), "--output", str(page), *words])

    assert (status, capfd.readouterr().err) == (0, "")
    assert "9 times (seed 5)" in page.read_text(encoding="utf-8")


def test_several_evaluations_are_compared_with_the_first(tmp_path, capfd):
    sources = [
        write_json(tmp_path / name / "metrics.json", metrics_content({"liver": scores}))
        for name, scores in (("old", [0.9, 0.8]), ("new", [0.95, 0.7]))
    ]

    words = [*map(str, sources), "--output", str(tmp_path / "pages")]
    assert main(["report", *words]) == 0

    page = tmp_path / "pages" / "index.html"
    assert capfd.readouterr() == (f"Wrote {safe(page)}: open it in a browser\n", "")
    assert "new is compared with old, case by case" in page.read_text()


def test_a_folder_among_evaluations_is_refused(metrics, tmp_path, capfd):
    words = [str(metrics), str(tmp_path), "--output", str(tmp_path / "page.html")]

    assert main(["report", *words]) == 1

    assert capfd.readouterr().err == (
        f"{safe(tmp_path)}: it cannot be read (is a directory). Give the metrics.json"
        " that an evaluation has written. [G05]\n"
    )


def test_options_of_a_ranking_are_refused_where_nothing_is_ranked(metrics, capfd):
    words = ["--output", "page.html", "--seed", "5"]

    assert main(["report", str(metrics), *words]) == 2

    assert capfd.readouterr().err == (
        "flare report: argument --seed: only for the results of all teams;"
        " see flare report --help\n"
    )


def test_figures_are_refused_to_participants(metrics, tmp_path, capfd):
    words = ["--output", "page.html", "--figures", str(tmp_path / "figures")]

    assert main(["report", str(metrics), *words]) == 2

    assert capfd.readouterr().err == (
        "flare report: argument --figures: only with --audience organiser;"
        " see flare report --help\n"
    )
    assert not (tmp_path / "figures").exists()


@pytest.mark.slow
@pytest.mark.tools(package="matplotlib")
def test_figures_are_written_in_two_widths_and_forms(metrics, tmp_path):
    """Of DSC and NSD: how organs are spread, and all cases; in a process of its own."""
    run = run_flare(
        *("report", metrics, "--output", tmp_path / "page.html"),
        *("--audience", "organiser", "--figures", tmp_path / "figures"),
    )

    assert (run.returncode, run.stderr) == (0, "")
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    drawn = {name for name in names if name.endswith((".svg", ".pdf"))}
    assert len(drawn) == 2 * 2 * 2 * 2
    assert len([name for name in names if name.endswith(".csv")]) == 4
    assert {"methods.txt", "organs.tex", "captions.txt"} < names


@pytest.mark.parametrize("option", ["--figures", "--groups"])
def test_what_compares_evaluations_has_neither_figures_nor_groups(
    metrics, capfd, option
):
    words = ["--output", "page.html", option, "x"]

    assert main(["report", str(metrics), str(metrics), *words]) == 2

    assert capfd.readouterr().err == (
        f"flare report: argument {option}: only for one evaluation or the results of"
        " all teams; see flare report --help\n"
    )


@pytest.mark.parametrize(
    ("is_checkout", "remedy"),
    [
        (True, "Install it: .venv/bin/pip install '.[plots]'."),
        (False, "Install it: pip install matplotlib."),
    ],
)
def test_figures_need_matplotlib_before_anything_is_written(
    metrics, tmp_path, monkeypatch, capfd, is_checkout, remedy
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.setattr("flare.common.installation.is_checkout", lambda: is_checkout)
    page = tmp_path / "page.html"

    words = ["--figures", "figures", "--audience", "organiser"]
    assert main(["report", str(metrics), "--output", str(page), *words]) == 1

    assert capfd.readouterr().err == (
        f"figures: matplotlib, which draws figures, is not installed. {remedy} [H02]\n"
    )
    assert not page.exists()
