"""Measures one team: what is left to do, its image loaded, case by case."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from flare.challenge.digest import measuring_rules
from flare.challenge.rules import Challenge
from flare.common.bulkhead import obey_stop
from flare.common.engine import Engine
from flare.common.errors import EngineError, FlareError
from flare.common.files import remove_tree
from flare.common.machine import describe_host
from flare.common.schema import dump
from flare.common.text import listing, nearest
from flare.measuring.archive.reading import Archive
from flare.measuring.cleanup import clean_up
from flare.measuring.container import Conditions, ContainerRun
from flare.measuring.host import find_weaknesses
from flare.measuring.image import LoadedImage, loaded_image
from flare.measuring.inputs import Case
from flare.measuring.lane import Lane
from flare.measuring.options import Caches, Options
from flare.measuring.record import LOGS, keep_label_maps, keep_runs, record_of
from flare.measuring.trial import run_case, run_empty
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
    write_records,
)
from flare.results.errors import MeasurementError
from flare.results.ledger_csv import LEDGER_CSV, Entry, find_earlier, register
from flare.results.measurement_json import (
    MEASUREMENT_JSON,
    OF_HOST,
    MeasurementLog,
    Settings,
)
from flare.results.team_folder import FolderLock

EMPTY_RUNS = 3
"""Containers that do nothing, which tell what the engine itself costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is measured: the options, and all that they name as it was read."""

    options: Options
    challenge: Challenge
    """Its rules decide what a wrong output is, and what the maximum of memory is."""
    results: Path
    """A folder for each team is made in it."""
    cases: tuple[Case, ...]
    """What the images are run on."""
    archives: tuple[Archive, ...]
    """What teams have sent; those with problems are not run."""
    unread: tuple[tuple[str, FlareError], ...] = ()
    """Teams whose archives could not be read, and why."""

    @property
    def runnable(self) -> tuple[Archive, ...]:
        """Archives without problems."""
        return tuple(archive for archive in self.archives if not archive.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is the same for all teams that are measured in one place."""

    job: Job
    engine: Engine
    described: Mapping[str, Any]
    """What `flare.common.engine.Engine.describe` has returned."""
    conditions: Conditions
    """Under which containers are run."""
    images_sha256: str
    """Over the names and contents of the images of all cases."""
    is_here: bool = True
    """Whether containers run on this computer, and what a run has left is seen."""
    lane: Lane | None = None
    """Where several teams are measured side by side, that of this one."""
    lock_wait_s: float | None = None
    """How long a team's folder is waited for; None for the usual time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan:
    """What is to be done of a team, whose folder is locked."""

    setup: Setup
    archive: Archive
    folder: Path
    """Of the team's results."""
    lock: FolderLock
    """Of that folder."""
    log: MeasurementLog
    """What measurements of the team were made with."""
    done: Mapping[str, CaseRecord]
    """What was measured before, by case."""
    todo: tuple[Case, ...]
    """The cases that are run: those without a result, those on which the engine failed,
    and those asked for."""

    @property
    def team(self) -> str:
        """Name of the team."""
        return self.archive.team


def check_job(job: Job) -> None:
    """See that what is asked for can be done.

    Raises
    ------
    MeasurementError
        If it cannot.
    """
    options, names = job.options, [case.name for case in job.cases]
    unknown = sorted(set(options.rerun) - set(names))
    if unknown:
        near = nearest(unknown[0], names)
        problem = f"there is no such case to run again{near}"
        raise MeasurementError(listing(unknown), problem, "Check --rerun.")
    about_one = (options.new_archive, options.paper, options.rerun)
    if len(job.runnable) > 1 and any(about_one):
        raise MeasurementError(
            "--new-archive, --paper, --rerun",
            "they are about one team, but several archives were given",
            "Measure it alone.",
        )


