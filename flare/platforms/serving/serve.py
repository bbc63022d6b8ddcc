"""Serves submissions: what a service is told, and from its first look to its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.common.engine import find_engine
from flare.common.options import option, seconds
from flare.evaluation.check import find_images
from flare.measuring.container import opened_limits
from flare.measuring.lanes.dispatch import Listener
from flare.measuring.measure import check_cases
from flare.measuring.options import MeasuringOptions, Options
from flare.measuring.team import Job
from flare.platforms.serving.journal import HOURS, Entry, waiting_text
from flare.platforms.serving.service import Service
from flare.platforms.serving.source import Source
from flare.platforms.serving.work import ServedWork
from flare.results.team_folder import FolderLock

_log = logging.getLogger(__name__)

FOLDER = ".serve"
"""In RESULTS: the journal, and archives that were downloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions(MeasuringOptions):
    """How submissions are measured and answered, wherever they come from."""

    images: Path | None = option(
        "Folder of the CTs, one for each case.", default=None, metavar="DIR"
    )
    output: Path = option(
        "Folder that gets a folder for each team, and the service's journal.",
        metavar="RESULTS",
    )
    once: bool = option(
        "End when no submission waits, instead of looking for another one.",
        default=False,
    )
    dry_run: bool = option(
        "See that everything is ready and say what waits, but claim nothing.",
        default=False,
    )
    status: bool = option("Say how far each submission is, and end.", default=False)
    poll_s: float = option(
        "Look for submissions every S seconds (default: 60).",
        default=60.0,
        parse=seconds,
        metavar="S",
    )
    hours: float = option(
        "Answer within H hours of the claim (default: 24, as the platform wants it).",
        default=HOURS,
        parse=seconds,
        metavar="H",
    )
    log: Path | None = option(
        "Also add the log to this file, a JSON object in each line.",
        default=None,
        metavar="FILE.jsonl",
    )

    @property
    def folder(self) -> Path:
        """The folder of the service itself."""
        return self.output / FOLDER


def serve(
    options: ServiceOptions,
    source: Source,
    *,
    telling: Callable[[Job], AbstractContextManager[Listener]],
    on_step: Callable[[Entry], None],
) -> None:
    """Serve until nothing waits, if it is to look once, or for ever.

    `telling` is as in `ServedWork`, and `on_step` as in `Service`.

    Raises
    ------
    FlareError
        What keeps the service from its work, or, if it is to look once, what is left
        undone.
    """
    challenge, images = read_challenge(options.challenge), options.images or Path()
    cases, results = find_images(images, challenge.names), options.output
    if options.ground_truth:
        check_cases(cases, options.ground_truth, challenge)
    shared = {row.name: getattr(options, row.name) for row in fields(MeasuringOptions)}
    own = Options(archives=results, images=images, output=results, **shared)
    job = Job(
        options=own, challenge=challenge, results=results, cases=cases, archives=()
    )
    timeout_s, hours = options.limits.timeout_s, options.hours
    longest_h = len(cases) * options.runs.repeats * timeout_s / 3600
    if longest_h > hours:
        text = (
            "%d cases of up to %g s can take %.1f hours, and a submission has %g:"
            " consider a shorter --timeout"
        )
        _log.warning(text, len(cases), timeout_s, longest_h, hours)
    with opened_limits(options.limits) as (_, gpu):
        memory_mb = gpu.read().gpu_total_mb if gpu else None
    worst = {"runtime_s": timeout_s, "max_gpu_memory_mb": memory_mb}
    work = ServedWork(job=job, worst=worst, telling=telling, is_named=source.is_named)
    if options.dry_run:
        find_engine(job.options.engine).describe()
        _log.info("%s", waiting_text(source, options.folder))
        return
    with FolderLock(options.folder, "served"):
        service = Service(source, work, options.folder, hours=hours, on_step=on_step)
        service.run(None if options.once else options.poll_s)
