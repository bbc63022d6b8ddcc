"""Pairs each prediction with its reference, by the names of their cases."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from flare.challenge.formats import ALL_SUFFIXES, suffix_of
from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError
from flare.evaluation.errors import (
    DuplicateCasesError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import OF_PLATFORMS, Folder, LabelMapFile

EXAMPLE = "validation_001"
"""The name of a case in messages, where no name is known."""

Reason = tuple[str, tuple[str, ...]]
"""Why a case cannot be scored, in the same words for all cases with this fault; and the
files that are meant."""


UNOPENED = "no file was submitted but an archive, which is not opened"
"""Why a case cannot be scored that may be in an archive."""


_FilesByCase = Mapping[str, tuple[LabelMapFile, ...]]
"""The files of each case: one, or several that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePair:
    """The two label maps of one case."""

    case: str
    reference: LabelMapFile
    prediction: LabelMapFile
    voxels: int = 0
    """Voxels of each label map; known when the headers have been looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """A submission, paired with the references as far as possible."""

    pairs: tuple[CasePair, ...] = ()
    """In the order of the cases' names."""
    problems: tuple[SubmissionError, ...] = ()
    warnings: tuple[str, ...] = ()
    """Differences of grids that the challenge lets pass."""
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    """Why files cannot be used, by case; where there are archives, each case has a
    reason, as it may be in them."""
    misnamed: Mapping[str, str] = field(default_factory=dict)
    """Names of files that no case has, with the case that each probably means."""


def match_cases(
    folder: Folder, references: Sequence[LabelMapFile] | None, challenge: Challenge
) -> Matching:
    """Pair predictions with references by the names of their cases.

    A file whose name nearly is that of a missing case is reported as misnamed, and that
    case is not reported as missing too. A file that has the name of a missing case and
    lacks its extension is misnamed as well.

    Without any references, every label map is taken for one of a case, and stands in
    its pair for the reference as well.
    """
    references_by_case = {file.case: file for file in references or ()}
    names = {case: file.prediction_name for case, file in references_by_case.items()}
    example = next(iter(names.values()), challenge.names.prediction_of(EXAMPLE))
    strays = _strays(folder, names)
    reasons: dict[str, Reason] = {}
    if folder.archives:
        reasons = dict.fromkeys(names, (UNOPENED, folder.archives))
    if not strays and all(file.is_foreign for file in folder.files):
        return Matching(problems=(_nothing_to_score(folder, example),), reasons=reasons)

    submitted = _submitted(folder.files, names)
    expected = submitted if references is None else names
    files_by_case = {case: submitted[case] for case in submitted if case in expected}
    mismatch = _compare_names(expected, submitted, strays)
    paired = _paired(files_by_case, references_by_case)
    nameless: dict[str, Reason] = {}
    for file_name, case in mismatch.misnamed.items():
        nameless[case] = "no case has this name", (file_name,)
    return replace(
        paired,
        problems=(*paired.problems, *_name_problems(mismatch, names, folder)),
        reasons={**reasons, **paired.reasons, **nameless},
        misnamed=mismatch.misnamed,
    )


def _paired(
    files_by_case: _FilesByCase, references_by_case: Mapping[str, LabelMapFile]
) -> Matching:
    """Pair each case's file with its reference, if it is the only one and can be read.

    Of several files, each can be read.
    """
    pairs, duplicates = [], []
    problems: list[SubmissionError] = []
    reasons: dict[str, Reason] = {}
    for case, files in files_by_case.items():
        if len(files) > 1:
            duplicates.append((case, _names(files)))
            reasons[case] = f"{len(files)} files for one case", _names(files)
        elif files[0].problem:
            problems.append(files[0].problem)
            reasons[case] = files[0].problem.problem, _names(files)
        else:
            reference = references_by_case.get(case, files[0])
            pairs.append(CasePair(case=case, reference=reference, prediction=files[0]))
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    return Matching(pairs=tuple(pairs), problems=tuple(problems), reasons=reasons)


def _nothing_to_score(folder: Folder, example: str) -> NothingToScoreError:
    """The refusal of a submission that has no image, by what it has instead."""
    ignored = tuple(name for name in folder.ignored if name not in OF_PLATFORMS)
    names = _names(folder.files) or ignored
    problems = [file.problem.problem for file in folder.files if file.problem]
    return NothingToScoreError(names, example, problems[0] if problems else "")


