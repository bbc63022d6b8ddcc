"""Keeps what ends the work on one team or submission from all the others.

Who is to blame for an error is said by its class, see `flare.common.errors`; what
follows from that is one table, docs/developers/blame.md.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flare.common.errors import FlareError, InputError, ProgramError, WorkerError
from flare.common.files import DISK, unwritable, write_whole
from flare.common.installation import PACKAGE
from flare.common.text import safe, why

FAULTS = ".faults"
"""Folder in RESULTS for tracebacks of what nobody expected, a file for each team."""

_log = logging.getLogger(__name__)


@contextmanager
def bulkhead(
    results: Path, name: str, tell: Callable[[FlareError], None]
) -> Iterator[None]:
    """Go on behind the block, whatever error ends it; a stop of the program still does.

    Parameters
    ----------
    results : Path
        Folder that keeps the traceback of an error that nobody expected.
    name : str
        Of the team or submission that the block works on.
    tell : callable
        Told of the error, as one of ours.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  it ends this team alone
        obey_stop(error)
        found = as_flare_error(error)
        tell(found)
        keep_trace(results, name, found)


def as_flare_error(error: BaseException) -> FlareError:
    """An error as one of ours; what nobody expected is a fault of the program."""
    if isinstance(error, FlareError):
        return error
    if isinstance(error, MemoryError):
        return WorkerError("The evaluation ran out of memory")
    if isinstance(error, OSError):
        problem = f"{safe(str(error.filename or 'a file'))}: {why(error)}"
        if error.errno in DISK:
            return unwritable(error.filename or "a file", error)
        return InputError(problem, "Look at it, and at who may read it.")
    frames = traceback.extract_tb(error.__traceback__)
    files = [Path(frame.filename) for frame in frames] or [Path("a library")]
    ours = [file for file in files if PACKAGE in file.parents]
    found = ProgramError(f"{type(error).__name__} in {(ours or files)[-1].name}")
    found.trace = "".join(traceback.format_exception(error))
    return found


def keep_trace(results: Path, name: str, error: FlareError) -> None:
    """Keep the traceback of an error, if it has one, for the developers.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    if isinstance(error, ProgramError) and error.trace:
        file = results / FAULTS / f"{name}.txt"
        # A name of a file in it may be no UTF-8.
        write_whole(file, error.trace.encode("utf-8", "backslashreplace"))
        _log.error("%s: %s Its traceback is in %s", safe(name), error, safe(file))


def obey_stop(error: BaseException) -> None:
    """End the program all the same if an error came up while it was being ended.

    What removes a container on the way out may fail, and its error takes the place of
    what has ended the program.

    Raises
    ------
    BaseException
        What has ended it, such as KeyboardInterrupt.
    """
    cause: BaseException | None = error
    while isinstance(cause, Exception | GeneratorExit):
        cause = cause.__context__
    if cause:
        raise cause
