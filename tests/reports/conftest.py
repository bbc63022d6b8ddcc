"""Pages of all kinds, and windows of a browser that show them."""

import pytest

from tests.builders.browser import Window
from tests.builders.hostile_pages import write_pages
from tests.builders.plain_pages import write_plain_page


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The folder of a page of each kind, with every hostile name."""
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


@pytest.fixture(scope="session")
def plain_page(tmp_path_factory):
    """The file of a page of a kind, of 11 teams with harmless names."""
    folder = tmp_path_factory.mktemp("plain")
    return lambda kind: write_plain_page(folder, kind)


@pytest.fixture(scope="session")
def window(page_browser):
    """A window, in which each test opens a page anew."""
    with Window(page_browser) as found:
        yield found


@pytest.fixture(scope="session")
def still_window(page_browser):
    with Window(page_browser, has_scripts=False) as found:
        yield found


@pytest.fixture
def open_page(window, pages):
    def open_it(kind, **settings):
        window.open(pages / f"{kind}.html", **settings)
        return window

    return open_it


@pytest.fixture
def open_still(still_window, pages):
    def open_it(kind):
        still_window.open(pages / f"{kind}.html")
        return still_window.page

    return open_it