def _names(files: Sequence[LabelMapFile]) -> tuple[str, ...]:
    return tuple(file.name for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mismatch:
    """Names of files that no case has, and cases that have no file."""

    misnamed: Mapping[str, str]
    """Names of files, with the case that was probably meant by each."""
    unexpected: Sequence[str]
    """Names of files that belong to no case."""
    missing: Sequence[str]
    """Cases without a file."""


def _compare_names(
    expected: Collection[str], submitted: _FilesByCase, strays: Mapping[str, str]
) -> _Mismatch:
    """Look for files without a case, and for cases without a file."""
    submitted_cases = {*submitted, *strays.values()}
    missing = [case for case in expected if case not in submitted_cases]
    strangers = [case for case in submitted if case not in expected]
    nearest = nearest_cases(strangers, missing)

    misnamed: dict[str, str] = {}
    for stranger, case in nearest.items():
        misnamed |= dict.fromkeys(_names(submitted[stranger]), case)
    misnamed |= strays

    unexpected: list[str] = []
    for stranger in strangers:
        if stranger not in nearest:
            unexpected += _names(submitted[stranger])
    return _Mismatch(
        misnamed=misnamed,
        unexpected=unexpected,
        missing=[case for case in missing if case not in nearest.values()],
    )


def _renamed(file: str, expected: str) -> str:
    """The name that a file should have, with its own suffix."""
    suffix = suffix_of(expected, ALL_SUFFIXES)
    return expected.removesuffix(suffix) + (suffix_of(file) or suffix)


def _name_problems(
    mismatch: _Mismatch, names: Mapping[str, str], folder: Folder
) -> Iterator[SubmissionError]:
    """An error for each kind of mismatch; `names` are those of predictions, by case."""
    if mismatch.misnamed:
        renames = mismatch.misnamed.items()
        yield MisnamedCasesError([(f, _renamed(f, names[case])) for f, case in renames])
    if mismatch.unexpected:
        yield UnexpectedCasesError(mismatch.unexpected, next(iter(names.values())))
    if mismatch.missing:
        missing = [names[case] for case in mismatch.missing]
        yield MissingCasesError(
            missing, len(names), folder.archives, folder.is_algorithm
        )


def _strays(folder: Folder, expected: Container[str]) -> dict[str, str]:
    """Files with the name of a case, but not its extension: at most one for each case.

    They are ignored where the case has an image: beside it, they are notes.
    """
    cases_with_file = {file.case for file in folder.files if not file.is_foreign}
    strays: dict[str, str] = {}
    for name, case in folder.ignored.items():
        if case in expected and case not in cases_with_file:
            strays[name] = case
            cases_with_file.add(case)
    return strays


def _submitted(files: Sequence[LabelMapFile], expected: Container[str]) -> _FilesByCase:
    """The files of each case: those that can be read, or else one that explains itself.

    An archive, an array or a table counts only in the place of a case.
    """
    submitted = {}
    for case, group in groupby(files, key=lambda file: file.case):
        case_files = tuple(group)
        readable = tuple(file for file in case_files if not file.problem)
        images = tuple(file for file in case_files if not file.is_foreign)
        if images or case in expected:
            submitted[case] = readable or images[:1] or case_files[:1]
    return submitted


# --- The case that was meant by a name that no case has ----------------------------

SIMILARITY = 0.85
"""How alike names must be, by difflib's ratio, for one to be a slip of the other."""

_COPY = re.compile(
    r"[ _-]*(\(\d+\)|copy|(?<=_0000)_seg|_0000|\.seg|\.nii( ?\(\d+\))?)$"
)
"""What people and their programs add to a name: " (1)", " - Copy", "_0000", which MONAI
makes "_0000_seg" of, and 3D Slicer's ".seg"."""

COMPARED_NAMES = 100
"""At most this many names are compared one by one: the time grows with their square."""


def nearest_cases(unexpected: Sequence[str], missing: Sequence[str]) -> dict[str, str]:
    """The missing case that was probably meant by each name that no case has.

    Equal but for letter case, punctuation, leading zeros and the marks of a copy comes
    first; then names that are contained in one another, or hardly differ. The numbers
    in them must be the same: a number is what tells cases apart, so another number is
    another case. Of two names that are near to one case, neither is: each may be of one
    organ alone, as ``CASE_liver``.
    """
    cases = {_plain(case): case for case in reversed(missing)}
    nearest: dict[str, str] = {}
    for name in unexpected:
        case = cases.pop(_plain(name), None)
        if case is not None:
            nearest[name] = case
    unequal = [name for name in unexpected if name not in nearest]
    return nearest | _similar_cases(unequal[:COMPARED_NAMES], cases)


def _similar_cases(names: Sequence[str], cases: dict[str, str]) -> dict[str, str]:
    """The case that each name is similar to, if no other name is similar to it.

    `cases` has the missing cases by their plain names, the last one first.
    """
    plain_cases = list(reversed(cases))[:COMPARED_NAMES]
    names_by_case: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        plain_case = _most_similar(_plain(name), plain_cases)
        if plain_case is not None:
            names_by_case[cases[plain_case]].append(name)
    similar = {}
    for case, similar_names in names_by_case.items():
        if len(similar_names) == 1:
            similar[similar_names[0]] = case
    return similar


def _most_similar(name: str, cases: Sequence[str]) -> str | None:
    """The case that contains a name, is contained in it, or hardly differs from it."""
    import difflib  # not at the top: a run whose names are right starts sooner

    numbers = _numbers(name)
    cases = [case for case in cases if _numbers(case) == numbers]
    for case in cases:
        if name in case or case in name:
            return case
    close_cases = difflib.get_close_matches(name, cases, n=1, cutoff=SIMILARITY)
    return close_cases[0] if close_cases else None


def _plain(name: str) -> str:
    """A name without what people tend to change in it."""
    name = name.casefold()
    while (shorter := _COPY.sub("", name)) not in ("", name):
        name = shorter
    words = re.sub(r"[\W_]+", "_", name)
    return re.sub(r"\d+", lambda digits: str(int(digits[0])), words)


def _numbers(plain: str) -> list[str]:
    return re.findall(r"\d+", plain)
