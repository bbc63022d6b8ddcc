"""Cells and files of answers: what is read alike, and what is refused, and why."""

import json

import pytest

from flare.answers.values import prediction_value, reference_value
from flare.common.errors import SubmissionError
from flare.evaluation.answers import check_answers, read_sheets, score_sheet
from flare.evaluation.evaluate import evaluate
from tests.builders.answers import (
    answer_rules,
    answers_challenge,
    problems_of,
    sheet_of,
    write_folders,
)

# --- Cells --------------------------------------------------------------------------

SAME_CELLS = [
    ("binary", "1", ["1.0000001", "1.0", "+1", "1e0", "01", "1.", "[1]", "[0.3,1.0]"]),
    ("binary", "0.25", [".25", " 0.250 ", "2.5E-1", "[0.75, 0.25]"]),
    ("classes", "[1, 0, -2.5]", ["[1,0,-2.5]", " [ 1.0 , 0 , -25e-1 ] "]),
    ("number", "3", ["3.0", " 3 ", "+3", "3.", "30e-1", "3." + "0" * 5000]),
    ("time", "-0.5", ["-.5", "-5e-1"]),
    ("choice", "A", ["a", " A "]),
    ("choice", "kidney stone", ["Kidney  Stone"]),
    ("label_set", "cyst; stone", ["stone;CYST", "cyst, stone", '["stone", "cyst"]']),
    ("label_set", "", [" ", "[]", ";", ","]),
    ("label_set", "a, b; c", ['["c", "a, b"]']),
    ("boxes", "[[0, 0, 2, 2.5]]", ["[[0.0,0,2,25e-1]]", '{"": [[0, 0, 2, 2.5]]}']),
    ("boxes", '{"cyst": [[0, 0, 2, 2]]}', ['{" Cyst": [[0,0,2,2]]}']),
    ("boxes", "[]", ["", " "]),
    ("chain", "a|kidney stone", [" A | Kidney  stone "]),
]
"""A cell, and others that mean the same."""


@pytest.mark.parametrize(("kind", "cell", "same"), SAME_CELLS)
def test_cells_that_mean_the_same_are_read_alike(kind, cell, same):
    rules = answer_rules(kind)

    values = [prediction_value(text, rules) for text in same]

    assert values == [prediction_value(cell, rules)] * len(same)


NO_NUMBERS = ["x", "True", "50%", "1_0", "0x1", "=1", "None", "t(1)", "0;5", "1e", "²"]

NUMBERS = {
    "not a number": NO_NUMBERS,
    "not finite": ["NaN", "nan", "inf", "-Infinity"],
    "a comma where a decimal point belongs": ["0,5", "-1,5e3"],
    "empty": ["", " "],
    "beyond 1e+14": ["9" * 5000, "1e400", "-1e15", "1.1e14"],
}
"""What no number may be, by the reason."""

REFUSED_CELLS = {
    "binary": NUMBERS
    | {
        "not from 0 to 1": ["41.7", "-0.1", "1.00001", "[0, 2]"],
        "neither one number nor two": ["[0.2, 0.3, 0.5]"],
        "not a number": [*NO_NUMBERS, "[[0, 1]]", "['0', '1']", "[0 1]"],
        "empty": ["", " ", "[]", "[0.5,]"],
    },
    "classes": {
        "not 3 numbers": ["1", "malignant", "[0.5, 0.5]", "[0.2 0.3 0.5]", "[]"],
        "not a number": ["[0, 1, 50%]", "[0, 1, '2']", "[[0, 1, 2]]"],
        "not finite": ["[0, 1, nan]", "[-inf, 0, 1]"],
        "empty": ["", "[0,,1]"],
        "beyond 1e+14": ["[0, 1, 1e16]"],
    },
    "number": NUMBERS | {"longer than 130,000 characters": ["9" * 10**6]},
    "time": NUMBERS,
    "choice": {
        "not one of A, B": ["C", "B: Myelofibrosis", "Answer: B", "AB", "A;B", "None"],
        "empty": ["", " "],
    },
    "label_set": {
        "not a list in JSON": ["['cyst']", '["cyst"', "[cyst]", "[" * 50_000],
        "not a list of words": ["[1]", '["cyst", ["stone"]]', "[null]"],
        "longer than 130,000 characters": [json.dumps(["a"] * 10**6)],
    },
    "boxes": {
        "not boxes in JSON": [
            "{'cyst': []}",
            "(0, 0, 1, 1)",
            "[[0,0,1,1],]",
            "[" * 50_000,
            "[[0, 0, 1, 1]] or none",
            f"[[0, 0, 1, {'9' * 5000}]]",
            '{"cyst": [], "cyst": [[0, 0, 1, 1]]}',
        ],
        "not a list of boxes": ["1", "null", '"[]"', '{"cyst": null}', '{"a": {}}'],
        "not a box [x1, y1, x2, y2]": [
            "[0, 0, 1, 1]",
            "[[0, 0, 1]]",
            "[[0, 0, 1, 1, 1]]",
            "[[0, 0, 1, true]]",
            '[["0", 0, 1, 1]]',
            '[{"x1": 0}]',
        ],
        "not finite": ["[[0, 0, 1, NaN]]", "[[0, 0, 1, Infinity]]", "[[0,0,1,1e400]]"],
        "a box without an area": [
            "[[0, 0, 0, 1]]",
            "[[2, 2, 0, 0]]",
            "[[0, 0, 1e-200, 1e-200]]",
        ],
        "a label twice": ['{"cyst": [], "Cyst": [[0, 0, 1, 1]]}'],
        "beyond 1e+14": ["[[0, 0, 1, 1e300]]"],
        "more than 2000 boxes": [json.dumps([[0, 0, 1, 1]] * 2001)],
        "longer than 130,000 characters": [json.dumps([[0, 0, 1, 1]] * 10**5)],
    },
}
"""Cells that are refused, by kind and reason."""


