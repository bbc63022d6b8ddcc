"""Progress: a line for each step, or a bar on a terminal."""

from __future__ import annotations

import logging
import sys
import time
import unicodedata
from collections.abc import Callable
from unicodedata import east_asian_width

from flare.cli import console

_log = logging.getLogger(__name__)

BAR_WIDTH = 30
"""Characters of the progress bar, where there is room for so many."""

LEAST_BAR = 8
"""A shorter bar tells nothing, and is left out."""

LEAST_TEXT = 12
"""So many columns a text needs before the time left is told."""

_GAP = "..."


class Progress:
    """Tells of each step, and how long the others may take.

    On a terminal, a bar that fits in one line is drawn, until something else is
    written. Elsewhere, each step is a line of the log.

    Parameters
    ----------
    every_s : float
        A line of the log comes at most so often.
    logs_time : bool
        Whether lines of the log tell the time left, too.
    clock : callable
        The time in seconds.
    """

    def __init__(
        self,
        *,
        every_s: float = 0.0,
        logs_time: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_s, self._logs_time, self._clock = every_s, logs_time, clock
        self._start = self._logged_at = clock()

    def __call__(self, number: int, total: int, text: str, *, known: int = 0) -> None:
        """Tell that so many steps are done, of which some were `known` at the start."""
        now = self._clock()
        position = f"[{number:0{len(str(total))}}/{total}]"
        left = "; done" if number == total else ""
        if known < number < total:
            step_s = (now - self._start) / (number - known)
            left = f"; about {step_s * (total - number) / 60:.0f} min left"
        if sys.stdout.isatty():
            console.draw(_line(number, total, position, text, left))
        elif now >= self._logged_at + self._every_s:
            self._logged_at = now
            _log.info("%s %s%s", position, text, left if self._logs_time else "")


def _line(number: int, total: int, position: str, text: str, left: str) -> str:
    """All in one line of the terminal.

    The last column stays free: some terminals begin a new line behind it. What is least
    needed goes first: the bar, the middle of the text, the time left.
    """
    room = console.terminal_columns() - 1
    line = f"{position} {text}{left}"
    width = min(room - _width(line) - 1, BAR_WIDTH + 2) - 2
    if width >= LEAST_BAR:
        full = width * number // max(total, 1)
        return f"[{'#' * full}{'.' * (width - full)}] {line}"
    if _width(line) > room:
        end = left if room - len(position + left) > LEAST_TEXT else ""
        text = _shortened(text, room - len(position) - 1 - len(end))
        line = _shortened(f"{position} {text}{end}", room)
    return line


def _width(text: str) -> int:
    """How many columns a text takes: letters of the Far East take two."""
    return sum(
        0 if unicodedata.combining(char) else 1 + (east_asian_width(char) in "WF")
        for char in text
    )


def _shortened(text: str, width: int) -> str:
    """A text in so many columns, the middle left out if need be."""
    if _width(text) <= width:
        return text
    start, end = "", ""
    for number in range(len(text)):
        is_start = number % 2 == 0
        char = text[number // 2] if is_start else text[-1 - number // 2]
        if _width(start) + _width(end) + _width(char) + len(_GAP) > width:
            break
        start, end = (start + char, end) if is_start else (start, char + end)
    return f"{start}{_GAP}{end}"[: max(width, 0)]
