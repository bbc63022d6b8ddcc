"""Finds the label maps in a folder, and pairs each prediction with its reference."""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from flare.challenge.cases import case_name
from flare.common.errors import FileError, InputError, SubmissionError
from flare.common.text import listing, safe, why
from flare.evaluation.errors import (
    DuplicateCasesError,
    FileFormatError,
    FolderError,
    GroundTruthError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    OrganFilesError,
    UnexpectedCasesError,
)
from flare.evaluation.labelmaps.reading import (
    ARCHIVE_SUFFIXES,
    FOREIGN_SUFFIXES,
    OTHER_SUFFIXES,
)
from flare.evaluation.submission.organ_files import find_organ_files

IGNORED_NAMES = ("inputs.json", "desktop.ini", "thumbs.db")
"""Files that the platform or an operating system puts there, in lower case."""

IGNORED_FOLDERS = ("__MACOSX",)

DEMONSTRATION_CASE = "demo_{:03}"
"""How the cases of the bundled demonstration set are named, and no others are."""

EXAMPLE = "validation_001.nii.gz"
"""What the file of a case may be called, where no case is known."""

SIMILARITY = 0.85
"""How alike names must be, by difflib's ratio, for one to be a slip of the other."""

MOST_ENTRIES = 1_000_000
"""Of a folder that is searched, with all that is in it,"""

DEEPEST = 200
"""and its folders within folders,"""

PATH_BYTES = 4000
"""and the longest path: no system can open one of 4,096 bytes."""

_COPY = re.compile(
    r"[ _-]*(\(\d+\)|copy|(?<=_0000)_seg|_0000|\.seg|\.nii( ?\(\d+\))?)$"
)
"""What people and their programs add to a name: " (1)", " - Copy", "_0000", which MONAI
makes "_0000_seg" of, and 3D Slicer's ".seg"."""

_CASE_ALONE = re.compile(r"(\.nii)?( ?\(\d+\))?(\.gz)?( ?\(\d+\))?$", re.IGNORECASE)
"""What may be behind the name of a case whose file has lost its extension, or part of
it: browsers write "CASE.nii (1).gz", and gunzip and Windows hide what they take off."""

COMPARED_NAMES = 100
"""Only so many names are compared one by one: the time grows with their square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMapFile:
    """A file that holds, or should hold, the label map of one case."""

    case: str
    path: Path
    name: str
    """Its path below the folder that was searched, with forward slashes."""
    problem: FileError | None = None
    """Why it cannot be read, as far as that is known without opening it."""
    is_archive: bool = False
    """Whether it is an archive, which could hold label maps."""
    is_foreign: bool = False
    """Whether it is no image: an archive, an array or a table."""
    is_hidden: bool = False
    """Of a reference: whether its image is secret, so that no message describes it."""
    durations_s: tuple[tuple[str, float], ...] = ()
    """Of an algorithm's output: what the platform says of the job's running time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What was found in a folder."""

    files: tuple[LabelMapFile, ...]
    """In the order of their cases."""
    ignored: tuple[str, ...]
    """Names of the other files."""
    is_algorithm: bool = False
    """Whether these are what the platform's jobs have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePair:
    """The two label maps of one case."""

    case: str
    reference: LabelMapFile
    prediction: LabelMapFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """A submission, paired with the references as far as possible."""

    pairs: tuple[CasePair, ...]
    """In the order of the cases' names."""
    problems: tuple[SubmissionError, ...]


def find_label_maps(folder: Path, *, follow_links: bool = False) -> Folder:
    """Find all label maps in a folder and its subfolders.

    `follow_links` is for folders of one's own: a link in a submission could lead to
    the references.

    Raises
    ------
    FolderError
        If there is no end of files or folders.
    InputError
        If the folder, or one in it, cannot be read.
    """
    files, ignored = [], []
    for path in _walk(folder, follow_links=follow_links):
        relative = path.relative_to(folder)
        file = None
        if not _is_ignored(relative):
            file = _label_map_file(path, relative, follow_links=follow_links)
        if file:
            files.append(file)
        else:
            ignored.append(relative.as_posix())
    return Folder(
        files=tuple(sorted(files, key=lambda file: (file.case, file.name))),
        ignored=tuple(sorted(ignored)),
    )