KINDS_AND_REASONS = [
    (kind, reason) for kind, reasons in REFUSED_CELLS.items() for reason in reasons
]


@pytest.mark.parametrize(("kind", "reason"), KINDS_AND_REASONS)
def test_a_cell_that_is_no_answer_is_refused_with_its_place(tmp_path, kind, reason):
    """All cells that are refused for one reason share its line."""
    classes = {"classes": ["A", "B"]} if kind == "choice" else {}
    for cell in REFUSED_CELLS[kind][reason]:
        entries = [{"name": f"case_{number}", "prediction": cell} for number in (1, 2)]

        sheet = sheet_of(tmp_path, kind, json.dumps(entries), "json", **classes)

        [(code, finding)] = problems_of(sheet)
        places, _, end = finding.rpartition(f": {reason}")
        assert (code, end) == ("F22", "")
        assert places.startswith("entry 1 (case_1: ")
        assert [row.problem for row in sheet.rows] == [reason, reason]
        assert [row.prediction for row in sheet.rows] == ["", ""]


@pytest.mark.parametrize(("reason", "cells"), NUMBERS.items())
def test_each_label_is_a_number_by_itself(tmp_path, reason, cells):
    for cell in cells:
        entry = {"cyst": 0, "stone": cell, "ascites": 1}
        entries = [{"name": f"case_{number}", **entry} for number in (1, 2)]

        sheet = sheet_of(tmp_path, "labels", json.dumps(entries), "json")

        assert [row.problem for row in sheet.rows] == [reason, reason]


@pytest.mark.parametrize(
    ("kind", "cell", "reason"),
    [
        ("binary", "0.5", "neither 0 nor 1"),
        ("classes", "3", "not the number of a class, 0 to 2"),
        ("classes", "maligne", "not a number"),
        ("labels", '["0", "2", "1"]', "neither 0 nor 1"),
    ],
)
def test_a_reference_is_one_of_the_classes(kind, cell, reason):
    with pytest.raises(ValueError, match=f"^{reason}$"):
        reference_value(cell, answer_rules(kind))


def test_without_classes_a_word_that_no_reference_has_is_wrong(tmp_path):
    """To refuse it would tell which words the references have."""
    table = "name,prediction\ncase_1,A: Myelofibrosis\ncase_2,B\n"

    sheet = sheet_of(tmp_path, "choice", table)

    assert problems_of(sheet) == []
    assert score_sheet(sheet).by_metric["accuracy_task"] == 1 / 2


# --- Files --------------------------------------------------------------------------

TABLE = "name,prediction\ncase_1,0.75\ncase_2,0.25\n"

ENTRY = '{"name": "case_1", "prediction": 0.75}'

