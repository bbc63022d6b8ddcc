"""Says what the platform would make of a run.

What the platform does is described in its own source (grand-challenge.org's components
app and rse-sagemaker-shim); each rule below says what it follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flare.common.text import listing, safe
from flare.platforms.grandchallenge.phase import Phase, is_rankable, value_at
from flare.platforms.grandchallenge.rehearse import (
    KILLED,
    RESERVED_GB,
    TIME_LIMIT_S,
    Run,
    instance_of,
)
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import evaluation_text

MESSAGE_CHARACTERS = 1024
"""The platform cuts a message there."""

LINE_BYTES = 2**16
"""The platform drops a longer line, which is never the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the platform would make of a run."""

    run: Run
    phase: Phase
    message: str
    """What the participant would see of a failure; empty after a success."""
    metrics: Any
    """What the platform would read of metrics.json, after a success."""
    warnings: tuple[str, ...] = ()
    """What the organiser should know, or repair."""

    @property
    def row(self) -> tuple[tuple[str, str], ...]:
        """The leaderboard's columns and what would stand there."""
        titles = (title for title, *_ in self.phase.columns)
        shown = self.phase.shown(self.metrics)
        return () if self.message else tuple(zip(titles, shown, strict=True))

    @property
    def is_ranked(self) -> bool:
        """Whether the result would be on the leaderboard."""
        return all(is_rankable(value_at(self.metrics, p)) for p in self.phase.ranked)


def judge(run: Run, phase: Phase, *, time_limit_s: float = TIME_LIMIT_S) -> Verdict:
    """Say what a participant and an organiser would see of a run with a time limit."""
    message, metrics = _failure(run), None
    if not message:
        metrics = json.loads(run.metrics or b"", parse_constant=lambda _: None)
    verdict = Verdict(run=run, phase=phase, message=message, metrics=metrics)
    return replace(verdict, warnings=tuple(_warnings(verdict, time_limit_s)))


def participant_message(stderr: bytes) -> str:
    """What the platform shows of stderr: its last line that is not empty or dropped."""
    kept = (line for line in stderr.split(b"\n") if len(line) <= LINE_BYTES)
    lines = [text for line in kept if (text := line.decode("utf-8", "replace").strip())]
    return (lines or ["No errors were reported in the logs."])[-1][:MESSAGE_CHARACTERS]


def _failure(run: Run) -> str:
    """The message of a run that failed; empty if it succeeded."""
    if run.is_late:
        return "Time limit exceeded"
    if run.status == KILLED:
        return "The container was killed as it exceeded its memory limit"
    if run.status:
        return participant_message(run.stderr)
    if run.metrics is None:
        return "Output file 'metrics.json' was not produced"
    try:
        text = run.metrics.decode("utf-8")
    except UnicodeDecodeError:
        return "An unexpected error occurred"
    try:
        metrics = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return "The output file 'metrics.json' is not valid json"
    # Its database takes neither; json writes the one as Infinity, the other so.
    written = json.dumps(metrics)
    if "Infinity" in written or "\\u0000" in written:
        return "An unexpected error occurred"
    return ""


def _warnings(verdict: Verdict, time_limit_s: float) -> Iterator[str]:
    run, phase = verdict.run, verdict.phase
    for stream, content in (("stdout", run.stdout), ("stderr", run.stderr)):
        longest = max(map(len, content.split(b"\n")))
        if longest > LINE_BYTES:
            yield (
                f"A line of {longest} bytes on {stream} would be dropped, and may leave"
                " a warning on stderr: at most 65,536."
            )
    limit = (instance_of(phase)[0] - RESERVED_GB) << 30
    if run.process_bytes * 2 > limit:
        yield (
            f"A process used {run.process_bytes / 2**30:.1f} GiB of the"
            f" {limit >> 30} GiB that it may: set evaluation_requires_memory_gb higher."
        )
    if run.seconds * 2 > time_limit_s:
        yield (
            f"It took {run.seconds:.0f} s of {time_limit_s:.0f} s: ask the platform's"
            " staff for a higher evaluation_time_limit."
        )
    if others := [name for name in run.outputs if name != METRICS_JSON]:
        yield f"Other files in /output, which are uploaded as well: {listing(others)}."
    if not verdict.message and run.stderr.strip():
        said = participant_message(run.stderr)
        yield f"A successful run wrote to stderr, which marks it with a warning: {said}"
    for path in () if verdict.message else phase.paths:
        value = value_at(verdict.metrics, path)
        if not is_rankable(value):
            found = "is not there" if value == "" else "is null or no number"
            if path in phase.ranked:
                yield f"{path} {found}: the result would not be on the leaderboard."
            else:
                yield f"{path} {found}: its column would show none."
    if phase.display_all_metrics:
        yield (
            "display_all_metrics is on: the DSC of a single case gives away the volume"
            " of its reference."
        )


def verdict_text(verdict: Verdict) -> str:
    """What a rehearsal showed, for the organiser."""
    run = verdict.run
    lines = [
        f"It took {run.seconds:.1f} s; the largest process used"
        f" {run.process_bytes / 2**20:.0f} MiB."
    ]
    keys = ("cases", "challenge", "references")
    about = [safe(evaluation_text(verdict.metrics, key)) for key in keys]
    if about[1]:
        lines.append("Cases: {}. Challenge: {}. Reference labels: {}.".format(*about))
    lines += [f"For the organiser: {warning}" for warning in verdict.warnings]
    if verdict.message:
        log = run.stdout.decode("utf-8", "replace").strip()
        lines = [log, *lines, "The evaluation would fail. The participant would read:"]
    else:
        width = max(len(title) for title, _ in verdict.row)
        if verdict.is_ranked:
            lines.append("The evaluation would succeed. The leaderboard's row:")
        else:
            lines.append("The evaluation would succeed, and NOT be on the leaderboard:")
        lines += [f"  {title.ljust(width)}  {cell}" for title, cell in verdict.row]
    return "\n".join(line for line in lines if line)
