"""Measures teams side by side, each whole on one lane, dealt out from one queue."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flare.common.engine import Engine
from flare.common.errors import EngineError, FlareError, InputError
from flare.common.text import safe
from flare.measuring.container import Conditions
from flare.measuring.host import find_weaknesses
from flare.measuring.inputs import digest_of
from flare.measuring.lane import (
    Lane,
    Wanted,
    check_alike,
    divide,
    look_at_place,
    unlike,
)
from flare.measuring.lanes.process import (
    Ended,
    LocalPool,
    Message,
    Planned,
    Pool,
    Said,
    TeamJob,
)
from flare.measuring.options import Caches, Options
from flare.measuring.sampling.nvml import DeviceError
from flare.measuring.summary import Failures, Listener, cases_to_run
from flare.measuring.team import Job, Setup, TeamPlan, planned_team
from flare.results.efficiency_csv import CaseRecord
from flare.results.errors import MeasurementError
from flare.results.measurement_json import (
    ACCEPT,
    MEASUREMENT_JSON,
    OF_HOST,
    read_settings,
)

_log = logging.getLogger(__name__)


DEATHS = 3
"""Number of processes of a team that may be killed before it is given up."""

LOCK_WAIT_S = 180.0
"""So long a team's folder is waited for if its process was killed: a file system of
several computers keeps the lock of one that has died for a while."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """A team that waits for its turn, or has it."""

    plan: TeamPlan
    left: set[str]
    """Cases of which nothing was told yet."""
    deaths: int = 0
    """Number of processes that were killed while they measured it."""
    after: tuple[Path, ...] = ()
    """Folders of teams that have left something behind on the lane."""
    has_ended: bool = False
    is_put_back: bool = False
    """Whether its lane is to blame, and another one shall go on."""

    @property
    def settings_file(self) -> Path:
        """What tells on which kind of lane it was begun."""
        return self.plan.folder / MEASUREMENT_JSON


@dataclass(slots=True, kw_only=True)
class Dispatch:
    """Whole teams, from one queue, each on the first lane that is free and fits."""

    pool: Pool
    make_job: Callable[[Turn, Lane], TeamJob]
    failures: Failures
    listener: Listener
    accepted: Collection[str] = ()
    """Settings in which a lane may be unlike the one on which a team was begun."""
    total: int = 0
    _queue: deque[Turn] = field(default_factory=deque)
    _running: dict[Lane, Turn] = field(default_factory=dict)
    _left_out: set[Lane] = field(default_factory=set)
    """Lanes that could not even begin to measure a team."""
    _unclean: dict[Lane, tuple[Path, ...]] = field(default_factory=dict)
    """Folders of teams whose process was killed on a lane."""

    def measure(self, plans: Sequence[TeamPlan]) -> None:
        """Measure teams, until nothing is left that can be done."""
        self._queue.extend(
            Turn(plan=plan, left={case.name for case in plan.todo})
            for plan in plans
            if plan.todo
        )
        self.total = sum(len(turn.left) for turn in self._queue)
        while self._queue or self._running:
            self._begin()
            if not self._running and not self.pool.may_grow():
                self._give_up()
                return
            for lane, message in self.pool.events():
                if message is None:
                    self._end(lane)
                else:
                    self._take(lane, self._running[lane], message)

    # --- Dealing out --------------------------------------------------------------

    def _begin(self) -> None:
        for lane in self.pool.free():
            turn = None if lane in self._left_out else self._next(lane)
            if turn:
                self._queue.remove(turn)
                turn.has_ended = turn.is_put_back = False
                turn.after = self._unclean.pop(lane, ())
                self._running[lane] = turn
                self.pool.begin(lane, self.make_job(turn, lane))

    def _next(self, lane: Lane) -> Turn | None:
        # An engine has equal images once: one lane would remove that of another.
        taken = {turn.plan.archive.image for turn in self._running.values()}
        return next(
            (
                turn
                for turn in self._queue
                if turn.plan.archive.image not in taken and self._fits(lane, turn)
            ),
            None,
        )

    def _fits(self, lane: Lane, turn: Turn) -> bool:
        """Whether a team was not begun on a lane of another kind."""
        settings = read_settings(turn.settings_file)
        return settings is None or not unlike(lane, settings, self.accepted)

    def _give_up(self) -> None:
        """Say of each team that is left why no lane can measure it."""
        lanes = [lane for lane in self.pool.lanes() if lane not in self._left_out]
        for turn in self._queue:
            problem, remedy = "no lane is left", "The same command goes on."
            if lanes:
                settings = read_settings(turn.settings_file) or {}
                other = unlike(lanes[0], settings, self.accepted)
                problem = f"the team was begun on another lane: {lanes[0].name} has"
                problem += f" {other}"
                remedy = "Measure it on a lane as before."
                if not unlike(lanes[0], settings, OF_HOST):
                    remedy += f" Or accept it: {ACCEPT}."
            error = MeasurementError(str(turn.settings_file), problem, remedy)
            self._fail(turn, error)
        self._queue.clear()

    # --- Taking in ----------------------------------------------------------------

    def _take(self, lane: Lane, turn: Turn, message: Message) -> None:
        """Hear what a lane tells of its team."""
        match message:
            case Planned(todo=todo, done=done):
                # Of what was measured just before a process was killed, nobody heard.
                for case in sorted(turn.left - set(todo)):
                    self._tell(turn, done[case])
            case CaseRecord():
                self._tell(turn, message)
            case FlareError():
                self._blame(lane, turn, message)
            case Said(level=level, text=text):
                _log.log(level, "%s", text)
            case Ended():
                turn.has_ended = True

    def _tell(self, turn: Turn, record: CaseRecord) -> None:
        turn.left.discard(record.case)
        turns = [*self._queue, *self._running.values()]
        left = sum(len(each.left) for each in turns)
        self.listener.on_run(turn.plan.team, record, self.total - left, self.total)

    def _blame(self, lane: Lane, turn: Turn, error: FlareError) -> None:
        """Leave a lane out that cannot measure, as long as there is another one."""
        others = [
            other
            for other in self.pool.lanes()
            if other != lane and other not in self._left_out and self._fits(other, turn)
        ]
        if isinstance(error, EngineError | DeviceError) and others:
            self._left_out.add(lane)
            turn.is_put_back = True
            _log.info("%s is left out from now on: %s", lane.name, error)
        else:
            self._fail(turn, error)

    def _fail(self, turn: Turn, error: FlareError) -> None:
        """Note what has ended the measurement of a team."""
        self.total -= len(turn.left)
        turn.left.clear()
        with self.failures.noted(turn.plan.team):
            raise error

    def _end(self, lane: Lane) -> None:
        """Let a team go on elsewhere if its process has ended before it was done."""
        turn = self._running.pop(lane)
        team = turn.plan.team
        if turn.has_ended and not turn.is_put_back:
            return
        if not turn.has_ended:
            turn.deaths += 1
            self._unclean[lane] = (*turn.after, turn.plan.folder)
            _log.info("%s: its process on %s has ended", safe(team), lane.name)
        if turn.deaths < DEATHS:
            self._queue.appendleft(turn)
        else:
            problem = f"{DEATHS} processes that measured it were killed"
            remedy = "See what kills them, such as want of memory, and go on."
            self._fail(turn, MeasurementError(team, problem, remedy))


def measure_on_lanes(
    job: Job, listener: Listener
) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of teams as `flare.measuring.measure.measure_teams` does, at once.

    A team is measured whole by one lane, unless the process that measures it is killed:
    then it goes on on a lane of the same kind. All teams are told of as done when the
    last one is, so that scoring them takes no processor from a container.

    Raises
    ------
    HostError
        If no team can be measured.
    """
    with _opened(job) as (pool, engine, described):
        lanes = tuple(pool.lanes())
        check_lanes(lanes, job.options)
        for weakness in find_weaknesses(described):
            _log.info("Before you run images of others: %s", weakness)
        for lane in lanes:
            gpu = f"GPU {lane.gpu.name} ({lane.gpu.uuid})" if lane.gpu else "no GPU"
            own = f"processors {lane.limits.cpus}, memory {lane.limits.memory}"
            _log.info("%s: %s, %s", lane.name, gpu, own)
        runs = job.options.runs
        setup = Setup(
            job=_absolute(job),
            engine=engine,
            described=described,
            conditions=Conditions(
                contract=job.options.contract,
                interval_s=runs.interval_s,
                caches=runs.caches or Caches.WARM,
            ),
            images_sha256=digest_of(job.cases),
            is_here=job.options.cluster is None,
        )
        return _measure(setup, pool, lanes, listener)


