"""Measures submissions of a service as ``flare measure`` does it, told on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flare.challenge.rules import Challenge
from flare.cli import json_log
from flare.cli.json_log import facts
from flare.cli.measuring import Told, opened_page
from flare.common.engine import Limits, find_engine
from flare.common.errors import OutputError, SubmissionError
from flare.common.text import safe
from flare.evaluation.problems import raise_problems
from flare.measuring.archive.model import model_beside
from flare.measuring.archive.reading import Archive, read_archive
from flare.measuring.container import opened_limits
from flare.measuring.host import SPARE_BYTES, room
from flare.measuring.inputs import Case
from flare.measuring.measure import measure_teams
from flare.measuring.options import Options
from flare.measuring.rescore import evaluate_team
from flare.measuring.summary import count_done, write_refused
from flare.measuring.team import Job
from flare.platforms.serving.source import Submission
from flare.platforms.serving.work import Forecast, Worst, returned_metrics
from flare.results.efficiency_csv import CaseRecord
from flare.results.errors import MeasurementError
from flare.results.ledger_csv import LEDGER_CSV, read_ledger

if TYPE_CHECKING:
    from flare.cli.live_page import LivePage

_log = logging.getLogger(__name__)

AGAIN = "handed in again, and served"
"""In the ledger, why another archive of a team is accepted."""


class ServedWork:
    """What is done with the archive of a submission.

    Parameters
    ----------
    options : Options
        How teams are measured; its archives are those of the submissions.
    challenge : Challenge
        Its rules.
    cases : sequence of Case
        What images are run on.
    worst : Worst
        What counts for a case that has failed.
    now : callable
        Date and time.
    is_named : bool
        Whether an image has to be called like its team.
    """

    def __init__(
        self,
        options: Options,
        challenge: Challenge,
        cases: Sequence[Case],
        worst: Worst,
        now: Callable[[], datetime],
        *,
        is_named: bool = True,
    ) -> None:
        self._options, self._challenge = options, challenge
        self._cases, self._worst, self._now = tuple(cases), worst, now
        self._results, self._is_named = options.output, is_named

    @property
    def cases(self) -> int:
        """How many there are."""
        return len(self._cases)

    def check_host(self) -> None:
        """See that this computer can measure.

        Raises
        ------
        HostError
            If the engine, or the GPU, does not answer, or there is no room.
        """
        find_engine(self._options.engine).describe()
        with opened_limits(self._options.limits):
            pass
        free = room(self._results).free_bytes
        if free < SPARE_BYTES:
            raise OutputError(
                f"{safe(self._results)}: {free >> 20} MiB are free there",
                f"Make room: {SPARE_BYTES >> 20} MiB are needed.",
            )

    def check(self, file: Path) -> None:
        """Read an archive, without loading it.

        Raises
        ------
        SubmissionError
            If it cannot be run.
        """
        archive = self._read(file)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(file.name), doubt)
        write_refused([archive], self._results)
        if archive.problems:
            raise_problems(archive.problems)

    def measure(self, file: Path, end: datetime) -> None:
        """Run an image on all cases that are not done yet.

        Raises
        ------
        SubmissionError
            If it cannot be loaded.
        HostError
            If something on this computer stands in the way.
        """
        archive = self._read(file)
        # What it predicts is scored in a step of its own.
        job = Job(
            options=replace(
                self._options,
                archives=file,
                ground_truth=None,
                new_archive=self._why_another(archive),
            ),
            challenge=self._challenge,
            results=self._results,
            cases=self._cases,
            archives=(archive,),
        )
        with opened_page(job) as page:
            failed = measure_teams(job, _Watched(job, page, Forecast(end, self._now)))
        for _, error in failed:
            if isinstance(error, SubmissionError):
                refused = replace(archive, problems=(error,))  # type: ignore[arg-type]
                write_refused([refused], self._results)
            raise error
        left = self.cases - self.done(archive.team)
        if left:
            raise MeasurementError(
                archive.team,
                f"{left} cases have ended by errors of the engine",
                "See its log; when the service is started again, it goes on there.",
            )

    def score(self, team: str) -> dict[str, Any]:
        """Score what an image has predicted, and return its metrics.

        Raises
        ------
        SubmissionError
            If it has failed on every case.
        """
        folder, options = self._results / team, self._options
        if options.ground_truth:
            evaluate_team(
                folder, options.ground_truth, self._challenge, options.workers
            )
        return returned_metrics(folder, self._worst)

    def done(self, team: str) -> int:
        """How many cases of a team need not be run again."""
        return count_done(self._results / team)

    def _read(self, file: Path) -> Archive:
        """What is known of an archive before it is loaded."""
        contract = self._options.contract
        return read_archive(
            file,
            is_named=self._is_named,
            contract=contract,
            model=model_beside(file),
        )

    def _why_another(self, archive: Archive) -> str:
        """Why the ledger accepts an archive; empty if it is a team's first one."""
        entries = read_ledger(self._results / LEDGER_CSV)
        others = [e for e in entries if e.team == archive.team]
        sent = (archive.sha256, archive.model.sha256 if archive.model else "")
        if others and (others[-1].archive_sha256, others[-1].model_sha256) != sent:
            return AGAIN
        return ""


class _Watched(Told):
    """Tells of each case also when the others will be done, if that is too late."""

    def __init__(self, job: Job, page: LivePage | None, forecast: Forecast) -> None:
        super().__init__(job, page)
        self._forecast = forecast

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell what came of a case, and when the others will be done."""
        super().on_run(team, record, number, total)
        status = record.status.value
        json_log.tell(
            f"{team}: {record.case}: {status}",
            team=team,
            case=record.case,
            status=status,
            runtime_s=record.runtime_s,
            max_gpu_memory_mb=record.max_gpu_memory_mb,
            done=number,
            of=total,
        )
        warning = self._forecast.warning(number, total)
        if warning:
            _log.warning("%s: %s", team, warning)


def warn_of_time(options: Options, cases: int, hours: float) -> None:
    """Say so if the cases of one submission can take longer than it has."""
    longest_h = cases * options.runs.repeats * options.limits.timeout_s / 3600
    if longest_h > hours:
        text = (
            "%d cases of up to %g s can take %.1f hours, and a submission has %g:"
            " consider a shorter --timeout"
        )
        _log.warning(text, cases, options.limits.timeout_s, longest_h, hours)


def worst_of(limits: Limits) -> Worst:
    """What counts for a case that has failed: the limits of time and memory."""
    with opened_limits(limits) as (_, gpu):
        total_mb = float(gpu.read().total_mb) if gpu else None
        return Worst(runtime_s=limits.timeout_s, max_gpu_memory_mb=total_mb)


def tell(step: str, submission: Submission, why: str) -> None:
    """Tell how far a submission is, or why it has failed."""
    found = facts(submission=submission.key, team=submission.team, step=step)
    said = f"failed: {why}" if why else step
    _log.info("%s: %s", safe(submission.title), said, extra=found)
