"""Says what organisers are told of a team: its values among those of all others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flare.challenge.metrics import is_score
from flare.ranking.rank import Analysis
from flare.ranking.rules import Values
from flare.ranking.standings import Standing
from flare.reports.pages.own_page import OwnPage, own_page
from flare.reports.pages.parts import SCORE_BOUNDS
from flare.reports.pages.ranking import PublicRanking
from flare.reports.ranking.titles import metric_title

LOW = SCORE_BOUNDS[1]
"""A team fails on a case if its score is not above this: the two darkest shades."""

OTHERS = "median of the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The values of all teams, of shape (teams, cases, metrics)."""

    teams: tuple[str, ...]
    values: Values
    competing: tuple[bool, ...]
    """Whether each team is in competition."""
    missing: Mapping[str, tuple[tuple[str, str, str], ...]]
    """By team: case, title of the metric, and reason of what is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInField:
    """A team's values by one metric, and the others'."""

    metric: str
    title: str
    values: tuple[float | None, ...]
    """By case."""
    ranks: tuple[float, ...]
    others: tuple[float | None, ...]
    """The median of all other competing teams that have a result on the case."""
    means: tuple[tuple[str, float | None], ...]
    """What is told of means over the cases: of the team, and of the others."""

    @property
    def is_score(self) -> bool:
        """Whether values are from 0 to 1."""
        return is_score(self.metric)

    @property
    def decimals(self) -> int:
        """How many of them are shown."""
        return 3 if self.is_score else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamInField:
    """What the organisers' page of a team is made from."""

    own: OwnPage
    cases: tuple[str, ...]
    metrics: tuple[MetricInField, ...]
    alone: tuple[tuple[str, float | None, float], ...]
    """Cases where it fails, and no other: its score, and the lowest of the others."""
    missing: tuple[tuple[str, str, str], ...]
    """With the whole reasons, of which a team is told less."""


def field_of(analysis: Analysis) -> Field:
    """The values of all teams."""
    table = analysis.table
    metrics = [rule.metric for rule in analysis.rules.metrics]
    ranked = set(analysis.board.teams)
    missing: dict[str, list[tuple[str, str, str]]] = {}
    for found in table.missing:
        own = (found.case, metric_title(found.metric), found.reason)
        missing.setdefault(found.team, []).append(own)
    return Field(
        teams=table.teams,
        values=table.cube("value", table.teams, metrics),
        competing=tuple(team in ranked for team in table.teams),
        missing={team: tuple(own) for team, own in missing.items()},
    )


def team_in_field(
    analysis: Analysis, field: Field, standing: Standing, public: PublicRanking
) -> TeamInField:
    """What organisers are told of a team."""
    number = field.teams.index(standing.team)
    rivals = [n for n, joins in enumerate(field.competing) if joins and n != number]
    values, others = field.values[number], field.values[rivals]
    medians = middle(others)
    ranks = analysis.standings.case_ranks[standing.team].to_numpy()
    ranks = ranks.reshape(values.shape)
    return TeamInField(
        own=own_page(analysis, standing, public),
        cases=analysis.table.cases,
        metrics=tuple(
            MetricInField(
                metric=rule.metric,
                title=metric_title(rule.metric),
                values=_known(values[:, n]),
                ranks=tuple(ranks[:, n].tolist()),
                others=_known(medians[:, n]),
                means=_means(values[:, n], others[:, :, n]),
            )
            for n, rule in enumerate(analysis.rules.metrics)
        ),
        alone=_alone(analysis, values, others),
        missing=field.missing.get(standing.team, ()),
    )


def middle(values: Values) -> Values:
    """The median over the first axis of what is not NaN; NaN where all are.

    Examples
    --------
    >>> middle(np.array([[1.0, np.nan], [np.nan, np.nan], [4.0, np.nan]])).tolist()
    [2.5, nan]
    """
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    ordered = np.sort(values, axis=0)  # NaN come last
    known = (~np.isnan(values)).sum(axis=0)
    low, high = np.maximum(known - 1, 0) // 2, known // 2
    pair = [
        np.take_along_axis(ordered, np.minimum(at, len(values) - 1)[None], axis=0)[0]
        for at in (low, high)
    ]
    found: Values = np.where(known > 0, (pair[0] + pair[1]) / 2, np.nan)
    return found


def _known(values: Values) -> tuple[float | None, ...]:
    """Values; None where a table has NaN."""
    return tuple(None if math.isnan(v) else v for v in values.tolist())


def _means(own: Values, others: Values) -> tuple[tuple[str, float | None], ...]:
    """Means over the cases with a result: of the team, and how the others' are."""
    mean = _mean(own)
    every = [found for row in others if (found := _mean(row)) is not None]
    told: list[float | None] = [None] * 3
    if every:
        told = [min(every), float(np.median(every)), max(every)]
    names = ("the team", "lowest of the others", OTHERS, "highest of the others")
    return tuple(zip(names, (mean, *told), strict=True))


def _mean(values: Values) -> float | None:
    """The mean of what is there."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _alone(
    analysis: Analysis, values: Values, others: Values
) -> tuple[tuple[str, float | None, float], ...]:
    """The cases on which a team fails by its first score, and no other team does."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    scores = [n for n, metric in enumerate(metrics) if is_score(metric)]
    if not scores or not len(others):
        return ()
    own, rest = values[:, scores[0]], others[:, :, scores[0]]
    lowest = np.nan_to_num(rest).min(axis=0)
    failed = ~(own > LOW) & (lowest > LOW)
    cases = analysis.table.cases
    return tuple(
        (cases[n], _known(own[n : n + 1])[0], float(lowest[n]))
        for n in np.flatnonzero(failed)
    )
