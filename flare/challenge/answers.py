"""The rules of answers: what a submission says in tables or JSON, not in label maps.

A record for each kind of answers names the functions that read its cells. The keys of
``[[answers]]`` in a challenge file are the fields of `AnswerRules`. The metrics of
answers are in `ANSWER_METRICS` of `metrics.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from flare.challenge.metrics import ANSWER_METRICS, MOST, NAME_FORM
from flare.common.schema import Checked, Is, Share, Text, check
from flare.common.text import listing

ANSWER_SUFFIXES = (".csv", ".json", ".jsonl")
"""The endings of files of answers."""

Name = Annotated[str, Is(pattern="^[a-z][a-z0-9_]{0,39}$", form=NAME_FORM)]
"""In keys of metrics.json: of an organ, of answers, or of a metric."""

LARGEST = MOST // 10
"""A number of an answer is at most this: the error of none is above `MOST`."""


class EmptyReference(Enum):
    """The meaning of a case, or a class, of which the references have nothing."""

    COUNTED = "counted"
    """A set counts 1 if nothing is answered, else 0; the average precision of a class
    is 0, as scikit-learn 1.9.1 has it."""
    LEFT_OUT = "left_out"
    """It is not among those of which the mean is made."""


class Positive(Enum):
    """Which probabilities call a case positive."""

    ABOVE = "above"
    """Those above the threshold, as in FLARE25-CT-MR-FM."""
    FROM = "from"
    """Those, and the threshold itself, as in AutoMSC-Baseline."""


class BoxMatching(Enum):
    """The order in which predicted boxes take boxes of the reference."""

    FILE = "file"
    """The order of the file: each takes the best box that is free, if their IoU is
    above the one asked for, as in FLARE25-QWen2.5VL."""
    IOU = "iou"
    """The best pair first, if its IoU is the one asked for or above it, as in
    FLARE26-MedGemma."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of answers.

    Its functions are below `flare.answers`, as ``module:function``, and are imported
    when they are first needed.
    """

    name: str
    about: str
    """What each answer is, for people."""
    reference: str
    """The function that reads the cells of a reference: it takes them and the rules,
    returns the value, and raises a ValueError that says what is wrong."""
    prediction: str
    """The function that reads the cells of a prediction, likewise."""
    missing: str
    """The function that takes a reference and the rules, and returns the worst answer
    to it, which stands for a missing one."""
    may_be_empty: bool = False
    """Whether an empty cell is an answer."""
    is_decision: bool = False
    """Whether each answer is, or decides for, one of several classes."""
    curve: str = ""
    """The metric whose cases are a class and a score, for a curve of all thresholds;
    empty if an answer is no such score."""
    needs_classes: bool = False
    """Whether the challenge file has to name the classes."""
    has_columns: bool = False
    """Whether each column of the reference has one of the answer."""
    needs_worst: bool = False
    """Whether a missing answer has no worst value but the one of the challenge file."""


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="binary",
            about="a probability from 0 to 1, or a class, 0 or 1",
            reference="cells:zero_or_one",
            prediction="cells:probability",
            missing="cells:wrong_probability",
            is_decision=True,
            curve="auroc",
        ),
        Kind(
            name="classes",
            about="a finite score for each class",
            reference="cells:class_number",
            prediction="cells:class_scores",
            missing="cells:wrong_class_scores",
            is_decision=True,
            needs_classes=True,
        ),
        Kind(
            name="labels",
            about="a probability from 0 to 1 for each label",
            reference="cells:label_truths",
            prediction="cells:label_scores",
            missing="cells:wrong_label_scores",
            has_columns=True,
        ),
        Kind(
            name="number",
            about="a number",
            reference="cells:single_number",
            prediction="cells:single_number",
            missing="cells:wrong_number",
            needs_worst=True,
        ),
        Kind(
            name="time",
            about="a time, or a number that grows with it",
            reference="cells:single_number",
            prediction="cells:single_number",
            missing="cells:no_number",
        ),
        Kind(
            name="choice",
            about="a word or a letter",
            reference="cells:choice",
            prediction="cells:choice",
            missing="cells:no_choice",
            is_decision=True,
        ),
        Kind(
            name="label_set",
            about="words with semicolons or commas between them, or nothing",
            reference="cells:word_set",
            prediction="cells:word_set",
            missing="cells:wrong_words",
            may_be_empty=True,
        ),
        Kind(
            name="boxes",
            about="boxes [x1, y1, x2, y2] in JSON, also by label, or nothing",
            reference="boxes:read_boxes",
            prediction="boxes:read_boxes",
            missing="boxes:wrong_boxes",
            may_be_empty=True,
        ),
        Kind(
            name="chain",
            about="the answers to a question and to those that follow from it, with |"
            " between them",
            reference="cells:chain",
            prediction="cells:chain",
            missing="cells:no_chain",
            may_be_empty=True,
        ),
    )
}
"""All kinds by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules(Checked):
    """Answers that are scored: their files, columns, kind and metrics."""

    name: Name
    """As in the keys of metrics.json: lower case, digits and underscores."""
    kind: Annotated[str, Is(enum=KINDS)]
    """How the cells are read."""
    file: str
    """Name of the file of a submission, in any of its folders."""
    reference_file: str = ""
    """Name of the file of the references; empty if it is the same."""
    case: tuple[Text, ...] = ("name",)
    """Columns that say, together, of which case a row is."""
    prediction: tuple[Text, ...] = ("prediction",)
    """Columns of the answer: one, or one for each class or label."""
    reference: tuple[Text, ...] = ("gt",)
    """Columns of the right answer, in the file of the references."""
    only: Mapping[str, str] = field(default_factory=dict)
    """Columns, and the value that a row must have there to count; a file without the
    column has such rows alone."""
    classes: tuple[Text, ...] = ()
    """Names of the classes in their order, or of the words that can be chosen."""
    metrics: tuple[Annotated[str, Is(enum=ANSWER_METRICS)], ...]
    """The metrics of all cases together."""
    threshold: Share = 0.5
    """The probability by which a binary answer is called positive."""
    positive: Positive = Positive.ABOVE
    """Whether the threshold itself is positive."""
    empty: EmptyReference = EmptyReference.COUNTED
    """The meaning of a case, or a class, of which the references have nothing."""
    iou: tuple[Share, ...] = (0.5,)
    """The IoU by which a box is found; of several, the mean of their values counts."""
    matching: BoxMatching = BoxMatching.FILE
    """The order in which predicted boxes take boxes of the reference."""
    worst: Annotated[float, Is(minimum=0, maximum=LARGEST)] | None = None
    """Absolute error of a missing number; null where no number may be missing."""

    def _check_rules(self) -> None:
        self._check_files()
        for key in ("case", "prediction", "reference", "metrics", "iou"):
            check(bool(getattr(self, key)), key, [], "at least one")
        if self.kind in KINDS:
            self._check_kind(KINDS[self.kind])

    def _check_files(self) -> None:
        suffixes = listing(ANSWER_SUFFIXES, last=" or ")
        for key, name in (("file", self.file), ("reference_file", self.references)):
            is_plain = name.isprintable() and not {*"/\\"} & {*name}
            is_table = name.endswith(ANSWER_SUFFIXES) and not name.startswith(".")
            expected = f"a name without folders that ends in {suffixes}"
            check(is_plain and is_table, key, name, expected)

    def _check_kind(self, kind: Kind) -> None:
        names = [
            name
            for name, metric in ANSWER_METRICS.items()
            if kind.name in metric.functions
        ]
        expected = f"of kind {kind.name}: {listing(names, last=' or ')}"
        for number, name in enumerate(self.metrics, start=1):
            is_right = name in names and self.metrics.count(name) == 1
            check(is_right, f"metrics[{number}]", name, f"each once, {expected}")
        has_classes = len(self.classes) > 1 or not kind.needs_classes
        check(has_classes, "classes", list(self.classes), "the names of two or more")
        widths = (1, len(self.classes)) if kind.needs_classes else (1,)
        if kind.has_columns:
            widths = (len(self.reference),)
        is_wide = len(self.prediction) in widths
        noun = "column" if widths == (1,) else "columns"
        expected = f"{listing(map(str, widths), last=' or ')} {noun}"
        check(is_wide, "prediction", list(self.prediction), expected)

    @property
    def references(self) -> str:
        """The name of the file of the references."""
        return self.reference_file or self.file

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of its metrics in metrics.json."""
        return tuple(f"{metric}_{self.name}" for metric in self.metrics)
