"""Measures teams: runs their images case by case, and keeps what comes of it."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, OutputError
from flare.common.text import aligned, listing, nearest, safe, why
from flare.evaluation.evaluate import evaluate
from flare.measuring.archive.reading import Archive
from flare.measuring.cases import Case
from flare.measuring.engine import Engine
from flare.measuring.sampling.gpu import NvmlSource
from flare.measuring.team import Options, Session
from flare.results import refused_csv
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    RunStatus,
    means,
    read_records,
)
from flare.results.errors import MeasurementError
from flare.results.metrics_json import write_metrics
from flare.results.refused_csv import Refusal
from flare.results.roll_call import TOLD
from flare.results.scores import Results
from flare.results.team_folder import PREDICTIONS

_log = logging.getLogger(__name__)

OnRun = Callable[[str, str, str, int, int], None]
"""Told of each case: team, case, status, how many are done, of how many."""

OnTeam = Callable[[str], None]
"""Told of each team that is measured to the end."""


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
    on_team: OnTeam | None = None,
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
    on_team : callable, optional
        Told of each team as soon as its last case is done.

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
        near = nearest(unknown[0], [case.name for case in cases])
        problem = f"there is no such case to run again{near}"
        raise MeasurementError(listing(unknown), problem, "Check --rerun.")
    about_one = (options.new_archive, options.paper, options.rerun)
    if len(archives) > 1 and any(about_one):
        given = "--new-archive, --paper, --rerun"
        problem = "they are about one team, but several archives were given"
        raise MeasurementError(given, problem, "Measure it alone.")
    described = engine.describe()
    images_sha256 = _digest(cases)
    failures = Failures()
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
        before = len(cases) * len(sessions) - total
        if before:
            going_on = ", going on" if total else ""
            _log.info("%d of %d cases are done%s", before, before + total, going_on)
        for session in sessions:
            if on_team and not session.todo:
                on_team(session.team)
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
            if on_team and is_last and session.team not in failures.found:
                on_team(session.team)
    return tuple(failures.found.items())


class Failures:
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
    workers: int | None = None,
) -> Results:
    """Score the predictions of a measured team, and write metrics.json beside them.

    Whatever the container has failed on scores 0, with its status as the reason. What
    was measured is kept.
    """
    records = read_records(folder / EFFICIENCY_CSV)
    (folder / PREDICTIONS).mkdir(exist_ok=True)
    reasons = {
        name: f"{record.status.value}: {record.message}"
        for name, record in records.items()
        if record.status is not RunStatus.OK
    }
    results = evaluate(
        folder / PREDICTIONS,
        ground_truth,
        challenge=challenge,
        on_bad_case="worst",
        grid="size",
        unknown_labels="ignore",
        workers=workers,
        absent=reasons,
        is_measured=True,
    )
    scored = tuple(
        replace(case, failure=reasons[case.case])
        if case.failure and case.case in reasons
        else case
        for case in results.cases
    )
    efficiency = means(records.values(), len(results.cases))
    results = replace(results, cases=scored, efficiency=efficiency)
    write_metrics(results, folder)
    return results


def count_done(folder: Path) -> int:
    """Cases of a team that need not be run again; 0 if that cannot be read."""
    try:
        records = read_records(folder / EFFICIENCY_CSV).values()
    except MeasurementError:
        return 0
    return sum(record.status is not RunStatus.ENGINE_ERROR for record in records)


def team_table(folder: Path, team: str, results: Results | None = None) -> str:
    """What was measured of a team, and why cases score 0, as text.

    Parameters
    ----------
    folder : Path
        Of the team.
    team : str
        Its name.
    results : Results, optional
        Its scores, if it was scored.
    """
    records = read_records(folder / EFFICIENCY_CSV)
    counts = {
        status.value: sum(record.status is status for record in records.values())
        for status in RunStatus
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    texts = {case: r.message or r.doubts for case, r in sorted(records.items())}
    shared = {text: cases for text, cases in _by_text(texts).items() if len(cases) > 1}
    named = {case for cases in shared.values() for case in cases}
    rows = [["case", "status", "seconds", "GPU memory in MB", ""]]
    rows += [
        [
            safe(record.case),
            record.status.value,
            "-" if record.runtime_s is None else f"{record.runtime_s:.2f}",
            "-"
            if record.max_gpu_memory_mb is None
            else f"{record.max_gpu_memory_mb:.0f}",
            "" if record.case in named else texts[record.case],
        ]
        for _, record in sorted(records.items())
    ]
    notes = [
        f"{len(cases)} of {len(records)} cases: {text}"
        for text, cases in shared.items()
    ]
    zeros = zeros_lines(results) if results else ()
    lines = [f"{team}: {found}", *aligned(rows), *notes, *zeros]
    return "\n".join([*lines, f"Wrote {safe(folder)}"])


def _by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Cases by what is said of them, which names them CASE and no seconds."""
    found: dict[str, list[str]] = {}
    for case, text in texts.items():
        if text:
            plain = re.sub(r"\bafter \d+\.\d s", "after some time", text)
            found.setdefault(plain.replace(case, "CASE"), []).append(case)
    return found


def zeros_lines(results: Results) -> tuple[str, ...]:
    """Why cases score 0, a line for each reason; what the evaluation warns of first."""
    lines = [line for line in results.warnings if TOLD.search(line)]
    reasons = {
        case.case: case.failure or "no organ of the reference was found"
        for case in results.cases
        if case.dsc == 0 and case.nsd == 0
    }
    if not any(" score 0" in line for line in lines):
        count = len(results.cases)
        lines += [
            f"{len(cases)} of {count} cases score 0: {text}"
            for text, cases in _by_text(reasons).items()
        ]
    return tuple(lines)


def write_refused(archives: Sequence[Archive], results: Path) -> None:
    """Write down which archives were refused, and why, in refused.csv.

    Teams that are not among these archives stay in it as they are.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    refusals = [
        Refusal(
            team=archive.team,
            file=archive.path.name,
            archive_sha256=archive.sha256,
            reason=str(problem),
        )
        for archive in archives
        for problem in archive.problems
    ]
    refused_csv.write_refused(results, refusals, {a.team for a in archives})
