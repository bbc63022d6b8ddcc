"""What `docs/developers/adding.md` asks for is asked for here, too."""

import ast
import inspect
import re
import runpy
from dataclasses import fields

import pytest

from flare.challenge.answers import KINDS
from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import ANSWER_METRICS, METRICS
from flare.challenge.reading import challenge_names
from flare.cli.command import _declared
from flare.cli.main import command_names, load
from flare.common.options import KEY
from flare.ranking.uncertainty import BY_CASE, METHODS
from flare.results.efficiency_csv import CaseRecord
from tests.builders import ROOT

FOLDERS = sorted(file.parent for file in (ROOT / "flare").rglob("__init__.py"))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("reference/challenge-files.md", challenge_names()),
        ("reference/metrics.md", [own.title for own in METRICS.values()]),
        ("reference/answers.md", [f"`{name}`" for name in (*KINDS, *ANSWER_METRICS)]),
        ("organisers/lesions.md", [f'`"{name}"`' for name in DEFINITIONS]),
        ("organisers/measuring.md", [f"`{row.name}`" for row in fields(CaseRecord)]),
    ],
)
def test_a_page_names_everything_that_was_added(page, names):
    text = (ROOT / "docs" / page).read_text()

    assert [name for name in names if name not in text] == []


def test_the_documentation_has_the_words_of_each_way_of_comparing():
    """Its pages name the places of sentences, which are those of the records."""
    script = runpy.run_path(str(ROOT / "scripts" / "docs_methods.py"))
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))

    parts = script["METHOD_PARTS"]

    assert [mark for mark in parts if pages.count(mark) != 1] == []
    texts = " ".join(parts.values())
    for method in METHODS:
        text = method.paper.format(**script["COUNTED"])
        assert text in texts, f"{method.short}: METHOD_PARTS has no place for it"
        assert method.kind, f"{method.short}: kind says what it is for, behind others"
    assert BY_CASE.short in pages


@pytest.mark.parametrize("name", sorted({*command_names()} - {"bundle", "challenge"}))
def test_a_help_tells_the_default_that_an_option_has(name):
    for row, _ in _declared(
        inspect.getclosurevars(load(name).callback).nonlocals["kind"]
    ):
        declared = row.metadata[KEY]
        told = re.search(r"\(default: ([\w.]+)\)", declared.help)
        if told and row.default not in (None, ""):
            parsed = declared.parse(told[1]) if declared.parse else told[1]
            assert parsed == getattr(row.default, "value", row.default), row.name


@pytest.mark.parametrize(
    "folder", FOLDERS[1:], ids=[str(folder.relative_to(ROOT)) for folder in FOLDERS[1:]]
)
def test_what_a_folder_says_of_its_registries_is_there(folder):
    """Files are named from the folder or from the root, and then what is in them."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    words = re.findall("``(.+?)``", docstring)
    paths = [word for word in words if "/" in word or word.endswith(".py")]
    paths = [path for path in paths if not path.startswith("NAME")]
    places = [
        folder / path if (folder / path).exists() else ROOT / path for path in paths
    ]

    assert [place for place in places if not place.exists()] == []
    files = [place for place in places if place.is_file()]
    code = "".join(file.read_text() for file in files or folder.glob("*.py"))
    names = [word for word in words if word.isidentifier()]
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []
