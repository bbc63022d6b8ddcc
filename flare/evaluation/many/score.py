"""Scores the submissions of all teams, on several processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Literal

from flare.challenge.answers import ANSWER_SUFFIXES
from flare.challenge.formats import ALL_SUFFIXES, SUFFIXES
from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, InputError, OrganiserError, OutputError
from flare.common.executor import Done, Pool, bulkhead, completed
from flare.common.files import is_folder, remove_tree
from flare.common.text import listing, safe
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.evaluate import results_of
from flare.evaluation.many.cases import (
    REFERENCES,
    SCORES_SQLITE,
    Batch,
    KeptScores,
    TeamCase,
    attempts_of,
    digest_of,
    outcome_key,
    rules_key,
    score_batch,
    split,
)
from flare.evaluation.many.cluster import opened_pool
from flare.evaluation.many.teams import (
    UNPACKED,
    OpenTeam,
    ScoredTeam,
    ScoredTeams,
    ScoringProgress,
    Submission,
    TeamTables,
    explanation_lines,
    find_submissions,
    most_bytes,
    opened_submission,
)
from flare.evaluation.options import EvaluationOptions, check_count
from flare.evaluation.plan import Plan, file_checksum, plan_evaluation, with_options
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.unpack import NoRoomError
from flare.results.answers_csv import ANSWERS_CSV
from flare.results.archives_csv import Flag, Refusal
from flare.results.errors import MeasurementError
from flare.results.metrics_json import METRICS_JSON, prepare_output, write_results
from flare.results.team_folder import FolderLock, is_measured

TEAMS_AT_ONCE = 8
"""The number of teams that are scored together, case by case: a reference is read once
for all of them."""

MOST_OPEN_TEAMS = 2 * TEAMS_AT_ONCE
"""While workers are at the last cases of some teams, the next ones are opened."""

CHANGED = "it changed while it was evaluated"

USE = "scored into"
"""The words for this work in the message about a folder that another run has locked."""


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
    on_progress: Callable[[ScoringProgress], None] | None = None,
    on_team: Callable[[ScoredTeam], None] | None = None,
    on_start: Callable[[str], None] | None = None,
) -> ScoredTeams:
    """Score the predictions of all teams against a folder of reference labels.

    Each team's metrics.json has the bytes that `evaluate` and `write_metrics` give. The
    outcome of each case is kept in ``scores.sqlite``: the case is scored again only if
    one of its two files, the rules or this program have changed. A run that was stopped
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
    # Absolute, as a worker of a cluster may have been started in another folder.
    teams, ground_truth, output = (
        Path(folder).absolute() for folder in (teams, ground_truth, output)
    )
    if teams.resolve() == output.resolve():
        raise InputError(
            f"{safe(output)}: it is the folder of what teams have submitted",
            "Choose another folder for the results.",
        )
    teams_with_results = {file.parent.name for file in output.glob(f"*/{METRICS_JSON}")}
    submissions = find_submissions(teams, teams_with_results)

    with FolderLock(output, USE), KeptScores(output / SCORES_SQLITE) as kept_scores:
        run = _Run(
            ground_truth=ground_truth,
            output=output,
            challenge=challenge,
            options=options,
            kept_scores=kept_scores,
            on_progress=on_progress,
            on_team=on_team,
        )
        folders = {"teams": teams, "reference labels": ground_truth, "results": output}
        open_pool = partial(opened_pool, workers, cluster, folders, on_start)
        outcomes = run.score(submissions, open_pool)
    submitting_teams = {submission.team for submission in submissions}
    not_submitted = []
    for team in sorted(teams_with_results - submitting_teams):
        # A team that was measured has sent a container, which lies elsewhere.
        if not is_measured(output / team):
            not_submitted.append(team)
    return ScoredTeams(
        output=output, teams=outcomes, not_submitted=tuple(not_submitted)
    )


@dataclass(kw_only=True)
class _Run:
    """One run over all teams, whose folder of results is locked."""

    ground_truth: Path
    output: Path
    challenge: Challenge
    options: EvaluationOptions
    kept_scores: KeptScores
    on_progress: Callable[[ScoringProgress], None] | None
    on_team: Callable[[ScoredTeam], None] | None

    def __post_init__(self) -> None:
        # All teams have the same references: each file is read only once for these two.
        self._checksum = cache(file_checksum)
        self._rules = with_options(self.challenge, self.options)
        self._most_bytes = cache(partial(most_bytes, self.ground_truth, self._rules))
        self._reference_times: dict[Path, int] = {}
        self._tables = TeamTables(self.output)
        self._open_teams: dict[str, OpenTeam] = {}
        self._waiting: list[Submission] = []
        self._outcomes: list[ScoredTeam] = []
        self._scored_cases = 0
        self._kept_cases = 0
        self._cases_to_score = 0
        self._started_teams = 0

    def score(
        self,
        submissions: Sequence[Submission],
        open_pool: Callable[[], AbstractContextManager[Pool]],
    ) -> tuple[ScoredTeam, ...]:
        """Score all submissions; their outcomes, by the names of the teams."""
        remove_tree(self.output / UNPACKED)  # left by a run that was stopped
        batches = self._batches(submissions)
        try:
            # The pool is opened late: if an earlier run has scored all cases, there is
            # no batch, and no process has to be started.
            first_batch = next(batches, None)
            if first_batch:
                with open_pool() as pool:
                    self._work(pool, chain([first_batch], batches), len(submissions))
                    while self._waiting:  # some may have to do so several times
                        batches, self._waiting = self._batches(self._waiting), []
                        self._work(pool, batches, len(submissions))
        finally:
            for team in self._open_teams.values():
                team.open_files.close()
            REFERENCES.clear()  # of one worker, which is this process
            remove_tree(self.output / UNPACKED)
            self._tables.write()
        return tuple(sorted(self._outcomes, key=lambda outcome: outcome.team))

    def _work(self, pool: Pool, batches: Iterable[Batch], team_count: int) -> None:
        """Score batches, and tell the progress of a run over all teams."""
        for done in completed(pool, score_batch, batches, self._parts):
            # A batch that is lost, as its workers died, ends its team alone.
            if done.error and not done.is_lost:
                raise done.error
            self._take(done)
            self._tell_progress(team_count)

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """A batch for each case of a lost one, but for teams that are refused by now.

        Each of their cases could kill one worker after the other, while others wait.
        """
        for case in batch.cases:
            team = self._open_teams[case.team]
            if team.error:
                team.pending_cases -= 1
                self._finish_done()
            else:
                yield replace(batch, cases=(case,))

    def _tell_progress(self, team_count: int) -> None:
        if self.on_progress:
            # Teams to come are expected to have as many cases as those before them.
            expected = round(self._cases_to_score * team_count / self._started_teams)
            self.on_progress(
                ScoringProgress(
                    teams=len(self._outcomes),
                    all_teams=team_count,
                    scored=self._scored_cases,
                    kept=self._kept_cases,
                    left=max(0, expected - self._scored_cases),
                )
            )

    def _batches(self, submissions: Sequence[Submission]) -> Iterator[Batch]:
        """Open some teams at a time, and divide the cases of all into batches."""
        teams: list[OpenTeam] = []
        for submission in submissions:
            self._started_teams += 1
            team = None
            with self._refusing(submission):
                team = self._open_or_wait(submission)
            if team and self._begin(team):
                teams.append(team)
            if len(teams) == TEAMS_AT_ONCE:
                yield from self._batches_of(teams)
                teams = []
        yield from self._batches_of(teams)

    def _begin(self, team: OpenTeam) -> bool:
        """Count the cases of a team that have to be scored; finish it without any."""
        self._open_teams[team.submission.team] = team
        team.pending_cases = len(team.plan.prepared.pairs) - len(team.attempts)
        self._cases_to_score += team.pending_cases
        if not team.pending_cases:
            self._finish(team)
        return team.pending_cases > 0

    def _batches_of(self, teams: Iterable[OpenTeam]) -> Iterator[Batch]:
        """The cases of teams that have to be scored, those of a reference together."""
        groups: defaultdict[str, list[TeamCase]] = defaultdict(list)
        for team in teams:
            name, check_only = team.submission.team, team.plan.check_only
            for pair in team.plan.prepared.pairs:
                if pair.case not in team.attempts:
                    case = TeamCase(team=name, pair=pair, check_only=check_only)
                    groups[pair.case].append(case)
        for cases in split(groups.values()):
            yield Batch(cases=cases, challenge=self._rules)

    def _refusing(
        self, submission: Submission, team: OpenTeam | None = None
    ) -> AbstractContextManager[None]:
        """Refuse a team for an error within the block, unless it concerns all teams."""
        refuse = partial(self._refuse, submission, team)
        return bulkhead(self.output, submission.team, refuse)

    def _open_or_wait(self, submission: Submission) -> OpenTeam | None:
        """A team; None if it has to wait until open teams are done.

        It may have no room for its files while theirs are there.
        """
        if len(self._open_teams) < MOST_OPEN_TEAMS:
            try:
                return self._open_team(submission)
            except NoRoomError:
                if not self._open_teams:
                    raise
        self._waiting.append(submission)
        self._started_teams -= 1  # it will be started anew
        return None

    def _open_team(self, submission: Submission) -> OpenTeam:
        """A team, with the outcomes of its cases that an earlier run has kept."""
        label_maps = ALL_SUFFIXES if self.challenge.npz.prediction else SUFFIXES
        with ExitStack() as open_files:
            predictions = open_files.enter_context(
                opened_submission(
                    submission,
                    self.output,
                    self._most_bytes,
                    (*label_maps, *ANSWER_SUFFIXES),
                )
            )
            plan = plan_evaluation(
                predictions, self.ground_truth, self.challenge, self.options
            )
            self._check_references(plan)
            check_only = plan.check_only
            key_of_rules = rules_key(plan.rules, check_only=check_only)
            team = OpenTeam(submission=submission, plan=plan, rules_key=key_of_rules)
            has_any = self.kept_scores.has_any()
            for pair in plan.prepared.pairs:
                reference_sha256 = self._checksum(pair.reference.path)
                if not has_any:
                    continue  # in a first run, predictions are read once
                digests = reference_sha256, digest_of(pair)
                key = outcome_key(team.rules_key, pair, digests)
                attempt = self.kept_scores.find(pair, key, check_only=check_only)
                if attempt:
                    team.attempts[pair.case] = attempt
            self._kept_cases += len(team.attempts)
            # From here on, the team closes its files; an error has closed them so far.
            team.open_files = open_files.pop_all()
        return team

    def _check_references(self, plan: Plan) -> None:
        """Raise a GroundTruthError if references came, went or changed meanwhile.

        Later teams would be refused for it, or scored by others than those before them.
        """
        files = {reference.path for reference in plan.references}
        files |= {sheet.file for sheet in plan.sheets}
        times = {file: file.stat().st_mtime_ns for file in files}
        self._reference_times = self._reference_times or times
        changed = {file for file, _ in self._reference_times.items() ^ times.items()}
        if changed:
            names = listing(sorted(safe(file.name) for file in changed))
            raise GroundTruthError(f"{names}: {CHANGED}")

    def _take(self, done: Done[Batch, tuple[Attempt, ...]]) -> None:
        """Take and keep the outcomes of a batch; finish teams whose last one it was.

        They are kept for later runs under the digests of the bytes that were read. A
        prediction that was too large to be read as a whole has no digest.
        """
        outcomes: dict[str, Attempt] = {}
        teams = [self._open_teams[case.team] for case in done.item.cases]
        for team, attempt in zip(teams, attempts_of(done), strict=True):
            team.pending_cases -= 1
            if attempt.fault:
                team.error = team.error or attempt.fault
                continue
            self._check_reference(attempt)
            team.attempts[attempt.pair.case] = attempt
            self._scored_cases += 1
            key = outcome_key(team.rules_key, attempt.pair, attempt.digests)
            if key not in outcomes:  # of equal files of several teams, one was scored
                team.scored += 1
            _, prediction_sha256 = attempt.digests
            if prediction_sha256:
                outcomes[key] = attempt
        self.kept_scores.keep(outcomes.items())
        self._finish_done()

    def _finish_done(self) -> None:
        for team in tuple(self._open_teams.values()):
            if not team.pending_cases:
                self._finish(team)

    def _check_reference(self, attempt: Attempt) -> None:
        """Raise a GroundTruthError if another reference was read than was digested."""
        reference = attempt.pair.reference
        reference_sha256, _ = attempt.digests
        if reference_sha256 != self._checksum(reference.path):
            raise GroundTruthError(f"{safe(reference.name)}: {CHANGED}")

    def _finish(self, team: OpenTeam) -> None:
        """Close a team, and tell its scores, or why it was refused."""
        outcome = None
        del self._open_teams[team.submission.team]
        with team.open_files, self._refusing(team.submission, team):
            outcome = self._write_scores(team)
        if outcome:
            self._tell(outcome)

    def _write_scores(self, team: OpenTeam) -> ScoredTeam:
        """Write metrics.json of a team, and its flags; raise if an error ended it."""
        if team.error:
            raise team.error
        # They came in any order; results and problems have the order of the cases.
        attempts = [team.attempts[pair.case] for pair in team.plan.prepared.pairs]
        results = results_of(team.plan, attempts, checksum=self._checksum)
        name = team.submission.team
        with FolderLock(self.output / name, USE):
            write_results(results, self.output / name)
        flags = tuple(explanation_lines(attempts))
        flag_rows = [Flag(team=name, flag=line) for line in flags]
        self._tables.replace(name, refusals=[], flags=flag_rows)
        cases = results.provenance.cases
        return ScoredTeam(
            team=name,
            cases=cases,
            # Answers are scored anew each time.
            scored=team.scored if team.plan.references else cases,
            means=results.totals,
            zeros=tuple(low_score.reason for low_score in results.low_scores),
            flags=flags,
        )

    def _refuse(
        self, submission: Submission, team: OpenTeam | None, error: FlareError
    ) -> None:
        """Record why a team was refused, and remove its metrics.json of an earlier run.

        A FlareError is raised if it concerns all teams.
        """
        concerns_all = isinstance(error, (OrganiserError, OutputError))
        # Without the folder of references, every team would be refused.
        if concerns_all or not is_folder(self.ground_truth):
            raise error
        folder = self.output / submission.team
        is_foreign = folder.is_symlink() or is_measured(folder)
        is_locked = isinstance(error, MeasurementError)  # by another process
        if not is_foreign and not is_locked and (folder / METRICS_JSON).is_file():
            prepare_output(folder)  # removes the file
            (folder / ANSWERS_CSV).unlink(missing_ok=True)
        refusal = Refusal(
            team=submission.team, archive=submission.path.name, problem=str(error)
        )
        self._tables.replace(submission.team, refusals=[refusal], flags=[])
        self._tell(
            ScoredTeam(
                team=submission.team,
                cases=len(team.plan.prepared.pairs) if team else 0,
                scored=team.scored if team else 0,
                refusal=str(error),
            )
        )

    def _tell(self, outcome: ScoredTeam) -> None:
        """Add a team to those that are done, and tell its outcome."""
        self._outcomes.append(outcome)
        if self.on_team:
            self.on_team(outcome)
