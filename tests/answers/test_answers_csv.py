"""answers.csv keeps each text, and gives the values of metrics.json to the last bit."""

import csv
import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flare.answers.values import answer_values
from flare.challenge.answers import KINDS
from flare.cli.main import main
from flare.common.text import printable
from flare.evaluation.evaluate import evaluate
from flare.results.answers_csv import AnswerRow, read_answers, write_answers
from flare.results.metrics_json import write_results
from tests.builders.answers import (
    ByKind,
    answer_rules,
    answers_challenge,
    entries_of,
    write_folders,
)


@given(texts=st.lists(st.text(), min_size=3, max_size=3))
@example(texts=["=1+1", "@SUM(A1)", "-3"])
@example(texts=["'=1", "''", "\uff1d1"])
@example(texts=['a,"b"', '""', ","])
@example(texts=["two\nlines", "a\r\nb\tc", "\\n"])
@example(texts=["日本", "e\u0301", "\u202e\ud800\x00"])
def test_texts_are_read_as_they_were_written(tmp_path, texts):
    """As read from a submission: in a line, and to be printed."""
    reference, prediction, problem = (printable(" ".join(t.split())) for t in texts)
    row = AnswerRow(
        answers="task",
        case=f"a {reference}",
        reference=reference,
        prediction=prediction,
        problem=problem,
    )

    write_answers(tmp_path / "answers.csv", [row])

    assert read_answers(tmp_path / "answers.csv") == {"task": (row,)}
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        _, cells = csv.reader(file)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "-"))]


def tables(kind, generator, cases=30):
    """References and predictions of a kind, with numbers of all digits."""
    shares, reals = generator.random((cases, 3)), generator.normal(size=(2, cases))
    classes = generator.integers(0, 2, (cases, 3))
    corners = generator.random((2, cases, 1, 2))
    boxes = np.concatenate([corners, corners + generator.random((2, cases, 1, 2))], -1)
    words = np.array(["kidney stone", "cyst", '"ascites"', "=1+1"])
    picked = words[generator.integers(0, 4, (2, cases))]
    by_kind = ByKind(
        binary=(classes[:, 0], shares[:, 0]),
        classes=(classes[:, 0], shares),
        labels=(classes, shares),
        number=reals,
        time=reals,
        choice=picked,
        label_set=picked,
        boxes=boxes,
        chain=picked,
    )
    return [column.tolist() for column in by_kind[kind]]


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_metrics_json_to_the_last_bit(tmp_path, kind):
    rules = answer_rules(
        kind, file="prediction.json", reference_file="reference.json", worst=1.1
    )
    references, predictions = tables(kind, np.random.default_rng(1))
    truths = [*entries_of(rules.reference, references)]
    submitted = [*entries_of(rules.prediction, predictions)][2:]  # two are missing
    files = {
        "references/reference.json": json.dumps(truths),
        "predictions/prediction.json": json.dumps(submitted),
    }
    folders = write_folders(tmp_path, files)

    results = evaluate(
        *folders, challenge=answers_challenge(rules), on_bad_case="worst"
    )
    write_results(results, tmp_path)

    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    rows = read_answers(tmp_path / "answers.csv")["task"]
    assert len(rows) == 30
    assert metrics["aggregates"] == answer_values(rules, rows)
    assert list(metrics["aggregates"]) == [f"{name}_task" for name in rules.metrics]


def test_evaluate_writes_answers_where_it_is_told_to(tmp_path):
    files = {
        "references/reference.csv": "name,gt\na,1\nb,0\n",
        "predictions/prediction.csv": "name,prediction\na,0.75\nb,0\n",
    }
    predictions, references = write_folders(tmp_path, files)
    file = tmp_path / "mine.csv"
    folders = ("--input", predictions, "--ground-truth", references)
    more = ("--output", tmp_path, "--challenge", "flare25-foundation")

    assert main(["evaluate", *map(str, (*folders, *more, "--answers", file))]) == 0

    rows = read_answers(file)["task"]
    assert [(row.reference, row.prediction) for row in rows] == [
        ("1", "0.75"),
        ("0", "0"),
    ]
