"""Pages of each kind in a browser: in the dark, on a phone, printed, and still."""

import csv
from math import isfinite
from xml.etree import ElementTree

import pytest

from flare.ranking.rules import RankingOptions
from tests.builders.barriers import COLOURS, find_barriers
from tests.builders.browser import PHONE, WIDE
from tests.builders.hostile_pages import KINDS
from tests.builders.many_metrics import write_challenge, write_teams
from tests.builders.pages import write_report
from tests.builders.results import write_table

pytestmark = pytest.mark.browser

of_each_kind = pytest.mark.parametrize("kind", KINDS)

OPEN_ALL = """() => [...document.querySelectorAll("summary")].filter((summary) => {
  summary.scrollIntoView({block: "center"});
  const {x, y, width, height} = summary.getBoundingClientRect();
  document.elementFromPoint(x + width / 2, y + height / 2).click();
  return !summary.parentElement.open;
}).map((summary) => summary.outerHTML)"""
"""Click where each summary stands; whatever lies upon one would keep it closed."""

ENDS = """() => [...document.querySelectorAll(".chart")].map((chart) =>
  [[...chart.querySelectorAll(".label")].at(-1), chart.querySelector(".plot > svg")]
    .map((part) => part.getBoundingClientRect().bottom))"""
"""How far the labels of each chart reach, and its plot."""

CELLS = """() => [...document.querySelectorAll("td, th")]
  .map((cell) => csvCell(valueOf(cell)))"""
"""Each cell of all tables as it is saved."""

COUNT = "parts => parts.map((part) => document.querySelectorAll(part).length)"


@of_each_kind
def test_a_page_asks_for_nothing_and_keeps_nobody_out(open_page, kind):
    """No hostile name runs: it would have changed the title.

    In the dark nothing but colours is different, so nothing but colours is looked at.
    """
    window = open_page(kind)
    page = window.page
    assert window.violations == []
    assert page.title() not in ("", "ran", "1")
    assert page.evaluate(OPEN_ALL) == []
    assert find_barriers(page) == []

    window.show(scheme="dark")

    in_the_dark = find_barriers(page, COLOURS)
    assert in_the_dark == []
    assert window.complaints == []


@of_each_kind
def test_on_a_phone_the_page_is_as_wide_as_the_screen(open_page, kind):
    window = open_page(kind, size=PHONE)

    width = window.page.evaluate("document.documentElement.scrollWidth")

    assert width == PHONE[0]
    assert find_barriers(window.page) == []
    assert window.complaints == []


@of_each_kind
def test_without_scripts_everything_is_there_but_the_sorting(
    open_page, open_still, kind
):
    page, still = open_page(kind).page, open_still(kind)
    parts = ["th button", "td", "figure svg", "h2", "summary"]

    sorting, *shown = page.evaluate(COUNT, parts)

    assert still.evaluate(COUNT, parts) == [0, *shown]
    assert (sorting > 0) == (kind != "case-index")


@of_each_kind
def test_labels_stand_beside_their_rows(open_page, kind):
    """The heights of both are written in different places."""
    page = open_page(kind).page

    ends = page.evaluate(ENDS)

    assert [end for end, _ in ends] == pytest.approx([end for _, end in ends], abs=1)
    assert len(ends) == page.locator(".chart").count()


PLOTS = """() => [...document.querySelectorAll(".chart")].map((chart) =>
  chart.querySelector(".plot").offsetWidth / chart.offsetWidth)"""
"""The part of the width of each chart that its plot has."""

LABELS = """() => [...document.querySelectorAll("#values .label span")].map((label) => {
  const walker = document.createTreeWalker(label, NodeFilter.SHOW_TEXT);
  const [range, text] = [document.createRange(), walker.nextNode()];
  range.setStart(text, 0);
  range.setEnd(text, 1);
  const [start, box] = [range.getBoundingClientRect(), label.getBoundingClientRect()];
  const hasStart = start.left >= box.left - 1 && start.right <= box.right + 1;
  const {offsetHeight, scrollHeight, textContent, parentElement} = label;
  return [textContent, parentElement.title, offsetHeight < scrollHeight, hasStart];
})"""


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desk", "phone"])
def test_long_names_leave_a_chart_half_of_its_width(window, tmp_path, size):
    """Each is cut behind its second line, also one that is read from right to left.

    All of it is behind; how many are missing stands before it.
    """
    teams = [letter * 60 for letter in "w\u0635m"]
    values = {(team, case): 0.5 for team in teams for case in ("1", "2")}
    values["m" * 60, "2"] = ""
    rows = []
    for metric in ("dsc", "nsd", "runtime_s"):
        rows += [(*key, metric, value) for key, value in values.items()]
    source = write_table(tmp_path / "table.csv", rows)
    options = RankingOptions(metrics=("dsc", "nsd", "runtime_s"), bootstrap=0)
    page = tmp_path / "page.html"
    write_report([source], page, is_organiser=True, ranking=options)

    window.open(page, size=size)

    parts = window.page.evaluate(PLOTS)
    assert len(parts) >= 4
    assert min(parts) >= 0.5
    missing = f"(1 missing) {teams[2]}"
    names = [*teams[:2], missing]
    labels = window.page.evaluate(LABELS)
    assert labels == [[name, name, True, True] for name in names] * 3


