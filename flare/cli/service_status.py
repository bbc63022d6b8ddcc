"""Tells how far the submissions of a service are."""

from __future__ import annotations

from pathlib import Path

from flare.common.text import aligned, safe
from flare.platforms.serving.journal import Entry, Step, read_journal
from flare.platforms.serving.overdue import ends_at
from flare.platforms.serving.source import Source

TITLES = ("submission", "team", "step", "at (UTC)", "answer by", "answer")


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
    rows = [TITLES, *(_row(entry, hours) for entry in entries)]
    return "\n".join([f"Submissions of {source}:", *aligned(rows)])


def _row(entry: Entry, hours: float) -> tuple[str, ...]:
    """A submission, in a row."""
    end = ends_at(entry.claimed, hours)
    return (
        safe(entry.submission.title),
        safe(entry.submission.team),
        entry.step.value,
        entry.times[entry.step.value][:16].replace("T", " "),
        "" if entry.step.is_end else f"{end:%Y-%m-%d %H:%M}",
        f"{entry.status} {entry.message}".strip() or (entry.fault and "postponed"),
    )


def waiting_text(source: Source, folder: Path) -> str:
    """What a service would do next; nothing is claimed.

    Raises
    ------
    HostError
        If the source does not answer, or the journal cannot be read.
    """
    _, entries = read_journal(folder)
    known = {entry.submission.key: entry for entry in entries}
    lines = [
        f"{safe(entry.submission.title)}: would go on behind {entry.step.value!r}"
        for entry in entries
        if not entry.step.is_end
    ]
    lines += [
        f"{safe(submission.title)}: would be claimed"
        for submission in source.claimable()
        if submission.key not in known
    ]
    said = source.resume([entry.submission for entry in entries])
    lines += [said] if said else []
    counted = sum(entry.step is Step.RETURNED for entry in entries)
    lines.append(f"Everything is ready; {counted} submissions are answered already")
    return "\n".join(lines)
