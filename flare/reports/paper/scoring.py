"""Words how label maps were scored, by the rules that were really used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from flare.challenge.lesion_metrics import LesionMetric
from flare.challenge.metrics import LEFT_OUT, SCORES, Metric, lesion_notes, metrics_in
from flare.common.text import count, isolated, joined, printable
from flare.reports.scores import METHOD
from flare.results.metrics_reading import EvaluationFile

_Value = TypeVar("_Value")

_DEFINED = {
    "dsc": "the Dice similarity coefficient (DSC) of an organ is twice the volume that"
    " prediction and reference share, divided by the sum of both volumes",
    "nsd": "the normalized surface Dice (NSD) is the share of both surfaces, made of"
    " area-weighted surfels, that lies within a tolerance of the other surface"
    " (Nikolov et al. 2021, doi:10.2196/26151)",
}


def evaluation_methods(file: EvaluationFile) -> str:
    """The paragraph, without line breaks."""
    return isolated(printable(" ".join(filter(None, _evaluation_sentences(file)))))


def _evaluation_sentences(file: EvaluationFile) -> Iterator[str]:
    """How label maps were scored, as far as it is on record."""
    evaluation, failed = file.evaluation, len(file.failed)
    yield f"Label maps of {count(len(file.cases), 'case')} were scored."
    columns = {column for _, column in file.values}
    yield from definition_sentences(columns, evaluation.rules_note)
    if evaluation.rules:
        yield from rule_sentences(evaluation.rules)
    else:
        yield "By which tolerances and rules is not on record."
    if failed:
        yield f"Cases that were not scored, and got the worst value instead: {failed}."
        if evaluation.rules:
            yield f"That is {worst_text(evaluation.rules)}."
    if evaluation.options:
        options = (f"{name} {value}" for name, value in evaluation.options.items())
        yield f"Options of the evaluation: {', '.join(options)}."
    for free_cases in file.free_cases:
        yield f"{free_cases.text}."
    yield METHOD
    yield digest_text(evaluation.references_sha256)
    yield (
        f"Computed with the FLARE evaluation kit {evaluation.version}".rstrip()
        + f", challenge file {evaluation.challenge or 'unknown'}"
        f" (SHA-256 {(evaluation.challenge_sha256 or 'unknown')[:12]})."
    )


def definition_sentences(columns: Iterable[str], note: str) -> Iterator[str]:
    """Define the metrics among some columns, and tell whether rules are confirmed."""
    metrics = metrics_in(columns)
    if text := "; ".join(_DEFINED[m.name] for m in metrics if m.name in _DEFINED):
        yield f"T{text[1:]}."
    for metric in metrics:
        if metric.name not in _DEFINED:
            yield f"{metric.title} is {metric.definition}."
    yield from lesion_notes()
    if note:
        yield f"Label maps were scored by {note}."


def digest_text(digest: str) -> str:
    """The digest of the references; empty if it is not on record."""
    text = f"The digest (SHA-256) of the reference labels is {digest}."
    return text if digest else ""


# --- Rules of scoring -------------------------------------------------------------


def _by_organ(rules: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """The values of a rule of single organs."""
    start = f"{rule} of "
    keys = [key for key in rules if key.startswith(start)]
    return {key.removeprefix(start): rules[key] for key in keys}


def rule_sentences(rules: Mapping[str, Any]) -> Iterator[str]:
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
    return joined(titles)


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


def worst_text(rules: Mapping[str, Any]) -> str:
    """The value of each metric for a case that could not be scored."""
    worst = _group((metric, _worst_value(metric, rules)) for metric in _metrics(rules))
    if len(worst) == 1:
        return next(iter(worst))
    return joined((f"{value} by {names}" for value, names in worst.items()), ", ")


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
