"""Measures one team on one lane, in whichever process, and tells of it by messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flare.challenge.rules import Challenge
from flare.common.engine import Engine
from flare.measuring.archive.reading import Archive
from flare.measuring.inputs import Case
from flare.measuring.lanes.lane import Lane
from flare.measuring.lanes.messages import (
    Begun,
    Ended,
    Failed,
    Message,
    Planned,
    Ran,
)
from flare.measuring.plan import Options, Setup, planned_team
from flare.measuring.sampling.nvml import open_gpu
from flare.measuring.team import opened_team
from flare.measuring.team_failures import Failures
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamJob:
    """All that a process needs to measure a team; paths are absolute."""

    archive: Archive
    cases: tuple[Case, ...]
    results: Path
    challenge: Challenge
    program: str
    """Of the engine."""
    options: Options
    """With the limits of the lane."""
    images_sha256: str
    lane: Lane
    after: tuple[Path, ...] = ()
    """Folders of teams whose process was killed on the lane: what those have left is
    being removed while they are locked."""
    lock_wait_s: float | None = None
    """How long a folder is waited for; None for the usual time."""


def measure_team(job: TeamJob, tell: Callable[[Message], None]) -> None:
    """Run all cases of a team that are left to do, and keep what was measured.

    Parameters
    ----------
    job : TeamJob
        The team, and how it is measured.
    tell : callable
        Told what happens, always between containers; `Ended` is the last.
    """
    failures = Failures(job.results, lambda _, error: tell(Failed(error=error)))
    with failures.noted(job.archive.team):
        for folder in job.after:
            with suppress(MeasurementError), FolderLock(folder, wait_s=job.lock_wait_s):
                pass
        with _setup(job) as setup, planned_team(setup, job.archive) as plan:
            names = tuple(case.name for case in plan.todo)
            tell(Planned(todo=names, done=dict(plan.done)))
            if plan.todo:
                tell(Begun(case=names[0]))
                with opened_team(plan) as team:
                    for number, case in enumerate(plan.todo):
                        if number:
                            tell(Begun(case=case.name))
                        tell(Ran(record=team.run(case)))
    tell(Ended())


@contextmanager
def _setup(job: TeamJob) -> Iterator[Setup]:
    """What the team is measured with, on the computer that this is run on."""
    engine = Engine(job.program)
    setup = setup_of(job, engine, engine.describe())
    if job.lane.gpu is None:
        yield setup
        return
    with open_gpu(job.lane.gpu.uuid) as gpu:
        yield replace(setup, gpu=gpu)


def setup_of(job: TeamJob, engine: Engine, described: Mapping[str, Any]) -> Setup:
    """What the team is measured with, but for the GPU."""
    return Setup(
        results=job.results,
        cases=job.cases,
        challenge=job.challenge,
        engine=engine,
        described=described,
        images_sha256=job.images_sha256,
        options=job.options,
        gpu=None,
        lane=job.lane,
        lock_wait_s=job.lock_wait_s,
    )
