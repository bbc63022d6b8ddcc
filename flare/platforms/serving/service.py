"""The queue: takes submissions one at a time from a claim to an answer.

Every step is in the journal before the next one begins. Whatever ends the program, it
goes on from there: what is done twice then does no harm, and an answer is sent once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from flare.common.errors import (
    FlareError,
    HostError,
    OrganiserError,
    OutputError,
    ProgramError,
    SubmissionError,
    as_flare_error,
    obey_stop,
)
from flare.common.executor import bulkhead, keep_trace
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.platforms.serving.journal import HOURS, Entry, Journal, Step, utc_now
from flare.platforms.serving.source import (
    Answer,
    ClaimAnewError,
    GoneError,
    NotNowError,
    NotOursError,
    Source,
    Submission,
)
from flare.platforms.serving.work import (
    OverdueError,
    OverdueSignal,
    ServedWork,
    ended_after,
)
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)

DOWNLOADS = "downloads"
"""Folder of archives, one for each submission, until it is answered."""

LONGEST_PAUSE_MIN = 60
"""Pauses are of 1, 2, 4, ... minutes, up to this."""

_EVER = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Service:
    """Measures what a source has, one submission after the other.

    Parameters
    ----------
    source : Source
        Where submissions come from.
    work : ServedWork
        What is done with them; each step can be done again after it was ended.
    folder : Path
        Of the journal; nobody else has it.
    hours : float
        That a submission has from its claim on.
    now : callable
        Date and time.
    on_step : callable, optional
        Told of each step of a submission, once it is in the journal.
    """

    def __init__(
        self,
        source: Source,
        work: ServedWork,
        folder: Path,
        *,
        hours: float = HOURS,
        now: Callable[[], datetime] = utc_now,
        on_step: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._source, self._work, self._folder = source, work, folder
        self._hours, self._now, self._on_step = hours, now, on_step
        self.journal = Journal(folder, source.name, now)
        self._paused: dict[str, _Backoff] = {}
        self._claims, self._in_a_row = _Backoff(), _Backoff(grace=1)
        self._told_of: set[str] = set()

    def run(
        self, poll_s: float | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Serve for ever; or until nothing waits, if there is no time to look again.

        Parameters
        ----------
        poll_s : float, optional
            So long is waited where nothing is to be done.
        sleep : callable
            Waits for some seconds.

        Raises
        ------
        OrganiserError
            If they are at fault.
        Exception
            If there is no time to look again, and something stands in the way.
        """
        while True:
            try:
                if self.serve_one():
                    self._claims.errors = 0
                    continue
                if self._may_claim(self._now()):
                    self._claims.errors = 0
            except Exception as raised:
                obey_stop(raised)
                error = as_flare_error(raised)
                if poll_s is None or isinstance(error, OrganiserError):
                    raise
                # Meanwhile others may have to be answered.
                pause = self._claims.failed(self._now())
                _log.error("%s Tried again in %s", error, _minutes(pause))
                with suppress(OutputError):  # the disk may be what is at fault
                    keep_trace(self._folder.parent, self._folder.name, error)
            if poll_s is None:
                break
            sleep(poll_s)
        for paused in self._paused.values():
            if paused.error:
                raise paused.error

    def serve_one(self) -> bool:
        """Go on with a submission, or claim one; whether there was any.

        What stands in the way of one submission postpones it behind the others, see
        docs/developers/blame.md.

        Raises
        ------
        HostError
            If nothing can be claimed, or written down.
        OrganiserError
            If they are at fault.
        """
        if not (found := self._next()):
            return False
        entry, is_again = found
        tell = partial(self._postpone, entry, told="")
        with bulkhead(self._folder.parent, entry.team, tell):
            self._try(entry, is_again=is_again)
        return True

    def _try(self, entry: Entry, *, is_again: bool) -> None:
        """Serve a submission as far as it goes."""
        title = safe(entry.title)
        try:
            self._serve(entry, is_again=is_again)
        except NotOursError as error:
            _log.warning("%s: it is not ours any more: %s", title, error)
            self._done(entry, Step.LOST, message=str(error))
        except NotNowError as error:
            _log.warning("%s: it has to wait: %s", title, error)
            self.journal.forget(entry)
            if not isinstance(error, ClaimAnewError):
                self._claims = _Backoff()
                self._claims.failed(self._now())
        except GoneError as error:
            if error.told:
                self._postpone(entry, error.error, told=str(error.told))
            # Until then, it may be the rights of the token's user that are missing.
            elif self._now() < entry.claimed + timedelta(hours=self._hours):
                raise error.error from error
            else:
                _log.warning("%s: it is given up: %s", title, error)
                self._done(entry, Step.LOST, message=str(error))
        except _OthersTurnError:
            _log.info("%s: interrupted, as the hours of another one are over", title)
        kept = self.journal.entries.get(entry.key)
        if not kept or kept.step.is_end:
            self._paused.pop(entry.key, None)
            remove_tree(self._downloads(entry))

    def _postpone(self, entry: Entry, error: FlareError, *, told: str) -> None:
        """Let others go before a submission, for a pause that grows."""
        if isinstance(error, OrganiserError):
            raise error
        now = self._now()
        paused = self._paused.setdefault(entry.key, _Backoff())
        if not (paused.errors or told) and isinstance(error, HostError):
            # The first one may be of that submission alone; two in a row hardly are.
            self._in_a_row.failed(now)
        until = now + paused.failed(now, error)
        end = entry.ends_at(self._hours)
        paused.until = min(until, end) if end > now else until
        title, pause = safe(entry.title), _minutes(paused.until - now)
        _log.warning("%s: postponed by %s: %s", title, pause, error)
        if not self.journal.entries[entry.key].has(Step.SCORED):
            self.journal.keep(entry, fault=told or self._told(entry, error))

    def _told(self, entry: Entry, error: FlareError) -> str:
        """The message for the team if an error stays."""
        if isinstance(error, ProgramError):
            return str(error)
        problem = (
            f"it could not be evaluated within {self._hours:g} hours, by a fault of the"
            " computer that evaluates, and none of its own"
        )
        return str(MeasurementError(entry.title, problem, "Ask the organisers."))

    def _next(self) -> tuple[Entry, bool] | None:
        """What is to be gone on with, or else to be claimed; whether it was begun."""
        now = self._now()
        ready = [e for e in self.journal.open_entries() if self._ready_at(e) <= now]
        if ready:
            entry = min(ready, key=lambda e: (not self._is_over(e), self._ready_at(e)))
            _log.info("%s: it was %s; going on", safe(entry.title), entry.step.value)
            return entry, True
        new = self._begun() if self._may_claim(now) else None
        return (new, False) if new else None

    def _may_claim(self, now: datetime) -> bool:
        return now >= max(self._claims.until, self._in_a_row.until)

    def _begun(self) -> Entry | None:
        """The first submission that can be claimed, written down."""
        for submission in self._source.claimable():
            if submission.key in self.journal.entries:
                continue
            if owner := self.journal.owner(submission):
                if submission.key not in self._told_of:
                    text = "%s: not claimed: its folder, %s, is that of the user %s"
                    title, team = safe(submission.title), safe(submission.team)
                    _log.error(text, title, team, safe(owner))
                self._told_of.add(submission.key)
                continue
            self._work.check_host()
            return self._done(submission, Step.CLAIMING)
        return None

    def _ready_at(self, entry: Entry) -> datetime:
        paused = self._paused.get(entry.key)
        return paused.until if paused else _EVER

    def _is_over(self, entry: Entry) -> bool:
        """Whether a submission has to be answered now, whatever is known of it."""
        is_late = self._now() >= entry.ends_at(self._hours)
        return is_late and not entry.has(Step.SCORED)

    def _serve(self, entry: Entry, *, is_again: bool) -> None:
        if not entry.has(Step.CLAIMED):
            claimed = self._source.claim(entry, is_again=is_again)
            entry = self._done(claimed, Step.CLAIMED)
        if not entry.has(Step.SCORED):
            entry = self._scored(entry)
        answer = self.journal.read_answer(entry)
        is_sent = entry.has(Step.RETURNING)
        if not is_sent:
            self._done(entry, Step.RETURNING)
        self._source.answer(entry, answer, is_again=is_sent)
        self._done(entry, Step.RETURNED)
        if not entry.fault:  # so this computer works
            self._claims, self._in_a_row = _Backoff(), _Backoff(grace=1)

    def _scored(self, entry: Entry) -> Entry:
        """Determine the outcome of a submission, and write it down."""
        end, others = entry.ends_at(self._hours), self._end_of_others(entry)
        is_over = False
        try:
            with ended_after((min(end, others) - self._now()).total_seconds()):
                answer = Answer(metrics=self._measured(entry))
        except OverdueSignal:
            is_over = True
        except Exception as error:
            try:  # what is done while it is ended may fail, and is no fault of its own
                obey_stop(error)
            except OverdueSignal:
                is_over = True
            if not is_over and not isinstance(error, SubmissionError):
                raise
            answer = Answer(message=str(error))
        if is_over and others < end:
            raise _OthersTurnError
        if is_over:
            done = self._work.done(entry.team)
            late = OverdueError(self._hours, done, self._work.cases)
            answer = Answer(message=entry.fault or str(late))
        self.journal.write_answer(entry, answer)
        return self._done(
            entry,
            Step.SCORED,
            status=answer.status,
            message=answer.message,
            fault=entry.fault if is_over else "",
        )

    def _end_of_others(self, entry: Entry) -> datetime:
        """When the next one of the others has to be answered."""
        ends = (
            other.ends_at(self._hours)
            for other in self.journal.open_entries()
            if other.key != entry.key
            if other.has(Step.CLAIMED) and not other.has(Step.SCORED)
        )
        return min((end for end in ends if end > self._now()), default=_NEVER)

    def _measured(self, entry: Entry) -> dict[str, Any]:
        """The metrics of a submission, from whichever step it has come to."""
        file = self._source.download(entry, self._downloads(entry))
        if not entry.has(Step.DOWNLOADED):
            self._done(entry, Step.DOWNLOADED)
        if not entry.has(Step.CHECKED):
            self._work.check(file)
            self._done(entry, Step.CHECKED)
        if not entry.has(Step.MEASURED):
            self._work.measure(file)
            self._done(entry, Step.MEASURED)
        return self._work.score(entry.team)

    def _done(self, submission: Submission, step: Step, **changes: Any) -> Entry:
        """Write down a step, and tell of it."""
        entry = self.journal.keep(submission, step, **changes)
        self._on_step(entry)
        return entry

    def _downloads(self, entry: Entry) -> Path:
        return self._folder / DOWNLOADS / entry.key


@dataclass(slots=True)
class _Backoff:
    """What is tried again after a pause that grows with its errors."""

    grace: int = 0
    """So many errors in a row are followed by no pause."""
    errors: int = 0
    """In a row."""
    until: datetime = _EVER
    error: FlareError | None = None
    """The last one."""

    def failed(self, now: datetime, error: FlareError | None = None) -> timedelta:
        """Count an error; the pause behind it."""
        self.errors, self.error = self.errors + 1, error
        doubled = self.errors - self.grace - 1
        minutes = min(2**doubled, LONGEST_PAUSE_MIN) if doubled >= 0 else 0
        self.until = now + timedelta(minutes=minutes)
        return timedelta(minutes=minutes)


class _OthersTurnError(Exception):
    """What runs was ended, as another submission has to be answered now."""


def _minutes(pause: timedelta) -> str:
    return f"{pause.total_seconds() / 60:.3g} min"
