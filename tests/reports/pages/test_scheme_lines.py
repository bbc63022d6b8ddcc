"""Lines of teams through other schemes, and steps of their running times."""

import json
import re

from flare.ranking.robustness.schemes import Scheme
from flare.reports.pages.case_times import quickest_first, times_figure
from flare.reports.pages.ranking import MetricValues
from flare.reports.pages.report import write_report
from flare.reports.pages.scheme_lines import schemes_figure
from flare.reports.ranking.ranking import rank
from tests.builders.pages import Page
from tests.builders.results import write_table


def scheme(name, before, ranks, left_out=None):
    return Scheme(name=name, before=before, ranks=ranks, tau=0.5, left_out=left_out)


def lines_of(figure):
    """The heights of each team's line, by its title."""
    found = re.findall(r'<path d="M([^"]*)"[^>]*><title>(.*?)<', str(figure.drawing))
    return {
        team: [float(point.split()[1]) for point in path.split("L")]
        for path, team in found
    }


def test_a_line_goes_through_the_places_of_a_team():
    """Rows are 28 high and begin at 24; b and c change places, then all tie."""
    before = {"a": 1, "b": 2, "c": 3}
    schemes = [
        scheme("one", before, {"a": 1, "b": 3, "c": 2}),
        scheme("without a", {"b": 1, "c": 2}, {"b": 2, "c": 1}, left_out="a"),
        scheme("two", before, {"a": 1, "b": 1, "c": 1}),
    ]

    figure = schemes_figure(schemes, ("a", "b", "c"))

    first, second, third = 24 + 14, 24 + 42, 24 + 70
    assert lines_of(figure) == {
        "a": [first, first, first],
        "b": [second, third, second],  # of equal ranks, in the order of the ranking
        "c": [third, second, third],
    }
    assert figure.summary == "2 of 3 teams move under 2 schemes"
    rows = [[cell.text for cell in row.cells] for row in figure.table.rows]
    assert rows == [
        ["0 the ranking itself", "1", "2", "3"],
        ["1 one", "1", "3", "2"],
        ["2 two", "1", "1", "1"],
    ]


def test_of_many_teams_the_first_ten_are_drawn_and_those_that_move():
    """Of 16 teams, the 12th and the 16th change places; nobody else moves."""
    teams = tuple(f"t{number:02}" for number in range(1, 17))
    before = {team: n for n, team in enumerate(teams, start=1)}
    after = before | {"t12": 16, "t16": 12}

    figure = schemes_figure([scheme("s", before, after)], teams)

    assert list(lines_of(figure)) == [*teams[:10], "t12", "t16"]
    assert "those that move farthest" in figure.note
    assert len(figure.labels) == 16


def test_without_a_scheme_that_has_all_teams_there_is_no_figure():
    only = scheme("without a", {"b": 1}, {"b": 1}, left_out="a")

    assert schemes_figure([only], ("a", "b")) is None


def test_the_ranks_are_those_of_ranking_json(tmp_path):
    rows = [
        (f"t{n}", str(case), "dsc", (n * 7 + case * 5) % 11 / 11)
        for n in range(4)
        for case in range(6)
    ]
    source = write_table(tmp_path / "table.csv", rows)
    options = {"metrics": ["dsc"], "bootstrap": 0}
    rank(source, **options).write(tmp_path / "ranking")
    told = json.loads((tmp_path / "ranking" / "ranking.json").read_text())

    write_report([source], tmp_path / "page.html", is_organiser=True, **options)

    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    found = {
        row["scheme"].partition(" ")[2]: row
        for row in page.table("The rank of each team under each scheme")
    }
    for known in told["schemes"]:
        if len(known["ranks"]) == 4:
            row = found[known["scheme"]]
            assert {t: int(row[t]) for t in known["ranks"]} == known["ranks"]


def values(*rows):
    return MetricValues(
        metric="runtime_s", title="Running time (s)", values=rows, better={}
    )


def test_cases_are_ordered_by_their_median_time():
    """Medians of 9, 2.5 and none: the case that nobody has run is last."""
    rows = ((8.0, 2.0, None), (9.0, 3.0, None), (30.0, None, None))

    assert quickest_first(rows) == [1, 0, 2]


def test_each_case_is_a_step_as_high_as_its_share_of_the_slowest():
    """10 of 40 s is a quarter of the 24 pixels that a row has above 51."""
    figure = times_figure(values((40.0, 10.0), (None, None)), ("a", "b"), ("x", "y"))

    (path,) = re.findall(r'd="([^"]*)"', str(figure.drawing))
    assert path == "M0 51V45H500V27H1000V51z"
    assert "no result" in str(figure.drawing)
    rows = [[cell.text for cell in row.cells] for row in figure.table.rows]
    assert rows == [["y", "10.0", "no result"], ["x", "40.0", "no result"]]


def test_without_times_and_for_many_teams_there_is_no_such_figure():
    assert times_figure(values((None,)), ("a",), ("x",)) is None
    many = values(*(((1.0,),) * 21))
    assert times_figure(many, tuple(map(str, range(21))), ("x",)) is None
