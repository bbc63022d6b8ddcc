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
from flare.common.errors import EngineError, FlareError, raise_stop
from flare.common.files import remove_tree
from flare.common.schema import dump
from flare.common.text import safe
from flare.evaluation.submission.find import LabelMapFile
from flare.measuring.answers import keep_answers
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.cleanup import LeftoverError, clean_up
from flare.measuring.container import (
    LOGS,
    Conditions,
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
from flare.measuring.trial import Trial, run_case, run_empty
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
    """A measurement as it was read: the options, and all that they name."""

    options: MeasureOptions
    challenge: Challenge
    """Its rules decide what a wrong output is, and what the maximum of memory is."""
    results: Path
    """A folder for each team is made in it."""
    cases: tuple[LabelMapFile, ...]
    """The CTs that the images are run on."""
    archives: tuple[Archive, ...]
    """Archives that teams have sent; those with problems are not run."""
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
    """The cases of a team that are left to run, while its folder is locked."""

    task: TeamJob
    lock: FolderLock
    """The lock of the team's folder."""
    log: MeasurementLog
    """The team's measurement.json."""
    records: dict[str, CaseRecord]
    """Rows of efficiency.csv, by case."""
    todo: tuple[LabelMapFile, ...]
    """The cases that are run: those without a result, those on which the engine failed,
    and those asked for."""


def measure_team(task: TeamJob) -> Iterator[CaseRecord]:
    """Run all cases of a team that are left to do, and keep what is measured.

    Yields the row of each case, first of those that need not be run. No container is
    there meanwhile. A FlareError is raised if the team cannot be measured, or its image
    not be loaded.
    """
    for folder in task.after:
        with suppress(MeasurementError), FolderLock(folder, wait_s=task.lock_wait_s):
            pass
    with planned_team(task) as plan:
        names = [case.case for case in plan.todo]
        yield from [plan.records[case] for case in plan.records if case not in names]
        if plan.todo:
            with _opened(plan) as image:
                for case in plan.todo:
                    yield _run(plan, image, case)


@contextmanager
def planned_team(task: TeamJob, *, is_here: bool = True) -> Iterator[TeamPlan]:
    """Lock the folder of a team, enter it in the ledger, and see what is left to do.

    Nobody else can change the folder within the block. `is_here` is whether the
    containers run on this computer, and what a run has left is seen. An ArchiveError is
    raised if the engine still has something of the team that nobody can remove. A
    MeasurementError is raised if the team has sent another archive, or was measured in
    another way.
    """
    results, options = task.job.results, task.job.options
    with ExitStack() as locks:
        # Before anything of the team is read, so that nobody else changes it.
        lock = locks.enter_context(FolderLock(task.folder, wait_s=task.lock_wait_s))
        if is_here:
            _remove_leftovers(task)
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
        records = read_records(task.folder / EFFICIENCY_CSV)
        finished = {case for case, record in records.items() if record.is_finished}
        finished -= {*options.rerun}
        todo = tuple(case for case in task.job.cases if case.case not in finished)
        yield TeamPlan(task=task, lock=lock, log=log, records=records, todo=todo)


def _remove_leftovers(task: TeamJob) -> None:
    """Remove what a run of the team has left; if the engine keeps it, the team waits.

    Its guard has tried before, and others' containers can be removed: so it is the
    team's fault, and stops nobody else.
    """
    try:
        clean_up(task.engine, task.folder)
    except LeftoverError as error:
        problem = f"nothing more of this team is run: {error.finding}"
        raise ArchiveError(task.archive.path.name, problem, error.remedy) from error


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
        answers=rules["answers"],
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
    """Move the measurements of an archive that another one may replace.

    They are kept in RESULTS/.replaced, where `flare rank` does not look. Returns
    whether there were any. A MeasurementError is raised if another archive may not
    replace it.
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
                runs=runs,
                gpu=gpu,
                idle_power_w=gpu.idle_power_w() if gpu else None,
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
    """Run a case as often as asked for, and write its row and its files."""
    folder = plan.task.folder
    trials = _run_repeats(plan, image, case)
    runs = [trial.run for trial in trials if trial.run]
    # The label maps of earlier repeats are gone.
    last = trials[-1]
    rerun = _rerun_note(plan, case)
    if last.status is RunStatus.OK:
        record = case_record(
            case.case,
            runs,
            rule=plan.task.job.challenge.max_gpu_memory,
            cpus=os.cpu_count() or 1,
            exclusive_cpus=len(image.conditions.exclusive_cpus),
            idle_power_w=image.conditions.idle_power_w,
            rerun=rerun,
            doubts=[trial.doubt for trial in trials if trial.doubt],
        )
    else:
        see = f"; see {LOGS}/{case.case}.log" if runs else ""
        record = _failed(case, last.status, f"{last.message}{see}", rerun)
    if case.case in plan.records:
        if last.status is RunStatus.ENGINE_ERROR:
            return record  # what there is stays
        # If this is interrupted, the case is run once more: its old values do not
        # stand beside a new prediction.
        unfinished = "its rerun was interrupted"
        _keep(plan, _failed(case, RunStatus.ENGINE_ERROR, unfinished, rerun))
    keep_runs(folder, case.case, runs)
    keep_prediction(folder, case.case, last.files)
    keep_answers(folder, plan.task.job.challenge, case.case, last.answers)
    _keep(plan, record)
    return record


def _run_repeats(plan: TeamPlan, image: LoadedImage, case: LabelMapFile) -> list[Trial]:
    """Run a case until a repeat fails, or all are done."""
    trials: list[Trial] = []
    for _ in range(plan.task.job.options.runs.repeats):
        try:
            trial = run_case(image, case, plan.task.job.challenge)
        except EngineError as error:
            raise_stop(error)
            trial = Trial(
                run=None, status=RunStatus.ENGINE_ERROR, message=error.finding
            )
        trials.append(trial)
        if trial.status is not RunStatus.OK:
            break
    return trials


def _failed(
    case: LabelMapFile, status: RunStatus, message: str, rerun: str
) -> CaseRecord:
    return CaseRecord(case=case.case, status=status, message=message, rerun=rerun)


def _keep(plan: TeamPlan, record: CaseRecord) -> None:
    plan.records[record.case] = record
    write_records(plan.records.values(), plan.task.folder / EFFICIENCY_CSV)


def _rerun_note(plan: TeamPlan, case: LabelMapFile) -> str:
    """Why a case is run again, and its outcome before."""
    record, options = plan.records.get(case.case), plan.task.job.options
    if not record:
        return ""
    if case.case not in options.rerun:
        return record.rerun
    outcome = record.status.value
    if record.runtime_s is not None:
        outcome += f", {record.runtime_s:.2f} s"
    note = f"{options.reason} (before: {outcome})"
    return f"{record.rerun}; {note}" if record.rerun else note


def _session(
    plan: TeamPlan, image: LoadedImage, empty_s: Sequence[float]
) -> dict[str, Any]:
    archive, options, lane = plan.task.archive, plan.task.job.options, plan.task.lane
    gpu, unlike = image.conditions.gpu, plan.log.unlike
    described = plan.task.engine.describe()
    session: dict[str, Any] = {"team": archive.team, "archive": archive.path.name}
    if archive.model:
        session["model"] = archive.model.path.name
    session |= {
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
    }
    if lane.of:
        session["lane"] = lane.record()
    session |= {
        "command": image.command(),
        "warm_up": options.runs.has_warm_up,
        "interleaved": False,  # earlier versions could let teams take turns
        "doubts": list(archive.doubts),
    }
    return session
