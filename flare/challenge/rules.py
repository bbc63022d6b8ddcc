"""What a challenge asks for: rules of scoring, and ranked metrics.

A challenge is data. The files in ``flare/challenge/editions/`` are the only place where
label numbers and tolerances are written; ``docs/reference/challenge-files.md``
explains every key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, groupby
from typing import Annotated, Any

from flare.challenge.answers import AnswerRules, Name
from flare.challenge.formats import NO_NPZ, PLAIN_NAMES, FileNames, NpzRules
from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.lesions import DEFINITIONS, LONGEST_MISS_MM
from flare.challenge.metrics import (
    MEASURED,
    METRICS,
    SCORES,
    Better,
    Metric,
    MetricName,
    metric_named,
)
from flare.challenge.organs import (
    ALL_SLICES,
    RESERVED_ENDINGS,
    USUAL_ABSENCE,
    AbsentOrgans,
    Organ,
    ZRange,
)
from flare.challenge.scheme import PLAIN_SCHEME, SchemeRules
from flare.common.schema import (
    Amount,
    Checked,
    Is,
    Length,
    Positive,
    Share,
    check,
    keys_of,
)
from flare.common.text import listing, runs

RULES_NOTE = "rules as participants report them, not confirmed by the organisers"
"""The note in the results of a challenge that has reported rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRule(Checked):
    """A rule, or several, that participants report."""

    rule: str
    """The rule in words, for people."""
    source: tuple[str, ...]
    """Links to the pages that report it, each to one version of its page."""
    teams: Positive
    """The number of teams that report it independently."""
    keys: tuple[str, ...] = ()
    """The keys of the challenge file that hold it; empty if no key does."""

    def _check_rules(self) -> None:
        check(bool(self.rule.strip()), "rule", self.rule, "a rule in words")
        check(bool(self.source), "source", [], "at least one link")
        for link in self.source:
            is_link = link.startswith("https://") and len(link.split()) == 1
            check(is_link, "source", link, "links that begin with https://")


Decimals = Annotated[int, Is(minimum=0, maximum=15)]


def _check_unique(table: str, key: str, values: list[Any]) -> None:
    for number, value in enumerate(values, start=1):
        first_number = values.index(value) + 1
        is_first = number == first_number
        expected = f"another value than {table}[{first_number}].{key}"
        check(is_first, f"{table}[{number}].{key}", value, expected)


def _labels_of(organ: Organ) -> Any:
    """Its label, or its labels in their order, or that each is a structure."""
    labels = sorted(organ.region) if organ.label else [organ.labels]
    return labels if len(labels) > 1 else labels[0]


class UnknownLabels(Enum):
    """The meaning of a label that no organ of the challenge has."""

    REFUSE = "refuse"
    """The file is refused."""
    IGNORE = "ignore"
    """The voxels count as background."""
    ZERO = "zero"
    """The case scores DSC 0 and NSD 0 for every organ."""


class GridComparison(Enum):
    """How strictly the grids of reference and prediction are compared."""

    STRICT = "strict"
    """The numbers of voxels are equal, and no corner lies elsewhere."""
    SIZE = "size"
    """The numbers of voxels are equal; anything else is a warning."""


class MaxMemory(Enum):
    """Which value of a trace is its maximum of GPU memory."""

    STABLE = "stable"
    """In 2021 and 2022: the largest value that more than 2 % of the samples have."""
    PLAIN = "plain"
    """Since 2023: the largest value of all samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLabelRules:
    """The meaning of unknown labels in the reference and in the prediction."""

    reference: UnknownLabels = UnknownLabels.REFUSE
    prediction: UnknownLabels = UnknownLabels.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRules(Checked):
    """When two grids count as the same."""

    compare: GridComparison = GridComparison.STRICT
    tolerance_mm: Length = 0.1
    """How far the corners of the two grids may lie apart. Files of one grid, saved by
    nibabel and by SimpleITK, differ by 0.03 mm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMetric(Checked):
    """One metric of the final ranking."""

    metric: MetricName
    """Name of the metric."""
    better: Better
    """Which end of it is the good one."""
    weight: Annotated[float, Is(exclusiveMinimum=0, maximum=1000)] = 1.0
    """How much its rank counts."""
    tolerance: Amount = 0.0
    """Values up to this one, in the metric's unit, are as good as 0."""
    trace_tolerance_mb: Amount = 0.0
    """An area under GPU memory counts only memory above this, in MB (2^20 bytes)."""
    decimals: Decimals | None = None
    """Decimals to which values are rounded before they are ranked; null for none."""
    failed: float | None = None
    """The value of a run that failed, in the metric's unit; null where the challenge
    does not say."""

    @property
    def record(self) -> Metric:
        """The metric that its name stands for."""
        return metric_named(self.metric)

    def _check_rules(self) -> None:
        is_short = round(self.weight, 4) == self.weight
        check(is_short, "weight", self.weight, "at most four decimals")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherValues(Checked):
    """Values of cases that others compute, such as by a language model."""

    name: Name
    """Name of the metric, and of its table: RESULTS/TEAM/NAME.csv has case,value."""
    better: Better
    """Which end of it is the good one."""

    def _check_rules(self) -> None:
        is_new = not metric_named(self.name).is_scored and self.name not in _TABLES
        expected = "another name than a metric's here, or a table's of a team"
        check(is_new, "name", self.name, expected)


