"""What tests of pages find in them: nobody would miss it if it found nothing."""

import pytest

from tests.builders.barriers import COLOURS, find_barriers, find_moved

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><title>Page</title><style>
body {{ background: white; color: black }} div {{ height: 1rem; overflow: hidden }}
{style}
</style></head><body><main><h1>Page</h1>{body}</main></body></html>"""

CELLS = "<table><tr>" + "<td>word</td>" * 50 + "</tr></table>"


@pytest.fixture(scope="module")
def page(page_browser):
    """A page, which each test fills anew."""
    found = page_browser.new_page()
    yield found
    found.close()


def show(page, body, style=""):
    """Show some HTML."""
    page.goto("about:blank")
    page.set_content(PAGE.format(style=style, body=body))


def rules_broken(page, *rules):
    """The rules that are broken, each as often as it is told."""
    return [rule for rule, _, _ in find_barriers(page, rules)]


@pytest.mark.parametrize(
    ("style", "count"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("td { color: #aaa }", 1, id="all alike"),
        pytest.param("td:nth-child(30) { color: #aaa }", 1, id="one"),
        pytest.param("td:nth-child(30) { background: #555 }", 1, id="behind one"),
        pytest.param("td:nth-child(30) { opacity: 0.3 }", 1, id="seen through"),
        pytest.param("table { background: #555 }", 1, id="behind all"),
        pytest.param("tr { opacity: 0.3 }", 1, id="around"),
        pytest.param("td { font-size: 24px; color: #888 }", 0, id="large"),
        pytest.param(
            "td { font-size: 24px; color: #888 } td:nth-child(9) { font-size: 9px }",
            1,
            id="one small",
        ),
    ],
)
def test_one_of_each_style_is_told(page, style, count):
    show(page, CELLS, style)

    assert rules_broken(page) == ["color-contrast"] * count
    assert rules_broken(page, *COLOURS) == ["color-contrast"] * count


@pytest.mark.parametrize(
    "first",
    [
        "<td>x</td>",
        "<td style='display: none'>word</td>",
        "<td><div>word</div></td>",
    ],
    ids=["one letter", "hidden", "around"],
)
def test_others_are_asked_where_the_first_one_tells_nothing(page, first):
    """Axe does not know of a single letter, which may be a drawing."""
    body = f"<table><tr>{first}{'<td>word</td>' * 3}</tr></table>"

    show(page, body, "td { color: #aaa }")

    assert "color-contrast" in rules_broken(page)


def test_one_that_is_hidden_in_a_closed_block_tells_nothing(page):
    inner = "<p>word</p>"
    blocks = f"<details><summary>a</summary>{inner}</details><details open>{inner}"

    show(page, f"{blocks}<summary>a</summary></details>", "p { color: #aaa }")

    assert rules_broken(page, *COLOURS) == ["color-contrast"]


def test_every_other_rule_looks_at_everything(page):
    show(page, "<img src='data:,'>" * 3)

    assert rules_broken(page) == ["image-alt"] * 3
    assert rules_broken(page, *COLOURS) == []


def test_all_rules_of_colours_are_known(page):
    """But for the one that asks for more contrast, which axe applies if it is told."""
    show(page, "")
    find_moved(page)  # brings axe

    told = page.evaluate("axe.getRules(['cat.color']).map(({ruleId}) => ruleId)")

    assert set(told) - {"color-contrast-enhanced"} == set(COLOURS)


def test_what_moves_or_vanishes_is_told(page):
    show(page, "<p id=a>a</p><p id=b>b</p><p id=c>c</p>")
    assert find_moved(page) == []

    def moved(name, value, **options):
        change = "([name, value]) => document.querySelector('#b').style[name] = value"
        page.evaluate(change, [name, value])
        return [each[:9] for each in find_moved(page, **options) if each[:2] == "<p"]

    assert moved("color", "red") == []
    assert moved("visibility", "hidden") == ['<p id="b"']
    assert moved("paddingTop", "9px") == ['<p id="b"', '<p id="c"']
    assert moved("paddingTop", "0", but="#c") == ['<p id="b"']
