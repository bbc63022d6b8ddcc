"""Scores what all teams have submitted, on as many processes as there are."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Literal

from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge
from flare.common.environment import available_cpus
from flare.common.errors import FlareError, InputError, OrganiserError, OutputError
from flare.common.executor import Done, LocalPool, Pool, bulkhead, completed
from flare.common.files import is_folder, remove_tree
from flare.common.text import safe
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.evaluate import results_of, worker_error
from flare.evaluation.many.cases import (
    SCORES_SQLITE,
    Batch,
    KeptScores,
    digest_of,
    json_sha256,
    rules_key,
    score_batch,
    split,
)
from flare.evaluation.many.teams import (
    UNPACKED,
    OpenTeam,
    Progress,
    ScoredTeam,
    ScoredTeams,
    Submission,
    find_submissions,
    mirrored_lines,
    opened,
)
from flare.evaluation.options import EvaluationOptions, check_count
from flare.evaluation.plan import file_checksum, plan_evaluation, with_options
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.find import find_references
from flare.evaluation.submission.match import CasePair
from flare.evaluation.submission.unpack import NoRoomError
from flare.results.archives_csv import Flag, Refusal, replace_rows
from flare.results.errors import MeasurementError
from flare.results.metrics_json import METRICS_JSON, prepare_output, write_metrics
from flare.results.team_folder import FolderLock, is_measured

USE = "scored into"
"""What is done to a folder that is locked."""

PAUSE_S = 1.0
"""Tables of teams are written so often at most: each time, all rows are read, too."""


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
    this program: its outcome is kept in ``scores.sqlite``. A run that was stopped
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
        The outcome of each team.

    Raises
    ------
    ValueError
        If an argument has no value listed above; says what is allowed.
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder cannot be read or written, or the workers cannot be used.
    """
    options = EvaluationOptions(
        on_bad_case=on_bad_case,
        grid=grid,
        unknown_labels=unknown_labels,
        decimals=decimals,
    )
    check_count("workers", workers, least=1)
    challenge = as_challenge(challenge)
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

    with FolderLock(output, USE), KeptScores(output / SCORES_SQLITE) as kept:
        run = _Run(
            teams=teams,
            ground_truth=ground_truth,
            output=output,
            challenge=challenge,
            options=options,
            kept=kept,
            on_progress=on_progress,
            on_team=on_team,
        )
        done = run.score(submissions, partial(_pool, run, workers, cluster, on_start))
    gone = settled.difference(submission.team for submission in submissions)
    not_submitted = sorted(team for team in gone if not is_measured(output / team))
    return ScoredTeams(output=output, teams=done, not_submitted=tuple(not_submitted))


@contextmanager
def _pool(
    run: _Run,
    workers: int | None,
    cluster: str | None,
    on_start: Callable[[str], None] | None,
) -> Iterator[Pool]:
    """The workers: processes here, or those of a scheduler that see the folders."""
    if cluster is None:
        yield LocalPool(workers or available_cpus())
        return
    from flare.evaluation.many.cluster import ClusterPool, check_workers, connected

    folders = {"teams": run.teams, "reference labels": run.ground_truth}
    folders["results"] = run.output
    with connected(cluster) as client:
        check_workers(client, folders)
        if on_start:
            on_start(client.dashboard_link)
        yield ClusterPool(client)


