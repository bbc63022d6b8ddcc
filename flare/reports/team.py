"""Makes the page of a team that was measured: its scores, times and memory.

Times and memory are the team's own measurements, and tell nothing of a reference; more
digits than these mean nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from flare.challenge.metrics import lesions_by, metric_named
from flare.common.text import count, listing
from flare.ranking.answers import read_sheets
from flare.reports.charts import memory_charts, spread_chart, value_axis
from flare.reports.evaluation import (
    NOTE,
    ORGANISERS_NOTE,
    organiser_page,
    participant_page,
)
from flare.reports.measuring import alike, single_doubts
from flare.reports.model import (
    Cell,
    Chart,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    pairs_table,
    table_of_rows,
    text_cell,
)
from flare.reports.scores import own_scores
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_by_case
from flare.results.measurement_json import MEASUREMENT_JSON, read_measurement
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluation
from flare.results.scores import present
from flare.results.traces_csv import read_curves

FAILED = "s5"
"""The shade of a case that failed."""

DOUBTFUL = "s3"
"""The shade of a case whose values somebody should look at."""

CHARTS = (
    ("Running time of each case, in s", "runtime_s", 2),
    ("GPU memory of each case, in MB", "max_gpu_memory_mb", 0),
    ("Memory of the container, in MB", "max_host_memory_mb", 0),
)
"""The title of a chart, its column of efficiency.csv, and decimals."""

Columns = Mapping[str, Sequence[float | None]]
"""The values of columns of efficiency.csv: one for each run, None where it failed."""

NOT_AT_FAULT = "the computer of the organisers is at fault, not you; it is run again"
"""Stands in place of an engine's message, which is about the organisers' computer."""


def team_page(folder: Path, *, is_organiser: bool) -> Page:
    """The page of a team's folder.

    A MetricsFileError or a RankingError is raised if a file cannot be read.
    """
    file = folder / EFFICIENCY_CSV
    by_case = read_by_case(file) if file.exists() else {}
    runs = [by_case[case] for case in sorted(by_case)]
    columns = {}
    for _, name, _ in CHARTS:
        columns[name] = [run.value(name) if run.is_ok else None for run in runs]
    doubts = _doubts(runs) if is_organiser else []
    page = _scores(folder, by_case, is_organiser=is_organiser)
    means, *details = page.sections or [Section("means", "", "", [])]
    parts: list[Part] = [Words("No case has been run.")]
    if runs:
        doubtful = {case for case, _ in doubts}
        charts = _run_charts(runs, columns)
        parts = [Pair(charts), _run_table(runs, columns, doubtful, is_organiser)]
    curves = read_curves(folder)
    memory, measured = "Memory over time", "How it was measured"
    how = _measured(folder) if is_organiser else []
    return replace(
        page,
        lead=[*page.lead, *_doubt_box(doubts)],
        tiles=[*page.tiles[:-1], *_tiles(runs, columns)] if runs else page.tiles,
        sections=[
            means,
            Section("runs", "Runs", "Runs of the cases", parts),
            *details,
            Section("memory", memory, memory, memory_charts(curves)),
            Section("measured", measured, measured, how),
        ],
    )


def _doubts(runs: Sequence[MeasuredCase]) -> list[tuple[str, str]]:
    """Cases, and why somebody should look at their values."""
    doubts = []
    for run in runs:
        doubts += single_doubts(run.case, run.text("doubts"))
        if rerun := run.text("rerun"):
            doubts.append((run.case, f"run again: {rerun}"))
    return doubts


def _doubt_box(doubts: Sequence[tuple[str, str]]) -> list[Part]:
    """A line for each kind of doubt; no box without any."""
    lines = []
    for text, cases in alike(doubts):
        lines.append(f"{count(len(cases), 'case')}: {text} ({listing(cases)})")
    return [Lines(lines, "Values to be looked at")] if lines else []


def _scores(folder: Path, cases: Collection[str], *, is_organiser: bool) -> Page:
    file, name = folder / METRICS_JSON, folder.resolve().name
    if not file.exists():
        note = ORGANISERS_NOTE if is_organiser else NOTE
        title = f"{name}: runs of {count(len(cases), 'case')}"
        return Page(title=title, sections=(), audience_note=note)
    evaluation = read_evaluation(file)
    with lesions_by(evaluation.lesions):
        if is_organiser:
            sheets = read_sheets(file, evaluation)
            return organiser_page(evaluation, name=name, sheets=sheets)
        # The team's image was given these cases by their names, and was told how each
        # ended: unlike those of references, they are no secret.
        return participant_page(own_scores(evaluation, cases), name=name)


def _measured(folder: Path) -> list[Part]:
    measurement = read_measurement(folder / MEASUREMENT_JSON)
    pairs = {}
    for key, text in measurement.settings.items():
        name = f"{key[:-2]} (s)" if key.endswith("_s") else key
        pairs[name.replace("_", " ")] = text
    if measurement.noise_s is not None:
        pairs["spread of an empty container"] = f"{measurement.noise_s:.2f} s"
    return [pairs_table("As measurement.json has it", pairs.items())] if pairs else []


def _tiles(runs: Sequence[MeasuredCase], columns: Columns) -> list[Tile]:
    worked = sum(run.is_ok for run in runs)
    times = present(columns["runtime_s"])
    mean, why = "none", "a mean would hide the runs without a time"
    if len(times) == len(runs):
        mean, why = f"{fmean(times):.2f} s", ""
    memory = present(columns["max_gpu_memory_mb"])
    most, which = "none", ""
    if memory:
        most, which = f"{max(memory):.0f} MB", "of any run"
    share = f"{worked} of {len(runs)}"
    statuses = Counter(run.status or "missing" for run in runs if not run.is_ok)
    failures = ", ".join(f"{number} {status}" for status, number in statuses.items())
    return [
        Tile(name="Runs that worked", value=share, note=failures),
        Tile(name="Mean running time", value=mean, note=why),
        Tile(name="Most GPU memory", value=most, note=which),
    ]


def _run_charts(runs: Sequence[MeasuredCase], columns: Columns) -> list[Chart]:
    """A dot for each case in a chart of each column that has values."""
    cases, charts = [run.case for run in runs], []
    of_cases = f"values of {count(len(cases), 'case')}, as in the tables"
    for title, column, decimals in CHARTS:
        values = present(columns[column])
        if values:
            rows = [columns[column]]
            chart = spread_chart(
                value_axis(metric_named(column), values),
                ["runs"],
                rows,
                has_boxes=True,
                title=title,
                summary=f"{len(values)} {of_cases}",
                tips=(cases, rows, decimals),
            )
            charts.append(chart)
    return charts


def _run_table(
    runs: Sequence[MeasuredCase],
    columns: Columns,
    doubtful: Collection[str],
    is_organiser: bool,
) -> Table:
    """A row for each case, failed ones first."""
    rows = []
    measured = zip(runs, *columns.values(), strict=True)
    for run, seconds, *memory in sorted(measured, key=lambda row: row[0].is_ok):
        message = "" if run.is_ok else run.text("message")
        if run.is_unfinished and not is_organiser:
            message = NOT_AT_FAULT
        row = (
            run.case,
            _status_cell(run, run.case in doubtful),
            number_cell(seconds, decimals=2),
            *(number_cell(value, decimals=0) for value in memory),
            text_cell(message),
        )
        rows.append(row)
    cases = count(len(runs), "case")
    caption = f"Status, time and memory of {cases}, failed ones first"
    numbers = ("running time (s)", "GPU memory (MB)", "memory (MB)")
    words = ("case", "status", "message")
    heads = (*words[:2], *numbers, *words[2:])
    return table_of_rows(caption, heads, rows, words=words)


def _status_cell(run: MeasuredCase, is_doubtful: bool) -> Cell:
    """How a run ended, on a shade if it failed or is doubtful."""
    if not run.is_ok:
        return Cell(run.status or "missing", css=f"left {FAILED}")
    if is_doubtful:
        return Cell(f"{run.status}, doubtful", css=f"left {DOUBTFUL}")
    return Cell(run.status, css="left")