def find_references(folder: Path) -> tuple[LabelMapFile, ...]:
    """Find the reference of each case.

    Raises
    ------
    GroundTruthError
        If there is none, a case has two, one has a format that is not accepted, or the
        demonstration set lies beside others.
    """
    try:
        files = find_label_maps(folder, follow_links=True).files
    except FolderError as error:
        raise GroundTruthError(error.problem) from error
    if not files:
        problem = "there is no label map in their folder"
        raise GroundTruthError(problem)
    demonstration = [file for file in files if is_demonstration(file.case)]
    if 0 < len(demonstration) < len(files):
        names = listing(file.name for file in demonstration)
        problem = f"{names}: the demonstration set lies beside other label maps"
        raise GroundTruthError(problem)
    for case, same in _by_case(files):
        if len(same) > 1:
            names = listing(file.name for file in same)
            problem = f"{names}: {len(same)} files for case {safe(case)}"
            raise GroundTruthError(problem)
    problems = [file.problem for file in files if file.problem]
    if problems:
        raise GroundTruthError(problems[0].finding) from problems[0]
    return files


def is_demonstration(case: str) -> bool:
    """Whether a case belongs to the bundled demonstration set."""
    return re.fullmatch(r"demo_\d{3}", case) is not None


def match_cases(
    folder: Folder,
    references: Sequence[LabelMapFile],
    organs: Mapping[str, int] | None = None,
) -> Matching:
    """Pair predictions with references by the names of their cases.

    A case is the file name without its extension, wherever the file lies. A file
    whose name nearly is that of a missing case is reported as misnamed, and that case
    is not reported as missing too. Nor is one whose `organs`, here with their labels,
    have files of their own. A file that has the name of a missing case and lacks its
    extension is misnamed as well.
    """
    expected = {reference.case: reference for reference in references}
    file_names = {case: PurePath(file.name).name for case, file in expected.items()}
    example = file_names[references[0].case]
    strays = _strays(folder, expected)
    if not strays and all(file.is_foreign for file in folder.files):
        problem = _nothing_to_score(folder, example)
        return Matching(pairs=(), problems=(problem,))

    files, organ_problem = _without_organs(folder.files, organs or {}, expected)
    submitted = _submitted(files, expected)
    organ_cases = set(organ_problem[1]) if organ_problem else set()
    missing = [
        case
        for case in expected
        if case not in submitted and case not in organ_cases and case not in strays
    ]
    unexpected = [case for case in submitted if case not in expected]
    renames = _nearest_cases(unexpected, missing)
    duplicates = [
        (case, tuple(file.name for file in same))
        for case, same in submitted.items()
        if len(same) > 1 and case in expected
    ]
    others = [case for case in unexpected if case not in renames]
    missing = [case for case in missing if case not in renames.values()]
    is_off_by_one = not renames and not strays and _is_off_by_one(others, missing)
    if is_off_by_one:
        renames, others, missing = {others[0]: missing[0]}, [], []
    names = [file.name for case in others for file in submitted[case]]
    is_only_file = not strays and len(submitted) == len(names) == 1 < len(expected)

    problems: list[SubmissionError] = []
    if organ_problem:
        problems.append(organ_problem[0])
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    if renames or strays:
        pairs = [
            (file.name, file_names[case])
            for name, case in renames.items()
            for file in submitted[name]
        ]
        pairs += [(name, file_names[case]) for case, name in strays.items()]
        problems.append(MisnamedCasesError(pairs, is_off_by_one))
    if names:
        cases = len(expected) if is_only_file else 0
        problems.append(UnexpectedCasesError(names, example, cases))
    if missing and not is_only_file:
        absent = [file_names[case] for case in missing]
        archives = [file.name for file in folder.files if file.is_archive]
        problems.append(
            MissingCasesError(absent, len(expected), archives, folder.is_algorithm)
        )
    alone = [
        (case, same[0])
        for case, same in sorted(submitted.items())
        if case in expected and len(same) == 1
    ]
    problems += [file.problem for _, file in alone if file.problem]
    return Matching(
        pairs=tuple(
            CasePair(case=case, reference=expected[case], prediction=file)
            for case, file in alone
            if not file.problem
        ),
        problems=tuple(problems),
    )


