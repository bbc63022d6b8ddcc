"""Every error a user can meet, sorted by who can repair it.

A `SubmissionError` (F) is for the participant, an `OrganiserError` (G) for the
organisers of the challenge, a `HostError` (H) for the operator, and a
`ProgramError` (X) for the developers. Each error lies in the room that raises it;
``flare explain`` finds and lists all codes.

The grand-challenge platform shows a participant a single line, which may be public. So
every error is one line: the file first, what is wrong, what was expected, what to do,
and a code. What a code means is the docstring of its class, in Markdown: ``flare
explain`` prints it, and the documentation has it. The order of the codes is the order
in which several problems share the line. The parts of a message stay on the object.

Constructors take positional arguments only, so that errors survive the way back from
a worker process.
"""

from __future__ import annotations

import errno
import itertools
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from flare.common.environment import PACKAGE
from flare.common.text import listing, safe, why

MESSAGE_LIMIT = 1024
"""Characters of an error that the platform keeps."""

FINDINGS_CHARACTERS = 120
"""When findings of one kind are longer than this, the other files are only named."""


class FlareError(Exception):
    """Anything that ends an evaluation with a message instead of a result."""

    code: ClassVar[str]
    """The code, such as F07; `flare explain F07` tells what it means."""
    finding: str
    """The problem, the file first, without a full stop."""
    remedy: str
    """A sentence that says what to do about it."""
    subject: ClassVar[str] = ""
    """The words before every problem; a remedy beside a problem replaces the usual."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = problem
        self.finding = f"{self.subject}{problem}"
        if remedy:
            self.remedy = remedy

    def __str__(self) -> str:
        """Return the whole message, on one line."""
        return f"{self.finding}. {self.remedy} [{self.code}]"


class AboutFile:
    """The parts of an error of one file; a remedy replaces the usual one."""

    def __init__(self, file: str, problem: str, remedy: str = "") -> None:
        self.file = file
        self.problem = problem
        self.finding = f"{safe(file)}: {problem}"
        if remedy:
            self.remedy = remedy


# --- The participant --------------------------------------------------------------


class SubmissionError(FlareError):
    """The submission cannot be scored; its author can repair it."""


class FileError(AboutFile, SubmissionError):
    """Something is wrong with one file; a remedy of its own replaces the usual one."""


# --- The organisers ---------------------------------------------------------------


class OrganiserError(FlareError):
    """The challenge is not set up well; a participant is not at fault."""


# --- The operator -----------------------------------------------------------------


class HostError(FlareError):
    """Something on this computer stands in the way."""


class InputError(HostError):
    """Files that should be there cannot be read.

    A folder of predictions or references is not there, or it or a file in it may not
    be read by this user: `chmod -R a+rX FOLDER`. In a container, look at what is
    mounted at `/input`.
    """

    code = "H01"
    remedy = (
        "Check the path, or what is mounted there, and that this user may read it"
        " (chmod -R a+rX)."
    )


class OutputError(HostError):
    """The result cannot be written.

    The folder is somebody else's, its disk is full, or a file has the name that it
    should have. Make it writable, or name another one (`--output`).

    With `docker run`, the output folder belongs to you, and the image's user is
    somebody else: add `--user "$(id -u):$(id -g)"`. Make the folder first; Docker makes
    a missing one as root.
    """

    code = "H02"
    remedy = (
        "Make the folder writable; with docker run, mount one of yours with"
        ' -v "$PWD/results:/output" and add --user "$(id -u):$(id -g)".'
    )


class WorkerError(HostError):
    """There was too little memory, or a worker process was killed.

    A worker was killed, or ran out of memory. Give the container more, or use a single
    worker (`--workers 1`, in Python `workers=1`).
    """

    code = "H03"
    remedy = "Give the evaluation more memory, or use one worker (--workers 1)."


class StoppedError(HostError):
    """Somebody ended the program before it was done.

    Ctrl-C or SIGTERM ended the evaluation before it was complete; there is no result.
    Measuring keeps what was measured, says how much that is, and goes on there when you
    start the same command again.
    """

    code = "H04"
    remedy = "Run it again."


class EngineError(HostError):
    """The container engine, or the image, cannot be used.

    A rehearsal needs Docker or Podman, running, and the image that `./build.sh` makes.
    Measuring needs Docker, and a user who may use it.
    """

    code = "H05"
    remedy = "Start Docker or Podman, and run ./build.sh first."


# --- The developers ---------------------------------------------------------------


class ProgramError(FlareError):
    """There is a fault in this program.

    The log (stdout) has the traceback; where many teams are scored or measured, it is
    in `RESULTS/.faults/TEAM.txt`, and the other teams go on. Please report it.
    """

    code = "X01"
    remedy = "The organisers have the log."
    trace = ""
    """The whole traceback, which survives the way back from a worker process."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.finding = f"Internal error in the evaluation ({fault})"


