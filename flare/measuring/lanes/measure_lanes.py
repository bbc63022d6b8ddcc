"""Measures teams side by side, each whole on one lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.challenge.rules import Challenge
from flare.common.engine import Engine
from flare.common.errors import FlareError, InputError
from flare.measuring.archive.reading import Archive
from flare.measuring.host_load import Caches
from flare.measuring.inputs import Case
from flare.measuring.lanes.dispatch import Dispatch, Turn
from flare.measuring.lanes.job import TeamJob, setup_of
from flare.measuring.lanes.lane import Lane, check_alike, unlike
from flare.measuring.lanes.pool import Pool
from flare.measuring.listener import Listener
from flare.measuring.measure import check_options, digest_of, tell_plan
from flare.measuring.plan import Options, Setup, TeamPlan, planned_team
from flare.measuring.team_failures import Failures
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    OF_HOST,
    read_settings,
)

LOCK_WAIT_S = 180.0
"""So long a team's folder is waited for if its process was killed: a file system of
several computers keeps the lock of one that has died for a while."""


def measure_on_lanes(
    archives: Sequence[Archive],
    cases: Sequence[Case],
    results: Path,
    challenge: Challenge,
    *,
    pool: Pool,
    engine: Engine,
    described: Mapping[str, Any],
    options: Options,
    is_far: bool = False,
    are_unlike: bool = False,
    listener: Listener | None = None,
) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of teams as `flare.measuring.measure.measure` does, side by side.

    A team is measured whole by one lane, unless the process that measures it is killed:
    then it goes on on a lane of the same kind. All teams are told of as done when the
    last one is, so that scoring them takes no processor from a container.

    Parameters
    ----------
    archives, cases, results, challenge
        As there.
    pool : Pool
        The lanes.
    engine : Engine
        By its program, what containers run in on each computer.
    described : mapping
        What an engine of one of the lanes has told of itself.
    options : Options
        How they are measured; each lane has limits of its own.
    is_far : bool
        Whether lanes are of other computers.
    are_unlike : bool
        Whether lanes may be of other kinds.
    listener : Listener, optional
        Told what happens.

    Returns
    -------
    tuple of tuple of str and FlareError
        Teams whose measurement could not begin or go on, and why.

    Raises
    ------
    HostError
        If no team can be measured.
    """
    check_options(archives, cases, options)
    lanes = pool.lanes()
    check_lanes(lanes, options, are_unlike=are_unlike)
    listener = listener or Listener()
    first = TeamJob(
        archive=archives[0],
        cases=tuple(_absolute(case) for case in cases),
        results=results.absolute(),
        challenge=challenge,
        program=engine.program,
        options=options,
        images_sha256=digest_of(cases),
        lane=lanes[0],
    )

    def make_job(turn: Turn, lane: Lane) -> TeamJob:
        """What a lane is to do of a team."""
        rerun = tuple(name for name in options.rerun if name in turn.left)
        return replace(
            _job(first, turn.plan.archive, lane, rerun),
            after=turn.after,
            lock_wait_s=LOCK_WAIT_S if turn.deaths or turn.after else None,
        )

    failures = Failures(results, listener.on_failure)
    plans: list[TeamPlan] = []
    for archive in archives:
        file = results / archive.team / MEASUREMENT_JSON
        job = _job(first, archive, _fitting(lanes, file), options.rerun)
        plans += _planned(setup_of(job, engine, described), job, failures, is_far)
    setup = replace(setup_of(first, engine, described), lanes=tuple(lanes))
    tell_plan(setup, plans, listener)
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


def check_lanes(
    lanes: Sequence[Lane], options: Options, *, are_unlike: bool = False
) -> None:
    """See that teams can be measured side by side as asked.

    Raises
    ------
    HostError
        If they cannot.
    """
    is_several = len(lanes) > 1 or lanes[0].of > 1
    if options.is_interleaved and is_several:
        raise InputError(
            "--interleave: teams take turns on one lane, and there are several",
            "Leave it out.",
        )
    if options.caches is Caches.COLD and any(lane.of > 1 for lane in lanes):
        raise InputError(
            "--caches cold: lanes of a computer share its caches",
            "Measure with warm ones, which is the default.",
        )
    if not are_unlike:
        check_alike(lanes)


def _planned(
    setup: Setup, job: TeamJob, failures: Failures, is_far: bool
) -> Sequence[TeamPlan]:
    """What is to be done of a team; nothing if that cannot be, which is noted."""
    with (
        failures.noted(job.archive.team),
        planned_team(setup, job.archive, is_engine_here=not is_far) as plan,
    ):
        return [plan]
    return []


def _job(
    first: TeamJob, archive: Archive, lane: Lane, rerun: tuple[str, ...]
) -> TeamJob:
    """What a lane is to do of a team."""
    model = archive.model
    if model:
        model = replace(model, path=model.path.absolute())
    return replace(
        first,
        archive=replace(archive, path=archive.path.absolute(), model=model),
        options=replace(first.options, limits=lane.limits, rerun=rerun),
        lane=lane,
    )


def _absolute(case: Case) -> Case:
    """A case whose path holds in every process."""
    return replace(case, image=replace(case.image, path=case.image.path.absolute()))


def _fitting(lanes: Sequence[Lane], file: Path) -> Lane:
    """The first lane of the kind on which a team was begun.

    The first of all if there is none: the team is refused for what is not as it was.
    """
    settings = read_settings(file)
    fitting = [lane for lane in lanes if settings and not unlike(lane, settings)]
    return (fitting or lanes)[0]