def match_alone(folder: Folder, organs: Mapping[str, int] | None = None) -> Matching:
    """Take every label map for one of a case; there is nothing to compare it with.

    In each pair, the prediction stands for the reference as well.
    """
    if all(file.is_foreign for file in folder.files):
        problem = _nothing_to_score(folder, EXAMPLE)
        return Matching(pairs=(), problems=(problem,))
    files, organ_problem = _without_organs(folder.files, organs or {}, None)
    submitted = _submitted(files, ())
    alone = {case: same[0] for case, same in submitted.items() if len(same) == 1}
    problems: list[SubmissionError] = [organ_problem[0]] if organ_problem else []
    problems += [file.problem for file in alone.values() if file.problem]
    duplicates = [
        (case, tuple(file.name for file in same))
        for case, same in submitted.items()
        if len(same) > 1
    ]
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    return Matching(
        pairs=tuple(
            CasePair(case=case, reference=file, prediction=file)
            for case, file in sorted(alone.items())
            if not file.problem
        ),
        problems=tuple(problems),
    )


def _without_organs(
    files: Sequence[LabelMapFile],
    organs: Mapping[str, int],
    expected: Mapping[str, LabelMapFile] | None,
) -> tuple[Sequence[LabelMapFile], tuple[OrganFilesError, tuple[str, ...]] | None]:
    """The files that are not of one organ alone; and what is wrong with the others.

    With it come the cases that they are of.
    """
    cases = None if expected is None else expected.keys()
    found = find_organ_files([file.name for file in files], organs, cases)
    if not found:
        return files, None
    first = next(iter(found.values()))
    example = PurePath(expected[first].name).name if expected else f"{first}.nii.gz"
    left = [file for file in files if file.name not in found]
    problem = OrganFilesError(tuple(found), example, tuple(organs.items()))
    return left, (problem, tuple(found.values()))


def _strays(folder: Folder, expected: Container[str]) -> dict[str, str]:
    """For cases without any image: a file with the name of the case, not its extension.

    Such files are ignored where the case has an image: beside it, they are notes.
    """
    has_image = {file.case for file in folder.files if not file.is_foreign}
    strays: dict[str, str] = {}
    for name in folder.ignored:
        path = Path(name)
        stem = unicodedata.normalize("NFC", _CASE_ALONE.sub("", path.name))
        if stem in expected and stem not in has_image and not _is_ignored(path):
            strays.setdefault(stem, name)
    return strays


def _nothing_to_score(folder: Folder, example: str) -> NothingToScoreError:
    """Say what a folder without any image holds instead."""
    for file in folder.files:
        if file.problem:
            names = [file.name for file in folder.files]
            return NothingToScoreError(names, example, file.problem.problem)
    return NothingToScoreError(folder.ignored, example)


def _submitted(
    files: Sequence[LabelMapFile], expected: Container[str]
) -> dict[str, tuple[LabelMapFile, ...]]:
    """The files of each case: those that can be read, or else one that explains itself.

    An archive, an array or a table counts only in the place of a case.
    """
    submitted = {}
    for case, same in _by_case(files):
        readable = tuple(file for file in same if not file.problem)
        images = tuple(file for file in same if not file.is_foreign)
        if images or case in expected:
            submitted[case] = readable or images[:1] or same[:1]
    return submitted


def _is_off_by_one(unexpected: Sequence[str], missing: Sequence[str]) -> bool:
    """Whether one name lies before the first case of a series, or behind the last.

    As when files are numbered from 0 and cases from 1: all names but one are right, and
    every file is the wrong one.
    """
    if len(unexpected) != 1 or len(missing) != 1:
        return False
    first, second = (
        re.split(r"(\d+)", _plain(name)) for name in (*unexpected, *missing)
    )
    numbers = list(zip(first[1::2], second[1::2], strict=False))
    return first[::2] == second[::2] and sum(a != b for a, b in numbers) == 1


