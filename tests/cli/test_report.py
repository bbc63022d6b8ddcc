"""``flare report``, as it is typed."""

import sys

import pytest

from flare.cli.main import main
from tests.builders.pages import metrics_content, write_json


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
        assert capfd.readouterr() == (f"Wrote {page}: open it in a browser\n", "")

    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert "data-v" not in (tmp_path / "a.html").read_text()


def test_organisers_get_what_only_they_may_see(metrics, tmp_path):
    page = tmp_path / "page.html"

    main(["report", str(metrics), "--output", str(page), "--audience", "organiser"])

    assert 'data-v="0.9"' in page.read_text()


def test_a_name_that_is_no_page_is_a_usage_error(metrics, tmp_path, capfd):
    assert main(["report", str(metrics), "--output", "page.pdf"]) == 2

    assert capfd.readouterr().err == (
        "flare report: argument --output: 'page.pdf' does not end in .html;"
        " see flare report --help\n"
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
    monkeypatch.setattr("flare.reports.pages.page.is_checkout", lambda: is_checkout)

    assert main(["report", str(metrics), "--output", "page.html"]) == 1

    assert capfd.readouterr().err == (
        f"page.html: it cannot be written, as Jinja2 is not installed. {remedy} [H02]\n"
    )
