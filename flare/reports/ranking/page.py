"""Says what everybody may know of a ranking, and makes the page of it.

Only what follows from ranks: no type here has a field for the value of any case, nor
for what was computed from values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flare.common.text import count, printable, safe
from flare.ranking.rank import PRIZE_RULE, Analysis, Standing
from flare.ranking.robustness.uncertainty import CONFIDENCE, Bootstrap, RankInterval
from flare.reports.charts import blobs, rank_ticks
from flare.reports.model import (
    Cell,
    Chart,
    Heading,
    Key,
    Lines,
    Page,
    Part,
    Section,
    Table,
    Tile,
    Words,
    name_cell,
    number_cell,
    pairs_table,
    rank_shade,
    table,
)
from flare.reports.ranking.words import (
    SHARED_FIRST,
    guests_note,
    interim_text,
    left_out_text,
    metric_title,
)
from flare.reports.scores import group_title, silence
from flare.results.groups_csv import Grouping

PUBLIC_NOTE = (
    "For everybody: it holds ranks, and what follows from ranks, but no value of any"
    " case."
)
RANKS_NOTE = (
    "Ranked by the same rules, as if the cases of a group were all that there are."
)

DRAWS_KEY: Key = (("dot", "larger: more draws"), ("boxed", "95 % of the draws"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRanks:
    """The ranks of all teams within groups of a column, and no value of any case."""

    column: str
    groups: tuple[tuple[str, int], ...]
    """Their names, and how many cases they have."""
    ranks: tuple[tuple[int, ...], ...]
    """By group and team, in the order of the ranking."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRanking:
    """What everybody may know of a ranking: only what follows from ranks.

    It has no field for the value of any case, nor for what was computed from values.
    """

    challenge: str
    interim: str
    left_out: str
    """By which metrics nobody is ranked, and why; empty without any."""
    metrics: Mapping[str, str]
    """Their titles."""
    cases: int
    places: tuple[Standing, ...]
    """Best first, then those out of competition."""
    guests_note: str
    draws: tuple[RankInterval, ...]
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


