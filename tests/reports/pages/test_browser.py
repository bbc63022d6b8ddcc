"""Pages as people meet them: in a browser, by keyboard, in the dark, on a phone."""

import re
from dataclasses import replace

import numpy as np
import pytest

from flare.reports.pages.report import write_report
from tests.builders import organ_boxes, write_nifti
from tests.builders.browser import Opened
from tests.builders.case_pages import evaluated
from tests.builders.pages import HOSTILE, metrics_content, write_json
from tests.builders.results import write_table

pytestmark = pytest.mark.browser

ORGANS = ("liver", "kidney", "spleen", "pancreas")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of each kind, with every hostile name."""
    folder = tmp_path_factory.mktemp("pages")
    count = len(HOSTILE) + 3
    scores = {
        organ: [(17 * n + 29 * k) % 101 / 100 for n in range(count)]
        for k, organ in enumerate(ORGANS)
    }
    content = metrics_content(scores, warnings=[*HOSTILE])
    for number, name in enumerate(HOSTILE):
        content["case"]["gt_fname"][str(number)] = f"{number} {name}"
        content["case"]["alg_fname"][str(number)] = f"{number} {name}"
    content["failed"] = {f"{n} {name}": name for n, name in enumerate(HOSTILE)}
    source = write_json(folder / "metrics.json", content)
    for name in ("organiser", "participant"):
        output = folder / f"{name}.html"
        write_report([source], output, is_organiser=name == "organiser")
    write_rankings(folder)
    write_case_pages(folder)
    return folder


def write_case_pages(folder):
    """Pages of cases, with and without CTs; the first case has a hostile name."""
    boxes = organ_boxes()
    moved = organ_boxes(shift=3)
    moved[9, 15, 17:] = 3
    cases = {f"{HOSTILE[0].replace('/', ' ')}": (boxes, moved), "other": (boxes, boxes)}
    made = evaluated(folder / "evaluated", cases)
    made.write()
    for name in cases:
        ct = np.where(boxes, 100, -20).astype(np.int16)
        write_nifti(folder / "images" / f"{name}.nii.gz", ct, dtype="<i2")
    replace(made, pages=folder / "over-ct").write(images=folder / "images")
    (first,) = [f for f in (made.pages / "cases").iterdir() if "script" in f.name]
    for kind, page in (
        ("case", first),
        ("case-index", made.pages / "cases" / "index.html"),
        ("case-ct", folder / "over-ct" / "cases" / "other.html"),
        ("case-evaluation", made.pages / "index.html"),
    ):
        (folder / f"{kind}.html").write_bytes(page.read_bytes())


def write_rankings(folder):
    """The pages of a ranking, some of whose teams and cases have hostile names."""
    seen = [name for name in HOSTILE if name.isprintable()]
    teams = [*seen, *(f"team {number}" for number in range(6))]  # rows are dense
    rows = [
        (team, f"{case} {seen[case]}", metric, (17 * n + 29 * case) % 97 / 100 + 0.001)
        for n, team in enumerate(teams)
        for case in range(5)
        for metric in ("dsc", "runtime_s")
        if (n, case) != (2, 2)
    ]
    source = write_table(folder / "table.csv", rows)
    options = {"metrics": ["dsc", "runtime_s"], "bootstrap": 20}
    for name in ("organiser-ranking", "participant-ranking"):
        is_organiser = name.startswith("organiser")
        output = folder / f"{name}.html"
        write_report([source], output, is_organiser=is_organiser, **options)


@pytest.fixture
def open_page(page_browser, pages):
    """Open one of the pages; afterwards, it must not have complained of anything."""
    opened = []

    def open_it(name, **settings):
        opened.append(Opened(page_browser, pages / f"{name}.html", **settings))
        return opened[-1]

    yield open_it
    for each in opened:
        each.context.close()


EVALUATIONS = ("organiser", "participant")

KINDS = pytest.mark.parametrize(
    "kind",
    [
        *(*EVALUATIONS, "organiser-ranking", "participant-ranking"),
        *("case", "case-ct", "case-index", "case-evaluation"),
    ],
)


@KINDS
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_asks_for_nothing_and_keeps_nobody_out(open_page, kind, scheme):
    """And no hostile name runs: it would have changed the title."""
    opened = open_page(kind, color_scheme=scheme)

    assert opened.violations == []
    title = opened.page.title()
    assert re.fullmatch(
        "(Evaluation|Your scores|Ranking) (of|on) .*|Case .*|What is wrong .*", title
    )
    for summary in opened.page.locator("summary").all():
        summary.click()
    assert opened.barriers() == []
    assert opened.complaints == []


@KINDS
def test_on_a_phone_the_page_is_as_wide_as_the_screen(open_page, kind):
    opened = open_page(kind, viewport={"width": 360, "height": 740})

    width = opened.page.evaluate("document.documentElement.scrollWidth")

    assert width == 360
    assert opened.barriers() == []


def test_tables_sort_by_keyboard(open_page):
    page = open_page("organiser").page
    table = page.get_by_role("table", name="DSC of each case and organ")
    head = table.get_by_role("columnheader", name="spleen")
    column = 5

    def values():
        cells = table.locator(f"tbody tr > :nth-child({column})")
        return [float(cell.get_attribute("data-v")) for cell in cells.all()]

    before = values()
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
    assert page.get_by_role("status").filter(has_text="Sorted by kidney").count() == 1


@KINDS
def test_without_scripts_everything_is_there_but_the_sorting(open_page, kind):
    page, still = (
        open_page(kind, java_script_enabled=is_on).page for is_on in (True, False)
    )

    assert still.locator("th button").count() == 0
    assert (page.locator("th button").count() > 0) == (kind != "case-index")
    for selector in ("td", "figure svg", "h2", "summary"):
        assert still.locator(selector).count() == page.locator(selector).count()


@pytest.mark.parametrize("kind", EVALUATIONS)
def test_a_screen_reader_is_told_what_a_figure_shows(open_page, kind):
    page = open_page(kind).page

    figure = page.get_by_role("img", name="DSC of each case: mean of organs mean 0.")
    assert figure.count() == 1
    page.get_by_text("The numbers of this figure").first.click()
    table = page.get_by_role("table", name=f"DSC over {len(HOSTILE) + 3} cases")
    assert table.get_by_role("rowheader").all_inner_texts() == [
        "mean of organs",
        *ORGANS,
    ]


@KINDS
def test_labels_stand_beside_their_rows(open_page, kind):
    """The heights of both are written in different places."""
    page = open_page(kind).page
    for chart in page.locator(".chart").all():
        plot = chart.locator(".plot > svg").bounding_box()
        last = chart.locator(".label").last.bounding_box()
        end = last["y"] + last["height"]
        assert end == pytest.approx(plot["y"] + plot["height"], abs=1)


@KINDS
def test_a_page_can_be_printed(open_page, kind):
    page = open_page(kind).page

    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 31, 36)"


def pixels(page):
    """What the viewer shows."""
    return page.locator("canvas").evaluate("canvas => canvas.toDataURL()")


def test_the_viewer_scrolls_by_keyboard(open_page):
    """Boxes of organs begin in slice 3 of 10."""
    opened = open_page("case")
    page = opened.page
    slider = page.get_by_role("slider", name="Slice")
    said = page.locator("output")
    slider.focus()
    page.keyboard.press("Home")
    assert said.inner_text().startswith("slice 1 of 10: ")
    before = pixels(page)

    for number in (2, 3, 4):
        page.keyboard.press("ArrowRight")
        assert said.inner_text().startswith(f"slice {number} of 10: ")
    assert slider.get_attribute("aria-valuetext") == "slice 4 of 10"
    assert pixels(page) != before

    page.get_by_role("radio", name="Coronal").focus()
    page.keyboard.press("Space")
    assert " of 16: " in said.inner_text()
    canvas = page.locator("canvas")
    canvas.focus()
    page.keyboard.press("End")
    assert said.inner_text().startswith("slice 16 of 16: ")
    page.keyboard.press("ArrowDown")
    assert canvas.get_attribute("aria-label").startswith("Coronal, slice 15 of 16")
    assert (opened.violations, opened.complaints) == ([], [])


def test_the_viewer_scrolls_by_wheel_and_shows_what_is_ticked(open_page):
    page = open_page("case").page
    said = page.locator("output")
    canvas = page.locator("canvas")
    canvas.focus()
    page.keyboard.press("Home")
    canvas.hover()

    page.mouse.wheel(0, -100)
    page.wait_for_timeout(100)
    assert said.inner_text().startswith("slice 2 of 10: ")
    page.keyboard.press("ArrowUp")
    everything = pixels(page)
    for name in ("reference", "prediction", "errors"):
        box = page.get_by_role("checkbox", name=name)
        box.uncheck()
        assert pixels(page) != everything
        box.check()
        assert pixels(page) == everything


def test_the_viewer_counts_the_voxels_of_a_slice(open_page):
    """The liver of 7 columns is moved by 3, so in 7 rows 21 voxels are missed.

    The spleen has one voxel too many in the last slice but none in the third.
    """
    page = open_page("case").page
    page.locator("canvas").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")

    assert page.locator("output").inner_text() == (
        "slice 3 of 10: 21 voxels missed, 21 added"
    )


def test_without_scripts_a_case_has_all_but_the_viewer(open_page):
    still = open_page("case", java_script_enabled=False).page

    assert not still.locator("canvas").is_visible()
    assert still.get_by_text("Scrolling through the slices needs").is_visible()
    assert still.locator(".planes svg.picture").count() == 6
    for name in ("reference", "prediction", "errors"):
        shown = {"reference": ".ref", "prediction": ".pred", "errors": ".wrong"}[name]
        path = still.locator(f".planes {shown}").first
        assert path.is_visible()
        still.get_by_role("checkbox", name=name).uncheck()
        assert not path.is_visible()


def test_the_tables_of_an_evaluation_lead_to_the_cases(open_page):
    page = open_page("case-evaluation").page

    table = page.get_by_role("table", name="The 2 cases with the lowest DSC")
    links = [link.get_attribute("href") for link in table.get_by_role("link").all()]
    assert len(links) == 2
    assert links[1] == "cases/other.html"
    assert re.fullmatch(r"cases/[\w-]+\.html", links[0])


def test_pictures_have_one_scale(open_page):
    """The columns of the grid are equal, and so are the units of their drawings."""
    page = open_page("case").page
    pictures = page.locator(".planes svg.picture").all()
    scales = {
        round(
            picture.bounding_box()["width"]
            / float(picture.get_attribute("viewBox").split()[2]),
            2,
        )
        for picture in pictures
    }
    assert len(scales) == 1
