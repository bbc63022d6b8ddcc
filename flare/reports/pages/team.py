"""Makes the page of a team that was measured: its scores, times and memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.common.text import count, printable, safe
from flare.reports.pages.curves import memory_figures
from flare.reports.pages.evaluation import (
    ORGANISERS_NOTE,
    evaluation_content,
    evaluation_page,
)
from flare.reports.pages.page import page_html
from flare.reports.pages.participant import (
    NOTE,
    participant_content,
    participant_page,
)
from flare.reports.pages.parts import (
    NO_RESULT,
    Cell,
    Figure,
    Frame,
    Row,
    Table,
    Tile,
    heads,
    name_cell,
    number_cell,
    text_cell,
)
from flare.reports.pages.team_runs import (
    OrganisersNotes,
    Run,
    TeamRuns,
    read_notes,
    read_runs,
)
from flare.reports.pages.values_figures import values_figure
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import EvaluationFile, read_evaluation

FAILED = "s5"
"""The shade of a case that failed."""


def team_html(folder: Path, *, is_organiser: bool) -> str:
    """The page of a team's folder, as HTML.

    Raises
    ------
    MetricsFileError, RankingError
        If a file cannot be read.
    """
    found = read_runs(folder, is_organiser=is_organiser)
    notes = read_notes(folder) if is_organiser else None
    scored = folder / METRICS_JSON
    evaluation = read_evaluation(scored) if scored.exists() else None
    layout, content = _scores(evaluation, found, is_organiser=is_organiser)
    frame = content.pop("page")
    page = replace(
        frame,
        title=f"Results of {safe(found.team)}",
        sections=(*frame.sections, *_sections(found, notes)),
    )
    tiles = (*content.pop("tiles"), *run_tiles(found.runs))
    return page_html(
        "team.html",
        layout=layout,
        page=page,
        tiles=tiles,
        **content,
        runs=runs_table(found.runs) if found.runs else None,
        run_figures=run_figures(found.runs),
        failures=_failures_table(found.runs),
        curves=memory_figures(
            [(own.case, own) for own in found.curves], "case", "over time"
        ),
        doubts=_doubts_table(notes) if notes and notes.doubts else None,
        measured=_measured_table(notes) if notes and notes.measured else None,
    )


def _scores(
    evaluation: EvaluationFile | None, found: TeamRuns, *, is_organiser: bool
) -> tuple[str, dict[str, Any]]:
    """The template with the scores, and what it names."""
    if evaluation is None:
        note = ORGANISERS_NOTE if is_organiser else NOTE
        frame = Frame(title="", kicker="", sections=(), audience_note=note)
        return "bare.html", {"page": frame, "tiles": ()}
    if is_organiser:
        return "evaluation.html", evaluation_content(evaluation_page(evaluation))
    page = participant_page(evaluation)
    # The team's image was given these cases by their names, and was told how each
    # ended: unlike those of references, they are no secret.
    known = {run.case for run in found.runs}
    cases = tuple(
        replace(own, name=case) if case in known else own
        for case, own in zip(evaluation.scores.cases, page.cases, strict=True)
    )
    return "participant.html", participant_content(replace(page, cases=cases))


def _sections(
    found: TeamRuns, notes: OrganisersNotes | None
) -> tuple[tuple[str, str], ...]:
    """Anchors and names of what is told besides the scores."""
    every = (
        ("runs", "Runs", True),
        ("memory", "Memory over time", bool(found.curves)),
        ("doubts", "Doubts", bool(notes and notes.doubts)),
        ("measured", "How it was measured", bool(notes and notes.measured)),
    )
    return tuple((anchor, name) for anchor, name, is_there in every if is_there)


def run_tiles(runs: tuple[Run, ...]) -> tuple[Tile, ...]:
    """How the runs ended, and what they took."""
    if not runs:
        return ()
    ended = Counter(run.status for run in runs if not run.is_ok)
    times = [run.hundredths for run in runs if run.hundredths is not None]
    memory = [run.gpu_mb for run in runs if run.gpu_mb is not None]
    is_whole = len(times) == len(runs)
    return (
        Tile(
            name="Runs that worked",
            value=f"{len(runs) - ended.total()} of {len(runs)}",
            note=", ".join(f"{n} {safe(status)}" for status, n in ended.items()),
        ),
        Tile(
            name="Mean running time",
            value=f"{sum(times) / len(times) / 100:.2f} s" if is_whole else NO_RESULT,
            note="" if is_whole else "a mean would hide the runs without a time",
        ),
        Tile(
            name="Most GPU memory",
            value=f"{max(memory)} MB" if memory else NO_RESULT,
            note="of any run" if memory else "",
        ),
    )


def runs_table(runs: tuple[Run, ...]) -> Table:
    """A row for each case: how its run ended, and what it took."""
    return Table(
        caption=f"Status, time and memory of {count(len(runs), 'case')}",
        heads=heads(
            *("case", "status", "running time (s)", "GPU memory (MB)", "memory (MB)"),
            words=("case", "status"),
        ),
        rows=tuple(
            Row(
                cells=(
                    name_cell(run.case),
                    Cell(
                        text=printable(run.status),
                        css="word" if run.is_ok else f"word {FAILED}",
                    ),
                    _time_cell(run),
                    number_cell(run.gpu_mb, decimals=0),
                    number_cell(run.host_mb, decimals=0),
                )
            )
            for run in runs
        ),
    )


def _time_cell(run: Run) -> Cell:
    """The running time."""
    time = None if run.hundredths is None else run.hundredths / 100
    return number_cell(time, decimals=2)


def run_figures(runs: tuple[Run, ...]) -> list[Figure]:
    """A dot for each case: its running time, and its memory."""
    times = [None if run.hundredths is None else run.hundredths / 100 for run in runs]
    gpu = [None if run.gpu_mb is None else float(run.gpu_mb) for run in runs]
    host = [None if run.host_mb is None else float(run.host_mb) for run in runs]
    return [
        values_figure(
            title,
            [("runs", values)],
            [run.case for run in runs],
            is_score=False,
            is_time=values is times,
            has_boxes=True,
            decimals=2 if values is times else 0,
        )
        for title, values in (
            ("Running time of each case, in s", times),
            ("GPU memory of each case, in MB", gpu),
            ("Memory of the container, in MB", host),
        )
        if any(value is not None for value in values)
    ]


def _failures_table(runs: tuple[Run, ...]) -> Table | None:
    """The cases that failed, with the messages."""
    failed = [run for run in runs if not run.is_ok]
    if not failed:
        return None
    return Table(
        caption="Runs that failed, and their messages",
        heads=heads("case", "status", "message", words=("case", "status", "message")),
        rows=tuple(
            Row(
                cells=(
                    name_cell(run.case),
                    Cell(text=printable(run.status), css=f"word {FAILED}"),
                    text_cell(run.message or "none"),
                )
            )
            for run in failed
        ),
    )


def _doubts_table(notes: OrganisersNotes) -> Table:
    """What makes values doubtful."""
    return Table(
        caption="Values that are doubtful, and cases that were run again",
        heads=heads("case", "why", words=("case", "why")),
        rows=tuple(
            Row(cells=(name_cell(case), text_cell(text))) for case, text in notes.doubts
        ),
    )


def _measured_table(notes: OrganisersNotes) -> Table:
    """How the team was measured."""
    return Table(
        caption="As measurement.json has it",
        heads=heads("what", "value", words=("what", "value")),
        rows=tuple(Row(cells=(name_cell(k), text_cell(v))) for k, v in notes.measured),
        sortable=False,
    )
