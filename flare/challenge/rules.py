"""What a FLARE edition asks for: organs, rules of scoring, and ranked metrics.

A challenge is data. The files in ``flare/challenge/editions/`` are the only place where
label numbers and tolerances are written; ``docs/reference/challenge-files.md``
explains every key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import Enum
from typing import Annotated, Any

from flare.challenge.formats import NO_NPZ, PLAIN_NAMES, FileNames, NpzRules
from flare.challenge.metrics import METRICS, SCORES, Better, MetricName, metric_of
from flare.common.schema import Amount, Checked, Is, Length, Positive, Share, check
from flare.common.text import listing

RULES_NOTE = "rules as participants report them, not confirmed by the organisers"
"""The words of results about such rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRule(Checked):
    """A rule, or several, that participants report."""

    rule: str
    """The rule in words, for people."""
    source: tuple[str, ...]
    """Links to what was read, each to one version of it."""
    teams: Positive
    """How many teams that know nothing of each other say the same."""
    keys: tuple[str, ...] = ()
    """Keys of the challenge file that it is about; none if no key holds it."""

    def __post_init__(self) -> None:
        """Check the values."""
        Checked.__post_init__(self)
        check(bool(self.rule.strip()), "rule", self.rule, "a rule in words")
        check(bool(self.source), "source", [], "at least one link")
        for link in self.source:
            is_link = link.startswith("https://") and not link.split()[1:]
            check(is_link, "source", link, "links that begin with https://")


STATISTICS = ("mean", "std", "min", "max", "median")
"""What is said of each metric over all cases; no organ can have such a name."""

Decimals = Annotated[int, Is(minimum=0, maximum=15)]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def _check_name(key: str, value: str) -> None:
    expected = "lower-case letters, digits and underscores, a letter first"
    check(_NAME.fullmatch(value) is not None, key, value, expected)


def _check_unique(table: str, key: str, values: list[Any]) -> None:
    for number, value in enumerate(values, start=1):
        first = values.index(value) + 1
        expected = f"another value than {table}[{first}].{key}"
        check(first == number, f"{table}[{number}].{key}", value, expected)


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


class TopSlice(Enum):
    """Whether the highest slice of a z-range is scored."""

    KEPT = "kept"
    DROPPED = "dropped"
    """As in the official scripts, whose slice ends before its upper bound."""


