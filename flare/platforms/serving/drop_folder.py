"""Takes submissions from a folder into which archives of teams are put."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from flare.common.errors import InputError
from flare.common.files import write_whole
from flare.common.text import safe, why
from flare.measuring.archive.model import MODEL_SUFFIX, model_beside
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.errors import ArchiveError
from flare.platforms.serving.source import Answer, Claim, Submission

ANSWERS = "returned"
"""Folder in it that gets TEAMNAME.json for each archive."""

SETTLE_S = 10.0
"""A file that has changed since may not be whole yet."""


class DropFolder:
    """A folder with TEAMNAME.tar.gz of each team; another file is another submission.

    TEAMNAME.model.tar.gz beside it is the team's model, and part of the submission.

    Parameters
    ----------
    folder : Path
        Where they are put.
    now : callable
        Date and time.

    Raises
    ------
    InputError
        If there is no such folder.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        if not folder.is_dir():
            problem = f"{safe(folder)}: there is no such folder"
            raise InputError(problem, "Make it, and let teams put archives there.")
        self._folder, self._now = folder, now

    @property
    def name(self) -> str:
        """The folder, wherever the service is started."""
        return f"the folder {safe(self._folder.resolve())}"

    def claimable(self) -> list[Submission]:
        """All archives that are whole, the oldest first.

        Raises
        ------
        InputError
            If the folder cannot be read.
        """
        try:
            found = [
                (_changed_at(path), path)
                for path in self._folder.iterdir()
                if path.name.endswith(SUFFIX)
                and not path.name.endswith(MODEL_SUFFIX)
                and path.name[0] != "."
                and path.is_file()
            ]
        except OSError as error:
            problem = f"{safe(self._folder)}: it cannot be read ({why(error)})"
            raise InputError(problem) from error
        ready = self._now().timestamp() - SETTLE_S
        return [_submission(path) for time, path in sorted(found) if time <= ready]

    def claim(self, submission: Submission, *, is_again: bool) -> Claim:
        """Nothing is to be done: the folder is locked by that of the results."""
        return Claim(submission=submission)

    def download(self, submission: Submission, folder: Path) -> Path:
        """The file itself.

        Raises
        ------
        ArchiveError
            If it is not there any more, or is another one now.
        """
        path = self._folder / submission.title
        if not path.is_file() or _submission(path).key != submission.key:
            problem = "it was removed or replaced before it was measured"
            raise ArchiveError(submission.title, problem, "Hand it in again.")
        return path

    def answer(
        self,
        submission: Submission,
        answer: Answer,
        *,
        is_again: bool,
    ) -> None:
        """Write the answer into the folder; the same one anew does no harm.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        content: dict[str, object] = {"status": answer.status}
        if answer.metrics is None:
            content["error_message"] = answer.message
        else:
            content["metrics"] = answer.metrics
        text = json.dumps(content, indent=2, allow_nan=False)
        write_whole(self._folder / ANSWERS / f"{submission.team}.json", f"{text}\n")


def _files(path: Path) -> tuple[Path, ...]:
    """An archive, and the model beside it, if there is one."""
    model = model_beside(path)
    return (path, model) if model else (path,)


def _changed_at(path: Path) -> float:
    """When an archive, or its model, has changed last."""
    return max(file.stat().st_mtime for file in _files(path))


def _submission(path: Path) -> Submission:
    """An archive, and its model, as they lie there now."""
    states = [(file.name, file.stat()) for file in _files(path)]
    text = " ".join(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in states)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return Submission(
        key=digest[:16],
        team=safe(path.name.removesuffix(SUFFIX)).replace("/", "_"),
        title=path.name,
    )
