"""Tells all problems of a submission together, in one line."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from flare.common.errors import MESSAGE_LIMIT, FileError, SubmissionError
from flare.common.text import listing, safe

FINDINGS_CHARACTERS = 120
"""When findings of one kind take so many characters, the other files are only named."""


class SeveralProblemsError(SubmissionError):
    """More than one thing is wrong with a submission."""

    def __init__(self, problems: Sequence[SubmissionError]) -> None:
        self.problems = tuple(sorted(problems, key=_kind))
        self.finding = "; ".join(problem.finding for problem in self.problems)
        self.remedy = "Repair them all."
        self.code = self.problems[0].code  # type: ignore[misc]

    def __str__(self) -> str:
        """Return every kind of problem; if they are too many, each shortened."""
        line = " ".join(problem_lines(self.problems))
        if len(line.encode()) < MESSAGE_LIMIT:
            return line
        kinds = _kinds(self.problems)
        share = (MESSAGE_LIMIT - 1) // len(kinds) - 1
        return " ".join(_short_kind_text(group, share) for group in kinds)


def problem_lines(problems: Sequence[SubmissionError]) -> tuple[str, ...]:
    """What is wrong with a submission, a sentence for each kind, none shortened."""
    return tuple(_kind_text(group) for group in _kinds(problems))


def _kinds(
    problems: Sequence[SubmissionError],
) -> tuple[tuple[SubmissionError, ...], ...]:
    """Problems of one kind together, in the order of their codes."""
    ordered = sorted(problems, key=_kind)
    return tuple(tuple(group) for _, group in itertools.groupby(ordered, key=_kind))


def _kind(problem: SubmissionError) -> tuple[str, str]:
    """Problems of one code with one remedy are told together."""
    return problem.code, problem.remedy


def _kind_text(group: tuple[SubmissionError, ...]) -> str:
    """All problems of one kind in one sentence."""
    first = group[0]
    return f"{_kind_finding(group)}. {first.remedy} [{first.code}]"


def _short_kind_text(group: tuple[SubmissionError, ...], most: int) -> str:
    """The same in so many bytes of UTF-8, with its code."""
    text, code = _kind_text(group), f"[{group[0].code}]"
    if len(text.encode()) <= most:
        return text
    end = f"... {code}"
    return text.encode()[: most - len(end)].decode("utf-8", "ignore") + end


def _kind_finding(group: tuple[SubmissionError, ...]) -> str:
    """What is wrong, once for all files of which the same is wrong."""
    if not all(isinstance(problem, FileError) for problem in group):
        return "; ".join(problem.finding for problem in group)
    files: dict[str, list[str]] = {}
    for error in group:
        if isinstance(error, FileError):
            files.setdefault(error.problem, []).append(error.file)
    parts: list[str] = []
    for shown, (problem, (first, *others)) in enumerate(files.items()):
        if shown and len("; ".join(parts)) > FINDINGS_CHARACTERS:
            left = [name for names in list(files.values())[shown:] for name in names]
            return f"{'; '.join(parts)}; similar problems in {listing(left)}"
        likewise = f", likewise {listing(others)}" if others else ""
        parts.append(f"{safe(first)}: {problem}{likewise}")
    return "; ".join(parts)


def raise_problems(problems: Sequence[SubmissionError]) -> None:
    """Raise what is wrong, as one error; return if nothing is.

    Raises
    ------
    SubmissionError
        The problem itself if there is only one, else a `SeveralProblemsError`.
    """
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise SeveralProblemsError(problems)
