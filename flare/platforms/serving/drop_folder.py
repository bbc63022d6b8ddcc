"""Takes submissions from a folder into which archives of teams are put."""

from __future__ import annotations

import hashlib
import json
import logging
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path

from flare.common.errors import InputError
from flare.common.files import write_whole
from flare.common.options import option
from flare.common.text import safe, why
from flare.measuring.archive.model import MODEL_SUFFIX, model_beside
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.serving.source import NotNowError, ReturnedFile, Submission
from flare.results.team_folder import REMEDY, derived_folder, name_problem

_log = logging.getLogger(__name__)

ANSWERS = "returned"
"""Folder in it that gets TEAMNAME.json for each archive."""

SETTLE_S = 10.0
"""A file that has changed since may not be whole yet."""


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

    Raises
    ------
    InputError
        If there is no such folder, or that of the answers is a link.
    """

    is_named = True

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        if not folder.is_dir():
            raise InputError(
                f"{safe(folder)}: there is no such folder",
                "Make it, and let teams put archives there.",
            )
        self._folder, self._now = folder, now
        self._told: set[str] = set()
        self._check_answers()

    @property
    def name(self) -> str:
        """The folder, wherever the service is started."""
        return f"the folder {safe(self._folder.resolve())}"

    def claimable(self) -> list[Submission]:
        """All archives that are whole, the oldest first."""
        try:
            paths = [*self._folder.iterdir()]
        except OSError as error:
            problem = f"{safe(self._folder)}: it cannot be read ({why(error)})"
            raise InputError(problem) from error
        now, found = self._now().timestamp(), []
        for path in paths:
            with suppress(OSError):  # of one that is removed meanwhile
                if _is_archive(path.name) and self._is_file(path):
                    found.append((_changed_at(path, now), path, _submission(path)))
        ordered = sorted(found, key=itemgetter(0, 1))
        return [one for time, _, one in ordered if time <= now - SETTLE_S]

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Nothing is to be done: the folder is locked by that of the results."""
        if is_again:  # the hours begin now
            raise NotNowError("nobody has heard of the claim")
        return submission

    def download(self, submission: Submission, folder: Path) -> Path:
        """The file itself.

        Raises
        ------
        ArchiveError
            If it is not there any more, or is another one now, or no team can have its
            name.
        ModelError
            If its model is a link: that may be another team's.
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

    def answer(
        self, submission: Submission, answer: ReturnedFile, *, is_again: bool
    ) -> None:
        """Write the answer into the folder; the same one anew does no harm."""
        self._check_answers()
        text = json.dumps(answer, indent=2, allow_nan=False)
        write_whole(self._folder / ANSWERS / f"{submission.team}.json", f"{text}\n")

    def _check_answers(self) -> None:
        """Refuse to write the answers to wherever somebody else may have chosen."""
        folder = self._folder / ANSWERS
        if folder.is_symlink():
            raise InputError(
                f"{safe(folder)}: it is a link, and answers are written there",
                "Remove it; the service makes the folder.",
            )

    def _is_file(self, path: Path) -> bool:
        """Whether what is called like an archive is a file; if not, it is said once."""
        is_file = _is_regular(path)
        if not is_file and path.name not in self._told:
            self._told.add(path.name)
            _log.warning("%s: it is not a file, and is not taken", safe(path))
        return is_file


def _is_archive(name: str) -> bool:
    is_model = name.endswith(MODEL_SUFFIX)
    return name.endswith(SUFFIX) and not is_model and name[0] != "."


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
    team = derived_folder(name) if name_problem(name) else name
    return Submission(key=digest[:16], team=team, user=team, title=path.name)
