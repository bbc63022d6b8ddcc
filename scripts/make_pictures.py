"""Draws the pictures of README and docs: pages of the demonstration, and the flow.

    .venv/bin/python scripts/make_pictures.py

Needs Chromium, and what the tests need. Beside each picture of a page stands a file of
its words; a test tells if they are not those of today's page.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from docs_examples import example_files  # noqa: E402
from flow_picture import flow_picture  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1000, "height": 640}
"""The size of a window, in pixels."""
MOST_BYTES = 150_000
"""The limit of the file of a picture."""

PAGES = {
    "page-evaluation": "examples/evaluation/index.html",
    "page-case": "examples/evaluation/cases/demo_001.html",
    "page-comparison": "examples/comparison/index.html",
    "page-ranking": "examples/ranking/index.html",
}
"""The page of each picture, by its place in the site."""

WITHOUT_WORDS = ("script", "style", "title", "svg", "td")
"""Elements of numbers, names of teams, and drawings."""

SEEN = """names => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const [range, seen] = [document.createRange(), []];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    range.selectNodeContents(node);
    const {bottom, height} = range.getBoundingClientRect();
    const isShown = height && bottom <= innerHeight;
    if (isShown && !node.parentElement.closest(names)) seen.push(node.data);
  }
  return seen;
}"""
"""All texts that end on the first screen."""


class _Words(HTMLParser):
    """The texts of a page in their order, but for those without words."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.depth += tag in WITHOUT_WORDS

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in WITHOUT_WORDS

    def handle_data(self, data: str) -> None:
        if not self.depth and re.search(r"[^\W\d]", data):
            self.texts.append(" ".join(data.split()))


def page_words(html: str) -> list[str]:
    """The headings, captions and sentences of a page, with 0 for each number."""
    parser = _Words()
    parser.feed(html)
    parser.close()
    return [re.sub(r"\d+(\.\d+)?", "0", text) for text in parser.texts]


def words_until(html: str, seen: list[str]) -> list[str]:
    """The words of a page from its beginning to the last one that is seen."""
    words, end = page_words(html), 0
    for text in page_words("<br>".join(text.replace("<", "&lt;") for text in seen)):
        if text in words[end:]:
            end = words.index(text, end) + 1
    return words[:end]


def main() -> None:
    """Draw all pictures, and write their words."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        sys.exit("There is no Chromium. Install it, such as: apt install chromium")
    (PICTURES / "flow.svg").write_text(flow_picture(), encoding="utf-8")
    files = dict(example_files(ROOT))
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        window = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        ).new_page(viewport=SIZE, color_scheme="light")
        for picture, place in PAGES.items():
            page = Path(name) / "page.html"
            page.write_bytes(files[place])
            window.goto(page.as_uri())
            data = window.screenshot()
            if len(data) > MOST_BYTES:
                sys.exit(f"{picture}: {len(data)} bytes, expected {MOST_BYTES} at most")
            (PICTURES / f"{picture}.png").write_bytes(data)
            seen = window.evaluate(SEEN, ", ".join(WITHOUT_WORDS))
            words = words_until(files[place].decode(), seen)
            file = PICTURES / f"{picture}.txt"
            file.write_text("".join(f"{text}\n" for text in words), encoding="utf-8")
            sys.stdout.write(f"{picture}: {len(data) // 1024} kB\n")


if __name__ == "__main__":
    main()
