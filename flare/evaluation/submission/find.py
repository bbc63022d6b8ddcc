"""Finds the label maps in a folder: predictions, or reference labels."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NoReturn

from flare.challenge.answers import ANSWER_SUFFIXES
from flare.challenge.formats import (
    ALL_SUFFIXES,
    CASE,
    FORMATS,
    PLAIN_NAMES,
    FileNames,
    NpzLayout,
    case_name,
    case_of,
    suffix_of,
)
from flare.challenge.rules import Challenge
from flare.common.environment import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.errors import FileError, InputError
from flare.common.files import is_file
from flare.common.text import listing, safe, why
from flare.evaluation.errors import FileFormatError, FolderError, GroundTruthError
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap, opened, read_labels

JOBS_FILE_NAME = "predictions.json"
"""The platform's list of an algorithm's jobs."""

TABLE_FILE_NAME = "predictions.csv"
"""The platform's name for a table that was submitted by itself."""

OF_PLATFORMS = ("inputs.json", "metadata")
"""Files that grand-challenge.org, and Codabench, put into each submission."""

IGNORED_NAMES = (*OF_PLATFORMS, "desktop.ini", "thumbs.db")
"""Files that a platform or an operating system puts there, in lower case."""

IGNORED_FOLDERS = ("__MACOSX",)

DEMONSTRATION_CASE = "demo_{:03}"
"""How the cases of the bundled demonstration set are named, and no others are."""

MOST_ENTRIES = 1_000_000
"""A folder that is searched has fewer files and folders in it than this."""

DEEPEST = 200
"""At most this deep may folders lie within folders."""

PATH_BYTES = 4000
"""At most this long may a path be: no system can open one of 4,096 bytes."""

_LOST_EXTENSION = re.compile(r"(\.nii)?( ?\(\d+\))?(\.gz)?( ?\(\d+\))?$", re.IGNORECASE)
"""The end of a file's name that has lost its extension, or a part of it: browsers write
"CASE.nii (1).gz", and gunzip and Windows hide what they take off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMapFile:
    """A file that holds, or should hold, the label map of one case."""

    case: str
    path: Path
    name: str
    """Its path below the folder that was searched, with forward slashes."""
    prediction_name: str = ""
    """How the prediction of its case is to be called, if this is a reference."""
    problem: FileError | None = None
    """Why it cannot be read, if that is known without opening it."""
    is_foreign: bool = False
    """Whether it is no image: an archive, an array or a table."""
    channels: tuple[LabelMapFile, ...] = ()
    """The further images of its case, if this is an image, in the order of their
    channels."""
    is_hidden: bool = False
    """Whether it is a reference of a secret image, which no message describes."""
    npz: NpzLayout | None = None
    """The arrays of a .npz file; None where it must not be such a file."""
    stream: BinaryIO | None = None
    """The file itself, if it is open already."""

    @property
    def file_name(self) -> str:
        """Its name without folders."""
        return self.path.name

    def read_grid(self) -> Grid:
        """Read the grid from the header.

        A FileFormatError is raised if its format is not accepted, or of a kind that no
        label map has. A DamagedFileError is raised if it ends within its header. An
        InputError is raised if the file cannot be opened.
        """
        with opened(self.path, self.name, self.npz, self.stream) as (header, _):
            return header.grid

    def read_labels(self, known_labels: Sequence[int]) -> LabelMap:
        """Read the whole label map and verify it.

        Its header decides how much memory this takes: look at it first. Known labels,
        from 1 to 255, may be there beside 0. A FileFormatError or InputError is raised:
        as `read_grid`. A DamagedFileError is raised if the file is truncated, its
        checksum is wrong, or it holds more or less than its header promises. A
        FractionError is raised if a voxel is not a whole number.
        """
        with opened(self.path, self.name, self.npz, self.stream) as (header, voxels):
            return read_labels(voxels, header, known_labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The files of a folder: label maps, and others."""

    files: tuple[LabelMapFile, ...]
    """In the order of their cases."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Names of the other files, each with its case, if its name is that of a case."""
    is_algorithm: bool = False
    """Whether these are what the platform's jobs have written."""
    durations_s: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Running times of the platform's jobs in seconds, by case and key."""

    @property
    def archives(self) -> tuple[str, ...]:
        """Names of archives, which are not opened."""
        names = (file.name for file in self.files)
        return tuple(name for name in names if suffix_of(name, ARCHIVE_SUFFIXES))