@contextmanager
def _opened(job: Job) -> Iterator[tuple[Pool, Engine, Mapping[str, Any]]]:
    """The lanes of this computer or of a cluster, and what an engine of them is."""
    options = job.options
    engine = Engine()
    wanted = Wanted(limits=options.limits, lanes=options.lanes)
    if options.cluster is None:
        place = look_at_place(wanted.gpus, engine)
        yield LocalPool(divide(place, wanted)), engine, place.engine
        return
    # Here, as nobody without a cluster needs to have Dask.
    from flare.measuring.lanes.cluster import opened_cluster

    first = job.runnable[0]
    folders = {"images": options.images, "archives": first.path.parent}
    if first.model:
        folders["model"] = first.model.path.parent
    folders["results"] = job.results
    with opened_cluster(options.cluster, wanted, folders, engine) as pool:
        yield pool, engine, pool.places[0].engine


def check_lanes(lanes: Sequence[Lane], options: Options) -> None:
    """See that teams can be measured side by side as asked.

    Raises
    ------
    HostError
        If they cannot.
    """
    is_several = len(lanes) > 1 or lanes[0].of > 1
    if options.interleave and is_several:
        raise InputError(
            "--interleave: teams take turns on one lane, and there are several",
            "Leave it out.",
        )
    if options.runs.caches is Caches.COLD and any(lane.of > 1 for lane in lanes):
        raise InputError(
            "--caches cold: lanes of a computer share its caches",
            "Measure with warm ones, which is the default.",
        )
    if not options.unlike_lanes:
        check_alike(lanes)


