"""Measures one team: what is left to do, its image loaded, case by case."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from flare.challenge.reading import measuring_rules
from flare.challenge.rules import Challenge
from flare.common.errors import EngineError, FlareError, obey_stop
from flare.common.files import remove_tree
from flare.common.schema import dump
from flare.common.text import safe
from flare.evaluation.submission.find import LabelMapFile
from flare.measuring.archive.reading import Archive
from flare.measuring.cleanup import clean_up
from flare.measuring.container import (
    LOGS,
    Conditions,
    ContainerRun,
    case_record,
    keep_prediction,
    keep_runs,
)
from flare.measuring.engines.interface import Engine
from flare.measuring.host import describe_host, missing_walls
from flare.measuring.image import LoadedImage, loaded_image
from flare.measuring.lane import Lane
from flare.measuring.options import Caches, MeasureOptions
from flare.measuring.sampling import open_gpu
from flare.measuring.trial import run_case, run_empty
from flare.results.archives_csv import LEDGER_CSV, LedgerEntry, find_earlier, register
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
    write_records,
)
from flare.results.errors import MeasurementError
from flare.results.measurement_json import (
    DOCKER,
    MEASUREMENT_JSON,
    OF_HOST,
    MeasurementLog,
    Settings,
)
from flare.results.team_folder import FolderLock

_log = logging.getLogger(__name__)

EMPTY_RUNS = 3
"""Containers that do nothing, which tell what the engine itself costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is measured: the options, and all that they name as it was read."""

    options: MeasureOptions
    challenge: Challenge
    """Its rules decide what a wrong output is, and what the maximum of memory is."""
    results: Path
    """A folder for each team is made in it."""
    cases: tuple[LabelMapFile, ...]
    """The CTs that the images are run on."""
    archives: tuple[Archive, ...]
    """What teams have sent; those with problems are not run."""
    unread: tuple[tuple[str, FlareError], ...] = ()
    """Teams whose archives could not be read, and why."""

    @property
    def runnable(self) -> tuple[Archive, ...]:
        """Archives without problems."""
        return tuple(archive for archive in self.archives if not archive.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamJob:
    """All that is needed to measure a team on a lane, in whichever process."""

    job: Job
    """Without archives; its paths are absolute, and its caches are decided."""
    archive: Archive
    """Without problems."""
    engine: Engine
    """Runs its containers."""
    lane: Lane
    images_sha256: str
    """Over the names and contents of the images of all cases."""
    after: tuple[Path, ...] = ()
    """Folders of teams whose process was killed on the lane: what those have left is
    being removed while they are locked."""
    lock_wait_s: float | None = None
    """How long a team's folder is waited for; None for the usual time."""

    @property
    def team(self) -> str:
        """Name of the team."""
        return self.archive.team

    @property
    def folder(self) -> Path:
        """The folder of the team's results."""
        return self.job.results / self.team


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan:
    """What is to be done of a team, whose folder is locked."""

    task: TeamJob
    lock: FolderLock
    """Of the team's folder."""
    log: MeasurementLog
    """What measurements of the team were made with."""
    records: dict[str, CaseRecord]
    """What was measured, by case."""
    todo: tuple[LabelMapFile, ...]
    """The cases that are run: those without a result, those on which the engine failed,
    and those asked for."""


def measure_team(task: TeamJob) -> Iterator[CaseRecord]:
    """Run all cases of a team that are left to do, and keep what is measured.

    Yields
    ------
    CaseRecord
        Of each case; first of those that need not be run. Nothing of a container is
        there meanwhile.

    Raises
    ------
    FlareError
        If the team cannot be measured, or its image not be loaded.
    """
    for folder in task.after:
        with suppress(MeasurementError), FolderLock(folder, wait_s=task.lock_wait_s):
            pass
    with planned_team(task) as plan:
        names = [case.case for case in plan.todo]
        yield from [plan.records[n] for n in plan.records if n not in names]
        if plan.todo:
            with _opened(plan) as image:
                for case in plan.todo:
                    yield _run(plan, image, case)


