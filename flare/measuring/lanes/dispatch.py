"""Deals whole teams out to lanes, from one queue, and hears of their cases."""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from flare.common.errors import EngineError, FlareError
from flare.common.executor import bulkhead
from flare.common.text import safe
from flare.evaluation.submission.find import LabelMapFile
from flare.measuring.archive.reading import Archive
from flare.measuring.engines.interface import Engine
from flare.measuring.lane import Lane
from flare.measuring.lanes.process import LanePool, Message, TeamEnd
from flare.measuring.sampling import DeviceError
from flare.measuring.team import Job, TeamJob, planned_team
from flare.results.efficiency_csv import CaseRecord
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)


DEATHS = 3
"""A team is given up when this number of its processes were killed."""

LOCK_WAIT_S = 180.0
"""Seconds that a team's folder is waited for if its process was killed: a file system
of several computers keeps the lock of one that has died for a while."""


class Listener:
    """Is told what happens, always between containers; this one does nothing with it.

    What it does takes nobody's running time. It must not raise anything.
    """

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Hear of a case that was run: which one it was, of how many that are run."""

    def on_team(self, team: str) -> None:
        """Hear of a team that is measured to the end."""

    def on_failure(self, team: str, error: FlareError) -> None:
        """Hear of a team whose measurement could not begin or go on."""


def noted(
    errors: dict[str, FlareError], results: Path, team: str
) -> AbstractContextManager[None]:
    """Go on behind the block, whatever error ends it, and note a team's first one."""
    return bulkhead(results, team, lambda error: errors.setdefault(team, error))


@dataclass(slots=True, kw_only=True)
class Turn:
    """A team that waits for its turn, or has it."""

    archive: Archive
    left: set[str]
    """Cases that have no outcome yet."""
    deaths: int = 0
    """Number of processes that were killed while they measured it."""
    after: tuple[Path, ...] = ()
    """Folders of teams that have left something behind on the lane."""
    end: TeamEnd | None = None
    """The last message about it."""


