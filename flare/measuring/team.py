"""Measures one team, from the loading of its image to its last case."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from flare.common.bulkhead import obey_stop
from flare.common.errors import EngineError
from flare.common.host import describe_host
from flare.measuring.case_files import LOGS, keep_label_maps, keep_runs
from flare.measuring.container import ContainerRun
from flare.measuring.host_load import Caches
from flare.measuring.inputs import Case
from flare.measuring.plan import TeamPlan
from flare.measuring.record import record_of
from flare.measuring.team_image import LoadedImage, loaded_image
from flare.measuring.trial import run_case, run_empty
from flare.measuring.weaknesses import find_weaknesses
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    write_records,
)

EMPTY_RUNS = 3
"""So many containers that do nothing tell what the engine itself costs."""


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
    setup, options = plan.setup, plan.setup.options
    with loaded_image(
        plan.archive,
        plan.folder,
        engine=setup.engine,
        conditions=setup.conditions,
        lock=plan.lock,
    ) as image:
        empty = run_empty(image, EMPTY_RUNS)
        plan.log.add(_made_with(plan, image, empty))
        if options.has_warm_up and options.caches is Caches.WARM:
            run_case(image, plan.todo[0], setup.challenge)
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
        challenge = self._plan.setup.challenge
        runs: list[ContainerRun] = []
        files: Sequence[Path] = ()
        status, message = RunStatus.OK, ""
        for _ in range(self._plan.setup.options.repeats):
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
        """Write the row of a case."""
        self._records[record.case] = record
        write_records(self._records.values(), self._plan.folder / EFFICIENCY_CSV)

    def _rerun_note(self, case: Case) -> str:
        """Why a case is run again, and what had come of it before."""
        before = self._records.get(case.name)
        options = self._plan.setup.options
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
    setup, options, unlike = plan.setup, plan.setup.options, plan.log.unlike
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
        "gpu": asdict(setup.gpu.device) if setup.gpu else None,
        **({"lane": setup.lane.record()} if setup.lane else {}),
        "command": image.command(),
        "warm_up": options.has_warm_up,
        "interleaved": options.is_interleaved,
        "doubts": list(plan.archive.doubts),
    }
