"""Words a ranking: titles of metrics, who took part, what is missing, and how sure.

Every page, table and file that people read takes its words from here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flare.challenge.metrics import Metric, metric_of, organ_of
from flare.common.text import count, listing, printable, safe
from flare.ranking.rank import Analysis
from flare.ranking.sensitivity import Scheme, Sensitivity
from flare.ranking.uncertainty import CONFIDENCE, FEWEST_CASES, Bootstrap
from flare.reports.model import Cell, metric_shade, number_cell
from flare.results.efficiency_csv import MEASURED, VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A metric, or a measured column, as tables and pages show it."""

    name: str
    """As in ranking.json."""
    record: Metric | None
    """Of a metric of label maps."""
    title: str
    """With the organ, and the unit; the name if there is no other."""
    decimals: int
    """Of its values."""
    is_score: bool
    """Whether it is from 0 (worst) to 1 (best)."""
    is_told: bool
    """Whether participants may see its values, not only their ranks.

    Efficiency has nothing of references; what is no metric of ours may have.
    """

    def text(self, value: float) -> str:
        """A value, or a mean of values."""
        return f"{value:z.{self.decimals}f}"

    def cell(self, value: float | None, **more: Any) -> Cell:
        """A value in a table, or that there is none."""
        return number_cell(value, decimals=self.decimals, **more)

    def shaded(self, value: float | None) -> Cell:
        """A value in a table; that of a score on its shade."""
        return self.cell(value, css=metric_shade(self.record, value))


def printed(name: str) -> Printed:
    """A metric by its name, in print.

    Examples
    --------
    >>> [printed(name).title for name in ("runtime_s", "dsc_left_kidney", "vol")]
    ['Running time (s)', 'DSC of left kidney', 'vol']
    >>> printed("dsc_liver").text(0.97394), printed("runtime_s").text(12.345)
    ('0.974', '12.3')
    >>> printed("hd95").text(4.236), printed("volume_difference").text(-0.0002)
    ('4.24', '0.000')
    """
    known, organ = metric_of(name), organ_of(name).replace("_", " ")
    if known:
        title = known.title_with_unit
        if organ:
            title = title.replace(known.title, f"{known.title} of {organ}", 1)
        return Printed(
            name=name,
            record=known,
            title=title,
            decimals=known.decimals,
            is_score=known.is_share,
            is_told=known.for_participants,
        )
    return Printed(
        name=name,
        record=None,
        title=MEASURED.get(name) or name,
        decimals=0 if name.endswith("_mb") else 1,
        is_score=False,
        is_told=name in VALUES,
    )


def left_out_text(metrics: Sequence[str]) -> str:
    """That nobody is ranked by some metrics of the challenge; empty without any.

    Examples
    --------
    >>> left_out_text(["runtime_s", "max_gpu_memory_mb"])
    'Not ranked: Running time (s) and GPU memory (MB), as no team was measured.'
    """
    if not metrics:
        return ""
    names = listing((printed(metric).title for metric in metrics), last=" and ")
    return f"Not ranked: {names}, as no team was measured."


def counted_text(counted: Mapping[str, Sequence[float | None]]) -> str:
    """What missing results count as, by metric and case.

    Examples
    --------
    >>> counted_text({"dsc": [0.0], "nsd": [0.0], "runtime_s": [None]})
    'counts as DSC 0, NSD 0; of Running time (s), it is left out'
    >>> counted_text({"runtime_s": [None]})
    'is left out'
    >>> counted_text({"hd95": [44.68, None, 51.5]})
    "counts as HD95 (mm) the diagonal of the case's grid"
    """
    values, out = [], []
    for metric, by_case in counted.items():
        title, different = printed(metric).title, set(by_case)
        if different == {None}:
            out.append(title)
        elif len(different) == 1:
            values.append(f"{title} {by_case[0]:.10g}")
        else:
            values.append(f"{title} the diagonal of the case's grid")
    if not values:
        return "is left out"
    rest = f"; of {listing(out, last=' and ')}, it is left out" if out else ""
    return f"counts as {', '.join(values)}{rest}"


