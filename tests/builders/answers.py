"""Rules of answers of each kind, and rows of them."""

import json

from flare.answers.values import cells_text
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.metrics import ANSWER_METRICS
from flare.common.schema import build
from flare.results.answers_csv import AnswerRow

LABELS = ["cyst", "stone", "ascites"]
"""The columns of answers of the kind labels."""


def answer_rules(kind, **changes):
    """Rules of a kind, with all its metrics; `changes` are other values of keys."""
    values = {
        "name": "task",
        "kind": kind,
        "file": "prediction.csv",
        "reference_file": "reference.csv",
        "metrics": metrics_of(kind),
    }
    if kind == "labels":
        values |= {"prediction": LABELS, "reference": LABELS}
    if KINDS[kind].needs_classes:
        values["classes"] = ["benign", "borderline", "malignant"]
    return build(AnswerRules, values | changes)


def metrics_of(kind):
    """The names of all metrics of a kind."""
    return [name for name, metric in ANSWER_METRICS.items() if kind in metric.functions]


def answer_row(number, reference, prediction, problem=""):
    """A row of texts, lists of cells, or numbers."""
    return AnswerRow(
        answers="task",
        case=f"case_{number:03}",
        reference=_text(reference),
        prediction=_text(prediction),
        problem=problem,
    )


def answer_rows(references, predictions):
    """A row for each reference and its prediction."""
    pairs = zip(references, predictions, strict=True)
    return [answer_row(number, *pair) for number, pair in enumerate(pairs)]


def _text(value):
    if isinstance(value, tuple):
        return cells_text([str(cell) for cell in value])
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