@dataclass(kw_only=True)
class _Run:
    """One run over all teams, into a folder of results that is locked."""

    teams: Path
    ground_truth: Path
    output: Path
    challenge: Challenge
    options: EvaluationOptions
    kept: KeptScores
    on_progress: Callable[[Progress], None] | None
    on_team: Callable[[ScoredTeam], None] | None

    def __post_init__(self) -> None:
        """Begin with no team."""
        self._checksum = lru_cache(maxsize=None)(file_checksum)
        self._rows: dict[str, tuple[list[Refusal], list[Flag]]] = {}
        self._written_at = time.monotonic()
        self._most_bytes = lru_cache(maxsize=None)(self._most_bytes_unpacked)
        self._open: dict[str, OpenTeam] = {}
        self._waiting: list[Submission] = []
        self._done: list[ScoredTeam] = []
        self._scored, self._known = 0, 0
        self._looked_at, self._to_score = 0, 0

    def score(
        self,
        submissions: Sequence[Submission],
        opened_pool: Callable[[], AbstractContextManager[Pool]],
    ) -> tuple[ScoredTeam, ...]:
        """Score all submissions; their outcomes, by the names of the teams."""
        remove_tree(self.output / UNPACKED)  # of a run that was ended
        batches = self._batches(submissions)
        try:
            # No process is started for nothing: all may have been scored before.
            if first := next(batches, None):
                with opened_pool() as pool:
                    self._work(pool, chain((first,), batches), len(submissions))
                    while self._waiting:
                        again, self._waiting = self._waiting, []
                        self._work(pool, self._batches(again), len(submissions))
        finally:
            for team in self._open.values():
                team.stack.close()
            remove_tree(self.output / UNPACKED)
            self._write_rows()
        return tuple(sorted(self._done, key=lambda found: found.team))

    def _work(self, pool: Pool, batches: Iterable[Batch], teams: int) -> None:
        """Score batches, of so many teams in all."""
        for done in completed(pool, score_batch, batches, Batch.single):
            if done.error and not done.is_lost:
                raise done.error
            self._take(done)
            self._tell_progress(teams)

    def _tell_progress(self, teams: int) -> None:
        """Tell how far the run has come."""
        if self.on_progress:
            expected = round(self._to_score * teams / self._looked_at)
            self.on_progress(
                Progress(
                    teams=len(self._done),
                    all_teams=teams,
                    scored=self._scored,
                    kept=self._known,
                    left=max(0, expected - self._scored),
                )
            )

    def _batches(self, submissions: Sequence[Submission]) -> Iterator[Batch]:
        """What is to be scored of all teams, one after the other."""
        for submission in submissions:
            self._looked_at += 1
            team = None
            with self._alone(submission):
                team = self._opened_or_waiting(submission)
            if team is None:
                continue
            self._open[submission.team] = team
            pairs = team.plan.prepared.pairs
            todo = [pair for pair in pairs if pair.case not in team.known]
            team.left = len(todo)
            self._to_score += team.left
            if not todo:
                self._finish(team)
            for some in split(todo):
                yield Batch(
                    team=submission.team,
                    pairs=some,
                    challenge=team.plan.rules,
                    check_only=team.plan.check_only,
                )

    def _alone(
        self, submission: Submission, team: OpenTeam | None = None
    ) -> AbstractContextManager[None]:
        """Let an error within the block end this team, unless it concerns all."""
        refuse = partial(self._refuse, submission, team)
        return bulkhead(self.output, submission.team, refuse)

    def _opened_or_waiting(self, submission: Submission) -> OpenTeam | None:
        """A team; none if it waits for room that others have while they are open."""
        try:
            return self._opened(submission)
        except NoRoomError:
            if not self._open:
                raise
            self._waiting.append(submission)
            self._looked_at -= 1
            return None

    def _most_bytes_unpacked(self) -> int:
        """What the label maps of a team can have when they are not compressed.

        No number type takes more than 16 bytes for a voxel; a header takes little.
        """
        rules = with_options(self.challenge, self.options)
        references = find_references(self.ground_truth, rules)
        shapes = [file.read_grid().shape for file in references]
        return sum(16 * math.prod(shape) + 2**20 for shape in shapes)

    def _opened(self, submission: Submission) -> OpenTeam:
        """A team, with what is known of its cases."""
        with ExitStack() as stack:
            predictions = stack.enter_context(
                opened(submission, self.output, self._most_bytes)
            )
            plan = plan_evaluation(
                predictions, self.ground_truth, self.challenge, self.options
            )
            rules = rules_key(plan.rules, check_only=plan.check_only)
            team = OpenTeam(submission=submission, plan=plan, rules=rules)
            for pair in plan.prepared.pairs:
                key = self._key(team, pair, digest_of(pair))
                attempt = self.kept.find(pair, key)
                if attempt:
                    team.known[pair.case] = attempt
            self._known += len(team.known)
            team.stack = stack.pop_all()
        return team

    def _key(self, team: OpenTeam, pair: CasePair, prediction: str) -> str:
        """What the outcome of a case is kept under: names of files are in messages."""
        reference = self._checksum(pair.reference.path)
        names = [pair.case, pair.reference.name, pair.prediction.name]
        return json_sha256([team.rules, reference, prediction, names])

    def _take(self, done: Done[Batch, tuple[Attempt, ...]]) -> None:
        """Keep the outcomes of a batch, under the digests of what was really read."""
        team = self._open[done.item.team]
        whole = [attempt for attempt in done.result or () if not attempt.fault]
        for attempt in whole:
            reference = attempt.pair.reference
            if attempt.digests[0] != self._checksum(reference.path):
                raise GroundTruthError(
                    f"{safe(reference.name)}: it changed while it was evaluated"
                )
            team.known[attempt.pair.case] = attempt
        self.kept.keep(
            (self._key(team, attempt.pair, attempt.digests[1]), attempt)
            for attempt in whole
            if attempt.digests[1]
        )
        faults = [attempt.fault for attempt in done.result or () if attempt.fault]
        if done.is_lost:
            faults = [worker_error(done.item.pairs[0], done.error)]
        team.error = next(filter(None, [team.error, *faults]), None)
        team.scored += len(whole)
        self._scored += len(whole)
        team.left -= len(done.item.pairs)
        if not team.left:
            self._finish(team)

    def _finish(self, team: OpenTeam) -> None:
        """Write what a team has scored, or why it was refused."""
        submission, found = team.submission, None
        del self._open[submission.team]
        with team.stack, self._alone(submission, team):
            found = self._written(team)
        if found:
            self._tell(found)

    def _written(self, team: OpenTeam) -> ScoredTeam:
        """Write what a team has scored."""
        if team.error:
            raise team.error
        # In the order of the cases, in which problems are told, too.
        attempts = [team.known[p.case] for p in team.plan.prepared.pairs]
        results = results_of(team.plan, attempts, checksum=self._checksum)
        name = team.submission.team
        with FolderLock(self.output / name, USE):
            write_metrics(results, self.output / name)
        flags = tuple(mirrored_lines(attempts))
        rows = [Flag(team=name, flag=line) for line in flags]
        self._settle(name, [], rows)
        means = {name: results.mean(name) for name in results.cases[0].by_metric}
        return ScoredTeam(
            team=name,
            cases=len(results.cases),
            scored=team.scored,
            means=means,
            zeros=tuple(low.reason for low in results.low_scores),
            flags=flags,
        )

    def _refuse(
        self, submission: Submission, team: OpenTeam | None, error: FlareError
    ) -> None:
        """Record why a team was refused; what it had scored before goes.

        Raises
        ------
        FlareError
            If it concerns all teams.
        """
        are_there = is_folder(self.ground_truth)
        if isinstance(error, (OrganiserError, OutputError)) or not are_there:
            raise error
        folder = self.output / submission.team
        is_ours = not (folder.is_symlink() or is_measured(folder))
        is_ours &= not isinstance(error, MeasurementError)  # another process has it
        if is_ours and (folder / METRICS_JSON).is_file():
            prepare_output(folder)
        refusal = Refusal(
            team=submission.team, archive=submission.path.name, problem=str(error)
        )
        self._settle(submission.team, [refusal], [])
        self._tell(
            ScoredTeam(
                team=submission.team,
                cases=len(team.plan.prepared.pairs) if team else 0,
                scored=team.scored if team else 0,
                refusal=str(error),
            )
        )

    def _settle(self, team: str, refusals: list[Refusal], flags: list[Flag]) -> None:
        """Let these be the rows of a team, in tables that are written now and then."""
        self._rows[team] = refusals, flags
        if time.monotonic() > self._written_at + PAUSE_S:
            self._write_rows()

    def _write_rows(self) -> None:
        """Write what became of teams since this was done last."""
        found = self._rows.values()
        refusals = chain.from_iterable(own for own, _ in found)
        flags = chain.from_iterable(own for _, own in found)
        replace_rows(self.output, Refusal, refusals, self._rows)
        replace_rows(self.output, Flag, flags, self._rows)
        self._rows.clear()
        self._written_at = time.monotonic()

    def _tell(self, found: ScoredTeam) -> None:
        """Tell the outcome of a team."""
        self._done.append(found)
        if self.on_team:
            self.on_team(found)