_TABLES = ("answers", "efficiency")
"""Names of tables in a team's folder that are something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRules:
    """How algorithm submissions are read, which the platform runs itself."""

    input: str = ""
    """Slug of the input image that names the case; empty if jobs have only one."""
    output: str = ""
    """Slug of the output image that is the label map; empty if jobs have only one."""
    hide_cases: bool = True
    """Whether messages say "case 7 of 100", because the images are secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRules(Checked):
    """The numbers that a public leaderboard may tell."""

    decimals: Decimals | None = None
    """Decimals of all numbers in the metrics.json of ``evaluate``, if no option says
    otherwise: full precision gives away volumes of references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge(Checked):
    """The rules of one challenge: what its file says, key by key."""

    key: str
    """Name of its file without the extension, as given to ``--challenge``."""
    name: str
    """Name for people."""
    checksum: str
    """SHA-256 of its file."""
    organs: tuple[Organ, ...] = ()
    """The organs that are scored: their labels, names and tolerances."""
    answers: tuple[AnswerRules, ...] = ()
    """The answers in tables and JSON that are scored."""
    metrics: tuple[Annotated[str, Is(enum=METRICS)], ...] = SCORES
    """The metrics of each organ, in the order of metrics.json."""
    absent_organs: AbsentOrgans = USUAL_ABSENCE
    """The scores of an organ that one label map, or neither, contains."""
    worst_distance_mm: Length | None = None
    """The distance of an organ that only one label map has, or of a case that cannot be
    scored; None for the diagonal of the reference's grid."""
    smallest_dsc_for_nsd: Share = 0.0
    """An organ's NSD is 0 where its DSC is below this."""
    decimals: Decimals | None = None
    """Decimals to which each organ's values are rounded, before any mean."""
    z_range: ZRange = ALL_SLICES
    """Organs that are scored only in the slices where the reference has them."""
    unknown_labels: UnknownLabelRules = UnknownLabelRules()
    """The meaning of a label that no organ has."""
    grid: GridRules = GridRules()
    """When the grids of reference and prediction count as the same."""
    algorithm: AlgorithmRules = AlgorithmRules()
    """How algorithm submissions are read, which the platform runs itself."""
    board: BoardRules = BoardRules()
    """What a public leaderboard may tell."""
    values: tuple[OtherValues, ...] = ()
    """The values of cases that others compute."""
    ranking: tuple[RankedMetric, ...] = ()
    """The metrics of the final ranking."""
    scheme: SchemeRules = PLAIN_SCHEME
    """How the values of teams become one ranking."""
    max_gpu_memory: MaxMemory = MaxMemory.STABLE
    """The rule for the maximum of GPU memory when a container is measured."""
    efficiency_gate_dsc: Share = 0.0
    """Metrics that do not come from label maps, such as running times, count only for
    cases with at least this DSC."""
    npz: NpzRules = NO_NPZ
    """Whether .npz files are label maps, and what is in them."""
    names: FileNames = PLAIN_NAMES
    """The names of the files of a case."""
    reported: tuple[ReportedRule, ...] = ()
    """Rules that participants report, and the organisers have not confirmed."""
    not_known: tuple[str, ...] = ()
    """Rules that nobody has published."""

    def _check_rules(self) -> None:
        check(bool(self.name.strip()), "name", self.name, "a name for people")
        has_any = bool(self.organs or self.answers)
        check(has_any, "organs", [], "at least one organ, or [[answers]]")
        self._check_answers()
        _check_unique("organs", "label", [*map(_labels_of, self.organs)])
        _check_unique("organs", "name", [organ.name for organ in self.organs])
        if self.organs:
            has_mean = any(organ.in_mean for organ in self.organs)
            expected = "at least one organ that counts in the mean"
            check(has_mean, "organs", "without any in_mean", expected)
        self._check_metrics()
        names = [organ.name for organ in self.organs]
        for name in self.z_range.organs:
            expected = f"names of organs: {listing(names)}"
            check(name in names, "z_range.organs", name, expected)
        self._check_ranking()
        self._check_reported()

    def _check_answers(self) -> None:
        _check_unique("answers", "name", [rules.name for rules in self.answers])
        endings = tuple(f"_{ending}" for ending in RESERVED_ENDINGS)
        words = listing(RESERVED_ENDINGS, last=" or ")
        for number, rules in enumerate(self.answers, start=1):
            is_allowed = not f"_{rules.name}".endswith(endings)
            expected = f"a name that does not end in {words}"
            check(is_allowed, f"answers[{number}].name", rules.name, expected)

    def _check_metrics(self) -> None:
        is_shown = any(METRICS[name].tells_cases for name in self.metrics)
        expected = "at least one metric that participants may see"
        check(is_shown, "metrics", list(self.metrics), expected)
        for number, name in enumerate(self.metrics, start=1):
            key = f"metrics[{number}]"
            check(self.metrics.count(name) == 1, key, name, "each metric once")
            is_of_organ = not self.organs or any(
                o.has(name) and o.in_mean for o in self.organs
            )
            check(is_of_organ, key, name, "an organ with lesions in the mean")
        for number, organ in enumerate(self.organs, start=1):
            self._check_metrics_of(organ, f"organs[{number}]")

    def _check_metrics_of(self, organ: Organ, key: str) -> None:
        """See that an organ has all that its metrics need."""
        for name in filter(organ.has, self.metrics):
            metric = METRICS[name]
            is_enough = organ.tolerance_mm is not None or not metric.needs_tolerance
            expected = f"a length in mm, as {name} is computed"
            check(is_enough, f"{key}.tolerance_mm", "missing", expected)
        for metric in self.lesion_metrics if organ.lesions else ():
            names = [d.name for d in DEFINITIONS.values() if metric.is_defined_by(d)]
            expected = f"a definition with a rule for {metric.name}: {listing(names)}"
            check(organ.lesions in names, f"{key}.lesions", organ.lesions, expected)
            if metric.needs_hd95 and (worst := self.worst_distance_mm):
                expected = f"{LONGEST_MISS_MM:g} or more, as a missed lesion has"
                is_worst = worst >= LONGEST_MISS_MM
                check(is_worst, "worst_distance_mm", worst, expected)

    def _check_ranking(self) -> None:
        _check_unique("ranking", "metric", [rule.metric for rule in self.ranking])
        _check_unique("values", "name", [entry.name for entry in self.values])
        for number, rule in enumerate(self.ranking, start=1):
            good_end = self.good_end(rule.metric, rule.better)
            expected = "a metric with a good end"
            check(bool(good_end), f"ranking[{number}].metric", rule.metric, expected)
            if good_end:
                is_good_end = rule.better is good_end
                expected = f"{good_end.value}, the good end of {rule.metric}"
                key = f"ranking[{number}].better"
                check(is_good_end, key, rule.better.value, expected)
        self._check_scheme()

    def _check_scheme(self) -> None:
        scheme = self.scheme
        for number, column in enumerate(scheme.ties_by, start=1):
            expected = f"a column with a good end: {listing(self.columns)}"
            has_end = column in self.columns and self.good_end(column)
            check(bool(has_end), f"scheme.ties_by[{number}]", column, expected)
        names = [rule.metric for rule in self.ranked]
        expected = "each column once, also as one of [scheme] each_organ"
        for name in names:
            check(names.count(name) == 1, "ranking", name, expected)
        if scheme.is_of_means or scheme.each_organ:
            expected = "0, as with this [scheme] no case has a DSC that is ranked"
            gate = self.efficiency_gate_dsc
            check(not gate, "efficiency_gate_dsc", gate, expected)
        if scheme.group:
            expected = "a metric that each case has a value by, to be ranked in groups"
            for name in (*names, *scheme.ties_by):
                is_of_each_case = metric_named(name).is_of_each_case
                check(is_of_each_case, "ranking", name, expected)

    def _check_reported(self) -> None:
        keys = [*keys_of(type(self))]
        for number, entry in enumerate(self.reported, start=1):
            for key in entry.keys:
                expected = "a key of this file, such as organs.tolerance_mm"
                table_and_key = ".".join(key.split(".")[:2])
                check(table_and_key in keys, f"reported[{number}].keys", key, expected)

    @property
    def ranked(self) -> tuple[RankedMetric, ...]:
        """The columns that are ranked: with a rank for each organ, those of organs."""
        columns: list[RankedMetric] = []
        for rule in self.ranking:
            if self.scheme.each_organ and rule.metric in self.metrics:
                organs = [organ for organ in self.organs if organ.has(rule.metric)]
                names = (f"{rule.metric}_{o.name}" for o in organs if o.in_mean)
                columns += (replace(rule, metric=name) for name in names)
            else:
                columns.append(rule)
        return tuple(columns)

    @property
    def scheme_text(self) -> str:
        """How its columns become one ranking, in words; empty of FLARE's own way."""
        return self.scheme.text(len(self.ranked))

    def good_end(self, column: str, measured: Better = Better.LOWER) -> Better | None:
        """The good end of a column, if it has one; of measurements, less is better."""
        metric = metric_named(column)
        if metric.is_scored:
            return metric.better
        return self.columns_of_others.get(column, measured)

    @property
    def has_tolerance(self) -> bool:
        """Whether a metric is made with the tolerances of organs."""
        return any(METRICS[name].needs_tolerance for name in self.metrics)

    @property
    def lesion_metrics(self) -> tuple[LesionMetric, ...]:
        """The metrics of lesions among its metrics."""
        metrics = (METRICS[name] for name in self.metrics)
        return tuple(m for m in metrics if isinstance(m, LesionMetric))

    @property
    def lesions(self) -> dict[str, str]:
        """The definition of each organ that has lesions, if they are scored."""
        organs = self.organs if self.lesion_metrics else ()
        return {organ.name: organ.lesions for organ in organs if organ.lesions}

    @property
    def gaps_text(self) -> str:
        """A sentence on values of all cases that can be missing; empty without any."""
        if not (self.absent_organs.may_leave_out or "missed_volume" in self.metrics):
            return ""
        return (
            "A column of which the rules leave out each case, as where no reference has"
            " a lesion, stays empty: the result is on no board that ranks by it."
        )

    @property
    def unfair_ranks(self) -> str:
        """Why teams cannot be ranked on each case; empty if they can be."""
        absent = self.absent_organs
        is_fair = absent.reference_decides or not absent.may_leave_out
        if is_fair or self.scheme.is_of_means:
            return ""
        return (
            "teams cannot be ranked on each case, as one could gain by an organ that is"
            " left out: in_both and in_reference of absent_organs are left_out both, or"
            " neither is, and in_prediction is not"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """All that lies in RESULTS/TEAM, ranked or not, in the order of tables."""
        names = [*(self.metrics if self.organs else ())]
        for rules in self.answers:
            names += rules.columns
        names += MEASURED
        for metric in self.metrics:
            names += (f"{metric}_{o.name}" for o in self.organs if o.has(metric))
        return (*names, *self.columns_of_others)

    @property
    def columns_of_others(self) -> dict[str, Better]:
        """The names of columns that others compute, and the good end of each."""
        return {entry.name: entry.better for entry in self.values}

    @property
    def rules_note(self) -> str:
        """The note in results if some rules are only reported ones, else empty."""
        return RULES_NOTE if self.reported else ""

    @property
    def answer_files(self) -> frozenset[str]:
        """The names of the files of answers, and of their references."""
        files = {rules.file for rules in self.answers}
        return frozenset(files.union(rules.references for rules in self.answers))

    @property
    def labels(self) -> tuple[int, ...]:
        """The labels of all organs, each once, in the order of the organs."""
        regions = (organ.region for organ in self.organs)
        return tuple(dict.fromkeys(chain.from_iterable(regions)))

    @property
    def labels_text(self) -> str:
        """All labels, for a person: "0 background, 1 liver, ...".

        A label of several regions has the names of all.
        """
        texts = ["0 background"]
        for names, group in groupby(sorted(self.labels), key=self._names_of):
            texts += [f"{run} {names}" for run in runs(group)]
        return ", ".join(texts)

    def _names_of(self, label: int) -> str:
        """The names of the organs that a label belongs to."""
        organs = (organ for organ in self.organs if label in organ.region)
        names = [f"one {o.name} each" if o.labels else o.name for o in organs]
        return listing(names, last=" and ")
