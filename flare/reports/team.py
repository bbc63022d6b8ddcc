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
from flare.results.efficiency_csv import EFFICIENCY_CSV, MeasuredCase, read_by_case
from flare.results.measurement_json import MEASUREMENT_JSON, read_measurement
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluation
from flare.results.traces_csv import read_curves

FAILED = "s5"
"""The shade of a case that failed."""

DOUBTFUL = "s3"
"""That of one whose values somebody should look at."""

Taken = Mapping[str, Sequence[float | None]]
"""By column of efficiency.csv: a value for each run, None where it failed."""

NOT_AT_FAULT = "the computer of the organisers is at fault, not you; it is run again"
"""Stands for what an engine has said, which is about the organisers' computer."""


def team_page(folder: Path, *, is_organiser: bool) -> Page:
    """The page of a team's folder.

    Raises
    ------
    MetricsFileError, RankingError
        If a file cannot be read.
    """
    file = folder / EFFICIENCY_CSV
    by_case = read_by_case(file) if file.exists() else {}
    rows = [by_case[case] for case in sorted(by_case)]
    taken = {
        column: [row.value(column) if row.is_ok else None for row in rows]
        for column in ("runtime_s", "max_gpu_memory_mb", "max_host_memory_mb")
    }
    doubts = [
        (row.case, before + text)
        for row in rows
        for column, before in (("doubts", ""), ("rerun", "run again: "))
        if is_organiser and (text := row.text(column))
    ]
    lines = [
        f"{count(len(cases), 'case')}: {text} ({listing(cases)})"
        for text, cases in alike(doubts)
    ]
    page = _scores(folder, by_case, is_organiser=is_organiser)
    means, *others = page.sections or [Section("means", "", "", [])]
    parts = _run_parts(rows, taken, {case for case, _ in doubts}, is_organiser)
    curves = read_curves(folder)
    memory, measured = "Memory over time", "How it was measured"
    how = _measured(folder) if is_organiser else []
    box = [Lines(lines, "Values to be looked at")] if lines else []
    return replace(
        page,
        lead=[*page.lead, *box],
        tiles=[*page.tiles[:-1], *_tiles(rows, taken)] if rows else page.tiles,
        sections=[
            means,
            Section("runs", "Runs", "Runs of the cases", parts),
            *others,
            Section("memory", memory, memory, memory_charts(curves)),
            Section("measured", measured, measured, how),
        ],
    )


def _scores(folder: Path, cases: Collection[str], *, is_organiser: bool) -> Page:
    """The page of the scores, to which the runs are added."""
    file, name = folder / METRICS_JSON, folder.resolve().name
    if not file.exists():
        note = ORGANISERS_NOTE if is_organiser else NOTE
        title = f"{name}: runs of {count(len(cases), 'case')}"
        return Page(title=title, sections=(), audience_note=note)
    evaluation = read_evaluation(file)
    if is_organiser:
        return organiser_page(evaluation, name=name)
    # The team's image was given these cases by their names, and was told how each
    # ended: unlike those of references, they are no secret.
    return participant_page(own_scores(evaluation, cases), name=name)


def _measured(folder: Path) -> list[Part]:
    """How the team was measured, and with what."""
    told = read_measurement(folder / MEASUREMENT_JSON)
    pairs = {key.replace("_", " "): text for key, text in told.settings.items()}
    if told.noise_s is not None:
        pairs["spread of an empty container"] = f"{told.noise_s:.2f} s"
    return [pairs_table("As measurement.json has it", pairs.items())] if pairs else []


def _tiles(runs: Sequence[MeasuredCase], taken: Taken) -> list[Tile]:
    """How the runs ended, and what they took."""
    ended = Counter(run.status or "missing" for run in runs if not run.is_ok)
    times, memory = (
        [value for value in taken[column] if value is not None]
        for column in ("runtime_s", "max_gpu_memory_mb")
    )
    mean, why = "none", "a mean would hide the runs without a time"
    if len(times) == len(runs):
        mean, why = f"{fmean(times):.2f} s", ""
    rows = (
        (
            "Runs that worked",
            f"{len(runs) - ended.total()} of {len(runs)}",
            ", ".join(f"{n} {status}" for status, n in ended.items()),
        ),
        ("Mean running time", mean, why),
        (
            "Most GPU memory",
            f"{max(memory):.0f} MB" if memory else "none",
            "of any run" if memory else "",
        ),
    )
    return [Tile(name=name, value=value, note=note) for name, value, note in rows]


def _run_parts(
    runs: Sequence[MeasuredCase],
    taken: Taken,
    doubtful: Collection[str],
    is_organiser: bool,
) -> list[Part]:
    """A dot for each case in each chart, and a row for each in the table."""
    if not runs:
        return [Words("No case has been run.")]
    cases, charts, rows = [run.case for run in runs], [], []
    for title, column, decimals in (
        ("Running time of each case, in s", "runtime_s", 2),
        ("GPU memory of each case, in MB", "max_gpu_memory_mb", 0),
        ("Memory of the container, in MB", "max_host_memory_mb", 0),
    ):
        values = taken[column]
        if known := sum(value is not None for value in values):
            words = f"{known} values of {count(len(cases), 'case')}, as in the tables"
            chart = spread_chart(
                column,
                ["runs"],
                [values],
                has_boxes=True,
                title=title,
                summary=words,
                tips=(cases, [values], decimals),
            )
            charts.append(chart)
    every = zip(runs, *taken.values(), strict=True)
    for run, seconds, *memory in sorted(every, key=lambda own: own[0].is_ok):
        is_doubtful = run.is_ok and run.case in doubtful
        text = (run.status or "missing") + (", doubtful" if is_doubtful else "")
        shade = DOUBTFUL if is_doubtful else "" if run.is_ok else FAILED
        is_secret = run.is_unfinished and not is_organiser
        message = NOT_AT_FAULT if is_secret else run.text("message")
        cells = (
            run.case,
            Cell(text, css=f"left {shade}".strip()),
            number_cell(seconds, decimals=2),
            *(number_cell(value, decimals=0) for value in memory),
            text_cell("" if run.is_ok else message),
        )
        rows.append(cells)
    caption = (
        f"Status, time and memory of {count(len(runs), 'case')}, failed ones first"
    )
    heads = ("case", "status", "running time (s)", "GPU memory (MB)", "memory (MB)")
    texts = ("case", "status", "message")
    return [Pair(charts), table(caption, (*heads, "message"), rows, words=texts)]