@contextmanager
def planned_team(setup: Setup, archive: Archive) -> Iterator[TeamPlan]:
    """Lock the folder of a team, enter it in the ledger, and see what is left to do.

    Parameters
    ----------
    setup : Setup
        Of the measurement.
    archive : Archive
        Of the team, without problems.

    Yields
    ------
    TeamPlan
        While nobody else can change the team's folder.

    Raises
    ------
    MeasurementError
        If the team has sent another archive, or was measured in another way.
    """
    results, options = setup.job.results, setup.job.options
    folder = results / archive.team
    with ExitStack() as locks:
        # Before anything of the team is read, so that nobody else changes it.
        lock = locks.enter_context(FolderLock(folder, wait_s=setup.lock_wait_s))
        if setup.is_here:
            clean_up(setup.engine, folder)
        entry = _entry(setup, archive)
        ledger = results / LEDGER_CSV
        with FolderLock(results):
            if _put_aside(ledger, entry):
                locks.close()
                lock = locks.enter_context(FolderLock(folder))
            # Earlier versions took the challenge's file byte by byte.
            former = {"challenge_sha256": setup.job.challenge.checksum}
            log = MeasurementLog(
                folder / MEASUREMENT_JSON,
                dump(_settings(setup, archive)),
                former,
                OF_HOST if options.unlike_host else (),
            )
            register(ledger, entry)
        done = read_records(folder / EFFICIENCY_CSV)
        todo = [
            case
            for case in setup.job.cases
            if case.name not in done
            or done[case.name].status is RunStatus.ENGINE_ERROR
            or case.name in options.rerun
        ]
        yield TeamPlan(
            setup=setup,
            archive=archive,
            folder=folder,
            lock=lock,
            log=log,
            done=done,
            todo=tuple(todo),
        )


def _entry(setup: Setup, archive: Archive) -> Entry:
    return Entry(
        team=archive.team,
        archive_sha256=archive.sha256,
        model_sha256=archive.model.sha256 if archive.model else "",
        paper=setup.job.options.paper,
        date=date.today().isoformat(),
        reason=setup.job.options.new_archive,
    )


def _settings(setup: Setup, archive: Archive) -> Settings:
    conditions, runs = setup.conditions, setup.job.options.runs
    found = Settings(
        archive_sha256=archive.sha256,
        **asdict(conditions.limits),
        interval_s=conditions.interval_s,
        repeats=runs.repeats,
        caches=conditions.caches.value,
        **measuring_rules(setup.job.challenge),
        images_sha256=setup.images_sha256,
        processor=describe_host()["processor"],
        **conditions.contract.settings(),
        model_sha256=archive.model.sha256 if archive.model else "",
    )
    return replace(found, **setup.lane.settings()) if setup.lane else found


def _put_aside(ledger: Path, entry: Entry) -> bool:
    """Move what was measured of an archive that another one may replace.

    It is kept in RESULTS/.replaced, where `flare rank` does not look.

    Returns
    -------
    bool
        Whether there was anything.

    Raises
    ------
    MeasurementError
        If another archive may not replace it.
    """
    earlier = find_earlier(ledger, entry)
    if not earlier or earlier.is_of(entry):
        return False
    folder = ledger.parent / entry.team
    name = f"{entry.team}-{earlier.archive_sha256[:12]}"
    if earlier.model_sha256:
        name += f"-{earlier.model_sha256[:12]}"
    target = ledger.parent / ".replaced" / name
    target.parent.mkdir(exist_ok=True)
    remove_tree(target)
    folder.rename(target)
    return True


@contextmanager
def opened_team(plan: TeamPlan) -> Iterator[OpenTeam]:
    """Load a team's image, and see what the engine itself costs.

    Parameters
    ----------
    plan : TeamPlan
        With at least one case to be run.

    Yields
    ------
    OpenTeam
        Whose cases can be run; its image is removed in the end.

    Raises
    ------
    FlareError
        If the image cannot be loaded, or not even an empty container be run.
    """
    setup, job = plan.setup, plan.setup.job
    with loaded_image(
        plan.archive,
        plan.folder,
        engine=setup.engine,
        conditions=setup.conditions,
        lock=plan.lock,
    ) as image:
        empty = run_empty(image, EMPTY_RUNS)
        plan.log.add(_made_with(plan, image, empty))
        is_warm = setup.conditions.caches is Caches.WARM
        if job.options.runs.has_warm_up and is_warm:
            run_case(image, plan.todo[0], job.challenge)
        yield OpenTeam(plan, image)


