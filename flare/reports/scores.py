"""Holds the scores of one evaluation: exact ones, and those that anybody may know.

A score in full precision gives away how many voxels the reference has. So participants'
scores are rounded before anything is drawn, as each metric's record says, and whatever
is drawn, counted or averaged comes from these alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Self

from flare.challenge.formats import case_of
from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.metrics import (
    METRICS,
    NO_VALUE,
    Better,
    Metric,
    metric_named,
    metrics_in,
    scored,
)
from flare.challenge.reading import challenge_names, read_challenge
from flare.common.text import count, listing, safe
from flare.reports.model import NO_RESULT, Cell, metric_shade, number_cell
from flare.results.groups_csv import Grouping
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import EvaluationFile, ScoringRecord
from flare.results.scores import present
from flare.statistics import DRAWS, SEED
from flare.statistics.bootstrap import mean_interval, reason_for_none

INTERVAL = "95 % interval"

METHOD = (
    f"95 % confidence intervals of means, and of mean differences, are those of {DRAWS}"
    f" bootstrap samples of the cases (percentiles 2.5 and 97.5, seed {SEED}), which"
    " suppose that the cases are a random sample. They are too narrow where a failure"
    " is rare, or cases are few: of 10 to 20 cases they hold the true mean in 67 to"
    " 93 % of simulated draws, of 100 in 91 to 94 %."
)

FEWEST_SHOWN = 5
"""Participants are told nothing of groups if one of them has fewer cases."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a metric over some cases, with the values that it is of."""

    column: str
    """The metric, such as ``dsc`` or ``nsd_liver``."""
    values: Sequence[float | None]
    """The value of each case, if it has a result."""
    recorded: float | None = None

    @property
    def present(self) -> list[float]:
        """The values of the cases with a result."""
        return present(self.values)

    @property
    def value(self) -> float | None:
        """The mean of the cases with a result; None without any."""
        values = self.present if self.recorded is None else [self.recorded]
        return fmean(values) if values else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """A confidence interval; of scores alone, and not of few or equal cases."""
        is_share = metric_named(self.column).is_share
        return _interval(tuple(self.present)) if is_share else None

    @property
    def interval_text(self) -> str:
        """The interval, or why it was left out."""
        if interval := self.interval:
            return f"{interval[0]:.3f} to {interval[1]:.3f}"
        if not metric_named(self.column).is_share:
            return "none"
        if self.recorded is not None and not self.values:
            return "values of cases are not told"
        return reason_for_none(self.present)

    @property
    def numbers(self) -> tuple[object, ...]:
        """Numbers for a file: cases, missing results, mean, ends of the interval."""
        missing = len(self.values) - len(self.present)
        return len(self.values), missing, self.value, *(self.interval or (None, None))