def find_label_maps(
    folder: Path,
    *,
    follow_links: bool = False,
    npz: NpzLayout | None = None,
    case_of: Callable[[str], str] = PLAIN_NAMES.case_of_reference,
    answer_files: Container[str] = (),
) -> Folder:
    """Find all label maps in a folder and its subfolders.

    Links are followed in folders of one's own alone: one in a submission could lead to
    the references. `npz` is what is in .npz files, if they are label maps, and
    `case_of` tells the case of a file by its name without extension. Files with the
    names of `answer_files` are passed by. A FolderError is raised if it holds too many
    files, or folders too deep. An InputError is raised if the folder, or one in it,
    cannot be read.
    """
    files, ignored = [], {}
    for path in walk(folder, follow_links=follow_links):
        relative = path.relative_to(folder)
        name = relative.as_posix()
        if path.name in answer_files:
            continue
        if is_of_others(relative):
            ignored[name] = case_of("")
            continue
        file = _label_map_file(path, name, case_of, follow_links, npz)
        if file:
            files.append(file)
        else:
            ignored[name] = case_of(_LOST_EXTENSION.sub("", path.name))
    return Folder(
        files=tuple(sorted(files, key=lambda file: (file.case, file.name))),
        ignored=dict(sorted(ignored.items())),
    )


def usual_references() -> Path:
    """The folder that the platform has unpacked, if it has any, else the bundled."""
    folder = PLATFORM_GROUND_TRUTH
    try:
        files = folder.is_dir() and _has_references(folder)
    except FolderError:
        return folder  # they are the organisers': reading them will say it
    return folder if files else BUNDLED_GROUND_TRUTH


def _has_references(folder: Path) -> bool:
    """Whether a folder has any label map, or a file that may have answers."""
    if find_label_maps(folder, follow_links=True).files:
        return True
    for file in walk(folder, follow_links=True):
        is_answers = file.suffix in ANSWER_SUFFIXES
        if is_answers and not is_of_others(file.relative_to(folder)):
            return True
    return False


def is_demonstration_set(folder: Path) -> bool:
    """Whether a folder has label maps of the demonstration set, and no others."""
    files = find_label_maps(folder, follow_links=True).files
    return bool(files) and all(is_demonstration(file.case) for file in files)


def answer_files_in(
    folder: Path, challenge: Challenge, *, is_reference: bool
) -> dict[str, list[Path]]:
    """The files of answers in a folder and its subfolders, by their names."""
    files: dict[str, list[Path]] = {name: [] for name in challenge.answer_files}
    for path in walk(folder, follow_links=is_reference):
        is_link = path.is_symlink() and not is_reference
        if path.name in files and not is_of_others(path.relative_to(folder)):
            if not is_link:
                files[path.name].append(path)
    return files


def find_references(
    folder: Path, challenge: Challenge | None = None
) -> tuple[LabelMapFile, ...]:
    """Find the reference of each case, as a challenge has them, or one image of each.

    A GroundTruthError is raised if there are none, a case has two, one has a name or a
    format that is not accepted, or the demonstration set lies beside others. An
    InputError is raised if the folder does not exist.
    """
    patterns = challenge.names if challenge else PLAIN_NAMES
    npz = challenge.npz.layout("reference") if challenge else None
    answer_files = challenge.answer_files if challenge else ()
    files = _reference_files(folder, patterns, npz, answer_files)
    _refuse_demonstration_beside_others(files)
    misnamed = listing(file.name for file in files if not file.case)
    if misnamed:
        problem = f"{misnamed}: not called {patterns.reference}, as [names] asks"
        raise GroundTruthError(problem)
    refuse_twice(files)
    _refuse_ambiguous_cases({file.case for file in files}, patterns)
    references = []
    for file in files:
        if file.problem:
            raise GroundTruthError(file.problem.finding) from file.problem
        suffix = suffix_of(file.name, ALL_SUFFIXES)
        prediction_name = patterns.prediction_of(file.case, suffix)
        references.append(replace(file, prediction_name=prediction_name))
    return tuple(references)


def _reference_files(
    folder: Path,
    patterns: FileNames,
    npz: NpzLayout | None,
    answer_files: Container[str],
) -> tuple[LabelMapFile, ...]:
    """All label maps in a folder of references, which has at least one."""

    def case_of(stem: str) -> str:
        return patterns.case_of_reference(stem) or stem * is_demonstration(stem)

    if not folder.exists() and folder in (BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH):
        raise GroundTruthError("there is no such folder")
    try:
        files = find_label_maps(
            folder,
            follow_links=True,
            npz=npz,
            case_of=case_of,
            answer_files=answer_files,
        ).files
    except FolderError as error:
        raise GroundTruthError(error.problem) from error
    if not files:
        raise GroundTruthError("there is no label map in their folder")
    return files


def _refuse_demonstration_beside_others(files: Sequence[LabelMapFile]) -> None:
    demonstration = [file.name for file in files if is_demonstration(file.case)]
    if 0 < len(demonstration) < len(files):
        problem = "the demonstration set lies beside other label maps"
        raise GroundTruthError(f"{listing(demonstration)}: {problem}")


