"""Keeps how far each submission is, so that a service that was killed can go on."""

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
"""The time that the platform gives a submission after its claim
(EXTERNAL_EVALUATION_TIMEOUT_IN_SECONDS)."""

SPARE_SHARE = 1 / 48
"""The part of this time that is left for cleaning up and answering: half an hour."""

utc_now = partial(datetime.now, UTC)


class Step(Enum):
    """The steps of a submission, in their order; each is written down when done."""

    CLAIMING = "claiming"
    """It is about to be claimed. After a kill, nobody knows whether it was."""
    CLAIMED = "claimed"
    DOWNLOADED = "downloaded"
    CHECKED = "checked"
    MEASURED = "measured"
    SCORED = "scored"
    """Its answer is in a file: metrics, or an error message."""
    RETURNING = "returning"
    """Its answer is about to be sent. After a kill, nobody knows whether it was."""
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
    """A submission, and how far it is."""

    step: Step
    """The last step that was done."""
    times: _Times = field(default_factory=dict)
    """When each step was done."""
    status: Annotated[str, Is(enum=["", "Succeeded", "Failed"])] = ""
    """The status of its answer; empty before there is one."""
    message: str = ""
    """Why it has failed, as its author reads it, or why it is lost; else empty."""
    fault: str = ""
    """Its answer if the fault that has postponed it stays until its time is over; empty
    if it was not postponed."""

    def has(self, step: Step) -> bool:
        """Whether a step is done, as all steps up to the last one are."""
        steps = list(Step)
        return steps.index(step) <= steps.index(self.step)

    @property
    def claimed(self) -> datetime:
        """When it was claimed, or a little before."""
        start = datetime.fromisoformat(self.times[Step.CLAIMING.value])
        return start.astimezone(UTC)

    def ends_at(self, hours: float) -> datetime:
        """When its answer has to be sent, if it has this number of hours."""
        return self.claimed + timedelta(hours=hours * (1 - SPARE_SHARE))


_ClosedEntry = Annotated[
    Entry, Is(optional=("user", "fault"), additionalProperties=False)
]


class JournalFile(TypedDict):
    """How far each submission of `flare serve` is; the file lies in RESULTS/.serve."""

    source: Text
    """Where submissions come from: a phase of the platform, or a folder. A service for
    another source refuses the file."""
    submissions: list[_ClosedEntry]
    """All submissions that were ever claimed, the oldest first."""


