"""Holds the scores of one evaluation: exact ones, and those that anybody may know.

A score in full precision gives away how many voxels the reference has. So participants'
scores are rounded before anything is drawn, as each metric's record says, and whatever
is drawn, counted or averaged comes from these alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Self

from flare.challenge.formats import case_of
from flare.challenge.metrics import METRICS, SCORES, Metric, is_score, metric_of
from flare.challenge.reading import challenge_names, read_challenge
from flare.common.intervals import mean_interval
from flare.common.text import count, listing, safe
from flare.reports.model import Cell, metric_shade, number_cell
from flare.results.groups_csv import Grouping
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import Evaluation, EvaluationFile

INTERVAL = "distribution-free 95 % interval"
"""Its name in print."""

METHOD = (
    "95 % confidence intervals of means, and of mean differences, are Gaffke's, which"
    " suppose nothing but the range of scores (0 to 1) and that the cases are a random"
    " sample: with few cases they are wide, as a rare failure may not be among them"
    " (Learned-Miller and Thomas 2019, arXiv:1905.06208)."
)

FEWEST_SHOWN = 5
"""Participants are told nothing of groups if one of them has fewer cases."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a metric over some cases, with the values that it is of."""

    column: str
    """The metric, such as ``dsc`` or ``nsd_liver``."""
    values: Sequence[float | None]
    """By case."""
    told: float | None = None
    """What the evaluation has said that it is."""

    @property
    def known(self) -> list[float]:
        """The values that there are."""
        return [value for value in self.values if value is not None]

    @property
    def value(self) -> float | None:
        """Of the cases with a result; None if there is none."""
        known = self.known if self.told is None else [self.told]
        return fmean(known) if known else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """A confidence interval; of scores alone, and not of few cases."""
        return mean_interval(self.known) if is_score(self.column) else None

    @property
    def interval_text(self) -> str:
        """The interval, or why there is none."""
        if interval := self.interval:
            return f"{interval[0]:.3f} to {interval[1]:.3f}"
        return "too few cases" if is_score(self.column) else "none"

    @property
    def numbers(self) -> tuple[object, ...]:
        """For a file: cases, those without a result, mean, and ends of the interval."""
        missing = len(self.values) - len(self.known)
        return len(self.values), missing, self.value, *(self.interval or (None, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScores:
    """The scores of all cases, as organisers may know them."""

    challenge: str
    cases: tuple[str, ...]
    organs: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]
    """By metric, such as ``dsc`` or ``nsd_liver``: a value for each case."""
    means: Mapping[str, float] = field(default_factory=dict)
    """By metric, where the evaluation has told them."""
    failed: Mapping[str, str]
    """By case that was not scored: why."""
    said: Mapping[str, str] = field(default_factory=dict)
    """By case: why it scores little, as the evaluation has said it."""
    exact: ClassVar[bool] = True
    """Whether a page may hold values in full precision, and figures of other
    statistics than means."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that there are."""
        return tuple(own for name, own in METRICS.items() if name in self.values)

    def mean(self, column: str, numbers: Sequence[int] | None = None) -> Mean:
        """The mean over the cases, or over those with some numbers."""
        values = self.values.get(column, ())
        if numbers is None:
            return Mean(column, values, self.means.get(column))
        return Mean(column, [values[number] for number in numbers])

    def cell(
        self, metric: Metric, value: float | None, *, is_shaded: bool = False
    ) -> Cell:
        """A value, on the shade of a score if it is one."""
        return metric_cell(metric, value, exact=self.exact, is_shaded=is_shaded)

    def part(self, numbers: Sequence[int], names: Sequence[str]) -> Self:
        """The scores of some cases, under other names."""
        renamed = {self.cases[n]: name for n, name in zip(numbers, names, strict=True)}
        failed, said = (
            {name: texts[case] for case, name in renamed.items() if case in texts}
            for texts in (self.failed, self.said)
        )
        return replace(
            self,
            cases=tuple(names),
            values={
                c: tuple(own[n] for n in numbers) for c, own in self.values.items()
            },
            means={},
            failed=failed,
            said=said,
        )

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """How each organ, and their mean, ends the name of a metric, and its title."""
        whole = [] if len(self.organs) == 1 else [("", "mean of organs")]
        return (*whole, *self.organ_rows)

    @property
    def organ_rows(self) -> tuple[tuple[str, str], ...]:
        """Those of the organs alone."""
        return tuple((f"_{o}", o.replace("_", " ")) for o in self.organs)

    @property
    def worst_first(self) -> list[int]:
        """The numbers of the cases, lowest scores first; equal ones in their order."""

        def worth(number: int) -> tuple[float, ...]:
            scores = (self.values[m.name][number] for m in self.metrics if m.is_share)
            return *(-1.0 if value is None else value for value in scores), number

        return sorted(range(len(self.cases)), key=worth)

    def by_organ(self, number: int) -> dict[str, float]:
        """What the organs of a case score by the first metric, by their titles."""
        first = self.metrics[0].name
        found = {
            title: self.values[first + end][number] for end, title in self.organ_rows
        }
        return {title: value for title, value in found.items() if value is not None}

    def lowest_organ(self, number: int) -> str:
        """What the numbers tell of why a case scores low."""
        found, first = self.by_organ(number), self.metrics[0]
        zeros = [title for title, value in found.items() if value == 0]
        if zeros:
            every = "every organ" if len(zeros) == len(found) > 1 else ", ".join(zeros)
            return f"no overlap with the reference: {every}"
        if len(found) < 2:
            return ""
        means = {
            t: self.mean(first.name + end).value or 0.0 for end, t in self.organ_rows
        }
        title = min(found, key=lambda own: found[own] - means[own])
        return (
            f"lowest beside its mean: {title}, {first.title} {found[title]:.3f}"
            f" (mean {means[title]:.3f})"
        )

    @property
    def missed(self) -> str:
        """How many cases were not scored, and on how many an organ is missed."""
        scored = [n for n, case in enumerate(self.cases) if case not in self.failed]
        zeros = Counter(
            title
            for number in scored
            for title, value in self.by_organ(number).items()
            if value == 0
        )
        names = listing(f"{title} on {n}" for title, n in zeros.most_common())
        is_known = scored and self.organs
        found = ["No organ of a scored case is missed altogether."] if is_known else []
        if zeros:
            of = count(len(scored), "case")
            found = [f"No overlap with the reference: {names} of {of}."]
        if self.failed:
            of = count(len(self.cases), "case")
            found.insert(0, f"{len(self.failed)} of {of} not scored.")
        return " ".join(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScores(CaseScores):
    """What a participant may know of an evaluation: it cannot hold any more digits."""

    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """See that no score has more digits than told, and means are made from them."""
        for column, values in self.values.items():
            metric = metric_of(column)
            if metric is None or not metric.for_participants:
                raise ValueError(f"{column} is not for participants")
            for score in values:
                if score is not None and not _is_told(score, metric):
                    raise ValueError(f"{column} is {score!r}, not as it is told")
        if self.means or self.said:
            raise ValueError("means of exact scores, or what was said of them")


def _is_told(score: object, metric: Metric) -> bool:
    """Whether a score is one that participants may know."""
    low, high = metric.range
    return type(score) is float and low <= score <= high and metric.told(score) == score


def scores_of(found: EvaluationFile) -> CaseScores:
    """All scores of a metrics.json, in full precision."""
    told = dict.fromkeys(column for _, column in found.values)
    prefix = f"{SCORES[0]}_"
    organs = [
        column.removeprefix(prefix) for column in told if column.startswith(prefix)
    ]
    metrics = [name for name in METRICS if name in SCORES or name in told]
    columns = [*metrics, *(f"{name}_{organ}" for name in metrics for organ in organs)]
    return CaseScores(
        challenge=challenge_title(found.evaluation),
        cases=found.cases,
        organs=tuple(organs),
        values={
            metric: tuple(found.values.get((case, metric)) for case in found.cases)
            for metric in columns
        },
        means={
            metric: found.aggregates[f"{metric}_mean"]
            for metric in columns
            if f"{metric}_mean" in found.aggregates
        },
        failed=found.failed,
        said={case: low.reason for low in found.low_scores for case in low.cases},
    )


def challenge_title(evaluation: Evaluation) -> str:
    """What a challenge is called in print: by its name, or its key where none is told.

    Examples
    --------
    >>> challenge_title(Evaluation(challenge="mine", challenge_name="MINE-26"))
    'MINE-26'
    >>> challenge_title(Evaluation(challenge="flare21"))
    'FLARE 2021'
    >>> challenge_title(Evaluation(challenge="mine"))
    'mine'
    """
    key = evaluation.challenge
    is_bundled = not evaluation.challenge_name and key in challenge_names()
    return read_challenge(key).name if is_bundled else evaluation.challenge_name or key


def evaluation_names(sources: Sequence[Path]) -> tuple[str, ...]:
    """What evaluations are called: short, and no two alike.

    Examples
    --------
    >>> evaluation_names([Path("old/metrics.json"), Path("new/metrics.json")])
    ('old', 'new')
    >>> evaluation_names([Path("runs/old.json"), Path("runs/new.json")])
    ('old', 'new')
    >>> evaluation_names([Path("old.json"), Path("old.json")])
    ('1: old.json', '2: old.json')
    """
    folders = [source.absolute().parent.name for source in sources]
    usual = [
        folder if source.name == METRICS_JSON else source.stem
        for source, folder in zip(sources, folders, strict=True)
    ]
    for texts in (usual, folders, map(str, sources)):
        names = tuple(map(safe, texts))
        if all(names) and len({*names}) == len(names):
            return names
    return tuple(safe(f"{n}: {source}") for n, source in enumerate(sources, start=1))


def own_scores(
    found: EvaluationFile, known: Collection[str] = frozenset()
) -> OwnScores:
    """What a participant may know of an evaluation; nothing else goes on from here.

    A case has the name of the participant's own file, or its number where there is
    none, unless its name is no secret; why it was not scored are words that no voxel of
    the reference has a part in. Each value has the digits of its metric's record.
    """
    exact = scores_of(found)
    files = [found.prediction_files.get(case, "") for case in exact.cases]
    names = dict(zip(exact.cases, own_names(files), strict=True))
    names |= {case: case for case in exact.cases if case in known}
    return OwnScores(
        challenge=exact.challenge,
        cases=tuple(names.values()),
        organs=exact.organs,
        values={
            column: tuple(None if v is None else metric.told(v) for v in values)
            for column, values in exact.values.items()
            if (metric := metric_of(column)) and metric.for_participants
        },
        failed={names[case]: why for case, why in exact.failed.items()},
    )


def own_names(files: Sequence[str]) -> list[str]:
    """What cases are called without the names of their references.

    Where there is no file, or several of one name, a case has its number, from 1.

    Examples
    --------
    >>> own_names(["a.nii.gz", "", "b.mha", "b.nrrd"])
    ['a', 'case 2, without a file', 'b (3)', 'b (4)']
    """
    names, numbers = list(map(case_of, files)), range(1, len(files) + 1)
    several = {name for name, times in Counter(names).items() if times > 1}
    return [
        (f"{name} ({n})" if name in several else name)
        if file
        else f"case {n}, without a file"
        for file, name, n in zip(files, names, numbers, strict=True)
    ]


# --- Groups of cases --------------------------------------------------------------


def metric_cell(
    metric: Metric, value: float | None, *, exact: bool, is_shaded: bool = True
) -> Cell:
    """A value, on its shade if the metric has shades."""
    css = metric_shade(metric, value) if is_shaded else ""
    return number_cell(value, decimals=metric.decimals, exact=exact, css=css)


def title_within(metric: Metric) -> str:
    """The title of a metric, with its unit, within a line.

    Examples
    --------
    >>> title_within(METRICS["hd95"]), title_within(METRICS["volume_difference"])
    ('HD95 (mm)', 'volume difference')
    """
    title = metric.title_with_unit
    return title[0].lower() + title[1:] if title[1].islower() else title


def group_title(name: str, cases: int) -> str:
    """A group, and how many cases it has.

    Examples
    --------
    >>> group_title("Asia", 12)
    'Asia (12 cases)'
    """
    return f"{name} ({count(cases, 'case')})"


def silence(grouping: Grouping) -> str:
    """Why participants are told nothing of the groups of a column, if they are not."""
    small = [name for name, cases in grouping.groups if len(cases) < FEWEST_SHOWN]
    if not small:
        return ""
    return (
        f"Nothing is told by {grouping.column}, as a group has fewer than"
        f" {FEWEST_SHOWN} cases: {listing(small)}. What is missing could be found from"
        " the other groups."
    )
