"""Measures teams side by side, as a command is told."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.challenge.rules import Challenge
from flare.cli.limits import LimitOptions, limits_of
from flare.common.engine import Engine
from flare.common.errors import FlareError, InputError
from flare.measuring.archive.reading import Archive
from flare.measuring.host import find_weaknesses
from flare.measuring.inputs import Case
from flare.measuring.lanes.dispatch import check_lanes, measure_on_lanes
from flare.measuring.lanes.lane import Lane, Wanted, divide, look_at_place
from flare.measuring.lanes.process import LocalPool, Pool
from flare.measuring.listener import Listener
from flare.measuring.team import Options

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneOptions:
    """How many teams are measured at once, and where, as it was asked for."""

    limits: LimitOptions
    lanes: int | None
    cluster: str | None
    unlike_lanes: bool

    @property
    def is_asked_for(self) -> bool:
        """Whether there is to be more than one lane, or one elsewhere."""
        several = (self.lanes or 1) > 1 or "," in self.limits.gpu
        return several or self.cluster is not None


def measure_side_by_side(
    archives: Sequence[Archive],
    cases: Sequence[Case],
    results: Path,
    challenge: Challenge,
    *,
    asked: LaneOptions,
    options: Options,
    folders: dict[str, Path],
    listener: Listener,
) -> tuple[tuple[str, FlareError], ...]:
    """Measure teams on several lanes; what was not measured to the end comes back.

    Parameters
    ----------
    archives, cases, results, challenge, options, listener
        As in `flare.measuring.measure.measure`.
    asked : LaneOptions
        On which lanes.
    folders : dict of str to Path
        What all computers have to see, by what it is for messages.
    """
    wanted = _wanted(asked)
    with _opened(asked.cluster, wanted, folders) as (pool, engine, described):
        lanes = pool.lanes()
        check_lanes(lanes, options, are_unlike=asked.unlike_lanes)
        for weakness in find_weaknesses(described):
            _log.info("Before you run images of others: %s", weakness)
        for lane in lanes:
            _log.info("%s", _told(lane))
        return measure_on_lanes(
            archives,
            cases,
            results,
            challenge,
            pool=pool,
            engine=engine,
            described=described,
            options=options,
            is_far=asked.cluster is not None,
            are_unlike=asked.unlike_lanes,
            listener=listener,
        )


def _wanted(asked: LaneOptions) -> Wanted:
    """How each computer is to be divided."""
    limits = asked.limits
    gpus = () if limits.gpu == "none" else tuple(limits.gpu.split(","))
    if gpus and asked.lanes is not None:
        raise InputError(
            f"--lanes {asked.lanes}: it is for --gpu none, as each GPU has a lane",
            "Name the GPUs instead: --gpu 0,1.",
        )
    return Wanted(
        gpus=gpus,
        lanes=asked.lanes or 1,
        cpus=limits.cpus,
        memory=limits.memory,
        limits=limits_of(limits),
    )


@contextmanager
def _opened(
    cluster: str | None, wanted: Wanted, folders: dict[str, Path]
) -> Iterator[tuple[Pool, Engine, dict[str, Any]]]:
    """The lanes of this computer or of a cluster, and what an engine of them is."""
    engine = Engine()
    if cluster is not None:
        # Here, as nobody without a cluster needs to have Dask.
        from flare.measuring.lanes.cluster import FarEngine, opened_cluster

        with opened_cluster(cluster, wanted, folders, engine.program) as far:
            yield far, FarEngine(engine.program), dict(far.places[0].engine)
        return
    place = look_at_place(wanted.gpus, engine.program)
    yield LocalPool(divide(place, wanted)), engine, dict(place.engine)


def _told(lane: Lane) -> str:
    """A lane, for the log."""
    gpu = f"GPU {lane.gpu.name} ({lane.gpu.uuid})" if lane.gpu else "no GPU"
    return (
        f"{lane.name}: {gpu}, processors {lane.limits.cpus}, memory"
        f" {lane.limits.memory}"
    )