@contextmanager
def planned_team(task: TeamJob, *, is_here: bool = True) -> Iterator[TeamPlan]:
    """Lock the folder of a team, enter it in the ledger, and see what is left to do.

    Parameters
    ----------
    task : TeamJob
        The team, and all that its measurement needs.
    is_here : bool
        Whether its containers run on this computer, and what a run has left is seen.

    Yields
    ------
    TeamPlan
        While nobody else can change the team's folder.

    Raises
    ------
    MeasurementError
        If the team has sent another archive, or was measured in another way.
    """
    results, options = task.job.results, task.job.options
    with ExitStack() as locks:
        # Before anything of the team is read, so that nobody else changes it.
        lock = locks.enter_context(FolderLock(task.folder, wait_s=task.lock_wait_s))
        if is_here:
            clean_up(task.engine, task.folder)
        model = task.archive.model
        entry = LedgerEntry(
            team=task.team,
            archive_sha256=task.archive.sha256,
            model_sha256=model.sha256 if model else "",
            paper=options.paper,
            date=date.today().isoformat(),
            reason=options.new_archive,
        )
        ledger = results / LEDGER_CSV
        with FolderLock(results):
            if _put_aside(ledger, entry):
                locks.close()
                lock = locks.enter_context(FolderLock(task.folder))
            log = MeasurementLog(
                task.folder / MEASUREMENT_JSON,
                dump(_settings(task)),
                accepted=OF_HOST if options.unlike_host else (),
            )
            register(ledger, entry)
        done = read_records(task.folder / EFFICIENCY_CSV)
        todo = [
            case
            for case in task.job.cases
            if case.case not in done
            or done[case.case].status is RunStatus.ENGINE_ERROR
            or case.case in options.rerun
        ]
        yield TeamPlan(task=task, lock=lock, log=log, records=done, todo=tuple(todo))


def _settings(task: TeamJob) -> Settings:
    archive, options = task.archive, task.job.options
    assert options.runs.caches
    rules = measuring_rules(task.job.challenge)
    settings = Settings(
        archive_sha256=archive.sha256,
        **asdict(task.lane.limits),
        interval_s=options.runs.interval_s,
        repeats=options.runs.repeats,
        caches=options.runs.caches.value,
        max_gpu_memory=rules["max_gpu_memory"],
        labels=rules["labels"],
        images_sha256=task.images_sha256,
        processor=describe_host()["processor"],
        contract=options.contract.setting,
        model_sha256=archive.model.sha256 if archive.model else "",
        container_engine="" if options.engine == DOCKER else options.engine,
    )
    if not task.lane.of:
        return settings
    kind = task.lane.kind
    return replace(
        settings,
        gpu=kind.gpu,
        processor=kind.processor,
        cpus=kind.cpus,
        memory=kind.memory,
        lanes=kind.lanes,
    )


def _put_aside(ledger: Path, entry: LedgerEntry) -> bool:
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
    if not earlier or earlier.sent == entry.sent:
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
def _opened(plan: TeamPlan) -> Iterator[LoadedImage]:
    """Load a team's image, and see what the engine itself costs."""
    job, lane = plan.task.job, plan.task.lane
    runs = job.options.runs
    assert runs.caches
    _log.info("loading the image of %s", safe(plan.task.team))
    with (
        open_gpu(lane.gpu.uuid) if lane.gpu else nullcontext() as gpu,
        loaded_image(
            plan.task.archive,
            plan.task.folder,
            engine=plan.task.engine,
            conditions=Conditions(
                limits=lane.limits,
                contract=job.options.contract,
                interval_s=runs.interval_s,
                caches=runs.caches,
                gpu=gpu,
                exclusive_cpus=lane.cpus if lane.of > 1 else (),
            ),
            lock=plan.lock,
        ) as image,
    ):
        empty = run_empty(image, EMPTY_RUNS)
        plan.log.add(_session(plan, image, empty))
        if runs.has_warm_up and runs.caches is Caches.WARM:
            run_case(image, plan.todo[0], job.challenge)
        yield image


