"""Measure submissions as they come, and answer them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypedDict

from flare.cli.command import takes
from flare.cli.commands.measure import Told
from flare.cli.console import stopping_with
from flare.common.errors import OutputError, StoppedError
from flare.common.schema import DateTime, Is, Positive, Text
from flare.common.text import safe, why
from flare.platforms.grandchallenge.client import Client, read_token
from flare.platforms.grandchallenge.external import ExternalOptions, PhaseSource
from flare.platforms.serving.journal import Entry, Step, status_text, utc_now
from flare.platforms.serving.serve import ServiceOptions, serve
from flare.platforms.serving.source import DropFolder, FolderOptions, Source
from flare.results.efficiency_csv import CaseRecord

PLACE = ("For organisers", 8)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where submissions come from, and how they are served."""

    phase: ExternalOptions
    folder: FolderOptions
    service: ServiceOptions

    def __post_init__(self) -> None:
        """See that all is given, unless it is only asked how far the service is."""
        given = {
            "--phase or --drop-folder": self.phase.phase or self.folder.drop_folder,
            "--images": self.service.images,
            "--ground-truth": self.service.ground_truth,
        }
        missing = ", ".join(name for name, value in given.items() if not value)
        if missing and not self.service.status:
            raise ValueError(f"the following arguments are required: {missing}")

    def source(self) -> Source:
        """The place that submissions come from."""
        if self.folder.drop_folder:
            return DropFolder(self.folder.drop_folder, utc_now)
        return PhaseSource(str(self.phase.phase), Client(self.phase.api, read_token()))


@takes(
    Options,
    exclusive=("phase", "drop_folder"),
    epilog="FLARE_GC_TOKEN_FILE names the file that holds the API token of one of the"
    " phase's external evaluators, or FLARE_GC_TOKEN holds the token.",
)
def command(options: Options) -> None:
    """Measure submissions as they come, and answer them."""
    service = options.service
    if service.status:
        _log.info("%s", status_text(service.folder, service.hours))
        return
    if service.page:
        # Here, as help should not wait for it.
        from flare.reports.render import check_library

        check_library(service.page, "jinja2")
    with json_lines(service.log), stopping_with(_stopped):
        serve(service, options.source(), telling=Watched, on_step=tell)


class Watched(Told):
    """Tells of each case also in the log for programs."""

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Tell the outcome of a case."""
        super().on_run(team, record, number, total)
        found = {
            "team": team,
            "case": record.case,
            "status": record.status.value,
            "runtime_s": record.runtime_s,
            "max_gpu_memory_mb": record.max_gpu_memory_mb,
            "done": number,
            "of": total,
        }
        text = f"{team}: {record.case}: {record.status.value}"
        _facts.info("%s", text, extra={"facts": found})


def tell(entry: Entry) -> None:
    """Tell how far a submission is, or why it has failed."""
    step = entry.step.value
    is_told = entry.step is Step.SCORED and entry.message
    found = {"submission": entry.key, "team": entry.team, "step": step}
    said = f"failed: {entry.message}" if is_told else step
    _log.info("%s: %s", safe(entry.title), said, extra={"facts": found})


def _stopped() -> StoppedError:
    """The message for an operator who ends the service."""
    return StoppedError(
        "The service was ended", "What is done is kept; the same command goes on."
    )


# --- The log as a file: a JSON object in each line --------------------------------


class LogLine(TypedDict):
    """The log of `flare serve --log LOG.jsonl`: each line is such an object."""

    time: DateTime
    """When it was written."""
    level: Literal["info", "warning", "error"]
    """How bad it is."""
    message: str
    """What happened, for people; the wording may change."""
    submission: NotRequired[Text]
    """Of a step: key of the submission, as in journal.json."""
    team: NotRequired[Text]
    """Of a step or a case: name of the folder in RESULTS."""
    step: NotRequired[Annotated[str, Is(enum=[step.value for step in Step])]]
    """Of a step: which was done."""
    case: NotRequired[Text]
    """Of a case that was run: its name."""
    status: NotRequired[Text]
    """Of a case: its status, as in efficiency.csv."""
    runtime_s: NotRequired[float | None]
    """Of a case: its running time in s; null if it has failed."""
    max_gpu_memory_mb: NotRequired[float | None]
    """Of a case: its GPU memory in MB; null if it has failed, or without a GPU."""
    done: NotRequired[Positive]
    """Of a case: how many were run since the service has started with this
    submission."""
    of: NotRequired[Positive]
    """Of a case: how many there were to run then."""


_facts = logging.getLogger("flare.facts")
"""What has no line of its own on stdout."""
_facts.propagate = False
_facts.setLevel(logging.INFO)

_DRAWN = "flare.progress"
"""What this says of cases, facts say as well."""


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
    def format(self, record: logging.LogRecord) -> str:
        """Return a JSON object, in ASCII: no name can break a line, or a terminal."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        return json.dumps(line)
