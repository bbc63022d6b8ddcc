"""Means by organ: on pages, on the terminal, and who may see them."""

import pytest

from flare.cli.main import main
from flare.reports.render.html import page_html
from tests.builders.measured import write_measured
from tests.builders.pages import content_of, pages_of_ranking
from tests.builders.results import ROWS, write_table

SCORES = {
    "a": {"liver": [0.9, 0.80004], "pancreas": [0.5, 0.6]},
    "b": {"liver": [0.7, 0.7], "pancreas": [0.9, 0.5]},
    "c": {"liver": [0.9, 0.8], "pancreas": [0.1, 0.2]},
}


@pytest.fixture
def results(tmp_path):
    for number, (team, scores) in enumerate(SCORES.items()):
        folder = tmp_path / "results" / team
        write_measured(folder, ["x", "y"], scores=scores, off=5.0 * number)
    return tmp_path / "results"


def test_the_best_mean_of_each_organ_is_bold(results):
    """The liver's 0.85002 and 0.85 look equal, and both are bold."""
    page = pages_of_ranking(results, is_organiser=True)["index.html"]

    rows = {row["team"]: row for row in content_of(page, "DSC by organ")}
    assert {team: [row["liver"], row["pancreas"]] for team, row in rows.items()} == {
        "a": ["0.850", "0.550"],
        "b": ["0.700", "0.700"],
        "c": ["0.850", "0.150"],
    }
    bold = [(t, o) for t, row in rows.items() for o in row if "best" in row[o].css]
    assert sorted(bold) == [("a", "liver"), ("b", "pancreas"), ("c", "liver")]
    assert [c.css for c in rows["c"].values()] == ["", "s2 best", "s5"]
    nsd = {row["team"]: row["liver"] for row in content_of(page, "NSD by organ")}
    assert nsd == {"a": "0.425", "b": "0.350", "c": "0.425"}


def test_means_by_organ_are_for_everybody_only_where_that_is_chosen(results):
    pages = pages_of_ranking(results, is_organiser=False)
    chosen = pages_of_ranking(results, is_organiser=False, means=True)

    for page in pages.values():
        assert "organs" not in [section.id for section in page.shown]
    own = content_of(chosen["teams/a.html"], "Own means by organ, over 2 cases")
    assert [list(row.values()) for row in own] == [
        ["liver", "0.850", "0.425"],
        ["pancreas", "0.550", "0.275"],
    ]
    for page in chosen.values():
        assert "0.85002" not in page_html(page)
    whole = pages_of_ranking(results, is_organiser=True)["teams/a.html"]
    assert content_of(whole, "Own means by organ") == own


def test_the_terminal_has_the_means_by_organ_with_a_star_at_the_best(results, capsys):
    command = ["--output", str(results.parent / "r"), "--bootstrap", "0", "--by-organ"]
    assert main(["rank", str(results), *command]) == 0

    lines = capsys.readouterr().out.splitlines()
    best = "liver a, liver c, pancreas b"
    start = lines.index(f"DSC by organ, means over 2 cases; *: the best ({best}):")
    assert sorted(map(str.split, lines[start + 1 : start + 5])) == [
        ["a", "0.850*", "0.550"],
        ["b", "0.700", "0.700*"],
        ["c", "0.850*", "0.150"],
        ["team", "liver", "pancreas"],
    ]
    table = write_table(results.parent / "table.csv", ROWS)
    assert main(["rank", str(table), *command, "--metrics", "dsc"]) == 0
    assert capsys.readouterr().out.endswith("By organ: the results have no organs.\n")
