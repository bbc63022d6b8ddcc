"""The table of groups: what it holds, and what is refused in one line."""

import pytest

from flare.common.text import safe
from flare.results.errors import GroupsFileError
from flare.results.groups_csv import read_groups
from tests.builders import error_of
from tests.builders.errors import told

CASES = ("case_1", "case_2", "case_3", "case_4")


def read(tmp_path, text, **options):
    file = tmp_path / "cases.csv"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_groups(file, CASES, **options)


def test_each_column_has_its_groups_in_order(tmp_path):
    text = "centre,case,phase\nB,case_1,late\nA,case_2,late\nB,case_3.nii.gz,late\n"

    centre, phase = read(tmp_path, text + "A,case_4,late\n")

    assert (centre.column, centre.groups) == ("centre", (("A", (1, 3)), ("B", (0, 2))))
    assert (phase.column, phase.groups) == ("phase", (("late", (0, 1, 2, 3)),))


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        # An empty cell, one of spaces, and a case without a row.
        ("case_1,\ncase_2,  \ncase_3,zoo\n", (("zoo", (2,)), ("not given", (0, 1, 3)))),
        ("case_1,A\nwithdrawn,B\n", (("A", (0,)), ("not given", (1, 2, 3)))),
        ("case_1,'=1+1\n", (("=1+1", (0,)), ("not given", (1, 2, 3)))),
    ],
    ids=["not given comes last", "a case that is withdrawn", "as of a spreadsheet"],
)
def test_the_cases_of_a_column_are_grouped_by_its_values(tmp_path, rows, groups):
    (centre,) = read(tmp_path, f"case,centre\n{rows}", withdrawn=["withdrawn"])

    assert centre.groups == groups


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "it cannot be read ("),
        ("", "it has no column case; it is empty"),
        (
            "name,centre\ncase_1,A\n",
            "it has no column case; its columns are: name, centre",
        ),
        ("case,centre\n", "it has no row below the first"),
        ("case\ncase_1\n", "it has no column but case"),
        ("case,\ncase_1,A\n", "one of its columns has no name"),
        ("case,a,a\ncase_1,A,B\n", "it has two columns a"),
        (
            "case,centre\ncase_1,A\ncase_1.nii.gz,B\n",
            "line 3: case case_1 again, after line 2",
        ),
        (
            "case,centre\ncase_01,A\n",
            "line 2: there is no case case_01 (did you mean case_1?)",
        ),
        (
            "case,centre\nx,A\n",
            f"line 2: there is no case x, expected {', '.join(CASES)}",
        ),
        ("case,centre\n,A\n", "line 2: the case is empty"),
        (
            "case,centre\ncase_1,A,B\n",
            "line 2 has 3 cells, expected 2, as in the first line",
        ),
        ("case,centre\ncase_1,\n", "column centre has no group for any case"),
        (b"case,centre\ncase_1,\xff\n", "it is not a text in UTF-8"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path, text, problem):
    error = error_of(GroupsFileError, read, tmp_path, text)

    assert told(error) == ("G07", safe(tmp_path / "cases.csv"))
    assert error.problem.startswith(problem)


@pytest.mark.parametrize(("count", "is_refused"), [(20, False), (21, True)])
def test_more_than_twenty_groups_are_none(tmp_path, count, is_refused):
    cases = [f"c{n:02}" for n in range(count)]
    file = tmp_path / "cases.csv"
    file.write_text(
        "case,age\n" + "".join(f"{c},{30 + n}\n" for n, c in enumerate(cases))
    )

    if not is_refused:
        assert len(read_groups(file, cases)[0].groups) == 20
        return
    assert error_of(GroupsFileError, read_groups, file, cases).problem == (
        "column age has 21 groups, more than 20: 30, 31, 32, and so on"
    )
