"""The queue: takes submissions one at a time from a claim to an answer.

Every step is in the journal before the next one begins. Whatever ends the program, it
goes on from there: what is done twice then does no harm, and an answer is sent once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from flare.common.errors import SubmissionError
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.platforms.serving.errors import OverdueError
from flare.platforms.serving.journal import Entry, Journal, Step
from flare.platforms.serving.overdue import (
    HOURS,
    OverdueSignal,
    ended_after,
    ends_at,
)
from flare.platforms.serving.source import (
    Answer,
    NotNowError,
    NotOursError,
    Source,
    Submission,
)

_log = logging.getLogger(__name__)

DOWNLOADS = "downloads"
"""Folder of archives, one for each submission, until it is answered."""


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
        Told of each step of a submission, once it is in the journal.
    """

    def __init__(
        self,
        source: Source,
        work: Work,
        folder: Path,
        *,
        hours: float = HOURS,
        now: Callable[[], datetime] = utc_now,
        on_moment: Callable[[str, Submission], None] | None = None,
    ) -> None:
        self._source, self._work, self._folder = source, work, folder
        self._hours, self._now = hours, now
        self._on_moment = on_moment
        self.journal = Journal(folder, source.name)

    def serve_one(self) -> bool:
        """Go on with a submission, or claim one; whether there was any.

        Raises
        ------
        HostError
            If something on this computer, or on the way to the platform, stands in
            the way. The journal has how far it is.
        """
        entry = self._next()
        if not entry:
            return False
        try:
            self._serve(entry)
        except NotOursError as error:
            title = safe(entry.submission.title)
            _log.warning("%s: it is not ours any more: %s", title, error)
            self._done(self.journal.latest(entry), Step.LOST, message=str(error))
        except NotNowError as error:
            _log.warning("%s: it has to wait: %s", safe(entry.submission.title), error)
            self.journal.forget(entry)
            return False
        remove_tree(self._downloads(entry))
        return True

    def _next(self) -> Entry | None:
        """What is to be gone on with, or else to be claimed."""
        for entry in self.journal.open_entries():
            title, step = safe(entry.submission.title), entry.step.value
            _log.info("%s: it was %s; going on", title, step)
            return replace(entry, is_old=True)
        for submission in self._source.claimable():
            if submission.key not in self.journal:
                entry = self.journal.begin(submission, self._now())
                self._tell(entry)
                return entry
        return None

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
        state = _Progress(entry)
        try:
            with ended_after((end - self._now()).total_seconds()):
                answer = Answer(metrics=self._measured(state, end))
        except SubmissionError as error:
            answer = Answer(message=str(error))
        except OverdueSignal:
            done = self._work.done(entry.submission.team)
            overdue = OverdueError(self._hours, done, self._work.cases)
            answer = Answer(message=str(overdue))
        self.journal.write_answer(state.entry, answer)
        return self._done(
            state.entry, Step.SCORED, status=answer.status, message=answer.message
        )

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
            self._on_moment(entry.step.value, entry.submission)

    def _downloads(self, entry: Entry) -> Path:
        """Where its archive is kept."""
        return self._folder / DOWNLOADS / entry.submission.key


class _Progress:
    """How far a submission is, also when an error ends what is done with it."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
