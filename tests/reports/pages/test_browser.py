"""Pages as people meet them: in a browser, by keyboard, in the dark, on a phone."""

import re

import pytest

from flare.common.files import csv_text
from flare.reports.pages.report import write_report
from tests.builders.browser import Opened
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
    cases = [f"{number} {name}" for number, name in enumerate(HOSTILE)]
    groups = write_groups(folder / "groups.csv", [c for c in cases if c.isprintable()])
    for name in ("organiser", "participant"):
        output = folder / f"{name}.html"
        is_organiser = name == "organiser"
        write_report([source], output, is_organiser=is_organiser, groups=groups)
    write_rankings(folder)
    return folder


def write_groups(file, cases):
    """A column of two large groups, and one of small ones with hostile names."""
    rows = [
        (case, "AB"[n % 2], HOSTILE[n % len(HOSTILE)]) for n, case in enumerate(cases)
    ]
    file.write_text(csv_text(("case", "centre", HOSTILE[0]), rows), encoding="utf-8")
    return file


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
    groups = write_groups(
        folder / "groups.csv", [f"{n} {case}" for n, case in enumerate(seen[:5])]
    )
    options = {"metrics": ["dsc", "runtime_s"], "bootstrap": 20, "groups": groups}
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
    "kind", [*EVALUATIONS, "organiser-ranking", "participant-ranking"]
)


@KINDS
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_asks_for_nothing_and_keeps_nobody_out(open_page, kind, scheme):
    """And no hostile name runs: it would have changed the title."""
    opened = open_page(kind, color_scheme=scheme)

    assert opened.violations == []
    title = opened.page.title()
    assert re.fullmatch("(Evaluation|Your scores|Ranking) (of|on) .*", title)
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
    assert page.locator("th button").count() > 0
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
