"""Draws the pictures of README and the site: pages of reports in a browser.

    .venv/bin/python scripts/pictures.py [FOLDER]

Needs Chromium, and what the tests need. The pages are made from the demonstration set
and from simulated results, which ./demo.sh writes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1000, "height": 640}
"""Of a window, in pixels."""


@dataclass(frozen=True)
class Picture:
    """A part of a page."""

    name: str
    """Of the file, without .png."""
    words: Sequence[str]
    """Of `flare report`, but for --output."""
    page: str
    """Below the folder that it writes."""
    part: str
    """CSS of what stands at the top of the picture."""


def pictures(work: Path) -> Iterator[Picture]:
    """All pictures, from results in a folder."""
    metrics, organiser = str(work / "one" / "metrics.json"), ("--audience", "organiser")
    maps = (
        *("--ground-truth", str(ROOT / "ground-truth")),
        *("--predictions", str(ROOT / "examples" / "predictions")),
    )
    teams = str(work / "teams")
    yield Picture("page-evaluation", (metrics, *organiser), "index.html", "body")
    yield Picture(
        "page-case", (metrics, *organiser, *maps), "cases/demo_001.html", "body"
    )
    both = [f"{teams}/{team}/metrics.json" for team in ("team_07", "team_02")]
    yield Picture("page-comparison", (*both, *organiser), "index.html", "body")
    yield Picture("page-ranking", (teams, *organiser), "index.html", "body")


def flare(*words: str) -> None:
    """Run a command of the program."""
    command = [sys.executable, "-m", "flare", *words]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main(target: Path = PICTURES) -> None:
    """Draw all pictures into a folder."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        sys.exit("There is no Chromium. Install it, such as: apt install chromium")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        work = Path(name)
        given = ("--ground-truth", "ground-truth", "--input", "examples/predictions")
        flare("evaluate", *given, "--output", str(work / "one"))
        flare("simulate", "--output", str(work / "teams"))
        window = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox"]
        ).new_page(viewport=SIZE, color_scheme="light")
        for picture in pictures(work):
            folder = work / picture.name
            flare("report", *picture.words, "--output", str(folder))
            window.goto((folder / picture.page).as_uri())
            top = window.locator(picture.part).first.bounding_box()
            window.evaluate("y => scrollTo(0, y)", top["y"])
            file = target / f"{picture.name}.png"
            window.screenshot(path=file)
            sys.stdout.write(f"{file.name}: {file.stat().st_size // 1024} kB\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
