"""The scores of cases and submissions: the numbers, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypedDict

from flare.challenge.formats import PLAIN_NAMES, FileNames
from flare.challenge.metrics import (
    Metric,
    lesions_by,
    lesions_in,
    metric_named,
    shares_of_masks,
)
from flare.challenge.organs import STATISTICS
from flare.challenge.reading import Rule
from flare.common.schema import OMIT, Is, Positive, Sha256, Text
from flare.common.text import count, listing

if TYPE_CHECKING:
    import pandas as pd

    from flare.results.answers_csv import AnswerRow


class _ByMetric:
    """Scores whose first two metrics have names of their own."""

    __slots__ = ()
    by_metric: Mapping[str, float | None]

    @property
    def dsc(self) -> float | None:
        """From 0 (worst) to 1 (best); of a case, the mean over organs that count."""
        return self.by_metric["dsc"]

    @property
    def nsd(self) -> float | None:
        """From 0 (worst) to 1 (best); of a case, the mean over organs that count."""
        return self.by_metric["nsd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganScore(_ByMetric):
    """The scores of one organ in one case, after all rules of the challenge."""

    organ: str
    """Its name, as the challenge has it."""
    by_metric: Mapping[str, float | None]
    """The scores by metric; None is what a rule of the challenge leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore(_ByMetric):
    """The scores of one case."""

    case: str
    """Its name; empty for a pair of images in memory."""
    reference_file: str
    """Name without folders."""
    prediction_file: str
    """Name without folders."""
    organs: tuple[OrganScore, ...]
    """The organs in the order of the challenge."""
    by_metric: Mapping[str, float | None]
    """By metric, the mean over the organs that count, and have a value; else None."""
    is_empty: bool = False
    """Whether the prediction has no organ at all."""
    unknown_labels: tuple[int, ...] = ()
    """Labels of the prediction that are no organs; the first few of many."""
    failure: str = ""
    """Why the case was not scored, and got the worst value instead."""
    free_of: tuple[str, ...] = ()
    """Organs that are not in the reference, of those whose absence is reported."""
    left_empty: tuple[str, ...] = ()
    """Organs of these that the prediction leaves out as well."""

    def is_below(self, bound: float) -> bool:
        """Whether its DSC, or else its first other share of masks, is below a bound."""
        shares = shares_of_masks(self.by_metric)
        value = next((self.by_metric[name] for name in shares), None)
        return value is not None and value < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScore:
    """The scores of the answers to one ``[[answers]]`` of a challenge."""

    name: str
    """The name of the answers, as the challenge has it."""
    by_metric: Mapping[str, float]
    """The values of all cases together, by their keys in metrics.json."""
    rows: tuple[AnswerRow, ...]
    """Each answer beside its reference: for organisers alone."""


JOBS_NOTE = (
    "As the platform says: on its own, shared hardware, with the start of the container"
    " and the loading of the model. Not to be ranked by."
)
"""The note beside the running times of an algorithm's jobs."""


class ResultOptions(TypedDict):
    """Options that change a result, as far as they were set."""

    on_bad_case: NotRequired[Literal["worst"]]
    """`worst` if a case that could not be used scores 0."""
    grid: NotRequired[Literal["strict", "size"]]
    """How strictly grids were compared."""
    unknown_labels: NotRequired[Literal["refuse", "ignore"]]
    """What unknown labels in predictions meant."""
    decimals: NotRequired[Annotated[str, Is(pattern="^[0-9]+$")]]
    """Decimals of all numbers in this file, as a text."""


class Machine(TypedDict):
    """The computer of this run. Nothing else in the file depends on it."""

    python: Text
    """Version of Python."""
    system: Text
    """Operating system and kind of processor."""


