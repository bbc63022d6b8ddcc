"""Pages as people meet them: in a browser, by keyboard, in the dark, on a phone."""

import re
from dataclasses import replace

import numpy as np
import pytest

from flare.common.files import csv_text, write_whole
from flare.reports.pages.report import write_report
from flare.reports.pages.running import State
from flare.reports.pages.running_page import running_html
from tests.builders import organ_boxes, write_nifti
from tests.builders.browser import Opened
from tests.builders.case_pages import evaluated
from tests.builders.measured import write_measured
from tests.builders.pages import HOSTILE, metrics_content, write_json
from tests.builders.results import write_table
from tests.builders.running import eventful

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
    for name, state in (("running", State.RUNNING), ("stopped", State.STOPPED)):
        html = running_html(hostile_run(state)).replace('="10"', '="900"')
        write_whole(folder / f"{name}.html", html)  # not read anew while it is tested
    write_comparisons(folder, content)
    write_teams(folder)
    write_case_pages(folder)
    return folder


def hostile_run(state):
    """A measurement of teams with hostile names, each once in trouble."""
    return eventful(
        names=(*HOSTILE[1:], HOSTILE[0]),
        state=state,
        settings=tuple((name, name) for name in HOSTILE),
    )


def write_comparisons(folder, content):
    """The pages of two and of three evaluations, in folders with hostile names."""
    sources = []
    for number, name in enumerate(("old", HOSTILE[0], HOSTILE[10])):
        own = {**content, "case": {**content["case"]}}
        own["evaluation"] = {**content["evaluation"], "references_sha256": number}
        for organ in ("", *(f"_{organ}" for organ in ORGANS)):
            for score in ("dsc", "nsd"):
                values = content["case"][score + organ]
                own["case"][score + organ] = {
                    case: (value + 0.01 * number * (int(case) % 7 - 3)) % 1
                    for case, value in values.items()
                }
        file = folder / name.replace("/", "") / "metrics.json"
        sources.append(write_json(file, own))
    for name in COMPARISONS:
        count, is_organiser = int(name[-1]), name.startswith("organiser")
        output = folder / f"{name}.html"
        write_report(sources[:count], output, is_organiser=is_organiser)


def write_groups(file, cases):
    """A column of two large groups, and one of small ones with hostile names."""
    rows = [
        (case, "AB"[n % 2], HOSTILE[n % len(HOSTILE)]) for n, case in enumerate(cases)
    ]
    file.write_text(csv_text(("case", "centre", HOSTILE[0]), rows), encoding="utf-8")
    return file


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
    groups = write_groups(
        folder / "groups.csv", [f"{n} {case}" for n, case in enumerate(seen[:5])]
    )
    options = {"metrics": ["dsc", "runtime_s"], "bootstrap": 20, "groups": groups}
    for name in ("organiser-ranking", "participant-ranking"):
        is_organiser = name.startswith("organiser")
        output = folder / f"{name}.html"
        write_report([source], output, is_organiser=is_organiser, **options)


def write_teams(folder):
    """The pages of a measured team, and of teams of a ranking, with hostile names.

    As a ranking has it, one page is in a folder, and named by its team.
    """
    seen = [name for name in HOSTILE if name.isprintable() and "/" not in name]
    cases = [f"{n} {name[:60]}" for n, name in enumerate(seen)]
    scores = {
        organ: [(17 * n + 29 * k) % 101 / 100 for n in range(len(cases))]
        for k, organ in enumerate(ORGANS)
    }
    failed = {cases[1]: ("failed", seen[0]), cases[2]: ("timed out", seen[1])}
    results = folder / "results"
    names = (seen[1], seen[2], "team")
    for number, team in enumerate(names):
        write_measured(
            results / team,
            cases,
            failed=failed,
            scores=scores,
            doubts=seen[3],
            off=number,
        )
    for is_organiser in (True, False):
        audience = "organiser" if is_organiser else "participant"
        page = folder / f"{audience}-team.html"
        write_report([results / names[0]], page, is_organiser=is_organiser)
        pages = folder / f"{audience}-pages"
        write_report([results], pages, is_organiser=is_organiser, bootstrap=20)
        (file,) = (pages / "teams").glob(f"{re.sub('[^A-Za-z0-9_-]', '_', names[0])}*")
        file.replace(folder / f"{audience}-ranked-team.html")
        (pages / "index.html").replace(folder / f"{audience}-index.html")


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

RANKINGS = ("organiser-ranking", "participant-ranking")

COMPARISONS = (
    *("organiser-comparison-2", "participant-comparison-2"),
    "organiser-comparison-3",
)

