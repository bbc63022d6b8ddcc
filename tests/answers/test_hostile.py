"""What was made to harm costs little; files and cells are in `test_cells.py`."""

import json
import os
import tracemalloc
from pathlib import Path
from unittest.mock import Mock

import pytest

from flare.answers.tables import read_table
from flare.answers.values import answer_values, prediction_value
from flare.evaluation.answers import check_answers, read_sheets
from tests.builders.answers import (
    answer_row,
    answer_rules,
    answers_challenge,
    problems_of,
    sheet_of,
    write_folders,
)


def test_a_large_file_is_not_read(tmp_path):
    """The file has no content on the disk, and 64 MiB for whoever reads it."""
    file = tmp_path / "prediction.csv"
    with file.open("wb") as stream:
        stream.truncate(2**26)

    with pytest.raises(ValueError, match=r"^it is larger than 16 MiB$"):
        read_table(file)


def test_digits_without_end_take_no_time_by_their_square():
    """It took minutes for each such cell, of which a file has a hundred."""
    with pytest.raises(ValueError, match=r"^not a number$"):
        prediction_value("1" * 129_000 + "x", answer_rules("binary"))


WORDS = {
    "different words": [f"word {number}" for number in range(5000)],
    "a long word": ["a" * 100_000, *["b"] * 2000],
}
"""Wrong answers of kind choice."""


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_words_take_memory_by_their_sum(words):
    """A table of all pairs of words, or of words of one length, takes gigabytes."""
    rows = [answer_row(number, "b", word) for number, word in enumerate(words)]
    tracemalloc.start()

    values = answer_values(answer_rules("choice"), rows)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert values["accuracy_task"] == words.count("b") / len(words)
    assert values["balanced_accuracy_task"] == words.count("b") / len(words)
    assert peak < 2**25


def test_a_case_may_have_2000_boxes(tmp_path):
    """More are refused, see `test_cells.py`: they are compared with each other."""
    entry = {"name": "case_1", "prediction": [[0, 0, 1, 1]] * 2000}

    sheet = sheet_of(tmp_path, "boxes", json.dumps([entry]), "json")

    assert [row.problem for row in sheet.rows] == ["", "no answer was submitted"]


@pytest.mark.parametrize(
    "make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path.parent / "x.csv")]
)
def test_only_a_real_file_is_read(tmp_path, make):
    """A pipe would be waited for; a link may lead to the references."""
    rules = answer_rules("binary")
    reference = "name,gt\na,1\nb,0\n"
    copy = "name,prediction\na,1\nb,0\n"
    files = {"references/reference.csv": reference, "predictions/x.csv": copy}
    predictions, references = write_folders(tmp_path, files)
    make(predictions / "prediction.csv")

    [sheet] = read_sheets(predictions, references, answers_challenge(rules))

    [(code, problem)] = problems_of(sheet)
    assert code == "F20"
    hint = "it is missing; found x.csv: save it as prediction.csv"
    assert problem in (hint, "it cannot be read (it is not a regular file)")


def test_a_link_that_was_made_after_the_search_is_not_followed(tmp_path):
    target, link = tmp_path / "reference.csv", tmp_path / "prediction.csv"
    target.write_text("name,prediction\na,1\n", encoding="utf-8")
    link.symlink_to(target)

    assert len(read_table(link)) == 1
    with pytest.raises(ValueError, match="a link leads to it now"):
        read_table(link, is_real=True)


def question(number, follow_up):
    return {"id": number, "follow_up": follow_up, "answer": "a"}


QUESTIONS = {
    "a circle": [question(0, 1), question(1, 0)],
    "a root twice": [question(0, -1), question(0, -1)],
    "no such root": [question(0, -1), question(1, 7)],
    "ids that are lists": [question([], -1)],
    "no answer": [{"id": 0, "follow_up": -1}],
}
"""Questions of a case in val.json that follow from one another as none should."""


@pytest.mark.parametrize(
    ("links", "chains"),
    [
        ({0: -1, 1: 0, 2: 1, 3: 2}, ["0|1|2|3"]),
        ({0: 2, 1: 0, 2: -1, 3: -1, 4: 3}, ["2|0|1", "3|4"]),
        ({n: n - 1 for n in range(100_000)}, ["|".join(map(str, range(100_000)))]),
    ],
    ids=["in turn", "before its root", "100,000"],
)
def test_questions_that_follow_from_one_that_follows_are_of_one_chain(
    tmp_path, links, chains
):
    file = tmp_path / "val.json"
    local = [question(n, up) | {"answer": str(n)} for n, up in links.items()]
    case = {"case_id": "a", "global_vqa": [], "local_vqa": local}
    file.write_text(json.dumps([case]), encoding="utf-8")

    assert [row.cells["local_vqa"] for row in read_table(file)] == chains


def test_a_refused_file_is_read_once(tmp_path, monkeypatch):
    reader = Mock(side_effect=ValueError("it is not JSON"))
    monkeypatch.setattr("flare.evaluation.answers.read_table", reader)
    files = {"predictions/prediction.csv": "x"}
    rules = [answer_rules("binary", name=name) for name in ("a", "b", "c")]
    predictions, _ = write_folders(tmp_path, files)

    problems, _ = check_answers(predictions, answers_challenge(*rules), None)

    assert "it is not JSON" in str(problems[0])
    assert reader.call_count == 1


@pytest.mark.parametrize("name", ["predictions.csv", "mytask.CSV", "prediction.xlsx"])
def test_a_table_of_another_name_is_told(tmp_path, name):
    """Names of Windows, and the line that Excel puts first, are read."""
    table = "sep=,\nname,prediction\nC:\\data\\case_1.nii.gz,1\ncase_2,0\n"
    files = {
        "references/reference.csv": "name,gt\ncase_1,1\ncase_2,0\n",
        f"predictions/{name}": table,
    }
    folders = write_folders(tmp_path, files)
    challenge = answers_challenge(answer_rules("binary"))

    [sheet] = read_sheets(*folders, challenge)
    (tmp_path / "predictions" / name).rename(folders[0] / "prediction.csv")
    [renamed] = read_sheets(*folders, challenge)

    assert problems_of(sheet) == [
        ("F20", f"it is missing; found {name}: save it as prediction.csv")
    ]
    assert problems_of(renamed) == []
    assert [row.prediction for row in renamed.rows] == ["1", "0"]


@pytest.mark.parametrize("questions", QUESTIONS.values(), ids=QUESTIONS)
def test_questions_that_follow_from_no_root_are_refused(tmp_path, questions):
    file = tmp_path / "val.json"
    case = {"case_id": "a", "global_vqa": [], "local_vqa": questions}
    file.write_text(json.dumps([case]), encoding="utf-8")

    with pytest.raises(ValueError, match=r"not as in val\.json"):
        read_table(file)


NAMES = ["case\x1b[31m", "case\u202e", "case\ud800", "a\x00", "a" * 10**5, "\n", "😀"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_cannot_forge_or_overflow_a_message(tmp_path, name):
    """`problems_of` sees that each message is short, and to be printed."""
    entries = [{"name": name, "prediction": 2}]
    sheet = sheet_of(tmp_path, "binary", json.dumps(entries), "json")

    assert {code for code, _ in problems_of(sheet)} <= {"F20", "F21"}
