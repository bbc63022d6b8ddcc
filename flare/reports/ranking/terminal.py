"""Tells a ranking on the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from flare.common.text import aligned, listing, printable, safe
from flare.ranking.rank import Analysis
from flare.ranking.robustness.bootstrap import CONFIDENCE, Bootstrap
from flare.ranking.robustness.schemes import (
    Scheme,
)
from flare.ranking.robustness.sensitivity import Sensitivity
from flare.ranking.robustness.significance import ALPHA, PairTest
from flare.ranking.standings import PRIZE_RULE
from flare.reports.ranking.roll_call import interim_text, roll_lines
from flare.reports.ranking.rows import guest_rows, guests_note, ranking_rows
from flare.reports.ranking.titles import left_out_text

SHARED_FIRST = (
    "Teams share first place in some draws: the shares add up to more than 100 %."
)
"""Stands with the shares of first places, where that is so."""

NAMED_CASES = 3
"""No more cases than this are named; ranking.json has all."""


def analysis_text(analysis: Analysis) -> str:
    """The ranking, the rule for prizes, decisions, and how sure it is, as text."""
    roll = analysis.table.roll
    parts = [interim_text(roll)] if roll.is_interim else []
    parts += [left_out_text(analysis.rules.left_out)] if analysis.rules.left_out else []
    parts += ["\n".join(_ranking_lines(analysis)), _remarks(analysis)]
    flags = [f"  {flag}" for flag in (*roll_lines(roll), *analysis.flags)]
    if flags:
        parts.append("\n".join(["To be looked at:", *flags]))
    parts.append(recount_text(analysis.sensitivity))
    if analysis.bootstrap:
        parts.append(intervals_table(analysis.bootstrap))
    if len(analysis.board.teams) > 1:
        parts.append(pairs_table(analysis.tests, analysis.board.teams))
        parts.append(schemes_table(analysis.schemes))
    return "\n\n".join(parts)


def _ranking_lines(analysis: Analysis) -> list[str]:
    """The ranking, and below a line the teams out of competition."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    heads = [f"mean rank {metric}" for metric in metrics]
    lines = aligned([*ranking_rows(analysis, heads), *guest_rows(analysis)])
    guests = len(analysis.standings.guests)
    if not guests:
        return lines
    line = "-" * max(map(len, lines))
    return [*lines[:-guests], line, *lines[-guests:], guests_note(analysis)]


def _remarks(analysis: Analysis) -> str:
    """The rule for prizes, the decisions, and the results that are missing."""
    missing = (f"Missing: {line}" for line in missing_lines(analysis))
    return "\n".join([PRIZE_RULE, *analysis.decisions.lines, *missing])


def missing_lines(analysis: Analysis) -> list[str]:
    """The results that are missing, a line for those that share team and reason."""
    lines = []
    metrics: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for m in analysis.table.missing:
        reason = m.kind.replace(m.case, "CASE")
        metrics[m.team, m.case, reason].append(m.metric)
    cases: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (team, case, reason), names in metrics.items():
        cases[team, ", ".join(names), reason].append(case)
    for (team, missing, reason), names in cases.items():
        of = f"{len(names)} of {len(analysis.table.cases)} cases ({listing(names)})"
        lines.append(f"{safe(team)}, {missing}, {of}: {safe(reason)}")
    return lines


def intervals_table(result: Bootstrap) -> str:
    """The intervals as text."""
    percent = f"{CONFIDENCE:.0%}"
    rows = [("team", f"ranks in {percent}", "first in")]
    rows += [
        (
            printable(interval.team),
            f"{interval.lowest} to {interval.highest}",
            f"{interval.frequencies[0]:.1%}",
        )
        for interval in result.intervals
    ]
    lines = [f"With {result.samples} draws of as many cases (seed {result.seed}):"]
    lines += [f"  {line}" for line in aligned(rows)]
    if result.has_shared_first:
        lines.append(SHARED_FIRST)
    if result.taus:
        low, median, high = result.taus
        lines.append(
            "Kendall's tau of these rankings with the one above: median"
            f" {median:.2f}, {percent} from {low:.2f} to {high:.2f}."
        )
    return "\n".join(lines)