class Dispatch:
    """Whole teams, from one queue, each on the first lane that is free.

    A team goes on on another lane where its process is killed, or its lane does not
    work. Teams are told of as done while nothing runs, so that scoring them takes no
    processor from a container. The caches of the job are decided, and the lanes of the
    pool are of one kind.
    """

    def __init__(
        self, job: Job, engine: Engine, pool: LanePool, listener: Listener
    ) -> None:
        self.failures: dict[str, FlareError] = {}
        self._job, self._engine, self._pool = job, engine, pool
        self._listener = listener
        self._images_sha256 = digest_of(job.cases)
        self._queue: deque[Turn] = deque()
        self._running: dict[Lane, Turn] = {}
        self._left_out: set[Lane] = set()
        """Lanes that could not even begin to measure a team."""
        self._unclean: dict[Lane, tuple[Path, ...]] = {}
        """Folders of teams whose process was killed on a lane."""
        self._done: list[str] = []
        """Teams that are measured, and not told of yet."""
        self._total = 0

    def plan(self, *, is_here: bool) -> None:
        """See what is left to do of each team, and tell how much is done.

        `is_here` is whether containers run on this computer.
        """
        cases = 0
        for archive in self._job.runnable:
            turn = Turn(archive=archive, left={*self._job.options.rerun})
            job = self._team_job(turn, self._pool.lanes()[0])
            with (
                noted(self.failures, self._job.results, archive.team),
                planned_team(job, is_here=is_here) as plan,
            ):
                turn.left = {case.case for case in plan.todo}
                cases += len(self._job.cases)
                if turn.left:
                    self._queue.append(turn)
                else:
                    self._done.append(archive.team)
            if error := self.failures.get(archive.team):
                self._listener.on_failure(archive.team, error)
        self._total = sum(len(turn.left) for turn in self._queue)
        finished = cases - self._total
        if finished:
            going_on = ", going on" if self._total else ""
            _log.info("%d of %d cases are done%s", finished, cases, going_on)

    def measure(self) -> None:
        """Measure teams, until nothing is left that can be done."""
        while self._queue or self._running:
            self._tell_done()
            self._begin()
            if not self._running and not self._pool.may_grow():
                break
            for lane, message in self._pool.events():
                self._hear(lane, message)
        while self._queue:
            turn = self._queue.popleft()
            problem, remedy = "no lane is left", "The same command goes on."
            self._fail(turn, MeasurementError(turn.archive.team, problem, remedy))
        self._tell_done()

    # --- Dealing out --------------------------------------------------------------

    def _begin(self) -> None:
        for lane in self._pool.free():
            # An engine has equal images once: one lane would remove that of another.
            images = {turn.archive.image for turn in self._running.values()}
            fitting = (turn for turn in self._queue if turn.archive.image not in images)
            turn = None if lane in self._left_out else next(fitting, None)
            if turn:
                self._queue.remove(turn)
                turn.end, turn.after = None, self._unclean.pop(lane, ())
                self._running[lane] = turn
                self._pool.begin(lane, self._team_job(turn, lane))

    def _team_job(self, turn: Turn, lane: Lane) -> TeamJob:
        """A job of a lane: what is left of a team, and nothing that was run again."""
        options = self._job.options
        rerun = tuple(name for name in options.rerun if name in turn.left)
        job = replace(self._job, options=replace(options, rerun=rerun), archives=())
        return TeamJob(
            job=job,
            archive=turn.archive,
            engine=self._engine,
            lane=lane,
            images_sha256=self._images_sha256,
            after=turn.after,
            lock_wait_s=LOCK_WAIT_S if turn.deaths or turn.after else None,
        )

    # --- Taking in ----------------------------------------------------------------

    def _hear(self, lane: Lane, message: Message | None) -> None:
        match message:
            case CaseRecord() if message.case in self._running[lane].left:
                self._count(self._running[lane], message)
            case logging.LogRecord() if _log.isEnabledFor(message.levelno):
                _log.handle(message)
            case TeamEnd():
                self._running[lane].end = message
            case None:
                self._end(lane, self._running.pop(lane))

    def _count(self, turn: Turn, record: CaseRecord) -> None:
        turn.left.discard(record.case)
        turns = [*self._queue, *self._running.values()]
        left = sum(len(unfinished.left) for unfinished in turns)
        team, total = turn.archive.team, self._total
        self._listener.on_run(team, record, total - left, total)

    def _end(self, lane: Lane, turn: Turn) -> None:
        """Let a team go on elsewhere if it has ended before it was done."""
        team = turn.archive.team
        if not turn.end:
            turn.deaths += 1
            self._unclean[lane] = (*turn.after, self._job.results / team)
            _log.info("%s: its process on %s has ended", safe(team), lane.name)
            if turn.deaths < DEATHS:
                self._queue.appendleft(turn)
            else:
                problem = f"{DEATHS} processes that measured it were killed"
                remedy = "See what kills them, such as want of memory, and go on."
                self._fail(turn, MeasurementError(team, problem, remedy))
        elif not turn.end.error:
            self._done.append(team)
        elif self._is_of_lane(turn.end.error, lane):
            self._left_out.add(lane)
            self._queue.appendleft(turn)
            _log.info("%s is left out from now on: %s", lane.name, turn.end.error)
        else:
            self._fail(turn, turn.end.error)

    def _is_of_lane(self, error: FlareError, lane: Lane) -> bool:
        """Whether a lane may be why a team has ended, and there is another one."""
        other_lanes = {*self._pool.lanes()} - self._left_out - {lane}
        return isinstance(error, EngineError | DeviceError) and bool(other_lanes)

    def _fail(self, turn: Turn, error: FlareError) -> None:
        self._total -= len(turn.left)
        with noted(self.failures, self._job.results, turn.archive.team):
            raise error
        self._listener.on_failure(turn.archive.team, error)

    def _tell_done(self) -> None:
        while self._done and not self._running:
            self._listener.on_team(self._done.pop(0))


def digest_of(cases: Sequence[LabelMapFile]) -> str:
    """SHA-256 over the names and contents of all images."""
    digest = hashlib.sha256()
    for case in cases:
        for image in (case, *case.channels):
            with image.path.open("rb") as content:
                checksum = hashlib.file_digest(content, "sha256").hexdigest()
            line = f"{image.case} {checksum}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
