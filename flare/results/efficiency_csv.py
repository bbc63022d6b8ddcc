"""Keeps what was measured of a team in efficiency.csv, a row for each case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from flare.challenge.formats import case_of
from flare.challenge.metrics import MEASURED
from flare.challenge.reading import ChallengeError
from flare.challenge.rules import Challenge
from flare.common.files import write_whole
from flare.common.schema import Amount, Count, Length, Positive, Text
from flare.common.text import nearest, safe
from flare.results.csv_rows import Row, cell_types, read_rows, read_table, rows_text
from flare.results.errors import MeasurementError, RankingError

if TYPE_CHECKING:
    import pandas as pd


EFFICIENCY_CSV = "efficiency.csv"


class RunStatus(Enum):
    """How the run of a case ended. Only the first status has values."""

    OK = "ok"
    FAILED = "failed"
    """The container ended with an exit code other than 0."""
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    NO_OUTPUT = "no output"
    WRONG_OUTPUT = "wrong output"
    """The evaluation would refuse what it has written."""
    ENGINE_ERROR = "engine error"
    """The team is not at fault; the case is run again when measuring goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """What was measured of a team, a row for each case. Only a case whose status is
    `ok` has values; other programs may write fewer or further columns.
    """  # noqa: D205  a sentence of the public schema

    case: Text
    """Name of the case."""
    status: RunStatus
    """How the run ended."""
    runtime_s: Length | None = None
    """Seconds from the request to start the container until the engine says that it has
    ended; the engine's own cost is in it."""
    max_gpu_memory_mb: Amount | None = None
    """Maximum of GPU memory by the challenge's rule, in MB (2^20 bytes); null without a
    GPU."""
    peak_gpu_memory_mb: Amount | None = None
    """Plain maximum of GPU memory, in MB (2^20 bytes)."""
    idle_gpu_memory_mb: Amount | None = None
    """GPU memory that was allocated before the container was started, in MB (2^20
    bytes); it is not subtracted."""
    energy_j: Amount | None = None
    """Energy that the whole GPU has taken during the run, in J: its own counter after
    the run less before it. Nothing is subtracted; null where the GPU does not count."""
    idle_power_w: Amount | None = None
    """Power of the GPU during 10 s before the first case, in W, by the same counter."""
    gpu_memory_area_mb_s: Amount | None = None
    """Area under GPU memory, in MB s, by trapezoids and true times."""
    cpu_area_percent_s: Amount | None = None
    """Processor time as percent of all CPUs of the computer, times seconds."""
    cpu_s: Amount | None = None
    """Processor time of the container up to the last sample, in s."""
    max_host_memory_mb: Amount | None = None
    """The most memory of the container in any sample, in MB (2^20 bytes), without files
    that are only cached."""
    engine_runtime_s: Amount | None = None
    """The running time by the engine's own clock, in s, without the engine's cost."""
    runtime_s_spread: Amount | None = None
    """With repeats: the largest running time less the smallest, in s."""
    max_gpu_memory_mb_spread: Amount | None = None
    """With repeats: the largest maximum of GPU memory less the smallest, in MB (2^20
    bytes)."""
    repeats: Positive = 1
    """How often the case was run; 1 if a run failed."""
    samples: Count = 0
    """Samples of the run that counts; 0 if it failed."""
    mean_interval_s: Amount | None = None
    """Time between two samples, as achieved, in s; null with fewer than two."""
    longest_gap_s: Amount | None = None
    """The longest time without a sample, in s."""
    doubts: str = ""
    """What makes the values doubtful, separated by semicolons."""
    message: str = ""
    """Why there are no values, and where the log is."""
    rerun: str = ""
    """Why the case was run again, and how it had ended before."""

    def __post_init__(self) -> None:
        """See that a run that failed has no values."""
        if self.status is not RunStatus.OK:
            values = [getattr(self, name) for name in VALUES]
            if any(value is not None for value in values):
                raise ValueError(f"{self.case} is {self.status.value}, but has values")

    @property
    def is_finished(self) -> bool:
        """Whether it need not be run again: the engine has not failed."""
        return self.status is not RunStatus.ENGINE_ERROR


VALUES = tuple(field.name for field in fields(CaseRecord) if field.name in MEASURED)
"""Columns whose values were measured, and may be ranked; a run that failed has none."""


