"""Measures teams: runs their images case by case, and keeps what comes of it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from flare.archive import Archive
from flare.cases import Case
from flare.challenge import Challenge
from flare.container import COMMAND, ContainerRun, Engine, Limits
from flare.efficiency import (
    FILE_NAME,
    CaseRecord,
    RunStatus,
    means,
    middle_run,
    read_records,
    record_of,
    write_records,
)
from flare.errors import (
    EngineError,
    FlareError,
    HostError,
    MeasurementError,
    OutputError,
)
from flare.evaluation import evaluate
from flare.gpu import NvmlSource, open_gpu
from flare.guard import clean_up, remove_tree, take_lock
from flare.hostrecord import RECORD, Record, describe_host
from flare.labelmaps import SUFFIXES
from flare.ledger import FILE_NAME as LEDGER
from flare.ledger import Entry, find_earlier, register
from flare.names import aligned, listing, safe, why
from flare.results import write_metrics
from flare.runner import Runner, label_maps
from flare.teamfolders import TRACES
from flare.traces import write_trace

PREDICTIONS = "predictions"
LOGS = "logs"
EMPTY_RUNS = 5
"""So many containers that do nothing tell what the engine itself costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How teams are measured."""

    limits: Limits
    interval_s: float = 0.1
    """Between two samples, as in the official scripts."""
    repeats: int = 1
    """Of each case; the one with the median running time counts."""
    has_warm_up: bool = True
    """Whether a first run, of the first case, is thrown away."""
    is_interleaved: bool = False
    """Whether teams take turns, case by case, instead of one after the other."""
    rerun: tuple[str, ...] = ()
    """Cases that are run again."""
    reason: str = ""
    """Why they are."""
    new_archive: str = ""
    """Why a team may send another archive."""
    paper: str = ""
    """Of the team, for the ledger."""


OnRun = Callable[[str, str, str, int, int], None]
"""Told of each case: team, case, status, how many are done, of how many."""


@contextmanager
def open_limits(arguments: Any) -> Iterator[tuple[Limits, NvmlSource | None]]:
    """The limits of containers, and their GPU, as the command line gives them.

    Raises
    ------
    DeviceError
        If there is no such GPU.
    """
    limits = Limits(
        timeout_s=arguments.timeout,
        memory=arguments.memory,
        shm_size=arguments.shm_size,
    )
    if arguments.gpu == "none":
        yield limits, None
        return
    with open_gpu(arguments.gpu) as gpu:
        yield replace(limits, gpu=gpu.device.uuid), gpu


def measure(
    archives: Sequence[Archive],
    cases: Sequence[Case],
    results: Path,
    challenge: Challenge,
    *,
    engine: Engine,
    options: Options,
    gpu: NvmlSource | None = None,
    on_run: OnRun | None = None,
) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of some teams on all cases, and write what comes of it.

    What was measured before is kept: only cases without a result, with an engine error,
    or in ``options.rerun`` are run.

    Parameters
    ----------
    archives : sequence of Archive
        That have no problems.
    cases : sequence of Case
        What they are run on.
    results : Path
        A folder for each team is made in it.
    challenge : Challenge
        Its rules decide what a wrong output is, and what the maximum of memory is.
    engine : Engine
        What they run in.
    options : Options
        How they are measured.
    gpu : NvmlSource, optional
        The GPU of ``options.limits``.
    on_run : callable, optional
        Told of each case as it ends.

    Returns
    -------
    tuple of tuple of str and FlareError
        Teams whose measurement could not begin or go on, and why; what was measured
        of them is kept.

    Raises
    ------
    HostError
        If no team can be measured.
    """
    unknown = sorted(set(options.rerun) - {case.name for case in cases})
    if unknown:
        problem = (
            f"there is no such case to run again, but {listing(c.name for c in cases)}"
        )
        raise MeasurementError(listing(unknown), problem, "Check --rerun.")
    if len(archives) > 1 and (options.new_archive or options.paper):
        given = "--new-archive, --paper"
        problem = "they are about one team, but several archives were given"
        raise MeasurementError(given, problem, "Measure it alone.")
    described = engine.describe()
    images_sha256 = _digest(cases)
    failed: list[tuple[str, FlareError]] = []
    with ExitStack() as stack:
        sessions = []
        for archive in archives:
            try:
                session = _Session(
                    archive,
                    results,
                    challenge,
                    engine,
                    options,
                    gpu,
                    described,
                    images_sha256,
                )
            except HostError as error:
                failed.append((archive.team, error))
                continue
            session.plan(cases)
            sessions.append(session)
            stack.callback(session.close)
        total = sum(len(session.todo) for session in sessions)
        order = _order(sessions, is_interleaved=options.is_interleaved)
        for done, (session, case, is_last) in enumerate(order, start=1):
            if session.has_failed:
                continue
            try:
                if not session.is_open:
                    session.open(stack)
                record = session.run(case)
            except (HostError, OSError) as error:
                # One team does not end the measurement of the others.
                session.has_failed = True
                failed.append((session.team, _as_error(session.team, error)))
                session.close()
                continue
            if on_run:
                on_run(session.team, case.name, record.status.value, done, total)
            if is_last:
                session.close()
    return tuple(failed)


