"""Words the Methods paragraph of a paper from the settings that were really used."""

from __future__ import annotations

from collections.abc import Iterator

from flare.challenge.metrics import metric_named
from flare.challenge.reading import further_rules, scoring_rules
from flare.challenge.rules import MaxMemory, RankedMetric
from flare.challenge.scheme import Ties
from flare.common.environment import __version__
from flare.common.text import count, isolated, joined, printable
from flare.ranking.inspection import RollCall
from flare.ranking.rank import Analysis
from flare.ranking.rules import MissingRule, RankingRules
from flare.ranking.uncertainty import methods_of
from flare.reports.paper.scoring import (
    definition_sentences,
    digest_text,
    rule_sentences,
    worst_text,
)
from flare.reports.ranking.words import left_out_text
from flare.results.traces_csv import STABLE_SHARE
from flare.statistics import ALPHA, CONFIDENCE

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

_OPTIONS = {
    "--on-bad-case worst": (
        "Cases whose label map was missing or could not be used scored {worst}."
    ),
    "--grid size": (
        "Of the grids of label maps, the numbers of voxels alone had to be those of the"
        " reference."
    ),
    "--unknown-labels ignore": (
        "Labels that the challenge does not define counted as background."
    ),
}
"""Sentences about options of an evaluation; they take the worst values."""


def methods_text(analysis: Analysis) -> str:
    """The paragraph, without line breaks."""
    return isolated(printable(" ".join(filter(None, _sentences(analysis)))))


def _sentences(analysis: Analysis) -> Iterator[str]:
    """Tell the teams and the rules, how sure ranks are, and how values were made."""
    rules = analysis.rules
    challenge = analysis.challenge
    yield analysis.table.roll.interim_text
    yield _ranked_text(analysis)
    yield left_out_text(analysis)
    yield rules.scheme_text
    yield _score_text(rules)
    if rules.of_all_cases and rules.has_cases:
        yield (
            "A rank by a metric of answers counted as much as the mean of the ranks by"
            " another metric of the same weight."
        )
    where = " on a case" if rules.has_cases else ""
    yield f"Teams with equal values{where} got {_TIES[rules.ties]}."
    yield _missing_text(analysis)
    if rules.gate_dsc:
        yield (
            "Metrics of efficiency counted only on cases on which a team reached a DSC"
            f" of {rules.gate_dsc:g}; elsewhere they {_MISSING[rules.missing]}."
        )
    decisions = analysis.decisions
    if decisions.withdrawn:
        yield f"Withdrawn cases: {len(decisions.withdrawn)}."
    if decisions.disqualified:
        yield f"Disqualified teams: {len(decisions.disqualified)}."
    if decisions.guests:
        yield f"Teams shown out of competition: {len(decisions.guests)}."
    yield from _roll_sentences(analysis.table.roll)
    yield from _robustness_sentences(analysis)
    yield from _scoring_sentences(analysis)
    yield _others_text(analysis)
    yield from _measuring_sentences(analysis)
    yield (
        f"Computed with the FLARE evaluation kit {__version__}, challenge file"
        f" {challenge.key} (SHA-256 {challenge.checksum[:12]}){_other_file(analysis)}."
    )


def _score_text(rules: RankingRules) -> str:
    divided = "divided by the number of teams"
    if len(rules.metrics) == 1 and rules.rank_word == "rank":
        return f"A team's score is its rank, {divided}."
    mean = "weighted mean" if len(set(rules.weights)) > 1 else "mean"
    over = "all cases and metrics" if rules.has_cases else "all metrics"
    if rules.scheme.group:
        over = "all groups and metrics"
    ranks = f"the {mean} of its ranks over {over}"
    return f"A team's score is {ranks}, {divided}; ranks were added exactly."


