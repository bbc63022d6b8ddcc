"""Keeps what was measured of a team in efficiency.csv, a row for each case."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from flare.challenge.formats import case_of
from flare.challenge.rules import Challenge
from flare.common.files import csv_text, write_whole
from flare.common.text import cell_text, safe
from flare.results.csv_rows import check_value, number, read_rows
from flare.results.errors import MeasurementError, RankingError

if TYPE_CHECKING:
    import pandas as pd


EFFICIENCY_CSV = "efficiency.csv"


SPREAD = "_spread"
"""METRIC_spread is the largest less the smallest value of a case's repeats."""


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
    """A row of efficiency.csv. Memory is in units of 2^20 bytes."""

    case: str
    status: RunStatus
    runtime_s: float | None = None
    """From the container's start to its end."""
    max_gpu_memory_mb: float | None = None
    """By the challenge's rule."""
    peak_gpu_memory_mb: float | None = None
    """The plain maximum."""
    idle_gpu_memory_mb: float | None = None
    """What was allocated before the container was started."""
    gpu_memory_area_mb_s: float | None = None
    """Area under the memory, by true time stamps."""
    cpu_area_percent_s: float | None = None
    """Processor time as percent of all CPUs of the computer, times seconds."""
    cpu_s: float | None = None
    max_host_memory_mb: float | None = None
    engine_runtime_s: float | None = None
    """The running time by the engine's own clock."""
    runtime_s_spread: float | None = None
    """Of the repeats: the largest less the smallest."""
    max_gpu_memory_mb_spread: float | None = None
    repeats: int = 1
    samples: int = 0
    mean_interval_s: float | None = None
    """Between samples, as achieved."""
    longest_gap_s: float | None = None
    doubts: str = ""
    """What makes the values doubtful."""
    message: str = ""
    """Why there are none, and where the log is."""
    rerun: str = ""
    """Why the case was run again, and how it had ended before."""

    def __post_init__(self) -> None:
        """See that a run that failed has no values."""
        if self.status is not RunStatus.OK:
            values = [getattr(self, name) for name in VALUES]
            if any(value is not None for value in values):
                text = f"{self.case} is {self.status.value}, but has values"
                raise ValueError(text)


VALUES = (
    *("runtime_s", "max_gpu_memory_mb", "peak_gpu_memory_mb", "idle_gpu_memory_mb"),
    *("gpu_memory_area_mb_s", "cpu_area_percent_s", "cpu_s", "max_host_memory_mb"),
    *("engine_runtime_s", "runtime_s_spread", "max_gpu_memory_mb_spread"),
)


COLUMNS = tuple(field.name for field in fields(CaseRecord))


WHOLE = ("repeats", "samples")


TEXTS = ("case", "doubts", "message", "rerun")


def means(records: Iterable[CaseRecord], cases: int) -> dict[str, float]:
    """Means over all cases, for a leaderboard; none if a case has failed.

    Means of the cases that worked would be better for whoever fails on long ones.
    """
    worked = [record for record in records if record.status is RunStatus.OK]
    found: dict[str, float] = {"cases": cases, "cases_ok": len(worked)}
    for name in VALUES if len(worked) == cases else ():
        values = [getattr(record, name) for record in worked]
        known = [value for value in values if value is not None]
        if known and len(known) == len(worked):
            found[f"{name}_mean"] = fmean(known)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCase:
    """A row as any program may have written it: only case and status have to be there.

    Whatever stands beside a status that is not ``ok`` does not count.
    """

    file: Path
    where: str
    """Such as ``line 2``."""
    case: str
    status: str
    message: str
    cells: Mapping[str, str]
    """By column."""

    @property
    def is_ok(self) -> bool:
        """Whether the case has values."""
        return self.status == RunStatus.OK.value

    @property
    def is_unfinished(self) -> bool:
        """Whether the case has to be run again, through no fault of the team."""
        return self.status == RunStatus.ENGINE_ERROR.value

    def number(self, column: str) -> float | None:
        """What a cell holds; None if it is empty, or not there.

        Raises
        ------
        RankingError
            If it is no number.
        """
        return number(self.cells.get(column, ""), self.file, self.where)

    def text(self, column: str) -> str:
        """What a cell says."""
        return cell_text(self.cells[column])

    def value(self, metric: str) -> float | None:
        """A value that a metric can have; None if there is none.

        Raises
        ------
        RankingError
            If the cell holds something else.
        """
        found = self.number(metric)
        if found is not None:
            check_value(found, metric, self.file, self.where)
        return found

    def spread(self, metric: str) -> float | None:
        """How far repeated measurements lay apart; None if that is not known."""
        return self.number(f"{metric}{SPREAD}")


