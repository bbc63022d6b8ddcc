"""Keeps what a submission scores in metrics.json, written whole or not at all.

`metrics_reading.py` reads it. A platform's phase finds scores by the paths of its keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from flare.challenge.lesions import DEFINITIONS
from flare.challenge.metrics import (
    ANSWER_METRICS,
    MEASURED,
    METRICS,
    Metric,
    metric_named,
)
from flare.challenge.organs import FREE_CASES, LEFT_EMPTY, STATISTICS
from flare.common.errors import unwritable
from flare.common.files import write_whole
from flare.common.schema import (
    Amount,
    Count,
    Family,
    Is,
    Positive,
    Share,
    Text,
    build,
    dump,
)
from flare.common.text import printable
from flare.results.scores import (
    JOBS_NOTE,
    FreeCases,
    LowScores,
    Provenance,
    Results,
    statistics,
)

METRICS_JSON = "metrics.json"


# --- Its keys ---------------------------------------------------------------------

_NAME = "[a-z][a-z0-9_]{0,39}"
_CASE_NUMBER = "^(0|[1-9][0-9]*)$"
_OF_CASES = Is(keys=_CASE_NUMBER, minProperties=1)
_BY_CASE: Mapping[Any, Any] = {
    Share: Annotated[Mapping[str, Share | None], _OF_CASES],
    Amount: Annotated[Mapping[str, Amount | None], _OF_CASES],
    float: Annotated[Mapping[str, float | None], _OF_CASES],
}
"""The values of a metric, by the type of its values."""

_Names = Annotated[Mapping[str, str], _OF_CASES]
_Seconds = Annotated[Mapping[str, Amount], Is(keys=_CASE_NUMBER)]


# Annotations are evaluated when a schema is written: they may use what follows below.
class MetricsFile(TypedDict):
    """What a submission, or a measured team, scores: each case, the means over all
    cases, and where the numbers come from.
    """  # noqa: D205  a sentence of the public schema

    case: Annotated[
        Mapping[str, Any],
        Is(
            like=CaseTable,
            families=[*_by_organ()],
            optional=_CASE_KEYS,
            dependentRequired=_all_or_none(_CASE_KEYS),
        ),
    ]
    """What each case scores. Cases are numbered "0", "1", ... in the order of their
    names. There are no further keys, and none at all where only answers are scored: a
    value of a single answer would tell its reference."""
    aggregates: Annotated[
        Mapping[str, Any],
        Is(
            minProperties=1,
            dependentRequired=_statistics_of_each_metric(),
            families=[*_means(), _OF_ANSWERS],
        ),
    ]
    """Each metric of `case` over all cases, and each metric of answers. There are no
    further keys."""
    evaluation: Annotated[Mapping[str, Any], Is(like=Provenance, optional=_SCORED_ONLY)]
    """Where the scores come from."""
    failed: Annotated[
        Mapping[str, Text], Is(entry=("CASE", "Why the case could not be scored."))
    ]
    """With `--on-bad-case worst`: cases that could not be scored, and got the worst
    value of each metric for every organ. Empty otherwise."""
    warnings: Sequence[str]
    """Sentences on what was let pass, and on why cases score 0."""
    low_scores: NotRequired[Annotated[Sequence[_LowScores], Is(minItems=1)]]
    """Each reason why cases score 0 that was let pass, with these cases; only where
    there is one."""
    lesions: NotRequired[
        Annotated[
            Mapping[str, Annotated[str, Is(enum=tuple(DEFINITIONS))]],
            Is(entry=("ORGAN", "The name of a definition."), minProperties=1),
        ]
    ]
    """The definition of lesions of each organ that has one."""
    efficiency: NotRequired[
        Annotated[Mapping[str, float], Is(like=Efficiency, families=[_MEASURED_MEANS])]
    ]
    """The means of what was measured; only of a measured team."""
    jobs: NotRequired[Annotated[Mapping[str, Any], Is(like=Jobs)]]
    """The running times of an algorithm's jobs on the platform; nobody is to be ranked
    by them."""


class CaseTable(TypedDict):
    """The keys of `case` that every file has."""

    alg_fname: _Names
    """The name of the prediction of each case, without folders; empty if there is
    none."""
    gt_fname: _Names
    """The name of the reference of each case, without folders."""


class Efficiency(TypedDict):
    """The keys of `efficiency` that every measured team has."""

    cases: Positive
    """Number of cases."""
    cases_ok: Count
    """Cases whose status is `ok`."""


class Jobs(TypedDict):
    """The keys of `jobs`."""

    note: Text
    """Why these times are not to be ranked by."""
    exec_duration_s: NotRequired[_Seconds]
    """Time of the whole job of each case, in s, as the platform says."""
    invoke_duration_s: NotRequired[_Seconds]
    """Time of the algorithm itself on each case, in s, as the platform says."""


_LowScores = Annotated[LowScores, Is(additionalProperties=False)]
_CASE_KEYS = ("alg_fname", "gt_fname")
_SCORED_ONLY = ("commit", "references", "cases", "libraries", "machine")
"""Keys that files of `flare simulate`, which scores nothing, lack."""


def _statistics_of_each_metric() -> dict[str, list[str]]:
    """Say that a file with one statistic of a metric has all of them."""
    keys: dict[str, list[str]] = {}
    for metric in METRICS:
        keys |= _all_or_none([f"{metric}_{name}" for name in STATISTICS])
    return keys


def _all_or_none(keys: Sequence[str]) -> dict[str, list[str]]:
    """Say that a file with one of some keys has all of them."""
    return {key: [other for other in keys if other != key] for key in keys}


_OF_ANSWERS = Family(
    f"^({'|'.join(ANSWER_METRICS)})_{_NAME}$",
    "METRIC_ANSWERS",
    "The value of a metric of answers, made of all answers together; a missing or"
    " unusable one counts as the worst.",
    Amount,
)
"""The keys of `aggregates` by metric and answers."""


def _by_organ() -> Iterator[Family]:
    """The keys of `case` by metric and organ."""
    for metric in METRICS.values():
        yield Family(
            f"^{metric.name}(_{_NAME})?$",
            f"{metric.name}, {metric.name}_ORGAN",
            f"The {metric.heading} of each case, a mean over organs, and of one organ,"
            f" where the challenge asks for it: {metric.definition}. It is null where"
            " the challenge leaves the organ, or all organs of the case, out.",
            _BY_CASE[_type_of(metric)],
        )


def _means() -> Iterator[Family]:
    texts = {
        "mean": "The mean value of all cases.",
        "min": "The smallest value of all cases.",
        "max": "The largest value of all cases.",
        "median": "The median value of all cases.",
        "std": "The sample standard deviation (n - 1) over all cases; null if there is"
        " only one case.",
    }
    left_out = " Cases whose value is null do not count; if there is no other, null."
    for metric_type in (Share, Amount, float):
        metrics = [m.name for m in METRICS.values() if _type_of(m) is metric_type]
        for statistic, about in texts.items():
            # A deviation is never negative, and a single case has none.
            value_type = Amount if statistic == "std" else metric_type
            yield Family(
                f"^({'|'.join(metrics)})(_{_NAME})?_{statistic}$",
                f"METRIC_{statistic}",
                about + left_out,
                value_type | None,
            )
    yield Family(
        f"^{_NAME}_{FREE_CASES}$",
        f"ORGAN_{FREE_CASES}",
        "The number of cases whose reference does not have the organ, those included"
        " that could not be scored; only where the challenge says `free_cases` of it.",
        Count,
    )
    yield Family(
        f"^{_NAME}_{LEFT_EMPTY}$",
        f"ORGAN_{LEFT_EMPTY}",
        "The number of these cases whose prediction does not have it either. A case"
        " that could not be scored does not count, nor does one that scores 0 because"
        " of another label.",
        Count,
    )


def _type_of(metric: Metric) -> Any:
    if metric.is_share:
        return Share
    return float if metric.range[0] < 0 else Amount


_MEASURED_MEANS = Family(
    f"^({'|'.join(MEASURED)})_mean$",
    "COLUMN_mean",
    "The mean over all cases of a column of efficiency.csv, in its unit; only there if"
    " every case is `ok` and has a value.",
    Amount,
)
"""The keys of `efficiency` by column of efficiency.csv."""


# --- Written ----------------------------------------------------------------------


def prepare_output(folder: Path) -> None:
    """Remove an earlier metrics.json; an OutputError if no new one can be written."""
    file, trial_file = folder / METRICS_JSON, folder / f".{METRICS_JSON}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        write_whole(trial_file, "")
        trial_file.unlink()
    except OSError as error:
        raise unwritable(file, error) from error


def write_metrics(results: Results, folder: str | Path) -> Path:
    """Write metrics.json, whole or not at all.

    Parameters
    ----------
    results : Results
        What `flare.evaluate` returned.
    folder : str or Path
        The folder that gets it; made if it is not there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If it cannot be written.
    ValueError
        If a value is not one that its metric can have.
    """
    file = Path(folder) / METRICS_JSON
    write_whole(file, metrics_json(results))
    return file


def write_results(results: Results, folder: Path) -> None:
    """Write metrics.json of a team, and answers.csv if it has answers.

    An OutputError is raised if one cannot be written, and a ValueError if no reader
    would take it; then neither is.
    """
    text = metrics_json(results)
    if results.answers:
        # Not at the top: an evaluation, which writes no such file, starts sooner.
        from flare.results.answers_csv import ANSWERS_CSV, write_answers

        write_answers(folder / ANSWERS_CSV, results.answer_rows)
    write_whole(folder / METRICS_JSON, text)


def metrics_json(results: Results) -> str:
    """The content of metrics.json; a ValueError if no metric can have a value."""
    content = metrics_content(
        results.metrics,
        prediction_files=[printable(case.prediction_file) for case in results.cases],
        reference_files=[printable(case.reference_file) for case in results.cases],
        evaluation=dump(results.provenance),
        failed={case.case: case.failure for case in results.cases if case.failure},
        decimals=results.decimals,
    )
    counts = free_case_counts(results.free_cases)
    answers = _rounded(results.answer_values, results.decimals)
    content["aggregates"] = {**content["aggregates"], **counts, **answers}
    content["warnings"] = list(results.warnings)
    if results.lesions:
        content["lesions"] = dict(sorted(results.lesions.items()))
    if results.low_scores:
        content["low_scores"] = dump(results.low_scores)
    if results.efficiency is not None:
        content["efficiency"] = results.efficiency
    if results.jobs:
        content["jobs"] = {"note": JOBS_NOTE, **results.jobs}
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    _check_values(results)
    return text


def _check_values(results: Results) -> None:
    """Raise for a value by which readers would refuse the results of all teams."""
    columns: dict[str, Sequence[float | None]] = {**results.metrics}
    columns |= {name: [value] for name, value in results.answer_values.items()}
    for name, values in columns.items():
        metric = metric_named(name)
        numbers = statistics(values)
        for extreme in (numbers["min"], numbers["max"]):
            problem = "" if extreme is None else metric.problem(extreme)
            if problem:
                raise ValueError(problem)


def _rounded(values: Mapping[str, Any], decimals: int | None) -> dict[str, Any]:
    """Numbers with some decimals; None is no number, and stays."""
    if decimals is None:
        return dict(values)
    return {k: v if v is None else round(v, decimals) for k, v in values.items()}


def metrics_content(
    scores: Mapping[str, Sequence[float | None]],
    prediction_files: Sequence[str],
    reference_files: Sequence[str],
    evaluation: Mapping[str, Any],
    failed: Mapping[str, str],
    *,
    decimals: int | None = None,
) -> MetricsFile:
    """The keys that every metrics.json has, with numbers rounded to some decimals.

    `scores` has a value of each case by metric; the files are in the same order.
    `evaluation` tells how the scores were made, and `failed` why cases were not scored.
    """
    values_by_metric: dict[str, Any] = {}
    aggregates: dict[str, float | None] = {}
    for metric, values in scores.items():
        values_by_metric[metric] = _rounded(by_number(values), decimals)
        for name, value in statistics(values).items():
            aggregates[f"{metric}_{name}"] = value
    files = {"alg_fname": prediction_files, "gt_fname": reference_files}
    if scores:  # of answers alone, no case is told
        values_by_metric |= {key: by_number(names) for key, names in files.items()}
    return {
        "case": values_by_metric,
        "aggregates": _rounded(aggregates, decimals),
        "evaluation": evaluation,
        "failed": failed,
        "warnings": [],
    }


def by_number(values: Sequence[Any]) -> dict[str, Any]:
    """A value of each case, by the number that the case has in the file."""
    return {str(number): value for number, value in enumerate(values)}


def free_case_counts(free_cases: Sequence[FreeCases]) -> dict[str, int]:
    """Cases without an organ, and how many of them were left empty, by key.

    Examples
    --------
    >>> free_case_counts([FreeCases(organ="lesion", cases=5, left_empty=3)])
    {'lesion_free_cases': 5, 'lesion_free_left_empty': 3}
    """
    counts = {}
    for row in free_cases:
        counts[f"{row.organ}_{FREE_CASES}"] = row.cases
        counts[f"{row.organ}_{LEFT_EMPTY}"] = row.left_empty
    return counts


def find_free_cases(aggregates: Mapping[str, Any]) -> tuple[FreeCases, ...]:
    """Read from the aggregates of a metrics.json what `free_case_counts` has written.

    A ValueError is raised if they are not counts, as of another program.
    """
    free_cases = []
    for key in aggregates:
        if key.endswith(f"_{FREE_CASES}"):
            organ = key.removesuffix(f"_{FREE_CASES}")
            counts = {
                "organ": organ,
                "cases": aggregates[key],
                "left_empty": aggregates.get(f"{organ}_{LEFT_EMPTY}"),
            }
            free_cases.append(build(FreeCases, counts))
    return tuple(free_cases)
