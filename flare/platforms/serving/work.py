"""Measures and scores the archive of a submission, and makes the metrics returned."""

from __future__ import annotations

import logging
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from flare.challenge.formats import case_of
from flare.common.errors import (
    OrganiserError,
    OutputError,
    SubmissionError,
    raise_problems,
)
from flare.common.text import count, printable, safe
from flare.measuring.archive.model import model_beside
from flare.measuring.archive.reading import Archive, read_archive
from flare.measuring.container import Conditions, opened_limits
from flare.measuring.engines.interface import find_engine
from flare.measuring.host import SPARE_BYTES, room
from flare.measuring.lanes.dispatch import Listener
from flare.measuring.measure import count_done, measure_teams, write_refused
from flare.measuring.rescore import evaluate_team
from flare.measuring.team import Job
from flare.measuring.trial import try_engine
from flare.results.archives_csv import LEDGER_CSV, read_ledger
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
)
from flare.results.errors import MeasurementError
from flare.results.metrics_json import METRICS_JSON, by_number
from flare.results.metrics_reading import case_names, read_evaluation
from flare.results.scores import statistics

REPEAT_S = 60.0
"""An OverdueSignal is raised again after this time if the block has not ended: Python
ignores what is raised within a destructor, for example."""

_log = logging.getLogger(__name__)

AGAIN = "handed in again, and served"
"""The reason in the ledger why another archive of a team is accepted."""

FOLDER = ".serve"
"""The folder in RESULTS of the journal, and of archives that were downloaded."""

RANKED = ("runtime_s", "max_gpu_memory_mb")
"""Metrics of efficiency that a platform can rank, besides scores."""


# --- The work ---------------------------------------------------------------------


class OverdueError(SubmissionError):
    """An image was not measured in the time that a submission has.

    The platform gives a submission 24 hours from the moment when it is claimed. The
    message has how many cases were done by then. If your image takes much longer than
    the challenge allows for a case, make it faster and submit it anew. If not, the
    computer that measures was busy or out of order: ask the organisers.

    A submission with this message has failed, and does not count against your limit.
    One that the platform has itself ended ("Cancelled") counts: the organisers can
    raise the limit by one. The platform takes no image twice ("already exists"): to
    submit the same one again, change a byte of it, as by building it with another
    `--label`.
    """

    code = "F18"
    remedy = (
        "Make it faster, or ask the organisers whether their computer was at fault."
    )

    def __init__(self, hours: float, done: int, cases: int) -> None:
        self.hours, self.done, self.cases = hours, done, cases
        limit = "an hour" if hours == 1 else f"{hours:g} hours"
        self.finding = (
            f"It was not measured within {limit}: {done} of {cases} cases were done"
        )


