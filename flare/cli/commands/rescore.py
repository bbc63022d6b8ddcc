"""Score kept predictions anew, when rules or labels changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.console import OutcomeError, say
from flare.common.options import argument, challenge_option, option, workers_option
from flare.common.text import count, listing, safe, shell_word
from flare.measuring.rescore import Rescored, rescore, rescored_table

PLACE = ("For organisers", 10)


@dataclass(frozen=True, kw_only=True, slots=True)
class RescoreRequest:
    """What is scored anew."""

    results: Path = argument(
        "The folder that has one for each team, with its predictions in"
        " TEAM/predictions (of flare measure, flare download --predictions, or put"
        " there by hand).",
        metavar="RESULTS",
    )
    ground_truth: Path = option("The reference labels.", metavar="DIR")
    challenge: str = challenge_option()
    workers: int | None = workers_option()


@takes(RescoreRequest)
def command(request: RescoreRequest) -> None:
    teams = rescore(
        request.results,
        request.ground_truth,
        read_challenge(request.challenge),
        workers=request.workers,
    )
    errors = [(team.team, team.error) for team in teams if team.error]
    for name, error in errors:
        say(f"{safe(name)}: not scored: {error}")
    say(f"\n{rescored_table(teams)}")
    _tell_left(request, teams)
    if errors:
        name, error = errors[0]
        teams_text = count(len(errors) - 1, "other team")
        further = f" (and {teams_text})" if errors[1:] else ""
        raise OutcomeError(f"{safe(name)}: not scored: {error}{further}")


def _tell_left(request: RescoreRequest, teams: Sequence[Rescored]) -> None:
    """Name the teams that have no predictions to be scored, by their options."""
    names_by_flags: defaultdict[str, list[str]] = defaultdict(list)
    for team in teams:
        if team.is_skipped:
            names_by_flags[team.flags].append(team.team)
    lines = []
    for flags, names in names_by_flags.items():
        lines.append(
            f"{safe(request.results)}: no predictions are kept of {listing(names)}."
            " Score what was submitted: flare score TEAMS"
            f" --ground-truth {shell_word(request.ground_truth)}"
            f" --challenge {shell_word(request.challenge)}"
            f" --output {shell_word(request.results)}{flags}."
        )
    if all(team.is_skipped for team in teams):
        raise OutcomeError(" ".join(lines))
    for line in lines:
        say(line)
