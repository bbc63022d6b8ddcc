"""Reduces a ranking to what a team may know, and makes its sheet.

A score in full precision gives away how many voxels the reference has. So every value
is rounded here as its metric says, and one in voxels is not here at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from flare.challenge.metrics import LEFT_OUT, NO_VALUE, Metric, metric_named
from flare.common.files import file_names
from flare.common.text import count
from flare.ranking.rank import Analysis, Standing
from flare.ranking.uncertainty import RankInterval
from flare.reports.ranking.organs import OrganMeans
from flare.reports.ranking.page import PublicRanking
from flare.reports.ranking.values import counted_row, without_nan
from flare.reports.ranking.words import left_out_text, plain
from flare.reports.render.text import escaped_markdown, lesion_lines, markdown_lines
from flare.results.efficiency_csv import RunStatus
from flare.results.scores import present

_ENGINE_ERROR = f"status {RunStatus.ENGINE_ERROR.value}"

ValuesByCase = Sequence[float | None]
"""The value of each case; None where there is no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResult:
    """The team's result on a case by a metric."""

    thousandths: int | None
    """The value, which cannot hold any more digits; None if it may not be told."""
    rank: float
    reason: str | None = None

    def __post_init__(self) -> None:
        """See that the value is a whole number."""
        if self.thousandths is not None and type(self.thousandths) is not int:
            raise ValueError(f"{self.thousandths!r} is not in whole thousandths")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStanding:
    """The part of a ranking that a team may know, with no field for another team."""

    team: str
    challenge: str
    teams: int
    """How many compete."""
    rank: int | None
    """The rank among these; None out of competition."""
    score: float
    metrics: tuple[Metric, ...]
    mean_ranks: tuple[float, ...]
    rank_word: str
    """These in words."""
    cases: tuple[str, ...]
    results: tuple[tuple[OwnResult, ...], ...]
    """The results of all cases by each metric."""
    notes: tuple[str, ...]
    """Why a rank may not match its value, and by which metrics nobody is ranked."""
    has_case_ranks: bool = True
    """Whether it is ranked on cases; where not, results have its mean ranks."""
    draws: tuple[RankInterval, ...]
    """The ranks of the team; empty without bootstrap, and out of competition."""
    draws_note: str
    interim: str
    counted: Mapping[str, ValuesByCase]
    """The values of missing results in means, by metric and case."""
    means: Mapping[str, float]
    """Its means by metrics of which no case is told, rounded as their records say."""
    organs: tuple[OrganMeans, ...] = ()
    """Its own means by organ, where everybody may know them."""
    places: tuple[int | None, ...]
    """Its places by each metric alone; None out of competition."""
    ranks_without: tuple[int | None, ...]
    """Its ranks if a metric did not count; None where that is not ranked."""

    @property
    def place(self) -> str:
        """The rank in words."""
        return f"{self.rank} of {self.teams}" if self.rank else "out of competition"

    @property
    def score_note(self) -> str:
        """The score, or why the team has no score, in words before the mean ranks."""
        if self.rank:
            return f"Score: {self.score:.4f}, from the {self.rank_word}s"
        teams = f"{count(self.teams, 'team')} that compete"
        return f"{self.rank_word.capitalize()}s, as if it alone had joined the {teams}"

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """Case, title of the metric, and reason of each result that is not there.

        Those are left out of which a team may know nothing by case.
        """
        missing = []
        for number, case in enumerate(self.cases):
            for metric, results in zip(self.metrics, self.results, strict=True):
                reason = results[number].reason
                if not metric.hides_cases and reason not in (None, LEFT_OUT):
                    missing.append((case, metric.heading, reason))
        return missing


def own_standing(
    analysis: Analysis, standing: Standing, public: PublicRanking
) -> OwnStanding:
    """Reduce a ranking to what a team may know of it."""
    rules = analysis.rules
    metrics = tuple(map(metric_named, rules.names))
    gate = (
        "Metrics of efficiency count only on cases with a DSC of at least"
        f" {rules.gate_dsc:g}; on others they are ranked like missing ones."
    )
    results = _own_results(analysis, standing.team, metrics)
    notes = [gate] if rules.gate_dsc else []
    notes += left_out_text(analysis), *_answer_notes(metrics, results)
    notes.append(rules.scheme_text)
    return OwnStanding(
        team=standing.team,
        challenge=analysis.challenge.name,
        teams=len(analysis.board.teams),
        rank=standing.rank,
        score=float(standing.score),
        metrics=metrics,
        mean_ranks=tuple(float(standing.mean_ranks[name]) for name in rules.names),
        rank_word=rules.rank_word,
        cases=analysis.table.cases,
        results=results,
        notes=tuple(filter(None, notes)),
        has_case_ranks=not rules.scheme.is_of_means,
        draws=tuple(draw for draw in public.draws if draw.team == standing.team),
        draws_note=public.draws_note,
        interim=public.interim,
        counted=public.counted,
        means=_told_means(analysis, standing.team, public),
        organs=tuple(means.of_team(standing.team) for means in public.organs),
        places=_by_metric(public.metric_places, standing.team, rules.names),
        ranks_without=_by_metric(public.ranks_without, standing.team, rules.names),
    )


