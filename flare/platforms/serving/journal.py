"""Keeps and tells how far each submission is; a service that was killed goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from flare.common.files import write_whole
from flare.common.schema import DateTime, Is, Text, build, dump
from flare.common.text import aligned, count, printable, safe
from flare.platforms.serving.source import Answer, Source, Submission
from flare.results.errors import MeasurementError

JOURNAL_JSON = "journal.json"
ANSWERS = "answers"
"""The folder of answers, with a file for each submission."""

HOURS = 24.0
"""The hours that the platform gives a submission from its claim on
(EXTERNAL_EVALUATION_TIMEOUT_IN_SECONDS)."""

SPARE_SHARE = 1 / 48
"""The share of the hours in which to clean up and to answer: half an hour of a day."""


utc_now = partial(datetime.now, UTC)


class Step(Enum):
    """How far a submission is. Each is written down when it is done."""

    CLAIMING = "claiming"
    """It is about to be claimed: whether it is ours is not known after a kill."""
    CLAIMED = "claimed"
    DOWNLOADED = "downloaded"
    CHECKED = "checked"
    MEASURED = "measured"
    SCORED = "scored"
    """Its answer is written, be it metrics or a line."""
    RETURNING = "returning"
    """Its answer is about to be sent: whether it is there is not known after a kill."""
    RETURNED = "returned"
    LOST = "lost"
    """Somebody else has it, or its time is over."""

    @property
    def is_end(self) -> bool:
        """Whether nothing is left to do."""
        return self in (Step.RETURNED, Step.LOST)


_Times = Annotated[
    dict[str, DateTime],
    Is(
        entry=("STEP", "When it was done."),
        keys=f"^({'|'.join(step.value for step in Step)})$",
        required=["claiming"],
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Submission):
    """A submission."""

    step: Step
    """The last step that was done."""
    times: _Times = field(default_factory=dict)
    """When each step was done."""
    status: Annotated[str, Is(enum=["", "Succeeded", "Failed"])] = ""
    """Of its answer; empty before there is one."""
    message: str = ""
    """Why it has failed, for whoever has handed it in, or why it is lost; empty
    otherwise."""
    fault: str = ""
    """What is told if the fault that has postponed it stays until its hours are over;
    empty if none has."""

    def has(self, step: Step) -> bool:
        """Whether a step is done."""
        order = list(Step)
        return order.index(self.step) >= order.index(step)

    @property
    def claimed(self) -> datetime:
        """When it was claimed, or a little before."""
        start = datetime.fromisoformat(self.times[Step.CLAIMING.value])
        return start.astimezone(UTC)

    def ends_at(self, hours: float) -> datetime:
        """When its answer has to be on its way, if it has this number of hours."""
        return self.claimed + timedelta(hours=hours * (1 - SPARE_SHARE))


_ClosedEntry = Annotated[
    Entry, Is(optional=("user", "fault"), additionalProperties=False)
]


class JournalFile(TypedDict):
    """How far each submission of `flare serve` is, in RESULTS/.serve; written whole at
    each step.
    """  # noqa: D205  a sentence of the public schema

    source: Text
    """Where submissions come from: a phase of the platform, or a folder. Another one is
    refused."""
    submissions: list[_ClosedEntry]
    """All that were ever claimed, the oldest first."""


class Journal:
    """The journal of a service: one small file, written whole at each step.

    Parameters
    ----------
    folder : Path
        The folder of the journal, and of the answers.
    source : str
        Name of the source; a journal of another one is refused.
    now : callable
        Date and time.

    Raises
    ------
    MeasurementError
        If it is there, but cannot be read, or is of another source.
    """

    def __init__(
        self, folder: Path, source: str, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._file, self._answers = folder / JOURNAL_JSON, folder / ANSWERS
        self._source, self._now = source, now
        former_source, entries = read_journal(folder)
        if folder.exists():
            folder.chmod(folder.stat().st_mode & ~0o007)  # it names everybody
        if former_source and former_source != source:
            raise MeasurementError(
                str(self._file),
                f"it is of {former_source}, and now submissions come from {source}",
                "Give each source an --output of its own.",
            )
        self.entries = {entry.key: entry for entry in entries}
        """All that were ever claimed, by key, the oldest first."""

    def open_entries(self) -> list[Entry]:
        """Submissions that are not at their end, the oldest first."""
        return [entry for entry in self.entries.values() if not entry.step.is_end]

    def owner(self, submission: Submission) -> str:
        """Another user who has the folder of a submission; empty if nobody has."""
        entries = self.entries.values()
        users = {entry.user for entry in entries if entry.team == submission.team}
        return next(iter(users - {submission.user, ""}), "")

    def keep(
        self, submission: Submission, step: Step | None = None, **changes: Any
    ) -> Entry:
        """Write down a step of a submission, and changes of its entry.

        Parameters
        ----------
        submission : Submission
            As its source describes it now; or its entry, however old that is.
        step : Step, optional
            The step that was done now.
        **changes
            Fields of the entry.

        Raises
        ------
        OutputError
            If it cannot be written; then nothing has changed.
        """
        old_entry = self.entries.get(submission.key)
        if not isinstance(submission, Entry):
            for row in fields(Submission):
                changes[row.name] = getattr(submission, row.name)
        if step:
            old_times = old_entry.times if old_entry else {}
            time = self._now().astimezone(UTC).isoformat()
            changes |= {"step": step, "times": {**old_times, step.value: time}}
        entry = replace(old_entry, **changes) if old_entry else Entry(**changes)
        self._write({**self.entries, entry.key: entry})
        return entry

    def forget(self, submission: Submission) -> None:
        """Remove the entry of a submission: it was not claimed."""
        entries = dict(self.entries)
        entries.pop(submission.key, None)
        self._write(entries)

    def _write(self, entries: dict[str, Entry]) -> None:
        content: JournalFile = {
            "source": self._source,
            "submissions": list(entries.values()),
        }
        text = f"{json.dumps(dump(content), indent=2)}\n"
        write_whole(self._file, text, is_lasting=True)
        self.entries = entries

    def write_answer(self, submission: Submission, answer: Answer) -> None:
        """Write the answer before it is sent, so that each try sends the same.

        Raises
        ------
        ValueError
            If a number in it is not finite.
        OutputError
            If it cannot be written.
        """
        text = json.dumps(answer, indent=2, allow_nan=False)
        write_whole(self._answer_file(submission), f"{text}\n", is_lasting=True)

    def read_answer(self, submission: Submission) -> Answer:
        """Read the answer that is to be sent.

        Raises
        ------
        MeasurementError
            If it cannot be read.
        """
        file = self._answer_file(submission)
        with _as_written(file):
            answer: Answer = json.loads(file.read_text(encoding="utf-8"))
            has_result = answer["status"] == "Succeeded"
            _ = answer["metrics"] if has_result else answer["error_message"]
        return answer

    def _answer_file(self, submission: Submission) -> Path:
        """The file of an answer; the source has made the key of its submission safe."""
        return self._answers / f"{submission.key}.json"


def read_journal(folder: Path) -> tuple[str, tuple[Entry, ...]]:
    """The source of a journal, and all entries; both are empty if there is no journal.

    Raises
    ------
    MeasurementError
        If it is there, but cannot be read.
    """
    file = folder / JOURNAL_JSON
    if not file.exists():
        return "", ()
    with _as_written(file):
        content = json.loads(file.read_text(encoding="utf-8"))
        return str(content["source"]), tuple(map(_entry, content["submissions"]))


@contextmanager
def _as_written(file: Path) -> Iterator[None]:
    """Refuse a file that this program has not written, or an earlier version has."""
    try:
        yield
    except Exception as error:  # anybody may have changed it, in any way
        raise MeasurementError(
            str(file),
            "it is not what this version has written",
            "Go on with the version that has, or with another --output.",
        ) from error


def _entry(content: dict[str, Any]) -> Entry:
    """An entry that can be used as a whole; any error says that it cannot."""
    # The defaults are for an entry that begins, not for one that was written.
    if content.keys() != {row.name for row in fields(Entry)}:
        raise KeyError
    entry = build(Entry, content)
    entry.ends_at(HOURS)
    if entry.step.value not in entry.times:
        raise KeyError
    return entry


# --- How far all are --------------------------------------------------------------


def status_text(folder: Path, hours: float) -> str:
    """How far each submission is, in a table.

    Raises
    ------
    MeasurementError
        If the journal cannot be read.
    """
    source, entries = read_journal(folder)
    if not entries:
        return f"{safe(folder.parent)}: no submission was claimed yet"
    titles = ("submission", "team", "step", "at (UTC)", "answer by", "answer")
    rows = [titles, *(_row(entry, hours) for entry in entries)]
    return "\n".join([f"Submissions of {printable(source)}:", *aligned(rows)])


def _row(entry: Entry, hours: float) -> tuple[str, ...]:
    end = entry.ends_at(hours)
    return (
        safe(entry.title),
        safe(entry.team),
        entry.step.value,
        entry.times[entry.step.value][:16].replace("T", " "),
        "" if entry.step.is_end else f"{end:%Y-%m-%d %H:%M}",
        printable(f"{entry.status} {entry.message}".strip())
        or (entry.fault and "postponed"),
    )


def waiting_text(source: Source, folder: Path) -> str:
    """Tell the next steps of a service; nothing is claimed.

    Raises
    ------
    HostError
        If the source does not answer, or the journal cannot be read.
    """
    _, entries = read_journal(folder)
    lines = []
    for entry in entries:
        if not entry.step.is_end:
            step = entry.step.value
            lines.append(f"{safe(entry.title)}: would go on behind {step!r}")
    keys = {entry.key for entry in entries}
    for submission in source.claimable():
        if submission.key not in keys:
            lines.append(f"{safe(submission.title)}: would be claimed")
    returned = sum(entry.step is Step.RETURNED for entry in entries)
    submissions = count(returned, "submission")
    lines.append(f"Everything is ready; {submissions} answered already")
    return "\n".join(lines)
