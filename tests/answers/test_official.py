"""The values of answers are those of the organisers' scripts, to 1e-12."""

import json

import pytest

from flare.evaluation.evaluate import evaluate

pytestmark = pytest.mark.shared

BY_SCRIPT = {
    "Accuracy": "accuracy",
    "Balanced Accuracy": "balanced_accuracy",
    "AUC": "auroc",
    "AUPRC": "auprc",
    "Sensitivity": "sensitivity",
    "Specificity": "specificity",
    "Precision": "precision",
    "F1": "f1",
    "Weighted AUC": "auroc",
    "Weighted AUPRC": "auprc",
    "Weighted F1": "f1",
    "Weighted Precision": "precision",
    "f1_score": "f1",
    "root_mean_squared_error": "rmse",
    "average_f1": "f1@_steps",
    "f1_score_at_03": "f1@_03",
    "precision_at_03": "precision@_03",
    "recall_at_03": "recall@_03",
    "f1_score_at_05": "f1",
    "global_accuracy": "overlap",
    "local_accuracy": "chain_accuracy",
}
"""What the scripts call a metric, and how it is called here, before the answers' name
and behind it."""

NOT_COMPUTED = ("Recall", "Weighted Recall", "valid_samples")
"""They are the sensitivity, the accuracy, and a number of cases."""

TASKS = {
    "disease": "classification",
    "findings": "multi-label classification",
    "detection": "detection",
    "instances": "instance_detection",
    "cells": "cell counting",
    "measure": "regression",
}


@pytest.fixture
def data(shared):
    return shared / "data" / "answers"


@pytest.fixture
def official(data):
    return json.loads((data / "official.json").read_text(encoding="utf-8"))


def values_of(data, folder, challenge):
    """The values of a folder, which is submission and references in one."""
    file = data / "challenges" / f"{challenge}.toml"
    results = evaluate(data / folder, data / folder, challenge=str(file))
    assert results.metrics == {}
    return results.answer_values


def compared(values, official, answers):
    """All numbers of a script are equal to ours; returns how many these are."""
    differences = {}
    for name, expected in official.items():
        if isinstance(expected, list) or name in NOT_COMPUTED or "Class_" in name:
            continue
        metric, _, ending = BY_SCRIPT.get(name, name).partition("@")
        column = f"{metric}_{answers}{ending}"
        differences[name] = abs(values[column] - expected)
    assert max(differences.values()) < 1e-12
    return len(differences)


@pytest.mark.parametrize(
    ("folder", "answers", "numbers"),
    [
        ("fm/binary", "task", 2),
        ("fm/binary-hard", "task", 2),
        ("fm/regression", "task", 1),
        ("fm/multiclass", "task", 1),
        ("fm/multilabel", "task", 1),
        ("fm/survival", "task", 1),
        ("automsc/binary", "diagnosis", 7),
        ("automsc/multiclass", "diagnosis", 6),
    ],
)
def test_tables_score_as_by_the_scripts(data, official, folder, answers, numbers):
    values = values_of(data, folder, folder.replace("/", "-"))

    assert compared(values, official[folder], answers) == numbers


@pytest.mark.parametrize(
    ("edition", "script"), [(2025, "qwen25"), (2026, "medgemma26")]
)
def test_questions_on_images_score_as_by_the_scripts(data, official, edition, script):
    values = values_of(data, "mllm2d", f"mllm2d-{edition}")

    for answers, task in TASKS.items():
        assert compared(values, official["mllm2d"][task][script], answers) >= 2


def test_chains_of_questions_score_as_by_the_scripts(data, official):
    values = values_of(data, "mllm3d", "mllm3d")

    for answers in ("global", "local"):
        name = f"{answers}_accuracy"
        compared(values, {name: official["mllm3d"][name]}, answers)
