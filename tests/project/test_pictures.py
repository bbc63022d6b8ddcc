"""The pictures of README: those that the script draws, and small."""

import re
import subprocess
import sys

import pytest

from tests.builders import ROOT

PICTURES = ROOT / "docs" / "pictures"


def test_readme_shows_what_the_script_draws():
    script = (ROOT / "scripts" / "pictures.py").read_text()
    drawn = set(re.findall(r'"(page-[a-z]+)"', script))
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"docs/pictures/(page-[a-z]+)\.png", readme)

    assert set(shown) == drawn
    assert {file.stem for file in PICTURES.glob("page-*.png")} == drawn


@pytest.mark.parametrize("file", sorted(PICTURES.glob("*.png")), ids=lambda f: f.stem)
def test_a_picture_is_small(file):
    assert file.stat().st_size < 120_000


@pytest.mark.browser
@pytest.mark.usefixtures("page_browser_path")
def test_the_script_draws_them(tmp_path):
    """Into a copy, as fonts differ from computer to computer."""
    command = [sys.executable, ROOT / "scripts" / "pictures.py", tmp_path]

    subprocess.run(command, check=True, capture_output=True)

    for file in PICTURES.glob("page-*.png"):
        assert (tmp_path / file.name).read_bytes().startswith(b"\x89PNG")
