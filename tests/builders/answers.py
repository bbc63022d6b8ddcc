"""Rules of answers of each kind, and rows of them."""

import json

from flare.answers.values import cells_text
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.metrics import ANSWER_METRICS
from flare.challenge.rules import Challenge
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


def answers_challenge(*rules):
    """A challenge of answers alone."""
    return Challenge(key="answers", name="Answers", checksum="0" * 64, answers=rules)


def write_folders(folder, files):
    """Write texts or bytes of files, by their paths, below the folders of both sides.

    Returns the folder of the predictions and that of the references.
    """
    folders = folder / "predictions", folder / "references"
    for path in folders:
        path.mkdir(exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folders
