"""What a writer writes, its reader reads; perfect answers score exactly 1."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.answers.cells import LARGEST
from flare.answers.values import case_numbers, metric_value
from flare.challenge.answers import KINDS
from flare.challenge.metrics import ANSWER_METRICS
from flare.challenge.rules import RankedMetric
from flare.evaluation.evaluate import evaluate
from flare.ranking.answers import check_values, read_answer_columns
from flare.results.answers_csv import read_answers
from flare.results.metrics_json import write_results
from flare.results.metrics_reading import read_evaluation
from tests.answers.test_missing import ANSWERS
from tests.builders.answers import (
    answer_rows,
    answer_rules,
    answers_challenge,
    entries_of,
    metrics_of,
    write_folders,
)

# --- Perfect answers ----------------------------------------------------------------


def perfect_answers(kind, cases):
    """References, of which the first ones have each class, and the right answers."""
    numbers = np.arange(cases)
    shares = np.random.default_rng(1).random((cases, 1)) / 2
    truths = numbers.tolist()
    answers = truths
    if kind == "binary":
        truths = (numbers != 1).astype(int)
        answers = (truths + shares[:, 0]) / 1.5
    elif kind == "classes":
        truths = np.where(numbers < 3, numbers, 1)
        answers = (np.eye(3)[truths] + shares).tolist()
    elif kind == "labels":
        rows = np.stack([numbers >= 0, numbers != 1, numbers == 2], axis=1)
        truths = map(tuple, rows.astype(int).tolist())
        answers = map(tuple, (rows / 2 + shares).tolist())
    elif kind == "boxes":
        boxes = [[[0, 0, 1 + share, 1]] * 3 for (share,) in shares.tolist()]
        truths = answers = boxes
    elif kind in ("choice", "label_set", "chain"):
        between = {"choice": "", "label_set": "; ", "chain": "|"}[kind]
        truths = answers = [between.join("ABC"[: 1 + n % 3]) for n in numbers]
    return truths, answers


SMALLEST = {"binary": 2, "time": 2, "classes": 3, "labels": 3}
"""The fewest cases that have each class, or a pair of times."""

SHARES = [
    (metric.name, kind)
    for metric in ANSWER_METRICS.values()
    if metric.is_share
    for kind in metric.functions
]


@pytest.mark.parametrize(("metric", "kind"), SHARES)
def test_perfect_answers_score_exactly_1(metric, kind):
    """Of up to 400 cases: sums of shares have been above 1."""
    rules = answer_rules(kind)
    numbers = case_numbers(metric, rules, answer_rows(*perfect_answers(kind, 400)))

    for cases in range(SMALLEST.get(kind, 1), 401):
        assert metric_value(metric, rules, numbers[:cases]) == 1, cases


# --- A submission -------------------------------------------------------------------

WIDE = st.sampled_from([-LARGEST, 1e-300, 1 / 3, LARGEST])
"""Numbers from end to end of what a cell may hold."""


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_an_evaluation_is_read_as_it_was_written(tmp_path, kind, data):
    """By what ranks and reports read, whatever a valid answer is."""
    pairs = st.tuples(*ANSWERS[kind])
    if kind in ("number", "time"):
        pairs = st.tuples(WIDE, WIDE)
    drawn = data.draw(st.lists(pairs, min_size=2, max_size=6))
    worst = data.draw(st.sampled_from([0, LARGEST]))
    suffix = data.draw(st.sampled_from(["json", "jsonl"]))
    rules = answer_rules(
        kind,
        file=f"prediction.{suffix}",
        reference_file="reference.json",
        worst=worst,
        metrics=[name for name in metrics_of(kind) if name != "auroc"],
    )
    references, predictions = zip(*drawn, strict=True)
    answers = [*entries_of(rules.prediction, predictions)][data.draw(st.booleans()) :]
    challenge = answers_challenge(rules)
    files = {
        "references/reference.json": json.dumps(
            [*entries_of(rules.reference, references)]
        ),
        f"predictions/prediction.{suffix}": "\n".join(map(json.dumps, answers))
        if suffix == "jsonl"
        else json.dumps(answers),
    }
    folders = write_folders(tmp_path, files)

    results = evaluate(*folders, challenge=challenge, on_bad_case="worst")
    write_results(results, tmp_path)

    scores = read_evaluation(tmp_path / "metrics.json")
    rows = read_answers(tmp_path / "answers.csv")
    assert scores.answers == results.answer_values
    assert rows == {"task": results.answer_rows}
    assert not any(map(math.isnan, scores.answers.values()))
    ranked = [
        RankedMetric(metric=column, better=ANSWER_METRICS[name].better)
        for name, column in zip(rules.metrics, rules.columns, strict=True)
    ]
    check_values(
        read_answer_columns({tmp_path: rows}, challenge, ranked), scores, tmp_path
    )