def _measure(
    setup: Setup, pool: Pool, lanes: Sequence[Lane], listener: Listener
) -> tuple[tuple[str, FlareError], ...]:
    options, results = setup.job.options, setup.job.results

    def make_job(turn: Turn, lane: Lane) -> TeamJob:
        """What a lane is to do of a team."""
        rerun = tuple(name for name in options.rerun if name in turn.left)
        waits = bool(turn.deaths or turn.after)
        return TeamJob(
            setup=replace(
                _on_lane(setup, lane, rerun),
                lock_wait_s=LOCK_WAIT_S if waits else None,
            ),
            archive=turn.plan.archive,
            after=turn.after,
        )

    failures = Failures(results, listener.on_failure)
    plans: list[TeamPlan] = []
    for archive in setup.job.runnable:
        file = results / archive.team / MEASUREMENT_JSON
        own = _on_lane(setup, _fitting(lanes, file), options.rerun)
        with failures.noted(archive.team), planned_team(own, archive) as plan:
            plans.append(plan)
    cases_to_run(plans)
    with closing(pool):
        dispatch = Dispatch(
            pool=pool,
            make_job=make_job,
            failures=failures,
            listener=listener,
            accepted=OF_HOST if options.unlike_host else (),
        )
        dispatch.measure(plans)
    for plan in plans:
        if plan.team not in failures.found:
            listener.on_team(plan.team)
    return tuple(failures.found.items())


def _on_lane(setup: Setup, lane: Lane, rerun: tuple[str, ...]) -> Setup:
    """What a team is measured with on a lane, where some cases are run again."""
    own_cpus = lane.cpus if lane.of > 1 else ()
    options = replace(setup.job.options, rerun=rerun)
    return replace(
        setup,
        job=replace(setup.job, options=options, archives=(), unread=()),
        conditions=replace(setup.conditions, limits=lane.limits, own_cpus=own_cpus),
        lane=lane,
    )


def _absolute(job: Job) -> Job:
    """What is measured, with paths that hold in every process."""

    def at(file: Any) -> Any:
        return file and replace(file, path=file.path.absolute())

    return replace(
        job,
        results=job.results.absolute(),
        cases=tuple(replace(case, image=at(case.image)) for case in job.cases),
        archives=tuple(replace(at(a), model=at(a.model)) for a in job.runnable),
    )


def _fitting(lanes: Sequence[Lane], file: Path) -> Lane:
    """The first lane of the kind on which a team was begun.

    The first of all if there is none: the team is refused for what is not as it was.
    """
    settings = read_settings(file)
    fitting = [lane for lane in lanes if settings and not unlike(lane, settings)]
    return (fitting or lanes)[0]
