"""Scores what all teams have submitted, on as many processes as there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import InputError
from flare.common.executor import LocalPool, Pool
from flare.common.machine import available_cpus
from flare.common.text import safe
from flare.evaluation.many.kept_scores import SCORES_SQLITE, KeptScores
from flare.evaluation.many.run import USE, Listeners, Run
from flare.evaluation.many.teams import (
    Progress,
    ScoredTeam,
    ScoredTeams,
    find_submissions,
)
from flare.evaluation.options import Options, check_count
from flare.results.lock import FolderLock
from flare.results.metrics_json import METRICS_JSON


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
        Processes on this computer; as many as it has CPUs if left out. With more than
        one, call this from a program that may fork: before it starts threads.
    cluster : str, optional
        The address of a running Dask scheduler, such as ``tls://host:8786``.
    on_progress, on_team, on_start : callable, optional
        Told of each batch of cases; of each team that is done; and of the address of
        Dask's dashboard, if there is one.

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
    # In full, as a worker of a cluster may have been started in another folder.
    teams, ground_truth, output = (
        Path(folder).absolute() for folder in (teams, ground_truth, output)
    )
    if teams.resolve() == output.resolve():
        raise InputError(
            f"{safe(output)}: it is the folder of what teams have submitted",
            "Choose another folder for the results.",
        )
    settled = {file.parent.name for file in output.glob(f"*/{METRICS_JSON}")}
    submissions = find_submissions(teams, settled)

    @contextmanager
    def opened_pool() -> Iterator[Pool]:
        """The workers, once there is something to be scored."""
        if cluster is None:
            yield LocalPool(workers or available_cpus())
            return
        from flare.evaluation.many.cluster import cluster_pool

        folders = {"teams": teams, "reference labels": ground_truth, "results": output}
        with cluster_pool(cluster, folders, on_start) as pool:
            yield pool

    listeners = Listeners(on_progress=on_progress, on_team=on_team)
    with FolderLock(output, USE), KeptScores(output / SCORES_SQLITE) as kept:
        run = Run(ground_truth, output, challenge, options, kept)
        done = run.score(submissions, opened_pool, listeners)
    return ScoredTeams(output=output, teams=done)
