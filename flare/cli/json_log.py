"""Writes the log of a service to a file, too, a JSON object in each line.

Each has ``time``, ``level`` and ``message``. What a program may want to know of a step
or a case is told as `facts`, which have keys of their own there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

from flare.common.errors import OutputError
from flare.common.schema import DateTime, Is, Positive, Text
from flare.common.text import safe, why


class LineHead(TypedDict):
    """The log of `flare serve --log LOG.jsonl`: each line is such an object."""

    time: DateTime
    """When it was written."""
    level: Literal["info", "warning", "error"]
    """How bad it is."""
    message: str
    """What happened, for people; the wording may change."""


class Facts(TypedDict, total=False):
    """What a program may want to know of a step or a case."""

    submission: Text
    """Of a step: key of the submission, as in journal.json."""
    team: Text
    """Of a step or a case: name of the folder in RESULTS."""
    step: Annotated[str, Is(enum=_steps())]
    """Of a step: which was done."""
    case: Text
    """Of a case that was run: its name."""
    status: Text
    """Of a case: its status, as in efficiency.csv."""
    runtime_s: float | None
    """Of a case: its running time in s; null if it has failed."""
    max_gpu_memory_mb: float | None
    """Of a case: its GPU memory in MB; null if it has failed, or without a GPU."""
    done: Positive
    """Of a case: how many were run since the service has started with this
    submission."""
    of: Positive
    """Of a case: how many there were to run then."""


def _steps() -> list[str]:
    """The steps of a submission."""
    from flare.platforms.serving.journal import Step  # for the schema alone

    return [step.value for step in Step]


class LogLine(LineHead, Facts):
    """The log of `flare serve --log LOG.jsonl`: each line is such an object."""


_facts = logging.getLogger("flare.facts")
"""What has no line of its own on stdout."""
_facts.propagate = False
_facts.setLevel(logging.INFO)

_DRAWN = "flare.cli.progress"
"""What this says of cases, facts say as well."""


def facts(**found: Unpack[Facts]) -> dict[str, Any]:
    """Facts that belong to a record of a log, for its argument ``extra``."""
    return {"facts": found}


def tell(message: str, **found: Unpack[Facts]) -> None:
    """Write a line to the file alone, if there is one."""
    _facts.info("%s", message, extra=facts(**found))


@contextmanager
def json_lines(file: Path | None) -> Iterator[None]:
    """Let the log be written to a file, too; what ends it is the last line.

    Parameters
    ----------
    file : Path, optional
        It is added to; a file that is moved away is begun anew.

    Raises
    ------
    OutputError
        If it cannot be written to.
    """
    if not file:
        yield
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = WatchedFileHandler(file, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{safe(file)}: the log cannot be written ({why(error)})"
        ) from error
    handler.setFormatter(_JsonFormatter())
    handler.addFilter(lambda record: record.name != _DRAWN)
    loggers = (logging.getLogger("flare"), _facts)
    for log in loggers:
        log.addHandler(handler)
    try:
        yield
    except BaseException as error:
        _facts.error("%s", str(error) or type(error).__name__)
        raise
    finally:
        for log in loggers:
            log.removeHandler(handler)
        handler.close()


class _JsonFormatter(logging.Formatter):
    """Makes a line of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a JSON object, in ASCII: no name can break a line, or a terminal."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        return json.dumps(line)
