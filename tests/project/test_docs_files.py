"""The page about files: made of the schemas, and whole."""

import importlib.util
import re

import pytest

import flare
from tests.builders import ROOT
from tests.builders.results import ROWS, write_table
from tests.builders.schemas import SCHEMAS


@pytest.fixture(scope="module")
def page():
    """What the site shows."""
    path = ROOT / "scripts" / "docs_files.py"
    spec = importlib.util.spec_from_file_location("docs_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.files_page()


def section_of(page, title):
    (found,) = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE
    )
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_file_has_a_section_with_all_its_keys(page, name):
    schema = SCHEMAS[name]

    section = section_of(page, schema["title"])

    assert f"(schemas/{name}.schema.json)" in section
    for key, child in schema.get("properties", {}).items():
        assert f"| `{key}` | " in section
        assert child["description"] in section


def test_a_row_says_type_meaning_and_whether_it_is_always_there(page):
    rows = section_of(page, "ranking.json").splitlines()
    assert (
        "| `ranking[].rank` | whole number | Its rank; teams with equal scores"
        " share one, and the ranks behind it are left out. | yes |"
    ) in rows


def test_values_by_case_are_a_row_of_their_metric(page):
    section = section_of(page, "metrics.json")

    assert "| `case.dsc_ORGAN, case.nsd_ORGAN` | number, by case | " in section
    assert "^(" not in section


def test_the_layout_has_all_files_of_a_ranking(page, tmp_path):
    table = write_table(tmp_path / "results.csv", ROWS)
    _, _, tree = page.partition("\nRANKING ")
    tree, _, _ = tree.partition("\n\n")

    flare.rank(table, metrics=["dsc"], bootstrap=0).write(tmp_path / "ranking")

    names = {file.name for file in (tmp_path / "ranking").iterdir()}
    assert set(re.findall(r"── ([\w.]+)", tree)) == names