References = Literal["bundled", "tarball", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where results come from; equal for equal results, but for the machine."""

    challenge: Text
    """Name of the challenge, as given to `--challenge`."""
    challenge_name: Text = field(default="", metadata=OMIT)
    """Its name for people; files of version 0.2.0 do not have it."""
    challenge_sha256: Sha256
    """SHA-256 of the bytes of its file, and of those that it extends behind them."""
    rules: Annotated[Mapping[str, Rule], Is(entry=EACH_RULE)]
    """All rules that the scores depend on, by their keys; those of an organ are called
    such as "tolerance_mm of liver". The page about challenge files explains them."""
    rules_sha256: Sha256
    """SHA-256 of `rules`, whatever their order."""
    rules_note: Text = field(default="", metadata=OMIT)
    """Only where the organisers have not confirmed the rules: says so, and who reports
    them."""
    version: Text
    """Version of the program."""
    commit: Text
    """Commit of the program's source; `unknown` where it is not known."""
    references: References
    """Which reference labels were used: those that come with the image or the program,
    those of the platform's ground truth tarball, or those of `--ground-truth`."""
    references_sha256: Annotated[
        str, Is(pattern="^([0-9a-f]{64}|simulated with seed [0-9]+)$")
    ]
    """SHA-256 over the names and contents of all reference files; made-up results tell
    their seed instead."""
    cases: Positive
    """Number of cases."""
    options: Annotated[Mapping[str, str], Is(like=ResultOptions)]
    """Options that change a result, as far as they were set."""
    libraries: Annotated[
        Mapping[str, Text], Is(entry=("LIBRARY", "Version of a library."))
    ]
    """Versions of the libraries that a result rests on."""
    machine: Machine
    """The computer of this run. Nothing else in the file depends on it."""
    names: FileNames = field(default=PLAIN_NAMES, metadata=OMIT)
    """Only where the challenge says what the files of a case are called."""


EACH_RULE = (
    "RULE",
    "The value of a rule; null, or an empty text, where the challenge sets none.",
)
"""What the keys of `rules` are called, and mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowScores:
    """Why some cases score little or nothing."""

    reason: Text
    """A line for people, which counts the cases; it is among the warnings, too."""
    cases: tuple[str, ...]
    """The names of the cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeCases:
    """How a submission does on cases without an organ, such as a lesion."""

    organ: str
    cases: int
    """The number of references that do not have it."""
    left_empty: int
    """The number of them in which the prediction does not have it either."""

    @property
    def text(self) -> str:
        """A line for people.

        Examples
        --------
        >>> FreeCases(organ="lesion", cases=5, left_empty=3).text
        'lesion: 3 of 5 cases without it were left empty'
        """
        name, cases = self.organ.replace("_", " "), count(self.cases, "case")
        were = "was" if self.cases == 1 else "were"
        return f"{name}: {self.left_empty} of {cases} without it {were} left empty"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Results:
    """What a submission scores."""

    cases: tuple[CaseScore, ...]
    """In the order of their names; none where only answers are scored."""
    warnings: tuple[str, ...]
    """What was odd, and yet could be scored: a line for each."""
    provenance: Provenance
    """Where the numbers come from: the rules, the references and the versions."""
    answers: tuple[AnswerScore, ...] = ()
    """The scores of answers, in the order of the challenge."""
    low_scores: tuple[LowScores, ...] = ()
    """What was let pass and explains zeros, each kind with its cases."""
    free_cases: tuple[FreeCases, ...] = ()
    """Of each organ whose absence is reported."""
    decimals: int | None = None
    """Decimals in metrics.json; None for full precision."""
    efficiency: dict[str, float] | None = None
    """Means of what was measured; None if nothing was."""
    jobs: dict[str, dict[str, float]] = field(default_factory=dict)
    """Running times of an algorithm's jobs on the platform, in s, by key and case."""

    def __repr__(self) -> str:
        """Return one short line: the rules, how many cases there are, and the means."""
        texts = [value_text(name, value) for name, value in self.totals.items()]
        cases = count(self.provenance.cases, "case")
        return f"<Results: {self.provenance.challenge}, {cases}, {', '.join(texts)}>"

    @property
    def answer_values(self) -> dict[str, float]:
        """The values of all answers, by their keys in metrics.json."""
        values: dict[str, float] = {}
        for answers in self.answers:
            values |= answers.by_metric
        return values

    @property
    def answer_rows(self) -> tuple[AnswerRow, ...]:
        """All answers beside their references, which answers.csv has."""
        return sum((answers.rows for answers in self.answers), ())

    @property
    def totals(self) -> dict[str, float | None]:
        """The mean of each metric over organs and cases, and the values of answers.

        It is None where no case has a value, as the challenge leaves all out.
        """
        names = self.cases[0].by_metric if self.cases else ()
        return {name: self.mean(name) for name in names} | self.answer_values

    @property
    def metrics(self) -> dict[str, tuple[float | None, ...]]:
        """The values of all cases, by metric, in the order of metrics.json."""
        columns: dict[str, tuple[float | None, ...]] = {}
        if not self.cases:
            return columns
        for number, organ in enumerate(self.cases[0].organs):
            scores = [case.organs[number] for case in self.cases]
            for name in organ.by_metric:
                values = tuple(score.by_metric[name] for score in scores)
                columns[f"{name}_{organ.organ}"] = values
        for name in self.cases[0].by_metric:
            columns[name] = tuple(case.by_metric[name] for case in self.cases)
        return columns

    @property
    def lesions(self) -> dict[str, str]:
        """The definition of each organ with lesions, if they are scored."""
        return lesions_in(self.provenance.rules, self.metrics)

    def mean(self, column: str) -> float | None:
        """The mean of a metric over all cases that have a value; None without any."""
        return mean(self.metrics[column])

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each case, and a column for each metric.

        The column ``failure`` says why a case was not scored, and got the worst value
        instead; it is empty for all others. What the challenge leaves out is NaN.
        """
        import pandas as pd  # which the container has no need of

        index = pd.Index([case.case for case in self.cases], name="case")
        failures = [case.failure for case in self.cases]
        return pd.DataFrame({**self.metrics, "failure": failures}, index=index)


def value_text(column: str, value: float | None) -> str:
    """A value behind the title of its metric, and the answers that it is of."""
    metric = metric_named(column)
    metric = replace(metric, decimals=metric.decimals + 1)
    return f"{metric.full_title} {metric.text(value)}"


def present(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]


def mean(all_values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none.

    The sum is exact (`math.fsum`), so that no order and no processor changes a digit.
    """
    values = present(all_values)
    return math.fsum(values) / len(values) if values else None


def statistics(all_values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean, sample standard deviation (n - 1), minimum, maximum and median.

    Sums are exact, as in `mean`. A value that is None is left out; without any, so is
    each statistic.

    Examples
    --------
    >>> statistics([0.5, 1.0])["mean"]
    0.75
    >>> print(statistics([0.5])["std"])
    None
    """
    values = present(all_values)
    count = len(values)
    if not count:
        return dict.fromkeys(STATISTICS)
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    middle = sorted(values)[(count - 1) // 2 : count // 2 + 1]
    numbers = (
        mean,
        math.sqrt(squares / (count - 1)) if count > 1 else None,
        min(values),
        max(values),
        math.fsum(middle) / len(middle),
    )
    return dict(zip(STATISTICS, numbers, strict=True))


def results_table(results: Results) -> str:
    """Mean and standard deviation of each organ, and answers, for people to read."""
    lines = [value_text(*item) for item in results.answer_values.items()]
    if results.cases:
        lines = [*_organ_table(results), *lines]
    return "\n".join(lines)


def _organ_table(results: Results) -> Iterator[str]:
    columns = results.metrics
    with lesions_by(results.lesions):
        metrics = [*map(metric_named, results.cases[0].by_metric)]
    titles, names = [""], [""]
    for metric in metrics:
        for name in (*metric.statistics, "std"):
            titles.append(metric.title if name == "mean" else "")
            names.append(name)
    rows = [titles, names]
    for column in map(metric_named, columns):
        if column.base == metrics[0].name:
            rows.append(_organ_row(column.part, metrics, columns))
    yield from _lines(rows)
    yield from partial_means(columns)
    yield from (organ.text for organ in results.free_cases)


def partial_means(columns: Mapping[str, Sequence[float | None]]) -> Iterator[str]:
    """Tell of how many cases a mean is, where the challenge leaves values out.

    Examples
    --------
    >>> list(partial_means({"dsc_lesion": [0.5, None], "nsd_lesion": [0.6, None]}))
    ['lesion: mean of 1 of 2 cases (DSC, NSD)']
    """
    titles: dict[str, list[str]] = {}
    for metric, values in zip(
        map(metric_named, columns), columns.values(), strict=True
    ):
        cases = len(values) - values.count(None)
        if cases < len(values):
            name = metric.part_title or "mean of organs"
            text = f"{name}: mean of {cases} of {count(len(values), 'case')}"
            titles.setdefault(text, []).append(metric.title)
    for text, metric_titles in titles.items():
        yield f"{text} ({listing(metric_titles)})"


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Set names to the left and numbers to the right, in columns of a width."""
    name_width, *widths = (max(map(len, cells)) for cells in zip(*rows, strict=True))
    for name, *cells in rows:
        parts = [name.ljust(name_width)]
        for cell, width in zip(cells, widths, strict=True):
            parts.append(cell.rjust(max(6, width)))
        yield "  ".join(parts)


def _organ_row(
    organ: str, metrics: Sequence[Metric], columns: Mapping[str, Sequence[float | None]]
) -> list[str]:
    """The statistics of an organ, or of the means of all organs if it has no name."""
    row = [organ or "mean of organs"]
    for metric in metrics:
        column = f"{metric.name}_{organ}" if organ else metric.name
        numbers = statistics(columns[column]) if column in columns else {}
        for name in (*metric.statistics, "std"):
            value = numbers.get(name)
            cell = "-" if value is None else f"{value:z.{metric.decimals + 1}f}"
            row.append(cell)
    return row
