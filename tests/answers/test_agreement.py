"""Values of answers are those of scikit-learn, or of slow twins, on random tables."""

import warnings

import numpy as np
import pytest

from flare.answers.values import answer_values
from tests.answers import oracles
from tests.builders.answers import answer_rows, answer_rules


def scores_with_ties(generator, *shape):
    """Shares from 0 to 1, many of them equal, and many of them a half."""
    steps = generator.choice([2, 4, 10, 1000])
    return generator.integers(0, steps + 1, shape) / steps


def values(rules, references, predictions):
    """The values of all metrics by their names."""
    by_column = answer_values(rules, answer_rows(references, predictions))
    return {column.removesuffix("_task"): value for column, value in by_column.items()}


def binary_table(generator):
    cases = generator.integers(1, 40)
    truths = generator.random(cases) < generator.choice([0, 0.1, 0.5, 0.9, 1])
    scores = scores_with_ties(generator, cases)
    positive = str(generator.choice(["above", "from"]))
    threshold = generator.choice([0, 0.25, 0.5, 1])
    is_positive = scores > threshold if positive == "above" else scores >= threshold
    rules = answer_rules("binary", positive=positive, threshold=float(threshold))
    expected = oracles.binary_values(truths.astype(int), scores, is_positive)
    return values(rules, truths.astype(int), scores), expected


def class_table(generator):
    cases, classes = generator.integers(1, 40), int(generator.integers(2, 8))
    present = generator.choice(classes, generator.integers(1, classes + 1), False)
    truths = generator.choice(present, cases)
    scores = 8 * scores_with_ties(generator, cases, classes) - 4
    names = [f"class {number}" for number in range(classes)]
    rules = answer_rules("classes", classes=names)
    lists = [scores_of_case.tolist() for scores_of_case in scores]
    return values(rules, truths, lists), oracles.class_values(truths, scores)


def label_table(generator):
    cases, labels = generator.integers(1, 40), int(generator.integers(2, 8))
    rates = generator.choice([0, 0.1, 0.5, 1], labels)
    truths = generator.random((cases, labels)) < rates
    scores = scores_with_ties(generator, cases, labels)
    empty = str(generator.choice(["counted", "left_out"]))
    names = [f"label {number}" for number in range(labels)]
    rules = answer_rules("labels", prediction=names, reference=names, empty=empty)
    cells = [tuple(truths_of_case) for truths_of_case in truths.astype(int)]
    found = values(rules, cells, [tuple(row) for row in scores.tolist()])
    return found, oracles.label_values(truths, scores, empty == "counted")


def choice_table(generator):
    cases, classes = generator.integers(1, 40), generator.integers(1, 8)
    letters = np.array(list("ABCDEFG"))[:classes]
    truths = generator.choice(letters, cases)
    answers = generator.choice(letters, cases)
    found = values(answer_rules("choice"), truths, answers)
    return found, oracles.decision_values(truths, answers)


def number_table(generator):
    truths, answers = generator.normal(0, 10.0 ** generator.integers(-5, 6), (2, 30))
    found = values(answer_rules("number"), truths.tolist(), answers.tolist())
    return found, oracles.number_values(truths, answers)


@pytest.mark.newest
@pytest.mark.parametrize(
    "table", [binary_table, class_table, label_table, choice_table, number_table]
)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(40), id="some"),
        pytest.param(range(40, 2040), id="all", marks=pytest.mark.slow),
    ],
)
@pytest.mark.tools(package="sklearn")
def test_values_are_those_of_scikit_learn(table, seeds):
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of absent classes
            found, expected = table(np.random.default_rng(seed))
        assert found.keys() == expected.keys(), "a metric has no twin in oracles.py"
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True), seed


SEEDS = pytest.mark.parametrize("seed", range(20))


@SEEDS
def test_c_index_is_that_of_all_pairs(seed):
    generator = np.random.default_rng(seed)
    cases = generator.integers(1, 60)
    times, predictions = generator.integers(0, generator.integers(1, 40), (2, cases))

    found = values(answer_rules("time"), times, predictions)

    assert found == {"c_index": oracles.brute_force_c_index(times, predictions)}


def test_c_index_of_equal_times_is_a_half():
    assert values(answer_rules("time"), [3, 3], [1, 2]) == {"c_index": 0.5}


def some_boxes(generator):
    """Boxes of whole numbers, some of them equal, by label."""
    labels = generator.choice(["cyst", "stone"], generator.integers(0, 6))
    boxes = {}
    for label in labels.tolist():
        x, y, width, height = generator.integers([0, 0, 1, 1], [3, 3, 5, 5]).tolist()
        boxes.setdefault(label, []).append([x, y, x + width, y + height])
    return boxes


@SEEDS
@pytest.mark.parametrize(
    ("matching", "oracle"),
    [("file", oracles.boxes_in_file_order), ("iou", oracles.boxes_by_iou)],
)
def test_boxes_find_what_they_find_pixel_by_pixel(seed, matching, oracle):
    generator = np.random.default_rng(seed)
    steps = [0.0, 0.25, 0.3, 0.5, 1.0]  # IoU that pairs have, too
    references, predictions = (
        [some_boxes(generator) for _ in range(8)] for _ in range(2)
    )
    by_step = []
    for step in steps:
        counts = []
        for reference, prediction in zip(references, predictions, strict=True):
            right = sum(
                oracle(prediction.get(label, []), reference.get(label, []), step)
                for label in ("cyst", "stone")
            )
            sizes = (sum(map(len, boxes.values())) for boxes in (prediction, reference))
            counts.append((right, *sizes))
        by_step.append(oracles.pooled_values(counts))

    found = values(
        answer_rules("boxes", matching=matching, iou=steps), references, predictions
    )

    names = ("precision", "recall", "f1")
    expected = dict(zip(names, np.mean(by_step, axis=0), strict=True))
    assert found == pytest.approx(expected, abs=1e-12)


@SEEDS
@pytest.mark.parametrize("empty", ["counted", "left_out"])
def test_sets_of_words_score_as_item_by_item(seed, empty):
    generator = np.random.default_rng(seed)
    words = np.array(["cyst", "kidney stone", "ascites", "gallstone"])
    references, answers = (
        [list(words[generator.random(4) < 0.3]) for _ in range(25)] for _ in range(2)
    )
    pairs = list(zip(references, answers, strict=True))
    in_mean = [pair for pair in pairs if pair[0] or empty == "counted"]
    means = [oracles.set_values(*pair) for pair in in_mean]
    expected = {name: np.mean([row[name] for row in means]) for name in means[0]}
    overlaps = [oracles.set_values(*pair)["overlap"] for pair in pairs]
    expected["overlap"] = np.mean(overlaps)  # its source leaves no case out
    counts = [
        (len({*reference} & {*answer}), len(answer), len(reference))
        for reference, answer in in_mean
    ]
    expected["micro_f1"] = oracles.pooled_values(counts)[2]

    rules = answer_rules("label_set", empty=empty)
    found = values(rules, map("; ".join, references), map("; ".join, answers))

    assert found == pytest.approx(expected, abs=1e-12)


@SEEDS
def test_chains_score_as_answer_by_answer(seed):
    generator = np.random.default_rng(seed)
    letters = np.array(list("AB"))
    references, answers = (
        [list(generator.choice(letters, generator.integers(1, 5))) for _ in range(25)]
        for _ in range(2)
    )

    found = values(
        answer_rules("chain"), map("|".join, references), map("|".join, answers)
    )

    chains = map(oracles.chain_value, references, answers)
    assert found == pytest.approx({"chain_accuracy": np.mean(list(chains))}, abs=1e-12)
