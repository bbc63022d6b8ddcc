"""The order of the modules is the order in which data flows."""

import ast
import re

import pytest

import flare
from tests.builders import ROOT

MODULES = (
    "_version",
    "names",
    "errors",
    "files",
    "schema",
    "challenge",
    "rulebook",
    "arrays",
    "occupancy",
    "streams",
    "header",
    "nifti",
    "textheaders",
    "labelmaps",
    "placement",
    "ctvalues",
    "organfiles",
    "submission",
    "jobs",
    "areas",
    "surfels",
    "metrics",
    "scoring",
    "workers",
    "results",
    "resources",
    "evaluation",
    "unpacking",
    "checking",
    "synthetic",
    "phases",
    "leaderboard",
    "download",
    "upload",
    "rehearsal",
    "shim",
    "layers",
    "imagetar",
    "imagejson",
    "imagechecks",
    "archive",
    "repack",
    "disk",
    "emptyimage",
    "engine",
    "weaknesses",
    "hostload",
    "lock",
    "cases",
    "ledger",
    "hostrecord",
    "gpu",
    "traces",
    "sampling",
    "container",
    "efficiency",
    "outputs",
    "status",
    "guard",
    "runner",
    "resultrows",
    "rollcall",
    "origins",
    "teamfolders",
    "session",
    "measuring",
    "rescoring",
    "plots",
    "lookalikes",
    "teams",
    "decisions",
    "ranking",
    "stability",
    "pairwise",
    "schemes",
    "recount",
    "flags",
    "analysis",
    "titles",
    "methods",
    "rankfiles",
    "simulation",
    "console",
    "commands",
    "cli",
    "__main__",
)
"""From first to last; a module imports only from those before it."""

PACKAGE = ROOT / "flare"


def test_every_module_has_its_place():
    found = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}

    assert found == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_those_before_it(module):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module != "flare", "import from the module that has it"
            if str(node.module).startswith("flare."):
                imported.add(str(node.module).removeprefix("flare."))
        if isinstance(node, ast.Import) and module != "cli":
            assert not any(alias.name.startswith("flare") for alias in node.names)

    assert imported <= set(MODULES[: MODULES.index(module)])


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_in_its_first_line_what_it_does(module):
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))

    first = ast.get_docstring(tree).splitlines()[0]

    assert first.endswith((".", ":"))
    assert f"`flare/{module}.py`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_help_of_the_package_says_what_to_call_for_what():
    """And every name that it promises is there."""
    called = re.findall(r"flare\.(\w+)\(", flare.__doc__)

    assert set(called) >= {"evaluate", "write_metrics", "dice", "read_challenge"}
    assert set(called) <= set(flare.__all__)
    assert max(map(len, flare.__doc__.splitlines())) <= 88
