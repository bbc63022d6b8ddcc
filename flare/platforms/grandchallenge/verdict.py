"""The platform's verdict on a run of the image: failure, messages and the board's row.

Each rule follows the platform's own source, as those of `rehearse`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flare.challenge.formats import FileNames, case_of
from flare.challenge.names import cases_text, label_ending, names_advice
from flare.common.files import at
from flare.common.schema import build
from flare.common.text import listing, safe
from flare.platforms.grandchallenge.phase import Phase, problem_at
from flare.platforms.grandchallenge.rehearse import (
    KILLED,
    RESERVED_GB,
    TIME_LIMIT_S,
    Run,
    instance_of,
)
from flare.platforms.grandchallenge.upload import UNEXPECTED
from flare.platforms.rehearsal import outcome_text
from flare.results.metrics_json import METRICS_JSON

LINE_BYTES = 2**16
"""The platform drops a longer line, which is never the message."""

LAST_LINES = 100
"""The platform gets so many lines of stderr, empty ones among them."""


def participant_message(stderr: bytes) -> str:
    """The last line of stderr that is not empty: the platform shows it."""
    message = "No errors were reported in the logs."
    for line in _lines(stderr)[-LAST_LINES:]:
        text = line.replace(b"\0", b"").decode("utf-8", "replace").strip()
        message = text or message
    return message[:1024]


def _lines(stream: bytes) -> list[bytes]:
    """The lines of a stream that the platform does not drop."""
    lines = stream.removesuffix(b"\n").split(b"\n")
    return [line for line in lines if len(line) <= LINE_BYTES]


def _is_utf8(stream: bytes) -> bool:
    try:
        b"\n".join(_lines(stream)).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _failure(run: Run) -> str:
    if run.is_late:
        return "Time limit exceeded"
    if not (_is_utf8(run.stdout) and _is_utf8(run.stderr)):
        return UNEXPECTED  # the platform's program ends at such a line
    if run.status == KILLED:
        return "The container was killed as it exceeded its memory limit"
    return participant_message(run.stderr) if run.status else ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The platform's verdict on a run, as far as its rules tell it."""

    run: Run
    phase: Phase
    """The phase with the leaderboard."""
    time_limit_s: float = TIME_LIMIT_S
    """The limit that the run had."""

    @cached_property
    def message(self) -> str:
        """The line that the participant would see after a failure; else empty."""
        run = self.run
        failure = _failure(run)
        if failure:
            return failure
        if run.metrics is None:
            return "Output file 'metrics.json' was not produced"
        try:
            # Its database takes neither infinite numbers nor NUL characters, which json
            # writes like this.
            text = json.dumps(self._read())
        except UnicodeDecodeError:
            return UNEXPECTED
        except (ValueError, RecursionError):
            return "The output file 'metrics.json' is not valid json"
        is_odd = "Infinity" in text or "\\u0000" in text
        return UNEXPECTED if is_odd else ""

    @cached_property
    def metrics(self) -> Any:
        """The content of metrics.json as the platform would read it after a success."""
        return None if self.message else self._read()

    def _read(self) -> Any:
        text = (self.run.metrics or b"").decode("utf-8")
        return json.loads(text, parse_constant=lambda _: None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Lines about faults that the organiser should know, or repair."""
        warnings = [*_line_warnings(self.run), *_limit_warnings(self)]
        warnings += _output_warnings(self)
        if not self.message:
            warnings += _column_warnings(self)
        if self.phase.display_all_metrics:
            text = "display_all_metrics is on: the DSC of a single case gives away the"
            warnings.append(f"{text} volume of its reference.")
        return tuple(warnings)

    @property
    def is_ranked(self) -> bool:
        """Whether the result would be on the leaderboard."""
        return not any(problem_at(self.metrics, path) for path in self.phase.ranked)

    @property
    def files(self) -> Mapping[str, bytes | None]:
        """The metrics.json of a result on the leaderboard."""
        return {METRICS_JSON: self.run.metrics if self.is_ranked else None}

    def _scored_lines(self) -> Iterator[str]:
        """Tell what was scored, and what its cases are called."""
        keys = ("cases", "challenge", "references")
        about = [safe(str(at(self.metrics, "evaluation", key) or "")) for key in keys]
        if about[1]:
            yield "Cases: {}. Challenge: {}. Reference labels: {}.".format(*about)
        references = at(self.metrics, "case", "gt_fname") or {}
        if references:
            names = build(FileNames, at(self.metrics, "evaluation", "names") or {})
            cases = [case_of(name, names.reference) for name in references.values()]
            yield cases_text(cases, at(self.metrics, "case", "alg_fname", "0") or "")
            if advice := names_advice(names, about[1], label_ending(cases)):
                yield advice

    def __str__(self) -> str:
        """Return what a rehearsal showed, for the organiser."""
        run, phase = self.run, self.phase
        log = run.stdout.decode("utf-8", "replace").strip()
        lines = [
            f"It took {run.seconds:.1f} s; the largest process used"
            f" {run.process_bytes / 2**20:.0f} MiB.",
            *self._scored_lines(),
        ]
        lines += [f"For the organiser: {warning}" for warning in self.warnings]
        return outcome_text(
            lines,
            zip(phase.titles, phase.shown(self.metrics), strict=True),
            is_ranked=self.is_ranked,
            failure_log=log if self.message else None,
        )


def _line_warnings(run: Run) -> Iterator[str]:
    for stream, content in (("stdout", run.stdout), ("stderr", run.stderr)):
        longest = max(map(len, content.split(b"\n")))
        if longest > LINE_BYTES:
            yield (
                f"A line of {longest} bytes on {stream} would be dropped, and may leave"
                " a warning on stderr: at most 65,536."
            )
        if not _is_utf8(content):
            yield f"A line on {stream} is not UTF-8: the platform's program ends at it."


def _limit_warnings(verdict: Verdict) -> Iterator[str]:
    """Tell if more than half of the memory or of the time was used."""
    run, time_limit_s = verdict.run, verdict.time_limit_s
    memory_limit = (instance_of(verdict.phase)[0] - RESERVED_GB) << 30
    if run.process_bytes * 2 > memory_limit:
        yield (
            f"A process used {run.process_bytes / 2**30:.1f} GiB of the"
            f" {memory_limit >> 30} GiB that it may: set"
            " evaluation_requires_memory_gb higher."
        )
    if run.seconds * 2 > time_limit_s:
        yield (
            f"It took {run.seconds:.0f} s of {time_limit_s:.0f} s: ask the platform's"
            " staff for a higher evaluation_time_limit."
        )


def _output_warnings(verdict: Verdict) -> Iterator[str]:
    """Tell if the program has written other files, or to stderr without a failure."""
    run = verdict.run
    other_files = [name for name in run.outputs if name != METRICS_JSON]
    if other_files:
        files = listing(other_files)
        yield f"Other files in /output, which are uploaded as well: {files}."
    if not verdict.message and run.stderr.strip():
        line = participant_message(run.stderr)
        yield f"A successful run wrote to stderr, which marks it with a warning: {line}"


def _column_warnings(verdict: Verdict) -> Iterator[str]:
    for path in verdict.phase.paths:
        problem = problem_at(verdict.metrics, path)
        if problem and path in verdict.phase.ranked:
            yield f"{problem}: the result would not be on the leaderboard."
        elif problem:
            yield f"{problem}: its column would show none."
