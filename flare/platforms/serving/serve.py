"""Serves submissions: what a service is told, and from its first look to its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from flare.challenge.reading import read_challenge
from flare.common.containers import Limits
from flare.common.engine import Engine
from flare.common.options import (
    challenge_option,
    option,
    page_file,
    seconds,
    workers_option,
)
from flare.measuring.container import opened_limits
from flare.measuring.contract import Contract
from flare.measuring.inputs import check_cases, find_cases
from flare.measuring.options import Options, RunOptions, ServedLimits
from flare.measuring.team import Job
from flare.platforms.serving.journal import HOURS, waiting_text
from flare.platforms.serving.service import Service, utc_now
from flare.platforms.serving.source import Source, Submission
from flare.platforms.serving.work import ServedWork, Telling, Worst
from flare.results.team_folder import FolderLock

_log = logging.getLogger(__name__)

FOLDER = ".serve"
"""In RESULTS: the journal, and archives that were downloaded."""

_SHARED = (
    *("images", "ground_truth", "output", "limits", "contract", "runs"),
    *("page", "challenge", "workers"),
)
"""Options that measuring has, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """How submissions are measured and answered, wherever they come from."""

    images: Path | None = option(
        "Folder of the CTs, one for each case.", default=None, metavar="DIR"
    )
    ground_truth: Path | None = option(
        "Score the predictions against these reference labels.",
        default=None,
        metavar="DIR",
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
    limits: Limits = field(default_factory=ServedLimits)
    contract: Contract = field(default_factory=Contract)
    runs: RunOptions = field(default_factory=RunOptions)
    page: Path | None = option(
        "Show the submission that is measured on this page, which a browser reads anew"
        " by itself; needs Jinja2.",
        default=None,
        parse=page_file,
        metavar="FILE.html",
    )
    log: Path | None = option(
        "Also add the log to this file, a JSON object in each line.",
        default=None,
        metavar="FILE.jsonl",
    )
    challenge: str = challenge_option()
    workers: int | None = workers_option()

    @property
    def folder(self) -> Path:
        """The folder of the service itself."""
        return self.output / FOLDER

    @property
    def measuring(self) -> Options:
        """How submissions are measured; the archives are theirs."""
        shared = {name: getattr(self, name) for name in _SHARED}
        return Options(archives=self.output, **shared)


def serve(
    options: ServiceOptions,
    source: Source,
    *,
    telling: Telling,
    on_moment: Callable[[str, Submission, str], None],
) -> None:
    """Serve until nothing waits, if it is to look once, or for ever.

    Parameters
    ----------
    options : ServiceOptions
        How submissions are measured and answered.
    source : Source
        Where they come from.
    telling : callable
        As in `ServedWork`.
    on_moment : callable
        As in `Service`.

    Raises
    ------
    FlareError
        What keeps the service from its work, or, if it is to look once, what is left
        undone.
    """
    challenge = read_challenge(options.challenge)
    cases = find_cases(options.images or Path(), challenge)
    if options.ground_truth:
        check_cases(cases, options.ground_truth, challenge)
    job = Job(
        options=options.measuring,
        challenge=challenge,
        results=options.output,
        cases=tuple(cases),
        archives=(),
    )
    warn_of_time(job, options.hours)
    worst = worst_of(options.limits)
    if options.dry_run:
        Engine().describe()
        _log.info("%s", waiting_text(source, options.folder))
        return
    with FolderLock(options.folder, "served"):
        work = ServedWork(
            *(job, worst, utc_now), telling=telling, is_named=source.is_named
        )
        service = Service(
            *(source, work, options.folder), hours=options.hours, on_moment=on_moment
        )
        service.run(None if options.once else options.poll_s)


def warn_of_time(job: Job, hours: float) -> None:
    """Say so if the cases of one submission can take longer than it has."""
    timeout_s, cases = job.options.limits.timeout_s, len(job.cases)
    longest_h = cases * job.options.runs.repeats * timeout_s / 3600
    if longest_h > hours:
        text = (
            "%d cases of up to %g s can take %.1f hours, and a submission has %g:"
            " consider a shorter --timeout"
        )
        _log.warning(text, cases, timeout_s, longest_h, hours)


def worst_of(limits: Limits) -> Worst:
    """What counts for a case that has failed: the limits of time and memory."""
    with opened_limits(limits) as (_, gpu):
        total_mb = gpu.read().gpu_total_mb if gpu else None
        return Worst(runtime_s=limits.timeout_s, max_gpu_memory_mb=total_mb)
