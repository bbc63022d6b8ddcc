"""Pages in use: by keyboard, by mouse, by a screen reader, and while they change."""

import re

import pytest

from flare.common.files import write_whole
from flare.reports.measuring import measuring_page
from flare.reports.render.html import page_html
from tests.builders.hostile_pages import COMPARISONS, EVALUATIONS, ORGANS
from tests.builders.running import eventful

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("organiser", "DSC of each case and organ", "cell.dataset.v"),
        # With signs, and on a participant's page no more than their text.
        *(
            (kind, "differences of each case", "cell.dataset.v ?? cell.innerText")
            for kind in COMPARISONS
        ),
    ],
)
def test_tables_sort_by_keyboard(open_page, kind, name, value):
    page = open_page(kind).page
    page.evaluate("document.querySelectorAll('details').forEach(own => own.open = 1)")
    table = page.get_by_role("table", name=name).last
    head = table.get_by_role("columnheader", name="pancreas")

    def values():
        cells = table.locator("tbody tr > :nth-child(6)")
        return cells.evaluate_all(f"cells => cells.map(cell => Number({value}))")

    before = values()
    assert (min(before) < 0) == (kind in COMPARISONS)
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(before) != before
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert values() == sorted(before, reverse=True)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert page.get_by_role("status").filter(has_text="Sorted by spleen").count() == 1


@pytest.mark.parametrize(
    ("kind", "figure", "count", "table"),
    [
        *((kind, "DSC of each case: ", 1, "DSC over ") for kind in EVALUATIONS),
        *(
            (
                kind,
                "difference of each case: ",
                2 * (int(kind[-1]) - 1),
                "means, counts",
            )
            for kind in COMPARISONS
        ),
    ],
)
def test_a_screen_reader_is_told_what_figures_and_tables_show(
    open_page, kind, figure, count, table
):
    page = open_page(kind).page

    figures = page.get_by_role("img", name=f"{figure}mean of organs mean")
    assert figures.count() == count
    for closed in page.get_by_text("The numbers of this figure").all()[:1]:
        closed.click()
    names = page.get_by_role("table", name=table).first.get_by_role("rowheader")
    assert names.all_inner_texts() == ["mean of organs", *ORGANS]


@pytest.mark.parametrize("kind", ["participant", "participant-ranked-team"])
def test_dots_tell_the_values_of_the_table_by_keyboard(open_page, kind):
    """From the lowest to the highest: to three decimals on a participant's page."""
    window = open_page(kind)
    page = window.page
    figure = page.locator("figure[data-tips=dots]").first
    figure.locator(".chart").focus()
    told = []
    for key in ("ArrowDown", "Home", *["ArrowRight"] * 30):
        page.keyboard.press(key)
        text = figure.get_by_role("status").inner_text()
        told.append(float(text.rpartition(" ")[2]))
        assert re.search(r": [01]\.\d{3}$", text)

    assert told == sorted(told)
    table = page.get_by_role("table", name=re.compile("of each case"))
    cells = table.first.locator("tbody tr > :nth-child(2)").all_inner_texts()
    assert set(told) == {float(cell) for cell in cells if cell != "no result"}
    assert window.complaints == []


def test_fields_of_the_map_tell_their_values_by_mouse_and_keyboard(open_page):
    """The fifth column is the case of the fifth row, also once the table is sorted."""
    window = open_page("organiser-ranking")
    page = window.page
    figure = page.locator("figure[data-tips=map]")
    figure.get_by_text("The numbers of this figure").click()
    table = figure.get_by_role("table")
    case, *values = table.locator("tbody tr").nth(4).locator("th, td").all_inner_texts()
    team = figure.locator(".label").nth(2).inner_text()
    table.get_by_role("button", name="case").click()
    plot = figure.locator(".plot")
    at = {"x": plot.bounding_box()["width"] * 0.9, "y": 2.5 * 14}

    plot.hover(position=at)

    status = figure.get_by_role("status").first
    assert status.inner_text() == f"{team}, {case}: {values[2]}"
    figure.locator(".chart").focus()
    page.keyboard.press("ArrowUp")
    assert status.inner_text().endswith(f", {case}: {values[1]}")
    assert window.complaints == []
    assert window.violations == []


def test_a_tip_stands_at_what_it_is_about(open_page):
    """Also in a figure of many rows."""
    page = open_page("organiser-ranking").page
    figure = page.locator("figure[data-tips=map]")

    figure.locator(".plot").hover(position={"x": 30, "y": 40})

    tip, here = (figure.locator(css).bounding_box() for css in (".tip", ".here"))
    assert 0 < tip["y"] - here["y"] - here["height"] < 10
    page.mouse.move(0, 0)
    assert not figure.locator(".tip").is_visible()


def test_one_click_marks_a_team_everywhere(open_page):
    """In each figure, row and column that has its name, and in no other."""
    window = open_page("organiser-ranking")
    page = window.page
    name = "team 3"
    charts = page.locator(".chart", has=page.get_by_text(re.compile(rf"\b{name}\b")))

    page.get_by_role("button", name=f"Mark {name} everywhere").click()

    assert charts.count() > 2
    assert page.locator(".band").count() == charts.count()
    assert all(name in text for text in page.locator(".label.marked").all_inner_texts())
    rows = page.locator("tr.marked th").all_text_contents()
    assert len(rows) > 3
    assert all(name in text for text in rows)
    assert page.locator("thead th.marked, td.marked").count() > 0
    charts.first.locator(".label.marked").click()
    assert page.locator(".marked, .band").count() == 0
    assert window.complaints == []


ENDED = "docker: gone."


def impatient(**settings):
    """The page of a measurement, which a browser reads anew a little sooner."""
    html = page_html(measuring_page(eventful(**settings)))
    html = html.replace('content="10"', 'content="1"')
    return html.replace('data-refresh="10"', 'data-refresh="0.2"')


@pytest.mark.parametrize("is_on", [True, False], ids=["scripts", "no scripts"])
def test_a_page_of_what_runs_is_read_anew_by_itself(request, tmp_path, is_on):
    """It asks for nothing but itself, and ends that when the measurement has ended."""
    file = tmp_path / "live.html"
    write_whole(file, impatient())
    window = request.getfixturevalue("window" if is_on else "still_window")
    window.open(file)
    assert window.page.get_by_text(ENDED).count() == 0

    write_whole(file, impatient(is_running=False, ended=ENDED))

    window.page.get_by_text(ENDED).wait_for(timeout=20_000)
    assert window.complaints == []
    assert window.page.locator("[data-refresh], [http-equiv=refresh]").count() == 0


def test_a_page_of_what_runs_can_be_held_still(window, tmp_path):
    file = tmp_path / "live.html"
    write_whole(file, impatient().replace('="0.2"', '="1"'))
    window.open(file)
    window.page.get_by_role("button", name="Hold it still").press("Enter")

    write_whole(file, impatient(is_running=False, ended=ENDED))
    window.page.wait_for_timeout(1500)
    assert window.page.get_by_text(ENDED).count() == 0

    window.page.get_by_role("button", name="Let it go on").press("Enter")
    window.page.get_by_text(ENDED).wait_for(timeout=20_000)
    assert window.complaints == []
