"""Words the Methods paragraph of a paper from the settings that were really used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flare.challenge.digest import further_rules, scoring_rules
from flare.challenge.metrics import SCORES, Better, metric_of, metrics_in
from flare.challenge.rules import MaxMemory, RankedMetric
from flare.common.installation import __version__
from flare.common.text import count, listing, printable
from flare.ranking.completeness import RollCall
from flare.ranking.decisions import Decisions
from flare.ranking.options import MissingRule, Ties
from flare.ranking.rank import Analysis
from flare.ranking.robustness.uncertainty import ALPHA, CONFIDENCE
from flare.ranking.rules import RankingRules
from flare.reports.ranking.words import left_out_text
from flare.reports.scores import METHOD
from flare.results.metrics_reading import EvaluationFile
from flare.results.traces_csv import STABLE_SHARE

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
        "Cases whose label map was missing or could not be used scored 0."
    ),
    "--grid size": (
        "Of the grids of label maps, the numbers of voxels alone had to be those of the"
        " reference."
    ),
    "--unknown-labels ignore": (
        "Labels that the challenge does not define counted as background."
    ),
}
"""What options of an evaluation mean, in a paper."""

SCORES_DEFINED = (
    "The Dice similarity coefficient (DSC) of an organ is twice the volume that"
    " prediction and reference share, divided by the sum of both volumes; the"
    " normalized surface Dice (NSD) is the share of both surfaces, made of"
    " area-weighted surfels, that lies within a tolerance of the other surface"
    " (Nikolov et al. 2021, doi:10.2196/26151)."
)
"""What both mean, with the source."""


def _defined(columns: Iterable[str]) -> list[str]:
    """What the metrics among some columns mean, DSC and NSD first."""
    others = (own for own in metrics_in(columns) if own.name not in SCORES)
    return [SCORES_DEFINED, *(f"{own.title} is {own.definition}." for own in others)]


def methods_text(analysis: Analysis) -> str:
    """The paragraph, without line breaks."""
    rules, board = analysis.rules, analysis.board
    roll = analysis.table.roll
    metrics = "; ".join(map(_metric_text, rules.metrics))
    counts = (
        count(len(board.teams), "team"),
        count(len(board.cases), "test case"),
        count(len(rules.metrics), "metric"),
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
    if rules.left_out:
        sentences.insert(1, left_out_text(rules.left_out))
    if rules.gate_dsc:
        sentences.append(
            "Metrics of efficiency counted only on cases on which a team reached a DSC"
            f" of {rules.gate_dsc:g}; elsewhere they {_MISSING[rules.missing]}."
        )
    sentences += _decision_sentences(analysis.decisions)
    sentences += _roll_sentences(roll)
    sentences += _robustness_sentences(analysis)
    sentences += _scoring_sentences(analysis)
    sentences += _measuring_sentences(analysis)
    sentences.append(
        f"Computed with the FLARE evaluation kit {__version__}, challenge file"
        f" {analysis.challenge.key} (SHA-256 {analysis.challenge.checksum[:12]})"
        f"{_other_file(analysis)}."
    )
    if roll.is_interim:
        sentences.insert(0, roll.interim_text)
    return " ".join(sentences)


def _decision_sentences(decisions: Decisions) -> list[str]:
    """What the organisers have decided, in numbers."""
    counts = (
        ("Withdrawn cases", len(decisions.withdrawn)),
        ("Disqualified teams", len(decisions.disqualified)),
        ("Teams shown out of competition", len(decisions.guests)),
    )
    return [f"{what}: {count}." for what, count in counts if count]


def _robustness_sentences(analysis: Analysis) -> list[str]:
    """How the certainty of the ranks was assessed."""
    rules, teams = analysis.rules, len(analysis.board.teams)
    sentences = []
    if drawn := analysis.bootstrap:
        sentences.append(
            "The stability of the ranks was assessed by"
            f" {drawn.samples:,} bootstrap samples of the cases (NumPy's"
            f" {drawn.generator}, seed {drawn.seed}), of which"
            f" {CONFIDENCE:.0%} intervals are given."
        )
    if teams > 1:
        family = teams * (teams - 1)
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
    return sentences


def _roll_sentences(roll: RollCall) -> list[str]:
    """Who else took part."""
    sentences = []
    teams = sorted({found.team for found in roll.refused if not found.is_ranked})
    if teams:
        was, they = ("was", "it") if len(teams) == 1 else ("were", "they")
        sentences.append(
            f"{count(len(teams), 'team')} {was} not ranked, because what {they} sent"
            f" could not be scored: {_names(teams)}."
        )
    teams = sorted({found.team for found in roll.replaced})
    if teams:
        sentences.append(
            f"{count(len(teams), 'team')} replaced an archive, with the organisers'"
            f" consent: {_names(teams)}."
        )
    sentences += [
        f"{_names(found.teams)} have {found.what}." for found in roll.equal_results
    ]
    return sentences


def _names(teams: Sequence[str]) -> str:
    """All names, since none may be left out."""
    return ", ".join(map(printable, teams))


# --- Scores -----------------------------------------------------------------------


def _scoring_sentences(analysis: Analysis) -> list[str]:
    """What DSC and NSD mean under the rules by which the label maps were scored."""
    origin, challenge = analysis.table.origin, analysis.challenge
    if not any(metric_of(rule.metric) for rule in analysis.rules.metrics):
        return []
    if origin is None:
        return ["The values were given as a table, which does not tell their origin."]
    sentences = [*_defined(challenge.metrics)]
    sentences += rules_note_sentences(challenge.rules_note)
    order = [f"tolerance_mm of {organ.name}" for organ in challenge.organs]
    order += (f"in_mean of {organ.name}" for organ in challenge.organs)
    rules = scoring_rules(challenge)
    rules["z_range.organs"] = ", ".join(challenge.z_range.organs)
    sentences += _rule_sentences({key: rules[key] for key in order} | rules)
    further = further_rules(challenge).items()
    sentences += [f"{key.replace('_', ' ').capitalize()}: {v}." for key, v in further]
    sentences += _option_sentences(origin.options)
    if origin.references_sha256:
        digest = printable(origin.references_sha256)
        sentences.append(f"The digest (SHA-256) of the reference labels is {digest}.")
    return sentences


def _option_sentences(options: str) -> Iterator[str]:
    """What the options of the evaluation, as on a command line, mean in a paper."""
    words = options.split()
    for option, value in zip(words[::2], words[1::2], strict=False):
        if option == "--decimals":
            yield f"Scores were rounded to {printable(value)} decimal places."
        elif f"{option} {value}" in _OPTIONS:
            yield _OPTIONS[f"{option} {value}"]


def rules_note_sentences(note: str) -> list[str]:
    """That nobody has confirmed the rules, where that is so.

    Examples
    --------
    >>> rules_note_sentences("rules as reported")
    ['Label maps were scored by rules as reported.']
    """
    return [f"Label maps were scored by {note}."] if note else []


def _other_file(analysis: Analysis) -> str:
    """What has to be said if the scores were made with another file."""
    origin = analysis.table.origin
    if (
        not origin
        or not origin.challenge_sha256
        or origin.challenge_sha256 == analysis.challenge.checksum
    ):
        return ""
    same = (
        "with the same rules of scoring" if origin.rules_sha256 else "as far as known"
    )
    digest = printable(origin.challenge_sha256[:12])
    return f"; the scores were made with an earlier file, {same} (SHA-256 {digest})"


# --- Measurements -----------------------------------------------------------------


def _measuring_sentences(analysis: Analysis) -> list[str]:
    """How running time and memory were measured, as measurement.json has it."""
    origin = analysis.table.origin
    if origin is None or all(metric_of(rule.metric) for rule in analysis.rules.metrics):
        return []
    known = origin.measured
    if not known:
        return ["How running time and memory were measured is not on record."]
    parts = [
        text.format(" or ".join(map(printable, known[name])))
        for name, text in (
            ("processor", "processor {}"),
            ("device", "{}"),
            ("engine", "Docker {}"),
            ("runtime", "runtime {}"),
            ("cpus", "processors {}"),
            ("timeout_s", "time limit {} s"),
            ("memory", "memory limit {}"),
            ("shm_size", "shared memory {}"),
            ("interval_s", "a sample every {} s"),
            ("repeats", "repeats {}"),
            ("caches", "{} caches"),
        )
        if any(known.get(name, ()))
    ]
    scored = len(analysis.table.teams) + len(analysis.decisions.disqualified)
    sentences = [
        f"{count(origin.teams_measured, 'team')} of"
        f" {scored} were measured case by case, each case in"
        f" a container of its own without network: {', '.join(parts)}."
    ]
    if any(rule.metric == "max_gpu_memory_mb" for rule in analysis.rules.metrics):
        stable = analysis.challenge.max_gpu_memory is MaxMemory.STABLE
        sentences.append(
            "The maximum of GPU memory is the largest value that fills more than"
            f" {STABLE_SHARE:.0%} of the samples of a run."
            if stable
            else "The maximum of GPU memory is the largest sample of a run."
        )
    return sentences


def _metric_text(rule: RankedMetric) -> str:
    """A metric, and what is special about it."""
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
    """What missing results counted as."""
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


def _failed_text(rules: RankingRules) -> str:
    """The values of failed runs."""
    return ", ".join(f"{rule.metric} {rule.failed:g}" for rule in rules.metrics)


# --- One evaluation ---------------------------------------------------------------


def evaluation_methods(found: EvaluationFile) -> str:
    """The paragraph, without line breaks."""
    evaluation = found.scores.evaluation
    failed = len(found.scores.failed)
    cases = count(len(found.scores.cases), "case")
    columns = {column for _, column in found.scores.values}
    sentences = [f"Label maps of {cases} were scored.", *_defined(columns)]
    sentences += rules_note_sentences(evaluation.rules_note)
    if evaluation.rules:
        sentences += _rule_sentences(evaluation.rules)
    else:
        sentences.append("By which tolerances and rules is not on record.")
    if failed:
        those = f"{count(failed, 'case')} {'was' if failed == 1 else 'were'}"
        sentences.append(f"{those} not scored, and got the worst value instead.")
    if evaluation.options:
        options = ", ".join(f"{k} {v}" for k, v in evaluation.options.items())
        sentences.append(f"Options of the evaluation: {options}.")
    sentences += [f"{free.text}." for free in found.free_cases]
    sentences.append(METHOD)
    if evaluation.references_sha256:
        digest = evaluation.references_sha256
        sentences.append(f"The digest (SHA-256) of the reference labels is {digest}.")
    sentences.append(
        f"Computed with the FLARE evaluation kit {evaluation.version}".rstrip()
        + f", challenge file {evaluation.challenge or 'unknown'}"
        f" (SHA-256 {(evaluation.challenge_sha256 or 'unknown')[:12]})."
    )
    return printable(" ".join(sentences))


def _rule_sentences(rules: Mapping[str, Any]) -> list[str]:
    """What rules of scoring say, as `flare.challenge.digest` has them."""
    groups: dict[tuple[float, str], list[str]] = {}
    for key, value in rules.items():
        if key.startswith("tolerance_mm of "):
            size = value if isinstance(value, int | float) else 0.0
            organ = key.removeprefix("tolerance_mm of ")
            groups.setdefault((size, _number(value)), []).append(organ)
    sentences = []
    if groups:
        parts = (f"{mm} mm ({_organs(o)})" for (_, mm), o in sorted(groups.items()))
        sentences.append(f"Tolerances were {'; '.join(parts)}.")
    both, reference, prediction = (
        rules.get(f"absent_organs.in_{where}")
        for where in ("both", "reference", "prediction")
    )
    if None not in (both, reference, prediction):
        sentences.append(
            f"An organ in neither label map scored {_number(both)}, one that only the"
            f" prediction has {_number(reference)}, and one that only the reference has"
            f" {_number(prediction)}."
        )
    asked = metrics_in(str(rules.get("metrics", "")).split(", "))
    distances = [metric.title for metric in asked if metric.worst is None]
    if distances:
        names = listing(distances, last=" and ")
        worst = rules.get("worst_distance_mm")
        far = (
            f"{_number(worst)} mm" if worst else "the diagonal of the reference's grid"
        )
        sentences.append(
            f"Where one label map alone has an organ, {names} counted as {far}."
        )
    left_out = [
        key.removeprefix("in_mean of ")
        for key, value in rules.items()
        if key.startswith("in_mean of ") and not value
    ]
    means = f" without {_organs(left_out)}" if left_out else ""
    scores = listing(["DSC", "NSD", *distances], last=" and ")
    sentences.append(f"{scores} of a case are the means over its organs{means}.")
    if rules.get("z_range.organs"):
        organs = _organs(str(rules["z_range.organs"]).split(", "))
        sentences.append(
            f"{organs}: scored only between the lowest and the highest slice of the"
            f" reference (top slice {rules.get('z_range.top_slice')})."
        )
    if rules.get("smallest_dsc_for_nsd"):
        sentences.append(
            "The NSD of an organ was 0 where its DSC was below"
            f" {_number(rules['smallest_dsc_for_nsd'])}."
        )
    if rules.get("decimals") is not None:
        sentences.append(
            f"DSC and NSD of organs were rounded to {rules['decimals']} decimals."
        )
    return sentences


def _number(value: object) -> str:
    """A number as short as it can be."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _organs(names: Sequence[str]) -> str:
    """Names of organs as words."""
    return ", ".join(name.replace("_", " ") for name in names)