def means(records: Iterable[CaseRecord], cases: int) -> dict[str, float]:
    """Means over all cases, for a leaderboard; none if a case has failed.

    Means of the cases that worked would be better for whoever fails on long ones.
    """
    ok_records = [record for record in records if record.status is RunStatus.OK]
    means: dict[str, float] = {"cases": cases, "cases_ok": len(ok_records)}
    if len(ok_records) != cases:
        return means
    for name in VALUES:
        values = [getattr(record, name) for record in ok_records]
        if values and None not in values:
            means[f"{name}_mean"] = fmean(values)
    return means


class MeasuredCase(Row):
    """A row as any program may have written it: only case and status have to be there.

    Whatever stands beside a status that is not ``ok`` does not count.
    """

    __slots__ = ()

    @property
    def case(self) -> str:
        """Name of the case."""
        return case_of(self.text("case"))

    @property
    def status(self) -> str:
        """How the run ended."""
        return self.text("status")

    @property
    def is_ok(self) -> bool:
        """Whether the case has values."""
        return self.status == RunStatus.OK.value

    @property
    def is_unfinished(self) -> bool:
        """Whether the case has to be run again, through no fault of the team."""
        return self.status == RunStatus.ENGINE_ERROR.value


# --- The file ---------------------------------------------------------------------


def write_records(records: Iterable[CaseRecord], file: Path) -> None:
    """Write all rows, whole or not at all, in the order of the cases."""
    ordered = sorted(records, key=lambda record: record.case)
    write_whole(file, rows_text(CaseRecord, ordered))


def read_by_case(file: Path) -> dict[str, MeasuredCase]:
    """All rows by case, whichever program has written them.

    A RankingError is raised if the file cannot be read, has no column of cases or of
    statuses, or has a case twice.
    """
    rows: dict[str, MeasuredCase] = {}
    for row in read_rows(file, ("case", "status"), optional=VALUES):
        case = MeasuredCase(row.file, row.where, row.cells, row.marks)
        if case.case in rows:
            raise row.error(f"{safe(case.case)} is there twice")
        rows[case.case] = case
    return rows


def read_records(file: Path) -> dict[str, CaseRecord]:
    """All rows by case, as this program has written them; empty without a file.

    A MeasurementError is raised if it is there, but was not written by `write_records`.
    """
    if not file.exists():
        return {}
    try:
        return {record.case: record for record in read_table(file, CaseRecord)}
    except RankingError as error:
        problem = "it is not what this program has written"
        remedy = "Move it away, or give another --output."
        raise MeasurementError(str(file), problem, remedy) from error


def read_efficiency(file: str | Path) -> pd.DataFrame:
    """Read what was measured of a team, a row for each case.

    Parameters
    ----------
    file : str or Path
        An efficiency.csv, as ``flare measure`` writes it into the folder of a team.

    Returns
    -------
    DataFrame
        By case: its ``status``, and the other columns of the file. What was not
        measured is NaN; only the status ``ok`` has values.

    Raises
    ------
    RankingError
        If the file cannot be read; the message names the line.
    """
    import pandas as pd

    rows = read_by_case(Path(file))
    index = pd.Index(list(rows), name="case")
    types = {int: "Int64", float: "float64"}
    columns = {}
    for name, kind in cell_types(CaseRecord).items():
        if name != "case" and all(name in row.cells for row in rows.values()):
            read = Row.number if kind in types else Row.text
            values = [read(row, name) for row in rows.values()]
            columns[name] = pd.Series(values, index, dtype=types.get(kind))
    return pd.DataFrame(columns, index=index)


def ranked_by_others(challenge: Challenge, file: str) -> tuple[str, ...]:
    """Ranked metrics that nothing here makes, and that somebody else's table may have.

    A ChallengeError is raised if one is a misspelt name of a metric of ours.
    """
    metrics = []
    for place, rule in enumerate(challenge.ranking, start=1):
        if rule.metric in challenge.columns:
            continue
        # Of another organ, or of other answers.
        is_ours = rule.record.base in challenge.metrics
        is_ours |= bool(challenge.answers) and not rule.record.is_of_each_case
        meant = nearest(rule.metric, challenge.columns)
        if is_ours or "?" in meant:
            raise ChallengeError(
                file,
                f"ranking[{place}].metric is {safe(repr(rule.metric))}, which nothing"
                f" here makes{meant}",
            )
        metrics.append(rule.metric)
    return tuple(metrics)
