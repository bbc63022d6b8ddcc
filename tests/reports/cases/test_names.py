"""File names of pages, whatever cases are called."""

import re

from flare.reports.cases.pages import page_files
from tests.builders.pages import HOSTILE


def test_hostile_names_have_files_that_every_system_can_hold():
    files = page_files(HOSTILE)

    assert len({file.lower() for file in files.values()}) == len(HOSTILE)
    for file in files.values():
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,90}\.html", file)


def test_names_that_differ_in_letters_that_some_systems_take_for_equal():
    """And neither the index nor a name of Windows is taken."""
    assert [*page_files(["A", "a", "index", "CON", "a/2", "a.2"]).values()] == [
        *("A.html", "a-2.html", "index-2.html", "CON-2.html", "a_2.html", "a_2-2.html")
    ]
