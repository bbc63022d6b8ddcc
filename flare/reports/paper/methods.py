"""Words the Methods paragraph of a paper from the settings that were really used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.metrics import (
    LEFT_OUT,
    SCORES,
    Metric,
    definitions_in_use,
    metric_named,
    metrics_in,
)
from flare.challenge.reading import further_rules, scoring_rules
from flare.challenge.rules import MaxMemory, RankedMetric
from flare.challenge.scheme import Ties
from flare.common.environment import __version__
from flare.common.text import count, isolated, listing, printable
from flare.ranking.inspection import RollCall
from flare.ranking.rank import Analysis
from flare.ranking.rules import MissingRule, RankingRules
from flare.ranking.uncertainty import methods_of
from flare.reports.ranking.words import left_out_text
from flare.reports.scores import METHOD
from flare.results.metrics_reading import EvaluationFile
from flare.results.traces_csv import STABLE_SHARE
from flare.statistics import ALPHA, CONFIDENCE

_Value = TypeVar("_Value")

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

_DEFINED = {
    "dsc": "the Dice similarity coefficient (DSC) of an organ is twice the volume that"
    " prediction and reference share, divided by the sum of both volumes",
    "nsd": "the normalized surface Dice (NSD) is the share of both surfaces, made of"
    " area-weighted surfels, that lies within a tolerance of the other surface"
    " (Nikolov et al. 2021, doi:10.2196/26151)",
}


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
        yield from _definitions(challenge.metrics, challenge.rules_note)
        yield from _rule_sentences(rules)
    yield from _answer_sentences(analysis)
    for key, rule in further_rules(challenge).items():
        yield f"{key.replace('_', ' ').capitalize()}: {rule}."
    words = origin.options.split() if origin else []
    for option, value in zip(words[::2], words[1::2], strict=False):
        if option == "--decimals":
            yield f"Scores were rounded to {value} decimal places."
        text = _OPTIONS.get(f"{option} {value}", "")
        yield text.format(worst=_worst_text(rules))
    yield _digest(origin.references_sha256 if origin else "")


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
    names = listing(filter(analysis.rules.names.__contains__, others), last=" and ")
    return f"Values of {names} were computed by others." if names else ""


def _definitions(columns: Iterable[str], note: str) -> Iterator[str]:
    """Define the metrics among some columns, and tell whether rules are confirmed."""
    metrics = metrics_in(columns)
    if text := "; ".join(_DEFINED[m.name] for m in metrics if m.name in _DEFINED):
        yield f"T{text[1:]}."
    for metric in metrics:
        if metric.name not in _DEFINED:
            yield f"{metric.title} is {metric.definition}."
    for definition in definitions_in_use():
        yield f"{definition.sentence} ({definition.title}: {definition.source})."
    if note:
        yield f"Label maps were scored by {note}."


def _digest(digest: str) -> str:
    """The digest of the references; empty if it is not on record."""
    text = f"The digest (SHA-256) of the reference labels is {digest}."
    return text if digest else ""


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


# --- One evaluation ---------------------------------------------------------------


def evaluation_methods(file: EvaluationFile) -> str:
    """The paragraph, without line breaks."""
    return isolated(printable(" ".join(filter(None, _evaluation_sentences(file)))))


def _evaluation_sentences(file: EvaluationFile) -> Iterator[str]:
    """How label maps were scored, as far as it is on record."""
    evaluation, failed = file.evaluation, len(file.failed)
    yield f"Label maps of {count(len(file.cases), 'case')} were scored."
    columns = {column for _, column in file.values}
    yield from _definitions(columns, evaluation.rules_note)
    if evaluation.rules:
        yield from _rule_sentences(evaluation.rules)
    else:
        yield "By which tolerances and rules is not on record."
    if failed:
        yield f"Cases that were not scored, and got the worst value instead: {failed}."
        if evaluation.rules:
            yield f"That is {_worst_text(evaluation.rules)}."
    if evaluation.options:
        options = (f"{name} {value}" for name, value in evaluation.options.items())
        yield f"Options of the evaluation: {', '.join(options)}."
    for free_cases in file.free_cases:
        yield f"{free_cases.text}."
    yield METHOD
    yield _digest(evaluation.references_sha256)
    yield (
        f"Computed with the FLARE evaluation kit {evaluation.version}".rstrip()
        + f", challenge file {evaluation.challenge or 'unknown'}"
        f" (SHA-256 {(evaluation.challenge_sha256 or 'unknown')[:12]})."
    )


# --- Rules of scoring -------------------------------------------------------------


def _by_organ(rules: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """The values of a rule of single organs."""
    start = f"{rule} of "
    keys = [key for key in rules if key.startswith(start)]
    return {key.removeprefix(start): rules[key] for key in keys}


def _rule_sentences(rules: Mapping[str, Any]) -> Iterator[str]:
    """Word rules of scoring, as `flare.challenge.reading` has them."""
    yield _tolerance_text(rules)
    yield from _label_sentences(rules)
    yield from _absent_sentences(rules)
    in_mean = _by_organ(rules, "in_mean")
    left_out = [organ for organ, is_in_mean in in_mean.items() if not is_in_mean]
    means = f" without {_organs(left_out)}" if left_out else ""
    names = _names(_metrics(rules))
    yield f"{names} of a case are the means over its organs{means}."
    if organs := rules.get("z_range.organs"):
        yield (
            f"{_organs(str(organs).split(', '))}: scored only between the lowest and"
            " the highest slice of the reference (top slice"
            f" {rules.get('z_range.top_slice')})."
        )
    if least := rules.get("smallest_dsc_for_nsd"):
        yield f"The NSD of an organ was 0 where its DSC was below {_number(least)}."
    if (decimals := rules.get("decimals")) is not None:
        yield f"{names} of organs were rounded to {count(int(decimals), 'decimal')}."


def _tolerance_text(rules: Mapping[str, Any]) -> str:
    """The tolerances, smallest first, each with its organs; empty without any."""
    organs: dict[tuple[float, str], list[str]] = {}
    for organ, value in _by_organ(rules, "tolerance_mm").items():
        if value is not None:
            size = value if isinstance(value, int | float) else 0.0
            organs.setdefault((size, _number(value)), []).append(organ)
    if not organs:
        return ""
    parts = [f"{mm} mm ({_organs(group)})" for (_, mm), group in sorted(organs.items())]
    return f"Tolerances were {'; '.join(parts)}."


def _label_sentences(rules: Mapping[str, Any]) -> Iterator[str]:
    """Tell the labels of regions, and of which organ each label counts by itself."""
    for organ in _by_organ(rules, "labels"):
        yield (
            f"Each label of either label map was one {_organs([organ])}, compared by"
            " itself; a case has the mean over them."
        )
    regions = []
    for organ, labels in _by_organ(rules, "label").items():
        if isinstance(labels, str):
            regions.append(f"{_organs([organ])} ({labels})")
    if regions:
        yield f"Regions were the voxels of several labels: {'; '.join(regions)}."


def _absent_sentences(rules: Mapping[str, Any]) -> Iterator[str]:
    """How an organ scores that a label map lacks, if rules tell it."""
    if "absent_organs.in_both" not in rules:
        return
    metrics = (m for m in _metrics(rules) if not isinstance(m, LesionMetric))
    absent = _group((metric, _absent_values(metric, rules)) for metric in metrics)
    for (both, reference, prediction), titles in absent.items():
        start = f"By {titles}, an" if len(absent) > 1 else "An"
        yield (
            f"{start} organ in neither label map scored {both}, one that only the"
            f" prediction has {reference}, and one that only the reference has"
            f" {prediction}."
        )
    if LEFT_OUT in map(str, rules.values()):
        yield "What has no value by that is in no mean, whatever the metric."


def _metrics(rules: Mapping[str, Any]) -> tuple[Metric, ...]:
    """The metrics that were computed; early rules name none: DSC and NSD."""
    return metrics_in(str(rules.get("metrics", ", ".join(SCORES))).split(", "))


def _names(metrics: Iterable[Metric]) -> str:
    titles = (metric.title_within for metric in metrics)
    return listing(titles, last=" and ")


def _worst_value(metric: Metric, rules: Mapping[str, Any]) -> str:
    """The value of an organ in a case that could not be scored."""
    if metric.worst is not None:
        return _number(metric.worst)
    worst = rules.get("worst_distance_mm") if metric.unit == "mm" else None
    own_worst = f"{metric.worst_of_grid} of the reference's grid"
    return f"{_number(worst)} mm" if worst else own_worst


def _absent_values(metric: Metric, rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Values of an organ in neither map, in the prediction, and in the reference."""
    places = ("both", "reference", "prediction")
    scores = [rules.get(f"absent_organs.in_{place}") for place in places]
    worst, unit = _worst_value(metric, rules), f" {metric.unit}".rstrip()
    # A signed metric has its worst value only where the prediction lacks the organ.
    too_large = worst if metric.better else _number(-(metric.worst or 0))
    values: tuple[str, ...] = (f"{_number(metric.best)}{unit}", too_large, worst)
    if metric.name in SCORES:
        values = tuple(map(_number, scores))
    pairs = zip(scores, values, strict=True)
    return tuple("no value" if rule == LEFT_OUT else value for rule, value in pairs)


def _worst_text(rules: Mapping[str, Any]) -> str:
    worst = _group((metric, _worst_value(metric, rules)) for metric in _metrics(rules))
    if len(worst) == 1:
        return next(iter(worst))
    return listing(f"{value} by {names}" for value, names in worst.items())


def _group(pairs: Iterable[tuple[Metric, _Value]]) -> dict[_Value, str]:
    """Group metrics by their value: the names of those that share it."""
    metrics: dict[_Value, list[Metric]] = {}
    for metric, value in pairs:
        metrics.setdefault(value, []).append(metric)
    return {value: _names(group) for value, group in metrics.items()}


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _organs(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)
