"""The house: which room may use which."""

import ast
import os
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter

import pytest

import flare
from flare.challenge.answers import KINDS
from flare.challenge.metrics import ANSWER_METRICS
from flare.evaluation.metrics.kernel import kernel_problem
from tests.builders import ROOT, run_command

LEVELS = (
    {"common"},
    {"challenge", "statistics"},
    {"results"},
    {"answers"},
    {"evaluation", "ranking"},
    {"measuring"},
    {"platforms", "reports"},
    {"cli"},
)
"""The rooms from left to right; a room imports only from rooms to its left."""

PACKAGE = ROOT / "flare"

MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree_of(module):
    return ast.parse(module.read_text(encoding="utf-8"))


@cache
def nodes_of(module):
    return tuple(ast.walk(tree_of(module)))


def rooms_used_by(module):
    rooms = set()
    for node in nodes_of(module):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module != "flare", "import from the module that has it"
            names = [node.module]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("flare.")}
    return rooms


def test_the_rooms_are_what_flare_shows():
    found = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}

    assert found == {*set.union(*LEVELS), "__init__.py", "__main__.py", "py.typed"}


def test_an_installed_copy_has_every_folder_with_modules():
    """The list is in pyproject.toml, as one of its folders lies outside flare/."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = [path.parent.relative_to(ROOT).parts for path in MODULES]
    packages = {".".join(folder) for folder in folders}

    listed = project["tool"]["setuptools"]["packages"]

    assert listed == [*sorted(packages), "flare.demonstration_set"]


@pytest.mark.parametrize("number", range(len(LEVELS)))
def test_a_room_imports_only_from_rooms_to_its_left(number):
    left = set().union(*LEVELS[:number])
    for room in LEVELS[number]:
        for module in (PACKAGE / room).rglob("*.py"):
            wrong = rooms_used_by(module) - left - {room}
            assert not wrong, f"{module.relative_to(ROOT)} imports from {wrong}"


# Without the kernel, SciPy finds the boxes of labels.
A_RUN = pytest.param(False, marks=pytest.mark.skipif(bool(kernel_problem()), reason=""))


@pytest.mark.parametrize("is_help", [A_RUN, True], ids=["a run", "help"])
def test_scoring_loads_nothing_of_the_other_wings(tmp_path, is_help):
    words = ["--input", "examples/predictions", "--ground-truth", "ground-truth"]
    words += ["--output", str(tmp_path), "--workers", "1"]
    code = (
        f"import sys; sys.argv = ['evaluate.py', *{['--help'] if is_help else words}]\n"
        "import os; os._exit = sys.exit\n"
        "try:\n    import runpy; runpy.run_path('evaluate.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print('LOADED', *sys.modules)"
    )

    run = run_command(
        sys.executable, "-c", code, env={**os.environ, "FLARE_COMMIT": "of the image"}
    )

    loaded = run.stdout.rpartition("LOADED ")[2].split()
    assert "flare.cli.commands.evaluate" in loaded
    assert ("flare.evaluation.evaluate" in loaded) == (not is_help)
    assert (tmp_path / "metrics.json").exists() == (not is_help)
    wings = ("flare.measuring", "flare.ranking", "flare.platforms", "flare.reports")
    others = (
        *("pandas", "SimpleITK", "pynvml", "nibabel", "scipy"),
        # Of the standard library: each is a fiftieth of a start-up, or more; the last
        # three are a hundredth together.
        *("email", "importlib.metadata", "multiprocessing", "subprocess", "tempfile"),
        *("csv", "difflib", "shlex"),
        *(["flare.challenge.", "numpy"] if is_help else ["shutil", "zipfile"]),
    )
    assert [name for name in loaded if name.startswith((*wings, *others))] == []


def name_of(module):
    """A module as imports call it."""
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_no_module_imports_itself_by_way_of_others():
    """Nor for its types alone, or within a function."""
    names = {name_of(module) for module in MODULES} - {"flare"}
    graph = {}
    for module in MODULES:
        used = graph.setdefault(name_of(module), set())
        for node in nodes_of(module):
            if isinstance(node, ast.ImportFrom):
                used.add(node.module)
                used |= {f"{node.module}.{alias.name}" for alias in node.names}
            if isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
        used &= names - {name_of(module)}

    assert len(list(TopologicalSorter(graph).static_order())) >= len(names)


@pytest.mark.newest
def test_no_code_asks_for_the_name_of_a_kind_or_of_a_metric_of_answers():
    """What differs by kind is a field of its record."""
    askers = []
    for module in MODULES:
        nodes = nodes_of(module)
        compared = [node for node in nodes if isinstance(node, ast.Compare)]
        texts = [own for node in compared for own in ast.walk(node)]
        names = {own.value for own in texts if isinstance(own, ast.Constant)} & {*KINDS}
        if module.parent.name != "challenge":
            texts = (own for own in nodes if isinstance(own, ast.Constant))
            names |= {own.value for own in texts} & {*ANSWER_METRICS}
        askers += [(module.name, name) for name in names]

    assert askers == []


# --- The public names -------------------------------------------------------------


def test_the_table_of_names_is_whole():
    """Type checkers read the same one."""
    assert list(flare._MODULES) == flare.__all__ == sorted(flare.__all__)
    for name in flare.__all__:
        assert getattr(flare, name) is getattr(sys.modules[flare._MODULES[name]], name)
    (block,) = (
        n for n in tree_of(PACKAGE / "__init__.py").body if isinstance(n, ast.If)
    )
    found = {alias.name: node.module for node in block.body for alias in node.names}
    assert found == flare._MODULES
    with pytest.raises(AttributeError, match="'flare' has no attribute 'dise'"):
        flare.dise  # noqa: B018


def test_to_import_it_costs_next_to_nothing():
    code = (
        "import sys, time\n"
        "before, start = set(sys.modules), time.process_time()\n"
        "import flare\n"
        "print(time.process_time() - start, *set(sys.modules) - before)\n"
    )
    run = run_command(sys.executable, "-c", code)

    seconds, *loaded = run.stdout.split()
    assert float(seconds) < 0.1
    assert [name for name in loaded if name.startswith("flare")] == ["flare"]
    assert "numpy" not in loaded
