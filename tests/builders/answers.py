"""Rules of answers of each kind, and rows of them."""

import json

from flare.answers.values import cells_text
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.metrics import ANSWER_METRICS
from flare.challenge.rules import Challenge
from flare.common.schema import build
from flare.evaluation.answers import read_sheets
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
    return [name for name, metric in ANSWER_METRICS.items() if kind in metric.functions]


def answer_row(number, reference, prediction, problem=""):
    return AnswerRow(
        answers="task",
        case=f"case_{number:03}",
        reference=_text(reference),
        prediction=_text(prediction),
        problem=problem,
    )


def answer_rows(references, predictions):
    pairs = zip(references, predictions, strict=True)
    return [answer_row(number, *pair) for number, pair in enumerate(pairs)]


def _text(value):
    if isinstance(value, tuple):
        return cells_text([str(cell) for cell in value])
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def entries_of(columns, values):
    """Objects of JSON with a value each, or with one for each of several columns."""
    for place, value in enumerate(values):
        cells = value if len(columns) > 1 else [value]
        yield {"name": f"case {place}", **dict(zip(columns, cells, strict=True))}


def answers_challenge(*rules):
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


class ByKind(dict):
    """A row of a test for each kind of answers."""

    def __missing__(self, kind):
        raise AssertionError(f"no row for the kind {kind} beside {', '.join(self)}")


REFERENCES = ByKind(
    binary="name,gt\ncase_1,1\ncase_2,0\n",
    classes="name,gt\ncase_1,malignant\ncase_2,0\n",
    labels="name,cyst,stone,ascites\ncase_1,1,0,1\ncase_2,0,1,0\n",
    number="name,gt\ncase_1,3\ncase_2,4.5\n",
    time="name,gt\ncase_1,3\ncase_2,4.5\n",
    choice="name,gt\ncase_1,A\ncase_2,B\n",
    label_set="name,gt\ncase_1,cyst; stone\ncase_2,\n",
    boxes='name,gt\ncase_1,"[[0, 0, 2, 2]]"\ncase_2,[]\n',
    chain="name,gt\ncase_1,a|b\ncase_2,c\n",
)
"""The references of two cases, by kind."""


def sheet_of(folder, kind, content, suffix="csv", **changes):
    """The answers that a file has, beside the references of two cases."""
    rules = answer_rules(kind, file=f"prediction.{suffix}", **changes)
    files = {
        "references/reference.csv": REFERENCES[kind],
        f"predictions/prediction.{suffix}": content,
    }
    folders = write_folders(folder, files)
    return read_sheets(*folders, answers_challenge(rules))[0]


def problems_of(sheet):
    """The code of each problem, and what it says of the file."""
    for problem in sheet.problems:
        assert problem.finding.startswith(f"{sheet.rules.file}: ")
        assert str(problem).isprintable()
        assert len(str(problem)) <= 500
    return [
        (problem.code, problem.finding.partition(": ")[2]) for problem in sheet.problems
    ]


DIAGNOSIS = """
[[answers]]
name = "diagnosis"
kind = "binary"
file = "results.csv"
reference_file = "reference.csv"
case = ["identifier"]
prediction = ["probs"]
reference = ["label"]
metrics = ["accuracy", "auroc"]
"""
"""Of a challenge file."""