SAME_FILES = {
    "as it is": ("csv", TABLE),
    "BOM": ("csv", f"\ufeff{TABLE}"),
    "CRLF": ("csv", TABLE.replace("\n", "\r\n")),
    "no last line break": ("csv", TABLE.strip()),
    "blank lines": ("csv", "\n" + TABLE.replace("\n", "\n\n")),
    "blanks around": ("csv", TABLE.replace(",", " , ")),
    "quotes": ("csv", '"name","prediction"\n"case_1","0.75"\n"case_2","0.25"\n'),
    "other order": ("csv", "name,prediction\ncase_2,0.25\ncase_1,0.75\n"),
    "names of files": ("csv", TABLE.replace(",0", ".nii.gz,0")),
    "names of channels": ("csv", TABLE.replace(",0", "_0000,0")),
    "files of channels": ("csv", TABLE.replace(",0", "_0000.nii.gz,0")),
    "index": ("csv", ",name,prediction\n0,case_1,0.75\n1,case_2,0.25\n"),
    "more columns": ("csv", "prediction,x,name,\n0.75,1,case_1,\n0.25,NaN,case_2,\n"),
    "lists": ("csv", TABLE.replace("0.75", '"[0.25, 0.75]"')),
    "JSON": (
        "json",
        '[{"name": "case_1", "prediction": 0.75},'
        ' {"prediction": "0.250", "name": "case_2", "more": {"x": null}}]',
    ),
    "BOM and lists in JSON": (
        "json",
        '\ufeff [{"name": "case_1", "prediction": [0.25, 0.75]},\r\n'
        '{"name": "case_2", "prediction": 25e-2}]\r\n',
    ),
    "JSON lines": (
        "jsonl",
        '{"name": "case_1", "prediction": 0.75, "question": "a\u2028b\u0085c"}\r\n\n'
        '{"name": "case_2", "prediction": 0.25}',
    ),
    "JSON lines called .json": (
        "json",
        f'{ENTRY}\n{{"name": "case_2", "prediction": 0.25}}',
    ),
}
"""The ending and the content of files with the same answers."""


@pytest.mark.parametrize(("suffix", "content"), SAME_FILES.values(), ids=SAME_FILES)
def test_files_with_the_same_answers_are_read_alike(tmp_path, suffix, content):
    sheet = sheet_of(tmp_path, "binary", content, suffix)

    values = [prediction_value(row.prediction, sheet.rules) for row in sheet.rows]
    assert problems_of(sheet) == []
    assert values == [0.75, 0.25]
    assert sheet.cases == ("case_1", "case_2")


def test_a_number_of_a_question_may_be_written_as_pandas_does(tmp_path):
    """A column of whole numbers with an empty cell has 3.0 for 3."""
    rules = answer_rules("choice", case=["name", "question"])
    files = {
        "references/reference.csv": "name,question,gt\na,3,B\na,,A\n",
        "predictions/prediction.csv": "name,question,prediction\na,,A\na,3.0,B\n",
    }

    [sheet] = read_sheets(*write_folders(tmp_path, files), answers_challenge(rules))

    assert problems_of(sheet) == []
    assert [row.prediction for row in sheet.rows] == ["A", "B"]


SEMICOLONS = TABLE.replace(",", ";")
THREE_CELLS = "name,prediction\na,0,75\n"
KEY_TWICE = '[{"name": "a", "name": "b"}]'


