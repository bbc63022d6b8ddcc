"""The pictures of README and docs show the words of today's pages."""

import re
import runpy
import sys

import pytest

from tests.builders import ROOT

pytestmark = pytest.mark.newest

PICTURES = ROOT / "docs" / "pictures"
ADVICE = "run scripts/make_pictures.py"


@pytest.fixture(scope="module")
def script():
    """The names that scripts/make_pictures.py defines."""
    before = [*sys.path]
    yield runpy.run_path(str(ROOT / "scripts" / "make_pictures.py"))
    sys.path[:] = before


def test_pictures_show_the_words_of_todays_pages(script):
    pages = dict(script["example_files"](ROOT))
    for name, place in script["PAGES"].items():
        shown = (PICTURES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        words = script["page_words"](pages[place].decode())
        assert len(shown) >= 10
        assert words[: len(shown)] == shown, f"{name}: {ADVICE}"
    flow = (PICTURES / "flow.svg").read_text(encoding="utf-8")
    assert flow == script["flow_picture"](), ADVICE


def test_every_picture_is_small_and_made_by_the_script(script):
    """But for the drawing of what NSD counts, which is of no data."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)

    names = set(re.findall(r"pictures/([\w-]+\.(?:svg|png))", text))

    made = {f"{name}.png" for name in script["PAGES"]}
    assert names == made | {"flow.svg", "nsd.svg"}
    readme = pages[0].read_text(encoding="utf-8").splitlines()
    assert max(map(len, readme)) <= 120
    assert max((PICTURES / name).stat().st_size for name in names) <= 150_000


PAGE = """<html><head><title>A</title><style>b {}</style></head><body>
<h1>Case 12: 0.85 of  it</h1><svg><text>liver</text></svg><p>Not &lt;
scored</p><table><th>DSC</th><td>team <b>x</b></td></table><p>0.5</p><p>End</p>"""


def test_words_are_headings_and_sentences_without_numbers(script):
    """Those of cells, drawings and styles are left out."""
    words = script["page_words"](PAGE)

    assert words == ["Case 0: 0 of it", "Not < scored", "DSC", "End"]
    assert script["words_until"](PAGE, ["Case 12: 0.85 of it", " DSC\n"]) == words[:3]
    assert script["words_until"](PAGE, ["Not < scored", "?"]) == words[:2]