class OpenTeam:
    """A team whose image is loaded.

    Parameters
    ----------
    plan : TeamPlan
        What is done of it.
    image : LoadedImage
        Its image.
    """

    def __init__(self, plan: TeamPlan, image: LoadedImage) -> None:
        self._plan, self._image = plan, image
        self._records = dict(plan.done)

    def run(self, case: Case) -> CaseRecord:
        """Run a case, all its repeats, and write its row and its files.

        Raises
        ------
        OutputError
            If they cannot be written.
        """
        record, runs, files = self._measure(case)
        if case.name in self._records:
            if record.status is RunStatus.ENGINE_ERROR:
                return record  # what there is stays
            # If this is interrupted, the case is run once more: its old values do not
            # stand beside a new prediction.
            self._keep(
                CaseRecord(
                    case=case.name,
                    status=RunStatus.ENGINE_ERROR,
                    message="its rerun was interrupted",
                    rerun=record.rerun,
                )
            )
        folder, is_right = self._plan.folder, record.status is RunStatus.OK
        keep_runs(folder, case.name, runs)
        keep_label_maps(folder, case.name, files, is_right=is_right)
        self._keep(record)
        return record

    def _measure(
        self, case: Case
    ) -> tuple[CaseRecord, Sequence[ContainerRun], Sequence[Path]]:
        """Run a case until a repeat fails: its row, its runs and its label maps."""
        challenge = self._plan.setup.job.challenge
        runs: list[ContainerRun] = []
        files: Sequence[Path] = ()
        status, message = RunStatus.OK, ""
        for _ in range(self._plan.setup.job.options.runs.repeats):
            try:
                trial = run_case(self._image, case, challenge)
            except EngineError as error:
                obey_stop(error)
                # The label maps of an earlier repeat are gone.
                status, message, files = RunStatus.ENGINE_ERROR, error.finding, ()
            else:
                runs += [trial.run] if trial.run else []
                status, message, files = trial.status, trial.message, trial.files
            if status is not RunStatus.OK:
                break
        rerun = self._rerun_note(case)
        if status is RunStatus.OK:
            rule, cpus = challenge.max_gpu_memory, os.cpu_count() or 1
            own = len(self._plan.setup.conditions.own_cpus)
            record = record_of(
                case.name, runs, rule=rule, cpus=cpus, own_cpus=own, rerun=rerun
            )
        else:
            if runs:
                message += f"; see {LOGS}/{case.name}.log"
            record = CaseRecord(
                case=case.name, status=status, message=message, rerun=rerun
            )
        return record, runs, files

    def _keep(self, record: CaseRecord) -> None:
        self._records[record.case] = record
        write_records(self._records.values(), self._plan.folder / EFFICIENCY_CSV)

    def _rerun_note(self, case: Case) -> str:
        """Why a case is run again, and what had come of it before."""
        before = self._records.get(case.name)
        options = self._plan.setup.job.options
        if not before or case.name not in options.rerun:
            return before.rerun if before else ""
        was = before.status.value
        if before.runtime_s is not None:
            was += f", {before.runtime_s:.2f} s"
        note = f"{options.reason} (before: {was})"
        return f"{before.rerun}; {note}" if before.rerun else note


def _made_with(
    plan: TeamPlan, image: LoadedImage, empty_s: Sequence[float]
) -> dict[str, Any]:
    """All that may matter when the values of a team are questioned."""
    setup, options, unlike = plan.setup, plan.setup.job.options, plan.log.unlike
    gpu = setup.conditions.gpu
    return {
        "team": plan.team,
        "archive": plan.archive.path.name,
        **({"model": model.path.name} if (model := plan.archive.model) else {}),
        "image": image.image,
        "engine": dict(setup.described),
        "weaknesses": find_weaknesses(setup.described),
        "engine_cost_s": {
            "median": round(median(empty_s), 4),
            "smallest": round(min(empty_s), 4),
            "largest": round(max(empty_s), 4),
            "runs": len(empty_s),
        },
        "unlike": {"reason": options.unlike_host, "found": unlike} if unlike else None,
        "host": describe_host(),
        "gpu": asdict(gpu.device) if gpu else None,
        **({"lane": setup.lane.record()} if setup.lane else {}),
        "command": image.command(),
        "warm_up": options.runs.has_warm_up,
        "interleaved": options.interleave,
        "doubts": list(plan.archive.doubts),
    }
