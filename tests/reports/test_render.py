"""Renderers: a table says the same in each output, and no text is more than text."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from flare.challenge.metrics import METRICS, metric_named
from flare.common.text import printable
from flare.reports.charts import rank_ticks, spread_chart, value_axis, zoomed_axis
from flare.reports.model import (
    Blobs,
    Cell,
    Chart,
    Column,
    Dots,
    Fields,
    Heading,
    Lines,
    Page,
    Pair,
    Says,
    Section,
    Steps,
    Tile,
    Words,
    metric_shade,
    number_cell,
    table_of,
)
from flare.reports.render.html import page_html
from flare.reports.render.svg import chart_svg
from flare.reports.render.text import latex, latex_file, markdown, terminal
from tests.builders.measured import write_measured
from tests.builders.pages import HOSTILE, metrics_content, write_json, write_report
from tests.builders.pages import Page as Read

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


def full_page(text):
    """A page of everything that pages are made of, with a text wherever one can be."""
    columns = (
        Column(text, [Cell(text, href=text)], is_text=True),
        Column("the second", [Cell(text, exact="0.5")]),
        Column("the third column", [number_cell(None)]),
    )
    own = table_of(text, columns)
    marks = [
        Dots([0.5], (0.1, 0.2, 0.3)),
        Fields(["s0", "", "absent"]),
        Steps([(0, 0.5), (1, 0.2)]),
        Blobs([(0.5, 0.5, text)], (0.1, 0.9)),
        Says(text),
    ]
    chart = Chart(
        title=text,
        note=text,
        summary=text,
        labels=(text,) * len(marks),
        rows=marks,
        axis=[(0.5, text)],
        zero=0.5,
        key=(("s0", text),),
        table=own,
        tips=([text], [[0.5], [None]], 3),
    )
    parts = [own, chart, Pair([chart]), Words(text, "note", text, text), Lines([text])]
    parts += [Heading(text), replace(own, key=(("s1", text),))]
    return Page(
        title=text,
        kicker=text,
        audience_note=text,
        sections=[Section("id", text, text, parts), Section("no", text, text, [])],
        tiles=[Tile(name=text, value=text, exact="0.5", note=text, is_alarm=True)],
        lead=[Words(text, "banner")],
        refresh_s=10,
    )


def outline(page):
    """The elements of a page, and the names of their attributes but titles.

    Those around names that are read from right to left are left out.
    """
    found = (pair for pair in page.elements if pair[0] != "bdi")
    return [(tag, sorted({*own} - {"title"})) for tag, own in found]


def without_isolates(text):
    return text.translate({0x2068: None, 0x2069: None})


@pytest.mark.newest
@given(TEXTS)
def test_no_text_becomes_an_element_or_an_attribute(text):
    read, usual = Read(page_html(full_page(text))), Read(page_html(full_page("x")))
    leads = {own["href"] for tag, own in usual.elements if tag == "a"}
    assert ("#id" in leads, "#no" in leads) == (True, False)  # that has no part

    assert outline(read) == outline(usual)
    assert without_isolates(read.text).count(printable(text)) >= 18


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_hostile_text_becomes_an_element_or_an_attribute(text):
    """None that is not to be printed is there, and long ones are shorter in rows."""
    read = Read(page_html(full_page(text)))

    assert outline(read) == outline(Read(page_html(full_page("x"))))
    shown = without_isolates(read.text)
    assert not [c for c in shown if not c.isprintable() and c != "\n"]
    names = [cell for rows in read.tables.values() for cell, *_ in rows]
    assert max(map(len, names)) <= 80


CELLS = st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=4)


@given(CELLS, st.booleans())
def test_all_renderers_of_a_table_say_the_same(rows, is_last_apart):
    """What stands apart is behind a line in LaTeX and on the terminal."""
    quiet = (len(rows) - 1,) if is_last_apart else ()
    columns = map(Column, ("first", "second"), zip(*rows, strict=True), (True, False))
    own = table_of("caption", columns, quiet=quiet)
    rows = [list(map(printable, row)) for row in rows]
    shown = rows[:-1] if is_last_apart else rows

    page = Page(title="", kicker="", audience_note="", sections=[
        Section("a", "", "", [own])])  # fmt: skip
    (found,) = Read(page_html(page)).tables.values()
    assert [list(map(str, row)) for row in found] == [["first", "second"], *rows]
    heads, line, *lines = map(without_isolates, markdown(own))
    assert (heads, line) == ("| first | second |", "|---|---|")
    escaped = re.compile(r"\\(.)", re.DOTALL)
    assert [escaped.sub(r"\1", text) for text in lines] == [
        f"| {first} | {second} |" for first, second in rows
    ]
    tex = latex(own, "label")
    assert r"\begin{tabular}{lr}" in tex
    assert tex.count(r" \\") >= len(rows) + 1
    assert tex.count(r"\midrule") == 1 + is_last_apart
    told = terminal(own)
    assert len(told) == 1 + len(rows) + is_last_apart
    for text, (first, second) in zip(told[1:], shown, strict=False):
        assert first.rstrip() in text
        assert second.rstrip() in text


HEBREW = "\u05e6\u05d5\u05d5\u05ea \u05d0\u05d1"


def test_names_from_right_to_left_turn_no_number_around():
    """Of two words only the name: the numbers around it stay outside."""
    text = f"1 {HEBREW} 0.9 (4 cases)"
    own = table_of("", [Column("a", [text], is_text=True)])

    html = page_html(full_page(text))
    assert f">1 <bdi>{HEBREW}</bdi> 0.9 (4 cases)</a>" in html
    assert f">1 \u2068{HEBREW}\u2069 0.9 (4 cases)</text>" in html
    assert f"<title>1 {HEBREW} 0.9 (4 cases)</title>" in html
    assert "<bdi>" not in page_html(full_page("team 1"))
    assert markdown(own)[2] == f"| 1 \u2068{HEBREW}\u2069 0.9 (4 cases) |"
    file = latex_file([latex(own, "x")])
    assert f"1 \\mbox{{{HEBREW}}} 0.9 (4 cases)" in file
    assert "{Noto Naskh Arabic}" in file.splitlines()[1]


def test_columns_on_a_terminal_line_up_whatever_names_are_made_of():
    """A Chinese letter takes two columns, and a combining mark none."""
    teams = ("\u533b\u7597\u961f", "e\u0301te\u0301", "team 4")
    columns = (Column("team", teams, is_text=True), Column("score", (0.9, 0.8, 0.7)))
    own = table_of("", columns, quiet=[2])

    assert terminal(own) == [
        "team    score",
        "\u533b\u7597\u961f  0.9",
        "e\u0301te\u0301     0.8",
        "-" * 13,
        "team 4  0.7",
    ]


def test_texts_are_escaped_for_latex_and_markdown():
    own = table_of("50 %", [Column("a_b", ["<b>&$x^2~|\\"], is_text=True)])

    assert r"\caption{50 \%}" in latex(own, "x")
    assert (
        r"\textless{}b\textgreater{}\&\$x\textasciicircum{}2\textasciitilde{}"
        r"\textbar{}\textbackslash{}" in latex(own, "x")
    )
    assert markdown(own)[2] == r"| \<b\>&\$x^2\~\|\\ |"


def test_numbers_and_figures_can_be_taken_away_but_not_on_paper():
    html = page_html(full_page("x"))

    script, paper = html.rpartition("<script>")[2], html.partition("@media print{")[2]
    for control in ("Save as CSV", "Save figure", "Filter teams"):
        assert control in script
        assert control not in html.replace(script, "")
    assert ",.take,.filter," in paper.partition("display:none!important")[0]


# --- Values that are told where a figure is pointed at ----------------------------


def tips_of(html):
    found = re.findall(r'<script type="application/json">(.*?)</script>', html)
    return [json.loads(text) for text in found]


def test_a_missing_value_keeps_its_place(tmp_path):
    """The second of three runs has failed: its case is named, and has no value."""
    cases = ("a", "b", "c")
    team = write_measured(tmp_path / "team", cases, failed={"b": ("failed", "")})

    page = write_report([team], tmp_path / "page.html", is_organiser=False)

    times, memory, _ = tips_of(page.read_text(encoding="utf-8"))
    assert times == {"names": ["a", "b", "c"], "rows": ["10.00 - 12.00"]}
    assert memory["rows"] == ["1000 - 1200"]


@pytest.mark.parametrize("is_organiser", [True, False])
def test_tips_have_no_more_digits_than_the_tables(tmp_path, is_organiser):
    content = metrics_content({"liver": [0.123456, 0.98765], "spleen": [0.5, 1.0]})
    source = write_json(tmp_path / "metrics.json", content)

    page = write_report([source], tmp_path / "page.html", is_organiser=is_organiser)

    dsc, _ = tips_of(page.read_text(encoding="utf-8"))
    assert dsc["rows"][1:] == ["0.123 0.988", "0.500 1.000"]


# --- Axes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [(10.0, 20.9), (9.5, 9.6), (1.0, 1000.0), (3.0, 2e6)], ids=str
)
def test_a_logarithmic_axis_has_several_ticks(values):
    """At the places of their values: equal factors are equally long."""
    axis = value_axis(metric_named("runtime_s"), values)

    assert 3 <= len(axis.ticks) <= 10
    for place, text in axis.ticks:
        assert place == pytest.approx(axis.scale(float(text)), abs=1e-3)


def test_a_logarithmic_axis_holds_any_time():
    """Of these, powers of ten are 0, or beyond all floats."""
    for values in ([1e-320, 10.0], [10.0, 1.7e308]):
        axis = value_axis(metric_named("runtime_s"), values)

        assert 0 < axis.scale(values[0]) < axis.scale(values[1]) < 1


def test_axes_and_shades_are_those_of_the_metric():
    """Differences lie about 0; of distances, small ones are good."""
    hd95, volume = METRICS["hd95"], METRICS["volume_difference"]

    assert value_axis(volume, [-0.1, 0.3]).scale(0.0) == 0.5
    shades = [metric_shade(hd95, value) for value in (1.9, 2.0, 101.0)]
    assert shades == ["s0", "s1", "s6"]


@pytest.mark.parametrize(
    ("low", "start"), [([0.1] * 24, 0.5), ([0.1] * 26, 0.0), ([], 0.5)]
)
def test_an_axis_of_scores_begins_at_a_half_if_most_are_beyond(low, start):
    """Of a hundred, a quarter may be below; those stand at its edge."""
    scores = low + [0.9] * (100 - len(low))

    axis = value_axis(METRICS["dsc"], scores)

    assert axis.scale(start) == 0
    assert axis.place(0.1) == pytest.approx(0 if start else 0.1)
    assert axis.note == ("The axis begins at 0.5." if start else "")


def memory_axis(values):
    return value_axis(metric_named("max_gpu_memory_mb"), values)


@pytest.mark.parametrize(
    ("make_axis", "values", "ticks"),
    [
        # The upper quartile is 85: 300 is beyond three of it.
        (memory_axis, [*range(0, 101, 10), 10_000], ["0", "100", "200", "300"]),
        (memory_axis, [100, 120, 140], ["0", "50", "100", "150"]),
        (zoomed_axis, [0.8364], ["0.82", "0.84"]),
        (zoomed_axis, [0.62, 0.96], ["0.6", "0.7", "0.8", "0.9", "1"]),
        (zoomed_axis, [0.0, 1.0], ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_an_axis_ends_at_a_round_mark_beyond_most_values(make_axis, values, ticks):
    """One large value does not squeeze all others: it stands at the end."""
    axis = make_axis(values)

    assert [text for _, text in axis.ticks] == ticks
    usual = [value for value in values if value < 10_000]
    assert all(0 <= axis.scale(value) <= 1 for value in usual)
    assert axis.place(10_000) == 1


@pytest.mark.parametrize(
    ("metric", "values", "edges"),
    [
        ("dsc", [0.9] * 9 + [0.123], ("\u25c2 0.12", "")),
        ("dsc", [0.9] * 9 + [0.0, 0.12, 0.41], ("\u25c2 3: 0.00 to 0.41", "")),
        ("dsc", [0.9] * 9 + [0.2, 0.2], ("\u25c2 2: 0.20", "")),
        ("dsc", [0.5, 1.0], ("", "")),
        # Of 9 of 2 mm, three times the upper quartile is 6.
        ("hd95", [2.0] * 9 + [170.4], ("", "170 \u25b8")),
        # Most are 0.01 away from 0: the axis ends at 0.05 on both sides.
        (
            "volume_difference",
            [0.01] * 19 + [-0.5, -0.4, 0.3],
            ("\u25c2 2: to -0.50", "0.30 \u25b8"),
        ),
    ],
)
def test_what_is_beyond_an_axis_stands_at_its_edge_with_its_number(
    metric, values, edges
):
    axis = value_axis(METRICS[metric], values)
    chart = spread_chart(axis, ["liver"], [values], has_boxes=True, title="DSC")

    (dots,) = chart.rows
    assert dots.edges == edges
    assert 0 <= min(dots.places) <= max(dots.places) <= 1
    assert ("stands at its edge" in chart.note) == any(edges)
    drawn = chart_svg(chart)
    assert all(str(escape(text)) in drawn for text in edges)
    assert drawn.count('class="edge"') == sum(map(bool, edges))


def test_the_number_of_a_rank_is_below_the_middle_of_its_column():
    """Two columns are a half each; of 25, the fifth goes from 0.16 to 0.2."""
    assert rank_ticks(2) == [(0.25, "1"), (0.75, "2")]
    assert [text for _, text in rank_ticks(25)] == ["1", "5", "10", "15", "20", "25"]
    assert rank_ticks(25)[1][0] == pytest.approx(0.18)
