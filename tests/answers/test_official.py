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


def differences(values, official, answers):
    """The differences of all numbers of a script, by its names of metrics."""
    differences = {}
    for name, expected in official.items():
        if isinstance(expected, list) or name in NOT_COMPUTED or "Class_" in name:
            continue
        metric, _, ending = BY_SCRIPT.get(name, name).partition("@")
        column = f"{metric}_{answers}{ending}"
        differences[name] = abs(values[column] - expected)
    return differences


@pytest.mark.parametrize(
    ("folder", "challenge", "answers", "numbers"),
    [
        ("fm/binary", "fm-binary", "task", 2),
        ("fm/binary-hard", "fm-binary-hard", "task", 2),
        ("fm/regression", "fm-regression", "task", 1),
        ("fm/multiclass", "fm-multiclass", "task", 1),
        ("fm/multilabel", "fm-multilabel", "task", 1),
        ("fm/survival", "fm-survival", "task", 1),
        ("automsc/binary", "automsc-binary", "diagnosis", 7),
        ("automsc/multiclass", "automsc-multiclass", "diagnosis", 6),
    ],
)
def test_tables_score_as_by_the_scripts(shared, folder, challenge, answers, numbers):
    data = shared / "data" / "answers"
    official = json.loads((data / "official.json").read_text(encoding="utf-8"))
    file = data / "challenges" / f"{challenge}.toml"

    results = evaluate(data / folder, data / folder, challenge=str(file))

    found = differences(results.answer_values, official[folder], answers)
    assert len(found) == numbers
    assert max(found.values()) < 1e-12
    assert results.metrics == {}


@pytest.mark.parametrize("answers", TASKS)
@pytest.mark.parametrize(
    ("edition", "script"), [(2025, "qwen25"), (2026, "medgemma26")]
)
def test_questions_on_images_score_as_by_the_scripts(shared, edition, script, answers):
    data = shared / "data" / "answers"
    official = json.loads((data / "official.json").read_text(encoding="utf-8"))
    file = data / "challenges" / f"mllm2d-{edition}.toml"

    results = evaluate(data / "mllm2d", data / "mllm2d", challenge=str(file))

    of_task = official["mllm2d"][TASKS[answers]][script]
    found = differences(results.answer_values, of_task, answers)
    assert len(found) >= 2
    assert max(found.values()) < 1e-12


def test_chains_of_questions_score_as_by_the_scripts(shared):
    data = shared / "data" / "answers"
    official = json.loads((data / "official.json").read_text(encoding="utf-8"))
    file = data / "challenges" / "mllm3d.toml"

    values = evaluate(data / "mllm3d", data / "mllm3d", challenge=str(file))

    assert values.answer_values == pytest.approx(
        {
            "overlap_global": official["mllm3d"]["global_accuracy"],
            "chain_accuracy_local": official["mllm3d"]["local_accuracy"],
        },
        abs=1e-12,
    )