def public_ranking(
    analysis: Analysis,
    groupings: Sequence[Grouping] = (),
    *,
    has_small_groups: bool = False,
) -> PublicRanking:
    """What follows from ranks alone; of small groups nothing, unless told."""
    found, challenge, rules = analysis.bootstrap, analysis.challenge, analysis.rules
    gate = f"DSC of at least {rules.gate_dsc:g}" if rules.gate_dsc else "none"
    metrics = (
        f"{metric_title(rule.metric)} ({rule.better.value} is better, weight"
        f" {rule.weight:g})"
        for rule in rules.metrics
    )
    return PublicRanking(
        challenge=printable(challenge.name),
        interim=interim_text(analysis.table.roll),
        left_out=left_out_text(rules.left_out),
        metrics={rule.metric: metric_title(rule.metric) for rule in rules.metrics},
        cases=len(analysis.table.cases),
        places=analysis.standings.standings,
        guests_note=guests_note(analysis) if analysis.standings.guests else "",
        draws=found.intervals if found else (),
        draws_note=_draws_note(found) if found else "",
        decisions=analysis.decisions.lines,
        settings=(
            ("challenge", f"{challenge.name} ({challenge.key})"),
            ("challenge sha256", challenge.checksum),
            ("metrics", ", ".join(metrics)),
            ("ties", rules.ties.value),
            ("missing results", rules.missing.value),
            ("gate of efficiency", gate),
        ),
        groups=tuple(
            _group_ranks(analysis, own, is_public=not has_small_groups)
            for own in groupings
        ),
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


def _group_ranks(
    analysis: Analysis, grouping: Grouping, *, is_public: bool
) -> GroupRanks:
    """The ranks within each group; for everybody, not of a column with a small one."""
    note = silence(grouping) if is_public else ""
    shown = () if note else grouping.groups
    return GroupRanks(
        column=grouping.column,
        groups=tuple((name, len(numbers)) for name, numbers in shown),
        ranks=tuple(analysis.board.on(own).final_ranks for _, own in shown),
        note=note,
    )


# --- The page ---------------------------------------------------------------------


def public_page(found: PublicRanking, links: Mapping[str, str]) -> Page:
    """What everybody may know; teams lead to their own pages by links."""
    return ranking_page(found, links, PUBLIC_NOTE)


def ranking_page(
    found: PublicRanking,
    links: Mapping[str, str],
    audience_note: str,
    means: Sequence[Part] = (),
    more: Sequence[Section] = (),
) -> Page:
    """What every page of a ranking has; with means of groups, and other sections."""
    ranking = [
        _linked_table(found, links),
        Words(found.left_out, "note") if found.left_out else None,
        Words(found.guests_note, "note") if found.guests_note else None,
        Words(PRIZE_RULE, "note"),
    ]
    draws = [draws_chart(found) if found.draws else None]
    decisions = [lines_or(found.decisions, "There are none.")]
    groups = [part for own in found.groups for part in _rank_parts(own, found)]
    settings = pairs_table("What the ranking was made with", found.settings)
    return Page(
        title=f"Ranking of {count(len(found.teams), 'team')}",
        kicker=found.challenge,
        audience_note=audience_note,
        lead=[Words(found.interim, "banner")] if found.interim else [],
        tiles=_tiles(found),
        sections=[
            Section("ranking", "Ranking", "The ranking", ranking),
            Section("draws", "How sure it is", "How sure it is", draws),
            Section("decisions", "Decisions", "Decisions of the organisers", decisions),
            Section("groups", "Groups", "Groups of cases", [*groups, *means]),
            *more,
            Section("settings", "Settings", "Settings", [settings]),
        ],
    )


def lines_or(lines: Sequence[str], words: str) -> Part:
    """Lines; words where there are none."""
    return Lines(lines) if lines else Words(words)


def _tiles(found: PublicRanking) -> list[Tile]:
    """Who is first, and among how many."""
    first = [safe(place.team) for place in found.places if place.rank == 1]
    guests = len(found.places) - len(found.teams)
    return [
        Tile(
            name="First place" if len(first) == 1 else "First place, shared",
            value=" and ".join(first) if len(first) < 3 else f"{len(first)} teams",
            css="name",
        ),
        Tile(
            name="Teams",
            value=str(len(found.teams)),
            note=f"and {guests} out of competition" if guests else "",
        ),
        Tile(name="Cases", value=str(found.cases)),
        Tile(name="Metrics", value=str(len(found.metrics))),
    ]


def _linked_table(found: PublicRanking, links: Mapping[str, str]) -> Table:
    """The ranking, whose teams lead to their own pages."""
    heads = {metric: f"mean rank: {title}" for metric, title in found.metrics.items()}
    caption = (
        f"Score and mean ranks over {count(found.cases, 'case')}; smaller is better"
    )
    return ranking_table(found.places, heads, caption, links)


def ranking_table(
    places: Sequence[Standing],
    metrics: Mapping[str, str],
    caption: str = "",
    links: Mapping[str, str] | None = None,
) -> Table:
    """The ranking, with the mean rank by each metric on its shade.

    Parameters
    ----------
    places : sequence of Standing
        The teams, those out of competition last: they stand apart.
    metrics : mapping
        The heads of their columns.
    caption : str
        What the table shows.
    links : mapping, optional
        By team: where its name leads to.
    """
    teams = sum(place.rank is not None for place in places)
    rows = []
    for place in places:
        score = number_cell(float(place.score), decimals=4, exact=True)
        cells = [
            str(place.rank or "-"),
            name_cell(place.team, (links or {}).get(place.team, "")),
            score if place.rank else "",
        ]
        for metric in metrics:
            mean = float(place.mean_ranks[metric])
            css = rank_shade(mean, teams)
            cells.append(number_cell(mean, decimals=2, exact=True, css=css))
        rows.append(cells)
    return table(
        caption,
        ("rank", "team", "score", *metrics.values()),
        rows,
        words=("team",),
        quiet=[n for n, place in enumerate(places) if place.rank is None],
        name_column=1,
    )


def draws_chart(found: PublicRanking) -> Chart:
    """How sure the ranks are."""
    told = "; ".join(f"{safe(d.team)} {d.lowest} to {d.highest}" for d in found.draws)
    numbers = range(1, len(found.draws) + 1)
    return Chart(
        title="Ranks when other cases are drawn",
        note=found.draws_note,
        summary=f"ranks in 95 % of the draws: {told}",
        labels=tuple(safe(own.team) for own in found.draws),
        rows=[blobs(own.frequencies, own.lowest, own.highest) for own in found.draws],
        axis=rank_ticks(len(found.draws)),
        axis_title="rank",
        key=DRAWS_KEY,
        table=table(
            "Ranks in 95 % of the draws, and percent of the draws with each rank",
            ("team", "from", "to", *map(str, numbers)),
            (
                (
                    *(name_cell(own.team), str(own.lowest), str(own.highest)),
                    *(f"{100 * part:.1f}" if part else "" for part in own.frequencies),
                )
                for own in found.draws
            ),
            words=("team",),
        ),
    )


def _rank_parts(own: GroupRanks, found: PublicRanking) -> list[Part]:
    """The rank of each team in the ranking itself, and within each group."""
    heading = Heading(f"Ranks by {safe(own.column)}")
    if own.note:
        return [heading, Words(own.note, "note")]
    places = [place for place in found.places if place.rank is not None]
    rows = [
        (
            *(name_cell(place.team), str(place.rank)),
            *(
                Cell(str(ranks[number]), css=rank_shade(ranks[number], len(places)))
                for ranks in own.ranks
            ),
        )
        for number, place in enumerate(places)
    ]
    names = (group_title(name, cases) for name, cases in own.groups)
    caption = f"Ranks of the teams by {safe(own.column)}, each group by itself"
    ranks = table(caption, ("team", "all cases", *names), rows, words=("team",))
    return [heading, Words(RANKS_NOTE, "note"), ranks]