class MaxMemory(Enum):
    """Which value of a trace is its maximum of GPU memory."""

    STABLE = "stable"
    """The largest that fills more than 2 % of the samples, as in 2021 and 2022."""
    PLAIN = "plain"
    """The largest of all, as from 2023 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Organ(Checked):
    """One structure that is scored."""

    label: Annotated[int, Is(minimum=1, maximum=255)]
    """Value of its voxels, 1 to 255."""
    name: str
    """As in the keys of metrics.json: lower case, digits and underscores."""
    tolerance_mm: Length
    """Tolerance of its NSD."""
    in_mean: bool = True
    """Does it count in the DSC and NSD of a case?"""
    free_cases: bool = False
    """Are cases without the organ counted, and those of them that a submission leaves
    empty?"""

    def __post_init__(self) -> None:
        """Check the values."""
        Checked.__post_init__(self)
        _check_name("name", self.name)
        check(
            self.name not in STATISTICS,
            "name",
            self.name,
            f"another name than {listing(STATISTICS)}, which metrics.json uses",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentOrgans(Checked):
    """DSC and NSD of an organ that one label map, or neither, contains."""

    in_both: Share = 1.0
    """Neither label map has the organ."""
    in_reference: Share = 0.0
    """The prediction has an organ that is not there."""
    in_prediction: Share = 0.0
    """The prediction misses the organ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZRange:
    """Organs that are scored only in the slices where the reference has them."""

    organs: tuple[str, ...] = ()
    top_slice: TopSlice = TopSlice.KEPT


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
    """How far a corner of the grid may lie from where it should. Honest files of one
    grid, saved by nibabel and by SimpleITK, differ by 0.03 mm."""


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
    """In the metric's unit: a value up to here is as good as none."""
    trace_tolerance_mb: Amount = 0.0
    """Of an area under GPU memory: what is taken off the memory before, in MB (2^20
    bytes)."""
    decimals: Decimals | None = None
    """Decimals to which values are rounded before they are ranked; null for none."""
    failed: float | None = None
    """What a run that failed counts as, in the metric's unit; null where the challenge
    does not say."""

    def __post_init__(self) -> None:
        """Check the values."""
        Checked.__post_init__(self)
        _check_name("metric", self.metric)
        is_short = round(self.weight, 4) == self.weight
        check(is_short, "weight", self.weight, "at most four decimals")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmRules:
    """How algorithm submissions are read, which the platform runs itself."""

    input: str = ""
    """Slug of the image that names the case; empty if jobs have only one."""
    output: str = ""
    """Slug of the image that is the label map; empty if jobs have only one."""
    hide_cases: bool = True
    """Whether messages say "case 7 of 100", because the images are secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRules(Checked):
    """The numbers that a public leaderboard may tell."""

    decimals: Decimals | None = None
    """Decimals of all numbers in the metrics.json of ``evaluate``, if it is not told
    others: full precision gives away volumes of references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge(Checked):
    """The rules of one challenge: what its file says, key by key."""

    key: str
    """Name of its file without the extension, as given to ``--challenge``."""
    name: str
    """Name for people."""
    checksum: str
    """SHA-256 of its file."""
    organs: tuple[Organ, ...]
    """The organs that are scored: their labels, names and tolerances."""
    metrics: tuple[Annotated[str, Is(enum=METRICS)], ...] = SCORES
    """The metrics of each organ, in the order of metrics.json."""
    absent_organs: AbsentOrgans = AbsentOrgans()
    """The scores of an organ that one label map, or neither, contains."""
    worst_distance_mm: Length | None = None
    """A distance to an organ that one label map lacks, and of a case that cannot be
    scored; None for the diagonal of the reference's grid."""
    smallest_dsc_for_nsd: Share = 0.0
    """An organ's NSD is 0 where its DSC is below this."""
    decimals: Decimals | None = None
    """Decimals to which each organ's values are rounded, before any mean."""
    z_range: ZRange = ZRange()
    """Organs that are scored only in the slices where the reference has them."""
    unknown_labels: UnknownLabelRules = UnknownLabelRules()
    """The meaning of a label that no organ has."""
    grid: GridRules = GridRules()
    """When the grids of reference and prediction count as the same."""
    algorithm: AlgorithmRules = AlgorithmRules()
    """How algorithm submissions are read, which the platform runs itself."""
    board: BoardRules = BoardRules()
    """What a public leaderboard may tell."""
    ranking: tuple[RankedMetric, ...] = ()
    """The metrics of the final ranking."""
    max_gpu_memory: MaxMemory = MaxMemory.STABLE
    """The rule for the maximum of GPU memory when a container is measured."""
    efficiency_gate_dsc: Share = 0.0
    """Metrics of efficiency, and all others that are not of label maps, count only on
    cases with at least this DSC."""
    npz: NpzRules = NO_NPZ
    """Whether .npz files are label maps, and what is in them."""
    names: FileNames = PLAIN_NAMES
    """The names of the files of a case."""
    reported: tuple[ReportedRule, ...] = ()
    """Rules that participants report, and the organisers have not confirmed."""
    not_known: tuple[str, ...] = ()
    """Rules that nobody has told."""

    def __post_init__(self) -> None:
        """Check what belongs together."""
        Checked.__post_init__(self)
        check(bool(self.name.strip()), "name", self.name, "a name for people")
        check(bool(self.organs), "organs", [], "at least one organ")
        _check_unique("organs", "label", [organ.label for organ in self.organs])
        _check_unique("organs", "name", [organ.name for organ in self.organs])
        check(
            not self.organs or any(organ.in_mean for organ in self.organs),
            "organs",
            "without any in_mean",
            "at least one organ that counts in the mean",
        )
        self._check_metrics()
        names = [organ.name for organ in self.organs]
        for name in self.z_range.organs:
            expected = f"names of organs: {listing(names)}"
            check(name in names, "z_range.organs", name, expected)
        self._check_ranking()
        self._check_reported()

    def _check_metrics(self) -> None:
        has_scores = self.metrics[: len(SCORES)] == SCORES
        check(has_scores, "metrics", list(self.metrics), f"{listing(SCORES)} first")
        for number, name in enumerate(self.metrics, start=1):
            key = f"metrics[{number}]"
            check(self.metrics.count(name) == 1, key, name, "each metric once")

    def _check_ranking(self) -> None:
        _check_unique("ranking", "metric", [rule.metric for rule in self.ranking])
        for number, rule in enumerate(self.ranking, start=1):
            metric = metric_of(rule.metric)
            is_good = metric is None or rule.better is metric.better
            expected = f"the good end of {rule.metric}, if it has one"
            check(is_good, f"ranking[{number}].better", rule.better.value, expected)

    def _check_reported(self) -> None:
        keys = [field.name for field in fields(self)]
        for number, entry in enumerate(self.reported, start=1):
            for key in entry.keys:
                expected = "a key of this file, such as organs.tolerance_mm"
                is_key = key.partition(".")[0] in keys
                check(is_key, f"reported[{number}].keys", key, expected)

    @property
    def rules_note(self) -> str:
        """The words of results about rules that nobody has confirmed, else empty."""
        return RULES_NOTE if self.reported else ""

    @property
    def labels_by_name(self) -> dict[str, int]:
        """The label of each organ, in the order of the labels."""
        organs = sorted(self.organs, key=lambda organ: organ.label)
        return {organ.name: organ.label for organ in organs}

    @property
    def labels_text(self) -> str:
        """Say which labels there are, for a person: "0 background, 1 liver, ..."."""
        names = [f"{label} {name}" for name, label in self.labels_by_name.items()]
        return ", ".join(["0 background", *names])
