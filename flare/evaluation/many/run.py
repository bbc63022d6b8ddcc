"""Keeps track of all teams of a run, and of who waits for which case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.bulkhead import FAULTS, bulkhead
from flare.common.errors import FlareError, InputError, OrganiserError, OutputError
from flare.common.executor import Done, Pool, completed
from flare.common.files import is_folder, remove_tree
from flare.common.text import safe, why
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.evaluate import results_of, worker_error
from flare.evaluation.many.batches import Batch, digest_of, score_batch, split
from flare.evaluation.many.kept_scores import KeptScores, Rules, key_of
from flare.evaluation.many.teams import Progress, ScoredTeam, Submission
from flare.evaluation.options import Options
from flare.evaluation.plan import Plan, file_checksum, plan_evaluation
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.match import CasePair
from flare.evaluation.submission.unpack import unpack_zip
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock
from flare.results.metrics_json import METRICS_JSON, prepare_output, write_metrics
from flare.results.metrics_reading import MEANS
from flare.results.refused_csv import Refusal, RefusedRows
from flare.results.scores import statistics
from flare.results.team_folder import is_measured

UNPACKED = ".unpacked"
"""Folder in RESULTS for what was in zip files, while it is scored."""

USE = "scored into"
"""What is done to a folder that is locked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who is told of what."""

    on_progress: Callable[[Progress], None] | None = None
    on_team: Callable[[ScoredTeam], None] | None = None


@dataclass(kw_only=True, slots=True)
class _OpenTeam:
    """A team of which not all cases are scored yet."""

    submission: Submission
    plan: Plan
    keys: dict[str, str] = field(default_factory=dict)
    """Under which outcomes are kept, by case."""
    known: dict[str, Attempt] = field(default_factory=dict)
    """What came of its cases so far."""
    left: int = 0
    """So many of its cases are still to come back."""
    scored: int = 0
    error: FlareError | None = None
    """Why it cannot be scored to its end."""
    rules: str
    """`Rules.digest`."""
    stack: ExitStack = field(default_factory=ExitStack)
    """What is to be let go when the team is done."""

    def batch(self, pairs: tuple[CasePair, ...]) -> Batch:
        """Cases of it, for a worker."""
        return Batch(
            team=self.submission.team,
            pairs=pairs,
            challenge=self.plan.rules,
            check_only=self.plan.check_only,
        )


class Run:
    """One run over all teams, into a folder of results that is locked.

    Parameters
    ----------
    ground_truth, output : Path
        Folders of the reference labels, and of the results.
    challenge : Challenge
        Whose rules apply.
    options : Options
        Of the evaluation.
    kept : KeptScores
        What is known of cases.
    """

    def __init__(
        self,
        ground_truth: Path,
        output: Path,
        challenge: Challenge,
        options: Options,
        kept: KeptScores,
    ) -> None:
        self._ground_truth = ground_truth
        self._output = output
        self._challenge = challenge
        self._options = options
        self._kept = kept
        self._reference_checksum = lru_cache(maxsize=None)(_reference_checksum)
        self._refused = RefusedRows(output)
        self._open: dict[str, _OpenTeam] = {}
        self._again: list[Batch] = []
        """Cases that waited for an equal file, which has changed meanwhile."""
        self._awaited: dict[str, list[tuple[_OpenTeam, CasePair]]] = {}
        """Who else waits for the outcome of a case that is on its way, by its key."""
        self._done: list[ScoredTeam] = []
        self._scored, self._known = 0, 0
        self._looked_at, self._to_score = 0, 0
        self._listeners = Listeners()

    def score(
        self,
        submissions: Sequence[Submission],
        opened_pool: Callable[[], AbstractContextManager[Pool]],
        listeners: Listeners,
    ) -> tuple[ScoredTeam, ...]:
        """Score all submissions; what became of them, by the names of the teams."""
        self._listeners = listeners
        remove_tree(self._output / UNPACKED)  # of a run that was ended
        batches = self._batches(submissions)
        try:
            # No process is started for nothing: all may have been scored before.
            if first := next(batches, None):
                with opened_pool() as pool:
                    self._score(pool, chain((first,), batches), len(submissions))
                    while self._again:
                        again, self._again = self._again, []
                        self._score(pool, iter(again), len(submissions))
        finally:
            for team in self._open.values():
                team.stack.close()
            remove_tree(self._output / UNPACKED)
            self._refused.write()
        return tuple(sorted(self._done, key=lambda found: found.team))

    def _score(self, pool: Pool, batches: Iterator[Batch], teams: int) -> None:
        """Score batches, and take in what comes of them."""
        for done in completed(pool, score_batch, batches, Batch.single):
            if done.error and not done.is_lost:
                raise done.error
            self._take(done)
            if self._listeners.on_progress:
                self._listeners.on_progress(self._progress(teams))

    def _progress(self, teams: int) -> Progress:
        """How far the run has come."""
        expected = round(self._to_score * teams / self._looked_at)
        return Progress(
            teams=len(self._done),
            all_teams=teams,
            scored=self._scored,
            kept=self._known,
            left=max(0, expected - self._scored),
        )

    def _batches(self, submissions: Sequence[Submission]) -> Iterator[Batch]:
        """What is to be scored of all teams, one after the other."""
        for submission in submissions:
            self._looked_at += 1
            opened: list[_OpenTeam] = []
            with self._alone(submission):
                opened.append(self._opened(submission))
            for team in opened:
                yield from self._batches_of(team)

    def _batches_of(self, team: _OpenTeam) -> Iterator[Batch]:
        """What is to be scored of a team."""
        todo = tuple(self._unknown(team))
        self._to_score += len(todo)
        self._open[team.submission.team] = team
        if not team.left:
            self._finish(team)
        for pairs in split([p for p, _ in todo], [v for _, v in todo]):
            yield team.batch(pairs)

    def _alone(
        self, submission: Submission, team: _OpenTeam | None = None
    ) -> AbstractContextManager[None]:
        """Let an error within the block end this team, unless it concerns all."""
        refuse = partial(self._refuse, submission, team)
        return bulkhead(self._output, submission.team, refuse)

    def _unknown(self, team: _OpenTeam) -> Iterator[tuple[CasePair, int]]:
        """Cases that are to be scored, and how many voxels they have.

        An equal file of another team may be on its way already, and is waited for.
        """
        prepared = team.plan.prepared
        for pair, voxels in zip(prepared.pairs, prepared.voxels, strict=True):
            key = team.keys[pair.case]
            if pair.case in team.known:
                continue
            team.left += 1
            if key in self._awaited:
                self._awaited[key].append((team, pair))
            else:
                self._awaited[key] = []
                yield pair, voxels

    def _opened(self, submission: Submission) -> _OpenTeam:
        """A team, with what is known of its cases."""
        if submission.problem:
            raise submission.problem
        (self._output / FAULTS / f"{submission.team}.txt").unlink(missing_ok=True)
        folder = self._output / submission.team
        if folder.is_symlink():
            raise InputError(
                f"{safe(folder)}: it is a link",
                "Remove it, or choose another --output.",
            )
        if is_measured(folder):
            raise InputError(
                f"{safe(folder)}: it holds what was measured of the team",
                "Use flare rescore, or another --output.",
            )
        with ExitStack() as stack:
            predictions = submission.path.resolve()
            if submission.is_zip:
                predictions = self._output.resolve() / UNPACKED / submission.team
                predictions.mkdir(parents=True)
                stack.callback(remove_tree, predictions)
                unpack_zip(submission.path, predictions)
            plan = plan_evaluation(
                predictions, self._ground_truth, self._challenge, self._options
            )
            rules = Rules(challenge=plan.rules, check_only=plan.check_only).digest()
            team = _OpenTeam(submission=submission, plan=plan, rules=rules)
            for pair in plan.prepared.pairs:
                team.keys[pair.case] = self._key(team, pair, digest_of(pair))
                attempt = self._kept.find(pair, team.keys[pair.case])
                if attempt:
                    team.known[pair.case] = attempt
            self._known += len(team.known)
            team.stack = stack.pop_all()
        return team

    def _key(self, team: _OpenTeam, pair: CasePair, prediction: str) -> str:
        """What the outcome of a case is kept under; it is its own without a digest."""
        if not prediction:
            return f"{team.submission.team}/{pair.case}"
        reference = self._reference_checksum(pair.reference.path)
        return key_of(pair, team.rules, reference, prediction)

    def _take(self, done: Done[Batch, tuple[Attempt, ...]]) -> None:
        """Keep what came of a batch, and give it to all who wait for it."""
        team = self._open[done.item.team]
        found = {attempt.pair.case: attempt for attempt in done.result or ()}
        whole = {case: found[case] for case in found if not found[case].fault}
        real = {case: self._real_key(team, whole[case]) for case in whole}
        self._kept.keep(
            (real[case], attempt)
            for case, attempt in whole.items()
            if attempt.digests[1]
        )
        team.scored += len(whole)
        self._scored += len(whole)
        for pair in done.item.pairs:
            attempt, key = whole.get(pair.case), team.keys[pair.case]
            error: FlareError | None = None
            if done.is_lost:
                error = worker_error(pair, done.error)
            elif not attempt:
                error = found[pair.case].fault
            for waiting, own in self._awaited.pop(key, ()):
                # What is no fault of a file's content may be the fault of this one.
                if done.is_lost or (attempt and real[pair.case] == key):
                    self._give(waiting, own, attempt, error)
                else:
                    self._put_back(waiting, own)
            self._give(team, pair, attempt, error)

    def _real_key(self, team: _OpenTeam, attempt: Attempt) -> str:
        """What an outcome is kept under: the digests of what was really read."""
        pair, (reference, prediction) = attempt.pair, attempt.digests
        if reference and reference != self._reference_checksum(pair.reference.path):
            raise GroundTruthError(
                f"{safe(pair.reference.name)}: it changed while it was evaluated"
            )
        return self._key(team, pair, prediction)

    def _put_back(self, team: _OpenTeam, pair: CasePair) -> None:
        """Let a case be scored of which an equal one has turned out to be another."""
        self._again.append(team.batch((pair,)))

    def _give(
        self,
        team: _OpenTeam,
        pair: CasePair,
        attempt: Attempt | None,
        error: FlareError | None,
    ) -> None:
        """Take what came of a case; the last one finishes its team."""
        if attempt:
            team.known[pair.case] = replace(attempt, pair=pair)
        team.error = team.error or error
        team.left -= 1
        if not team.left:
            self._finish(team)

    def _finish(self, team: _OpenTeam) -> None:
        """Write what a team has scored, or why it was refused."""
        submission = team.submission
        del self._open[submission.team]
        written: list[ScoredTeam] = []
        with team.stack, self._alone(submission, team):
            written.append(self._written(team))
        for found in written:
            self._tell(found)

    def _written(self, team: _OpenTeam) -> ScoredTeam:
        """Write what a team has scored."""
        if team.error:
            raise team.error
        # In the order of the cases, in which problems are told, too.
        attempts = [team.known[p.case] for p in team.plan.prepared.pairs]
        results = results_of(team.plan, attempts, checksum=self._reference_checksum)
        name = team.submission.team
        with FolderLock(self._output / name, USE):
            write_metrics(results, self._output / name)
        self._refused.replace(name, ())
        dsc, nsd = (statistics(results.metrics[mean])["mean"] for mean in MEANS)
        return ScoredTeam(
            team=name,
            cases=len(results.cases),
            scored=team.scored,
            dsc=dsc,
            nsd=nsd,
            zeros=tuple(low.reason for low in results.low_scores),
        )

    def _refuse(
        self, submission: Submission, team: _OpenTeam | None, error: FlareError
    ) -> None:
        """Record why a team was refused; what it had scored before goes.

        Raises
        ------
        FlareError
            If it concerns all teams.
        """
        are_there = is_folder(self._ground_truth)
        if isinstance(error, (OrganiserError, OutputError)) or not are_there:
            raise error
        folder = self._output / submission.team
        is_ours = not (folder.is_symlink() or is_measured(folder))
        is_ours &= not isinstance(error, MeasurementError)  # another process has it
        if is_ours and (folder / METRICS_JSON).is_file():
            prepare_output(folder)
        refusal = Refusal(
            team=submission.team,
            archive=submission.path.name,
            problem=str(error),
        )
        self._refused.replace(submission.team, (refusal,))
        self._tell(
            ScoredTeam(
                team=submission.team,
                cases=len(team.plan.prepared.pairs) if team else 0,
                scored=team.scored if team else 0,
                refusal=str(error),
            )
        )

    def _tell(self, found: ScoredTeam) -> None:
        """Tell what became of a team."""
        self._done.append(found)
        if self._listeners.on_team:
            self._listeners.on_team(found)


def _reference_checksum(file: Path) -> str:
    """SHA-256 of a reference."""
    try:
        return file_checksum(file)
    except OSError as error:
        raise GroundTruthError(
            f"{safe(file.name)}: it cannot be read ({why(error)})"
        ) from error
