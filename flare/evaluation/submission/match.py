"""Pairs each prediction with its reference, by the names of their cases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from flare.common.errors import SubmissionError
from flare.evaluation.errors import (
    DuplicateCasesError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    OrganFilesError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import (
    Folder,
    LabelMapFile,
    by_case,
    is_ignored,
)
from flare.evaluation.submission.organ_files import find_organ_files

EXAMPLE = "validation_001.nii.gz"
"""What the file of a case may be called, where no case is known."""

_CASE_ALONE = re.compile(r"(\.nii)?( ?\(\d+\))?(\.gz)?( ?\(\d+\))?$", re.IGNORECASE)
"""What may be behind the name of a case whose file has lost its extension, or part of
it: browsers write "CASE.nii (1).gz", and gunzip and Windows hide what they take off."""


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
    strays = _strays(folder, expected)
    if not strays and all(file.is_foreign for file in folder.files):
        example = PurePath(references[0].name).name
        problem = _nothing_to_score(folder, example)
        return Matching(pairs=(), problems=(problem,))

    files, organ_problem = _without_organs(folder.files, organs or {}, expected)
    submitted = _submitted(files, expected)
    problems: list[SubmissionError] = []
    explained = set(strays)
    if organ_problem:
        problems.append(organ_problem[0])
        explained |= set(organ_problem[1])
    duplicates = [
        (case, tuple(file.name for file in same))
        for case, same in submitted.items()
        if len(same) > 1 and case in expected
    ]
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    problems += _name_problems(folder, expected, submitted, strays, explained)
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


def _name_problems(
    folder: Folder,
    expected: Mapping[str, LabelMapFile],
    submitted: Mapping[str, Sequence[LabelMapFile]],
    strays: Mapping[str, str],
    explained: Container[str],
) -> Iterator[SubmissionError]:
    """Names that no case has, and cases without a file that are not `explained`."""
    file_names = {case: PurePath(file.name).name for case, file in expected.items()}
    missing = [
        case for case in expected if case not in submitted and case not in explained
    ]
    unexpected = [case for case in submitted if case not in expected]
    renames = nearest_cases(unexpected, missing)
    others = [case for case in unexpected if case not in renames]
    missing = [case for case in missing if case not in renames.values()]
    are_shifted = not renames and not strays and is_off_by_one(others, missing)
    if are_shifted:
        renames, others, missing = {others[0]: missing[0]}, [], []
    names = [file.name for case in others for file in submitted[case]]
    is_only_file = not strays and len(submitted) == len(names) == 1 < len(expected)

    if renames or strays:
        pairs = [
            (file.name, file_names[case])
            for name, case in renames.items()
            for file in submitted[name]
        ]
        pairs += [(name, file_names[case]) for case, name in strays.items()]
        yield MisnamedCasesError(pairs, are_shifted)
    if names:
        cases = len(expected) if is_only_file else 0
        yield UnexpectedCasesError(names, next(iter(file_names.values())), cases)
    if missing and not is_only_file:
        absent = [file_names[case] for case in missing]
        archives = [file.name for file in folder.files if file.is_archive]
        yield MissingCasesError(absent, len(expected), archives, folder.is_algorithm)


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
    """The files that hold more than one organ each, and what is wrong with the others.

    With it come the cases that they are of.
    """
    cases = None if expected is None else expected.keys()
    found = find_organ_files([file.name for file in files], organs, cases)
    if not found:
        return files, None
    first = next(iter(found.values()))
    example = PurePath(expected[first].name).name if expected else f"{first}.nii.gz"
    left = [file for file in files if file.name not in found]
    of_cases = tuple(found.values())
    problem = OrganFilesError(tuple(found), example, tuple(organs.items()), of_cases)
    return left, (problem, of_cases)


def _strays(folder: Folder, expected: Container[str]) -> dict[str, str]:
    """For cases without any image: a file with the name of the case, not its extension.

    Such files are ignored where the case has an image: beside it, they are notes.
    """
    has_image = {file.case for file in folder.files if not file.is_foreign}
    strays: dict[str, str] = {}
    for name in folder.ignored:
        path = Path(name)
        stem = unicodedata.normalize("NFC", _CASE_ALONE.sub("", path.name))
        if stem in expected and stem not in has_image and not is_ignored(path):
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
    for case, same in by_case(files):
        readable = tuple(file for file in same if not file.problem)
        images = tuple(file for file in same if not file.is_foreign)
        if images or case in expected:
            submitted[case] = readable or images[:1] or same[:1]
    return submitted


SIMILARITY = 0.85
"""How alike names must be, by difflib's ratio, for one to be a slip of the other."""

_COPY = re.compile(
    r"[ _-]*(\(\d+\)|copy|(?<=_0000)_seg|_0000|\.seg|\.nii( ?\(\d+\))?)$"
)
"""What people and their programs add to a name: " (1)", " - Copy", "_0000", which MONAI
makes "_0000_seg" of, and 3D Slicer's ".seg"."""

COMPARED_NAMES = 100
"""Only so many names are compared one by one: the time grows with their square."""


def is_off_by_one(unexpected: Sequence[str], missing: Sequence[str]) -> bool:
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


def nearest_cases(unexpected: Sequence[str], missing: Sequence[str]) -> dict[str, str]:
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
    import difflib  # not at the top: a run whose names are right starts sooner

    return difflib.SequenceMatcher(None, plain, other, autojunk=False).ratio()