REFUSED_FILES = [
    ("csv", "", "it has no row"),
    ("csv", "name,prediction\n", "it has no row"),
    ("csv", "name\n" + "\n" * 10**5, "it has no row"),
    ("json", "[]", "it has no row"),
    ("csv", b"PK\3\4\0", "it is an Excel workbook or a zip, not a text file"),
    ("csv", "n\u00e4me".encode("latin-1"), "it is not a text in UTF-8"),
    ("csv", TABLE.encode("utf-16"), "it is not a text in UTF-8, which Excel"),
    ("csv", f"{TABLE}\0", "it holds a byte 0"),
    ("csv", SEMICOLONS, "its columns are separated by semicolons (name;"),
    ("csv", "name,Predictions\na,1", "it has no column prediction (did you mean Pred"),
    ("csv", "name,y\na,1", "it has no column prediction; it has y"),
    ("csv", "case_1,0.75\n,0", "it has no column name, prediction; it has case_1"),
    ("csv", "name,prediction,name\na,1,b\n", "it has two columns name"),
    ("csv", THREE_CELLS, "line 2 has 3 cells, expected 2, as in the first line"),
    ("csv", f"{TABLE}case_3\n", "line 4 has 1 cell, expected 2, as in the first line"),
    ("csv", f"{TABLE},0.5\n", "line 4 has an empty name"),
    ("csv", f'{TABLE}"a\n', "line 4 is not CSV (unexpected end of data)"),
    ("csv", "name\n" + "a" * 10**6, "line 2 is not CSV (field larger than"),
    ("csv", "a" + "," * 10**5, "it has more than 10,000 columns"),
    ("csv", "name\n" + "a\n" * 200_001, "it has more than 200,000 rows"),
    ("json", "[{'name': 'a'}]", "it is not JSON (Expecting property name enclosed"),
    ("jsonl", '{"name": "a", "prediction": 1}\n{} x', "line 2 is not JSON (Extra data"),
    ("json", "[1]", "entry 1 is not an object in braces"),
    ("json", '{"case_1": 1}', "entry 1 has no key name, prediction; it has case_1"),
    ("jsonl", f'{ENTRY}\n{{"name": "b"}}', "entry 2 has no key prediction"),
    ("json", KEY_TWICE, "it is not JSON (the key name twice in one object"),
    ("json", '[{"name": "a", " name": "b"}]', "it has two columns name"),
    ("json", '[{"local_vqa": 1}]', "its questions are not as in val.json of MLLM-3D"),
    ("json", "[" * 500_000, "it is not JSON (its lists lie too deep"),
    ("jsonl", '{"a":' * 500_000, "line 1 is not JSON (its lists lie too deep"),
    ("json", '[{"name": ' + "[" * 500_000, "it is not JSON (its lists lie too deep"),
    ("json", f'[{{"name": {"9" * 5000}}}]', "it is not JSON (Exceeds the limit"),
    (
        "jsonl",
        "{" + ",".join(f'"k{place}":0' for place in range(10_001)) + "}",
        "it has more than 10,000 columns",
    ),
    ("json", "[" + "{}," * 200_000 + "{}]", "it has more than 200,000 rows"),
    ("jsonl", "{}\n" * 200_001, "it has more than 200,000 rows"),
]
"""The ending and the content of a file, and how the reason begins for which it is
refused as a whole: without end or bottom, too."""


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    REFUSED_FILES,
    ids=[f"{suffix}-{reason}" for suffix, _, reason in REFUSED_FILES],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, suffix, content, reason):
    sheet = sheet_of(tmp_path, "binary", content, suffix)

    [(code, problem)] = problems_of(sheet)
    assert code == "F20"
    assert problem.startswith(reason)
    assert ("with the columns" in sheet.problems[0].remedy) == (suffix == "csv")
    assert [row.problem for row in sheet.rows] == [problem, problem]


TWICE = "two answers to task for case case_1 (line 2 and line 4)"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name,prediction\ncase_1,1\n", "1 of 2 answers to task is missing: case_2"),
        (f"{TABLE}case_3,1\n", "no case has this name: case_3"),
        (f"{TABLE}case_1,1\n", TWICE),
        (f"{TABLE}case_1_0000.nii.gz,1\n", TWICE),
        (f"{TABLE}\x1b[31m\u202ese,1\n", "no case has this name: \\x1b[31m\\u202ese"),
    ],
)
def test_each_case_needs_one_answer(tmp_path, content, problem):
    assert problems_of(sheet_of(tmp_path, "binary", content)) == [("F21", problem)]


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    content = "name,prediction\ncase_1,50%\ncase_1,1\ncase_3,inf\n"
    sheet = sheet_of(tmp_path, "binary", content)
    folders = tmp_path / "predictions", tmp_path / "references"
    challenge = answers_challenge(sheet.rules)

    with pytest.raises(SubmissionError) as error:
        evaluate(*folders, challenge=challenge)
    problems, _ = check_answers(folders[0], challenge, None)

    assert problems_of(sheet) == [
        ("F21", "two answers to task for case case_1 (line 2 and line 3)"),
        ("F21", "no case has this name: case_3 (did you mean case_2?)"),
        ("F21", "1 of 2 answers to task is missing: case_2"),
        ("F22", "line 2 (case_1: 50%): not a number"),
    ]
    assert str(error.value).startswith("prediction.csv: two answers to task")
    assert str(error.value).isprintable()
    # Without references, nobody knows which cases there are.
    assert [problem.finding.partition(": ")[2] for problem in problems] == [
        "two answers to task for case case_1 (line 2 and line 3)",
        "line 2 (case_1: 50%): not a number",
        "line 4 (case_3: inf): not finite",
    ]