# --- The file ---------------------------------------------------------------------


def records_text(
    records: Iterable[CaseRecord], columns: Sequence[str] = COLUMNS
) -> str:
    """The content of a file with some of the columns, in the order of the records."""
    rows = [
        [
            record.status.value if name == "status" else getattr(record, name)
            for name in columns
        ]
        for record in records
    ]
    return csv_text(columns, rows)


def write_records(records: Iterable[CaseRecord], file: Path) -> None:
    """Write all rows, whole or not at all, in the order of the cases.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    ordered = sorted(records, key=lambda record: record.case)
    write_whole(file, records_text(ordered))


def read_cases(file: Path) -> Iterator[MeasuredCase]:
    """All rows, whichever program has written them.

    Raises
    ------
    RankingError
        If the file cannot be read, or has no column of cases or of statuses.
    """
    for where, cells in read_rows(file, ("case", "status")):
        yield MeasuredCase(
            file=file,
            where=where,
            case=case_of(cell_text(cells["case"].strip())),
            status=cells["status"].strip(),
            message=cell_text(cells.get("message", "").strip()),
            cells=cells,
        )


def read_records(file: Path) -> dict[str, CaseRecord]:
    """All rows by case, as this program has written them; none if there is no file yet.

    Raises
    ------
    MeasurementError
        If it is there, but was not written by `write_records`.
    """
    if not file.exists():
        return {}
    try:
        records = [_record(row.cells) for row in read_cases(file)]
        return {record.case: record for record in records}
    except (RankingError, ValueError, KeyError) as error:
        problem = "it is not what this program has written"
        remedy = "Move it away, or give another --output."
        raise MeasurementError(str(file), problem, remedy) from error


def _record(cells: Mapping[str, str]) -> CaseRecord:
    """A record from the cells of its row."""
    values: dict[str, Any] = {"status": RunStatus(cells["status"])}
    for name in COLUMNS:
        if name in TEXTS:
            values[name] = cell_text(cells[name])
        elif name in WHOLE:
            values[name] = int(cells[name])
        elif name != "status":
            values[name] = float(cells[name]) if cells[name] else None
            if values[name] is not None and not math.isfinite(values[name]):
                raise ValueError(name)
    return CaseRecord(**values)


def read_efficiency(file: str | Path) -> pd.DataFrame:
    """What was measured of a team, a row for each case.

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

    file = Path(file)
    rows: dict[str, dict[str, object]] = {}
    for row in read_cases(file):
        if row.case in rows:
            problem = f"{row.where}: {safe(row.case)} is there twice"
            raise RankingError(str(file), problem)
        rows[row.case] = {"status": row.status}
        for name in COLUMNS:
            if name in row.cells and name not in ("case", "status"):
                is_text = name in TEXTS
                rows[row.case][name] = row.text(name) if is_text else row.number(name)
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("case")
    kinds = {name: "Int64" if name in WHOLE else "float64" for name in frame}
    return frame.astype({n: k for n, k in kinds.items() if n not in (*TEXTS, "status")})


def known_metrics(challenge: Challenge) -> tuple[str, ...]:
    """All metrics of a challenge that lie in RESULTS/TEAM, ranked or not."""
    organs = [organ.name for organ in challenge.organs]
    scores = (f"{score}_{organ}" for score in challenge.metrics for organ in organs)
    return (*challenge.metrics, *VALUES, *scores)
