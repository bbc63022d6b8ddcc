"""Serves submissions, one at a time, from a claim to an answer.

Every step is in the journal before the next one begins. Whatever ends the program, it
goes on from there: what is done twice then does no harm, and an answer is sent once.
"""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from flare.challenge.reading import read_challenge
from flare.common.errors import (
    FlareError,
    HostError,
    OrganiserError,
    OutputError,
    ProgramError,
    SubmissionError,
    as_flare_error,
    raise_stop,
)
from flare.common.executor import bulkhead, keep_trace
from flare.common.files import remove_tree
from flare.common.options import option, seconds
from flare.common.text import count, safe
from flare.measuring.container import opened_limits
from flare.measuring.engines.interface import find_engine
from flare.measuring.lanes.dispatch import Listener
from flare.measuring.measure import check_cases
from flare.measuring.options import ImageOptions, MeasureOptions
from flare.measuring.team import Job
from flare.measuring.trial import find_cases
from flare.platforms.serving.journal import (
    HOURS,
    Entry,
    Journal,
    Step,
    utc_now,
    waiting_text,
)
from flare.platforms.serving.source import (
    GoneError,
    NotNowError,
    NotOursError,
    Source,
    Submission,
    failed,
    once,
    succeeded,
)
from flare.platforms.serving.work import (
    FOLDER,
    OverdueError,
    OverdueSignal,
    ServedWork,
    ended_after,
)
from flare.results.errors import MeasurementError
from flare.results.team_folder import FolderLock

_log = logging.getLogger(__name__)

LONGEST_PAUSE_MIN = 60
"""Pauses are of 1, 2, 4, ... minutes, up to this."""

GONE_S = 600.0
"""Where others wait for it, a file that is gone is waited for no longer."""

_MINUTE = timedelta(minutes=1)
_EVER = datetime.min.replace(tzinfo=UTC)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions(ImageOptions):
    """How submissions are measured and answered, wherever they come from."""

    images: Path | None = option(
        "Folder of the CTs of all cases.", default=None, metavar="DIR"
    )
    output: Path = option(
        "Folder that gets a folder for each team, and the service's journal.",
        metavar="RESULTS",
    )
    once: bool = option(
        "End when no submission waits, instead of looking for another one; with status"
        " 1 if one has to wait.",
        default=False,
    )
    dry_run: bool = option(
        "See that everything is ready and say what waits, but claim nothing.",
        default=False,
    )
    status: bool = option("Say how far each submission is, and end.", default=False)
    poll_s: float = option(
        "Look for submissions every S seconds (default: 60).",
        default=60.0,
        parse=seconds,
        metavar="S",
    )
    hours: float = option(
        "Answer within H hours of the claim (default: 24, as the platform wants it).",
        default=HOURS,
        parse=seconds,
        metavar="H",
    )
    patience_s: float = option(
        "Of a phase, where others wait for it: answer what is postponed S seconds after"
        " its first error (default: 1800; at most 600 if its file is gone).",
        default=1800.0,
        parse=seconds,
        metavar="S",
    )

    @property
    def folder(self) -> Path:
        """The folder of the service itself."""
        return self.output / FOLDER


def serve(
    options: ServiceOptions,
    source: Source,
    *,
    telling: Callable[[Job], AbstractContextManager[Listener]],
    on_step: Callable[[Entry], None],
) -> None:
    """Serve until nothing waits, if it is to look once, or for ever.

    `telling` is as in `ServedWork`, and `on_step` as in `Service`. A FlareError is
    raised: what keeps the service from its work, or, if it is to look once, what is
    left undone.
    """
    challenge, images = read_challenge(options.challenge), options.images or Path()
    cases, results = find_cases(images, challenge, options.contract), options.output
    if options.ground_truth:
        check_cases(cases, options.ground_truth, challenge)
    image_options = {
        row.name: getattr(options, row.name) for row in fields(ImageOptions)
    }
    measure_options = MeasureOptions(
        archives=results, images=images, output=results, **image_options
    )
    job = Job(
        options=measure_options,
        challenge=challenge,
        results=results,
        cases=cases,
        archives=(),
    )
    timeout_s, hours = options.limits.timeout_s, options.hours
    longest_h = len(cases) * options.runs.repeats * timeout_s / 3600
    if longest_h > hours:
        text = (
            "%s of up to %g s can take %.1f hours, and a submission has %g:"
            " consider a shorter --timeout"
        )
        _log.warning(text, count(len(cases), "case"), timeout_s, longest_h, hours)
    with opened_limits(options.limits) as (_, gpu):
        memory_mb = gpu.read().gpu_total_mb if gpu else None
    worst = {"runtime_s": timeout_s, "max_gpu_memory_mb": memory_mb}
    work = ServedWork(job=job, worst=worst, telling=telling, is_named=source.is_named)
    if options.dry_run:
        find_engine(options.engine).describe()
        _log.info("%s", waiting_text(source, options.folder))
        return
    with FolderLock(options.folder, "served"):
        service = Service(
            source,
            work,
            options.folder,
            hours=hours,
            patience_s=options.patience_s,
            on_step=on_step,
        )
        service.run(None if options.once else options.poll_s)


