"""Read a challenge file and all reference labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.console import say
from flare.common.environment import BUNDLED_GROUND_TRUTH
from flare.common.options import argument, challenge_option, option
from flare.evaluation.check import check_references

PLACE = ("For organisers", 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferencesRequest:
    """Which labels are read."""

    folder: Path | None = argument(
        "Folder of the reference labels (default: the bundled ones).",
        default=None,
        metavar="DIR",
    )
    ground_truth: Path | None = option(
        "The same, by the name that it has in other commands.",
        default=None,
        metavar="DIR",
    )
    challenge: str = challenge_option()


@takes(ReferencesRequest, exclusive=("folder", "ground_truth"))
def command(request: ReferencesRequest) -> None:
    rules = read_challenge(request.challenge)
    folder = request.folder or request.ground_truth or BUNDLED_GROUND_TRUTH
    say(check_references(folder, rules))
