"""Keeps track of all teams of a run, and of who waits for which case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.errors import InputError, SubmissionError, WorkerError
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.evaluation.many.batches import Batch, Engine, Finished, split
from flare.evaluation.many.kept_scores import KeptScores, Rules, key_of
from flare.evaluation.many.outcomes import Progress, ScoredTeam
from flare.evaluation.many.submissions import Submission
from flare.evaluation.organiser_errors import UploadError
from flare.evaluation.provenance import file_checksum
from flare.evaluation.scoring.pool import Attempt
from flare.evaluation.stages import Options, Plan, plan_evaluation, results_of
from flare.evaluation.submission.matching import CasePair
from flare.evaluation.submission.unpacking import unpack_zip
from flare.results.lock import FolderLock
from flare.results.metrics_json import (
    MEANS,
    METRICS_JSON,
    prepare_output,
    write_metrics,
)
from flare.results.refused_csv import Refusal, write_refused
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
    keys: dict[str, str]
    """Under which outcomes are kept, by case."""
    known: dict[str, Attempt]
    """What came of its cases so far."""
    left: int = 0
    """So many of its cases are still to come back."""
    scored: int = 0
    error: WorkerError | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    """What is to be let go when the team is done."""


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
        self._reference_checksum = lru_cache(maxsize=None)(file_checksum)
        self._open: dict[str, _OpenTeam] = {}
        self._awaited: dict[str, list[tuple[_OpenTeam, CasePair]]] = {}
        """Who else waits for the outcome of a case that is on its way, by its key."""
        self._done: list[ScoredTeam] = []
        self._scored, self._known = 0, 0
        self._looked_at, self._to_score = 0, 0
        self._listeners = Listeners()

    def score(
        self,
        submissions: Sequence[Submission],
        engine: Engine,
        listeners: Listeners,
    ) -> tuple[ScoredTeam, ...]:
        """Score all submissions; what became of them, by the names of the teams."""
        self._listeners = listeners
        remove_tree(self._output / UNPACKED)  # of a run that was ended
        batches = self._batches(submissions)
        first = next(batches, None)
        try:
            # No process is started for nothing: all may have been scored before.
            for finished in engine.run(chain((first,), batches)) if first else ():
                self._take(finished)
                if listeners.on_progress:
                    listeners.on_progress(self._progress(len(submissions)))
        finally:
            for team in self._open.values():
                team.stack.close()
            remove_tree(self._output / UNPACKED)
        return tuple(sorted(self._done, key=lambda found: found.team))

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
            stack = ExitStack()
            try:
                team = self._opened(submission, stack)
            except (SubmissionError, UploadError, InputError) as error:
                stack.close()
                self._refuse(submission, str(error))
                continue
            except BaseException:
                stack.close()
                raise
            todo = tuple(self._unknown(team))
            self._to_score += len(todo)
            self._open[submission.team] = team
            if not team.left:
                self._finish(team)
            for pairs in split([p for p, _ in todo], [v for _, v in todo]):
                yield Batch(
                    team=submission.team,
                    pairs=pairs,
                    challenge=team.plan.rules,
                    check_only=team.plan.check_only,
                )

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

    def _opened(self, submission: Submission, stack: ExitStack) -> _OpenTeam:
        """A team, with what is known of its cases."""
        if submission.problem:
            raise submission.problem
        folder = self._output / submission.team
        if is_measured(folder):
            problem = f"{safe(folder)}: it holds what was measured of the team"
            raise InputError(problem, "Use flare rescore, or another --output.")
        predictions = submission.path
        if submission.is_zip:
            predictions = self._output / UNPACKED / submission.team
            predictions.mkdir(parents=True)
            stack.callback(remove_tree, predictions)
            unpack_zip(submission.path, predictions)
        plan = plan_evaluation(
            predictions, self._ground_truth, self._challenge, self._options
        )
        rules = Rules(challenge=plan.rules, check_only=plan.check_only).digest()
        keys, known = {}, {}
        for pair in plan.prepared.pairs:
            keys[pair.case] = key_of(
                pair,
                rules,
                self._reference_checksum(pair.reference.path),
                file_checksum(pair.prediction.path),
            )
            attempt = self._kept.find(pair, keys[pair.case])
            if attempt:
                known[pair.case] = attempt
        self._known += len(known)
        return _OpenTeam(
            submission=submission, plan=plan, keys=keys, known=known, stack=stack
        )

    def _take(self, finished: Finished) -> None:
        """Keep what came of a batch, and give it to all who wait for it."""
        team = self._open[finished.batch.team]
        found = {attempt.pair.case: attempt for attempt in finished.attempts}
        self._kept.keep((team.keys[case], attempt) for case, attempt in found.items())
        team.scored += len(found)
        self._scored += len(found)
        for pair in finished.batch.pairs:
            others = self._awaited.pop(team.keys[pair.case])
            for waiting, own in [(team, pair), *others]:
                self._give(waiting, own, found.get(pair.case), finished.error)

    def _give(
        self,
        team: _OpenTeam,
        pair: CasePair,
        attempt: Attempt | None,
        error: WorkerError | None,
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
        try:
            if team.error:
                raise team.error
            # In the order of the cases, in which problems are told, too.
            attempts = [team.known[p.case] for p in team.plan.prepared.pairs]
            results = results_of(team.plan, attempts, checksum=self._reference_checksum)
        except (SubmissionError, WorkerError) as error:
            self._refuse(submission, str(error), team)
            return
        finally:
            team.stack.close()
        folder = self._output / submission.team
        with FolderLock(folder, USE):
            write_metrics(results, folder)
        write_refused(self._output, (), (submission.team,))
        dsc, nsd = (statistics(results.metrics[name])["mean"] for name in MEANS)
        self._tell(
            ScoredTeam(
                team=submission.team,
                cases=len(results.cases),
                scored=team.scored,
                dsc=dsc,
                nsd=nsd,
                zeros=tuple(low.reason for low in results.low_scores),
            )
        )

    def _refuse(
        self, submission: Submission, reason: str, team: _OpenTeam | None = None
    ) -> None:
        """Record why a team was refused; what it had scored before goes."""
        folder = self._output / submission.team
        if (folder / METRICS_JSON).is_file():
            prepare_output(folder)
        refusal = Refusal(
            team=submission.team, file=submission.path.name, reason=reason
        )
        write_refused(self._output, (refusal,), (submission.team,))
        scored = team.scored if team else 0
        self._tell(ScoredTeam(team=submission.team, scored=scored, refusal=reason))

    def _tell(self, found: ScoredTeam) -> None:
        """Tell what became of a team."""
        self._done.append(found)
        if self._listeners.on_team:
            self._listeners.on_team(found)
