"""DSC against running time and memory: the front, by hand, and who may see it."""

import pytest

from flare.reports.model import Chart, Words
from flare.reports.render.svg import chart_svg
from tests.builders.pages import content_of, pages_of_ranking, parts_of
from tests.builders.results import write_table

VALUES = {
    "best": (0.9, 20.0, 3000.0),
    "beaten": (0.9, 30.0, 2000.0),
    "fast": (0.8, 5.0, 4000.0),
    "slow": (0.7, 6.0, 1000.0),
    "gap": (0.95, None, 5000.0),
}
"""DSC, running time and GPU memory; gap has no time on its second case."""

METRICS = ("dsc", "runtime_s", "max_gpu_memory_mb")


def page_of(tmp_path, *, names=METRICS, values=VALUES, **settings):
    rows = []
    for team, numbers in values.items():
        for name, value in zip(METRICS, numbers, strict=True):
            second = "" if value is None else value
            rows.append((team, "x", name, 1.0 if value is None else value))
            rows.append((team, "y", name, second))
    source = write_table(tmp_path / "values.csv", rows)
    settings = {"is_organiser": True, "metrics": names} | settings
    return pages_of_ranking(source, has_teams=False, **settings)["index.html"]


def test_the_front_is_what_no_team_beats(tmp_path):
    """Whoever leaves a time out looks faster than it is, and is not in the front."""
    page = page_of(tmp_path)

    fronts = {}
    for chart in parts_of(page, "cost"):
        rows = content_of(page, f"{chart.title}: means over 2 cases")
        fronts[chart.title] = {row["team"] for row in rows if row["front"] == "yes"}
        assert len(rows) == 5
    assert fronts == {
        "DSC against running time": {"best", "fast"},
        "DSC against GPU memory": {"gap", "beaten", "slow"},
    }
    time, _ = parts_of(page, "cost")
    assert time.note.startswith("On a logarithmic axis. The front, with ranks: ")
    assert time.note.index(" fast") < time.note.index(" best")
    drawing = str(chart_svg(time))
    assert (drawing.count("<circle"), drawing.count('class="blob"')) == (5, 2)
    assert drawing.count('class="roc"') == 1
    assert drawing.rindex("<circle") < drawing.index('class="number')
    assert "<title>best: DSC 0.900, Running time (s) 20.0</title>" in drawing


def test_what_the_ranking_has_no_mean_of_is_left_out_in_one_line(tmp_path):
    (line,) = [
        part.text
        for part in parts_of(page_of(tmp_path, names=("dsc",)), "cost")
        if isinstance(part, Words)
    ]
    assert line == (
        "DSC against running time and GPU memory: left out, as this ranking has no mean"
        " of running time and GPU memory."
    )
    chart, words = parts_of(page_of(tmp_path, names=METRICS[:2]), "cost")
    assert chart.title == "DSC against running time"
    assert words.text.startswith("DSC against GPU memory: left out")
    assert not parts_of(page_of(tmp_path, names=METRICS[1:]), "cost")


def test_others_see_costs_where_they_see_means(tmp_path):
    assert not parts_of(page_of(tmp_path, is_organiser=False), "cost")

    charts = parts_of(page_of(tmp_path, is_organiser=False, means=True), "cost")
    assert [type(chart) for chart in charts] == [Chart, Chart]


def test_of_many_teams_the_front_alone_has_numbers(tmp_path):
    values = {f"t{n:02}": (0.5 + n / 100, 10.0 + n, 100.0) for n in range(30)}
    values["t00"] = (0.9, 1.0, 200.0)
    time, _ = parts_of(page_of(tmp_path, values=values), "cost")

    drawing = str(chart_svg(time))
    assert (drawing.count("<circle"), drawing.count('class="number')) == (30, 1)


@pytest.mark.parametrize("teams", [5, 30])
def test_a_team_that_finds_nothing_is_no_part_of_the_front(tmp_path, teams):
    """It costs next to nothing; its dot is hollow, with its number, and has no line."""
    values = {f"t{n:02}": (0.5 + n / 100, 10.0 + n, 50.0 + n) for n in range(teams)}
    page = page_of(tmp_path, values=values | {"nothing": (0.0, 1.0, 1.0)})

    for chart in parts_of(page, "cost"):
        (points,) = chart.rows
        (nothing,) = [p for p in points.points if p.words.startswith("nothing:")]
        assert not nothing.is_front
        assert (nothing, True) in points.drawn
        assert f">{nothing.number}</text>" in str(chart_svg(chart))
        dot = str(chart_svg(chart)).partition("<title>nothing:")[0]
        assert dot.rpartition("<circle")[2].endswith('class="frame">')
        assert "nothing" not in chart.note
