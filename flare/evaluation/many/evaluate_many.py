"""Scores what all teams have submitted, on as many processes as there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.machine import available_cpus
from flare.evaluation.many.batches import Engine, OneProcess
from flare.evaluation.many.kept_scores import SCORES_SQLITE, KeptScores
from flare.evaluation.many.outcomes import Progress, ScoredTeam, ScoredTeams
from flare.evaluation.many.run import USE, Listeners, Run
from flare.evaluation.many.submissions import find_submissions
from flare.evaluation.rule_overrides import check_count
from flare.evaluation.stages import Options
from flare.results.lock import FolderLock


def evaluate_many(
    teams: str | Path,
    ground_truth: str | Path,
    output: str | Path,
    *,
    challenge: str | Challenge = "flare21",
    on_bad_case: Literal["refuse", "worst"] = "refuse",
    grid: Literal["strict", "size"] | None = None,
    unknown_labels: Literal["refuse", "ignore"] | None = None,
    decimals: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_team: Callable[[ScoredTeam], None] | None = None,
    on_start: Callable[[str], None] | None = None,
) -> ScoredTeams:
    """Score the predictions of all teams against a folder of reference labels.

    Each team's metrics.json has the bytes that `evaluate` and `write_metrics` give. A
    case is scored once for each content of its two files, the rules and the version of
    this program: what came of it is kept in ``scores.sqlite``. A run that was ended
    goes on where it was.

    Parameters
    ----------
    teams : str or Path
        A folder that has a folder, or a zip file, of predictions for each team.
    ground_truth : str or Path
        Folder of the reference labels.
    output : str or Path
        Folder that gets ``TEAM/metrics.json``, and ``refused.csv`` with a line for each
        team that was refused; the others go on.
    challenge, on_bad_case, grid, unknown_labels, decimals
        As in `flare.evaluate`.
    workers : int, optional
        Processes on this computer; as many as it has CPUs if left out. More than one
        need Dask, and a script that calls this below ``if __name__ == "__main__":``.
    cluster : str, optional
        The address of a running Dask scheduler, such as ``tcp://host:8786``, or a YAML
        file that says which jobs of a cluster to start.
    on_progress, on_team, on_start : callable, optional
        Told of each batch of cases; of each team that is done; and of the address of
        Dask's dashboard.

    Returns
    -------
    ScoredTeams
        What became of the teams.

    Raises
    ------
    ValueError
        If an argument has no value listed above; says what is allowed.
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder cannot be read or written, or the workers cannot be used.
    """
    options = Options(
        on_bad_case=on_bad_case,
        grid=grid,
        unknown_labels=unknown_labels,
        decimals=decimals,
    )
    check_count("workers", workers, least=1)
    if not isinstance(challenge, Challenge):
        challenge = read_challenge(challenge)
    teams, ground_truth, output = Path(teams), Path(ground_truth), Path(output)
    submissions = find_submissions(teams)
    is_alone = cluster is None and (workers or available_cpus()) == 1
    if is_alone or (cluster is None and len(submissions) == 1):
        engine: Engine = OneProcess()
    else:
        from flare.evaluation.many.dask_engine import DaskEngine

        engine = DaskEngine(
            cluster,
            workers or available_cpus(),
            {"teams": teams, "reference labels": ground_truth, "results": output},
            on_start,
        )
    listeners = Listeners(on_progress=on_progress, on_team=on_team)
    with FolderLock(output, USE), KeptScores(output / SCORES_SQLITE) as kept:
        run = Run(ground_truth, output, challenge, options, kept)
        done = run.score(submissions, engine, listeners)
    return ScoredTeams(output=output, teams=done)
