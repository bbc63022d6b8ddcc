"""Makes the page of a team that was measured: its scores, times and memory.

Times and memory are the team's own measurements, and tell nothing of a reference; more
digits than these mean nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from flare.common.text import count, listing
from flare.reports.charts import memory_charts, spread_chart
from flare.reports.evaluation import (
    NOTE,
    ORGANISERS_NOTE,
    organiser_page,
    participant_page,
)
from flare.reports.measuring import alike
from flare.reports.model import (
    Cell,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Tile,
    Words,
    number_cell,
    pairs_table,
    table,
    text_cell,
)
from flare.reports.scores import own_scores
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    MeasuredCase,
    RunStatus,
    read_by_case,
)
from flare.results.measurement_json import MEASUREMENT_JSON, read_measurement
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluation
from flare.results.traces_csv import MemoryCurve, read_curve, traced_cases

FAILED = "s5"
"""The shade of a case that failed."""

DOUBTFUL = "s3"
"""That of one whose values somebody should look at."""

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
                raise ValueError(f"{value!r} is no whole number")

    @property
    def is_ok(self) -> bool:
        """Whether the case has values."""
        return self.status == RunStatus.OK.value

    @property
    def seconds(self) -> float | None:
        """The running time."""
        return None if self.hundredths is None else self.hundredths / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamRuns:
    """What a team may know of its runs, and what organisers are told of them."""

    runs: tuple[Run, ...]
    curves: tuple[MemoryCurve, ...]
    doubts: tuple[tuple[str, str], ...] = ()
    """Of cases: what makes their values doubtful, or why they were run again."""
    measured: tuple[tuple[str, str], ...] = ()
    """How the team was measured, and with what."""


def read_runs(folder: Path, *, is_organiser: bool) -> TeamRuns:
    """What a team's runs took; none if it was not measured yet.

    Raises
    ------
    RankingError
        If efficiency.csv or a trace cannot be read, or a case is there twice.
    """
    file = folder / EFFICIENCY_CSV
    by_case = read_by_case(file) if file.exists() else {}
    rows = [by_case[case] for case in sorted(by_case)]
    found = TeamRuns(
        runs=tuple(_run(row, is_organiser=is_organiser) for row in rows),
        curves=tuple(read_curve(folder, case) for case in traced_cases(folder)),
    )
    if not is_organiser:
        return found
    doubts = (
        (row.case, before + text)
        for row in rows
        for column, before in (("doubts", ""), ("rerun", "run again: "))
        if (text := row.text(column))
    )
    told = read_measurement(folder / MEASUREMENT_JSON)
    measured = dict(told.settings)
    if told.noise_s is not None:
        measured["spread of an empty container"] = f"{told.noise_s:.2f} s"
    return replace(
        found,
        doubts=tuple(doubts),
        measured=tuple((k.replace("_", " "), text) for k, text in measured.items()),
    )


def _run(row: MeasuredCase, *, is_organiser: bool) -> Run:
    """A row; what stands beside a status that is not ``ok`` does not count."""

    def whole(column: str, parts: int = 1) -> int | None:
        value = row.value(column) if row.is_ok else None
        return None if value is None else round(value * parts)

    is_secret = row.is_unfinished and not is_organiser
    message = NOT_AT_FAULT if is_secret else row.message
    return Run(
        case=row.case,
        status=row.status or "missing",
        hundredths=whole("runtime_s", 100),
        gpu_mb=whole("max_gpu_memory_mb"),
        host_mb=whole("max_host_memory_mb"),
        message="" if row.is_ok else message,
    )


# --- The page ---------------------------------------------------------------------


def team_page(folder: Path, *, is_organiser: bool) -> Page:
    """The page of a team's folder.

    Raises
    ------
    MetricsFileError, RankingError
        If a file cannot be read.
    """
    found = read_runs(folder, is_organiser=is_organiser)
    page = _scores(folder, found.runs, is_organiser=is_organiser)
    doubts = [
        f"{count(len(cases), 'case')}: {text} ({listing(cases)})"
        for text, cases in alike(found.doubts)
    ]
    parts = _run_parts(found.runs, {case for case, _ in found.doubts})
    memory, measured = "Memory over time", "How it was measured"
    how = [pairs_table("As measurement.json has it", found.measured)]
    means, *others = page.sections or [Section("means", "", "", [])]
    box = [Lines(doubts, "Values to be looked at")] if doubts else []
    return replace(
        page,
        lead=[*page.lead, *box],
        tiles=[*(page.tiles[:-1] if found.runs else page.tiles), *_tiles(found.runs)],
        sections=[
            means,
            Section("runs", "Runs", "Runs of the cases", parts),
            *others,
            Section("memory", memory, memory, memory_charts(found.curves)),
            Section("measured", measured, measured, how if found.measured else []),
        ],
    )


def _scores(folder: Path, runs: tuple[Run, ...], *, is_organiser: bool) -> Page:
    """The page of the scores, to which the runs are added."""
    file, name = folder / METRICS_JSON, folder.resolve().name
    if not file.exists():
        note = ORGANISERS_NOTE if is_organiser else NOTE
        title = f"{name}: runs of {count(len(runs), 'case')}"
        return Page(title=title, sections=(), audience_note=note)
    evaluation = read_evaluation(file)
    if is_organiser:
        return organiser_page(evaluation, name=name)
    # The team's image was given these cases by their names, and was told how each
    # ended: unlike those of references, they are no secret.
    known = frozenset(run.case for run in runs)
    return participant_page(own_scores(evaluation, known), name=name)


def _tiles(runs: tuple[Run, ...]) -> list[Tile]:
    """How the runs ended, and what they took."""
    if not runs:
        return []
    ended = Counter(run.status for run in runs if not run.is_ok)
    times = [run.hundredths for run in runs if run.hundredths is not None]
    memory = [run.gpu_mb for run in runs if run.gpu_mb is not None]
    mean, why = "none", "a mean would hide the runs without a time"
    if len(times) == len(runs):
        mean, why = f"{sum(times) / len(times) / 100:.2f} s", ""
    rows = (
        (
            "Runs that worked",
            f"{len(runs) - ended.total()} of {len(runs)}",
            ", ".join(f"{n} {status}" for status, n in ended.items()),
        ),
        ("Mean running time", mean, why),
        (
            "Most GPU memory",
            f"{max(memory)} MB" if memory else "none",
            "of any run" if memory else "",
        ),
    )
    return [Tile(name=name, value=value, note=note) for name, value, note in rows]


def _run_parts(runs: tuple[Run, ...], doubtful: Collection[str]) -> list[Part]:
    """A dot for each case in each chart, and a row for each in the table."""
    if not runs:
        return [Words("No case has been run.")]
    cases, charts, rows = [run.case for run in runs], [], []
    for title, metric, values, decimals in (
        ("Running time of each case, in s", "runtime_s", [r.seconds for r in runs], 2),
        ("GPU memory of each case, in MB", "", [r.gpu_mb for r in runs], 0),
        ("Memory of the container, in MB", "", [r.host_mb for r in runs], 0),
    ):
        if known := sum(value is not None for value in values):
            words = f"{known} values of {count(len(cases), 'case')}, as in the tables"
            chart = spread_chart(
                metric,
                ["runs"],
                [values],
                has_boxes=True,
                title=title,
                summary=words,
                tips=(cases, [values], decimals),
            )
            charts.append(chart)
    for run in sorted(runs, key=lambda run: run.is_ok):
        is_doubtful = run.is_ok and run.case in doubtful
        text = run.status + (", doubtful" if is_doubtful else "")
        shade = DOUBTFUL if is_doubtful else "" if run.is_ok else FAILED
        row = (
            run.case,
            Cell(text, css=f"left {shade}".strip()),
            number_cell(run.seconds, decimals=2),
            number_cell(run.gpu_mb, decimals=0),
            number_cell(run.host_mb, decimals=0),
            text_cell(run.message),
        )
        rows.append(row)
    caption = (
        f"Status, time and memory of {count(len(runs), 'case')}, failed ones first"
    )
    heads = ("case", "status", "running time (s)", "GPU memory (MB)", "memory (MB)")
    texts = ("case", "status", "message")
    return [Pair(charts), table(caption, (*heads, "message"), rows, words=texts)]
