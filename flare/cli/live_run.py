"""Keeps what is known of a measurement from what it tells, for a page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from flare.common.errors import FlareError
from flare.common.machine import describe_host
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.empty_image import OUTPUT_FILES
from flare.measuring.host import find_weaknesses, room
from flare.measuring.image import LOAD_BYTES_PER_S, LOAD_S
from flare.measuring.inputs import Case
from flare.measuring.listener import Listener
from flare.measuring.options import Caches
from flare.measuring.team import Setup, TeamPlan
from flare.reports.pages.running import Disk, Event, Now, Running, State, TeamRun
from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.refused_csv import Refusal

EVENTS = 20
"""So many things that have happened last are told."""

AROUND_S = 900.0
"""Beyond the time limits, so much is granted to what is around a case's containers."""


def local_time() -> datetime:
    """Date and time here, with the zone."""
    return datetime.now().astimezone()


def free_bytes(folder: Path) -> int:
    """The room on the disk of a folder, or of the one in which it will be made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return room(there).free_bytes


class LiveRun(Listener):
    """What is known of a measurement.

    Parameters
    ----------
    results : Path
        The folder of all teams.
    archives : sequence of Archive
        Of all teams, also those that were refused.
    cases : sequence of Case
        What they are run on.
    challenge : str
        Its name.
    is_scored : bool
        Whether teams are scored when they are measured.
    now, clock, free : callable
        Date and time; seconds that only go forward; the room where a folder lies.
    """

    def __init__(
        self,
        results: Path,
        archives: Sequence[Archive],
        cases: Sequence[Case],
        *,
        challenge: str,
        is_scored: bool = False,
        now: Callable[[], datetime] = local_time,
        clock: Callable[[], float] = time.monotonic,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._now, self._clock, self._free = now, clock, free
        self._is_scored = is_scored
        self._archives = {a.team: a for a in archives if not a.problems}
        self._folders = {"the disk of the results": results.absolute()}
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._begun_s: dict[str, float] = {}
        self._now_by_team: dict[str, Now] = {}
        self._case_s = 0.0
        self._teams = {
            a.team: TeamRun(
                team=a.team,
                records={},
                left=tuple(case.name for case in cases),
                doubts=a.doubts,
            )
            for a in self._archives.values()
        }
        at = now()
        self._run = Running(
            state=State.RUNNING,
            as_of=at,
            begun=at,
            challenge=challenge,
            cases=tuple(case.name for case in cases),
            teams=(),
            refused=tuple(_refusals(archives)),
        )
        for archive in archives:
            if archive.problems:
                self._note(f"{safe(archive.path.name)}: refused")

    def seen(self) -> Running:
        """All that is known at this moment."""
        disks = [
            Disk(name=name, free_bytes=self._free(folder))
            for name, folder in self._folders.items()
        ]
        return replace(
            self._run,
            as_of=self._now(),
            teams=tuple(self._teams.values()),
            disks=tuple(disks),
            events=tuple(self._events),
        )

    def on_plan(self, setup: Setup, plans: Sequence[TeamPlan]) -> None:
        """Note what was done before, and what is left."""
        runs, conditions = setup.job.options.runs, setup.conditions
        has_warm_up = runs.has_warm_up and conditions.caches is Caches.WARM
        timeout_s = setup.job.options.limits.timeout_s
        self._case_s = (runs.repeats + has_warm_up) * timeout_s
        self._run = replace(
            self._run,
            longest_case_s=runs.repeats * timeout_s,
            settings=tuple(settings_of(setup)),
            lanes=max(len(setup.lanes), 1),
        )
        folder = setup.engine.folder() if setup.is_here else None
        if folder:
            self._folders["the disk of the engine"] = folder
        for plan in plans:
            left = tuple(case.name for case in plan.todo)
            self._change(plan.team, records=dict(plan.done), left=left)
        left_cases = sum(len(plan.todo) for plan in plans)
        self._note(f"Planned: {left_cases} cases are to be run")

    def on_begin(self, team: str, case: str) -> None:
        """Note what is run."""
        self._begun_s[team] = self._clock()
        archive = self._archives[team]
        loading_s = LOAD_S + archive.unpacked_bytes / LOAD_BYTES_PER_S
        at = self._now()
        until = at + timedelta(seconds=self._case_s + loading_s + AROUND_S)
        self._do(team, Now(team=team, case=case, since=at, until=until))

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Note what came of a case."""
        own = self._teams[team]
        # As in efficiency.csv, what there is stays if the engine fails afterwards.
        is_kept = record.status is not RunStatus.ENGINE_ERROR
        is_kept = is_kept or record.case not in own.records
        self._change(
            team,
            records={**own.records, **({record.case: record} if is_kept else {})},
            left=tuple(case for case in own.left if case != record.case),
            whole_s=(*own.whole_s, self._clock() - self._begun_s.get(team, 0.0)),
        )
        self._do(team, None)
        value = "" if record.runtime_s is None else f", {record.runtime_s:.2f} s"
        of = f"[{number}/{total}]"
        what = record.status.value
        self._note(f"{of} {safe(team)} {safe(record.case)}: {what}{value}")

    def on_team(self, team: str) -> None:
        """Note a team of which all cases are done."""
        self._note(f"{safe(team)}: measured to the end")
        self._now_by_team.clear()  # the one before is scored
        self._do(team, Now(team=team, since=self._now()) if self._is_scored else None)

    def on_failure(self, team: str, error: FlareError) -> None:
        """Note what has ended the measurement of a team."""
        if team in self._teams:
            self._change(team, problem=str(error))
        self._do(team, None)
        self._note(f"{safe(team)}: not measured to the end: {error}")

    def on_unscored(self, team: str, error: FlareError) -> None:
        """Note why a team was not scored."""
        self._change(team, scoring_problem=str(error))
        self._note(f"{safe(team)}: measured, but not scored: {error}")

    def end(self, state: State, problem: str = "") -> None:
        """Note that it has ended."""
        self._now_by_team.clear()
        self._run = replace(self._run, state=state, problem=problem)
        self._do("", None)
        self._note({State.FINISHED: "Done"}.get(state, "Ended before it was done"))

    def _do(self, team: str, now: Now | None) -> None:
        """Note what is done of a team, which others do not wait for on other lanes."""
        self._now_by_team.pop(team, None)
        if now:
            self._now_by_team[team] = now
        first, *beside = self._now_by_team.values() or (None,)
        self._run = replace(self._run, now=first, beside=tuple(filter(None, beside)))

    def _change(self, team: str, **fields: object) -> None:
        """Change what is known of a team."""
        self._teams[team] = replace(self._teams[team], **fields)  # type: ignore[arg-type]

    def _note(self, text: str) -> None:
        """Keep what has happened."""
        self._events.append(Event(at=self._now(), text=text))


