"""What `docs/developers/adding.md` asks for is asked for here, too."""

import inspect
import re
from dataclasses import fields

import pytest

from flare.challenge.metrics import METRICS
from flare.challenge.reading import challenge_names
from flare.cli.command import _declared
from flare.cli.main import command_names, load
from flare.common.options import KEY
from flare.results.efficiency_csv import CaseRecord
from tests.builders import ROOT


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("reference/challenge-files.md", challenge_names()),
        ("reference/metrics.md", [own.title for own in METRICS.values()]),
        ("organisers/measuring.md", [f"`{row.name}`" for row in fields(CaseRecord)]),
    ],
)
def test_a_page_names_everything_that_was_added(page, names):
    text = (ROOT / "docs" / page).read_text()

    assert [name for name in names if name not in text] == []


@pytest.mark.parametrize("name", sorted({*command_names()} - {"challenge"}))
def test_a_help_tells_the_default_that_an_option_has(name):
    for row, _ in _declared(
        inspect.getclosurevars(load(name).callback).nonlocals["kind"]
    ):
        declared = row.metadata[KEY]
        told = re.search(r"\(default: ([\w.]+)\)", declared.help)
        if told and row.default not in (None, ""):
            parsed = declared.parse(told[1]) if declared.parse else told[1]
            assert parsed == getattr(row.default, "value", row.default), row.name
