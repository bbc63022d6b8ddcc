"""The pictures of a case in use: by keyboard, by wheel, and without scripts."""

import numpy as np
import pytest

from tests.builders.case_pages import (
    SLOT,
    evaluated,
    slot_and_stray,
)

pytestmark = pytest.mark.browser


SHOWN = ".stage > figure:nth-of-type({})"


def pixels(page):
    return page.locator("canvas").evaluate("canvas => canvas.toDataURL()")


def slider_of(page):
    return page.get_by_role("slider", name="Slice")


def caption_of(page, plane=1):
    return page.locator(SHOWN.format(plane)).locator("figcaption").inner_text()


def test_the_viewer_scrolls_by_keyboard(open_page):
    """Boxes of organs begin in slice 3 of 10, which is shown first."""
    window = open_page("case")
    page = window.page
    slider = slider_of(page)
    first = caption_of(page)
    assert not page.locator("canvas").is_visible()
    slider.focus()
    page.keyboard.press("Home")
    assert caption_of(page).startswith("Axial, slice 1 of 10: ")
    before = pixels(page)

    for number in (2, 3, 4):
        page.keyboard.press("ArrowRight")
        if caption_of(page) != first:
            assert caption_of(page).startswith(f"Axial, slice {number} of 10: ")
    assert slider.get_attribute("aria-valuetext") == "slice 4 of 10"

    page.get_by_role("radio", name="Coronal").focus()
    page.keyboard.press("Space")
    slider.focus()
    page.keyboard.press("End")
    assert caption_of(page, 2).startswith("Coronal, slice 16 of 16: ")
    assert caption_of(page) == first
    assert pixels(page) != before
    assert (window.violations, window.complaints) == ([], [])


def test_the_viewer_scrolls_by_wheel_and_shows_what_is_ticked(open_page):
    """The wheel scrolls the page until a picture was clicked.

    The liver of 7 columns is moved by 3, so in 7 rows 21 voxels are missed.
    """
    page = open_page("case").page
    first = caption_of(page)
    picture = page.locator(SHOWN.format(1))
    picture.hover()
    page.mouse.wheel(0, -100)
    page.wait_for_timeout(100)
    assert caption_of(page) == first
    picture.click()
    page.keyboard.press("Home")

    for number in (2, 3, 4):
        page.mouse.wheel(0, -100)
        page.locator(f"[aria-valuetext='slice {number} of 10']").wait_for()

    assert caption_of(page) == "Axial, slice 4 of 10: 21 voxels missed, 21 added"
    everything = pixels(page)
    for name in ("reference", "prediction", "errors", "names"):
        box = page.get_by_role("checkbox", name=name)
        box.uncheck()
        assert pixels(page) != everything
        box.check()
        assert pixels(page) == everything


def test_a_picture_that_is_clicked_is_the_large_one(open_page):
    page = open_page("case", size=(1400, 900)).page
    wide = [page.locator(SHOWN.format(n)).bounding_box()["width"] for n in (1, 2, 3)]
    assert wide[0] > 2 * max(wide[1:])

    page.locator(SHOWN.format(3)).click()

    assert page.get_by_role("radio", name="Sagittal").is_checked()
    assert page.locator(SHOWN.format(3)).bounding_box()["width"] == wide[0]


def test_without_scripts_a_case_has_all_but_the_viewer(open_still):
    still = open_still("case")

    assert not slider_of(still).is_visible()
    assert still.get_by_text("Scrolling through the slices needs").is_visible()
    assert still.locator("svg.picture").count() == 6
    names = {"reference": ".ref", "prediction": ".pred", "errors": ".wrong"}
    for name, css in (names | {"names": "text.name"}).items():
        path = still.locator(f".stage {css}").first
        assert path.is_visible()
        still.get_by_role("checkbox", name=name).uncheck()
        assert not path.is_visible()


@pytest.fixture(scope="module")
def two_cases(tmp_path_factory):
    """The pages of a case with a stray, and of one of which the liver is missed."""
    stray = slot_and_stray()
    cases = {"stray": stray, "missed": (stray[0], np.zeros_like(stray[0]))}
    return evaluated(tmp_path_factory.mktemp("two"), cases, **SLOT).write()


def test_a_sentence_moves_the_viewer_to_its_slice(window, still_window, two_cases):
    """The stray of two voxels lies in slice 13 of 16; without a script, it is a link.

    The page is low, so that the picture is out of sight where the sentence is not.
    """
    words = "2 voxels of liver, 12 mm from any of the reference"
    window.open(two_cases / "stray.html", size=(360, 400))
    still_window.open(two_cases / "stray.html", size=(360, 400))
    assert caption_of(window.page).startswith("Axial, slice 5 of 16")

    for page in (window.page, still_window.page):
        page.get_by_role("link", name=words).click()
        assert 0 <= page.locator(".stage").bounding_box()["y"] < 40

    moved = "Axial, slice 13 of 16: 0 voxels missed, 2 added"
    assert caption_of(window.page) == moved
    window.page.get_by_role("radio", name="Coronal").check()
    assert caption_of(window.page, 2).startswith("Coronal, slice 11 of 12")
    assert (window.violations, window.complaints) == ([], [])


def test_the_index_shows_the_cases_of_a_kind(window, still_window, two_cases):
    """Without scripts there are no buttons, and all cases."""
    window.open(two_cases / "index.html")
    still_window.open(two_cases / "index.html")
    shown = window.page.locator(".card:visible a")
    assert window.page.locator(".card li").all_inner_texts() == ["liver 0.00"]

    buttons = window.page.get_by_role("button")
    texts = ["all, the hardest first (2)", "missed (1)", "far away (1)"]
    assert buttons.all_inner_texts() == texts
    for number, cases in ((2, ["stray"]), (1, ["missed"]), (0, ["missed", "stray"])):
        buttons.nth(number).click()
        assert shown.all_inner_texts() == cases
        assert buttons.nth(number).get_attribute("aria-pressed") == "true"
        assert window.page.locator("[aria-pressed=true]").count() == 1

    assert not still_window.page.locator(".filters").is_visible()
    assert still_window.page.locator(".card:visible").count() == 2
    assert (window.violations, window.complaints) == ([], [])