def _ranked_text(analysis: Analysis) -> str:
    rules, board = analysis.rules, analysis.board
    text = f"Ranked were {count(len(board.teams), 'team')}"
    by_case: list[str] = []
    by_set: list[str] = []
    for rule in rules.metrics:
        group = by_case if rule.record.is_of_each_case else by_set
        group.append(_metric_text(rule))
    if by_case:
        on = "by means over" if rules.scheme.is_of_means else "on each of"
        text += (
            f" {on} {count(len(board.cases), 'test case')} by each of"
            f" {count(len(by_case), 'metric')} ({'; '.join(by_case)})"
        )
    if by_set:
        text += " and" if by_case else ""
        text += (
            f" by the values of {count(len(by_set), 'metric')} of answers, each of"
            f" all cases together ({'; '.join(by_set)})"
        )
    return f"{text}."


def _robustness_sentences(analysis: Analysis) -> Iterator[str]:
    methods = methods_of(analysis.rules.records)
    if bootstrap := analysis.bootstrap:
        yield (
            f"The stability of the ranks was assessed by {bootstrap.samples:,}"
            f" bootstrap samples of the cases (NumPy's {bootstrap.generator}, seed"
            f" {bootstrap.seed}), of which {CONFIDENCE:.0%} intervals are given."
        )
        if analysis.rules.scheme.is_of_means:
            in_groups = ", drawn in each group" if analysis.rules.scheme.group else ""
            yield f"Means and ranks were made anew from each sample{in_groups}."
        yield from filter(None, (method.drawn for method in methods))
        if bootstrap.left_out:
            yield (
                f"Samples left out, as their cases leave a value undefined:"
                f" {bootstrap.left_out}."
            )
    teams = len(analysis.board.teams)
    if teams > 1:
        replaced = "replaced by the worst value of the metric, or of any team where it"
        replaced += " has none"
        if any(rule.failed is not None for rule in analysis.rules.metrics):
            replaced += ", or by that of a failed run"
        for method in methods:
            pairs = teams * (teams - 1)
            yield method.paper.format(pairs=pairs, alpha=ALPHA, replaced=replaced)


def _roll_sentences(roll: RollCall) -> Iterator[str]:
    """Who else took part: all names, since none may be left out."""
    if refused := {entry.team for entry in roll.refused if not entry.is_ranked}:
        names = ", ".join(sorted(refused))
        yield f"Teams not ranked, as what they sent could not be scored: {names}."
    if replaced := {entry.team for entry in roll.replaced}:
        names = ", ".join(sorted(replaced))
        yield f"Teams that replaced an archive, with the organisers' consent: {names}."
    for copies in roll.equal_results:
        yield f"{', '.join(copies.teams)} have {copies.what}."


# --- Scores -----------------------------------------------------------------------


def _scoring_sentences(analysis: Analysis) -> Iterator[str]:
    """Define the metrics, and tell the rules by which the label maps were scored."""
    origin, challenge = analysis.table.origin, analysis.challenge
    if not any(record.is_scored for record in analysis.rules.records):
        return
    if origin is None:
        yield (
            "The values were given as a table, which does not tell their origin; what"
            " follows are the rules of the challenge."
        )
    rules = scoring_rules(challenge)
    if challenge.organs:
        yield from definition_sentences(challenge.metrics, challenge.rules_note)
        yield from rule_sentences(rules)
    yield from _answer_sentences(analysis)
    for key, rule in further_rules(challenge).items():
        yield f"{key.replace('_', ' ').capitalize()}: {rule}."
    words = origin.options.split() if origin else []
    for option, value in zip(words[::2], words[1::2], strict=False):
        if option == "--decimals":
            yield f"Scores were rounded to {value} decimal places."
        text = _OPTIONS.get(f"{option} {value}", "")
        yield text.format(worst=worst_text(rules))
    yield digest_text(origin.references_sha256 if origin else "")


def _answer_sentences(analysis: Analysis) -> Iterator[str]:
    """Define the ranked metrics of answers, and tell how missing ones counted."""
    columns = analysis.rules.of_all_cases
    for column in columns:
        metric = metric_named(column)
        yield f"{metric.heading} is {metric.definition}."
    if columns:
        yield "A missing answer counted as the worst one."
        note = analysis.challenge.rules_note
        yield f"Answers were scored by {note}." if note else ""