def _as_error(team: str, error: HostError | OSError) -> FlareError:
    """An error that a user can read."""
    if isinstance(error, HostError):
        return error
    name = safe(str(error.filename or team))
    return OutputError(f"{name}: it cannot be written ({why(error)})")


def _digest(cases: Sequence[Case]) -> str:
    """SHA-256 over the names and contents of all images."""
    digest = hashlib.sha256()
    for case in cases:
        with case.image.path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{case.name} {checksum}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _put_aside(ledger: Path, entry: Entry) -> None:
    """Move what was measured of an archive that another one may replace.

    It is kept in RESULTS/.replaced, where `flare rank` does not look.

    Raises
    ------
    MeasurementError
        If another archive may not replace it.
    """
    earlier = find_earlier(ledger, entry)
    folder = ledger.parent / entry.team
    if earlier and earlier.archive_sha256 != entry.archive_sha256 and folder.exists():
        name = f"{entry.team}-{earlier.archive_sha256[:12]}"
        target = ledger.parent / ".replaced" / name
        target.parent.mkdir(exist_ok=True)
        remove_tree(target)
        folder.rename(target)


def _order(
    sessions: Sequence[_Session], *, is_interleaved: bool
) -> Iterator[tuple[_Session, Case, bool]]:
    """What is run, one after the other, and whether it is a team's last case."""
    if is_interleaved:
        rounds = max((len(session.todo) for session in sessions), default=0)
        for n in range(rounds):
            for session in sessions:
                if n < len(session.todo):
                    yield session, session.todo[n], n == len(session.todo) - 1
    else:
        for session in sessions:
            for case in session.todo:
                yield session, case, case is session.todo[-1]


