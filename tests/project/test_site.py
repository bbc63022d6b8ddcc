"""The documentation site: it is whole, spelt well, and anybody can read it anywhere.

A browser shows what was built, from its folder, without a server or a network.
"""

import json
import os
import re
import sys

import pytest

import flare
from flare.cli.commands.explain import error_classes
from flare.cli.main import command_names
from tests.builders import ROOT, run_command
from tests.builders.barriers import COLOURS, find_barriers
from tests.builders.browser import Window

pytestmark = pytest.mark.docs

OWN_SCHEMES = ("about", "blob", "data")
"""Of addresses that lead nowhere."""


def build(sources, *options):
    words = (sys.executable, "-m", "mkdocs", "build", "--strict")
    words += ("--config-file", "scripts/mkdocs.yml", *options)
    settings = {"NO_MKDOCS_2_WARNING": "true", "PYTHONPATH": str(ROOT)}
    return run_command(*words, cwd=sources, env=os.environ | settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site: as it was just built, or built now."""
    if "FLARE_SITE" in os.environ:
        return ROOT / os.environ["FLARE_SITE"]
    folder = tmp_path_factory.mktemp("site")
    run = build(ROOT, "--site-dir", folder)
    assert run.returncode == 0, run.stderr
    return folder


def ids(site, page):
    return re.findall(r'\bid="([^"]+)"', (site / page).read_text(encoding="utf-8"))


# --- It is whole ------------------------------------------------------------------


def test_every_message_command_and_name_has_a_section(site):
    codes = {kind.code for kind in error_classes()}
    assert codes <= set(ids(site, "participants/messages.html"))
    assert set(command_names()) <= set(ids(site, "reference/commands.html"))
    names = {f"flare.{name}" for name in flare.__all__}
    assert names <= set(ids(site, "python/index.html"))


# --- Questions find their page ------------------------------------------------------

QUESTIONS = {
    "what does F07 mean": "participants/messages.html#F07",
    "podman": "organisers/container.html",
    "tie": "organisers/ranking.html#the-rule",
    "codabench": "organisers/codabench.html",
    "nan": "reference/answers.html#what-a-submission-has-to-look-like",
    "slurm": "organisers/machines.html#slurm",
    "cite": "organisers/index.html#8-write-the-paper",
    "GPU memory": "organisers/measuring.html",
    "lesion": "organisers/lesions.html",
    "windows": "index.html#install",
    "how do I add a case": "organisers/changes.html#add-a-case",
    "missing case": "participants/messages.html#F05",
    "how long": "organisers/budget.html",
    "licence of labels": "index.html#licence",
    "private registry": "organisers/container.html#2-build",
    "excel": "reference/answers.html#what-a-submission-has-to-look-like",
    "singularity": "organisers/machines.html#without-docker",
    "summary.json": "participants/before-you-submit.html#summary-json",
}
"""What people ask, and where the answer is; chosen before any of it was looked for."""


@pytest.mark.tools("node")
def test_questions_find_their_page_among_the_first_three(site):
    """And their section among its best two; the search is the browser's own."""
    words = ("node", ROOT / "tests" / "fakes" / "search.js", site)
    run = run_command(*words, input="\n".join(QUESTIONS))

    results = [json.loads(line)[:3] for line in run.stdout.splitlines()]
    hits = [{hit for page in pages for hit in page[:3]} for pages in results]
    missed = {
        q
        for (q, place), own in zip(QUESTIONS.items(), hits, strict=True)
        if place not in own
    }
    assert missed == set()


# --- It is spelt well -------------------------------------------------------------


def test_words_are_spelt_well(tmp_path):
    """British ones are; a misspelt one is found."""
    page = tmp_path / "page.md"
    page.write_text("The organisers recieve a coloured licence, labelled by centre.\n")
    paths = ("docs", "README.md", "CHANGELOG.md", ".github")

    run = run_command(sys.executable, "-m", "codespell_lib", *paths, "flare", page)

    assert run.stdout == f"{page}:1: recieve ==> receive\n"


# --- It needs nothing from elsewhere, and anybody can read it ------------------------


@pytest.fixture
def window(page_browser):
    """A window that finds no other computer."""
    with Window(page_browser) as found:
        yield found


def complaints(window, site):
    """What the page complained of, or asked of others than its own site."""
    own = (f"request of {site.as_uri()}/", *(f"request of {s}:" for s in OWN_SCHEMES))
    return [said for said in window.complaints if not said.startswith(own)]


def pages(site):
    """All but the reports, whose own tests look at them."""
    return sorted(
        str(file.relative_to(site))
        for file in site.rglob("*.html")
        if file.name != "404.html" and site / "examples" not in file.parents
    )


BROKEN = "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"

PALETTE = "label[for^=__palette]"
"""What changes the colours."""

SHOWN = f"{PALETTE}:not([hidden])"
"""One of the two."""


def wait_for_colours(page, scheme):
    page.locator(f"body[data-md-color-scheme={scheme}]").wait_for()
    page.locator(SHOWN).wait_for()


def test_every_page_is_complete_and_anybody_can_read_it(window, site):
    """What axe-core finds hard to read, or to use without a mouse, is a fault.

    In the dark only colours are different, and what changes them.
    """
    page = window.page

    for name in pages(site):
        window.open(site / name)
        assert page.locator("h1").first.is_visible()
        assert page.evaluate(BROKEN) == []
        wait_for_colours(page, "default")
        assert (name, find_barriers(page)) == (name, [])

        page.evaluate("label => document.querySelector(label).click()", SHOWN)

        wait_for_colours(page, "slate")
        in_the_dark = find_barriers(page, COLOURS)
        assert (name, in_the_dark) == (name, [])
        page.evaluate("localStorage.clear()")  # the next one is light again
        assert (name, complaints(window, site)) == (name, [])
