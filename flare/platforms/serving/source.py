"""Says where submissions come from, and where answers go; a folder is a source."""

from __future__ import annotations

import hashlib
import json
import logging
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Protocol, TypedDict

from flare.common.errors import MESSAGE_LIMIT, HostError, InputError, SubmissionError
from flare.common.files import write_whole
from flare.common.options import option
from flare.common.schema import Count, Is, Positive, Text
from flare.common.text import printable, safe
from flare.measuring.archive.model import MODEL_SUFFIX, model_beside
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.results.team_folder import REMEDY, derived_folder, name_problem

_log = logging.getLogger(__name__)

ANSWERS = "returned"
"""Folder in it that gets TEAMNAME.json for each archive."""

SETTLE_S = 10.0
"""A file that has changed since may not be whole yet."""

once = lru_cache(maxsize=10_000)
"""Lets a log be told each text once, though not for ever: a service runs for months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What somebody has handed in, to be measured."""

    key: Text
    """Tells it from all others of its source."""
    team: Text
    """Name of its folder in RESULTS."""
    user: str = ""
    """Whose folder that is, as the source calls them; empty if that is not known."""
    title: str
    """What people call it."""
    place: Annotated[
        dict[str, str], Is(entry=("", "An address, a key, or the mark of a token."))
    ] = field(default_factory=dict)
    """What its source needs to get it again after a restart; no secrets."""


class Answer(TypedDict):
    """What `flare serve` says of a submission: it is sent to the platform, or written
    into DIR/returned of a drop folder.
    """  # noqa: D205  a sentence of the public schema

    status: Literal["Succeeded", "Failed"]
    """Whether there is a result."""
    metrics: NotRequired[Annotated[dict[str, Any], Is(like=ReturnedMetrics, **_MORE)]]
    """If there is: metrics.json of the team, with running times, GPU memory and
    statuses in `case` and `aggregates`."""
    error_message: NotRequired[Annotated[str, Is(minLength=1, maxLength=1024)]]
    """If there is none: one line that says what the team can do."""


class ReturnedMetrics(TypedDict):
    """The keys of `metrics` that are described here."""

    case: Annotated[dict[str, Any], Is(like=ReturnedCases, **_MORE)]
    """As in metrics.json, and further columns."""
    aggregates: Annotated[dict[str, Any], Is(like=ReturnedCounts, **_MORE)]
    """As in metrics.json, and further numbers: statistics of both, in which a failed
    case counts with the limits."""


class ReturnedCases(TypedDict):
    """Columns of `case` that metrics.json does not have."""

    status: Annotated[dict[str, str], Is(entry=("", "A status of efficiency.csv."))]
    """How the run of each case has ended, by its number."""
    runtime_s: NotRequired[_ByNumber]
    """Running time of each case in s, by its number; null if it has failed."""
    max_gpu_memory_mb: NotRequired[_ByNumber]
    """GPU memory of each case in MB, by its number; null if it has failed; not there
    without a GPU."""


class ReturnedCounts(TypedDict):
    """Keys of `aggregates` that metrics.json does not have."""

    cases: Positive
    """How many cases there are."""
    cases_ok: Positive
    """How many have a label map."""
    cases_failed: Count
    """How many have none."""


_MORE = {"additionalProperties": True}
_ByNumber = Annotated[dict[str, float | None], Is(entry=("", "Of a case."))]
RETURNED: dict[str, Any] = {
    "additionalProperties": False,
    "if": {"properties": {"status": {"const": "Succeeded"}}},
    "then": {"required": ["metrics"]},
    "else": {"required": ["error_message"]},
}
"""Of the whole file."""


def succeeded(metrics: dict[str, Any]) -> Answer:
    """The answer for a submission that has a result."""
    return {"status": "Succeeded", "metrics": metrics}


def failed(message: str) -> Answer:
    """The answer for one that has none, with the line for whoever has handed it in."""
    line = printable(message)[:MESSAGE_LIMIT]
    return {"status": "Failed", "error_message": line}


class NotOursError(Exception):
    """Another service has claimed a submission, or its time is over; the text says."""


class NotNowError(Exception):
    """A submission cannot be claimed now, but perhaps later; the text says why.

    `has_alternative` is whether its source can claim it in another way at once.
    """

    def __init__(self, problem: str, *, has_alternative: bool = False) -> None:
        super().__init__(problem)
        self.has_alternative = has_alternative


class GoneError(Exception):
    """The source has no such submission, or file, or lets nobody see or answer it.

    `team_error` is the message for the team if it stays so until the hours are over;
    without one, the submission is given up then.
    """

    def __init__(
        self, error: HostError, team_error: SubmissionError | None = None
    ) -> None:
        super().__init__(str(error))
        self.error, self.team_error = error, team_error


class Source(Protocol):
    """Where submissions come from, and where answers go.

    Each method raises a HostError for what goes wrong on the way, such as a platform
    that refuses, and a SubmissionError for what is wrong with a submission itself.
    """

    is_named: bool
    """Whether an image has to be called like its team; not where authors choose."""
    is_one_at_a_time: bool
    """Whether what was claimed, and waits here, keeps others from being claimed."""

    @property
    def name(self) -> str:
        """The source's name, always the same."""

    def claimable(self) -> list[Submission]:
        """Submissions that nobody has claimed, in the order of their turns."""

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Let nobody else have a submission; it, as the source describes it then.

        `is_again` is whether it was tried before, with an outcome that is not known. A
        NotOursError is raised if somebody else was faster, or the source calls it
        another user's. A NotNowError is raised if it has to wait, or was tried before
        in vain. A GoneError is raised if it was tried before, and is not there now.
        """

    def download(self, submission: Submission, folder: Path) -> Path:
        """Get the archive, unless it is there already; its file, called TEAM.tar.gz.

        A model that was handed in with it lies beside it, called TEAM.model.tar.gz. A
        GoneError is raised if the team may be the reason why it is not there.
        """

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Hand on the outcome of a submission, once.

        A NotOursError is raised if it is too late for that. A GoneError is raised if it
        is not there now, or takes no answer from any of us.
        """