def _walk(folder: Path, *, follow_links: bool) -> Iterator[Path]:
    """Everything below a folder that is not a folder to go into, in a fixed order.

    Raises
    ------
    FolderError
        If there is no end of them.
    InputError
        If a folder cannot be read.
    """
    waiting, entries = [(folder, 0)], 0
    while waiting:
        current, depth = waiting.pop()
        try:
            with os.scandir(current) as found:
                here = sorted(islice(found, MOST_ENTRIES), key=lambda entry: entry.name)
        except OSError as error:
            reason = why(error)
            problem = f"{safe(current)}: the folder cannot be read ({reason})"
            raise InputError(problem) from error
        entries += len(here)
        longest = max((len(os.fsencode(entry.path)) for entry in here), default=0)
        if longest > PATH_BYTES:
            most = f"paths longer than {PATH_BYTES} bytes"
            problem = f"{safe(folder.name)}/: it holds {most}"
            raise FolderError(problem)
        if entries >= MOST_ENTRIES or depth > DEEPEST:
            most = f"{MOST_ENTRIES} files, or folders deeper than {DEEPEST}"
            problem = f"{safe(folder.name)}/: it holds more than {most}"
            raise FolderError(problem)
        folders = [e for e in here if e.is_dir(follow_symlinks=follow_links)]
        inside = {entry.name for entry in folders}
        yield from (current / entry.name for entry in here if entry.name not in inside)
        waiting += [(current / entry.name, depth + 1) for entry in reversed(folders)]


def _is_ignored(relative: Path) -> bool:
    """Whether somebody else than the participant put this file there."""
    return (
        any(part.startswith(".") or part in IGNORED_FOLDERS for part in relative.parts)
        or relative.name.lower() in IGNORED_NAMES
    )


def _label_map_file(
    path: Path, relative: Path, *, follow_links: bool
) -> LabelMapFile | None:
    """A file that is or should be a label map; None for all other files."""
    name, problem, is_foreign, is_archive = relative.as_posix(), None, False, False
    case = case_name(path)
    if case is None:
        known = OTHER_SUFFIXES | FOREIGN_SUFFIXES
        ends = [suffix for suffix in known if path.name.lower().endswith(suffix)]
        if not ends:
            return None
        suffix = max(ends, key=len)
        case = path.name[: -len(suffix)]
        problem = FileFormatError(name, *known[suffix])
        is_foreign = suffix in FOREIGN_SUFFIXES
        is_archive = suffix in ARCHIVE_SUFFIXES
    elif not path.is_file() or (path.is_symlink() and not follow_links):
        remedy = "Put the file itself there."
        problem = FileFormatError(name, "it is a link or no regular file", remedy)
    return LabelMapFile(
        case=unicodedata.normalize("NFC", case),  # a Mac takes letters apart
        path=path,
        name=name,
        problem=problem,
        is_archive=is_archive,
        is_foreign=is_foreign,
    )


def _by_case(
    files: Iterable[LabelMapFile],
) -> Iterator[tuple[str, tuple[LabelMapFile, ...]]]:
    """The files of each case, in the order of the cases' names."""
    cases: defaultdict[str, list[LabelMapFile]] = defaultdict(list)
    for file in files:
        cases[file.case].append(file)
    return ((case, tuple(cases[case])) for case in sorted(cases))


def _nearest_cases(unexpected: Sequence[str], missing: Sequence[str]) -> dict[str, str]:
    """For names that no case has, the missing case that was probably meant.

    Equal but for letter case, punctuation, leading zeros and the marks of a copy comes
    first; then names that are contained in one another, or hardly differ. The numbers
    in them must be the same: a number is what tells cases apart, so another number is
    another case. No case is given to two names.
    """
    found: dict[str, str] = {}
    plain = {_plain(case): case for case in reversed(missing)}
    for name in unexpected:
        case = plain.pop(_plain(name), None)
        if case is not None:
            found[name] = case

    left = [case for case in missing if case not in found.values()]
    for name in [name for name in unexpected if name not in found][:COMPARED_NAMES]:
        likeness = {case: _likeness(name, case) for case in left[:COMPARED_NAMES]}
        case = max(likeness, key=lambda case: likeness[case], default=name)
        if likeness.get(case, 0) >= SIMILARITY:
            found[name] = case
            left.remove(case)
    return found


def _plain(name: str) -> str:
    """A name without what people tend to change in it."""
    name = name.casefold()
    while (shorter := _COPY.sub("", name)) not in ("", name):
        name = shorter
    words = re.sub(r"[\W_]+", "_", name)
    return re.sub(r"\d+", lambda digits: str(int(digits[0])), words)


def _likeness(name: str, case: str) -> float:
    """How alike two names are, from 0 to 1; 0 if their numbers differ."""
    plain, other = _plain(name), _plain(case)
    if re.findall(r"\d+", plain) != re.findall(r"\d+", other):
        return 0.0
    if plain in other or other in plain:
        return 1.0
    return difflib.SequenceMatcher(None, plain, other, autojunk=False).ratio()
