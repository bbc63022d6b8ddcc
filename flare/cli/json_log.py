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
from typing import Any

from flare.common.errors import OutputError
from flare.common.text import safe, why

_facts = logging.getLogger("flare.facts")
"""What has no line of its own on stdout."""
_facts.propagate = False
_facts.setLevel(logging.INFO)

_DRAWN = "flare.cli.progress"
"""What this says of cases, facts say as well."""


def facts(**found: Any) -> dict[str, Any]:
    """Facts that belong to a record of a log, for its argument ``extra``."""
    return {"facts": found}


def tell(message: str, **found: Any) -> None:
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
