"""The viewer of a case in use: by keyboard, by wheel, and what is left without it."""

import re

import pytest

pytestmark = pytest.mark.browser


def pixels(page):
    """What the viewer shows."""
    return page.locator("canvas").evaluate("canvas => canvas.toDataURL()")


def test_the_viewer_scrolls_by_keyboard(open_page):
    """Boxes of organs begin in slice 3 of 10."""
    window = open_page("case")
    page = window.page
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
    assert (window.violations, window.complaints) == ([], [])


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


def test_without_scripts_a_case_has_all_but_the_viewer(open_still):
    still = open_still("case")

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
