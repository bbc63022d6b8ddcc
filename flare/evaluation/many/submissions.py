"""Finds what teams have submitted: a folder or a zip file of predictions for each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.challenge.formats import SUFFIXES
from flare.common.errors import InputError
from flare.common.files import is_file, is_folder
from flare.common.text import listing, safe, why
from flare.evaluation.submission.other_formats import ARCHIVE_SUFFIXES
from flare.results.team_folder import REMEDY, confusable, name_problem

_ZIP = ".zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a team has submitted."""

    team: str
    path: Path
    """Of a folder, or of a zip file."""
    problem: InputError | None = None
    """Why it cannot even be opened."""

    @property
    def is_zip(self) -> bool:
        """Whether it has to be unpacked."""
        return not is_folder(self.path)


def find_submissions(
    folder: Path, settled: Collection[str] = ()
) -> tuple[Submission, ...]:
    """All submissions, in the order of the teams' names.

    Hidden files and folders are nobody's.

    Parameters
    ----------
    folder : Path
        With a folder, or a zip file, for each team.
    settled : collection of str
        Names of teams that have results already.

    Raises
    ------
    InputError
        If there is no such folder, or no team in it, or something else than folders
        and zip files.
    """
    try:
        entries = sorted(p for p in folder.iterdir() if p.name[0] != ".")
    except OSError as error:
        raise InputError(
            f"{safe(folder)}: it cannot be read as a folder ({why(error)})", _REMEDY
        ) from error
    maps = [
        entry
        for entry in entries
        if entry.name.lower().endswith(SUFFIXES) and not is_folder(entry)
    ]
    if maps:
        names = listing(entry.name for entry in maps)
        raise InputError(
            f"{safe(folder)}: label maps lie in it ({names}), not teams", _REMEDY
        )
    found: dict[str, list[Path]] = {}
    others: dict[str, list[Path]] = {}
    for entry in entries:
        ends = [end for end in ARCHIVE_SUFFIXES if entry.name.lower().endswith(end)]
        leads_nowhere = entry.is_symlink() and not (is_file(entry) or ends)
        if is_folder(entry) or leads_nowhere:
            found.setdefault(entry.name, []).append(entry)
        elif _ZIP in ends:
            found.setdefault(entry.stem, []).append(entry)
        elif ends:
            others.setdefault(entry.name[: -max(map(len, ends))], []).append(entry)
    # Of a team that has nothing else: otherwise it was unpacked beside its folder.
    found = others | found
    if not found:
        raise InputError(
            f"{safe(folder)}: neither a folder nor a zip file is in it", _REMEDY
        )
    alike = confusable(sorted(found), settled)
    return tuple(
        Submission(
            team=team, path=paths[0], problem=_problem(team, paths, alike.get(team))
        )
        for team, paths in sorted(found.items())
    )


_REMEDY = (
    "Give the folder that has a folder, or a zip file, for each team; flare evaluate"
    " scores the label maps of one."
)


def _problem(team: str, paths: Sequence[Path], alike: str | None) -> InputError | None:
    """Why what a team has submitted cannot be opened, or kept under its name."""
    if len(paths) > 1:
        names = listing(path.name for path in paths)
        problem = f"{names}: {len(paths)} submissions of one team"
        return InputError(problem, "Keep one of them.")
    reason = name_problem(team)
    if not reason and alike:
        reason = f"its name can be taken for that of {safe(alike)}"
    if reason:
        return InputError(f"{safe(team)}: {reason}", REMEDY)
    (path,) = paths
    if path.is_symlink() or not (is_folder(path) or is_file(path)):
        problem = f"{safe(path.name)}: it is a link, or no regular file or folder"
        return InputError(problem, "Put the folder or the zip file itself there.")
    if is_file(path) and path.suffix.lower() != _ZIP:
        problem = f"{safe(path.name)}: it is an archive, but no zip file"
        return InputError(problem, "Unpack it into a folder, or make a zip file of it.")
    return None
