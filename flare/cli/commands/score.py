"""Score all teams' predictions, each case only once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flare.cli.command import Command
from flare.cli.commands.evaluate import decimals_of
from flare.cli.console import OutcomeError, stopping_with
from flare.cli.options import (
    PATH,
    OneOf,
    Parsed,
    challenge_option,
    csv_option,
    workers_option,
)
from flare.cli.progress import Progress
from flare.common.errors import StoppedError
from flare.common.text import aligned, listing, safe
from flare.results.refused_csv import REFUSED_CSV

if TYPE_CHECKING:
    from flare.evaluation.many.teams import Progress as Run
    from flare.evaluation.many.teams import ScoredTeam, ScoredTeams

PLACE = ("For organisers", 9)

_log = logging.getLogger(__name__)


@click.command("score", cls=Command, exclusive=("workers", "cluster"))
@click.argument(
    "teams",
    type=PATH,
    metavar="TEAMS",
    help="The folder that has a folder, or a zip file, of predictions for each team.",
)
@click.option(
    "--ground-truth",
    type=PATH,
    required=True,
    metavar="DIR",
    help="The reference labels.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="RESULTS",
    help="Folder that gets TEAM/metrics.json for each team, refused.csv, and"
    " scores.sqlite, which keeps what came of each case.",
)
@challenge_option
@workers_option
@click.option(
    "--cluster",
    metavar="tls://HOST:PORT",
    help="Score on the workers of this Dask scheduler.",
)
@click.option(
    "--on-bad-case",
    type=OneOf(["refuse", "worst"]),
    default="refuse",
    help="Refuse a team with a missing or unusable case, or let the case score 0"
    " (default: refuse).",
)
@click.option(
    "--grid",
    type=OneOf(["strict", "size"]),
    help="Say whether only the size of a grid must be right (default: the challenge's"
    " rule).",
)
@click.option(
    "--unknown-labels",
    type=OneOf(["refuse", "ignore"]),
    help="Say what unknown labels in predictions mean (default: the challenge's rule).",
)
@click.option(
    "--decimals",
    type=Parsed(decimals_of),
    metavar="N",
    help="Round the numbers in metrics.json to N decimals (default: not at all).",
)
@csv_option
def command(
    *, teams: Path, ground_truth: Path, output: Path, csv: Path | None, **options: Any
) -> None:
    """Score the predictions of all teams."""
    # Here, as neither the help nor a shell that completes a word has to wait for them.
    from flare.evaluation.many.evaluate_many import evaluate_many

    before = _ranks(output, options["challenge"])
    progress = Progress(every_s=60.0)

    def tell(run: Run) -> None:
        """Say how far the run is."""
        done = run.kept + run.scored
        text = f"cases, {run.teams}/{run.all_teams} teams"
        progress(done, done + run.left, text, known=run.kept)

    with stopping_with(_stopped):
        scored = evaluate_many(
            teams,
            ground_truth,
            output,
            on_progress=tell,
            on_team=_tell_team,
            on_start=_tell_dashboard,
            **options,
        )
    _log.info("\n%s", _summary(scored))
    if before:
        for line in _moves(before, _ranks(output, options["challenge"])):
            _log.info("%s", line)
    if csv:
        from flare.results.metrics_reading import write_scores

        write_scores(csv, [output / t.team for t in scored.teams if not t.refusal])
    refused = [found.team for found in scored.teams if found.refusal]
    if refused:
        count = f"{len(refused)} of {len(scored.teams)} teams"
        where = safe(output / REFUSED_CSV)
        raise OutcomeError(f"{count} refused: {listing(refused)}. Why is in {where}")


def _stopped() -> StoppedError:
    """What Ctrl-C has not taken away."""
    remedy = "What was scored is kept; the same command goes on."
    return StoppedError("Scoring was interrupted", remedy)


def _tell_team(found: ScoredTeam) -> None:
    """Say what became of a team."""
    if found.refusal:
        _log.info("%s: refused: %s", safe(found.team), found.refusal)
    else:
        _log.info(
            "%s: DSC %.4f NSD %.4f (%d of %d cases scored now)",
            *(safe(found.team), found.dsc, found.nsd, found.scored, found.cases),
        )
    for line in found.zeros:
        _log.info("%s: %s", safe(found.team), line)


def _tell_dashboard(address: str) -> None:
    """Say where Dask shows what its workers do."""
    _log.info("Dask's dashboard: %s", safe(address))


def _summary(scored: ScoredTeams) -> str:
    """How much there was to do, and what was refused."""
    teams = scored.teams
    cases, now = (sum(getattr(t, key) for t in teams) for key in ("cases", "scored"))
    rows = [
        ("teams", str(len(teams))),
        ("refused", str(sum(bool(found.refusal) for found in teams))),
        ("cases scored now", str(now)),
        ("known already", str(cases - now)),
    ]
    return "\n".join(aligned(rows))


def _ranks(results: Path, challenge: str) -> dict[str, int]:
    """The ranks of teams by DSC and NSD; none where they cannot be ranked yet."""
    from flare.results.metrics_json import METRICS_JSON

    if not any(results.glob(f"*/{METRICS_JSON}")):
        return {}  # nor is loaded what a ranking needs
    from flare.ranking.rank import ranks_by_scores

    return ranks_by_scores(results, challenge)


def _moves(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """Which teams have another rank than before.

    Ranks among other teams are not compared: a run that was ended has scored only some.
    """
    if before.keys() != after.keys():
        return []
    moved = [
        f"{safe(team)}: rank {before[team]}, now {rank}"
        for team, rank in after.items()
        if before[team] != rank
    ]
    title = "Ranks by DSC and NSD alone that have changed:"
    return [title, *moved] if moved else ["No rank by DSC and NSD alone has changed."]