def _refusals(archives: Sequence[Archive]) -> Iterator[Refusal]:
    """Archives that cannot be run, and why."""
    for archive in archives:
        for problem in archive.problems:
            yield Refusal(
                team=archive.team, archive=archive.path.name, problem=str(problem)
            )


def settings_of(setup: Setup) -> Iterator[tuple[str, str]]:
    """How teams are measured, in words for people."""
    options, limits = setup.job.options, setup.conditions.limits
    runs, gpu, engine = options.runs, setup.conditions.gpu, setup.described
    device = gpu.device if gpu else None
    if setup.lanes:
        device, limits = setup.lanes[0].gpu, setup.lanes[0].limits
    host = describe_host()
    warm = "warm, after a first run that does not count"
    caches = {
        Caches.COLD: "cold: emptied before each run",
        Caches.WARM: warm if runs.has_warm_up else "warm",
    }
    yield (
        "GPU",
        f"{device.name}, driver {device.driver}, {device.uuid}" if device else "none",
    )
    yield "time limit of a run", f"{limits.timeout_s:g} s"
    yield "memory", f"{limits.memory}, and {limits.shm_size} of /dev/shm"
    yield "outputs", f"{limits.output_size}, {OUTPUT_FILES} files"
    yield "disk of a container", f"{limits.disk_bytes / 2**30:g} GiB"
    yield "processors of a container", limits.cpus or "all"
    for lane in setup.lanes:
        what = lane.gpu.uuid if lane.gpu else "no GPU"
        yield lane.name, f"{what}, processors {lane.limits.cpus}"
    yield "runs of each case", str(runs.repeats)
    yield "caches", caches[setup.conditions.caches]
    turns = "take turns" if options.interleave else "one after the other"
    yield "teams", f"{len(setup.lanes)} at a time" if setup.lanes else turns
    yield "interval between samples", f"{runs.interval_s:g} s"
    runtime = limits.runtime or engine.get("default_runtime") or "its default"
    yield "engine", f"version {engine.get('version')}, runtime {runtime}"
    yield "computer", f"{host['processor']}, {host['cpus']} processors"
    yield "known weaknesses", "; ".join(find_weaknesses(engine)) or "none"
