"""Where a run speaks: log and progress go to stdout, the line of a failure to stderr.

The platform shows a participant the last line of stderr, and marks a successful run
that wrote there. Libraries write there too, even from C++. So while a command runs,
whatever is written to stderr goes to stdout; only the final line goes to the real one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, NoReturn, TextIO, cast

import click

from flare.common.errors import MESSAGE_LIMIT, FlareError, StoppedError, as_flare_error

_log = logging.getLogger(__name__)

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

TERMINATED = 143
"""Exit status after SIGTERM, as shells have it."""


class _TerminatedError(BaseException):
    """Somebody wants us to end: a time limit, or an operator."""


class OutcomeError(Exception):
    """A command has done its work, and what came out is a failure: this line."""


def run_command(command: Callable[[], None]) -> int:
    """Run a command and turn what it raises into an exit status and one line.

    The status is 0, or 1 after an error, 130 after Ctrl-C, 143 after SIGTERM. Then
    stderr has exactly one line, of at most 1,024 characters; else it has none.
    """
    _open_closed_streams()
    with (
        redirect_stdout(cast("TextIO", _Log(sys.stdout))),
        _stderr_to_stdout() as stderr,
        _log_to_stdout(),
        _signals_raise(),
    ):
        status, line = _outcome(command)
        erase()
        sys.stdout.flush()
        if line:
            os.write(stderr, f"{_fitting(line)}\n".encode())
    return status


def _outcome(command: Callable[[], None]) -> tuple[int, str]:
    try:
        command()
    except (FlareError, OutcomeError) as error:
        return 1, str(error)
    except KeyboardInterrupt as error:
        return INTERRUPTED, _stopped(error, "The evaluation was interrupted")
    except _TerminatedError as error:
        return TERMINATED, _stopped(error, "The evaluation was terminated")
    except click.UsageError:
        raise  # which `flare.cli.main` tells
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("flare"):
            raise  # a package is not installed, which the caller says
        return 1, _fault(error)
    except Exception as error:  # noqa: BLE001  a bug of ours
        return 1, _fault(error)
    return 0, ""


def _fault(error: Exception) -> str:
    """Return the line for an error that nobody expected; the log has it all."""
    with suppress(OSError, ValueError):  # there may be no log to write to
        traceback.print_exc(file=sys.stdout)
    return str(as_flare_error(error))


@contextmanager
def stopping_with(tell: Callable[[], StoppedError]) -> Iterator[None]:
    """Tell this, in its words, to a user who stops the program within the block."""
    try:
        yield
    except (KeyboardInterrupt, _TerminatedError) as error:
        error.args = (tell(),)
        raise


def _stopped(error: BaseException, problem: str) -> str:
    messages = [value for value in error.args if isinstance(value, StoppedError)]
    return str(messages[0] if messages else StoppedError(problem))


def _open_closed_streams() -> None:
    """Open stdout and stderr if the caller has closed them."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


class _Log:
    """A stdout that is no reason to fail: what cannot be written there is lost.

    Not only the log is written there. Before a worker process is forked, and when one
    ends, `multiprocessing` flushes stdout, and a reader who has left would end the
    evaluation there. Whatever else a stream has is that of the real one.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, if that can be."""
        with self._losing():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what waits to be written, if that can be."""
        with self._losing():
            self._stream.flush()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Go on after an error, without what waits: it would fail again at the end."""
        try:
            yield
        except BlockingIOError:  # a slow reader, who may be back
            pass
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


@contextmanager
def _stderr_to_stdout() -> Iterator[int]:
    """Let file descriptor 2 be 1 for a while; yields the real stderr's descriptor."""
    sys.stderr.flush()
    real = os.dup(2)
    try:
        os.dup2(1, 2)
        yield real
    finally:
        sys.stderr.flush()
        os.dup2(real, 2)
        os.close(real)


def say(text: object) -> None:
    """Tell what a command has done, or found, in a line of the log, or several."""
    _log.info("%s", text)


def draw(line: str) -> None:
    """Draw a line over the last one that was drawn, until something else is logged."""
    sys.stdout.write(f"\r{_ERASED}{line}")
    sys.stdout.flush()
    _drawn.append(line)


def erase() -> None:
    """Remove the line that was drawn, if one was."""
    if _drawn:
        _drawn.clear()
        sys.stdout.write(f"\r{_ERASED}")
        sys.stdout.flush()


_ERASED = "\x1b[K"
"""Removes what stands in a line of a terminal, from where the cursor is."""

_drawn: list[str] = []
"""What was drawn since the last line of the log."""


class _TerminalHandler(logging.StreamHandler[TextIO]):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, in the place of what was drawn."""
        erase()
        super().emit(record)


@contextmanager
def _log_to_stdout() -> Iterator[None]:
    """Let this program's log be written to stdout for a while."""
    logging.raiseExceptions = False  # a closed stdout is no reason to fail
    log, handler = logging.getLogger("flare"), _TerminalHandler(sys.stdout)
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Let SIGTERM end us as Ctrl-C does: workers end, and no file is left half made."""
    process = os.getpid()

    def terminate(*_: object) -> NoReturn:
        if os.getpid() != process:
            # A worker that was just forked, and has not yet a handler of its own. What
            # is raised here may be ignored there, and the worker would live for ever.
            os._exit(TERMINATED)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _TerminatedError

    handlers = {signal.SIGTERM: terminate, signal.SIGINT: signal.default_int_handler}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        del handlers[signal.SIGINT]
    before = {number: signal.signal(number, handlers[number]) for number in handlers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end(status: int) -> NoReturn:
    """End this process without taking apart what is in it, as Python does at its exit.

    That takes a twentieth of the time of a start, and there is nothing left to be done:
    files are written, and worker processes have ended.
    """
    with suppress(OSError, ValueError, AttributeError):  # closed, or never there
        sys.stdout.flush()
    os._exit(status)


def _fitting(line: str) -> str:
    """A text as one line of valid UTF-8 that the platform keeps whole."""
    content = " ".join(line.split()).encode("utf-8", "backslashreplace")
    return content[: MESSAGE_LIMIT - 1].decode("utf-8", "ignore")


# --- Progress ---------------------------------------------------------------------

_progress = logging.getLogger("flare.progress")


class Progress:
    """Tells of each step, and of the time left where that is a minute or more.

    On a terminal, a line is drawn over the one before, until something else is written.
    Elsewhere, each step is a line of the log, which comes every `every_s` at most.
    """

    def __init__(self, *, every_s: float = 0.0) -> None:
        self._every_s = every_s
        self._start = self._logged_at = time.monotonic()

    def __call__(self, number: int, total: int, text: str, *, known: int = 0) -> None:
        """Tell that a number of steps is done; `known` ones were done at the start."""
        now = time.monotonic()
        left_s = (now - self._start) / max(number - known, 1) * (total - number)
        left = f", {left_s / 60:.0f} min left" if left_s >= 60 else ""
        line = f"[{number:0{len(str(total))}}/{total}{left}] {text}"
        if sys.stdout.isatty():
            import shutil  # not at the top: only a terminal is asked

            columns = shutil.get_terminal_size().columns
            draw(line[: columns - 1])  # some begin a new line behind the last column
        elif now >= self._logged_at + self._every_s:
            self._logged_at = now
            _progress.info("%s", line)
