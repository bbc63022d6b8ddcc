"""Lesions by number on the pages of cases: their kinds, sizes, scores and slices."""

import numpy as np
import pytest

from flare.reports.cases.all_teams import all_teams_pages
from flare.reports.cases.options import CaseOptions
from tests.builders.case_pages import evaluated, reoriented, write_teams_on_cases
from tests.builders.pages import Page

RULES = """
name = "Own"
metrics = ["dsc", "false_volume"]
organs = [
  {{ label = [1, 2], name = "tumour", lesions = "{0}" }},
  {{ label = 2, name = "core" }},
  {{ label = 3, name = "nowhere", lesions = "{0}" }},
]
"""

# Voxels of 2 mm3: 12, of which 8 are found; 4 missed, 4 false, and a speck.
FOUR = np.zeros((2, 16, 12, 12), dtype=np.uint8)
FOUR[0, 2:4, 2:4, 2:5] = FOUR[0, 6, 9, 2] = 1
FOUR[1, 2:4, 2:4, 2:4] = FOUR[0, 10, 2:4, 8:10] = 2
FOUR[1, 13:15, 9, 9:11] = 1

# A lesion of 15 voxels has one of 3, and 4 of 9 of another, of which a second lesion of
# 15 has 4, too. So all IoUs are 0.2: which of the prediction is first decides.
EQUAL = np.zeros((2, 2, 30, 3), dtype=np.uint8)
EQUAL[0, 0, 0, 1] = EQUAL[0, 1, :14, 1] = EQUAL[0, 1, 15:, 1] = 1
EQUAL[1, 1, :3, 1] = EQUAL[1, 1, 10:19, 1] = 1

SPECKS = np.zeros((2, 6, 12, 12), dtype=np.uint8)
SPECKS[:, 2, 2:4, 2:4] = SPECKS[1, 4, ::2, ::2] = 1

# The caption, and how rows begin: lesion, ml, DSC where it is defined, and slices.
BY_BRATS = """1 missed (0.008 ml); 1 false (0.008 ml); 1 found (0.024 ml)
missed 2 0.008 - 11 3 9
false 1 0.008 - 14 10 10
found 1 0.024 0.800 3 3 3"""
BY_AUTOPET = """2 missed (0.01 ml); 1 false (0.008 ml); 1 found (0.024 ml)
missed 2 0.008 11 3 9
missed 3 0.002 7 10 3"""
MANY = "0 missed (0 ml); 36 false (0.072 ml, 16 smaller ones are not shown); 1 found"
MANY = "\n".join([MANY, *(f"false {n} 0.002 5 " for n in range(1, 21)), "found 1"])


@pytest.mark.parametrize(
    ("definition", "maps", "axes", "expected"),
    [
        *(("brats23-met", FOUR, axes, BY_BRATS) for axes in ("LPS", "RAS", "PSR")),
        ("autopet", FOUR, "LPS", BY_AUTOPET),
        ("isles24", EQUAL, "LPS", "0 missed (0 ml); 0 false (0 ml); 2 found (0.06 ml)"),
        ("isles24", EQUAL, "LAS", "1 missed (0.03 ml); 1 false (0.006 ml); 1 found"),
        ("wmh17", SPECKS, "LPS", MANY),
    ],
)
def test_lesions_lead_to_their_slices(tmp_path, definition, maps, axes, expected):
    """They are found as they were scored, on the axes of the file."""
    maps, header = reoriented(maps, axes)
    (tmp_path / "own.toml").write_text(RULES.format(definition))
    options = {"challenge": tmp_path / "own.toml", **header}

    page = evaluated(tmp_path, {"case": maps}, **options).drawn()["case"]

    (section,) = (section for section in page.sections if section.id == "lesions")
    table, nowhere, _ = section.parts
    lines = [table.caption.partition(": ")[2]]
    for row in table.rows:
        lines.append(" ".join(cell.text for cell in row))
        slices = [str(int(place) + 1) for place in row[0].place.split()]
        assert [cell.text for cell in row[-3:]] == slices
    begins = expected.splitlines()
    assert [s[: len(t)] for s, t in zip(lines, begins, strict=False)] == begins
    assert nowhere.text.endswith(": 0 missed (0 ml); 0 false (0 ml); 0 found (0 ml)")
    assert [f" by {definition} (" in note for note in page.notes] == [True]


def test_a_page_of_all_teams_has_no_lesions_of_an_organ_without(tmp_path):
    (tmp_path / "own.toml").write_text(RULES.format("wmh17"))
    made = {"challenge": tmp_path / "own.toml"}
    teams = {"a": {"case": FOUR[1]}}
    results, labels = write_teams_on_cases(tmp_path, {"case": FOUR[0]}, teams, **made)
    options = CaseOptions(ground_truth=labels, case=("case",))

    ((_, _, html),) = all_teams_pages(results, options, has_ranking=False)

    volumes = "Volume of false lesions (WMH 2017) (ml) of each team and organ"
    (row,) = Page(html).table(volumes)
    assert [*row] == ["team", "mean", "tumour", "nowhere"]
