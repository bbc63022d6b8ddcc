"""Measures one team, from the ledger to its last case, and writes what comes of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from flare.archive import Archive
from flare.cases import Case
from flare.challenge import Challenge
from flare.container import COMMAND, ContainerRun, Engine, Limits
from flare.efficiency import (
    FILE_NAME,
    CaseRecord,
    RunStatus,
    middle_run,
    read_records,
    record_of,
    write_records,
)
from flare.errors import EngineError
from flare.gpu import NvmlSource
from flare.guard import clean_up, remove_tree, take_lock
from flare.hostrecord import RECORD, Record, describe_host
from flare.labelmaps import SUFFIXES
from flare.ledger import FILE_NAME as LEDGER
from flare.ledger import Entry, find_earlier, register
from flare.runner import Runner
from flare.teamfolders import TRACES
from flare.traces import write_trace

PREDICTIONS = "predictions"
LOGS = "logs"
REJECTED = "rejected"
"""Folder of label maps that cannot be used, for whoever asks."""

EMPTY_RUNS = 5
"""So many containers that do nothing tell what the engine itself costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How teams are measured."""

    limits: Limits
    interval_s: float = 0.1
    """Between two samples, as in the official scripts."""
    repeats: int = 1
    """Of each case; the one with the median running time counts."""
    has_warm_up: bool = True
    """Whether a first run, of the first case, is thrown away."""
    is_interleaved: bool = False
    """Whether teams take turns, case by case, instead of one after the other."""
    rerun: tuple[str, ...] = ()
    """Cases that are run again."""
    reason: str = ""
    """Why they are."""
    new_archive: str = ""
    """Why a team may send another archive."""
    paper: str = ""
    """Of the team, for the ledger."""


class Session:
    """One team, from the ledger to its last case."""

    def __init__(
        self,
        archive: Archive,
        results: Path,
        challenge: Challenge,
        engine: Engine,
        options: Options,
        gpu: NvmlSource | None,
        described: Mapping[str, str],
        images_sha256: str,
    ) -> None:
        self.team, self.is_open, self.has_failed = archive.team, False, False
        self._images_sha256 = images_sha256
        self._archive, self._challenge, self._engine = archive, challenge, engine
        self._options, self._gpu, self._described = options, gpu, described
        self._folder = results / archive.team
        today = date.today().isoformat()
        entry = Entry(
            team=archive.team,
            archive_sha256=archive.sha256,
            paper=options.paper,
            date=today,
            reason=options.new_archive,
        )
        # Before anything of the team is read, so that nobody else changes it.
        self._lock = take_lock(archive.tag)
        try:
            clean_up(engine, self._folder)
            ledger = results / LEDGER
            with closing(take_lock(str(ledger.resolve()))):
                _put_aside(ledger, entry)
                self._record = Record(self._folder / RECORD, self._settings())
                register(ledger, entry)
        except BaseException:
            self._lock.close()
            raise
        self._records = read_records(self._folder / FILE_NAME)
        self.todo: list[Case] = []

    def plan(self, cases: Sequence[Case]) -> None:
        """Decide which cases are to be run."""
        again = (RunStatus.ENGINE_ERROR,)
        self.todo = [
            case
            for case in cases
            if case.name not in self._records
            or self._records[case.name].status in again
            or case.name in self._options.rerun
        ]

    def _settings(self) -> dict[str, Any]:
        """What must not change while the team is measured."""
        limits, options = self._options.limits, self._options
        return {
            "archive_sha256": self._archive.sha256,
            "gpu": limits.gpu,
            "timeout_s": limits.timeout_s,
            "memory": limits.memory,
            "shm_size": limits.shm_size,
            "processes": limits.processes,
            "interval_s": options.interval_s,
            "repeats": options.repeats,
            "challenge_sha256": self._challenge.checksum,
            "images_sha256": self._images_sha256,
            "processor": describe_host()["processor"],
        }

    def open(self, stack: ExitStack) -> None:
        """Load the image, and see what the engine itself costs."""
        options = self._options
        self._runner = stack.enter_context(
            Runner(
                self._archive,
                self._folder,
                engine=self._engine,
                limits=options.limits,
                interval_s=options.interval_s,
                gpu=self._gpu,
                lock=self._lock,
            )
        )
        self.is_open = True
        empty = [self._runner.run_empty() for _ in range(EMPTY_RUNS)]
        self._write_record(self._runner.image, empty)
        if options.has_warm_up:
            with self._runner.run_case(self.todo[0], self._challenge):
                pass

    def close(self) -> None:
        """Remove the image, before the next team's is loaded."""
        if self.is_open:
            self._runner.close()
        self._lock.close()

    # --- Running ------------------------------------------------------------------

    def run(self, case: Case) -> CaseRecord:
        """Run a case, all its repeats, and write its row."""
        rerun = self._rerun_note(case)
        runs: list[ContainerRun] = []
        files: list[Path] = []
        status, message = RunStatus.OK, ""
        for _ in range(self._options.repeats):
            try:
                with self._runner.run_case(case, self._challenge) as (found, outputs):
                    runs.append(found.run)
                    status, message = found.status, found.message
                    files = self._runner.set_aside(outputs, status)
            except EngineError as error:
                status, message = RunStatus.ENGINE_ERROR, error.finding
            if status is not RunStatus.OK:
                break
        if status is RunStatus.OK:
            record = record_of(
                case.name,
                runs,
                rule=self._challenge.max_gpu_memory,
                cpus=os.cpu_count() or 1,
                rerun=rerun,
            )
        else:
            if runs:
                message += f"; see {LOGS}/{case.name}.log"
            record = CaseRecord(
                case=case.name, status=status, message=message, rerun=rerun
            )
        if case.name in self._records:
            if status is RunStatus.ENGINE_ERROR:
                return record  # what there is stays
            # If this is interrupted, the case is run once more: its old values do not
            # stand beside a new prediction.
            text = "its rerun was interrupted"
            again = RunStatus.ENGINE_ERROR
            self._keep(
                CaseRecord(case=case.name, status=again, message=text, rerun=rerun)
            )
        self._write_files(case, runs, files, status)
        self._keep(record)
        return record

    def _write_files(
        self,
        case: Case,
        runs: Sequence[ContainerRun],
        files: Sequence[Path],
        status: RunStatus,
    ) -> None:
        """Write log, trace, and the prediction of a case, or what was there instead."""
        if runs:
            log = self._folder / LOGS / f"{case.name}.log"
            log.parent.mkdir(exist_ok=True)
            log.write_bytes(runs[-1].log)
            trace = middle_run(runs).trace
            write_trace(trace, self._folder / TRACES / f"{case.name}.csv")
        predictions = self._folder / PREDICTIONS
        rejected = self._folder / REJECTED / case.name
        for suffix in SUFFIXES:
            (predictions / f"{case.name}{suffix}").unlink(missing_ok=True)
        remove_tree(rejected)
        for file in files:
            if status is RunStatus.OK:
                suffix = next(s for s in SUFFIXES if file.name.endswith(s))
                predictions.mkdir(exist_ok=True)
                file.replace(predictions / f"{case.name}{suffix}")
            else:
                rejected.mkdir(parents=True, exist_ok=True)
                file.replace(rejected / file.name)

    def _keep(self, record: CaseRecord) -> None:
        """Write the row of a case."""
        self._records[record.case] = record
        write_records(self._records.values(), self._folder / FILE_NAME)

    def _rerun_note(self, case: Case) -> str:
        """Why a case is run again, and what had come of it before."""
        before = self._records.get(case.name)
        if not before or case.name not in self._options.rerun:
            return before.rerun if before else ""
        was = before.status.value
        if before.runtime_s is not None:
            was += f", {before.runtime_s:.2f} s"
        note = f"{self._options.reason} (before: {was})"
        return f"{before.rerun}; {note}" if before.rerun else note

    # --- The record ----------------------------------------------------------------

    def _write_record(self, image: str, empty: Sequence[float]) -> None:
        """Write down all that may matter when the values are questioned."""
        limits = self._options.limits
        command = (
            *self._engine.create_command(
                "IMAGE", Path("INPUTS"), Path("OUTPUTS"), limits, "KEY"
            ),
            shlex.join(COMMAND),
        )
        session = {
            "team": self.team,
            "archive": self._archive.path.name,
            "image": image,
            "engine": dict(self._described),
            "engine_cost_s": {
                "median": round(median(empty), 4),
                "smallest": round(min(empty), 4),
                "largest": round(max(empty), 4),
                "runs": len(empty),
            },
            "host": describe_host(),
            "gpu": asdict(self._gpu.device) if self._gpu else None,
            "command": " ".join(command),
            "warm_up": self._options.has_warm_up,
            "interleaved": self._options.is_interleaved,
            "doubts": list(self._archive.doubts),
        }
        self._record.add(session)


def _put_aside(ledger: Path, entry: Entry) -> None:
    """Move what was measured of an archive that another one may replace.

    It is kept in RESULTS/.replaced, where `flare rank` does not look.

    Raises
    ------
    MeasurementError
        If another archive may not replace it.
    """
    earlier = find_earlier(ledger, entry)
    folder = ledger.parent / entry.team
    if earlier and earlier.archive_sha256 != entry.archive_sha256 and folder.exists():
        name = f"{entry.team}-{earlier.archive_sha256[:12]}"
        target = ledger.parent / ".replaced" / name
        target.parent.mkdir(exist_ok=True)
        remove_tree(target)
        folder.rename(target)
