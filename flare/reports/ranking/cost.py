"""Draws accuracy against cost: a dot for each team, and those that no other beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from flare.challenge.metrics import Metric, metric_named
from flare.common.text import count, safe
from flare.ranking.rank import Standing
from flare.reports.charts import linear_axis, log_axis, zoomed_axis
from flare.reports.model import (
    Chart,
    Column,
    Pair,
    Part,
    Point,
    Points,
    Table,
    Words,
    table_of,
)
from flare.statistics.curves import pareto_front

_COSTS = {
    "runtime_s": "running time",
    "max_gpu_memory_mb": "GPU memory",
    "gpu_memory_area_mb_s": "the area under GPU memory",
    "energy_j": "energy",
}
"""What a result costs, and its name in a title."""

_LEFT_OUT = "DSC against {}: left out, as this ranking has no mean of {}."
_KEY = (
    ("dot", "the front: no other team is as good in both, and better in one"),
    ("boxed", "other teams, and any with DSC 0, missing costs, or out of competition"),
)


@dataclass(frozen=True, slots=True)
class TeamCost:
    """A team with its mean DSC and its mean cost, as far as readers may know them."""

    team: str
    rank: int | None
    dsc: float
    cost: float
    can_lead: bool
    """Whether it competes and finds something, and its cost leaves nothing out."""


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The mean DSC of all teams against one cost."""

    metric: Metric
    teams: tuple[TeamCost, ...]
    """In the order of the ranking."""
    cases: int

    @property
    def title(self) -> str:
        """The two sides."""
        return f"DSC against {_COSTS[self.metric.name]}"

    @property
    def front(self) -> list[TeamCost]:
        """The teams that no other beats, the cheapest first."""
        leaders = [team for team in self.teams if team.can_lead]
        gains, costs = [t.dsc for t in leaders], [t.cost for t in leaders]
        return [leaders[number] for number in pareto_front(gains, costs)]

    @property
    def front_text(self) -> str:
        """The teams of the front by rank and name."""
        names = ", ".join(f"{team.rank} {safe(team.team)}" for team in self.front)
        return f"The front, with ranks: {names}." if names else ""


Means = Mapping[str, Sequence[tuple[float | None, int]]]
"""The mean of each place by metric, and how many of its results are missing."""


def tradeoffs(
    places: Sequence[Standing],
    means: Means,
    counted: Mapping[str, Sequence[float | None]],
    cases: int,
) -> Iterator[Tradeoff]:
    """DSC against each cost that there are means of."""
    for name in _COSTS:
        if means.keys() >= {"dsc", name}:
            is_whole = None not in counted[name]
            teams = []
            rows = zip(places, means["dsc"], means[name], strict=True)
            for place, (dsc, _), (cost, missing) in rows:
                if dsc is not None and cost is not None:
                    leads = place.rank is not None and dsc > 0
                    can_lead = leads and (is_whole or not missing)
                    teams.append(TeamCost(place.team, place.rank, dsc, cost, can_lead))
            if teams:
                yield Tradeoff(metric_named(name), tuple(teams), cases)


def cost_parts(all_tradeoffs: Sequence[Tradeoff], *, has_dsc: bool) -> list[Part]:
    """The charts, and what is left out in one line; nothing where means are secret."""
    parts: list[Part] = [Pair(list(map(cost_chart, all_tradeoffs)))]
    titles = " ".join(tradeoff.title for tradeoff in all_tradeoffs)
    absent = " and ".join(n for n in ("running time", "GPU memory") if n not in titles)
    if absent and has_dsc:
        parts.append(Words(_LEFT_OUT.format(absent, absent), "note"))
    return parts if has_dsc else []


def cost_chart(tradeoff: Tradeoff) -> Chart:
    """A dot for each team; the line joins the front."""
    metric, dsc = tradeoff.metric, metric_named("dsc")
    front = tradeoff.front
    costs = [team.cost for team in tradeoff.teams]
    is_wide = 0 < 5 * min(costs) < max(costs)
    across = log_axis(costs) if is_wide else linear_axis(costs)
    up = zoomed_axis([team.dsc for team in tradeoff.teams])
    below = any(up.scale(team.dsc) < 0 for team in tradeoff.teams)
    points = []
    for team in tradeoff.teams:
        texts = dsc.text(team.dsc), metric.text(team.cost)
        is_front = team in front
        words = f"{dsc.heading} {texts[0]}, {metric.heading} {texts[1]}"
        point = Point(
            x=across.scale(team.cost),
            y=up.place(team.dsc),
            number=str(team.rank or ""),
            words=f"{safe(team.team)}: {words}",
            is_front=is_front,
            is_hollow=team.dsc == 0,
        )
        points.append(point)
    notes = across.note, up.note if below else "", tradeoff.front_text
    return Chart(
        title=tradeoff.title,
        note=" ".join(filter(None, notes)),
        summary=f"{count(len(points), 'team')}. {tradeoff.front_text}",
        labels=(),
        rows=[Points(tuple(points), up.ticks, dsc.heading)],
        axis=across.ticks,
        axis_title=metric.heading,
        key=_KEY,
        table=_cost_table(tradeoff),
    )


def _cost_table(tradeoff: Tradeoff) -> Table:
    metric, dsc = tradeoff.metric, metric_named("dsc")
    teams, front = tradeoff.teams, tradeoff.front
    columns = (
        Column("team", map(attrgetter("team"), teams), is_text=True),
        Column("rank", [team.rank or "-" for team in teams]),
        Column(dsc.heading, [dsc.text(team.dsc) for team in teams]),
        Column(metric.heading, [metric.text(team.cost) for team in teams]),
        Column("front", ["yes" if t in front else "no" for t in teams], is_text=True),
    )
    caption = f"{tradeoff.title}: means over {count(tradeoff.cases, 'case')}"
    return table_of(caption, columns)