def _others_text(analysis: Analysis) -> str:
    """Tell that values were computed by others; empty if none were ranked."""
    others = analysis.challenge.columns_of_others
    names = joined(filter(analysis.rules.names.__contains__, others))
    return f"Values of {names} were computed by others." if names else ""


def _other_file(analysis: Analysis) -> str:
    """The challenge file of the scores, if they were made with another one."""
    origin = analysis.table.origin
    digest = origin.challenge_sha256 if origin else ""
    if digest in ("", analysis.challenge.checksum):
        return ""
    return (
        "; the scores were made with an earlier file, with the same rules of scoring"
        f" (SHA-256 {digest[:12]})"
    )


# --- Measurements -----------------------------------------------------------------

_MEASURED = {
    "processor": "processor {}",
    "device": "{}",
    "engine": "Docker {}",
    "runtime": "runtime {}",
    "cpus": "processors {}",
    "timeout_s": "time limit {} s",
    "memory": "memory limit {}",
    "shm_size": "shared memory {}",
    "interval_s": "a sample every {} s",
    "repeats": "repeats {}",
    "caches": "{} caches",
}
"""The settings of measurement.json that a paper names, in words."""


def _measuring_sentences(analysis: Analysis) -> Iterator[str]:
    """How running time and memory were measured, as measurement.json has it."""
    origin, names = analysis.table.origin, analysis.rules.names
    others = analysis.challenge.columns_of_others
    if origin is None or all(
        metric_named(name).is_scored or name in others for name in names
    ):
        return
    if not origin.measured:
        yield "How running time and memory were measured is not on record."
        return
    parts = []
    for name, text in _MEASURED.items():
        values = origin.measured.get(name, ())
        if any(values):
            parts.append(text.format(" or ".join(values)))
    scored = len(analysis.table.teams) + len(analysis.decisions.disqualified)
    yield (
        f"{count(origin.teams_measured, 'team')} of {scored} were measured case by"
        " case, each case in a container of its own without network:"
        f" {', '.join(parts)}."
    )
    if "max_gpu_memory_mb" in names:
        value = "sample"
        if analysis.challenge.max_gpu_memory is MaxMemory.STABLE:
            value = f"value that fills more than {STABLE_SHARE:.0%} of the samples"
        yield f"The maximum of GPU memory is the largest {value} of a run."


def _metric_text(rule: RankedMetric) -> str:
    """A metric, and the rules for it that differ from the usual ones."""
    parts = [f"{rule.metric}, {rule.better.value} is better"]
    if rule.weight != 1:
        parts.append(f"weight {rule.weight:g}")
    if rule.tolerance:
        parts.append(f"values up to {rule.tolerance:g} equally good")
    if rule.trace_tolerance_mb:
        parts.append(f"of the memory above {rule.trace_tolerance_mb:g} MB")
    if rule.decimals is not None:
        parts.append(f"rounded to {count(rule.decimals, 'decimal')}")
    return ", ".join(parts)


def _missing_text(analysis: Analysis) -> str:
    board, rules = analysis.board, analysis.rules
    missing = [
        result for result in analysis.table.missing if result.team in board.teams
    ]
    if not missing:
        return "No result was missing."
    metrics = len(rules.metrics) - len(rules.of_all_cases)
    total = len(board.teams) * len(board.cases) * metrics
    values, counted = "", _MISSING[rules.missing]
    if rules.scheme.is_of_means:
        counted = "counted in means as the value of a failed run or the metric's worst"
        counted += "; a team of which none is known got no mean, and as such"
        counted += f" {_MISSING[rules.missing]}"
    if rules.missing is MissingRule.VALUE:
        failed = (f"{rule.metric} {rule.failed:g}" for rule in rules.metrics)
        values = f" ({', '.join(failed)})"
    return f"{len(missing)} of {total} results were missing, and {counted}{values}."