def pairs_table(tests: Sequence[PairTest], teams: Sequence[str]) -> str:
    """The tests of each team against the next one, as text.

    Parameters
    ----------
    tests : sequence of PairTest
        All of them.
    teams : sequence of str
        In the order of the ranking.
    """
    metrics = list(dict.fromkeys(test.metric for test in tests))
    by_pair = {(test.metric, test.team, test.other): test for test in tests}
    rows = [["", *metrics]]
    for team, other in pairwise(teams):
        names = [printable(name) for name in (team, other)]
        cells = [_cell(by_pair[metric, team, other]) for metric in metrics]
        rows.append([" > ".join(names), *cells])
    family = len(teams) * (len(teams) - 1)
    return "\n".join(
        [
            "Is each team better than the next? Effect (-1 to 1) and p of one-sided"
            " Wilcoxon tests paired by case,",
            f"after Holm over the {family} ordered pairs of each metric; cases without"
            " a difference are left out:",
            *(f"  {line}" for line in aligned(rows)),
        ]
    )


def _cell(test: PairTest) -> str:
    """Effect and p of a test."""
    star = "*" if test.p_holm <= ALPHA else ""
    return f"{test.effect:+.2f} p={test.p_holm:.2g}{star}"


def schemes_table(schemes: Sequence[Scheme]) -> str:
    """Who moves when the teams are ranked in other ways."""
    width = max(len(scheme.name) for scheme in schemes)
    lines = ["Ranked in other ways (Kendall's tau with the ranking above, who moves):"]
    still = [s for s in schemes if s.left_out is not None and not s.moved]
    if len(still) > 1:
        teams = [scheme.left_out or "" for scheme in still]
        schemes = [scheme for scheme in schemes if scheme not in still]
        width = max((len(scheme.name) for scheme in schemes), default=0)
        last = f"  without any one of {listing(teams)}: nobody moves"
    for scheme in schemes:
        moves = [
            f"{printable(team)} {scheme.before[team]} to {scheme.ranks[team]}"
            for team in scheme.moved
        ]
        tau = "  - " if scheme.tau is None else f"{scheme.tau:4.2f}"
        name = scheme.name.ljust(width)
        lines.append(f"  {name}  {tau}  {listing(moves) if moves else 'nobody'}")
    if len(still) > 1:
        lines.append(last)
    return "\n".join(lines)


def _named(cases: Sequence[str], before: str) -> str:
    """The names of cases, if they are few."""
    return f"{before}{listing(cases)}" if len(cases) <= NAMED_CASES else ""


def recount_text(found: Sequence[Sensitivity]) -> str:
    """What the first place depends on, a line for each team that has it."""
    return "\n".join(map(_recount_line, found))


def _recount_line(found: Sensitivity) -> str:
    """What the first place of a team depends on."""
    name = printable(found.team)
    if found.withdrawals:
        rival, cases = found.withdrawals[0]
        keeps = (
            f"{name} keeps first place unless {len(cases)} of {found.cases} cases"
            f" are withdrawn (then {printable(rival)} could be ahead"
            f"{_named(cases, ', as without ')})"
        )
    else:
        keeps = f"{name} keeps first place whatever cases are withdrawn"
    if found.shares:
        rival, cases = found.shares[0]
        if not found.withdrawals or len(cases) < len(found.withdrawals[0][1]):
            keeps += (
                f"; {printable(rival)} could share it without {len(cases)}"
                f"{_named(cases, ': ')}"
            )
    parts = " x ".join(f"{name} {n}" for name, n in found.alternatives if n > 1)
    return (
        f"{keeps}; {_without_a_team(found)}; with all metrics and teams kept, it is"
        f" first under {found.first} of {found.choices} choices of rules ({parts};"
        f" different rankings among them: {found.rankings})."
    )


def _without_a_team(recount: Sensitivity) -> str:
    """What a disqualification would change."""
    found = []
    if recount.disqualifications:
        teams = listing(recount.disqualifications, last=" or ")
        found.append(f"it loses it if {teams} is disqualified")
    by_names: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for team, names in recount.ties:
        by_names[names].append(team)
    found += [
        f"if {listing(teams, last=' or ')} is disqualified, it would then share"
        f" first place with {listing(names, last=' and ')}"
        for names, teams in by_names.items()
    ]
    return "; ".join(found) or "no other team's disqualification changes that"
