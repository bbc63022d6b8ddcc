"""Measures teams: runs their images case by case, and keeps what comes of it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from flare.archive import Archive
from flare.cases import Case
from flare.challenge import Challenge
from flare.efficiency import FILE_NAME, RunStatus, means, read_records
from flare.engine import Engine
from flare.errors import FlareError, MeasurementError, OutputError
from flare.evaluation import evaluate
from flare.files import csv_text, write_whole
from flare.gpu import NvmlSource
from flare.names import aligned, listing, safe, why
from flare.results import write_metrics
from flare.session import PREDICTIONS, Options, Session

_log = logging.getLogger(__name__)

OnRun = Callable[[str, str, str, int, int], None]
"""Told of each case: team, case, status, how many are done, of how many."""


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
    about_one = (options.new_archive, options.paper, options.rerun)
    if len(archives) > 1 and any(about_one):
        given = "--new-archive, --paper, --rerun"
        problem = "they are about one team, but several archives were given"
        raise MeasurementError(given, problem, "Measure it alone.")
    described = engine.describe()
    images_sha256 = _digest(cases)
    failures = _Failures()
    with ExitStack() as stack:
        sessions: list[Session] = []
        for archive in archives:
            with failures.noted(archive.team):
                session = Session(
                    archive,
                    results,
                    challenge,
                    engine,
                    options,
                    gpu,
                    described,
                    images_sha256,
                )
                stack.callback(failures.close, session)
                session.plan(cases)
                sessions.append(session)
        total = sum(len(session.todo) for session in sessions)
        order = _order(sessions, is_interleaved=options.is_interleaved)
        for done, (session, case, is_last) in enumerate(order, start=1):
            if session.team in failures.found:
                continue
            record = None
            with failures.noted(session.team):
                if not session.is_open:
                    session.open()
                record = session.run(case)
            if is_last or not record:
                failures.close(session)
            if on_run and record:
                on_run(session.team, case.name, record.status.value, done, total)
    return tuple(failures.found.items())


class _Failures:
    """Teams whose measurement has ended by an error.

    One team does not end the measurement of the others: not even by something that
    nobody has thought of, of which the log gets everything.
    """

    def __init__(self) -> None:
        self.found: dict[str, FlareError] = {}

    @contextmanager
    def noted(self, team: str) -> Iterator[None]:
        """Go on behind the block, whatever happens in it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  see above
            self.found.setdefault(team, _as_error(team, error))

    def close(self, session: Session) -> None:
        """Remove what a team's measurement has made."""
        with self.noted(session.team):
            session.close()


def _as_error(team: str, error: Exception) -> FlareError:
    """What has ended a team's measurement, as an error of ours."""
    if isinstance(error, FlareError):
        return error
    if isinstance(error, OSError):
        name = safe(str(error.filename or team))
        return OutputError(f"{name}: it cannot be written ({why(error)})")
    _log.error("Measuring %s has ended by an internal error", team, exc_info=error)
    problem = f"an internal error ({type(error).__name__}); the log has it"
    return MeasurementError(team, problem, "Please report it; the other teams went on.")


def _digest(cases: Sequence[Case]) -> str:
    """SHA-256 over the names and contents of all images."""
    digest = hashlib.sha256()
    for case in cases:
        with case.image.path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{case.name} {checksum}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _order(
    sessions: Sequence[Session], *, is_interleaved: bool
) -> Iterator[tuple[Session, Case, bool]]:
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


def write_refused(archives: Sequence[Archive], results: Path) -> None:
    """Write down which archives were refused, and why, in refused.csv.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    rows = [
        [archive.team, archive.path.name, archive.sha256, str(problem)]
        for archive in archives
        for problem in archive.problems
    ]
    columns = ["team", "archive", "archive_sha256", "problem"]
    write_whole(results / "refused.csv", csv_text(columns, rows))
