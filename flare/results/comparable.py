"""Refuses evaluations whose scores cannot be compared case by case."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from flare.common.text import safe
from flare.results.errors import MetricsFileError, RankingError
from flare.results.evaluation_file import EvaluationFile
from flare.results.origins import Evaluated, check_rules

ALIKE = (
    "Compare evaluations by the same rules: score the predictions anew with flare"
    " evaluate."
)
SAME_CASES = "Compare evaluations of the same cases."


class Unlike(Enum):
    """What else than predictions may be why scores differ, in words of a sentence."""

    REFERENCES = "other reference labels"
    VERSION = "another version of the program"
    OPTIONS = "other options"


def check_comparable(
    sources: Sequence[Path], found: Sequence[EvaluationFile]
) -> tuple[Unlike, ...]:
    """See that evaluations were made by the same rules, and have cases in common.

    Parameters
    ----------
    sources : sequence of Path
        Their files.
    found : sequence of EvaluationFile
        What these hold; all are compared with the first.

    Returns
    -------
    tuple of Unlike
        What else is not alike, though scores can be compared.

    Raises
    ------
    MetricsFileError
        If one is of another challenge, was scored by other rules as `flare rank` tells
        them apart, or has no case of the others; the message names it.
    """
    first = found[0].scores
    common = set(first.cases)
    for source, other in zip(sources[1:], found[1:], strict=True):
        own, usual = (
            str(each.evaluation.challenge or "") for each in (other.scores, first)
        )
        if own != usual:
            problem = (
                f"its challenge is {safe(own) or 'not told'}, that of"
                f" {safe(sources[0])} {safe(usual) or 'not told'}"
            )
            raise MetricsFileError(str(source), problem, ALIKE)
        _check_rules((sources[0], source), (found[0], other))
        common &= set(other.scores.cases)
        if not common:
            others = "the files before it have" if len(found) > 2 else "the other has"
            problem = f"it has no case that {others}"
            raise MetricsFileError(str(source), problem, SAME_CASES)
    return _unlike(found)


def _check_rules(sources: Sequence[Path], found: Sequence[EvaluationFile]) -> None:
    """Refuse the second of two evaluations if it was scored by other rules."""
    names = (str(sources[0]), "this file")
    both = [
        Evaluated(
            team=name,
            file=source,
            evaluation=each.scores.evaluation,
            is_measured=False,
        )
        for name, source, each in zip(names, sources, found, strict=True)
    ]
    try:
        check_rules(both, "", sources[1])
    except RankingError as error:
        raise MetricsFileError(str(sources[1]), error.problem, ALIKE) from error


def _unlike(found: Sequence[EvaluationFile]) -> tuple[Unlike, ...]:
    """What is not the same in all evaluations."""
    made = [each.scores.evaluation for each in found]
    kinds = (
        (Unlike.REFERENCES, [each.references_sha256 for each in made]),
        (Unlike.VERSION, [each.version for each in made]),
        (Unlike.OPTIONS, [each.options or {} for each in made]),
    )
    return tuple(
        kind for kind, told in kinds if any(each != told[0] for each in told[1:])
    )
