"""Draws GPU memory over time from the traces of a team, without a display."""

from __future__ import annotations

import importlib
from pathlib import Path

from flare.common.errors import OutputError
from flare.common.installation import install_remedy
from flare.common.text import safe, why
from flare.results.errors import MeasurementError
from flare.results.traces_csv import TRACES, read_columns

PLOTS = "plots"

_COLUMNS = {
    "gpu_memory_mb": "GPU memory",
    "host_memory_mb": "memory of the container",
}
"""Columns of a trace that are drawn, and what they are called."""


def check_plots() -> None:
    """See that the library which draws the pictures is installed.

    Raises
    ------
    MeasurementError
        If matplotlib is not installed; says how to install it here.
    """
    try:
        importlib.import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        remedy = install_remedy("matplotlib", "plots")
        option, problem = "--plots", "matplotlib is not installed"
        raise MeasurementError(option, problem, remedy) from error


def draw_traces(folder: Path) -> tuple[Path, ...]:
    """Draw a picture of each trace of a team, plots/CASE.png.

    Raises
    ------
    MeasurementError
        If matplotlib is not installed.
    RankingError
        If a trace cannot be read.
    OutputError
        If a picture cannot be written.
    """
    check_plots()
    from matplotlib.figure import Figure

    written = []
    for trace in sorted((folder / TRACES).glob("*.csv")):
        rows = [numbers for _, numbers in read_columns(trace, ("seconds", *_COLUMNS))]
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.add_subplot(
            title=safe(trace.stem), xlabel="seconds", ylabel="MB (2^20 bytes)"
        )
        for number, name in enumerate(_COLUMNS.values(), start=1):
            points = [(row[0], row[number]) for row in rows if row[number] is not None]
            if points:
                axes.step(*zip(*points, strict=True), where="post", label=name)
        axes.set_ylim(bottom=0)
        if axes.lines:
            axes.legend()
        file = folder / PLOTS / f"{trace.stem}.png"
        try:
            file.parent.mkdir(exist_ok=True)
            figure.savefig(file)
        except OSError as error:
            problem = f"{safe(file)}: it cannot be written ({why(error)})"
            raise OutputError(problem) from error
        written.append(file)
    return tuple(written)
