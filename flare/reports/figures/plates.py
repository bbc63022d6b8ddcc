"""Writes figures: each as SVG and PDF, in two widths, and the numbers behind it."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flare.common.errors import OutputError
from flare.common.files import csv_text, write_whole
from flare.common.installation import __version__, install_remedy
from flare.common.text import safe
from flare.reports.figures.style import WIDTHS_MM, drawing_style, quiet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTIONS = "captions.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A figure, and what it is drawn from."""

    name: str
    """How its files begin."""
    caption: str
    """What it shows, and how it is read."""
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    """Whatever is drawn, in full precision."""
    draw: Callable[[str], Figure]
    """Draws it for ``column`` or ``page``."""


def check_figures(folder: Path) -> None:
    """See that the library which draws the figures is installed, before all else.

    Raises
    ------
    OutputError
        If matplotlib is not installed; says how to install it here.
    """
    try:
        with quiet():
            importlib.import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        remedy = install_remedy("matplotlib", "plots")
        problem = f"{safe(folder)}: matplotlib, which draws figures, is not installed"
        raise OutputError(problem, remedy) from error


def write_plates(plates: Iterable[Plate], folder: Path) -> None:
    """Write all figures into a folder, and what they show into captions.txt.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    captions = []
    with drawing_style():
        for plate in plates:
            numbers = csv_text(plate.columns, plate.rows)
            write_whole(folder / f"{plate.name}.csv", numbers)
            for width in WIDTHS_MM:
                figure = plate.draw(width)
                figure.draw_without_rendering()
                figure.set_layout_engine("none")  # laid out once, for both
                stem = f"{plate.name}_{width}"
                write_whole(folder / f"{stem}.svg", _saved(figure, "svg"))
                write_whole(folder / f"{stem}.pdf", _saved(figure, "pdf"))
            captions.append(f"{plate.name}: {plate.caption}\n")
    write_whole(folder / CAPTIONS, "\n".join(captions))


def _saved(figure: Figure, form: str) -> bytes:
    """A figure as a file; equal figures have equal bytes."""
    content = io.BytesIO()
    date = "Date" if form == "svg" else "CreationDate"
    told = {date: None, "Creator": f"FLARE evaluation kit {__version__}"}
    figure.savefig(content, format=form, metadata=told)
    return content.getvalue()