class Journal:
    """The journal of a service: one small file, written whole at each step.

    Its folder also has the answers. `source` says where submissions come from. A
    MeasurementError is raised if the journal cannot be read, or is of another source.
    """

    def __init__(
        self, folder: Path, source: str, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._file, self._answers = folder / JOURNAL_JSON, folder / ANSWERS
        self._source, self._now = source, now
        former_source, entries = read_journal(folder)
        if folder.exists():
            # Its files name everybody who has submitted, so others may not enter it.
            folder.chmod(folder.stat().st_mode & ~0o007)
        if former_source and former_source != source:
            raise MeasurementError(
                str(self._file),
                f"it is of {former_source}, and now submissions come from {source}",
                "Give each source an --output of its own.",
            )
        self.entries = {entry.key: entry for entry in entries}
        """All submissions that were ever claimed, by key, the oldest first."""

    def open_entries(self) -> list[Entry]:
        """Submissions that are not at their end, the oldest first."""
        return [entry for entry in self.entries.values() if not entry.step.is_end]

    def owner(self, submission: Submission) -> str:
        """Another user who has the folder of a submission; empty if nobody has."""
        entries = self.entries.values()
        users = {entry.user for entry in entries if entry.team == submission.team}
        other_users = sorted(users - {submission.user, ""})
        return other_users[0] if other_users else ""

    def keep(
        self, submission: Submission, step: Step | None = None, **changes: Any
    ) -> Entry:
        """Write down a step of a submission that was done, and changes of its entry.

        The submission is as its source has it now, or an entry of it, even an old one.
        An OutputError is raised if it cannot be written; then nothing has changed.
        """
        old_entry = self.entries.get(submission.key)
        if not isinstance(submission, Entry):  # its source may have changed it
            for key in fields(Submission):
                changes[key.name] = getattr(submission, key.name)
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
        """Write an answer before it is sent, so that each try sends the same one.

        A ValueError is raised if a number in it is not finite. An OutputError is raised
        if it cannot be written.
        """
        text = json.dumps(answer, indent=2, allow_nan=False)
        write_whole(self._answer_file(submission), f"{text}\n", is_lasting=True)

    def read_answer(self, submission: Submission) -> Answer:
        """Read the answer that is to be sent.

        A MeasurementError is raised if it cannot be read.
        """
        file = self._answer_file(submission)
        with _refusing_changes(file):
            answer: Answer = json.loads(file.read_text(encoding="utf-8"))
            key = "metrics" if answer["status"] == "Succeeded" else "error_message"
            if key not in answer:
                raise KeyError(key)
        return answer

    def _answer_file(self, submission: Submission) -> Path:
        """The file of an answer; the source has made the key of its submission safe."""
        return self._answers / f"{submission.key}.json"


def read_journal(folder: Path) -> tuple[str, tuple[Entry, ...]]:
    """The source of a journal, and all entries; both are empty if there is no journal.

    A MeasurementError is raised if the journal cannot be read.
    """
    file = folder / JOURNAL_JSON
    if not file.exists():
        return "", ()
    with _refusing_changes(file):
        content = json.loads(file.read_text(encoding="utf-8"))
        return str(content["source"]), tuple(map(_entry, content["submissions"]))


@contextmanager
def _refusing_changes(file: Path) -> Iterator[None]:
    """Refuse a file that somebody has changed, or that another version has written."""
    try:
        yield
    except Exception as error:  # a changed file may raise any error
        raise MeasurementError(
            str(file),
            "it is not what this version has written",
            "Go on with the version that has, or with another --output.",
        ) from error


def _entry(content: dict[str, Any]) -> Entry:
    """An entry of the journal; any error says that it cannot be used."""
    # An entry that was written has all keys: the defaults are for new ones.
    if content.keys() != {key.name for key in fields(Entry)}:
        raise KeyError
    entry = build(Entry, content)
    entry.ends_at(HOURS)  # raises if the time of its claim makes no sense
    if entry.step.value not in entry.times:
        raise KeyError
    return entry


# --- Texts for the operator -------------------------------------------------------


def status_text(folder: Path, hours: float) -> str:
    """How far each submission is, in a table.

    A MeasurementError is raised if the journal cannot be read.
    """
    source, entries = read_journal(folder)
    if not entries:
        return f"{safe(folder.parent)}: no submission was claimed yet"
    titles = ("submission", "team", "step", "at (UTC)", "answer by", "answer")
    rows = [titles, *(_row(entry, hours) for entry in entries)]
    return "\n".join([f"Submissions of {printable(source)}:", *aligned(rows)])


def _row(entry: Entry, hours: float) -> tuple[str, ...]:
    end = entry.ends_at(hours)
    answer = printable(f"{entry.status} {entry.message}".strip())
    if entry.fault and not answer:
        answer = "postponed"
    return (
        safe(entry.title),
        safe(entry.team),
        entry.step.value,
        entry.times[entry.step.value][:16].replace("T", " "),
        "" if entry.step.is_end else f"{end:%Y-%m-%d %H:%M}",
        answer,
    )


def waiting_text(source: Source, folder: Path) -> str:
    """Tell what a service would do next; nothing is claimed.

    A HostError is raised if the source does not answer, or the journal cannot be read.
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
    returned = [entry for entry in entries if entry.step is Step.RETURNED]
    submissions = count(len(returned), "submission")
    lines.append(f"Everything is ready; {submissions} answered already")
    return "\n".join(lines)
