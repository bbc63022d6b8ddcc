"""What a writer writes, its reader reads; perfect answers score exactly 1."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.answers.cells import LARGEST
from flare.answers.values import case_numbers, metric_value
from flare.challenge.answers import KINDS
from flare.challenge.formats import case_of
from flare.challenge.metrics import ANSWER_METRICS
from flare.challenge.rules import RankedMetric
from flare.common.files import csv_text
from flare.evaluation.evaluate import evaluate
from flare.evaluation.plan import references_digest
from flare.platforms.serving.journal import Journal, Step
from flare.platforms.serving.source import Submission
from flare.ranking.answers import check_values, read_answer_columns
from flare.results.answers_csv import read_answers
from flare.results.csv_rows import read_rows
from flare.results.efficiency_csv import (
    CaseRecord,
    RunStatus,
    read_by_case,
    read_records,
    write_records,
)
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


def test_references_have_one_digest_in_any_order_of_answers():
    """Case pages know the answers of a metrics.json by the order of their names."""
    files = [("size", Path("b")), ("diagnosis", Path("a"))]

    assert references_digest((), str, files) == references_digest((), str, files[::-1])


# --- Other tables, and the journal ----------------------------------------------------

AMOUNTS = st.floats(1e-300, 1e15)
NAMES = st.text("aZ9_.=-'é ", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.dictionaries(NAMES.map(case_of), AMOUNTS, min_size=1, max_size=4))
def test_tables_of_cases_are_read_as_they_were_written(tmp_path, amounts):
    """efficiency.csv by measuring and by ranks, and a table of `[[values]]`."""
    records = {
        case: CaseRecord(case=case, status=RunStatus.OK, runtime_s=amount, cpu_s=amount)
        for case, amount in amounts.items()
    }
    write_records(records.values(), tmp_path / "efficiency.csv")
    (tmp_path / "green.csv").write_text(csv_text(("case", "value"), amounts.items()))

    assert read_records(tmp_path / "efficiency.csv") == records
    rows = read_by_case(tmp_path / "efficiency.csv")
    assert {case: row.value("runtime_s") for case, row in rows.items()} == amounts
    values = read_rows(tmp_path / "green.csv", ("case", "value"))
    assert {case_of(row.text("case")): row.number("value") for row in values} == amounts


@given(st.lists(st.text(max_size=9), min_size=3, max_size=3), AMOUNTS)
def test_a_journal_is_read_as_it_was_written(tmp_path, texts, amount):
    title, message, fault = texts
    folder = tmp_path / "journal"
    (folder / "journal.json").unlink(missing_ok=True)
    submission = Submission(key="k", team="t", user="u", title=title)
    answer = {"status": "Succeeded", "metrics": {message: amount}}
    journal = Journal(folder, "a source")
    journal.keep(submission, Step.CLAIMING)
    journal.keep(submission, Step.SCORED, message=message, fault=fault)
    journal.write_answer(submission, answer)

    again = Journal(folder, "a source")

    assert again.entries == journal.entries
    assert again.read_answer(submission) == answer