def plain(number: Fraction | float) -> int | float:
    """A whole number without decimals, any other in full precision."""
    return int(number) if number == int(number) else float(number)


def guests_note(analysis: Analysis) -> str:
    """What the ranks of teams out of competition mean; empty without any."""
    if not analysis.standings.guests:
        return ""
    return (
        "Below the line: out of competition, without rank or score; ranked on each case"
        " as if it alone had joined the"
        f" {count(len(analysis.board.teams), 'team')}."
    )


NAMED_CASES = 3
"""No more cases than this are named; ranking.json has all."""


def draws_text(found: Bootstrap) -> str:
    """How the draws were made, and how far their rankings agree with the ranking."""
    text = (
        f"As many cases were drawn, with replacement, {found.samples} times (seed"
        f" {found.seed}); a team's rank lies in its interval in"
        f" {100 * CONFIDENCE:g} % of the draws."
    )
    if found.has_shared_first:
        text += (
            " Teams share first place in some draws: the shares add up to more than"
            " 100 %."
        )
    if found.kendall_tau:
        low, middle, high = found.kendall_tau
        text += (
            " Kendall's tau of the drawn rankings with the ranking itself: median"
            f" {middle:.2f}, {100 * CONFIDENCE:g} % from {low:.2f} to {high:.2f}."
        )
    return text


def missing_lines(analysis: Analysis) -> list[str]:
    """The results that are missing, a line for those that share team and reason."""
    titles: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for m in analysis.table.missing:
        reason = m.kind.replace(m.case, "CASE")
        titles[m.team, m.case, reason].append(printed(m.metric).title)
    cases: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (team, case, reason), names in titles.items():
        cases[team, ", ".join(names), reason].append(case)
    every = len(analysis.table.cases)
    return [
        f"{safe(team)}, {missing}, {len(names)} of {every} cases ({listing(names)}):"
        f" {safe(reason)}"
        for (team, missing, reason), names in cases.items()
    ]


def certainty_text(analysis: Analysis, *, is_organiser: bool) -> str:
    """How sure first place is, and what would change it, in a line.

    Everybody is told what follows from ranks alone: those of the draws, and of all
    metrics but one.
    """
    board, drawn = analysis.board, analysis.bootstrap
    ranks = zip(board.teams, board.final_ranks, strict=True)
    names = tuple(team for team, rank in ranks if rank == 1)
    is_one = len(names) == 1
    verb = "is first" if is_one else "share first place"
    first = f"{listing(names, last=' and ')} {verb}"
    if too_few := too_few_text(analysis):
        return f"{first}. {too_few}"
    parts = []
    if drawn:
        shares = {own.team: own.frequencies[0] for own in drawn.teams}
        firsts = (
            f"{'' if is_one else f'{safe(name)} '}in {_percent(shares[name])}"
            for name in names
        )
        parts.append(
            f"{', '.join(firsts)} of {drawn.samples} bootstrap samples of the cases"
        )
    if is_organiser and is_one and analysis.sensitivity:
        own = analysis.sensitivity[0]
        parts.append(
            f"under {own.first_under} of {own.choices_of_rules} choices of rules with"
            " all metrics"
        )
    sure = f"{' ' if is_one else '; first: '}{' and '.join(parts)}" if parts else ""
    return f"{first}{sure}. {_changes(analysis, names, is_organiser)}".rstrip()


def _percent(share: float) -> str:
    """A share in words; what is not all is not 100 %.

    Examples
    --------
    >>> _percent(1.0), _percent(0.9996), _percent(0.62), _percent(0.0)
    ('all', 'over 99 %', '62 %', 'none')
    """
    if share in (0, 1):
        return "all" if share else "none"
    return "over 99 %" if share > 0.99 else f"{max(share, 0.01):.0%}".replace("%", " %")


