"""Reduces a ranking to what everybody may know, and makes the page of it.

That is all that follows from ranks, and the means of teams where organisers have chosen
so: no type here has a field for the value of any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from flare.challenge.metrics import Metric, metric_named
from flare.common.text import count, safe
from flare.ranking.means import Means, ranking_means
from flare.ranking.rank import Analysis, Standing, prize_text
from flare.ranking.ranks import Board, ranks_by_sums
from flare.ranking.uncertainty import RankInterval
from flare.reports.charts import blobs, rank_shade, rank_ticks
from flare.reports.model import (
    NO_RESULT,
    Cell,
    Chart,
    Column,
    Heading,
    Lines,
    Page,
    Part,
    Section,
    Table,
    Words,
    folded,
    number_cell,
    pairs_table,
    table_of,
)
from flare.reports.ranking.cost import Tradeoff, cost_parts, tradeoffs
from flare.reports.ranking.organs import (
    OrganMeans,
    organ_means,
    organ_table,
    shown_mean,
)
from flare.reports.ranking.words import (
    all_cases_text,
    certainty_text,
    counted_text,
    draws_text,
    guests_note,
    ranking_notes,
    ranks_without,
    too_few_text,
)
from flare.reports.scores import group_title, reason_for_silence
from flare.results.groups_csv import Grouping

PUBLIC_NOTE = "For everybody: it holds ranks, {} no value of any case."
ORGANISERS_NOTE = (
    "For the organisers: it holds all teams' values on all cases. Do not publish it as"
    " it is."
)
RANKS_NOTE = (
    "Ranked by the same rules, as if the cases of a group were all that there are."
)

FLARES_SCORE = (
    "mean of the ranks on all cases by each metric, these means averaged by their"
    " weights, divided by the number of teams"
)
LOOKED_AT = 2
"""At most this many things to look at stand above the ranking, which has its first 11
teams on the first screen then; all stand below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRanks:
    """The ranks of all teams within groups of a column, and no value of any case."""

    column: str
    groups: tuple[tuple[str, int], ...]
    """Their names, and how many cases they have."""
    ranks: tuple[tuple[int, ...], ...]
    """The ranks in each group, of the teams in the order of the ranking."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRanking:
    """The part of a ranking that everybody may know.

    All of it follows from ranks, but for means; no field holds the value of any case.
    """

    challenge: str
    certainty: str
    """How sure first place is, and what would change it."""
    interim: str
    metrics: tuple[Metric, ...]
    means: Mapping[str, Sequence[tuple[float | None, int]]]
    """The mean of each place by metric, and how many of its results are missing;
    empty where only organisers may know it."""
    counted: Mapping[str, Sequence[float | None]]
    """The values of missing results in means, by metric that is ranked and case."""
    rank_word: str
    """The ranks by a metric in words, for metrics that have a value of each case."""
    notes: tuple[str, ...]
    """Sentences on metrics without ranks, teams out of competition, missing results."""
    cases: int
    places: tuple[Standing, ...]
    """Best first, then those out of competition."""
    draws: tuple[RankInterval, ...]
    """The ranks of each team in the draws, best team first; empty without bootstrap."""
    draws_note: str
    decisions: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    groups: tuple[GroupRanks, ...] = ()
    """The ranks by column; for everybody, only where all groups are large enough."""
    organs: tuple[OrganMeans, ...] = ()
    """The means by organ, under the rule of the means; pages alone have them."""
    metric_places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The places of competing teams by each metric alone."""
    ranks_without: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The ranks of competing teams if a metric did not count."""

    @property
    def tradeoffs(self) -> tuple[Tradeoff, ...]:
        """Accuracy against cost, under the rule of the means."""
        return tuple(tradeoffs(self.places, self.means, self.counted, self.cases))

    @property
    def teams(self) -> tuple[str, ...]:
        """The competing teams, best first."""
        return tuple(place.team for place in self.places if place.rank is not None)


def public_ranking(
    analysis: Analysis,
    groupings: Sequence[Grouping] = (),
    *,
    is_organiser: bool = False,
    has_organs: bool = False,
) -> PublicRanking:
    """Reduce a ranking to what its readers may know; small groups are not for all."""
    challenge, rules = analysis.challenge, analysis.rules
    has_means = is_organiser or analysis.shows_means
    shows_organs = has_organs and has_means
    means = ranking_means(analysis, has_organs=shows_organs, has_tests=False)
    metrics = tuple(map(metric_named, rules.names))
    counted = {name: means.counted[name] for name in rules.names}
    notes = [*ranking_notes(analysis), guests_note(analysis)]
    if has_means and any(mean.missing for mean in means.rows):
        notes.append(f"In a mean, a missing result {counted_text(counted)}.")
    notes.append(prize_text(rules))
    bootstrap = None if too_few_text(analysis) else analysis.bootstrap
    groups = (
        _group_ranks(analysis, grouping, is_organiser=is_organiser)
        for grouping in groupings
    )
    return PublicRanking(
        challenge=challenge.name,
        interim=analysis.table.roll.interim_text,
        certainty=certainty_text(analysis, is_organiser=is_organiser),
        metrics=metrics,
        means=_means(means, metrics, is_organiser=is_organiser) if has_means else {},
        counted=counted,
        rank_word=rules.rank_word,
        notes=tuple(filter(None, notes)),
        cases=len(analysis.table.cases),
        places=analysis.standings.standings,
        draws=bootstrap.teams if bootstrap else (),
        draws_note=draws_text(bootstrap) if bootstrap else "",
        decisions=analysis.decisions.lines,
        settings=_settings(analysis, metrics),
        groups=tuple(groups),
        organs=organ_means(means, is_organiser=is_organiser),
        metric_places=_metric_places(analysis.board),
        ranks_without=ranks_without(analysis),
    )


def _metric_places(board: Board) -> dict[str, dict[str, int]]:
    """The places of competing teams by their mean ranks by each metric."""
    places = {}
    for number, name in enumerate(board.rules.names):
        ranks = ranks_by_sums(board.doubled_ranks[:, :, number].sum(axis=1))
        places[name] = dict(zip(board.teams, ranks, strict=True))
    return places


def _group_ranks(
    analysis: Analysis, grouping: Grouping, *, is_organiser: bool
) -> GroupRanks:
    """The ranks within groups; for everybody, none of a column with a small group."""
    note = "" if is_organiser else reason_for_silence(grouping)
    if analysis.rules.of_all_cases:
        note = f"Not told. {all_cases_text(analysis.rules.names)}"
    groups = () if note else grouping.groups
    ranks = (analysis.board.on(numbers).final_ranks for _, numbers in groups)
    return GroupRanks(
        column=grouping.column,
        groups=tuple((name, len(numbers)) for name, numbers in groups),
        ranks=tuple(ranks),
        note=note,
    )


def _means(
    means: Means, metrics: Sequence[Metric], *, is_organiser: bool
) -> dict[str, list[tuple[float | None, int]]]:
    """The means of all teams by each metric that is ranked, and may be told."""
    means_by_metric: dict[str, list[tuple[float | None, int]]] = {}
    for metric in metrics:
        if is_organiser or metric.is_told(means.fewest_cases(metric.name)):
            means_by_metric[metric.name] = []
    for row in means.rows:
        if row.metric in means_by_metric and not row.organ:
            mean = shown_mean(row, means, is_organiser=is_organiser)
            means_by_metric[row.metric].append((mean, row.missing))
    return means_by_metric


def _settings(
    analysis: Analysis, metrics: Sequence[Metric]
) -> tuple[tuple[str, str], ...]:
    challenge, rules = analysis.challenge, analysis.rules
    weights = []
    for metric, rule in zip(metrics, rules.metrics, strict=True):
        better = f"{rule.better.value} is better"
        weights.append(f"{metric.heading} ({better}, weight {rule.weight:g})")
    gate = f"DSC of at least {rules.gate_dsc:g}" if rules.gate_dsc else "none"
    return (
        ("challenge", f"{challenge.name} ({challenge.key})"),
        ("metrics", ", ".join(weights)),
        ("score", rules.scheme_text or FLARES_SCORE),
        ("ties", rules.ties.value),
        ("missing results", rules.missing.value),
        ("gate of efficiency", gate),
        ("challenge sha256", challenge.checksum),
    )


# --- The page ---------------------------------------------------------------------


def ranking_page(
    public: PublicRanking,
    links: Mapping[str, str],
    *,
    look: Sequence[str] = (),
    doubts: Sequence[Part] = (),
    means: Sequence[Part] = (),
    sections: Sequence[Section] = (),
) -> Page:
    """The page of a ranking, for all readers; teams lead to their own pages by links.

    For organisers, with what to look at before it is published, what else there is to
    say of how sure it is, means of groups, and other sections.
    """
    ranking: list[Part] = [_first_table(public, look, links)]
    ranking += (Words(note, "note") for note in public.notes)
    contents = "and what follows from ranks, but"
    if public.means:
        contents = "what follows from ranks, and rounded means over all cases, but"
    lead: list[Part] = [Words(public.interim, "banner")] if public.interim else []
    lead.append(Words(public.certainty, "lead"))
    if look:
        lead.append(_look_box(look))
    draws: list[Part] = []
    if public.draws:
        draws.append(draws_chart(public.draws, public.draws_note))
    decisions = [lines_or(public.decisions, "There are none.")]
    groups: list[Part] = []
    for ranks in public.groups:
        groups += _rank_parts(ranks, public)
    costs = cost_parts(public.tradeoffs, has_dsc="dsc" in public.means)
    organs = folded(map(organ_table, public.organs))
    settings = pairs_table("What the ranking was made with", public.settings)
    return Page(
        title=f"{public.challenge}: ranking of {count(len(public.teams), 'team')}",
        audience_note=PUBLIC_NOTE.format(contents),
        lead=lead,
        sections=[
            Section("ranking", "Ranking", "", ranking),
            Section("organs", "Organs", "Who is best at which organ", organs),
            Section("cost", "Cost", "Accuracy against cost", costs),
            Section("draws", "How sure it is", "How sure it is", [*draws, *doubts]),
            Section("decisions", "Decisions", "Decisions of the organisers", decisions),
            Section("groups", "Groups", "Groups of cases", [*groups, *means]),
            *sections,
            Section("settings", "Settings", "Settings", [settings]),
        ],
    )


def _look_box(look: Sequence[str]) -> Lines:
    """The first things to look at; the section below has all of them."""
    title = f"{count(len(look), 'thing')} to look at before it is published"
    lines = [*look[:LOOKED_AT]]
    if len(look) > LOOKED_AT:
        lines.append(f"{len(look) - LOOKED_AT} more: see To be looked at, below.")
    return Lines(lines, title)


def lines_or(lines: Sequence[str], words: str) -> Part:
    """Lines; words where there are none."""
    return Lines(lines) if lines else Words(words)


def _first_table(
    public: PublicRanking, look: Sequence[str], links: Mapping[str, str]
) -> Table:
    places = public.places
    teams = list(map(attrgetter("team"), places))
    alarms, names = alarms_of(teams, look), []
    for team in teams:
        alarm = " ".join(alarms.get(team, ()))
        names.append(Cell(team, href=links.get(team, ""), alarm=alarm))
    columns = [
        Column("rank", [place.rank or "-" for place in places]),
        Column("team", names, is_text=True),
    ]
    if public.draws:
        intervals = dict.fromkeys(teams, Cell(""))
        intervals |= {draw.team: _interval_cell(draw) for draw in public.draws}
        columns.append(Column("ranks in 95 % of samples", intervals.values()))
    columns.append(Column("score", map(_score_cell, places)))
    for metric in public.metrics:
        is_mean = metric.name in public.means
        rank = public.rank_word if metric.is_of_each_case else "rank"
        head = metric.heading if is_mean else f"{rank}: {metric.heading}"
        cells = map(partial(_metric_cell, public, metric), range(len(places)))
        columns.append(Column(head, cells))
    cases = f"over {count(public.cases, 'case')}"
    smaller = "smaller is better, stronger shades are worse"
    caption = f"Score and {public.rank_word}s {cases}; {smaller}"
    if public.means:
        caption = f"Means {cases}; score, and {public.rank_word}s in shades: {smaller}"
    guests = [number for number, place in enumerate(places) if place.rank is None]
    return table_of(caption, columns, quiet=guests, is_whole=True)


def _score_cell(place: Standing) -> Cell:
    if place.rank is None:
        return Cell("")
    return number_cell(float(place.score), decimals=4, exact=True)


def alarms_of(teams: Sequence[str], look: Sequence[str]) -> dict[str, list[str]]:
    """The remarks on each team; one begins with its name, of two names the longer."""
    alarms: dict[str, list[str]] = {}
    longest_first = sorted(teams, key=len, reverse=True)
    for line in look:
        for team in longest_first:
            if line.startswith((f"{safe(team)} ", f"{safe(team)}:")):
                alarms.setdefault(team, []).append(line)
                break
    return alarms


def _interval_cell(draw: RankInterval) -> Cell:
    """The best and the worst rank of a team in 95 % of the draws, and all as blobs."""
    low, high = draw.interval
    return Cell(
        str(low) if low == high else f"{low} to {high}",
        css="drawn",
        exact=str(low + high / 1000),
        mark=blobs(draw.frequencies, low, high),
    )


def _metric_cell(public: PublicRanking, metric: Metric, number: int) -> Cell:
    """The mean of a team, if it may be told, on the shade of its mean rank."""
    mean_rank = float(public.places[number].mean_ranks[metric.name])
    css = rank_shade(mean_rank, len(public.teams))
    cell = number_cell(mean_rank, decimals=2, exact=True, css=css)
    if metric.name not in public.means:
        return cell
    mean, missing = public.means[metric.name][number]
    note = f"rank {cell.text}"
    if mean is None:
        return replace(cell, text=NO_RESULT, exact="", note=note)
    if missing:
        note += f", {missing} missing"
    return replace(cell, text=metric.text(mean), exact=repr(mean), note=note)


def draws_chart(draws: Sequence[RankInterval], note: str) -> Chart:
    """How sure the ranks are."""
    teams, ranks = [draw.team for draw in draws], len(draws[0].frequencies)
    lows, highs = zip(*(draw.interval for draw in draws), strict=True)
    columns = [
        Column("team", teams, is_text=True),
        Column("from", lows),
        Column("to", highs),
    ]
    for rank in range(ranks):
        cells = []
        for draw in draws:
            share = draw.frequencies[rank]
            cells.append(f"{100 * share:.1f}" if share else "")
        columns.append(Column(str(rank + 1), cells))
    intervals = ("{} {} to {}".format(draw.team, *draw.interval) for draw in draws)
    caption = "Ranks in 95 % of the draws, and percent of the draws with each rank"
    return Chart(
        title="Ranks when other cases are drawn",
        note=note,
        summary=f"ranks in 95 % of the draws: {'; '.join(intervals)}",
        labels=tuple(teams),
        rows=[blobs(draw.frequencies, *draw.interval) for draw in draws],
        axis=rank_ticks(ranks),
        axis_title="rank",
        key=(("dot", "larger: more draws"), ("boxed", "95 % of the draws")),
        table=table_of(caption, columns),
    )


def _rank_parts(group_ranks: GroupRanks, public: PublicRanking) -> list[Part]:
    """The ranks within groups; or why they are not told."""
    parts: list[Part] = [Heading(f"Ranks by {group_ranks.column}")]
    parts.append(Words(group_ranks.note or RANKS_NOTE, "note"))
    if not group_ranks.note:
        parts.append(rank_table(group_ranks, public))
    return parts


def rank_table(group_ranks: GroupRanks, public: PublicRanking) -> Table:
    """The rank of each team in the ranking itself, and within each group."""
    places = [place for place in public.places if place.rank is not None]
    columns = [
        Column("team", public.teams, is_text=True),
        Column("all cases", [place.rank for place in places]),
    ]
    for group, ranks in zip(group_ranks.groups, group_ranks.ranks, strict=True):
        cells = [Cell(str(rank), css=rank_shade(rank, len(places))) for rank in ranks]
        columns.append(Column(group_title(*group), cells))
    caption = f"Ranks of the teams by {group_ranks.column}, each group by itself"
    return table_of(caption, columns)
