"""The queue: takes submissions one at a time from a claim to an answer.

Every step is in the journal before the next one begins. Whatever ends the program, it
goes on from there: what is done twice then does no harm, and an answer is sent once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from flare.common.bulkhead import as_flare_error, bulkhead, keep_trace, obey_stop
from flare.common.errors import (
    FlareError,
    HostError,
    OrganiserError,
    OutputError,
    ProgramError,
    SubmissionError,
)
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.platforms.errors import OverdueError
from flare.platforms.serving.journal import Entry, Journal, Step
from flare.platforms.serving.overdue import (
    HOURS,
    OverdueSignal,
    ended_after,
    ends_at,
)
from flare.platforms.serving.source import (
    Answer,
    NextTokenError,
    NotGivenError,
    NotKnownError,
    NotNowError,
    NotOursError,
    Source,
    Submission,
)
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)

DOWNLOADS = "downloads"
"""Folder of archives, one for each submission, until it is answered."""

LONGEST_PAUSE = timedelta(hours=1)
"""Pauses are of 1, 2, 4, ... minutes, up to this."""

_EVER = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Work(Protocol):
    """What is done with an archive. Each can be done again after it was ended."""

    def check(self, file: Path) -> None:
        """See that an archive can be run; a SubmissionError if not."""

    def measure(self, file: Path, end: datetime) -> None:
        """Run it on all cases; a SubmissionError if it cannot be loaded."""

    def score(self, team: str) -> dict[str, Any]:
        """Score what it has predicted; the metrics."""

    def done(self, team: str) -> int:
        """How many cases are measured."""

    def check_host(self) -> None:
        """See that this computer can measure; a HostError if not."""

    @property
    def cases(self) -> int:
        """How many there are."""


def utc_now() -> datetime:
    """Date and time."""
    return datetime.now(UTC)


class Service:
    """Measures what a source has, one submission after the other.

    Parameters
    ----------
    source : Source
        Where submissions come from.
    work : Work
        What is done with them.
    folder : Path
        Of the journal; nobody else has it.
    hours : float
        That a submission has from its claim on.
    now : callable
        Date and time.
    on_moment : callable, optional
        Told of each step of a submission, once it is in the journal, and why it has
        failed when that is written down.
    """

    def __init__(
        self,
        source: Source,
        work: Work,
        folder: Path,
        *,
        hours: float = HOURS,
        now: Callable[[], datetime] = utc_now,
        on_moment: Callable[[str, Submission, str], None] | None = None,
    ) -> None:
        self._source, self._work, self._folder = source, work, folder
        self._hours, self._now = hours, now
        self._on_moment = on_moment
        self.journal = Journal(folder, source.name)
        self._paused: dict[str, _Paused] = {}
        self._failed, self._claims_at = 0, _EVER
        self._told_of: set[str] = set()
        said = source.resume([entry.submission for entry in self.journal])
        if said:
            _log.info("%s", said)

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
        failed = 0
        while True:
            try:
                if self.serve_one():
                    failed = 0
                    continue
                if self._now() >= self._claims_at:
                    failed = 0
            except Exception as raised:
                obey_stop(raised)
                error = as_flare_error(raised)
                if poll_s is None or isinstance(error, OrganiserError):
                    raise
                failed += 1
                pause = _pause(failed)
                _log.error("%s Tried again in %s", error, _minutes(pause))
                # Meanwhile others may have to be answered.
                self._claims_at = self._now() + pause
                with suppress(OutputError):  # the disk may be what is at fault
                    keep_trace(self._folder.parent, self._folder.name, error)
            if poll_s is None:
                break
            sleep(poll_s)
        for paused in self._paused.values():
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
        entry = self._next()
        if not entry:
            return False
        tell = partial(self._postpone, entry, told="")
        with bulkhead(self._folder.parent, entry.submission.team, tell):
            self._try(entry)
        return True

    def _try(self, entry: Entry) -> None:
        """Serve a submission as far as it goes."""
        title = safe(entry.submission.title)
        try:
            self._serve(entry)
        except NotOursError as error:
            _log.warning("%s: it is not ours any more: %s", title, error)
            self._done(self.journal.latest(entry), Step.LOST, message=str(error))
        except NotNowError as error:
            _log.warning("%s: it has to wait: %s", title, error)
            self.journal.forget(entry)
            if not isinstance(error, NextTokenError):
                self._claims_at = self._now() + _pause(1)
        except NotGivenError as error:
            self._postpone(entry, error.error, told=str(error.told))
        except NotKnownError as error:
            # Until then, it may be the rights of the token's user that are missing.
            if self._now() < entry.claimed + timedelta(hours=self._hours):
                raise error.error from error
            _log.warning("%s: it is given up: %s", title, error)
            self._done(self.journal.latest(entry), Step.LOST, message=str(error))
        except _OthersTurnError:
            _log.info("%s: interrupted, as the hours of another one are over", title)
        if self._is_open(entry):
            return
        self._paused.pop(entry.submission.key, None)
        remove_tree(self._downloads(entry))

    def _postpone(self, entry: Entry, error: FlareError, *, told: str) -> None:
        """Let others go before a submission, for a pause that grows."""
        if isinstance(error, OrganiserError):
            raise error
        now, key = self._now(), entry.submission.key
        tried = self._paused[key].tried if key in self._paused else 0
        pause = _pause(tried + 1)
        end = ends_at(entry.claimed, self._hours)
        until = now + pause if end <= now else min(now + pause, end)
        self._paused[key] = _Paused(tried + 1, until, error)
        if not (tried or told) and isinstance(error, HostError):
            # The first one may be of that submission alone; two in a row hardly are.
            self._failed += 1
            if self._failed > 1:
                self._claims_at = now + _pause(self._failed - 1)
        title = safe(entry.submission.title)
        _log.warning("%s: postponed by %s: %s", title, _minutes(until - now), error)
        if not self.journal.latest(entry).has(Step.SCORED):
            self.journal.note(entry, fault=told or self._told(entry, error))

    def _told(self, entry: Entry, error: FlareError) -> str:
        """What whoever has handed it in is told if an error stays."""
        if isinstance(error, ProgramError):
            return str(error)
        problem = (
            f"it could not be evaluated within {self._hours:g} hours, by a fault of the"
            " computer that evaluates, and none of its own"
        )
        title = entry.submission.title
        return str(MeasurementError(title, problem, "Ask the organisers."))

    def _next(self) -> Entry | None:
        """What is to be gone on with, or else to be claimed."""
        now = self._now()
        ready = [e for e in self.journal.open_entries() if self._ready_at(e) <= now]
        # What was postponed before the service was started goes behind the others.
        first = [e for e in ready if self._is_due(e)]
        if not first and now >= self._claims_at and (new := self._begun(now)):
            return new
        if not ready:
            return None
        over = [e for e in ready if self._is_over(e)]
        entry = min(over or first or ready, key=self._ready_at)
        title, step = safe(entry.submission.title), entry.step.value
        _log.info("%s: it was %s; going on", title, step)
        return replace(entry, is_old=True)

    def _begun(self, now: datetime) -> Entry | None:
        """The first submission that can be claimed, written down."""
        for submission in self._source.claimable():
            if submission.key in self.journal:
                continue
            if owner := self.journal.owner(submission):
                if submission.key not in self._told_of:
                    text = "%s: not claimed: its folder, %s, is that of the user %s"
                    title, team = safe(submission.title), safe(submission.team)
                    _log.error(text, title, team, safe(owner))
                self._told_of.add(submission.key)
                continue
            self._work.check_host()
            entry = self.journal.begin(submission, now)
            self._tell(entry)
            return entry
        return None

    def _ready_at(self, entry: Entry) -> datetime:
        """When a submission is to be tried."""
        paused = self._paused.get(entry.submission.key)
        return paused.until if paused else _EVER

    def _is_due(self, entry: Entry) -> bool:
        """Whether a submission goes before those that can be claimed."""
        is_paused = entry.submission.key in self._paused
        has_to = self._is_over(entry) or entry.has(Step.SCORED)
        return not entry.fault or is_paused or has_to

    def _is_over(self, entry: Entry) -> bool:
        """Whether a submission has to be answered now, whatever is known of it."""
        end = ends_at(entry.claimed, self._hours)
        return not entry.has(Step.SCORED) and self._now() >= end

    def _is_open(self, entry: Entry) -> bool:
        """Whether something is left to do of a submission."""
        key = entry.submission.key
        return key in self.journal and not self.journal.latest(entry).step.is_end

    def _serve(self, entry: Entry) -> None:
        """Take a submission to its answer."""
        if not entry.has(Step.CLAIMED):
            entry = self._claimed(entry)
        if not entry.has(Step.SCORED):
            entry = self._answered(entry)
        answer = self.journal.read_answer(entry)
        is_again = entry.has(Step.RETURNING)
        if not is_again:
            entry = self._done(entry, Step.RETURNING)
        self._source.answer(entry.submission, answer, is_again=is_again)
        self._done(entry, Step.RETURNED)
        if not entry.fault:  # so this computer works
            self._failed, self._claims_at = 0, _EVER

    def _claimed(self, entry: Entry) -> Entry:
        """Claim a submission; its hours begin before that, so that they end in time."""
        before = self._now()
        claim = self._source.claim(entry.submission, is_again=entry.is_old)
        if entry.is_old and claim.is_new:  # nobody has heard of the claim before
            entry = self.journal.keep(entry, before)
        return self._done(entry, Step.CLAIMED, submission=claim.submission)

    def _answered(self, entry: Entry) -> Entry:
        """Find out what came of a submission, and write it down."""
        end = ends_at(entry.claimed, self._hours)
        others = self._end_of_others(entry)
        state, is_over = _Progress(entry), False
        try:
            with ended_after((min(end, others) - self._now()).total_seconds()):
                answer = Answer(metrics=self._measured(state, end))
        except OverdueSignal:
            is_over = True
        except Exception as error:
            # What is done while it is ended may fail, and is no fault of its own.
            is_over = _has_come_of_the_end(error)
            if not is_over and not isinstance(error, SubmissionError):
                raise
            answer = Answer(message=str(error))
        if is_over and others < end:
            raise _OthersTurnError
        if is_over:
            answer = self._overdue(state.entry)
        self.journal.write_answer(state.entry, answer)
        return self._done(
            state.entry,
            Step.SCORED,
            status=answer.status,
            message=answer.message,
            fault=entry.fault if is_over else "",
        )

    def _overdue(self, entry: Entry) -> Answer:
        """What is told when the hours are over."""
        if entry.fault:
            return Answer(message=entry.fault)
        done = self._work.done(entry.submission.team)
        return Answer(message=str(OverdueError(self._hours, done, self._work.cases)))

    def _end_of_others(self, entry: Entry) -> datetime:
        """When the next one of the others has to be answered."""
        now = self._now()
        ends = [
            ends_at(other.claimed, self._hours)
            for other in self.journal.open_entries()
            if other.submission.key != entry.submission.key
            and other.has(Step.CLAIMED)
            and not other.has(Step.SCORED)
        ]
        return min((end for end in ends if end > now), default=_NEVER)

    def _measured(self, state: _Progress, end: datetime) -> dict[str, Any]:
        """The metrics of a submission, from whichever step it has come to."""
        submission = state.entry.submission
        file = self._source.download(submission, self._downloads(state.entry))
        if not state.entry.has(Step.DOWNLOADED):
            state.entry = self._done(state.entry, Step.DOWNLOADED)
        if not state.entry.has(Step.CHECKED):
            self._work.check(file)
            state.entry = self._done(state.entry, Step.CHECKED)
        if not state.entry.has(Step.MEASURED):
            self._work.measure(file, end)
            state.entry = self._done(state.entry, Step.MEASURED)
        return self._work.score(submission.team)

    def _done(self, entry: Entry, step: Step, **changes: Any) -> Entry:
        """Write down a step, and tell of it."""
        entry = self.journal.keep(entry, self._now(), step, **changes)
        self._tell(entry)
        return entry

    def _tell(self, entry: Entry) -> None:
        """Tell of the step that a submission has come to."""
        if self._on_moment:
            why = entry.message if entry.step is Step.SCORED else ""
            self._on_moment(entry.step.value, entry.submission, why)

    def _downloads(self, entry: Entry) -> Path:
        """Where its archive is kept."""
        return self._folder / DOWNLOADS / entry.submission.key


@dataclass(frozen=True, slots=True)
class _Paused:
    """A submission that is postponed."""

    tried: int
    """How often, since the service was started."""
    until: datetime
    error: FlareError


class _OthersTurnError(Exception):
    """What runs was ended, as another submission has to be answered now."""


def _pause(number: int) -> timedelta:
    """The pause after so many errors."""
    return min(timedelta(minutes=2 ** min(number - 1, 10)), LONGEST_PAUSE)


def _minutes(pause: timedelta) -> str:
    """A pause, in words."""
    return f"{pause.total_seconds() / 60:.3g} min"


def _has_come_of_the_end(error: Exception) -> bool:
    """Whether an error came up while something was ended, as its hours are over."""
    try:
        obey_stop(error)
    except OverdueSignal:
        return True
    return False


class _Progress:
    """How far a submission is, also when an error ends what is done with it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
