"""Progress: a line for each case, or a bar on a terminal."""

from __future__ import annotations

import logging
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from flare.cli.console import terminal_columns
from flare.common.text import safe

if TYPE_CHECKING:
    from flare.evaluation.many.teams import Progress
    from flare.evaluation.scoring.case import Attempt

_log = logging.getLogger(__name__)

BAR_WIDTH = 30
"""Characters of the progress bar, where there is room for so many."""

LEAST_BAR = 8
"""A shorter bar tells nothing, and is left out."""

LEAST_TEXT = 12
"""So many columns team, case and status need before the time left is told."""

TELL_S = 60
"""Where nothing can be drawn, the progress of scoring is told so often."""

_GAP = "..."


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


def _bar(done: int, total: int, width: int) -> str:
    """A progress bar of so many columns, or nothing if that is not enough for one."""
    width = min(width, BAR_WIDTH + 2) - 2
    if width < LEAST_BAR:
        return ""
    full = width * done // total
    return f"[{'#' * full}{'.' * (width - full)}]"


def show_progress(number: int, total: int, attempt: Attempt) -> None:
    """Log one finished case; on a terminal, draw a bar instead."""
    if sys.stdout.isatty():
        _draw_bar(number, total)
        return
    if attempt.score:
        from flare.challenge.metrics import METRICS  # not at the top: for --help

        outcome = " ".join(
            f"{METRICS[name].title} {value:.{METRICS[name].decimals}f}"
            for name, value in attempt.score.by_metric.items()
        )
    else:
        outcome = str(attempt.problem or "read")
    position = f"[{number:0{len(str(total))}}/{total}]"
    _log.info(
        "%s %s %s %.2f s", position, safe(attempt.pair.case), outcome, attempt.seconds
    )


def show_drawn(number: int, total: int, case: str) -> None:
    """Log one case that was drawn; on a terminal, draw a bar instead."""
    if sys.stdout.isatty():
        _draw_bar(number, total)
        return
    _log.info("[%0*d/%d] %s drawn", len(str(total)), number, total, safe(case))


def _draw_bar(number: int, total: int) -> None:
    """Draw a bar of cases over the last one."""
    text = f" {number}/{total} cases"
    room = terminal_columns() - 1
    bar = _bar(number, total, room - len(text))
    line = f"{bar}{text}" if bar else _shortened(text.strip(), room)
    sys.stdout.write(f"\r{line}" + ("\n" if number == total else ""))
    sys.stdout.flush()


class MeasuringProgress:
    """Tells of each case that was measured, and how long the others may take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._is_drawn = False

    def __call__(
        self, team: str, case: str, status: str, number: int, total: int
    ) -> None:
        """Log one finished case; on a terminal, draw a bar that fits in one line."""
        passed = self._clock() - self._start
        left = passed / number * (total - number)
        remaining = f"about {left / 60:.0f} min left" if number < total else "done"
        position = f"[{number:0{len(str(total))}}/{total}]"
        what = f"{safe(team)} {safe(case)}: {status}"
        if not sys.stdout.isatty():
            _log.info("%s %s; %s", position, what, remaining)
            return
        # The last column stays free: some terminals begin a new line behind it. What
        # is least needed goes first: the bar, the middle of the names, the time left.
        room = terminal_columns() - 1
        line = f"{position} {what}; {remaining}"
        bar = _bar(number, total, room - _width(line) - 1)
        if bar:
            line = f"{bar} {line}"
        elif _width(line) > room:
            ends = [f"; {remaining}", ""]
            fitting = [end for end in ends if room - len(position + end) > LEAST_TEXT]
            end = (fitting or ends[1:])[0]
            names = _shortened(what, room - len(position) - 1 - len(end))
            line = _shortened(f"{position} {names}{end}", room)
        end = "\n" if number == total else ""
        sys.stdout.write(f"\r\x1b[K{line}{end}")
        sys.stdout.flush()
        self._is_drawn = number < total

    def clear(self) -> None:
        """Remove the bar, before something else is written."""
        if self._is_drawn:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._is_drawn = False


class ScoringProgress:
    """Tells how far the scoring of all teams is, and how long the rest may take.

    On a terminal, a bar is drawn; elsewhere there is a line in each `TELL_S`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._told_at = self._start
        self._is_drawn = False

    def __call__(self, found: Progress) -> None:
        """Tell how far it is; the time left is by the rate so far."""
        now = self._clock()
        done = found.kept + found.scored
        total = done + found.left
        text = f" {done}/{total} cases, {found.teams}/{found.all_teams} teams"
        if found.scored and found.left:
            left_s = (now - self._start) / found.scored * found.left
            text += f", about {left_s / 60:.0f} min left"
        if not sys.stdout.isatty():
            if now >= self._told_at + TELL_S:
                self._told_at = now
                _log.info("%s", text.strip())
            return
        room = terminal_columns() - 1
        line = f"{_bar(done, total, room - len(text))}{text}".strip()
        sys.stdout.write(f"\r\x1b[K{_shortened(line, room)}")
        sys.stdout.flush()
        self._is_drawn = True

    def clear(self) -> None:
        """Remove the line, before something else is written."""
        if self._is_drawn:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._is_drawn = False