def _changes(analysis: Analysis, names: Sequence[str], is_organiser: bool) -> str:
    """Without what other teams would be first."""
    ranks = {scheme.name: scheme.ranks for scheme in analysis.schemes}
    without: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for metric in analysis.rules.names:
        own = ranks.get(f"without {metric}", {})
        others = tuple(team for team, rank in own.items() if rank == 1)
        if others and set(others) != set(names):
            title = printed(metric).title.partition(" (")[0]
            is_word = title[1:2].islower()
            without[others].append(title[0].lower() + title[1:] if is_word else title)
    found = [
        f"without {listing(titles, last=' or ')}, {listing(others, last=' and ')}"
        for others, titles in without.items()
    ]
    teams = {t for own in analysis.sensitivity for t in own.lost_without_team}
    if is_organiser and teams:
        found.append(f"without the team {listing(sorted(teams), last=' or ')}, another")
    if found:
        text = f"{'; '.join(found)} would be first."
        return f"{text[0].upper()}{text[1:]}"
    is_several = len(analysis.rules.metrics) > 1
    return "Leaving out any one metric does not change that." if is_several else ""


def too_few_text(analysis: Analysis) -> str:
    """Why nobody can say how sure a rank is; empty where that can be said."""
    cases = len(analysis.board.cases)
    if len(analysis.board.teams) == 1:
        return "It is the only team: there is nothing to compare it with."
    if cases >= FEWEST_CASES:
        return ""
    are = "is" if cases == 1 else "are"
    return (
        f"{count(cases, 'case')} {are} too few to say how sure that is: it takes"
        f" {FEWEST_CASES}, as of two equal teams one is ahead on all of"
        f" {FEWEST_CASES - 1} in 1 of {2 ** (FEWEST_CASES - 2)} rankings."
    )


def recount_text(found: Sensitivity, cases: int) -> str:
    """What the first place of a team depends on."""
    lost, shared = found.withdrawals[:1], found.shares[:1]
    parts = [f"{printable(found.team)} keeps first place whatever cases are withdrawn"]
    for own in lost:
        parts = [
            f"{printable(found.team)} keeps first place unless {own.number} of"
            f" {cases} cases are withdrawn (then {printable(own.rival)} could be ahead"
            f"{_named(own.cases, ', as without ')})"
        ]
    parts += [
        f"{printable(own.rival)} could share it without {own.number}"
        f"{_named(own.cases, ': ')}"
        for own in shared
        if not lost or own.number < lost[0].number
    ]
    teams = []
    if found.lost_without_team:
        names = listing(found.lost_without_team, last=" or ")
        teams.append(f"it loses it if {names} is disqualified")
    by_rivals: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for tie in found.shared_without_team:
        by_rivals[tie["with"]].append(tie["team"])
    teams += [
        f"if {listing(without, last=' or ')} is disqualified, it would then share"
        f" first place with {listing(rivals, last=' and ')}"
        for rivals, without in by_rivals.items()
    ]
    parts += teams or ["no other team's disqualification changes that"]
    counts = " x ".join(
        f"{what} {n}" for what, n in found.alternatives.items() if n > 1
    )
    parts.append(
        "with all metrics and teams kept, it is first under"
        f" {found.first_under} of {found.choices_of_rules} choices of rules ({counts};"
        f" different rankings among them: {found.different_rankings})."
    )
    return "; ".join(parts)


def _named(cases: Sequence[str], before: str) -> str:
    """The names of cases, if they are few."""
    return f"{before}{listing(cases)}" if len(cases) <= NAMED_CASES else ""


def scheme_moves(
    schemes: Sequence[Scheme],
) -> tuple[list[tuple[Scheme, list[str]]], str]:
    """Who moves where under each scheme; and without how many teams nobody does."""
    still = [own for own in schemes if own.left_out is not None and not own.moved]
    still = still if len(still) > 1 else []
    moves = [
        (own, [f"{safe(t)} {own.before[t]} to {own.ranks[t]}" for t in own.moved])
        for own in schemes
        if own not in still
    ]
    told = [(own, moved or ["nobody"]) for own, moved in moves]
    return told, f"without any one of {len(still)} teams" if still else ""
