"""What CONTRIBUTING says is true."""

import ast
import re
import shlex

import pytest

from tests.builders import ROOT
from tests.builders.rooms import LEVELS

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_table_of_rooms_says_what_the_rooms_say_of_themselves():
    for room, purpose in re.findall(
        r"^\| `(flare/\w+/)` \| (.*) \|$", CONTRIBUTING, re.M
    ):
        code = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(code)).splitlines()[0] == purpose


def test_the_table_of_rooms_is_whole_and_in_order():
    """A room stands below all rooms that it may import from."""
    rooms = re.findall(r"^\| `flare/(\w+)/` \|", CONTRIBUTING, re.M)
    floors = [n for room in rooms for n, level in enumerate(LEVELS) if room in level]

    assert set(rooms) == set().union(*LEVELS)
    assert floors == sorted(floors)


def test_it_checks_the_scripts_that_ci_checks():
    """And ci checks all that there are."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace("\\\n", " ")
    (checked,) = re.findall(r'"\$bin/shellcheck" (.*)', ci)
    (told,) = re.findall(r"\.venv/bin/shellcheck (.*)", CONTRIBUTING)

    assert told.split() == checked.split()
    found = {path for word in shlex.split(checked)[1:] for path in ROOT.glob(word)}
    folders = ("", "scripts", "examples", "flare", "tests", "benchmarks")
    scripts = {
        path
        for folder in folders
        for path in (ROOT / folder).glob("**/*.sh" if folder else "*.sh")
    }
    assert found == {*scripts, ROOT / ".ci" / "run"}


@pytest.mark.parametrize(
    "path",
    sorted(
        set(re.findall(r"`((?:\.ci|benchmarks|docs|flare|scripts)/\S+)`", CONTRIBUTING))
        | set(re.findall(r"\]\(([^)#]+)\)", CONTRIBUTING))
    ),
)
def test_what_it_names_is_there(path):
    assert (ROOT / path).exists()


def test_the_site_can_show_it():
    """There, links to pages lead on, and there are no others."""
    links = re.findall(r"\]\(([^)]+)\)", CONTRIBUTING)

    assert all(link.startswith("docs/") for link in links)


@pytest.mark.parametrize("page", ["index", "adding", "tests"])
def test_files_that_developers_are_sent_to_are_there(page):
    """Paths begin at the top, in flare/, or in tests/; NAME is up to the reader."""
    text = (ROOT / "docs" / "developers" / f"{page}.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./-]+\.(?:py|md|toml|json|sh|yml|c)|[\w./]+/)`", text)

    tops = [ROOT, *(ROOT / top for top in ("flare", "tests", "flare/evaluation"))]
    missing = {
        path
        for path in paths
        if "NAME" not in path and not any((top / path).exists() for top in tops)
    }
    # A name alone is that of a file which the sentence has the folder of.
    files = {file.name for top in tops[1:] for file in top.rglob("*.py")}
    assert missing <= files | {"predict.sh"}  # which teams write
