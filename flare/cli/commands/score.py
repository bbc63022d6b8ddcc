"""Score all teams' predictions, each case only once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flare.cli.command import takes
from flare.cli.console import OutcomeError, Progress, say, stopping_with
from flare.common.environment import importing
from flare.common.errors import StoppedError
from flare.common.options import (
    argument,
    challenge_option,
    csv_option,
    decimals,
    option,
    workers_option,
)
from flare.common.text import aligned, listing, safe
from flare.evaluation.options import EvaluationOptions
from flare.results.archives_csv import REFUSED_CSV

if TYPE_CHECKING:
    from flare.challenge.rules import Challenge
    from flare.evaluation.many.teams import ScoredTeam, ScoredTeams, ScoringProgress

PLACE = ("For organisers", 9)


@dataclass(frozen=True, kw_only=True, slots=True)
class TeamOptions(EvaluationOptions):
    """The same for all teams: no board is asked for its decimals."""

    decimals: int | None = option(
        "Round the numbers in metrics.json to N decimals (default: not at all).",
        default=None,
        parse=decimals,
        metavar="N",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreRequest:
    """What is scored, and how."""

    teams: Path = argument(
        "The folder that has a folder, or a zip file, of predictions for each team.",
        metavar="TEAMS",
    )
    ground_truth: Path = option("The reference labels.", metavar="DIR")
    output: Path = option(
        "Folder that gets TEAM/metrics.json for each team, tables of their means"
        " (means.csv, means.md, means.tex), refused.csv, flags.csv, and scores.sqlite,"
        " which keeps what came of each case.",
        metavar="RESULTS",
    )
    challenge: str = challenge_option()
    workers: int | None = workers_option()
    cluster: str | None = option(
        "Score on the workers of this Dask scheduler.",
        default=None,
        metavar="tls://HOST:PORT",
    )
    options: TeamOptions = field(default_factory=TeamOptions)
    csv: Path | None = csv_option()


@takes(ScoreRequest, exclusive=("workers", "cluster"))
def command(request: ScoreRequest) -> None:
    with importing():  # here, as the help should not wait for them
        import numpy  # noqa: F401  first, as in `evaluate`

        from flare.challenge.metrics import lesions_by
        from flare.challenge.reading import as_challenge
        from flare.evaluation.many.score import evaluate_many

    challenge = as_challenge(request.challenge)
    progress = Progress(every_s=60.0)

    def tell(run: ScoringProgress) -> None:
        """Say how far the run is."""
        done = run.kept + run.scored
        text = f"cases, {run.teams}/{run.all_teams} teams"
        progress(done, done + run.left, text, known=run.kept)

    remedy = "What was scored is kept; the same command goes on."
    with (
        stopping_with(lambda: StoppedError("Scoring was interrupted", remedy)),
        lesions_by(challenge.lesions),
    ):
        scored = evaluate_many(
            request.teams,
            request.ground_truth,
            request.output,
            challenge=challenge,
            workers=request.workers,
            cluster=request.cluster,
            on_progress=tell,
            on_team=_tell_team,
            on_start=lambda at: say(f"Dask's dashboard: {safe(at)}"),
            **asdict(request.options),
        )
        _write_means(request, challenge)
    say(f"\n{_summary(scored)}")
    if scored.not_submitted:
        places = f"In {safe(request.output)}, but not in {safe(request.teams)}"
        teams = listing(scored.not_submitted)
        say(f"{places}: {teams}. They are ranked, too, until you remove them.")
    if request.csv:
        from flare.results.metrics_reading import write_scores

        scored_teams = [team.team for team in scored.teams if not team.refusal]
        write_scores(request.csv, [request.output / team for team in scored_teams])
    refused = [team.team for team in scored.teams if team.refusal]
    if refused:
        count = f"{len(refused)} of {len(scored.teams)} teams"
        where = safe(request.output / REFUSED_CSV)
        raise OutcomeError(f"{count} refused: {listing(refused)}. Why is in {where}")


def _tell_team(team: ScoredTeam) -> None:
    name = safe(team.team)
    if team.refusal:
        say(f"{name}: refused: {team.refusal}")
    else:
        from flare.results.scores import value_text

        means = " ".join(value_text(*item) for item in team.means.items())
        say(f"{name}: {means} ({team.scored} of {team.cases} cases scored now)")
    for line in (*team.zeros, *team.flags):
        say(f"{name}: {line}")


def _summary(scored: ScoredTeams) -> str:
    # Cases of a refused team may have been looked at, but no score of it is left.
    teams = [team for team in scored.teams if not team.refusal]
    cases = sum(team.cases for team in teams)
    now = sum(team.scored for team in teams)
    rows = [
        ("teams", str(len(scored.teams))),
        ("refused", str(len(scored.teams) - len(teams))),
        ("cases scored now", str(now)),
        ("cases scored before", str(cases - now)),
    ]
    return "\n".join(aligned(rows))


def _write_means(request: ScoreRequest, challenge: Challenge) -> None:
    """Write the means of all teams, and say which organs a team never finds.

    Nothing is written where teams cannot be compared yet.
    """
    from flare.results.metrics_json import METRICS_JSON

    if not any(request.output.glob(f"*/{METRICS_JSON}")):
        return  # nor is loaded what a ranking needs
    with importing():
        from flare.common.files import write_whole
        from flare.ranking.decisions import organ_flags
        from flare.ranking.means import team_means
        from flare.ranking.rank import read_scored
        from flare.reports.paper.tables import mean_files

    table = read_scored(request.output, request.challenge)
    if table is None:
        return
    for name, text in mean_files(team_means(table, challenge), challenge.name):
        write_whole(request.output / name, f"{text.rstrip()}\n")
    for line in organ_flags(table):
        say(line)