# --- The queue --------------------------------------------------------------------


class Service:
    """Measures what a source has, one submission after the other.

    The journal is in the folder, which nobody else has. A submission has some hours
    from its claim on; what is postponed is answered after `patience_s`, if others wait
    for it. `on_step` is told of each step, once it is in the journal.
    """

    def __init__(
        self,
        source: Source,
        work: ServedWork,
        folder: Path,
        *,
        hours: float = HOURS,
        patience_s: float = 1800.0,
        now: Callable[[], datetime] = utc_now,
        on_step: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._source, self._work, self._folder = source, work, folder
        self._hours, self._patience_s = hours, patience_s
        self._now, self._on_step = now, on_step
        self.journal = Journal(folder, source.name, now)
        self._paused: defaultdict[str, _Backoff] = defaultdict(_Backoff)
        # Behind the first error, there is no pause.
        self._claims, self._in_a_row = _Backoff(errors=-1), _Backoff(errors=-1)
        self._tell_once = once(_log.error)

    def run(
        self, poll_s: float | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Serve for ever; or until nothing waits, if there is no time to look again.

        It sleeps for `poll_s` seconds where nothing is to be done. An OrganiserError is
        raised if they are at fault. An Exception is raised if there is no time to look
        again, and something stands in the way.
        """
        while True:
            try:
                while self.serve_one():
                    pass
            except Exception as raised:
                raise_stop(raised)
                error = as_flare_error(raised)
                if poll_s is None or isinstance(error, OrganiserError):
                    raise
                # Meanwhile others may have to be answered.
                self._claims.failed(self._now())
                _log.error("%s It is tried again", error)
                with suppress(OutputError):  # the disk may be what is at fault
                    keep_trace(self._folder.parent, self._folder.name, error)
            if poll_s is None:
                break
            sleep(min(poll_s, self._pause_s()))
        for paused in (*self._paused.values(), self._claims):
            if paused.error:
                raise paused.error

    def _pause_s(self) -> float:
        """Seconds until something that is postponed can be tried, or answered."""
        now = self._now()
        ends = [paused.until for paused in self._paused.values() if paused.until > now]
        return (min(ends) - now).total_seconds() if ends else math.inf

    def serve_one(self) -> bool:
        """Go on with a submission, or claim one; whether there was any.

        What stands in the way of one submission postpones it behind the others, see
        docs/developers/blame.md. A HostError is raised if nothing can be claimed, or
        written down. An OrganiserError is raised if they are at fault.
        """
        open_entry = self._next()
        entry = open_entry or self._begun()
        if not entry:
            return False
        tell = partial(self._postpone, entry, team_message="")
        with bulkhead(self._folder.parent, entry.team, tell):
            self._try(entry, is_again=bool(open_entry))
        return True

    def _try(self, entry: Entry, *, is_again: bool) -> None:
        title = safe(entry.title)
        try:
            self._serve(entry, is_again=is_again)
        except NotOursError as error:
            _log.warning("%s: it is not ours any more: %s", title, error)
            self._done(entry, Step.LOST, message=str(error))
        except NotNowError as error:
            _log.warning("%s: it has to wait: %s", title, error)
            self.journal.forget(entry)
            if not (is_again or error.has_alternative):  # else at once
                self._claims = _Backoff()
                problem = f"it has to wait: {error}"
                waiting = MeasurementError(
                    entry.title, problem, "Start it again later."
                )
                self._claims.failed(self._now(), waiting)
        except GoneError as error:
            # Until then, it may be the rights of the token's user that are missing.
            if self._now() < entry.claimed + timedelta(hours=self._hours):
                team_message = str(error.team_error or "")
                self._postpone(entry, error.error, team_message=team_message)
            else:
                _log.warning("%s: it is given up: %s", title, error)
                self._done(entry, Step.LOST, message=str(error))
        new_entry = self.journal.entries.get(entry.key)
        if not new_entry or new_entry.step.is_end:
            self._paused.pop(entry.key, None)
            remove_tree(self._downloads(entry))

    def _postpone(self, entry: Entry, error: FlareError, *, team_message: str) -> None:
        """Let others go before a submission, for a pause that grows.

        `team_message` is the message for the team about a file that is gone; it is
        empty for all other errors.
        """
        if isinstance(error, OrganiserError):
            raise error
        now, paused = self._now(), self._paused[entry.key]
        entry = self.journal.entries[entry.key]
        is_first = not (paused.errors or team_message) and isinstance(error, HostError)
        if is_first and not entry.has(Step.DOWNLOADED):
            # The first one may be of that submission alone; of two in a row, the
            # network may be the reason. Whether the computer works is seen before each
            # claim.
            self._in_a_row.failed(now)
        paused.failed(now, error)
        if not entry.has(Step.SCORED):
            paused.end = self._patience_end(entry, paused, is_gone=bool(team_message))
            end = self._end(entry)
            paused.until = min(paused.until, end if end > now else now + _MINUTE)
        title, pause = safe(entry.title), (paused.until - now).total_seconds() / 60
        _log.warning("%s: postponed by %.3g min: %s", title, pause, error)
        if not entry.has(Step.SCORED):
            fault = team_message or self._team_message(entry, error)
            self.journal.keep(entry, fault=fault)

    def _patience_end(
        self, entry: Entry, paused: _Backoff, *, is_gone: bool
    ) -> datetime:
        """When a submission that is postponed is answered, if others wait for it.

        The time begins anew where the submission has come further since its last error:
        then the error is another one, and what it needs is there again. It also does
        where the clock was set back.
        """
        if not (self._source.is_one_at_a_time and entry.has(Step.CLAIMED)):
            return _NEVER
        progress = entry.step, self._work.done(entry.team)
        if paused.progress != progress or paused.since > self._now():
            paused.progress, paused.since = progress, self._now()
        patience_s = min(self._patience_s, GONE_S) if is_gone else self._patience_s
        return paused.since + timedelta(seconds=patience_s)

    def _end(self, entry: Entry) -> datetime:
        return min(entry.ends_at(self._hours), self._paused[entry.key].end)

    def _team_message(self, entry: Entry, error: FlareError) -> str:
        if isinstance(error, ProgramError):
            return str(error)
        problem = (
            "it could not be evaluated in time, by a fault of the computer that"
            " evaluates, and none of its own"
        )
        return str(MeasurementError(entry.title, problem, "Ask the organisers."))

    def _next(self) -> Entry | None:
        """The submission to go on with: one that has to be answered now comes first."""
        now, ready = self._now(), {}
        for entry in self.journal.open_entries():
            is_in_time = entry.has(Step.SCORED) or now < self._end(entry)
            if (until := self._paused[entry.key].end_at(now)) <= now:
                ready[entry.key] = (is_in_time, until)
        if not ready:
            return None
        entry = self.journal.entries[min(ready, key=lambda key: ready[key])]
        _log.info("%s: it was %s; going on", safe(entry.title), entry.step.value)
        return entry

    def _begun(self) -> Entry | None:
        """The first submission that can be claimed now, written down."""
        now = self._now()
        if now < max(self._claims.end_at(now), self._in_a_row.end_at(now)):
            return None
        for submission in self._source.claimable():
            if submission.key in self.journal.entries:
                continue
            if owner := self.journal.owner(submission):
                text = "%s: not claimed: its folder, %s, is that of the user %s"
                title, team = safe(submission.title), safe(submission.team)
                self._tell_once(text, title, team, safe(owner))
                continue
            self._work.check_host()
            return self._done(submission, Step.CLAIMING)
        self._claims = _Backoff(errors=-1)
        return None

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
            self._claims, self._in_a_row = _Backoff(errors=-1), _Backoff(errors=-1)

    def _scored(self, entry: Entry) -> Entry:
        """Determine the outcome of a submission, and write it down."""
        now, fault = self._now(), ""
        # What has begun in time is ended when the hours are over, and not before.
        end = entry.ends_at(self._hours) if now < self._end(entry) else now
        try:
            try:
                with ended_after((end - now).total_seconds()):
                    answer = succeeded(self._measured(entry))
            except Exception as error:
                # What is done while it is ended may fail, and is no fault of its own.
                raise_stop(error)
                if not isinstance(error, SubmissionError):
                    raise
                answer = failed(str(error))
        except OverdueSignal:
            done, fault = self._work.done(entry.team), entry.fault
            late = OverdueError(self._hours, done, self._work.cases)
            answer = failed(fault or str(late))
        self.journal.write_answer(entry, answer)
        status, message = answer["status"], answer.get("error_message", "")
        changes = {"status": status, "message": message, "fault": fault}
        return self._done(entry, Step.SCORED, **changes)

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
        entry = self.journal.keep(submission, step, **changes)
        self._on_step(entry)
        return entry

    def _downloads(self, entry: Entry) -> Path:
        """The folder of its archive, until it is answered."""
        return self._folder / "downloads" / entry.key


@dataclass(slots=True)
class _Backoff:
    """What is tried again after a pause that grows with its errors."""

    errors: int = 0
    """In a row; below 0 for so many that are followed by no pause."""
    until: datetime = _EVER
    error: FlareError | None = None
    """The last one."""
    progress: tuple[Step, int] | None = None
    """How far a submission was at the last one: its step, and the cases done."""
    since: datetime = _EVER
    """When it was first there with an error."""
    end: datetime = _NEVER
    """When it is answered, if others wait for it."""

    def failed(self, now: datetime, error: FlareError | None = None) -> None:
        """Count an error, and pause behind it."""
        self.errors, self.error = self.errors + 1, error
        self.until = now + self._pause

    @property
    def _pause(self) -> timedelta:
        return timedelta(minutes=min(2**self.errors // 2, LONGEST_PAUSE_MIN))

    def end_at(self, now: datetime) -> datetime:
        """When the pause ends: a clock that was set back makes it no longer."""
        # The end is kept: while the clock stays behind, it must not move on with it.
        self.until = min(self.until, now + self._pause)
        return self.until
