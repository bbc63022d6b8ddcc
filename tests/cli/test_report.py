"""``flare report``, as it is typed."""

import sys

import pytest

from flare.cli.main import main
from flare.common.text import safe
from tests.builders.pages import metrics_content, write_json
from tests.builders.results import write_table


@pytest.fixture
def metrics(tmp_path):
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
    page = tmp_path / "c.html"
    main(["report", str(metrics), "--output", str(page), "--audience", "organiser"])
    assert 'data-v="0.9"' in page.read_text()


@pytest.mark.parametrize(
    ("package", "words", "message"),
    [
        ("jinja2", (), "page.html: it cannot be written, as jinja2 is not installed."),
        ("matplotlib", ("--figures", "f", "--audience", "organiser"),
         "f: it cannot be written, as matplotlib is not installed."),
    ],
)  # fmt: skip
def test_without_a_package_it_says_so_before_anything_is_written(
    metrics, tmp_path, monkeypatch, capfd, package, words, message
):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"{package}.figure", raising=False)
    monkeypatch.chdir(tmp_path)

    assert main(["report", str(metrics), "--output", "page.html", *words]) == 1

    said = capfd.readouterr().err
    assert said.startswith(f"{message} Install it: ")
    assert said.endswith("[H02]\n")
    assert not (tmp_path / "page.html").exists()


def test_results_of_all_teams_are_ranked_by_the_options_of_rank(tmp_path, capfd):
    rows = [
        (t, str(n), "dsc", v) for t, v in (("a", 0.9), ("b", 0.8)) for n in range(6)
    ]
    source = write_table(tmp_path / "table.csv", rows)
    page = tmp_path / "page.html"

    words = ["--metrics", "dsc", "--bootstrap", "9", "--seed", "5"]
    status = main(["report", str(source), "--output", str(page), *words])

    assert (status, capfd.readouterr().err) == (0, "")
    assert "9 times (seed 5)" in page.read_text(encoding="utf-8")


def test_a_folder_among_evaluations_is_refused(metrics, tmp_path, capfd):
    words = [str(metrics), str(tmp_path), "--output", str(tmp_path / "page.html")]

    assert main(["report", *words]) == 1

    assert capfd.readouterr().err == (
        f"{safe(tmp_path)}: it cannot be read (is a directory). Give the metrics.json"
        " that an evaluation has written. [G05]\n"
    )


ORGANISER = ("--audience", "organiser")

TWO_CASES = ("--case", "a", "--case", "b")

BOTH = ("--ground-truth", "x", "--predictions", "x")


@pytest.mark.parametrize(
    ("sources", "words", "message"),
    [
        ("m", ("--seed", "5"), "--seed: only for the results of all teams"),
        ("w", ("--gate", "0.5"), "--gate: only for the results of all teams"),
        ("t", (*BOTH, *ORGANISER), "--ground-truth: only for one evaluation; add"
         " --case NAME for a page of one case by all teams"),
        ("mm", ("--figures", "x"), "--figures: only for one evaluation or the results"
         " of all teams"),
        ("mm", ("--groups", "x"), "--groups: only for one evaluation or the results of"
         " all teams"),
        ("m", ("--figures", "x"), "--figures: only with --audience organiser"),
        ("m", ("--page", "means", *ORGANISER), "--page: only with --audience"
         " participant"),
        ("m", BOTH, "--ground-truth: only with --audience organiser"),
        ("m", (*BOTH, "--audience", "participant"), "--ground-truth: only with"
         " --audience organiser"),
        ("m", (*BOTH, "--output", "out.html", *ORGANISER), "--ground-truth: only where"
         " --output is a folder"),
        ("m", (*BOTH, "--output", "out.HTM", *ORGANISER), "--ground-truth: only where"
         " --output is a folder"),
        ("m", ("--ground-truth", "x", *ORGANISER), "--ground-truth: only together with"
         " --predictions"),
        ("m", ("--predictions", "x", *ORGANISER), "--predictions: only together with"
         " --ground-truth"),
        ("m", ("--images", "x", *ORGANISER), "--images: only together with"
         " --ground-truth"),
        ("m", ("--worst", "3", *ORGANISER), "--worst: only together with"
         " --ground-truth"),
        ("m", ("--case", "a", *BOTH, *ORGANISER), "--case: only for the results of all"
         " teams"),
        ("t", ("--case", "a", *ORGANISER), "--case: only together with --ground-truth"),
        ("t", ("--case", "a", *BOTH), "--case: only with --audience organiser"),
        ("t", ("--case", "a", "--worst", "3", *BOTH, *ORGANISER), "--worst: only for"
         " one evaluation"),
        ("t", (*TWO_CASES, *BOTH, *ORGANISER, "--output", "x.html"),
         "--case: only once where --output is a page"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_a_usage_error(
    metrics, tmp_path, capfd, sources, words, message
):
    table = write_table(tmp_path / "table.csv", [("a", "1", "dsc", 0.9)])
    (tmp_path / "written").mkdir()
    (tmp_path / "written" / "ranking.json").write_text("{}")
    known = {"m": metrics, "t": table, "w": tmp_path / "written"}
    files = [str(known[letter]) for letter in sources]

    assert main(["report", *files, "--output", str(tmp_path / "out"), *words]) == 2

    expected = f"flare report: argument {message}; see flare report --help\n"
    assert capfd.readouterr().err == expected
    assert not (tmp_path / "out").exists()