@of_each_kind
def test_a_page_can_be_printed(open_page, kind):
    page = open_page(kind).page

    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 31, 36)"


SHEET = 688
"""Pixels between the margins of A4."""

TABLES = """() => {
  document.querySelectorAll("details").forEach((own) => own.open = true);
  const heads = () => [...document.querySelectorAll("table:not([hidden])")]
    .map((table) => [...table.tHead.rows[0].cells].map((own) => own.innerText));
  const before = heads();
  dispatchEvent(new Event("beforeprint"));
  return [before, heads()];
}"""
"""The heads of all tables, and of those that are printed instead."""

RIGHT_END = """() => Math.max(
  ...[...document.querySelectorAll("th, td, svg, p, li, .end")]
  .filter((own) => own.checkVisibility() && !own.closest("svg svg"))
  .map((own) => own.getBoundingClientRect().right))"""


@pytest.mark.parametrize("size", [(1400, 900), PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize(
    "kind", ["organiser-fifty", "organiser-evaluation", "organiser-comparison"]
)
def test_nothing_is_cut_at_the_edge_of_a_sheet(window, plain_page, kind, size):
    """A wide table is printed in parts, each with its first column, of all columns."""
    window.open(plain_page(kind), size=size)
    page = window.page

    before, printed = page.evaluate(TABLES)

    page.emulate_media(media="print")
    page.set_viewport_size({"width": SHEET, "height": 900})
    assert page.evaluate(RIGHT_END) <= SHEET + 0.5
    parts = iter(printed)
    for heads in before:
        found = next(parts)
        while len(found) < len(heads):
            name, *more = next(parts)
            assert name == heads[0]
            found += more
        assert found == heads
    assert next(parts, None) is None
    assert len(printed) > len(before)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("table:not([hidden])").count() == len(before)


def taken(page, text, place, folder):
    """What a button saves: the file's name, and what it holds."""
    button = page.locator("button.take:visible", has_text=text).nth(place)
    with page.expect_download() as download:
        button.click()
    download.value.save_as(folder / "taken")
    text = (folder / "taken").read_text(encoding="utf-8-sig")
    return download.value.suggested_filename, text


def test_tables_and_figures_are_saved_from_the_page_itself(
    window, plain_page, tmp_path
):
    """A figure has its labels, and light colours though the screen is dark."""
    window.open(plain_page("organiser-ranking"), scheme="dark")

    name, text = taken(window.page, "Save as CSV", 0, tmp_path)
    heads, first, *_ = csv.reader(text.splitlines())
    assert name.startswith("FLARE_2021_ranking_of_11_teams")
    assert name.endswith(".csv")
    assert heads[:3] == ["rank", "team", "team: note"]
    assert first[:3] == ["1", "team_08", ""]
    shown = window.page.locator("table td[data-v]").first.get_attribute("data-v")
    assert shown in first
    name, text = taken(window.page, "Save figure", 2, tmp_path)
    drawing = ElementTree.fromstring(text)
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert {"Ranks when other cases are drawn", "team_08"} <= {*drawing.itertext()}
    blobs = drawing.findall(".//{*}circle[@class='blob']")
    assert {blob.get("fill") for blob in blobs} == {"rgb(11, 92, 158)"}
    assert "var(" not in text
    assert window.violations == []
    assert window.complaints == []


@of_each_kind
def test_no_cell_of_a_saved_table_is_a_formula(open_page, kind):
    cells = open_page(kind).page.evaluate(CELLS)

    for text in cells:
        assert not text.startswith(("=", "@"))
        assert not text.startswith(("+", "-")) or isfinite(float(text))


def test_a_field_filters_teams(window, plain_page):
    window.open(plain_page("organiser-fifty"))
    page = window.page

    page.locator(".filter").first.fill("Team_4")

    names = page.locator("#ranking tbody tr:visible th").all_inner_texts()
    assert sorted(names) == [f"team_{n}" for n in range(40, 50)]
    window.open(plain_page("organiser-ranking"))
    assert page.locator(".filter").count() == 0


# --- What is seen first -----------------------------------------------------------

FIRST_SCREEN = {
    "organiser-ranking": (
        "FLARE 2021: ranking of 11 teams",
        "team_08 is first in all of 100 bootstrap samples of the cases",
        "Without running time, cpu_only would be first.",
        "3 things to look at before it is published",
        *("DSC", "NSD", "Running time (s)", "GPU memory (MB)"),
        *("team_08", "0.960", "rank 2.36", "team_07", "3 to 4", "crash", "no result"),
    ),
    "participant-ranking": (
        "FLARE 2021: ranking of 11 teams",
        "team_08 is first in all of 100 bootstrap samples of the cases",
        "Without running time, cpu_only would be first.",
        *("team_08", "2.36", "team_07", "3 to 4", "crash"),
    ),
    "organiser-case": (
        *(
            "Case hard: results",
            "Mean of 13 organs: DSC 0.7",
            "What is wrong",
            "are swapped",
        ),
        *("left adrenal gland: all", "Axial", "prediction", "Slice", "spleen"),
        *("Axial, slice", "Coronal, slice", "Sagittal, slice", "another organ"),
    ),
    "organiser-evaluation": (
        *("FLARE 2021", "new: evaluation of 30 cases"),
        *("No overlap with the reference: left adrenal gland on 15", "95 % interval"),
        *("DSC of each case", "left kidney", "mean", "0.8", "NSD of each case", "0.4"),
    ),
    "participant-evaluation": (
        *("FLARE 2021: your scores on 30 cases", "left adrenal gland on 15"),
        *("DSC of each case", "left kidney", "mean", "0.8", "NSD of each case", "0.4"),
    ),
    "organiser-team": (
        *("new", "left adrenal gland on 15", "30 cases: only 8 samples"),
        *("Runs that worked", "DSC of each case", "left adrenal gland", "0.4"),
    ),
    "participant-team": ("new", "Runs that worked", "left kidney", "mean", "0.8"),
    "organiser-comparison": (
        *("new is significantly worse than old: DSC -0.03", "(p "),
        *("left adrenal gland changed", "95 % interval"),
        *("0 better, 15 equal, 15 worse", "left kidney", "mean", "-0.43"),
    ),
    "participant-rank": (
        *("team_08", "1 of 11", "0.3", "DSC", "0.9", "Running time (s)"),
        *("Ranks when other cases are drawn", "11"),
    ),
    "organiser-measuring": (
        *("Measuring 11 teams on 12 cases", "101 of 132", "7 of 11", "18 min"),
        *("To be looked at", "archive refused", "timed out", "team_02", "few samples"),
    ),
    "organiser-cases": ("All 2 cases.", "hard", "are swapped", "easy", "No voxel is"),
}
"""What stands on a page of 11 teams, or of one of them, without any scrolling: by the
kinds of `tests.builders.plain_pages`, texts in their order."""

SEEN = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const [range, found] = [document.createRange(), []];
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode);
    const {bottom, height} = range.getBoundingClientRect();
    if (height && bottom <= innerHeight) found.push(walker.currentNode.data.trim());
  }
  return found.join(" ");
}"""
"""All texts that end on the first screen."""


@pytest.mark.parametrize("kind", FIRST_SCREEN)
def test_what_is_asked_first_stands_on_the_first_screen(window, plain_page, kind):
    window.open(plain_page(kind), size=(1400, 900))

    seen = window.page.evaluate(SEEN)

    place = -1
    for text in FIRST_SCREEN[kind]:
        place = seen.find(text, place + 1)
        assert place >= 0, f"{text!r} is not where it should be in {seen}"


@pytest.fixture(scope="session")
def many_metrics(tmp_path_factory):
    """Pages of five metrics of 13 organs: one of each kind, of 11 or 50 teams."""
    folder = tmp_path_factory.mktemp("many")
    challenge = str(write_challenge(folder))
    options = RankingOptions(challenge=challenge, bootstrap=20)
    files = {}
    for number in (11, 50):
        results = folder / str(number)
        teams = [f"team_{n:02}" for n in range(1, number + 1)]
        write_teams(results, teams, challenge, cases=40)
        output = folder / f"ranking_{number}"
        write_report([results], output, is_organiser=True, ranking=options)
        files[f"ranking of {number}"] = output / "index.html"
    files["team"] = folder / "ranking_11" / "teams" / "team_11.html"
    sources = [folder / "11" / name / "metrics.json" for name in ("team_02", "team_09")]
    for name, shown in (("evaluation", sources[:1]), ("comparison", sources)):
        files[name] = folder / f"{name}.html"
        write_report(shown, files[name], is_organiser=True)
    return files


@pytest.mark.parametrize(
    "kind", ["ranking of 11", "ranking of 50", "team", "evaluation", "comparison"]
)
def test_pages_of_five_metrics_are_not_long(window, many_metrics, kind):
    """The tables of the first metric are open; the others have their caption."""
    window.open(many_metrics[kind], size=(1400, 900))

    assert window.page.evaluate("document.documentElement.scrollHeight") < 9000
    if kind in ("evaluation", "comparison"):
        closed = window.page.locator("section > details > summary").all_inner_texts()
        for title in ("NSD", "HD95", "ASSD", "Volume difference"):
            assert any(text.startswith(title) for text in closed)
    assert find_barriers(window.page) == []
    assert window.complaints == []