_interval = lru_cache(maxsize=16)(mean_interval)
"""Words and numbers of an interval are asked for one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScores:
    """The scores of all cases, as organisers may know them."""

    challenge: str
    cases: tuple[str, ...]
    organs: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]
    """The value of each case by metric, such as ``dsc`` or ``nsd_liver``."""
    means: Mapping[str, float] = field(default_factory=dict)
    """The means by metric, where the evaluation has written them."""
    answers: Mapping[str, float] = field(default_factory=dict)
    """The values of answers by metric, such as ``auroc_diagnosis``."""
    failed: Mapping[str, str]
    """The reason of each case that was not scored."""
    low_reasons: Mapping[str, str] = field(default_factory=dict)
    """The reason of each case that scores little, as the evaluation gives it."""
    absent: str = NO_RESULT
    """Words for a value that is not there: it is missing, or left out by a rule."""
    ranked: tuple[str, ...] = ()
    """The metrics that the challenge ranks, in its order, as far as that is known."""
    exact: ClassVar[bool] = True
    """Whether a page may hold values in full precision, and figures of other
    statistics than means."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that have values."""
        return metrics_in(self.values)

    def mean(self, column: str, numbers: Sequence[int] | None = None) -> Mean:
        """The mean over the cases, or over those with some numbers."""
        values = self.values.get(column, ())
        if numbers is None:
            return Mean(column, values, self.means.get(column))
        return Mean(column, tuple(map(values.__getitem__, numbers)))

    def number_text(self, mean: Mean) -> str:
        """The number of cases of a mean, where some are left out; else empty."""
        cases = len(mean.present)
        if self.absent != NO_VALUE or cases == len(mean.values):
            return ""
        return f" ({cases} of {len(mean.values)})"

    def cell(
        self, metric: Metric, value: float | None, *, is_shaded: bool = False
    ) -> Cell:
        """A value, on the shade of a score if it is one."""
        return metric_cell(
            metric, value, exact=self.exact, is_shaded=is_shaded, absent=self.absent
        )

    def part(self, numbers: Sequence[int], names: Sequence[str]) -> Self:
        """The scores of some cases, under other names."""
        cases = [self.cases[number] for number in numbers]
        renamed = dict(zip(cases, names, strict=True))
        values = {}
        for column, all_values in self.values.items():
            values[column] = tuple(map(all_values.__getitem__, numbers))
        return replace(
            self,
            cases=tuple(names),
            values=values,
            means={},
            failed=_rename(self.failed, renamed),
            low_reasons=_rename(self.low_reasons, renamed),
        )

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The mean of the organs, and each organ: its suffix of a column, its title."""
        whole = [] if len(self.organs) == 1 else [("", "mean of organs")]
        return (*whole, *self.organ_rows)

    def rows_of(self, metric: Metric) -> tuple[tuple[str, str], ...]:
        """Its rows by a metric; by those of lesions, not all organs have one."""
        if not isinstance(metric, LesionMetric):
            return self.rows
        rows = (row for row in self.rows if self.mean(metric.name + row[0]).present)
        return tuple(rows) or self.rows

    @property
    def organ_rows(self) -> tuple[tuple[str, str], ...]:
        """Each organ: its suffix of a column, and its title."""
        return tuple((f"_{organ}", organ.replace("_", " ")) for organ in self.organs)

    @property
    def deciding(self) -> Sequence[Metric]:
        """The metrics by which a case is worse than another, the first one first.

        What is ranked is before other shares; without both, it is the first metric.
        """
        names, metrics = self.ranked, self.metrics
        order = sorted(metrics, key=lambda m: [*names, m.name].index(m.name))
        return [m for m in order if m.is_share or m.name in names] or metrics[:1]

    @property
    def worst_first(self) -> list[int]:
        """The numbers of the cases, the worst first; equal ones in their order.

        One that is missing is before all others, and one that is left out behind them.
        """
        absent = math.inf if self.absent == NO_VALUE else -math.inf
        metrics = self.deciding

        def worth(number: int) -> tuple[float, ...]:
            values = []
            for metric in metrics:
                value = self.values[metric.name][number]
                sign = -1 if metric.better is Better.LOWER else 1
                values.append(absent if value is None else sign * value)
            return tuple(values)

        return sorted(range(len(self.cases)), key=worth)

    @property
    def lead(self) -> Metric | None:
        """The first metric from 0 to 1, which tells what is missed; None if none is."""
        return next((metric for metric in self.metrics if metric.is_share), None)

    @property
    def worst_end(self) -> str:
        """The bad end of the metric that orders cases."""
        metric = self.deciding[0]
        end = "highest" if metric.better is Better.LOWER else "lowest"
        return f"{end} {metric.title_within}"

    def by_organ(self, number: int) -> dict[str, float]:
        """The scores of a case by the leading metric, by the titles of its organs."""
        scores: dict[str, float] = {}
        if not self.lead:
            return scores
        for suffix, title in self.organ_rows:
            value = self.values[self.lead.name + suffix][number]
            if value is not None:
                scores[title] = value
        return scores

    def _zeros(self, number: int) -> list[str]:
        """The titles of the organs of a case that have no overlap."""
        return [title for title, value in self.by_organ(number).items() if value == 0]

    def lowest_organ(self, number: int) -> str:
        """Why a case scores low, as far as numbers tell."""
        metric, scores = self.lead, self.by_organ(number)
        if zeros := self._zeros(number):
            is_every = len(zeros) == len(scores) > 1
            organs = "every organ" if is_every else ", ".join(zeros)
            return f"no overlap with the reference: {organs}"
        if len(scores) < 2 or not metric:
            return ""
        means = {}
        for suffix, title in self.organ_rows:
            means[title] = self.mean(metric.name + suffix).value or 0.0
        lowest = min(scores, key=lambda title: scores[title] - means[title])
        if scores[lowest] >= means[lowest]:
            return ""  # as where a case that is missing has lowered the means
        return (
            f"farthest below its own mean: {lowest}, {metric.title}"
            f" {scores[lowest]:.3f} (mean {means[lowest]:.3f})"
        )

    @property
    def missed_text(self) -> str:
        """How many cases were not scored, and on how many an organ is missed."""
        sentences = []
        if self.failed:
            cases = count(len(self.cases), "case")
            sentences.append(f"{len(self.failed)} of {cases} not scored.")
        if self.lead and (missed_organs := self._missed_organs):
            sentences.append(missed_organs)
        return " ".join(sentences)

    @property
    def _missed_organs(self) -> str:
        """On how many of the scored cases each organ has no overlap."""
        scored = [n for n, case in enumerate(self.cases) if case not in self.failed]
        zeros: Counter[str] = Counter()
        for number in scored:
            zeros.update(self._zeros(number))
        if zeros:
            organs = listing(f"{title} on {n}" for title, n in zeros.most_common())
            # Those that are not named are organs, and no cases.
            organs = re.sub(r"( and \d+ more)$", r"\1,", organs)
            cases = count(len(scored), "case")
            return f"No overlap with the reference: {organs} of {cases}."
        if scored and self.organs:
            return "No organ of a scored case is missed altogether."
        return ""


def _rename(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Texts by the new names of their cases; cases without a new name are left out."""
    return {name: texts[case] for case, name in names.items() if case in texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScores(CaseScores):
    """Scores that a participant may know: they cannot hold any more digits."""

    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """See that no score has a digit too many, and that means are made from them."""
        for column, values in self.values.items():
            _check_told(column, values)
        for column, value in self.answers.items():
            _check_told(column, [value])
        for column, value in self.means.items():
            metric = metric_named(column)
            is_mean = not metric.tells_cases and metric.is_told(len(self.cases))
            if not (is_mean and _is_told(value, metric)):
                raise ValueError(
                    f"the mean of {column} is {value!r}, not as it is told"
                )
        if self.low_reasons:
            raise ValueError("what was said of exact scores")


def _check_told(column: str, scores: Sequence[float | None]) -> None:
    """Refuse scores that a participant may not know, or not as precisely."""
    metric = metric_named(column)
    if not (metric.is_scored and metric.tells_cases):
        raise ValueError(f"{column} is not for participants")
    for score in scores:
        if score is not None and not _is_told(score, metric):
            raise ValueError(f"{column} is {score!r}, not as it is told")


def _is_told(score: object, metric: Metric) -> bool:
    low, high = metric.range
    return type(score) is float and low <= score <= high and metric.told(score) == score


def scores_of(file: EvaluationFile) -> CaseScores:
    """All scores of a metrics.json, in full precision."""
    recorded = list(scored(file.content["case"])) if file.cases else []
    organs = dict.fromkeys(filter(None, map(attrgetter("part"), recorded)))
    names = set(map(attrgetter("base"), recorded))
    metrics = list(filter(names.__contains__, METRICS))
    values, means = {}, {}
    for column in (*metrics, *map("_".join, product(metrics, organs))):
        values[column] = tuple(file.values.get((case, column)) for case in file.cases)
        if f"{column}_mean" in file.aggregates:
            means[column] = file.aggregates[f"{column}_mean"]
    low_reasons: dict[str, str] = {}
    for low in file.low_scores:
        low_reasons |= dict.fromkeys(low.cases, low.reason)
    return CaseScores(
        challenge=challenge_title(file.evaluation),
        cases=file.cases,
        organs=tuple(organs),
        values=values,
        means=means,
        answers=file.answers,
        failed=file.failed,
        absent=NO_VALUE if None in file.values.values() else NO_RESULT,
        ranked=ranked_metrics(file.evaluation),
        low_reasons=low_reasons,
    )


def ranked_metrics(evaluation: ScoringRecord) -> tuple[str, ...]:
    """The metrics that a challenge ranks, in its order, if it is one of the program.

    No metrics.json tells them, as they change no score.
    """
    if evaluation.challenge not in challenge_names():
        return ()
    challenge = read_challenge(evaluation.challenge)
    is_same = challenge.checksum == evaluation.challenge_sha256
    return tuple(map(attrgetter("metric"), challenge.ranking)) if is_same else ()


def challenge_title(evaluation: ScoringRecord) -> str:
    """The name of a challenge in print, or its key where a file has no name.

    Examples
    --------
    >>> challenge_title(ScoringRecord(challenge="mine", challenge_name="MINE-26"))
    'MINE-26'
    >>> challenge_title(ScoringRecord(challenge="flare21"))
    'FLARE 2021'
    >>> challenge_title(ScoringRecord(challenge="mine"))
    'mine'
    """
    key = evaluation.challenge
    is_bundled = not evaluation.challenge_name and key in challenge_names()
    return read_challenge(key).name if is_bundled else evaluation.challenge_name or key


def evaluation_names(sources: Sequence[Path]) -> tuple[str, ...]:
    """Names of evaluations: short, and no two alike.

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
    short_names = []
    for source, folder in zip(sources, folders, strict=True):
        short_names.append(folder if source.name == METRICS_JSON else source.stem)
    for texts in (short_names, folders, map(str, sources)):
        names = tuple(map(safe, texts))
        if all(names) and len({*names}) == len(names):
            return names
    return tuple(safe(f"{n}: {source}") for n, source in enumerate(sources, start=1))


def own_scores(
    file: EvaluationFile, public_names: Collection[str] = frozenset()
) -> OwnScores:
    """Reduce an evaluation to the scores that its participant may know.

    A case has the name of the participant's own file, or its number where there is
    none, unless its name is no secret; why it was not scored are words that no voxel of
    the reference has a part in. Each value has the digits of its metric's record.
    """
    exact = scores_of(file)
    files = [file.prediction_files.get(case, "") for case in exact.cases]
    names = dict(zip(exact.cases, own_names(files), strict=True))
    names |= {case: case for case in exact.cases if case in public_names}
    values, means = {}, {}
    for metric in scored(exact.values):
        scores = exact.values[metric.name]
        if metric.tells_cases:
            values[metric.name] = tuple(
                None if score is None else metric.told(score) for score in scores
            )
            continue
        mean = exact.mean(metric.name)
        if mean.value is not None and metric.is_told(len(mean.present)):
            means[metric.name] = metric.told(mean.value)
    return OwnScores(
        challenge=exact.challenge,
        cases=tuple(names.values()),
        organs=exact.organs,
        values=values,
        means=means,
        answers=rounded_answers(exact.answers),
        failed={names[case]: why for case, why in exact.failed.items()},
        absent=exact.absent,
        ranked=exact.ranked,
    )


def rounded_answers(answers: Mapping[str, float]) -> dict[str, float]:
    """The values of answers as participants may know them."""
    values = {}
    for metric in scored(answers):
        if metric.tells_cases:
            values[metric.name] = metric.told(answers[metric.name])
    return values


def own_names(files: Sequence[str]) -> list[str]:
    """Name cases without the names of their references.

    A case that was not scored, or with a name that several have, is told by its number,
    from 1.

    Examples
    --------
    >>> own_names(["a.nii.gz", "", "b.mha", "b.nrrd"])
    ['a', 'case 2, not scored', 'b (3)', 'b (4)']
    """
    names = list(map(case_of, files))
    times = Counter(names)
    shown = []
    for number, (file, name) in enumerate(zip(files, names, strict=True), start=1):
        if not file:
            shown.append(f"case {number}, not scored")
        elif times[name] > 1:
            shown.append(f"{name} ({number})")
        else:
            shown.append(name)
    return shown


def metric_cell(
    metric: Metric,
    value: float | None,
    *,
    exact: bool = False,
    is_shaded: bool = True,
    absent: str = NO_RESULT,
) -> Cell:
    """A value, or the words that there is none, on its shade if there is one."""
    css = metric_shade(metric, value) if is_shaded else ""
    return number_cell(
        value, decimals=metric.decimals, exact=exact, css=css, absent=absent
    )


def group_title(name: str, cases: int) -> str:
    """A group, and how many cases it has.

    Examples
    --------
    >>> group_title("Asia", 12)
    'Asia (12 cases)'
    """
    return f"{name} ({count(cases, 'case')})"


def reason_for_silence(grouping: Grouping) -> str:
    """Why participants are told nothing of a column's groups; empty if they may be."""
    small = [name for name, cases in grouping.groups if len(cases) < FEWEST_SHOWN]
    if not small:
        return ""
    return (
        f"Nothing is told by {grouping.column}, as a group has fewer than"
        f" {FEWEST_SHOWN} cases: {listing(small)}. What is missing could be found from"
        " the other groups."
    )
