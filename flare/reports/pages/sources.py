"""Tells what a report is about from the names of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from flare.results.evaluation_file import is_evaluation
from flare.results.team_folder import is_team


class Kind(Enum):
    """What a report is about, in words of an error."""

    EVALUATION = "one evaluation"
    COMPARISON = "two or more evaluations"
    TEAM = "the folder of one team"
    RANKING = "the results of all teams"


def kind_of(sources: Sequence[Path]) -> Kind:
    """What a report of these sources is about.

    Several sources are evaluations, all of them: whoever reads them says so.
    """
    if len(sources) > 1:
        return Kind.COMPARISON
    if is_evaluation(sources[0]):
        return Kind.EVALUATION
    return Kind.TEAM if is_team(sources[0]) else Kind.RANKING