def _run(plan: TeamPlan, image: LoadedImage, case: LabelMapFile) -> CaseRecord:
    """Run a case until a repeat fails, and write its row and its files."""
    job, folder = plan.task.job, plan.task.folder
    runs: list[ContainerRun] = []
    files: Sequence[Path] = ()
    status, message, doubts = RunStatus.OK, "", list[str]()
    for _ in range(job.options.runs.repeats):
        try:
            trial = run_case(image, case, job.challenge)
        except EngineError as error:
            obey_stop(error)
            # The label maps of an earlier repeat are gone.
            status, message, files = RunStatus.ENGINE_ERROR, error.finding, ()
        else:
            runs += [trial.run] if trial.run else []
            doubts += [trial.doubt] if trial.doubt else []
            status, message, files = trial.status, trial.message, trial.files
        if status is not RunStatus.OK:
            break
    rerun = _rerun_note(plan, case)
    if status is RunStatus.OK:
        record = case_record(
            case.case,
            runs,
            rule=job.challenge.max_gpu_memory,
            cpus=os.cpu_count() or 1,
            exclusive_cpus=len(image.conditions.exclusive_cpus),
            rerun=rerun,
            doubts=doubts,
        )
    else:
        see = f"; see {LOGS}/{case.case}.log" if runs else ""
        record = _failed(case, status, f"{message}{see}", rerun)
    if case.case in plan.records:
        if status is RunStatus.ENGINE_ERROR:
            return record  # what there is stays
        # If this is interrupted, the case is run once more: its old values do not
        # stand beside a new prediction.
        unfinished = "its rerun was interrupted"
        _keep(plan, _failed(case, RunStatus.ENGINE_ERROR, unfinished, rerun))
    keep_runs(folder, case.case, runs)
    keep_prediction(folder, case.case, files)
    _keep(plan, record)
    return record


def _failed(
    case: LabelMapFile, status: RunStatus, message: str, rerun: str
) -> CaseRecord:
    return CaseRecord(case=case.case, status=status, message=message, rerun=rerun)


def _keep(plan: TeamPlan, record: CaseRecord) -> None:
    plan.records[record.case] = record
    write_records(plan.records.values(), plan.task.folder / EFFICIENCY_CSV)


def _rerun_note(plan: TeamPlan, case: LabelMapFile) -> str:
    """Why a case is run again, and its outcome before."""
    before, options = plan.records.get(case.case), plan.task.job.options
    if not before or case.case not in options.rerun:
        return before.rerun if before else ""
    outcome = before.status.value
    if before.runtime_s is not None:
        outcome += f", {before.runtime_s:.2f} s"
    note = f"{options.reason} (before: {outcome})"
    return f"{before.rerun}; {note}" if before.rerun else note


def _session(
    plan: TeamPlan, image: LoadedImage, empty_s: Sequence[float]
) -> dict[str, Any]:
    """All that may matter when the values of a team are questioned."""
    archive, options, lane = plan.task.archive, plan.task.job.options, plan.task.lane
    gpu, unlike = image.conditions.gpu, plan.log.unlike
    described = plan.task.engine.describe()
    return {
        "team": archive.team,
        "archive": archive.path.name,
        **({"model": model.path.name} if (model := archive.model) else {}),
        "image": image.image,
        "engine": dict(described),
        "weaknesses": list(missing_walls(described)),
        "engine_cost_s": {
            "median": round(median(empty_s), 4),
            "smallest": round(min(empty_s), 4),
            "largest": round(max(empty_s), 4),
            "runs": len(empty_s),
        },
        "unlike": {"reason": options.unlike_host, "found": unlike} if unlike else None,
        "host": describe_host(),
        "gpu": asdict(gpu.device) if gpu else None,
        **({"lane": lane.record()} if lane.of else {}),
        "command": image.command(),
        "warm_up": options.runs.has_warm_up,
        "interleaved": False,  # earlier versions could let teams take turns
        "doubts": list(archive.doubts),
    }