# --- All problems of a submission in one line -------------------------------------


class SeveralProblemsError(SubmissionError):
    """More than one thing is wrong with a submission."""

    def __init__(self, problems: Sequence[SubmissionError]) -> None:
        self.problems = tuple(sorted(problems, key=_kind))
        self.finding = "; ".join(problem.finding for problem in self.problems)
        self.remedy = "Repair them all."
        self.code = self.problems[0].code  # type: ignore[misc]

    def __str__(self) -> str:
        """Return all kinds of problems, each shortened if they take too much room."""
        line = " ".join(problem_lines(self.problems))
        if len(line.encode()) < MESSAGE_LIMIT:
            return line
        kinds = _kinds(self.problems)
        share = (MESSAGE_LIMIT - 1) // len(kinds) - 1
        return " ".join(_short_kind_text(group, share) for group in kinds)


def problem_lines(problems: Sequence[SubmissionError]) -> tuple[str, ...]:
    """All problems of a submission, with a sentence for each kind."""
    return tuple(_kind_text(group) for group in _kinds(problems))


def _kinds(
    problems: Sequence[SubmissionError],
) -> tuple[tuple[SubmissionError, ...], ...]:
    ordered = sorted(problems, key=_kind)
    return tuple(tuple(group) for _, group in itertools.groupby(ordered, key=_kind))


def _kind(problem: SubmissionError) -> tuple[str, str]:
    """The code and the remedy: problems that share both are told together."""
    return problem.code, problem.remedy


def _kind_text(group: tuple[SubmissionError, ...]) -> str:
    first = group[0]
    return f"{_kind_finding(group)}. {first.remedy} [{first.code}]"


def _short_kind_text(group: tuple[SubmissionError, ...], most: int) -> str:
    """The text of a kind in at most this many bytes of UTF-8, with its code."""
    text, code = _kind_text(group), f"[{group[0].code}]"
    if len(text.encode()) <= most:
        return text
    end = f"... {code}"
    return text.encode()[: most - len(end)].decode("utf-8", "ignore") + end


def _kind_finding(group: tuple[SubmissionError, ...]) -> str:
    files_by_problem: dict[str, list[str]] = {}
    findings = []
    for error in group:
        if isinstance(error, FileError):
            files_by_problem.setdefault(error.problem, []).append(error.file)
        else:
            findings.append(error.finding)
    similar_files = []
    for problem, files in files_by_problem.items():
        if len("; ".join(findings)) > FINDINGS_CHARACTERS:
            similar_files += files
        else:
            findings.append(f"{listing(files)}: {problem}")
    if similar_files:
        findings.append(f"similar problems in {listing(similar_files)}")
    return "; ".join(findings)


def raise_problems(problems: Sequence[SubmissionError]) -> None:
    """Raise a single problem as it is, and several as one error; return without any."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise SeveralProblemsError(problems)


# --- Errors of Python -------------------------------------------------------------

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""The errors of a disk, which concern all files on it."""


def unwritable(file: Path | str, error: OSError) -> OutputError:
    """The error of a file that cannot be written; a full disk needs no mount."""
    is_full = error.errno in DISK
    remedy = "Make room on its disk; the same command goes on." if is_full else ""
    problem = f"{safe(file)}: it cannot be written ({why(error)})"
    return OutputError(problem, remedy)


def as_flare_error(error: BaseException) -> FlareError:
    """A `FlareError` for any error; one that nobody expected is a `ProgramError`."""
    if isinstance(error, FlareError):
        return error
    if isinstance(error, MemoryError):
        return WorkerError("The evaluation ran out of memory")
    if isinstance(error, OSError):
        file = error.filename or "a file"
        if error.errno in DISK:
            return unwritable(file, error)
        problem = f"{safe(str(file))}: {why(error)}"
        return InputError(problem, "Look at it, and at who may read it.")
    return _fault(error)


def _fault(error: BaseException) -> ProgramError:
    """The error of a fault, which names the last file of this program in its trace."""
    frames = traceback.extract_tb(error.__traceback__)
    files = [Path(frame.filename) for frame in frames] or [Path("a library")]
    our_files = [file for file in files if PACKAGE in file.parents]
    last_file = (our_files or files)[-1]
    fault = ProgramError(f"{type(error).__name__} in {last_file.name}")
    fault.trace = "".join(traceback.format_exception(error))
    return fault


def raise_stop(error: BaseException) -> None:
    """Raise the stop of the program, such as a KeyboardInterrupt, that an error hides.

    When a stop is on its way out, removing a container may fail: then the error takes
    the place of the stop. Without a stop behind the error, nothing is raised.
    """
    cause: BaseException | None = error
    while isinstance(cause, Exception | GeneratorExit):
        cause = cause.__context__
    if cause:
        raise cause