class _Session:
    """One team, from the ledger to its last case."""

    def __init__(
        self,
        archive: Archive,
        results: Path,
        challenge: Challenge,
        engine: Engine,
        options: Options,
        gpu: NvmlSource | None,
        described: Mapping[str, str],
        images_sha256: str,
    ) -> None:
        self.team, self.is_open, self.has_failed = archive.team, False, False
        self._images_sha256 = images_sha256
        self._archive, self._challenge, self._engine = archive, challenge, engine
        self._options, self._gpu, self._described = options, gpu, described
        self._folder = results / archive.team
        today = date.today().isoformat()
        entry = Entry(
            team=archive.team,
            archive_sha256=archive.sha256,
            paper=options.paper,
            date=today,
            reason=options.new_archive,
        )
        # Before anything of the team is read, so that nobody else changes it.
        self._lock = take_lock(archive.tag)
        try:
            clean_up(engine, self._folder)
            ledger = results / LEDGER
            with closing(take_lock(str(ledger.resolve()))):
                _put_aside(ledger, entry)
                self._record = Record(self._folder / RECORD, self._settings())
                register(ledger, entry)
        except BaseException:
            self._lock.close()
            raise
        self._records = read_records(self._folder / FILE_NAME)
        self.todo: list[Case] = []

    def plan(self, cases: Sequence[Case]) -> None:
        """Decide which cases are to be run."""
        again = (RunStatus.ENGINE_ERROR,)
        self.todo = [
            case
            for case in cases
            if case.name not in self._records
            or self._records[case.name].status in again
            or case.name in self._options.rerun
        ]

    def _settings(self) -> dict[str, Any]:
        """What must not change while the team is measured."""
        limits, options = self._options.limits, self._options
        return {
            "archive_sha256": self._archive.sha256,
            "gpu": limits.gpu,
            "timeout_s": limits.timeout_s,
            "memory": limits.memory,
            "shm_size": limits.shm_size,
            "processes": limits.processes,
            "interval_s": options.interval_s,
            "repeats": options.repeats,
            "challenge_sha256": self._challenge.checksum,
            "images_sha256": self._images_sha256,
            "processor": describe_host()["processor"],
        }

    def open(self, stack: ExitStack) -> None:
        """Load the image, and see what the engine itself costs."""
        options = self._options
        self._runner = stack.enter_context(
            Runner(
                self._archive,
                self._folder,
                engine=self._engine,
                limits=options.limits,
                interval_s=options.interval_s,
                gpu=self._gpu,
                lock=self._lock,
            )
        )
        self.is_open = True
        empty = [self._runner.run_empty() for _ in range(EMPTY_RUNS)]
        self._write_record(self._runner.image, empty)
        if options.has_warm_up:
            with self._runner.run_case(self.todo[0], self._challenge):
                pass

    def close(self) -> None:
        """Remove the image, before the next team's is loaded."""
        if self.is_open:
            self._runner.close()
        self._lock.close()

    # --- Running ------------------------------------------------------------------

    def run(self, case: Case) -> CaseRecord:
        """Run a case, all its repeats, and write its row."""
        rerun = self._rerun_note(case)
        if case.name in self._records:
            # If this is interrupted, the case is run once more: neither its old values
            # nor its old prediction count.
            message = "it is being run again"
            self._keep(
                CaseRecord(
                    case=case.name,
                    status=RunStatus.ENGINE_ERROR,
                    message=message,
                    rerun=rerun,
                )
            )
        runs: list[ContainerRun] = []
        record: CaseRecord | None = None
        for _ in range(self._options.repeats):
            try:
                with self._runner.run_case(case, self._challenge) as (found, outputs):
                    runs.append(found.run)
                    status, message = found.status, found.message
                    log = self._write_log(case, found.run)
                    if status is RunStatus.OK:
                        self._keep_prediction(case, outputs)
                    else:
                        message += f"; see {log}"
            except EngineError as error:
                status, message = RunStatus.ENGINE_ERROR, error.finding
            if status is not RunStatus.OK:
                record = CaseRecord(
                    case=case.name, status=status, message=message, rerun=rerun
                )
                self._drop_prediction(case)
                break
        if record is None:
            record = record_of(
                case.name,
                runs,
                rule=self._challenge.max_gpu_memory,
                cpus=os.cpu_count() or 1,
                rerun=rerun,
            )
        if runs:
            trace = middle_run(runs).trace
            write_trace(trace, self._folder / TRACES / f"{case.name}.csv")
        self._keep(record)
        return record

    def _keep(self, record: CaseRecord) -> None:
        """Write the row of a case."""
        self._records[record.case] = record
        write_records(self._records.values(), self._folder / FILE_NAME)

    def _rerun_note(self, case: Case) -> str:
        """Why a case is run again, and what had come of it before."""
        before = self._records.get(case.name)
        if not before or case.name not in self._options.rerun:
            return before.rerun if before else ""
        was = before.status.value
        if before.runtime_s is not None:
            was += f", {before.runtime_s:.2f} s"
        note = f"{self._options.reason} (before: {was})"
        return f"{before.rerun}; {note}" if before.rerun else note

    # --- Files --------------------------------------------------------------------

    def _keep_prediction(self, case: Case, outputs: Path) -> None:
        """Copy the label map of a case, and nothing that it may lead to."""
        self._drop_prediction(case)
        target = self._folder / PREDICTIONS
        target.mkdir(exist_ok=True)
        (source,) = label_maps(outputs)
        suffix = next(s for s in SUFFIXES if source.name.lower().endswith(s))
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        part = target / f".{case.name}.part"
        with os.fdopen(descriptor, "rb") as content, part.open("wb") as file:
            shutil.copyfileobj(content, file)
        part.replace(target / f"{case.name}{suffix}")

    def _drop_prediction(self, case: Case) -> None:
        """Remove what an earlier run of a case has predicted."""
        for suffix in SUFFIXES:
            file = self._folder / PREDICTIONS / f"{case.name}{suffix}"
            file.unlink(missing_ok=True)

    def _write_log(self, case: Case, run: ContainerRun) -> str:
        """Keep what the container has written; the name of the file."""
        file = self._folder / LOGS / f"{case.name}.log"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(run.log)
        return f"{LOGS}/{file.name}"

    def _write_record(self, image: str, empty: Sequence[float]) -> None:
        """Write down all that may matter when the values are questioned."""
        limits = self._options.limits
        command = (
            *self._engine.create_command(
                "IMAGE", Path("INPUTS"), Path("OUTPUTS"), limits, "KEY"
            ),
            shlex.join(COMMAND),
        )
        session = {
            "team": self.team,
            "archive": self._archive.path.name,
            "image": image,
            "engine": dict(self._described),
            "engine_cost_s": {
                "median": round(median(empty), 4),
                "smallest": round(min(empty), 4),
                "largest": round(max(empty), 4),
                "runs": len(empty),
            },
            "host": describe_host(),
            "gpu": asdict(self._gpu.device) if self._gpu else None,
            "command": " ".join(command),
            "warm_up": self._options.has_warm_up,
            "interleaved": self._options.is_interleaved,
            "doubts": list(self._archive.doubts),
        }
        self._record.add(session)


