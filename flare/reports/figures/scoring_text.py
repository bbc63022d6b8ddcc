"""Words for a paper what one evaluation scores, and how it was scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flare.challenge.metrics import SCORES
from flare.common.text import count, printable
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.intervals import METHOD, mean_interval
from flare.reports.pages.parts import NO_RESULT
from flare.reports.ranking.latex import NEEDS, latex_table
from flare.reports.ranking.methods import SCORES_DEFINED, rules_note_sentences
from flare.results.metrics_reading import EvaluationFile

TOO_FEW = "too few cases"
"""Stands where so few cases have no interval."""


def organs_latex(scores: CaseScores) -> str:
    """A row for each organ: means of DSC and NSD, each with its interval."""
    heads = ["Organ"]
    for score in SCORES:
        heads += [f"{score.upper()}, mean", "95 % interval"]
    rows = []
    for end, title in scores.rows:
        row = [title]
        for score in SCORES:
            mean = scores.mean(score + end)
            interval = mean_interval(scores.present(score + end))
            row += [decimals_text(mean), interval_text(interval)]
        rows.append(row)
    caption = (
        f"DSC and NSD over {count(len(scores.cases), 'case')}: means, and their"
        " intervals by Gaffke's method."
    )
    columns = f"l{'rl' * len(SCORES)}"
    return f"{NEEDS}\n{latex_table(caption, 'organs', columns, [[heads], rows])}"


def decimals_text(value: float | None) -> str:
    """A score for print."""
    return NO_RESULT if value is None else f"{value:.3f}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval for print."""
    return TOO_FEW if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def evaluation_methods(found: EvaluationFile) -> str:
    """The paragraph, without line breaks."""
    evaluation = found.scores.evaluation
    failed = len(found.scores.failed)
    cases = count(len(found.scores.cases), "case")
    note = str(evaluation.rules_note or "")
    sentences = [f"Label maps of {cases} were scored.", SCORES_DEFINED]
    sentences += rules_note_sentences(note)
    if isinstance(evaluation.rules, Mapping):
        sentences += _rule_sentences(evaluation.rules)
    else:
        sentences.append("By which tolerances and rules is not on record.")
    if failed:
        those = f"{count(failed, 'case')} {'was' if failed == 1 else 'were'}"
        sentences.append(f"{those} not scored, and got the worst value instead.")
    if isinstance(evaluation.options, Mapping) and evaluation.options:
        options = ", ".join(f"{k} {v}" for k, v in evaluation.options.items())
        sentences.append(f"Options of the evaluation: {options}.")
    sentences += [f"{free.text}." for free in found.free_cases]
    sentences.append(METHOD)
    if evaluation.references_sha256:
        digest = evaluation.references_sha256
        sentences.append(f"The digest (SHA-256) of the reference labels is {digest}.")
    sentences.append(
        f"Computed with the FLARE evaluation kit {evaluation.version or ''}".rstrip()
        + f", challenge file {evaluation.challenge or 'unknown'}"
        f" (SHA-256 {str(evaluation.challenge_sha256 or 'unknown')[:12]})."
    )
    return printable(" ".join(sentences))


def _rule_sentences(rules: Mapping[str, Any]) -> list[str]:
    """What metrics.json tells of the rules, as `flare.challenge.digest` has it."""
    groups: dict[str, list[str]] = {}
    for key, value in rules.items():
        if key.startswith("tolerance_mm of "):
            organ = key.removeprefix("tolerance_mm of ")
            groups.setdefault(_number(value), []).append(organ)
    sentences = []
    if groups:
        parts = (f"{mm} mm ({_organs(own)})" for mm, own in sorted(groups.items()))
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
    left_out = [
        key.removeprefix("in_mean of ")
        for key, value in rules.items()
        if key.startswith("in_mean of ") and not value
    ]
    means = f" without {_organs(left_out)}" if left_out else ""
    sentences.append(f"DSC and NSD of a case are the means over its organs{means}.")
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