KINDS = pytest.mark.parametrize(
    "kind",
    [
        *(*EVALUATIONS, *RANKINGS, *COMPARISONS, "running", "stopped"),
        *("organiser-index", "participant-index"),
        *("organiser-team", "participant-team"),
        *("organiser-ranked-team", "participant-ranked-team"),
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
    words = "Evaluation|Your scores|Ranking|Results|Comparison|Measuring .*"
    assert re.fullmatch(
        f"({words}) (of|on) .*|.* in the ranking|Case .*|What is wrong .*", title
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


@pytest.mark.parametrize("kind", COMPARISONS)
def test_differences_sort_by_keyboard(open_page, kind):
    """Though they have signs, and a participant's page has no more than their text."""
    page = open_page(kind).page
    table = page.get_by_role("table", name="differences of each case").last
    head = table.get_by_role("columnheader", name="pancreas")

    def values():
        cells = table.locator("tbody tr > :nth-child(6)").all()
        return [
            float(cell.get_attribute("data-v") or cell.inner_text()) for cell in cells
        ]

    before = values()
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert min(before) < 0 < max(before)
    assert values() == sorted(before) != before
    page.keyboard.press("Enter")
    assert values() == sorted(before, reverse=True)


@pytest.mark.parametrize("kind", COMPARISONS)
def test_a_screen_reader_is_told_what_has_changed(open_page, kind):
    page = open_page(kind).page

    name = "difference of each case: mean of organs mean"
    figures = page.get_by_role("img", name=name)
    assert figures.count() == 2 * (int(kind[-1]) - 1)
    page.get_by_text("The numbers of this figure").first.click()
    table = page.get_by_role("table", name="how the differences are spread").first
    assert table.get_by_role("rowheader").all_inner_texts() == [
        "mean of organs",
        *ORGANS,
    ]


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


ENDED = "It has come to its end"


def impatient(**settings):
    """The page of a measurement, which a browser reads anew a little sooner."""
    html = running_html(eventful(**settings))
    html = html.replace('content="10"', 'content="1"')
    return html.replace('data-refresh="10"', 'data-refresh="0.2"')


@pytest.mark.parametrize("is_on", [True, False], ids=["scripts", "no scripts"])
def test_a_page_of_what_runs_is_read_anew_by_itself(page_browser, tmp_path, is_on):
    """It asks for nothing but itself, and ends that when the measurement has ended."""
    file = tmp_path / "live.html"
    write_whole(file, impatient())
    opened = Opened(page_browser, file, java_script_enabled=is_on)
    assert opened.page.get_by_text(ENDED).count() == 0

    write_whole(file, impatient(state=State.FINISHED))

    opened.page.get_by_text(ENDED).wait_for(timeout=20_000)
    assert opened.page.locator("[data-refresh], [http-equiv=refresh]").count() == 0
    assert opened.complaints == []
    opened.context.close()


def test_a_page_of_what_runs_can_be_held_still(page_browser, tmp_path):
    file = tmp_path / "live.html"
    write_whole(file, impatient().replace('="0.2"', '="1"'))
    opened = Opened(page_browser, file)
    opened.page.get_by_role("button", name="Hold it still").press("Enter")

    write_whole(file, impatient(state=State.FINISHED))
    opened.page.wait_for_timeout(1500)
    assert opened.page.get_by_text(ENDED).count() == 0

    opened.page.get_by_role("button", name="Let it go on").press("Enter")
    opened.page.get_by_text(ENDED).wait_for(timeout=20_000)
    assert opened.complaints == []
    opened.context.close()


@pytest.mark.parametrize("kind", ["participant", "participant-ranked-team"])
def test_dots_tell_the_values_of_the_table_by_keyboard(open_page, kind):
    """From the lowest to the highest: to three decimals on a participant's page."""
    opened = open_page(kind)
    page = opened.page
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
    assert opened.complaints == []


def test_fields_of_the_map_tell_their_values_by_mouse_and_keyboard(open_page):
    """The fifth column is the case of the fifth row, also once the table is sorted."""
    opened = open_page("organiser-ranking")
    page = opened.page
    figure = page.locator("figure[data-tips=map]")
    page.get_by_text("The numbers of this figure").nth(1).click()
    table = figure.get_by_role("table")
    case, *values = table.locator("tbody tr").nth(4).locator("th, td").all_inner_texts()
    team = figure.locator(".label").nth(2).inner_text()
    table.get_by_role("button", name="case").click()
    plot = figure.locator(".plot")
    at = {"x": plot.bounding_box()["width"] * 0.9, "y": 2.5 * 18}

    plot.hover(position=at)

    status = figure.get_by_role("status").first
    assert status.inner_text() == f"{team}, {case}: {values[2]}"
    figure.locator(".chart").focus()
    page.keyboard.press("ArrowUp")
    assert status.inner_text().endswith(f", {case}: {values[1]}")
    assert opened.complaints == []
    assert opened.violations == []