# --- The evaluation ---------------------------------------------------------------


def evaluate_team(
    folder: Path,
    ground_truth: Path,
    challenge: Challenge,
    cases: Sequence[Case],
    workers: int | None = None,
) -> None:
    """Score the predictions of a measured team, and write metrics.json beside them.

    Whatever the container has failed on scores 0, with its status as the reason.
    """
    records = read_records(folder / FILE_NAME)
    (folder / PREDICTIONS).mkdir(exist_ok=True)
    results = evaluate(
        folder / PREDICTIONS,
        ground_truth,
        challenge=challenge,
        on_bad_case="worst",
        grid="size",
        unknown_labels="ignore",
        workers=workers,
    )
    reasons = {
        name: f"{record.status.value}: {record.message}"
        for name, record in records.items()
        if record.status is not RunStatus.OK
    }
    scored = tuple(
        replace(case, failure=reasons[case.case])
        if case.failure and case.case in reasons
        else case
        for case in results.cases
    )
    efficiency = means(records.values(), len(cases))
    write_metrics(replace(results, cases=scored, efficiency=efficiency), folder)


def team_table(folder: Path, team: str) -> str:
    """What was measured of a team, as text."""
    records = read_records(folder / FILE_NAME)
    counts = {
        status.value: sum(record.status is status for record in records.values())
        for status in RunStatus
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    rows = [["case", "status", "seconds", "GPU memory in MB", ""]]
    rows += [
        [
            safe(record.case),
            record.status.value,
            "-" if record.runtime_s is None else f"{record.runtime_s:.2f}",
            "-"
            if record.max_gpu_memory_mb is None
            else f"{record.max_gpu_memory_mb:.0f}",
            record.message or record.doubts,
        ]
        for _, record in sorted(records.items())
    ]
    return "\n".join([f"{team}: {found}", *aligned(rows), f"Wrote {safe(folder)}"])
