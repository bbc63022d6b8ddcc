"""Measures one team, from the ledger to its last case, and writes what comes of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from flare.challenge.cases import SUFFIXES
from flare.challenge.rulebook import measuring_rules
from flare.challenge.rules import Challenge
from flare.common.errors import EngineError
from flare.common.files import remove_tree
from flare.common.host import describe_host
from flare.common.text import printable
from flare.measuring.archive.reading import Archive
from flare.measuring.cases import Case
from flare.measuring.cleanup import clean_up
from flare.measuring.container import COMMAND, ContainerRun, Limits, create_command
from flare.measuring.engine import Engine
from flare.measuring.host_load import Caches
from flare.measuring.image import Runner, suffix_of
from flare.measuring.lock import FolderLock
from flare.measuring.record import counted_run, record_of
from flare.measuring.sampling.gpu import NvmlSource
from flare.measuring.weaknesses import find_weaknesses
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
    write_records,
)
from flare.results.ledger_csv import LEDGER_CSV, Entry, find_earlier, register
from flare.results.measurement_json import MEASUREMENT_JSON, MeasurementLog
from flare.results.team_folder import PREDICTIONS
from flare.results.traces_csv import TRACES, write_trace

LOGS = "logs"
REJECTED = "rejected"
"""Folder of label maps that cannot be used, for whoever asks."""

REJECTED_BYTES = 2**28
"""So much of them is kept of a team."""

EMPTY_RUNS = 5
"""So many containers that do nothing tell what the engine itself costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How teams are measured."""

    limits: Limits
    interval_s: float = 0.1
    """Between two samples, as in the official scripts."""
    repeats: int = 1
    """Of each case; `counted_run` says which one counts."""
    caches: Caches = Caches.WARM
    """What a run finds in the memory of the computer."""
    has_warm_up: bool = True
    """Whether a first run, of the first case, is thrown away, if caches are warm."""
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
        described: Mapping[str, Any],
        images_sha256: str,
    ) -> None:
        self.team, self.is_open = archive.team, False
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
        self._lock = FolderLock(self._folder)
        try:
            clean_up(engine, self._folder)
            ledger = results / LEDGER_CSV
            with FolderLock(results):
                if _put_aside(ledger, entry):
                    self._lock.close()
                    self._lock = FolderLock(self._folder)
                # Earlier versions took the challenge's file byte by byte.
                former = {"challenge_sha256": challenge.checksum}
                self._log = MeasurementLog(
                    self._folder / MEASUREMENT_JSON, self._settings(), former
                )
                register(ledger, entry)
            self._records = read_records(self._folder / EFFICIENCY_CSV)
        except BaseException:
            self._lock.close()
            raise
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
            "output_size": limits.output_size,
            "disk_bytes": limits.disk_bytes,
            "processes": limits.processes,
            "cpus": limits.cpus,
            "runtime": limits.runtime,
            "interval_s": options.interval_s,
            "repeats": options.repeats,
            "caches": options.caches.value,
            **measuring_rules(self._challenge),
            "images_sha256": self._images_sha256,
            "processor": describe_host()["processor"],
        }

    def open(self) -> None:
        """Load the image, and see what the engine itself costs."""
        options = self._options
        self._runner = Runner(
            self._archive,
            self._folder,
            engine=self._engine,
            limits=options.limits,
            interval_s=options.interval_s,
            caches=options.caches,
            gpu=self._gpu,
            lock=self._lock,
        )
        self.is_open = True
        empty = self._runner.run_empty(EMPTY_RUNS)
        self._write_record(self._runner.image, empty)
        if options.has_warm_up and options.caches is Caches.WARM:
            self._runner.run_case(self.todo[0], self._challenge)

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
        files: Sequence[Path] = ()
        status, message = RunStatus.OK, ""
        for _ in range(self._options.repeats):
            try:
                found = self._runner.run_case(case, self._challenge)
                if found.run:
                    runs.append(found.run)
                status, message = found.status, found.message
                files = found.files
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
            log.write_text(log_text(runs[-1].log), encoding="utf-8")
            trace = counted_run(runs).trace
            write_trace(trace, self._folder / TRACES / f"{case.name}.csv")
        predictions = self._folder / PREDICTIONS
        rejected = self._folder / REJECTED / case.name
        for suffix in SUFFIXES:
            (predictions / f"{case.name}{suffix}").unlink(missing_ok=True)
        remove_tree(rejected)
        for number, file in enumerate(files):
            suffix = suffix_of(file)
            if status is RunStatus.OK:
                predictions.mkdir(exist_ok=True)
                file.replace(predictions / f"{case.name}{suffix}")
            elif self._rejected_bytes() + file.stat().st_size <= REJECTED_BYTES:
                rejected.mkdir(parents=True, exist_ok=True)
                file.replace(rejected / f"{number}{suffix}")

    def _rejected_bytes(self) -> int:
        """What is kept of outputs that cannot be used."""
        files = (self._folder / REJECTED).glob("*/*")
        return sum(file.stat().st_size for file in files)

    def _keep(self, record: CaseRecord) -> None:
        """Write the row of a case."""
        self._records[record.case] = record
        write_records(self._records.values(), self._folder / EFFICIENCY_CSV)

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
            *create_command(
                *(self._engine.program, "IMAGE", "INPUTS", "OUTPUTS", limits, "KEY"),
                self._archive.overrides,
            ),
            shlex.join(COMMAND),
        )
        session = {
            "team": self.team,
            "archive": self._archive.path.name,
            "image": image,
            "engine": dict(self._described),
            "weaknesses": find_weaknesses(self._described),
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
        self._log.add(session)


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
    if not earlier or earlier.archive_sha256 == entry.archive_sha256:
        return False
    folder = ledger.parent / entry.team
    name = f"{entry.team}-{earlier.archive_sha256[:12]}"
    target = ledger.parent / ".replaced" / name
    target.parent.mkdir(exist_ok=True)
    remove_tree(target)
    folder.rename(target)
    return True


def log_text(log: bytes) -> str:
    """What a container has written, without anything that a terminal would obey."""
    text = log.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        return ""
    return "".join(
        f"{printable(line.expandtabs())}\n"
        for line in text.removesuffix("\n").split("\n")
    )