class OverdueSignal(BaseException):
    """The time of a submission is over, which ends its work as Ctrl-C would."""


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End the block after some time, in the main thread of a program.

    An OverdueSignal is raised: anywhere in the block; before it, if no time is left.
    """

    def end(*_: object) -> NoReturn:
        raise OverdueSignal

    if seconds <= 0:
        raise OverdueSignal
    old_handler = signal.signal(signal.SIGALRM, end)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_S)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        # A signal may interrupt the line above; the next one comes a minute later.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedWork:
    """The work on the archive of any submission."""

    job: Job
    """The cases, the rules and the options; each submission brings its archive."""
    worst: Mapping[str, float | None]
    """The value of each metric of `RANKED` for a case that has failed."""
    telling: Callable[[Job], AbstractContextManager[Listener]]
    """Opens, for the job of one archive, the listener that is told of each case."""
    is_named: bool
    """Whether an image must have the name of its team."""

    @property
    def cases(self) -> int:
        """The number of cases."""
        return len(self.job.cases)

    def check_host(self) -> None:
        """Check that this computer can measure.

        A HostError is raised if the engine, or the GPU, does not answer, there is no
        room, or an empty container cannot be run.
        """
        engine = find_engine(self.job.options.engine)
        engine.describe()  # raises if it does not answer
        free = room(self.job.results).free_bytes
        if free < SPARE_BYTES:
            raise OutputError(
                f"{safe(self.job.results)}: {free >> 20} MiB are free there",
                f"Make room: {SPARE_BYTES >> 20} MiB are needed.",
            )
        options = self.job.options
        with opened_limits(options.limits) as (limits, gpu):
            conditions = Conditions(limits=limits, contract=options.contract, gpu=gpu)
            try_engine(engine, self.job.results / FOLDER / "host", conditions)

    def check(self, file: Path) -> None:
        """Read an archive, without loading it.

        A SubmissionError is raised if it cannot be run.
        """
        archive = self._read(file)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(file.name), doubt)
        # This also takes an earlier refusal of the team out of the file.
        write_refused([archive], self.job.results)
        raise_problems(archive.problems)

    def measure(self, file: Path) -> None:
        """Run an image on all cases that are not done yet.

        A SubmissionError is raised if it cannot be loaded. A HostError is raised if
        something on this computer stands in the way.
        """
        archive, ledger = self._read(file), read_ledger(self.job.results / LEDGER_CSV)
        has_submitted = any(entry.team == archive.team for entry in ledger)
        # Without references, nothing is scored: that is a step of its own.
        options = replace(
            self.job.options,
            archives=file,
            ground_truth=None,
            new_archive=AGAIN if has_submitted else "",
        )
        job = replace(self.job, options=options, archives=(archive,))
        with self.telling(job) as listener:
            failed = measure_teams(job, listener)
        if failed:
            _, error = failed[0]  # the only team of the job
            if isinstance(error, SubmissionError):
                refused = replace(archive, problems=(error,))  # type: ignore[arg-type]
                write_refused([refused], self.job.results)
            raise error
        left = self.cases - self.done(archive.team)
        if left:
            raise MeasurementError(
                archive.team,
                f"{count(left, 'case')} ended by errors of the engine",
                "See its log; when the service is started again, it goes on there.",
            )

    def score(self, team: str) -> dict[str, Any]:
        """Score what an image has predicted, and return its metrics.

        A SubmissionError is raised if it has failed on every case.
        """
        folder, options = self.job.results / team, self.job.options
        if not options.ground_truth:
            return returned_metrics(folder, self.worst)
        evaluate_team(folder, options.ground_truth, self.job.challenge, options.workers)
        try:
            return returned_metrics(folder, self.worst)
        except OrganiserError as error:
            # It was written a moment ago, so nobody else's submission has to wait.
            raise RuntimeError(str(error)) from error

    def done(self, team: str) -> int:
        """The number of cases of a team that need not be run again."""
        return count_done(self.job.results / team)

    def _read(self, file: Path) -> Archive:
        return read_archive(
            file,
            is_named=self.is_named,
            contract=self.job.options.contract,
            model=model_beside(file),
        )


# --- What is returned -------------------------------------------------------------

REFUSED = "its output is refused"
"""The reason that is told for a case whose output could not be scored."""

NOT_TOLD = "What was let pass is in the organisers' metrics.json"
"""Stands for all warnings: these have labels and sizes, which a container chooses."""


class NoCaseError(SubmissionError):
    """An image has failed on every case.

    It was loaded and run as the challenge runs images, and gave no output that could be
    scored. The message has how the runs ended, and what was wrong with the first
    one; exit codes and logs are not told, as a container has seen CTs that you have
    not. Try the image on a computer of yours in the same way, without a network and
    with the same limits of time and memory: `flare check teamname.tar.gz --run
    CT.nii.gz`. An algorithm of grand-challenge.org needs `--contract algorithm`, too,
    with the paths of its interface.

    The platform also says that the algorithm "ran successfully, but the scoring
    failed": that is this error. Such a submission does not count against your limit.
    The platform takes no image twice ("already exists"), so send one that you have
    repaired, or of which at least a byte has changed.
    """

    code = "F17"
    remedy = "Try it as it is measured: flare check TEAMNAME.tar.gz --run CT.nii.gz."

    def __init__(self, cases: int, endings: str) -> None:
        self.cases, self.endings = cases, endings
        self.finding = f"0 of {cases} cases gave all that is scored: {endings}"


def returned_metrics(folder: Path, worst: Mapping[str, float | None]) -> dict[str, Any]:
    """A team's metrics.json with running times, GPU memory and statuses.

    A case that has failed has no running time in ``case``, and counts with the worst
    one in ``aggregates``: the platform drops a result that lacks a ranked value, and a
    mean over the cases that worked would reward failing on long ones.

    The author of an image may not see the CTs that it is run on. So no text tells
    anything that a container can choose, such as labels, exit codes and names.

    `worst` has the value of each metric of `RANKED` for a case that has failed: the
    limit, as no honest run takes more; None where there is no limit. A NoCaseError is
    raised if every case has failed. A RankingError, MetricsFileError, MeasurementError
    is raised if the files cannot be read.
    """
    content = read_evaluation(folder / METRICS_JSON).content
    records_by_case = read_records(folder / EFFICIENCY_CSV)
    # The metrics of answers alone name no case.
    cases = sorted(records_by_case)
    if content["case"]:
        cases = [*case_names(content).values()]
    records = [records_by_case[case] for case in cases]
    cases_ok = sum(record.status is RunStatus.OK for record in records)
    if not cases_ok:
        raise NoCaseError(len(records), _endings(records))
    by_case = {**content["case"]}
    by_case["status"] = by_number([record.status.value for record in records])
    aggregates = {**content["aggregates"]}
    for metric in RANKED:
        values = [getattr(record, metric) for record in records]
        if any(value is not None for value in values):
            by_case[metric] = by_number(values)
            aggregates |= _statistics(records, metric, worst[metric])
    aggregates["cases"] = len(records)
    aggregates["cases_ok"] = cases_ok
    aggregates["cases_failed"] = len(records) - cases_ok
    returned = {**content, "case": by_case, "aggregates": aggregates}
    returned["failed"] = _failures(content.get("failed") or {}, records_by_case)
    returned["warnings"] = [NOT_TOLD] if content.get("warnings") else []
    returned.pop("low_scores", None)
    return returned


def _statistics(
    records: Sequence[CaseRecord], metric: str, worst: float | None
) -> dict[str, float | None]:
    """The statistics of a metric over all cases; empty where a case has no value.

    A run that has failed counts with the worst value.
    """
    values: list[float] = []
    for record in records:
        value = worst
        if record.status is RunStatus.OK:
            value = getattr(record, metric)
        if value is None:
            return {}
        values.append(value)
    numbers = statistics(values)
    return {f"{metric}_{name}": number for name, number in numbers.items()}


def _failures(
    names: Iterable[str], records_by_case: Mapping[str, CaseRecord]
) -> dict[str, str]:
    """Why each failed case has no score, in words that no container has chosen."""
    failures = {}
    for name in names:
        failures[name] = REFUSED
        record = records_by_case.get(case_of(name))
        if record and record.status is not RunStatus.OK:
            failures[name] = f"{record.status.value}: {_reason(record)}"
    return failures


def _endings(records: Sequence[CaseRecord]) -> str:
    """The number of runs of each status, and the reason of the first; names no case."""
    counts = Counter(record.status.value for record in records)
    text = ", ".join(f"{number} {status}" for status, number in counts.items())
    first = _reason(records[0]).replace(records[0].case, "CASE")
    if len(first) > 90:  # it shares a line with other texts
        first = f"{first[:87]}..."
    return f"{text} (the first: {first})" if first else text


def _reason(record: CaseRecord) -> str:
    """Why a run has failed, without anything that its container has chosen.

    A container has seen a CT that its author has not, and could tell of it by the names
    of its files, its exit code, and the moment of its end. A wrong output is only told
    by the code of its error.
    """
    text, _, _ = record.message.partition("; see ")  # then comes a log
    if record.status is RunStatus.WRONG_OUTPUT:
        code = re.search(r" \[F\d\d\]$", text)
        return f"{REFUSED}{code[0]}" if code else REFUSED
    text = re.sub(r"\bexit code -?\d+", "an exit code other than 0", text)
    return printable(re.sub(r" after [\d.]+ s\b", "", text))
