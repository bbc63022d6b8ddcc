"""Says what everybody may know of a ranking, and makes the page of it.

Only what follows from ranks, and the means of teams where organisers have chosen so: no
type here has a field for the value of any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flare.common.text import count, safe
from flare.ranking.means import Means, ranking_means
from flare.ranking.rank import PRIZE_RULE, Analysis, Standing
from flare.ranking.uncertainty import RankInterval
from flare.reports.charts import blobs, rank_ticks
from flare.reports.model import (
    NO_RESULT,
    Cell,
    Chart,
    Heading,
    Lines,
    Page,
    Part,
    Section,
    Table,
    Words,
    number_cell,
    pairs_table,
    rank_shade,
    table,
)
from flare.reports.ranking.words import (
    Printed,
    certainty_text,
    counted_text,
    draws_text,
    guests_note,
    left_out_text,
    printed,
    too_few_text,
)
from flare.reports.scores import group_title, silence
from flare.results.groups_csv import Grouping

PUBLIC_NOTE = "For everybody: it holds ranks, {} no value of any case."
ORGANISERS_NOTE = (
    "For the organisers: it holds all teams' values on all cases. Do not publish it as"
    " it is."
)
RANKS_NOTE = (
    "Ranked by the same rules, as if the cases of a group were all that there are."
)

LOOKED_AT = 10
"""So many things to look at stand above the ranking; the others below."""


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
    """What everybody may know of a ranking: only what follows from ranks, and means.

    It has no field for the value of any case.
    """

    challenge: str
    certainty: str
    """How sure first place is, and what would change it."""
    interim: str
    metrics: tuple[Printed, ...]
    means: Mapping[str, Sequence[tuple[float | None, int]]]
    """By metric and place: the mean over the cases, and how many results are missing;
    empty where only organisers may know it."""
    counted: Mapping[str, Sequence[float | None]]
    """What missing results count as in means, by metric that is ranked and case."""
    notes: tuple[str, ...]
    """By which metrics nobody is ranked, who does not compete, and what missing results
    count as."""
    cases: int
    places: tuple[Standing, ...]
    """Best first, then those out of competition."""
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
    is_organiser: bool = False,
) -> PublicRanking:
    """What the page of all teams has: for everybody, nothing of small groups."""
    challenge, rules = analysis.challenge, analysis.rules
    means = ranking_means(analysis, has_organs=False)
    counted = {name: means.counted[name] for name in rules.names}
    shown = tuple(map(printed, rules.names))
    metrics = (
        f"{own.title} ({rule.better.value} is better, weight {rule.weight:g})"
        for own, rule in zip(shown, rules.metrics, strict=True)
    )
    gate = f"DSC of at least {rules.gate_dsc:g}" if rules.gate_dsc else "none"
    found = None if too_few_text(analysis) else analysis.bootstrap
    certainty = certainty_text(analysis, is_organiser=is_organiser)
    notes = [left_out_text(rules.left_out), guests_note(analysis)]
    is_shown = is_organiser or analysis.shows_means
    if is_shown and any(own.missing for own in means.rows):
        notes.append(f"In a mean, a missing result {counted_text(counted)}.")
    groups = []
    for own in groupings:  # for everybody, none of a column with a small group
        hidden = "" if is_organiser else silence(own)
        parts = () if hidden else own.groups
        ranks = tuple(analysis.board.on(numbers).final_ranks for _, numbers in parts)
        sizes = tuple((name, len(numbers)) for name, numbers in parts)
        ranked = GroupRanks(column=own.column, groups=sizes, ranks=ranks, note=hidden)
        groups.append(ranked)
    return PublicRanking(
        challenge=challenge.name,
        interim=analysis.table.roll.interim_text,
        certainty=certainty,
        metrics=shown,
        means=_means(means, shown, is_organiser=is_organiser) if is_shown else {},
        counted=counted,
        notes=tuple(filter(None, notes)),
        cases=len(analysis.table.cases),
        places=analysis.standings.standings,
        draws=found.teams if found else (),
        draws_note=draws_text(found) if found else "",
        decisions=analysis.decisions.lines,
        settings=(
            ("challenge", f"{challenge.name} ({challenge.key})"),
            ("challenge sha256", challenge.checksum),
            ("metrics", ", ".join(metrics)),
            ("ties", rules.ties.value),
            ("missing results", rules.missing.value),
            ("gate of efficiency", gate),
        ),
        groups=tuple(groups),
    )


def _means(
    means: Means, metrics: Sequence[Printed], *, is_organiser: bool
) -> dict[str, list[tuple[float | None, int]]]:
    """The means of all teams by each metric that is ranked, and may be told.

    Others than organisers get them rounded, before anything else is made of them.
    """
    told = {own.name: own for own in metrics if is_organiser or own.is_told}
    found: dict[str, list[tuple[float | None, int]]] = {name: [] for name in told}
    for own in means.rows:
        if own.metric in found and not own.organ:
            mean = None if own.missing == means.cases else own.mean
            if mean is not None and not is_organiser:
                mean = float(told[own.metric].text(mean))
            found[own.metric].append((mean, own.missing))
    return found


# --- The page ---------------------------------------------------------------------


def ranking_page(
    found: PublicRanking,
    links: Mapping[str, str],
    *,
    look: Sequence[str] = (),
    doubts: Sequence[Part] = (),
    means: Sequence[Part] = (),
    more: Sequence[Section] = (),
) -> Page:
    """What every page of a ranking has; teams lead to their own pages by links.

    For organisers, with what to look at before it is published, what else there is to
    say of how sure it is, means of groups, and other sections.
    """
    ranking: list[Part] = [
        _first_table(found, look, links),
        *(Words(note, "note") for note in (*found.notes, PRIZE_RULE)),
    ]
    follows = "and what follows from ranks, but"
    if found.means:
        follows = "what follows from ranks, and rounded means over all cases, but"
    lead: list[Part] = [Words(found.interim, "banner")] if found.interim else []
    lead.append(Words(found.certainty, "lead"))
    if look:
        rest = len(look) - LOOKED_AT
        more_of = [f"{rest} more: see To be looked at, below."] if rest > 0 else []
        box = f"{count(len(look), 'thing')} to look at before it is published"
        lead.append(Lines([*look[:LOOKED_AT], *more_of], box))
    draws = draws_chart(found.draws, found.draws_note) if found.draws else None
    decisions = [lines_or(found.decisions, "There are none.")]
    groups = [part for own in found.groups for part in _rank_parts(own, found)]
    settings = pairs_table("What the ranking was made with", found.settings)
    return Page(
        title=f"{found.challenge}: ranking of {count(len(found.teams), 'team')}",
        audience_note=PUBLIC_NOTE.format(follows),
        lead=lead,
        sections=[
            Section("ranking", "Ranking", "", ranking),
            Section("draws", "How sure it is", "How sure it is", [draws, *doubts]),
            Section("decisions", "Decisions", "Decisions of the organisers", decisions),
            Section("groups", "Groups", "Groups of cases", [*groups, *means]),
            *more,
            Section("settings", "Settings", "Settings", [settings]),
        ],
    )


def lines_or(lines: Sequence[str], words: str) -> Part:
    """Lines; words where there are none."""
    return Lines(lines) if lines else Words(words)


def _first_table(
    found: PublicRanking, look: Sequence[str], links: Mapping[str, str]
) -> Table:
    """The ranking; teams lead to their own pages, and have signs of what is odd."""
    drawn = {own.team: _interval_cell(own) for own in found.draws}
    rows = []
    for number, place in enumerate(found.places):
        start = tuple(f"{safe(place.team)}{end}" for end in " :")
        alarm = " ".join(line for line in look if line.startswith(start))
        score = number_cell(float(place.score), decimals=4, exact=True)
        rows.append(
            (
                str(place.rank or "-"),
                Cell(place.team, href=links.get(place.team, ""), alarm=alarm),
                *([drawn.get(place.team, Cell(""))] if drawn else []),
                score if place.rank else "",
                *(_metric_cell(found, place, number, m) for m in found.metrics),
            )
        )
    over = f"over {count(found.cases, 'case')}"
    smaller = "smaller is better, stronger shades are worse"
    caption = f"Score and mean ranks {over}; {smaller}"
    if found.means:
        caption = f"Means {over}; shades and small print: mean ranks, {smaller}"
    heads = ["rank", "team", "score"]
    if drawn:
        heads.insert(2, "ranks in 95 % of samples")
    heads += (
        own.title if own.name in found.means else f"mean rank: {own.title}"
        for own in found.metrics
    )
    apart = [n for n, place in enumerate(found.places) if place.rank is None]
    more = {"words": ("team",), "quiet": apart, "name_column": 1, "is_whole": True}
    return table(caption, heads, rows, **more)


def _interval_cell(own: RankInterval) -> Cell:
    """The ranks of a team in the draws."""
    low, high = own.interval
    return Cell(
        str(low) if low == high else f"{low} to {high}",
        css="drawn",
        exact=str(low + high / 1000),
        mark=blobs(own.frequencies, low, high),
    )


def _metric_cell(
    found: PublicRanking, place: Standing, number: int, metric: Printed
) -> Cell:
    """What is known of a team by a metric, on the shade of its mean rank."""
    rank = float(place.mean_ranks[metric.name])
    css = rank_shade(rank, len(found.teams))
    own = number_cell(rank, decimals=2, exact=True, css=css)
    if metric.name not in found.means:
        return own
    mean, missing = found.means[metric.name][number]
    note = f"rank {own.text}"
    if mean is None:
        return replace(own, text=NO_RESULT, exact="", note=note)
    if missing:
        note += f", {missing} missing"
    return replace(own, text=metric.text(mean), exact=repr(mean), note=note)


def draws_chart(draws: Sequence[RankInterval], note: str) -> Chart:
    """How sure the ranks are."""
    ranks = range(1, len(draws[0].frequencies) + 1)
    rows = []
    for own in draws:
        shares = (f"{100 * part:.1f}" if part else "" for part in own.frequencies)
        rows.append((own.team, *map(str, own.interval), *shares))
    told = (f"{own.team} {' to '.join(map(str, own.interval))}" for own in draws)
    caption = "Ranks in 95 % of the draws, and percent of the draws with each rank"
    heads = ("team", "from", "to", *map(str, ranks))
    return Chart(
        title="Ranks when other cases are drawn",
        note=note,
        summary=f"ranks in 95 % of the draws: {'; '.join(told)}",
        labels=tuple(own.team for own in draws),
        rows=[blobs(own.frequencies, *own.interval) for own in draws],
        axis=rank_ticks(len(ranks)),
        axis_title="rank",
        key=(("dot", "larger: more draws"), ("boxed", "95 % of the draws")),
        table=table(caption, heads, rows, words=("team",)),
    )


def _rank_parts(own: GroupRanks, found: PublicRanking) -> list[Part]:
    """The ranks within groups; or why they are not told."""
    note = Words(own.note or RANKS_NOTE, "note")
    ranks = [] if own.note else [rank_table(own, found)]
    return [Heading(f"Ranks by {own.column}"), note, *ranks]


def rank_table(own: GroupRanks, found: PublicRanking) -> Table:
    """The rank of each team in the ranking itself, and within each group."""
    places = [place for place in found.places if place.rank is not None]
    rows = [
        (
            *(place.team, str(place.rank)),
            *(
                Cell(str(ranks[number]), css=rank_shade(ranks[number], len(places)))
                for ranks in own.ranks
            ),
        )
        for number, place in enumerate(places)
    ]
    names = (group_title(name, cases) for name, cases in own.groups)
    caption = f"Ranks of the teams by {own.column}, each group by itself"
    return table(caption, ("team", "all cases", *names), rows, words=("team",))
