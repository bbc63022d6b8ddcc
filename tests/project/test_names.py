"""The public names: `import flare` costs next to nothing until one is used."""

import ast
import subprocess
import sys

import pytest

import flare
from tests.builders import ROOT


def test_the_table_of_names_is_that_of_all():
    assert list(flare._MODULES) == flare.__all__ == sorted(flare.__all__)


@pytest.mark.parametrize("name", flare.__all__)
def test_every_name_is_there(name):
    assert getattr(flare, name)
    assert name in dir(flare)
    assert getattr(flare, name) is getattr(sys.modules[flare._MODULES[name]], name)


def test_type_checkers_read_the_same_table():
    tree = ast.parse((ROOT / "flare" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))

    found = {alias.name: node.module for node in block.body for alias in node.names}

    assert found == flare._MODULES


def test_another_name_is_none():
    with pytest.raises(AttributeError, match="'flare' has no attribute 'dise'"):
        flare.dise  # noqa: B018


def test_to_import_it_costs_next_to_nothing():
    code = (
        "import sys, time\n"
        "before, start = set(sys.modules), time.process_time()\n"
        "import flare\n"
        "print(time.process_time() - start, *set(sys.modules) - before)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    seconds, *loaded = run.stdout.split()
    assert float(seconds) < 0.1
    assert [name for name in loaded if name.startswith("flare")] == ["flare"]
    assert "numpy" not in loaded
