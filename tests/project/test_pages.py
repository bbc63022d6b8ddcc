"""The pages of the documentation are true: their commands run, their links lead on.

The ``sh`` blocks of some pages are run in their order, in one folder. The text that
follows one is what it prints, but for times and versions; a line of three dots stands
for any lines. Comments before a block say what else there is to know of it:

- ``<!-- not run: needs Docker -->``, or another reason
- ``<!-- ends with status 1 -->``
"""

from __future__ import annotations

import re
import shutil

import pytest

from tests.builders import ROOT
from tests.builders.guides import COMMENT, blocks, is_shown, program, run_block

DOCS = ROOT / "docs"

PAGES = ("index.md", "changes.md", "baselines.md")
"""Of docs/organisers, those whose commands are run."""


@pytest.fixture
def place(tmp_path):
    """A folder as a checkout has them, with the command `flare`."""
    folder = tmp_path / "checkout"
    for name in ("examples", "ground-truth"):
        shutil.copytree(ROOT / name, folder / name)
    (tmp_path / "bin").mkdir()
    with program(tmp_path / "bin"):
        yield folder


@pytest.mark.slow
def test_the_commands_of_pages_print_what_they_show(place):
    """The later pages go on with what the earlier ones have made."""
    for page in PAGES:
        run_blocks = [b for b in blocks(DOCS / "organisers" / page) if not b.reason]
        assert len(run_blocks) > 4, page
        for block in run_blocks:
            run_block(block, place, place.parent / "bin")


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb", "a\nb\n", True),
        ("a 0.01 s", "a 12.50 s\n", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...\nd", "a\nd\n", True),
        ("...\nd", "c\nd\n", True),
        ("a", "a\nb\n", False),
        ("a\n...", "b\na\n", False),
        ("0.91", "0.92\n", False),
    ],
)
def test_what_is_shown_is_compared_with_what_was_printed(shown, printed, expected):
    assert bool(is_shown(shown, printed)) is expected


def test_blocks_that_are_not_run_say_why():
    """And a misspelt comment is no comment that is taken for one."""
    for name in PAGES:
        text = (DOCS / "organisers" / name).read_text(encoding="utf-8")
        comments = re.findall(r"<!--.*?-->", text)
        assert all(COMMENT.fullmatch(comment) for comment in comments), name


def links():
    """Links of all pages to files, as (page, target)."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            yield page, target


def test_links_stay_within_the_documentation():
    """Whether the page is there is for the build of the site to say."""
    for page, target in links():
        path = (page.parent / target).resolve()
        assert path.is_relative_to(DOCS), f"{page}: {target}"


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("DICOM-SEG", "participants/submission.md"),
        ("conda", "index.md"),
        ("Windows", "index.md"),
        ("resume", "organisers/machines.md"),
        ("`flare score`", "participants/before-you-submit.md"),
        ("DASK_DISTRIBUTED__COMM__TLS__", "organisers/machines.md"),
        ("scores.sqlite", "reference/versions.md"),
    ],
)
def test_what_users_search_for_is_on_a_page(words, page):
    """The search of the site knows the words of the pages, and no others."""
    assert words in (DOCS / page).read_text(encoding="utf-8")


INTERNAL = {"FLARE_COMMIT", "FLARE_COMPLETE", "FLARE_PROGRAM"}
"""Variables that nobody sets by hand, or that the first page has."""


def test_every_variable_that_is_read_is_in_the_table():
    scripts = [
        *ROOT.glob("*.sh"),
        *(ROOT / "scripts").glob("*.sh"),
        ROOT / "Dockerfile",
    ]
    scripts += [*(ROOT / "flare").rglob("*.py"), *(ROOT / "examples").rglob("*.sh")]
    text = "".join(path.read_text(encoding="utf-8") for path in scripts)
    page = (DOCS / "organisers" / "container.md").read_text(encoding="utf-8")

    found = set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", page.split("## Environment")[1]))

    assert found == set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", text)) - INTERNAL
