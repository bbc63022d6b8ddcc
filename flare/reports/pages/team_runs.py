"""Says what the page of a measured team is made from.

Times and memory are the team's own measurements, and tell nothing of a reference; more
digits than these mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    MeasuredCase,
    RunStatus,
    read_by_case,
)
from flare.results.measurement_json import MEASUREMENT_JSON, read_measurement
from flare.results.traces_csv import MemoryCurve, read_curve, traced_cases

NOT_AT_FAULT = "the computer of the organisers is at fault, not you; it is run again"
"""Stands for what an engine has said, which is about the organisers' computer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the run of a case ended, and what it took; whole numbers, or None."""

    case: str
    status: str
    hundredths: int | None
    """Of a second: the running time."""
    gpu_mb: int | None
    """By the challenge's rule."""
    host_mb: int | None
    message: str
    """Why there are no values."""

    def __post_init__(self) -> None:
        """See that values are whole numbers."""
        for value in (self.hundredths, self.gpu_mb, self.host_mb):
            if value is not None and type(value) is not int:
                text = f"{value!r} is no whole number"
                raise ValueError(text)

    @property
    def is_ok(self) -> bool:
        """Whether the case has values."""
        return self.status == RunStatus.OK.value


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRuns:
    """What a team may know of its runs."""

    team: str
    runs: tuple[Run, ...]
    curves: tuple[MemoryCurve, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganisersNotes:
    """What organisers are told of the same runs."""

    doubts: tuple[tuple[str, str], ...]
    """Of cases: what makes their values doubtful, or why they were run again."""
    measured: tuple[tuple[str, str], ...]
    """How the team was measured, and with what."""


def read_runs(folder: Path, *, is_organiser: bool) -> TeamRuns:
    """What a team's runs took; none if it was not measured yet.

    Raises
    ------
    RankingError
        If efficiency.csv or a trace cannot be read, or a case is there twice.
    """
    return TeamRuns(
        team=folder.resolve().name,
        runs=tuple(
            _run(row, is_organiser=is_organiser) for row in _rows(folder).values()
        ),
        curves=tuple(read_curve(folder, case) for case in traced_cases(folder)),
    )


def _rows(folder: Path) -> Mapping[str, MeasuredCase]:
    """The rows of efficiency.csv by case."""
    file = folder / EFFICIENCY_CSV
    return dict(sorted(read_by_case(file).items())) if file.exists() else {}


def _run(row: MeasuredCase, *, is_organiser: bool) -> Run:
    """A row; what stands beside a status that is not ``ok`` does not count."""
    message = row.message
    if row.is_unfinished and not is_organiser:
        message = NOT_AT_FAULT
    return Run(
        case=row.case,
        status=row.status or "missing",
        hundredths=_whole(row, "runtime_s", 100),
        gpu_mb=_whole(row, "max_gpu_memory_mb"),
        host_mb=_whole(row, "max_host_memory_mb"),
        message="" if row.is_ok else message,
    )


def _whole(row: MeasuredCase, column: str, parts: int = 1) -> int | None:
    """A value in so many parts of its unit."""
    value = row.value(column) if row.is_ok else None
    return None if value is None else round(value * parts)


def read_notes(folder: Path) -> OrganisersNotes:
    """What organisers are told besides.

    Raises
    ------
    RankingError
        If efficiency.csv cannot be read.
    """
    doubts = [
        (row.case, text)
        for row in _rows(folder).values()
        for text in (_cell(row, "doubts"), _again(_cell(row, "rerun")))
        if text
    ]
    found = read_measurement(folder / MEASUREMENT_JSON)
    measured = {**found.made_with, **found.settings}
    if found.noise_s is not None:
        measured["spread of an empty container"] = f"{found.noise_s:.2f} s"
    return OrganisersNotes(
        doubts=tuple(doubts),
        measured=tuple((k.replace("_", " "), text) for k, text in measured.items()),
    )


def _cell(row: MeasuredCase, column: str) -> str:
    """What a cell says; nothing where there is no such column."""
    return row.text(column).strip() if column in row.cells else ""


def _again(rerun: str) -> str:
    """Why a case was run again."""
    return f"run again: {rerun}" if rerun else ""