def _told_means(
    analysis: Analysis, team: str, public: PublicRanking
) -> dict[str, float]:
    """The means of a team by metrics of which no case is told, but means are."""
    means = {}
    for metric in map(metric_named, analysis.rules.names):
        values = analysis.table.cube("value", [team], [metric.name])[0][:, 0]
        scored = without_nan(values.tolist())
        if not metric.tells_cases and metric.is_told(len(present(scored))):
            counted = present(counted_row(scored, public.counted[metric.name]))
            means[metric.name] = metric.told(fmean(counted))
    return means


def _by_metric(
    ranks: Mapping[str, Mapping[str, int]], team: str, names: Sequence[str]
) -> tuple[int | None, ...]:
    """A rank of a team by each metric; None where it has none."""
    return tuple(ranks.get(name, {}).get(team) for name in names)


def _answer_notes(
    metrics: Sequence[Metric], results: Sequence[Sequence[OwnResult]]
) -> Iterator[str]:
    """The values and ranks by answers, which each case has alike."""
    for metric, (result, *_) in zip(metrics, results, strict=True):
        if not metric.is_of_each_case:
            value = _own_text(metric, result)
            rank = plain(result.rank)
            yield f"{metric.heading} of all cases together: {value}, rank {rank}."


def _own_results(
    analysis: Analysis, team: str, metrics: Sequence[Metric]
) -> tuple[tuple[OwnResult, ...], ...]:
    """The results of a team as it may know them, by metric and case."""
    names = [metric.name for metric in metrics]
    values, reasons, kinds = (
        analysis.table.cube(column, [team], names)[0]
        for column in ("value", "reason", "kind")
    )
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(-1, len(names))
    if analysis.rules.scheme.is_of_means:
        ranks = np.broadcast_to(ranks.mean(axis=0), values.shape)
    columns = []
    for number, metric in enumerate(metrics):
        arrays = (values, ranks, reasons, kinds)
        of_metric = zip(*(array[:, number].tolist() for array in arrays), strict=True)
        columns.append(tuple(_own_column(metric, of_metric)))
    return tuple(columns)


def _own_column(
    metric: Metric, results: Iterable[tuple[float, float, str, str]]
) -> Iterator[OwnResult]:
    """The results of all cases by a metric, from value, rank, reason and its kind."""
    for value, rank, reason, kind in results:
        if math.isnan(value):
            # Not what an engine says of the organisers' computer.
            why = kind if kind == _ENGINE_ERROR else reason
            yield OwnResult(thousandths=None, rank=rank, reason=why)
        else:
            thousandths = round(metric.told(value) * 1000)
            is_told = metric.tells_cases
            yield OwnResult(thousandths=thousandths if is_told else None, rank=rank)


# --- Its sheet --------------------------------------------------------------------


def sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    by_team = sorted(standings, key=lambda standing: standing.team)
    names = file_names([standing.team for standing in by_team])
    return [(names[standing.team], standing) for standing in by_team]


def sheet_text(standing: OwnStanding) -> str:
    """The sheet of a team: its own values and ranks, and no one else's."""
    reasons = []
    for case, title, reason in standing.missing:
        reasons.append("- Case " + escaped_markdown(f"{case}, {title}: {reason}"))
    pairs = zip(standing.metrics, standing.mean_ranks, strict=True)
    mean_ranks = "; ".join(f"{metric.heading} {rank:.2f}" for metric, rank in pairs)
    lines = [
        f"# {escaped_markdown(standing.team)}",
        "",
        f"Rank in {escaped_markdown(standing.challenge)}: {standing.place}.",
        f"{standing.score_note}: {escaped_markdown(mean_ranks)}.",
        *map(escaped_markdown, standing.notes),
    ]
    columns = [(head, *cells) for head, cells in _sheet_columns(standing)]
    if len(columns) > 1:
        rows = [list(map(escaped_markdown, row)) for row in zip(*columns, strict=True)]
        lines += ["", *markdown_lines(rows)]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join([*lines, *lesion_lines()]) + "\n"


def _sheet_columns(standing: OwnStanding) -> Iterator[tuple[str, Sequence[str]]]:
    """The values, where they may be told, and the ranks of each case, with heads."""
    yield "case", standing.cases
    for metric, results in zip(standing.metrics, standing.results, strict=True):
        if not metric.is_of_each_case:
            continue
        rank_head = f"{metric.heading}: rank"
        if metric.tells_cases:
            rank_head = "rank"
            texts = [_own_text(metric, result) for result in results]
            yield metric.heading, texts
        if standing.has_case_ranks and not metric.hides_cases:
            yield rank_head, [str(plain(result.rank)) for result in results]


def _own_text(metric: Metric, result: OwnResult) -> str:
    """A value of the team; one of a metric of label maps with all of its decimals."""
    thousandths = result.thousandths
    if thousandths is None:
        return "missing" if result.reason != LEFT_OUT else NO_VALUE
    if metric.is_scored:
        return metric.text(thousandths / 1000)
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")
