"""Words a ranking: titles of metrics, who took part, what is missing, and how sure.

Every page, table and file that people read takes its words from here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from flare.challenge.metrics import LEFT_OUT, metric_named
from flare.common.text import count, joined, listing, printable, safe
from flare.ranking.rank import Analysis
from flare.ranking.rules import RankingRules
from flare.ranking.sensitivity import Scheme, Sensitivity
from flare.ranking.uncertainty import FEWEST_CASES, Bootstrap, methods_of
from flare.statistics import CONFIDENCE


def left_out_text(analysis: Analysis) -> str:
    """Tell by which metrics, or on how many cases, nobody is ranked; empty without any.

    No team was measured, or the challenge leaves an organ out.
    """
    table, rules = analysis.table, analysis.rules
    sentences = []
    if rules.left_out:
        names = joined(metric_named(name).heading for name in rules.left_out)
        sentences.append(f"Not ranked: {names}, as no team was measured.")
    counts = table.is_left_out.any(axis=0).sum(axis=0)[: len(table.metrics)]
    if counts.any():
        texts = [
            f"{metric_named(name).heading} on {number} of {len(table.cases)}"
            for name, number in zip(table.metrics, counts.tolist(), strict=True)
            if number
        ]
        end = "" if rules.scheme.is_of_means else ", where nobody is ranked by it"
        text = (
            f"Cases left out, by a rule of the challenge: {joined(texts, ', ')}{end}."
        )
        sentences.append(text)
    return " ".join(sentences)


def ranking_notes(analysis: Analysis) -> list[str]:
    """Tell what a reader has to know of the rules, wherever the ranking is shown."""
    rules = analysis.rules
    notes = left_out_text(analysis), all_cases_text(rules.names), rules.scheme_text
    return list(filter(None, notes))


def all_cases_text(metrics: Iterable[str]) -> str:
    """Tell which metrics have one value of all cases; empty if none has.

    Examples
    --------
    >>> all_cases_text(["dsc", "auroc_diagnosis"])
    'AUROC of diagnosis: one value of all cases together, and one rank by it.'
    """
    names = joined(_titles_of_all_cases(metrics))
    if not names:
        return ""
    return f"{names}: one value of all cases together, and one rank by it."


def _titles_of_all_cases(names: Iterable[str]) -> list[str]:
    metrics = map(metric_named, names)
    return [metric.heading for metric in metrics if not metric.is_of_each_case]


def tests_text(metrics: Iterable[str]) -> str:
    """How teams are compared by some metrics, within a sentence.

    Examples
    --------
    >>> tests_text(["dsc"])
    'one-sided Wilcoxon tests paired by case'
    >>> tests_text(["auroc_diagnosis"])
    "comparisons on the bootstrap's draws"
    """
    first, *further = methods_of(map(metric_named, metrics))
    texts = (f" or, of {method.kind}, {method.short}" for method in further)
    return first.short + "".join(texts)


def counted_text(counted: Mapping[str, Sequence[float | None]]) -> str:
    """Tell how missing results count, by metric and case.

    Examples
    --------
    >>> counted_text({"dsc": [0.0], "nsd": [0.0], "runtime_s": [None]})
    'counts as DSC 0, NSD 0; of Running time (s), it is left out'
    >>> counted_text({"runtime_s": [None]})
    'is left out'
    >>> counted_text({"hd95": [44.68, None, 51.5]})
    "counts as HD95 (mm) the diagonal of the case's grid"
    >>> counted_text({"false_volume": [8.1, 9.2]})
    "counts as Volume of false lesions (ml) all voxels of the case's grid"
    """
    values, left_out = [], []
    for metric, by_case in counted.items():
        record, different = metric_named(metric), set(by_case)
        if not record.is_of_each_case:
            continue  # it has no missing result
        title = record.heading
        if different == {None}:
            left_out.append(title)
        elif len(different) == 1:
            values.append(f"{title} {by_case[0]:.10g}")
        else:
            values.append(f"{title} {record.worst_of_grid} of the case's grid")
    if not values:
        return "is left out"
    text = f"counts as {', '.join(values)}"
    if left_out:
        text += f"; of {joined(left_out)}, it is left out"
    return text


def plain(number: Fraction | float) -> int | float | str:
    """A whole number without decimals, any other in full precision; of NaN, a word."""
    if math.isnan(number):
        return LEFT_OUT
    return int(number) if number == int(number) else float(number)


def guests_note(analysis: Analysis, place: str = "Below the line") -> str:
    """Tell how teams out of competition are ranked; empty without any."""
    if not analysis.standings.guests:
        return ""
    where = "" if analysis.rules.scheme.is_of_means else " on each case"
    return (
        f"{place}: out of competition, without rank or score; ranked{where}"
        " as if it alone had joined the"
        f" {count(len(analysis.board.teams), 'team')}."
    )


NAMED_CASES = 3
"""No more cases than this are named; ranking.json has all."""


def draws_text(bootstrap: Bootstrap) -> str:
    """How the draws were made, and how far their rankings agree with the ranking."""
    text = (
        f"As many cases were drawn, with replacement, {bootstrap.samples} times (seed"
        f" {bootstrap.seed}); a team's rank lies in its interval in"
        f" {100 * CONFIDENCE:g} % of the draws."
    )
    if bootstrap.left_out:
        text += (
            f" {bootstrap.left_out} of the draws are left out: their cases leave a"
            " value undefined."
        )
    if bootstrap.has_shared_first:
        text += (
            " Teams share first place in some draws: the shares add up to more than"
            " 100 %."
        )
    if bootstrap.kendall_tau:
        low, middle, high = bootstrap.kendall_tau
        text += (
            " Kendall's tau of the drawn rankings with the ranking itself: median"
            f" {middle:.2f}, {100 * CONFIDENCE:g} % from {low:.2f} to {high:.2f}."
        )
    if bootstrap.tied:
        text += f" {count(bootstrap.tied, 'draw')} had none, as all teams tied."
    return text


def missing_lines(analysis: Analysis) -> list[str]:
    """The results that are missing, a line for those that share team and reason."""
    titles: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for result in analysis.table.missing:
        reason = result.kind.replace(result.case, "CASE")
        titles[result.team, result.case, reason].append(
            metric_named(result.metric).heading
        )
    cases: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (team, case, reason), metrics in titles.items():
        cases[team, ", ".join(metrics), reason].append(case)
    total = len(analysis.table.cases)
    lines = []
    for (team, missing, reason), names in cases.items():
        number = f"{len(names)} of {total} cases ({listing(names)})"
        lines.append(f"{safe(team)}, {missing}, {number}: {safe(reason)}")
    return lines


# --- First place ------------------------------------------------------------------


def certainty_text(analysis: Analysis, *, is_organiser: bool) -> str:
    """How sure first place is, and what would change it, in a line.

    Everybody is told what follows from ranks alone: those of the draws, and of all
    metrics but one.
    """
    ranks = zip(analysis.board.teams, analysis.board.final_ranks, strict=True)
    winners = [team for team, rank in ranks if rank == 1]
    verb = "is first" if len(winners) == 1 else "share first place"
    first = f"{listing(winners, last=' and ')} {verb}"
    if too_few := too_few_text(analysis):
        return f"{first}. {too_few}"
    evidence = _evidence(analysis, winners, is_organiser=is_organiser)
    changes = _changes(analysis, winners, is_organiser=is_organiser)
    return f"{first}{evidence}. {changes}".rstrip()


def _evidence(analysis: Analysis, winners: Sequence[str], *, is_organiser: bool) -> str:
    """How often the winners are first, over the draws and over choices of rules."""
    is_alone = len(winners) == 1
    parts = []
    if bootstrap := analysis.bootstrap:
        shares = _first_shares(bootstrap, winners)
        parts.append(f"{shares} of {bootstrap.samples} bootstrap samples of the cases")
    if is_organiser and is_alone and analysis.sensitivity:
        winner = analysis.sensitivity[0]
        parts.append(
            f"under {winner.first_under} of {winner.choices_of_rules} choices of rules"
            " with all metrics"
        )
    if not parts:
        return ""
    return (" " if is_alone else "; first: ") + " and ".join(parts)


def _first_shares(bootstrap: Bootstrap, winners: Sequence[str]) -> str:
    """The share of the draws in which each winner is first; one needs no name."""
    shares = {team.team: _percent(team.frequencies[0]) for team in bootstrap.teams}
    if len(winners) == 1:
        return f"in {shares[winners[0]]}"
    return ", ".join(f"{safe(winner)} in {shares[winner]}" for winner in winners)


def _percent(share: float) -> str:
    """A share in words; a share below 1 is never called 100 %.

    Examples
    --------
    >>> _percent(1.0), _percent(0.9996), _percent(0.62), _percent(0.0)
    ('all', 'over 99 %', '62 %', 'none')
    """
    if share in (0, 1):
        return "all" if share else "none"
    return "over 99 %" if share > 0.99 else f"{max(share, 0.01):.0%}".replace("%", " %")


def _changes(analysis: Analysis, winners: Sequence[str], *, is_organiser: bool) -> str:
    """Name the metrics and teams without which others would be first."""
    changes = []
    for firsts, titles in _firsts_without(analysis, winners).items():
        metrics = listing(titles, last=" or ")
        changes.append(f"without {metrics}, {listing(firsts, last=' and ')}")
    teams: set[str] = set()
    for winner in analysis.sensitivity:
        teams.update(winner.lost_without_team)
    if is_organiser and teams:
        names = listing(sorted(teams), last=" or ")
        changes.append(f"without the team {names}, another")
    if changes:
        text = f"{'; '.join(changes)} would be first."
        return f"{text[0].upper()}{text[1:]}"
    if len(analysis.rules.metrics) > 1:
        return "Leaving out any one metric does not change that."
    return ""


def _firsts_without(
    analysis: Analysis, winners: Sequence[str]
) -> dict[tuple[str, ...], list[str]]:
    """Teams that would be first without a metric, and the titles of such metrics."""
    titles: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for metric, ranks in ranks_without(analysis).items():
        firsts = tuple(team for team, rank in ranks.items() if rank == 1)
        if firsts and set(firsts) != set(winners):
            titles[firsts].append(metric_named(metric).title_within)
    return titles


def ranks_without(analysis: Analysis) -> dict[str, Mapping[str, int]]:
    """The final ranks of all teams without a metric, by this metric."""
    by_scheme = {scheme.name: scheme.ranks for scheme in analysis.schemes}
    names = (name for name in analysis.rules.names if f"without {name}" in by_scheme)
    return {name: by_scheme[f"without {name}"] for name in names}


def too_few_text(analysis: Analysis) -> str:
    """Why nobody can say how sure a rank is; empty where that can be said."""
    cases = len(analysis.board.cases)
    if len(analysis.board.teams) == 1:
        return "It is the only team: there is nothing to compare it with."
    if cases >= FEWEST_CASES:
        return ""
    are = "is" if cases == 1 else "are"
    return (
        f"{count(cases, 'case')} {are} too few to say how sure that is; at least"
        f" {FEWEST_CASES} are needed. On {FEWEST_CASES - 1} cases, one of two equal"
        f" teams is ahead on all by chance in 1 of {2 ** (FEWEST_CASES - 2)} rankings."
    )


def recount_text(
    winner: Sensitivity, cases: int, rules: RankingRules | None = None
) -> str:
    """Tell all that the first place of a team depends on, by some rules."""
    changed = _changed_by_each_case(rules) if rules else []
    parts = [*_without_cases(winner, cases), *_without_teams(winner)]
    if changed:
        # Withdrawals are not searched for: see `flare.ranking.sensitivity`.
        parts[0] = (
            f"{printable(winner.team)} could lose first place if cases were withdrawn;"
            " the fewest that suffice are not searched for, as each case changes"
            f" {listing(changed, last=' and ')}"
        )
    choices = [(name, n) for name, n in winner.alternatives.items() if n > 1]
    counts = " x ".join(f"{name} {n}" for name, n in choices)
    parts.append(
        "with all metrics and teams kept, it is first under"
        f" {winner.first_under} of {winner.choices_of_rules} choices of rules"
        f" ({counts}; different rankings among them: {winner.different_rankings})."
    )
    return "; ".join(parts)


def _changed_by_each_case(rules: RankingRules) -> list[str]:
    """The values that a ranking depends on, and that change with each case."""
    if rules.scheme.is_of_means:
        return ["all means"]
    answers = _titles_of_all_cases(rules.names)
    return answers + [f"the mean {rule.record.title_within}" for rule in rules.ties_by]


def _without_cases(winner: Sensitivity, cases: int) -> Iterator[str]:
    """How few cases, if they were withdrawn, would take first place, or share it."""
    team, fewest = printable(winner.team), math.inf
    if winner.withdrawals:
        lost = winner.withdrawals[0]
        fewest = lost.number
        yield (
            f"{team} keeps first place unless {lost.number} of {cases} cases are"
            f" withdrawn (then {printable(lost.rival)} could be ahead"
            f"{_named(lost.cases, ', as without ')})"
        )
    else:
        yield f"{team} keeps first place whatever cases are withdrawn"
    if winner.shares and winner.shares[0].number < fewest:
        shared = winner.shares[0]
        yield (
            f"{printable(shared.rival)} could share it without {shared.number}"
            f"{_named(shared.cases, ': ')}"
        )


def _without_teams(winner: Sensitivity) -> Iterator[str]:
    """Whether first place would be lost, or shared, without another team."""
    if winner.lost_without_team:
        names = listing(winner.lost_without_team, last=" or ")
        yield f"it loses it if {names} is disqualified"
    teams: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for tie in winner.shared_without_team:
        teams[tie["with"]].append(tie["team"])
    for rivals, disqualified in teams.items():
        yield (
            f"if {listing(disqualified, last=' or ')} is disqualified, it would then"
            f" share first place with {listing(rivals, last=' and ')}"
        )
    if not (winner.lost_without_team or teams):
        yield "no other team's disqualification changes that"


def _named(cases: Sequence[str], before: str) -> str:
    return f"{before}{listing(cases)}" if len(cases) <= NAMED_CASES else ""


# --- Other schemes ----------------------------------------------------------------


def tau_text(scheme: Scheme) -> str:
    """Kendall's tau of a scheme; a single tie, as of teams by tests alone, has none."""
    if scheme.tau is None:
        return "undefined"
    text = f"{scheme.tau:z.2f}"
    return ">0.99" if text == "1.00" and scheme.moved else text


def scheme_title(scheme: Scheme) -> str:
    """The name of a scheme, in which a metric has its title, without its unit."""
    before, _, metric = scheme.name.partition("without ")
    if before or not metric or scheme.left_out is not None:
        return scheme.name
    return f"without {metric_named(metric).title_within}"


def scheme_moves(
    schemes: Sequence[Scheme],
) -> tuple[list[tuple[Scheme, list[str]]], str]:
    """Who moves where under each scheme; and without how many teams nobody does."""
    still = [
        scheme for scheme in schemes if scheme.left_out is not None and not scheme.moved
    ]
    if len(still) < 2:
        still = []
    moves_by_scheme = []
    for scheme in schemes:
        if scheme not in still:
            before, after = scheme.before, scheme.ranks
            moves = [f"{safe(t)} {before[t]} to {after[t]}" for t in scheme.moved]
            moves_by_scheme.append((scheme, moves or ["nobody"]))
    return moves_by_scheme, f"without any one of {len(still)} teams" if still else ""
