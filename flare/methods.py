"""Words the Methods paragraph of a paper from the settings that were really used."""

from __future__ import annotations

from flare._version import __version__
from flare.analysis import Analysis
from flare.challenge import Better, RankedMetric
from flare.pairwise import ALPHA
from flare.ranking import MissingRule, Rules, Ties
from flare.stability import CONFIDENCE, GENERATOR

_TIES = {
    Ties.MIN: "the best of the places that they take together",
    Ties.AVERAGE: "the mean of the places that they take together",
    Ties.MAX: "the worst of the places that they take together",
}
_MISSING = {
    MissingRule.LAST: "got the rank of the number of teams",
    MissingRule.WORST_PLUS_ONE: (
        "got the rank behind the highest rank that was given on the case"
    ),
    MissingRule.VALUE: (
        "counted as the challenge's value for failed runs, or as the worst value of"
        " any team on the case, whichever was worse"
    ),
    MissingRule.REFUSE: "got the rank of the number of teams",
}


def methods_text(analysis: Analysis) -> str:
    """The paragraph, without line breaks."""
    rules, board = analysis.rules, analysis.board
    metrics = "; ".join(map(_metric_text, rules.metrics))
    counts = (
        _count(len(board.teams), "team"),
        _count(len(board.cases), "test case"),
        _count(len(rules.metrics), "metric"),
    )
    sentences = [
        f"Ranked were {counts[0]} on each of {counts[1]} by each of {counts[2]}"
        f" ({metrics}).",
        "A team's score is the weighted mean of its ranks over all cases and metrics,"
        " divided by the number of teams; ranks were added exactly."
        if len(set(rules.weights.tolist())) > 1
        else "A team's score is the mean of its ranks over all cases and metrics,"
        " divided by the number of teams; ranks were added exactly.",
        f"Teams with equal values on a case got {_TIES[rules.ties]}.",
        _missing_text(analysis),
    ]
    if rules.gate_dsc:
        sentences.append(
            "Metrics of efficiency counted only on cases on which a team reached a DSC"
            f" of {rules.gate_dsc:g}; elsewhere they {_MISSING[rules.missing]}."
        )
    if analysis.decisions.withdrawn:
        count = len(analysis.decisions.withdrawn)
        sentences.append(f"Withdrawn cases: {count}.")
    if analysis.decisions.disqualified:
        count = len(analysis.decisions.disqualified)
        sentences.append(f"Disqualified teams: {count}.")
    if analysis.decisions.guests:
        count = len(analysis.decisions.guests)
        sentences.append(f"Teams shown out of competition: {count}.")
    if analysis.bootstrap:
        sentences.append(
            "The stability of the ranks was assessed by"
            f" {analysis.bootstrap.samples:,} bootstrap samples of the cases (NumPy's"
            f" {GENERATOR}, seed {analysis.bootstrap.seed}), of which"
            f" {CONFIDENCE:.0%} intervals are given."
        )
    if len(board.teams) > 1:
        family = len(board.teams) * (len(board.teams) - 1)
        replaced = "replaced by the worst value of any team"
        if any(rule.failed is not None for rule in rules.metrics):
            replaced += ", or by that of a failed run if that is worse"
        sentences.append(
            "Teams were compared by one-sided Wilcoxon signed-rank tests paired by"
            " case (normal approximation with corrections for ties and continuity;"
            f" cases without a difference left out; missing results {replaced}),"
            f" adjusted by Holm's method over the {family} ordered pairs of teams for"
            f" each metric, at a level of {ALPHA:g}; effects are matched-pairs"
            " rank-biserial correlations."
        )
    sentences.append(
        f"Computed with the FLARE evaluation kit {__version__}, challenge file"
        f" {analysis.challenge.key} (SHA-256 {analysis.challenge.checksum[:12]})."
    )
    return " ".join(sentences)


def _count(number: int, noun: str) -> str:
    """Such as "1 team" or "2 teams"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _metric_text(rule: RankedMetric) -> str:
    """A metric and what is special about it."""
    parts = [f"{'higher' if rule.better is Better.HIGHER else 'lower'} is better"]
    if rule.weight != 1:
        parts.append(f"weight {rule.weight:g}")
    if rule.tolerance:
        parts.append(f"values up to {rule.tolerance:g} equally good")
    if rule.trace_tolerance_mb:
        parts.append(f"of the memory above {rule.trace_tolerance_mb:g} MB")
    if rule.decimals is not None:
        parts.append(f"rounded to {rule.decimals} decimals")
    return f"{rule.metric}, {', '.join(parts)}"


def _missing_text(analysis: Analysis) -> str:
    """What became of missing results."""
    table, rules = analysis.table, analysis.rules
    missing = [m for m in table.missing if m.team in analysis.board.teams]
    if not missing:
        return "No result was missing."
    total = len(analysis.board.teams) * len(table.cases) * len(rules.metrics)
    failed = ""
    if rules.missing is MissingRule.VALUE:
        failed = f" ({_failed_text(rules)})"
    return (
        f"{len(missing)} of {total} results were missing, and"
        f" {_MISSING[rules.missing]}{failed}."
    )


def _failed_text(rules: Rules) -> str:
    """The values of failed runs."""
    return ", ".join(f"{rule.metric} {rule.failed:g}" for rule in rules.metrics)
