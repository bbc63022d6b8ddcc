"""Says what the pages of a ranking are made from: for everybody, and for organisers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flare.common.text import printable
from flare.ranking.rank import Analysis
from flare.ranking.robustness.bootstrap import CONFIDENCE, Bootstrap
from flare.ranking.robustness.schemes import Scheme
from flare.ranking.robustness.significance import ALPHA
from flare.reports.pages.rank_groups import GroupRanks, group_ranks
from flare.reports.ranking.roll_call import interim_text, roll_lines
from flare.reports.ranking.rows import guests_note
from flare.reports.ranking.terminal import SHARED_FIRST, missing_lines, recount_text
from flare.reports.ranking.titles import left_out_text, metric_title
from flare.results.groups_csv import Grouping


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a team stands."""

    team: str
    rank: int | None
    """None out of competition."""
    score: float
    mean_ranks: tuple[float, ...]
    """By each metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """The ranks of a team when other cases are drawn."""

    team: str
    lowest: int
    highest: int
    frequencies: tuple[float, ...]
    """Of rank 1, 2, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRanking:
    """What everybody may know of a ranking: only what follows from ranks.

    It has no field for the value of any case, nor for what was computed from values.
    """

    challenge: str
    interim: str
    left_out: str
    """By which metrics nobody is ranked, and why; empty without any."""
    metrics: tuple[str, ...]
    """Their titles."""
    cases: int
    places: tuple[Place, ...]
    """Best first, then those out of competition."""
    guests_note: str
    draws: tuple[Draws, ...]
    """In the order of the ranking; empty without bootstrap."""
    draws_note: str
    decisions: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    groups: tuple[GroupRanks, ...] = ()
    """By column; for everybody, only where all groups are large enough."""

    @property
    def teams(self) -> tuple[str, ...]:
        """The competing teams, best first."""
        return tuple(place.team for place in self.places if place.rank is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValues:
    """The values of all competing teams by one metric."""

    metric: str
    title: str
    values: tuple[tuple[float | None, ...], ...]
    """By team, in the order of the ranking, and case."""
    better: dict[tuple[int, int], tuple[float, bool]]
    """By the numbers of a team and of another one: how much better it is, and whether
    that is significant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganiserRanking:
    """What organisers are shown of a ranking."""

    public: PublicRanking
    cases: tuple[str, ...]
    metrics: tuple[MetricValues, ...]
    schemes: tuple[Scheme, ...]
    recount: tuple[str, ...]
    flags: tuple[str, ...]
    missing: tuple[str, ...]
    groupings: tuple[Grouping, ...] = ()


def public_ranking(
    analysis: Analysis,
    groupings: Sequence[Grouping] = (),
    *,
    has_small_groups: bool = False,
) -> PublicRanking:
    """What follows from ranks alone; of small groups nothing, unless told."""
    rules = analysis.rules
    metrics = [rule.metric for rule in rules.metrics]
    found = analysis.bootstrap
    return PublicRanking(
        challenge=printable(analysis.challenge.name),
        interim=interim_text(analysis.table.roll),
        left_out=left_out_text(rules.left_out),
        metrics=tuple(map(metric_title, metrics)),
        cases=len(analysis.table.cases),
        places=tuple(
            Place(
                team=standing.team,
                rank=standing.rank,
                score=float(standing.score),
                mean_ranks=tuple(float(standing.mean_ranks[m]) for m in metrics),
            )
            for standing in analysis.standings.standings
        ),
        guests_note=guests_note(analysis) if analysis.standings.guests else "",
        draws=tuple(
            Draws(
                team=interval.team,
                lowest=interval.lowest,
                highest=interval.highest,
                frequencies=interval.frequencies,
            )
            for interval in (found.intervals if found else ())
        ),
        draws_note=_draws_note(found) if found else "",
        decisions=analysis.decisions.lines,
        settings=_settings(analysis),
        groups=group_ranks(analysis.board, groupings, is_public=not has_small_groups),
    )


def _draws_note(found: Bootstrap) -> str:
    """How the draws were made, and how far their rankings agree with the ranking."""
    text = (
        f"As many cases were drawn, with replacement, {found.samples} times (seed"
        f" {found.seed}); a team's rank lies in its interval in"
        f" {100 * CONFIDENCE:g} % of the draws."
    )
    if found.has_shared_first:
        text += f" {SHARED_FIRST}"
    if found.taus:
        low, middle, high = found.taus
        text += (
            " Kendall's tau of the drawn rankings with the ranking itself: median"
            f" {middle:.2f}, {100 * CONFIDENCE:g} % from {low:.2f} to {high:.2f}."
        )
    return text


def _settings(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """What the ranking was made with."""
    rules, challenge = analysis.rules, analysis.challenge
    gate = f"DSC of at least {rules.gate_dsc:g}" if rules.gate_dsc else "none"
    metrics = (
        f"{metric_title(rule.metric)} ({rule.better.value} is better, weight"
        f" {rule.weight:g})"
        for rule in rules.metrics
    )
    return (
        ("challenge", f"{challenge.name} ({challenge.key})"),
        ("challenge sha256", challenge.checksum),
        ("metrics", ", ".join(metrics)),
        ("ties", rules.ties.value),
        ("missing results", rules.missing.value),
        ("gate of efficiency", gate),
    )


def organiser_ranking(
    analysis: Analysis, groupings: tuple[Grouping, ...] = ()
) -> OrganiserRanking:
    """Everything that organisers look at before they publish."""
    board = analysis.board
    return OrganiserRanking(
        public=public_ranking(analysis, groupings, has_small_groups=True),
        cases=board.cases,
        metrics=tuple(
            MetricValues(
                metric=rule.metric,
                title=metric_title(rule.metric),
                values=tuple(
                    tuple(map(_known, row)) for row in board.values[:, :, n].tolist()
                ),
                better=_better(analysis, rule.metric),
            )
            for n, rule in enumerate(analysis.rules.metrics)
        ),
        schemes=analysis.schemes if len(board.teams) > 1 else (),
        recount=tuple(recount_text(analysis.sensitivity).split("\n")),
        flags=(*roll_lines(analysis.table.roll), *analysis.flags),
        missing=tuple(missing_lines(analysis)),
        groupings=groupings,
    )


def _known(value: float) -> float | None:
    """A value; None where a table has NaN."""
    return None if math.isnan(value) else value


def _better(
    analysis: Analysis, metric: str
) -> dict[tuple[int, int], tuple[float, bool]]:
    """How much better each team is than each other, by a metric."""
    numbers = {team: number for number, team in enumerate(analysis.board.teams)}
    return {
        (numbers[test.team], numbers[test.other]): (
            test.effect,
            test.p_holm <= ALPHA,
        )
        for test in analysis.tests
        if test.metric == metric
    }


def hardest_first(values: Sequence[Sequence[float | None]]) -> list[int]:
    """The numbers of the cases, lowest mean first; a missing score counts as 0."""
    count = len(values[0])
    means = [math.fsum(row[n] or 0.0 for row in values) for n in range(count)]
    return sorted(range(count), key=lambda number: (means[number], number))
