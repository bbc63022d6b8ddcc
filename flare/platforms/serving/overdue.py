"""Watches the hours that a submission has from the moment when it is claimed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NoReturn

HOURS = 24.0
"""That the platform gives (EXTERNAL_EVALUATION_TIMEOUT_IN_SECONDS)."""

SPARE_SHARE = 1 / 48
"""Of the hours, kept to clean up and to answer: half an hour of a day."""

REPEAT_S = 60.0
"""What is raised from a signal is lost where Python ignores exceptions, such as in a
destructor: so it is raised again, if the block has not ended after so long."""


class OverdueSignal(BaseException):
    """The time of a submission is over: what runs for it is ended, as by Ctrl-C."""


def ends_at(claimed: datetime, hours: float) -> datetime:
    """When the answer to a submission has to be on its way.

    Examples
    --------
    >>> ends_at(datetime(2026, 1, 1), 24)
    datetime.datetime(2026, 1, 1, 23, 30)
    """
    return claimed + timedelta(hours=hours * (1 - SPARE_SHARE))


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End what runs in the block after a while.

    Only the main thread of a program can do this.

    Raises
    ------
    OverdueSignal
        From within the block, wherever it is; before it, if no time is left.
    """

    def end(*_: object) -> NoReturn:
        raise OverdueSignal

    if seconds <= 0:
        raise OverdueSignal
    before = signal.signal(signal.SIGALRM, end)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_S)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # also if the signal has come on the way out; the next one is far off
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Forecast:
    """Foresees when the cases of a submission will be done.

    Parameters
    ----------
    end : datetime
        When they have to be.
    now : callable
        Date and time.
    """

    def __init__(self, end: datetime, now: Callable[[], datetime]) -> None:
        self._end, self._now = end, now
        self._begun = now()
        self._has_warned = False

    def warning(self, done: int, total: int) -> str:
        """What is to be said once it seems that there is too little time, but once."""
        now = self._now()
        left = (now - self._begun) / done * (total - done)
        if self._has_warned or now + left <= self._end:
            return ""
        self._has_warned = True
        return (
            f"{done} of {total} cases are done, and the others would be at"
            f" {now + left:%Y-%m-%d %H:%M}; the time is over at {self._end:%H:%M} of"
            f" {self._end:%Y-%m-%d}, and what is not done by then fails"
        )