def _refuse_ambiguous_cases(cases: Set[str], patterns: FileNames) -> None:
    """Raise a GroundTruthError if a file of one case has the name of another case."""
    for pattern in (patterns.prediction, patterns.reference, patterns.image):
        if pattern == CASE:
            continue
        for name in sorted(cases):
            case = case_of(name, pattern)
            if case != name and case in cases:
                raise GroundTruthError(
                    f"{safe(name)}: a file of this case may be of {safe(case)}, too"
                )


def refuse_twice(files: Sequence[LabelMapFile]) -> None:
    """Raise a GroundTruthError if two files are of one case."""
    ordered = sorted(files, key=lambda file: (file.case, file.name))
    for case, group in groupby(ordered, key=lambda file: file.case):
        names = [file.name for file in group]
        if len(names) > 1:
            raise GroundTruthError(
                f"{listing(names)}: {len(names)} files for case {safe(case)}"
            )


def is_demonstration(case: str) -> bool:
    """Whether a case belongs to the bundled demonstration set."""
    return re.fullmatch(r"demo_\d{3}", case) is not None


def walk(folder: Path, *, follow_links: bool) -> Iterator[Path]:
    """Everything below a folder but the folders that are searched, in a fixed order."""
    entries = 0
    for current, folders, names in os.walk(
        folder, onerror=_refuse, followlinks=follow_links
    ):
        here = Path(current)
        entries += len(folders) + len(names)
        longest = max((len(os.fsencode(name)) for name in folders + names), default=0)
        if (
            entries >= MOST_ENTRIES
            or len(here.parts) - len(folder.parts) > DEEPEST
            or len(os.fsencode(current)) + 1 + longest > PATH_BYTES
        ):
            raise FolderError(
                f"{safe(folder.name)}/: it holds {MOST_ENTRIES} files, folders deeper"
                f" than {DEEPEST}, or paths longer than {PATH_BYTES} bytes"
            )
        folders.sort()
        if not follow_links:
            names += [name for name in folders if (here / name).is_symlink()]
        yield from (here / name for name in sorted(names))


def _refuse(error: OSError) -> NoReturn:
    reason = why(error)
    if Path(error.filename).suffix.lower() == ".zip":
        reason += "; unzip it first"
    raise InputError(
        f"{safe(error.filename)}: the folder cannot be read ({reason})"
    ) from error


def is_of_others(relative: Path) -> bool:
    """Whether somebody else than the participant put this file there."""
    return (
        any(part.startswith(".") or part in IGNORED_FOLDERS for part in relative.parts)
        or relative.name.lower() in IGNORED_NAMES
    )


def _label_map_file(
    path: Path,
    name: str,
    case_of: Callable[[str], str],
    follow_links: bool,
    npz: NpzLayout | None,
) -> LabelMapFile | None:
    """A file that is or should be a label map; None for all other files."""
    problem, is_foreign = None, False
    stem = case_name(path, may_be_npz=npz is not None)
    if stem is None:
        problems = OTHER_SUFFIXES | FOREIGN_SUFFIXES
        suffix = suffix_of(path.name, problems)
        if not suffix:
            return None
        stem = path.name[: -len(suffix)]
        problem = FileFormatError(name, problems[suffix])
        is_foreign = suffix in FOREIGN_SUFFIXES
    elif not is_file(path) or (path.is_symlink() and not follow_links):
        remedy = "Put the file itself there."
        problem = FileFormatError(name, "it is a link or no regular file", remedy)
    return LabelMapFile(
        case=case_of(stem),
        path=path,
        name=name,
        problem=problem,
        is_foreign=is_foreign,
        npz=npz,
    )


ARCHIVE_SUFFIXES = (".zip", ".rar", ".7z", ".tar", ".tar.gz", ".tgz", ".tar.xz")

_HALF = "it is half of an image, whose header and voxels are two files"

OTHER_SUFFIXES = {
    **dict.fromkeys((".hdr", ".img", ".hdr.gz", ".img.gz"), _HALF),
    **dict.fromkeys((".mhd", ".zraw", ".nhdr"), _HALF),
    **dict.fromkeys((".tif", ".tiff"), "its format does not say where the voxels are"),
    **dict.fromkeys(
        (".mgz", ".mgh", ".mnc", ".dcm", ".h5"), "its format is not accepted"
    ),
}
"""Image files all the same: they are named in an error, with what is wrong."""


def _formats_of_other_challenges() -> dict[str, str]:
    """Extensions that only some challenges accept, with what is said elsewhere."""
    problems: dict[str, str] = {}
    for file_format in FORMATS:
        if file_format.elsewhere:
            problems |= dict.fromkeys(file_format.suffixes, file_format.elsewhere)
    return problems


FOREIGN_SUFFIXES = {
    **dict.fromkeys(
        ARCHIVE_SUFFIXES, "it is an archive within the zip, which is not opened"
    ),
    ".npy": "it is a NumPy file, which has no grid",
    **_formats_of_other_challenges(),
    **dict.fromkeys((".csv", ".xlsx"), "it is a table, not a label map"),
}
"""Files that matter only where a label map is missing."""