# --- A folder ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """The folder that submissions come from, if they do."""

    drop_folder: Path | None = option(
        "Take TEAMNAME.tar.gz of teams from this folder; the answers go into"
        " DIR/returned.",
        default=None,
        metavar="DIR",
    )


class DropFolder:
    """A folder with TEAMNAME.tar.gz of each team; another file is another submission.

    TEAMNAME.model.tar.gz beside it is the team's model, and part of the submission.
    `turns` are teams that had a turn before, the oldest turn first. An InputError is
    raised if there is no such folder, or something else is where answers are written.
    """

    is_named, is_one_at_a_time = True, False

    def __init__(
        self, folder: Path, now: Callable[[], datetime], turns: Iterable[str] = ()
    ) -> None:
        if not folder.is_dir():
            raise InputError(
                f"{safe(folder)}: there is no such folder",
                "Make it, and let teams put archives there.",
            )
        self._folder, self._now, self._turns = folder, now, [*turns]
        self._warn_once = once(_log.warning)
        self._check_answers()

    @property
    def name(self) -> str:
        """The folder, wherever the service is started."""
        return f"the folder {safe(self._folder.resolve())}"

    def claimable(self) -> list[Submission]:
        """All archives that are whole: first of the team whose last turn is oldest.

        Teams that had none go before it, the archive that came first at their head.
        """
        now, waiting = self._now().timestamp(), []
        last_turn = {team: number for number, team in enumerate(self._turns)}
        for path in self._folder.iterdir():
            with suppress(OSError):  # of one that is removed meanwhile
                if _is_archive(path.name) and self._is_file(path):
                    submission = _submission(path)
                    # Nobody can choose this date.
                    arrival = max(file.stat().st_ctime for file in _files(path))
                    if _changed_at(path, now) <= now - SETTLE_S:
                        turn = last_turn.get(submission.team, -1)
                        waiting.append((turn, arrival, path, submission))
        return [
            submission for *_, submission in sorted(waiting, key=itemgetter(0, 1, 2))
        ]

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Nothing is to be done: the folder is locked by that of the results."""
        if is_again:  # the hours begin now
            raise NotNowError("nobody has heard of the claim")
        self._turns.append(submission.team)
        return submission

    def download(self, submission: Submission, folder: Path) -> Path:
        """The file itself.

        An ArchiveError is raised if it is not there any more, or is another one now, or
        no team can have its name. A ModelError is raised if its model is a link: that
        may be another team's.
        """
        path = self._folder / submission.title
        is_same = False
        with suppress(OSError):
            is_same = _is_regular(path) and _submission(path).key == submission.key
        if not is_same:
            problem = "it was removed or replaced before it was measured"
            raise ArchiveError(submission.title, problem, "Hand it in again.")
        problem = name_problem(path.name.removesuffix(SUFFIX))
        if problem:
            raise ArchiveError(submission.title, problem, REMEDY)
        model = model_beside(path)
        if model and model.is_symlink():
            raise ModelError(model.name, "it is a link", "Hand in the file itself.")
        return path

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Write the answer into the folder; the same one anew does no harm."""
        self._check_answers()
        text = json.dumps(answer, indent=2, allow_nan=False)
        write_whole(self._folder / ANSWERS / f"{submission.team}.json", f"{text}\n")

    def _check_answers(self) -> None:
        """Refuse to write the answers to wherever somebody else may have chosen."""
        folder = self._folder / ANSWERS
        is_link = folder.is_symlink()
        if is_link or (folder.exists() and not folder.is_dir()):
            kind = "a link" if is_link else "not a folder"
            raise InputError(
                f"{safe(folder)}: it is {kind}, and answers are written there",
                "Remove it; the service makes the folder.",
            )

    def _is_file(self, path: Path) -> bool:
        """Whether what is called like an archive is a file; if not, it is said once."""
        is_file = _is_regular(path)
        if not is_file:
            self._warn_once("%s: it is not a file, and is not taken", safe(path))
        return is_file


def _is_archive(name: str) -> bool:
    return (
        name.endswith(SUFFIX)
        and not name.startswith(".")
        and not name.endswith(MODEL_SUFFIX)
    )


def _is_regular(path: Path) -> bool:
    """Whether it is a file itself: a link may lead to another team's."""
    return stat.S_ISREG(path.lstat().st_mode)


def _files(path: Path) -> tuple[Path, ...]:
    model = model_beside(path)
    return (path, model) if model else (path,)


def _changed_at(path: Path, now: float) -> float:
    """When an archive, or its model, has changed last.

    Anybody can set the date of a file. Where it is in the future, the date counts on
    which it was set, which nobody can.
    """
    states = [file.stat() for file in _files(path)]
    return max(s.st_mtime if s.st_mtime <= now else s.st_ctime for s in states)


def _submission(path: Path) -> Submission:
    states = [(file.name, file.stat()) for file in _files(path)]
    text = " ".join(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in states)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    name = path.name.removesuffix(SUFFIX)
    # With an ending that no team's name has, nobody can be called like it.
    team = f"{derived_folder(name)}{SUFFIX}" if name_problem(name) else name
    return Submission(key=digest[:16], team=team, user=name, title=path.name)
