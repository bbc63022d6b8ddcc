"""What is done with the archive of a submission, and the metrics that it comes to."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from flare.challenge.formats import case_of
from flare.common.text import printable
from flare.platforms.errors import NoCaseError
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
    read_records,
)
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluated
from flare.results.scores import statistics

REPEAT_S = 60.0
"""What is raised from a signal is lost where Python ignores exceptions, such as in a
destructor: so it is raised again, if the block has not ended after so long."""

RANKED = ("runtime_s", "max_gpu_memory_mb")
"""Metrics of efficiency that a platform can rank, besides scores."""

FIRST_CHARACTERS = 90
"""Of the message of a run, that a line has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """What counts for a case that has failed: no honest run takes more."""

    runtime_s: float
    """The time limit of a case."""
    max_gpu_memory_mb: float | None = None
    """All memory of the GPU; None where there is none."""


def returned_metrics(folder: Path, worst: Worst) -> dict[str, Any]:
    """A team's metrics.json with running times, GPU memory and statuses.

    A case that has failed has no running time in ``case``, and counts with the worst
    one in ``aggregates``: the platform drops a result that lacks a ranked value, and a
    mean over the cases that worked would reward whoever fails on long ones.

    Parameters
    ----------
    folder : Path
        Of a team that is measured and scored.
    worst : Worst
        What counts for a case that has failed.

    Raises
    ------
    NoCaseError
        If every case has failed.
    RankingError, MetricsFileError, MeasurementError
        If the files cannot be read.
    """
    content, _ = read_evaluated(folder / METRICS_JSON)
    found = read_records(folder / EFFICIENCY_CSV)
    cases = [case_of(str(name)) for name in content["case"]["gt_fname"].values()]
    records = [found[case] for case in cases]
    if all(record.status is not RunStatus.OK for record in records):
        raise NoCaseError(len(records), _endings(records))
    by_case, aggregates = dict(content["case"]), dict(content["aggregates"])
    by_case["status"] = _numbered([record.status.value for record in records])
    for metric in RANKED:
        values = [getattr(record, metric) for record in records]
        if all(value is None for value in values):
            continue  # it was not measured, such as memory where there is no GPU
        by_case[metric] = _numbered(values)
        counted = [_counted(r, metric, worst) for r in records]
        aggregates |= {
            f"{metric}_{name}": value
            for name, value in _complete_statistics(counted).items()
        }
    ok = sum(record.status is RunStatus.OK for record in records)
    aggregates |= {"cases": len(records), "cases_ok": ok}
    aggregates["cases_failed"] = len(records) - ok
    failed = dict(content.get("failed") or {})
    for name in failed:
        record = found.get(case_of(name))
        if record and record.status is not RunStatus.OK:
            failed[name] = f"{record.status.value}: {_told(record)}"
    metrics = {**content, "case": by_case, "aggregates": aggregates, "failed": failed}
    # What is sent is what a file can hold: no NaN, no infinity, texts as keys.
    complete: dict[str, Any] = json.loads(json.dumps(metrics, allow_nan=False))
    return complete


def _counted(record: CaseRecord, metric: str, worst: Worst) -> float | None:
    """What counts of a case; None if that is not known."""
    if record.status is RunStatus.OK:
        value: float | None = getattr(record, metric)
        return value
    limit: float | None = getattr(worst, metric)
    return limit


def _complete_statistics(values: Sequence[float | None]) -> Mapping[str, float | None]:
    """Mean and others; none if a value is not known."""
    known = [value for value in values if value is not None]
    return statistics(known) if len(known) == len(values) else {}


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Values by the number of their case, as in metrics.json."""
    return {str(number): value for number, value in enumerate(values)}


def _endings(records: Sequence[CaseRecord]) -> str:
    """How runs have ended, and what is said of the first one, without a case's name."""
    counts = Counter(record.status.value for record in records)
    text = ", ".join(f"{count} {status}" for status, count in counts.items())
    first = _told(records[0]).replace(records[0].case, "CASE")
    if len(first) > FIRST_CHARACTERS:
        first = f"{first[: FIRST_CHARACTERS - 3]}..."
    return f"{text} (the first: {first})" if first else text


def _told(record: CaseRecord) -> str:
    """Why a run is no good, in words of ours alone.

    The names of its files are what a container has chosen, which has seen a CT that its
    author has not: of a wrong output, only the code is told.
    """
    text = record.message.partition("; see ")[0]
    if record.status is RunStatus.WRONG_OUTPUT:
        code = re.search(r" \[F\d\d\]$", text)
        return f"its output is refused{code[0] if code else ''}"
    return printable(text)


# --- Time ---


class OverdueSignal(BaseException):
    """The time of a submission is over: what runs for it is ended, as by Ctrl-C."""


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End what runs in the block after a while.

    Only the main thread of a program can do this.

    Raises
    ------
    OverdueSignal
        From within the block, wherever it is; before it, if no time is left.
    """

    def end(*_: object) -> NoReturn:
        raise OverdueSignal

    if seconds <= 0:
        raise OverdueSignal
    before = signal.signal(signal.SIGALRM, end)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_S)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # also if the signal has come on the way out; the next one is far off
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Forecast:
    """Foresees when the cases of a submission will be done.

    Parameters
    ----------
    end : datetime
        When they have to be.
    now : callable
        Date and time.
    """

    def __init__(self, end: datetime, now: Callable[[], datetime]) -> None:
        self._end, self._now = end, now
        self._begun = now()
        self._has_warned = False

    def warning(self, done: int, total: int) -> str:
        """What is to be said once it seems that there is too little time, but once."""
        now = self._now()
        left = (now - self._begun) / done * (total - done)
        if self._has_warned or now + left <= self._end:
            return ""
        self._has_warned = True
        return (
            f"{done} of {total} cases are done, and the others would be at"
            f" {now + left:%Y-%m-%d %H:%M}; the time is over at {self._end:%H:%M} of"
            f" {self._end:%Y-%m-%d}, and what is not done by then fails"
        )
