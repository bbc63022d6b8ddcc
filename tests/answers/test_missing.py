"""A missing answer counts as the worst one: silence pays by no metric but some F1."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.answers.values import answer_values
from flare.challenge.answers import KINDS
from flare.challenge.metrics import ANSWER_METRICS, Better
from flare.common.errors import SubmissionError
from flare.evaluation.evaluate import evaluate
from tests.builders.answers import (
    ByKind,
    answer_rows,
    answer_rules,
    answers_challenge,
    metrics_of,
    write_folders,
)

letters = st.sampled_from(["A", "B", "C"])
some_words = st.lists(st.sampled_from(["cyst", "stone", "ascites"]), unique=True)
words = some_words.map("; ".join)
numbers = st.integers(-3, 3).map(str)
corners = st.lists(st.sampled_from([0, 1, 4]), max_size=3)
boxes = corners.map(lambda lows: json.dumps([[low, 0, low + 3, 2] for low in lows]))
chains = st.lists(letters, min_size=1).map("|".join)


def scores(number):
    """Some scores, which are often equal."""
    shares = st.sampled_from([0, 0.25, 0.5, 1])
    return st.lists(shares, min_size=number, max_size=number)


ANSWERS = ByKind(
    binary=(st.sampled_from("01"), scores(1)),
    classes=(st.sampled_from("012"), scores(3)),
    labels=(st.tuples(*[st.sampled_from("01")] * 3), scores(3).map(tuple)),
    number=(numbers, numbers),
    time=(numbers, numbers),
    choice=(letters, letters),
    label_set=(words, words),
    boxes=(boxes, boxes),
    chain=(chains, chains),
)
"""References and predictions, by kind."""

ALL_THIRD = (["2", "0"], [[0, 0, 1], [0, 0, 1]])
ONE_FOUND = (["[[0, 0, 1, 1]]"] * 2, ["[[0, 0, 1, 1]]", "[[5, 5, 6, 6]]"])

MAY_PAY = {
    ("precision", "classes"): (*ALL_THIRD, 1 / 4, 1 / 2),
    ("f1", "classes"): (*ALL_THIRD, 1 / 3, 1 / 2),
    ("precision", "choice"): ("BA", "BB", 1 / 4, 1 / 2),
    ("f1", "choice"): ("BA", "BB", 1 / 3, 1 / 2),
    ("precision", "boxes"): (*ONE_FOUND, 1 / 2, 1),
    ("f1", "boxes"): (*ONE_FOUND, 1 / 2, 2 / 3),
    ("micro_f1", "label_set"): (["cyst", ""], ["cyst", "cyst; stone"], 1 / 2, 2 / 3),
}
"""Where a wrong answer is one too many, beside one that is missed: references,
predictions, the value, and the value without the last prediction."""

TIES = {
    ("auprc", "binary"): (list("1011"), lambda score: [score]),
    ("auprc", "classes"): (list("1011"), lambda score: [0, score, 0]),
    ("mean_average_precision", "classes"): (
        list("1011"),
        lambda score: [0, score, 0],
    ),
    ("mean_average_precision", "labels"): (
        [(truth, 0, 0) for truth in (1, 0, 1, 1)],
        lambda score: (score, 0, 0),
    ),
}
"""Where silence may pay if scores are equal: references, and what has a score."""


def changed(rows, place):
    """The rows, of which one answer is missing."""
    fewer = [*rows]
    fewer[place] = replace(rows[place], prediction="", problem="missing")
    return fewer


def distinct(rows_of_scores):
    """The same scores, of which those that were equal rise from row to row."""
    for place, cells in enumerate(rows_of_scores):
        yield type(cells)((score + place / 100) / 2 for score in cells)


METRICS_OF_KINDS = [(metric, kind) for kind in KINDS for metric in metrics_of(kind)]


@pytest.mark.newest
@pytest.mark.parametrize(
    ("metric", "kind"), [pair for pair in METRICS_OF_KINDS if pair not in MAY_PAY]
)
@settings(max_examples=60)
@given(data=st.data())
def test_a_missing_answer_never_pays(metric, kind, data):
    """By average precision, if no scores are equal."""
    pairs = data.draw(st.lists(st.tuples(*ANSWERS[kind]), min_size=1, max_size=8))
    references, predictions = zip(*pairs, strict=True)
    if (metric, kind) in TIES:
        predictions = distinct(predictions)
    rows = answer_rows(references, predictions)
    place = data.draw(st.integers(0, len(rows) - 1))
    empty = data.draw(st.sampled_from(["counted", "left_out"]))
    rules = answer_rules(kind, metrics=[metric], worst=6, empty=empty)

    [value] = answer_values(rules, rows).values()
    [without] = answer_values(rules, changed(rows, place)).values()

    if ANSWER_METRICS[metric].better is Better.LOWER:
        value, without = -value, -without
    assert math.isnan(value) == math.isnan(without)
    assert not without > value + 1e-12


@pytest.mark.parametrize(("metric", "kind"), MAY_PAY)
def test_by_some_f1_and_precision_a_wrong_answer_costs_more(metric, kind):
    references, predictions, value, without = MAY_PAY[metric, kind]
    rules = answer_rules(kind, metrics=[metric])
    rows = answer_rows(references, predictions)

    assert [*answer_values(rules, rows).values()] == pytest.approx([value])
    fewer = changed(rows, len(rows) - 1)
    assert [*answer_values(rules, fewer).values()] == pytest.approx([without])


@pytest.mark.parametrize(
    ("kind", "empty", "metric", "without"),
    [
        ("boxes", "[]", "f1", 2 / 3),
        ("label_set", "", "f1", 1 / 2),
        ("label_set", "", "micro_f1", 2 / 3),
        ("label_set", "", "overlap", 1 / 2),
        ("chain", "", "chain_accuracy", 1 / 2),
    ],
)
def test_a_missing_answer_is_not_the_right_answer_nothing(kind, empty, metric, without):
    """Of the second case nothing is right, and nothing was answered, or was missing."""
    right = "[[0, 0, 1, 1]]" if kind == "boxes" else "cyst"
    rows = answer_rows([right, empty], [right, empty])
    rules = answer_rules(kind, metrics=[metric])

    assert [*answer_values(rules, rows).values()] == [1]
    assert [*answer_values(rules, changed(rows, 1)).values()] == pytest.approx(
        [without]
    )


@pytest.mark.parametrize(("metric", "kind"), TIES)
def test_by_average_precision_equal_scores_may_cost_more(metric, kind):
    """Two positive cases stand behind all, one beside the negative one.

    That one gives 1/3 x 1/2, and they give 2/3 x 3/4: together 2/3. Without it, the
    negative case is alone in front: they give 2/3 x 2/3, and it gives 1/3 x 3/4.
    """
    references, prediction = TIES[metric, kind]
    rules = answer_rules(kind, metrics=[metric])
    rows = answer_rows(references, map(prediction, (0, 0.5, 0, 0.5)))

    [value] = answer_values(rules, rows).values()
    [without] = answer_values(rules, changed(rows, len(rows) - 1)).values()

    assert without > value + 1e-3
    if kind == "binary":
        assert (value, without) == pytest.approx((2 / 3, 4 / 9 + 1 / 4))


def evaluated(folder, kind, content, **changes):
    rules = answer_rules(kind, **changes)
    references = "name,gt\na,3\nb,5\n" if kind == "number" else "name,gt\na,X\nb,Y\n"
    files = {
        "references/reference.csv": references,
        "predictions/prediction.csv": content,
    }
    folders = write_folders(folder, files)
    return evaluate(*folders, challenge=answers_challenge(rules), on_bad_case="worst")


@pytest.mark.parametrize(
    "rows", ["a,X", "a,X\nb,", "b,Y\na,X\nb,Y"], ids=["none", "empty", "twice"]
)
def test_a_missing_answer_is_a_wrong_one_in_a_measured_result(tmp_path, rows):
    results = evaluated(tmp_path, "choice", f"name,prediction\n{rows}\n")

    assert results.answer_values["accuracy_task"] == 0.5
    assert [low.cases for low in results.low_scores] == [("b",)]
    assert [row.prediction for row in results.answer_rows] == ["X", ""]


def test_without_any_file_all_answers_are_wrong(tmp_path):
    results = evaluated(tmp_path, "choice", "")

    assert set(results.answer_values.values()) == {0}
    assert [low.cases for low in results.low_scores] == [("a", "b")]


def test_a_missing_number_has_the_error_of_the_challenge_file(tmp_path):
    results = evaluated(tmp_path, "number", "name,prediction\na,4\n", worst=7)

    assert results.answer_values == pytest.approx(
        {"mean_absolute_error_task": 4, "rmse_task": 5}
    )


def test_a_missing_number_without_a_worst_error_is_refused(tmp_path):
    with pytest.raises(SubmissionError, match=r"\[F21\]"):
        evaluated(tmp_path, "number", "name,prediction\na,4\n")
