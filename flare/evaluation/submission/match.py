"""Pairs each prediction with its reference, by the names of their cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import PurePosixPath

from flare.challenge.formats import CHANNEL
from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError
from flare.evaluation.errors import (
    DuplicateCasesError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    OrganFilesError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import ARCHIVE_SUFFIXES, Folder, LabelMapFile

EXAMPLE = "validation_001"
"""What a case may be called, where none is known."""

Reason = tuple[str, tuple[str, ...]]
"""Why a case cannot be scored, in equal words for all cases of which the same is wrong;
and the files that are meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePair:
    """The two label maps of one case."""

    case: str
    reference: LabelMapFile
    prediction: LabelMapFile
    voxels: int = 0
    """Of each; known when the headers have been looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """A submission, paired with the references as far as possible."""

    pairs: tuple[CasePair, ...]
    """In the order of the cases' names."""
    problems: tuple[SubmissionError, ...]
    warnings: tuple[str, ...] = ()
    """Differences of grids that the challenge lets pass."""
    reasons: Mapping[str, Reason] = field(default_factory=dict)
    """By case, as far as files were submitted that cannot be used."""


def match_cases(
    folder: Folder, references: Sequence[LabelMapFile] | None, challenge: Challenge
) -> Matching:
    """Pair predictions with references by the names of their cases.

    A file whose name nearly is that of a missing case is reported as misnamed, and that
    case is not reported as missing too. Nor is one whose organs have files of their
    own. A file that has the name of a missing case and lacks its extension is misnamed
    as well.

    Without any references, every label map is taken for one of a case, and stands in
    its pair for the reference as well.
    """
    known = {file.case: file for file in references or ()}
    asked = {case: file.asked for case, file in known.items()}
    example = next(iter(asked.values()), challenge.names.prediction_of(EXAMPLE))
    strays = _strays(folder, known)
    if not strays and all(file.is_foreign for file in folder.files):
        what = next((file.problem.problem for file in folder.files if file.problem), "")
        names = [file.name for file in folder.files] or [*folder.ignored]
        problem = NothingToScoreError(names, example, what)
        return Matching(pairs=(), problems=(problem,))

    problems: list[SubmissionError] = []
    reasons: dict[str, Reason] = {}
    organs, names = challenge.labels_by_name, []
    of_organs = find_organ_files(
        folder.files, organs, None if references is None else known
    )
    if of_organs:
        first = next(iter(of_organs))
        example = asked.get(first, example.replace(EXAMPLE, first))
        names = [name for own in of_organs.values() for name in own]
        problems.append(OrganFilesError(names, example, organs))
        for case, own in of_organs.items():
            reasons[case] = "each file holds one organ alone", tuple(own)
    merged = {*names}
    left = [file for file in folder.files if file.name not in merged]
    submitted = _submitted(left, known)
    expected = submitted if references is None else known
    pairs, broken = [], []
    duplicates: list[tuple[str, tuple[str, ...]]] = []
    for case, (file, *more) in submitted.items():
        if case not in expected:
            continue
        if more:
            own_names = tuple(each.name for each in (file, *more))
            duplicates.append((case, own_names))
            reasons[case] = f"{len(own_names)} files for one case", own_names
        elif file.problem:
            broken.append(file.problem)
            reasons[case] = file.problem.problem, (file.name,)
        else:
            reference = known.get(case, file)
            pairs.append(CasePair(case=case, reference=reference, prediction=file))
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    if references is not None:
        there = {*submitted, *strays, *of_organs}
        absent = [case for case in asked if case not in there]
        problems += _name_problems(folder, asked, submitted, strays, absent, reasons)
    return Matching(pairs=tuple(pairs), problems=(*problems, *broken), reasons=reasons)


def _name_problems(
    folder: Folder,
    asked: Mapping[str, str],
    submitted: Mapping[str, Sequence[LabelMapFile]],
    strays: Mapping[str, str],
    missing: Sequence[str],
    reasons: dict[str, Reason],
) -> Iterator[SubmissionError]:
    """Names that no case has, and cases without a file; adds to the reasons."""
    unexpected = [case for case in submitted if case not in asked]
    renames = nearest_cases(unexpected, missing)
    others = [case for case in unexpected if case not in renames]
    missing = [case for case in missing if case not in renames.values()]
    is_shifted = not renames and not strays and is_off_by_one(others, missing)
    if is_shifted:
        renames, others, missing = {others[0]: missing[0]}, [], []
    files = [file.name for case in others for file in submitted[case]]
    is_only_file = not strays and len(submitted) == len(files) == 1 < len(asked)

    wrong = [(f.name, case) for name, case in renames.items() for f in submitted[name]]
    wrong += [(name, case) for case, name in strays.items()]
    if wrong:
        yield MisnamedCasesError(
            [(name, asked[case]) for name, case in wrong], is_shifted
        )
    for name, case in wrong:
        reasons[case] = "no case has this name", (name,)
    if files:
        cases = len(asked) if is_only_file else 0
        yield UnexpectedCasesError(files, next(iter(asked.values())), cases)
    if missing and not is_only_file:
        archives = [
            file.name
            for file in folder.files
            if file.name.lower().endswith(ARCHIVE_SUFFIXES)
        ]
        absent = [asked[case] for case in missing]
        yield MissingCasesError(absent, len(asked), archives, folder.is_algorithm)


def _strays(folder: Folder, expected: Container[str]) -> dict[str, str]:
    """For cases without any image: a file with the name of the case, not its extension.

    Such files are ignored where the case has an image: beside it, they are notes.
    """
    has_image = {file.case for file in folder.files if not file.is_foreign}
    strays: dict[str, str] = {}
    for name, case in folder.ignored.items():
        if case in expected and case not in has_image:
            strays.setdefault(case, name)
    return strays


def _submitted(
    files: Sequence[LabelMapFile], expected: Container[str]
) -> dict[str, tuple[LabelMapFile, ...]]:
    """The files of each case: those that can be read, or else one that explains itself.

    An archive, an array or a table counts only in the place of a case.
    """
    submitted = {}
    for case, group in groupby(files, key=lambda file: file.case):
        same = tuple(group)
        readable = tuple(file for file in same if not file.problem)
        images = tuple(file for file in same if not file.is_foreign)
        if images or case in expected:
            submitted[case] = readable or images[:1] or same[:1]
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
    left = {_plain(case): case for case in reversed(missing)}
    for name in unexpected:
        case = left.pop(_plain(name), None)
        if case is not None:
            found[name] = case
    strange = [name for name in unexpected if name not in found][:COMPARED_NAMES]
    if not strange:
        return found
    import difflib  # not at the top: a run whose names are right starts sooner

    compared = list(reversed(left))[:COMPARED_NAMES]
    for name in strange:
        plain = _plain(name)
        same = [other for other in compared if _numbers(other) == _numbers(plain)]
        near = [other for other in same if plain in other or other in plain]
        near += difflib.get_close_matches(plain, same, n=1, cutoff=SIMILARITY)
        if near:
            found[name] = left[near[0]]
            compared.remove(near[0])
    return found


def _plain(name: str) -> str:
    """A name without what people tend to change in it."""
    name = name.casefold()
    while (shorter := _COPY.sub("", name)) not in ("", name):
        name = shorter
    words = re.sub(r"[\W_]+", "_", name)
    return re.sub(r"\d+", lambda digits: str(int(digits[0])), words)


def _numbers(plain: str) -> list[str]:
    """The numbers in a plain name."""
    return re.findall(r"\d+", plain)


# --- Files that hold one organ of a case each ---------------------------------------
#
# TotalSegmentator and others write CASE/liver.nii.gz, people CASE_liver.nii.gz. To such
# a file, "rename it to CASE.nii.gz" would be wrong advice: it would submit one organ.

LEAST_ORGANS = 2
"""Files are taken for organs if they name at least this many different ones: a single
word may be part of a name."""

_SIDES = {"left", "right"}


def find_organ_files(
    files: Sequence[LabelMapFile],
    organs: Collection[str],
    cases: Collection[str] | None,
) -> dict[str, list[str]]:
    """The files that hold one organ of a case, with that case.

    Parameters
    ----------
    files : sequence of LabelMapFile
        All that were submitted.
    organs : collection of str
        The organs of the challenge.
    cases : collection of str, optional
        The cases that there are; None if that is not known.

    Returns
    -------
    dict of str to list of str
        Their names, by case; empty if there are files of fewer than two organs.
    """
    found: dict[str, list[str]] = {}
    seen = set()
    for file in files:
        # The name of a case may end in an organ's: only its folder is looked at.
        ways = 1 if file.case in (cases or ()) else None
        for case, organ in islice(_split(file, organs), ways):
            if case and organ and (cases is None or case in cases):
                found.setdefault(case, []).append(file.name)
                seen.add(organ)
                break
    return found if len(seen) >= LEAST_ORGANS else {}


def _split(file: LabelMapFile, organs: Collection[str]) -> Iterator[tuple[str, str]]:
    """What may be case and organ of a file, by its name; the organ is empty if none."""
    folders = [p for p in PurePosixPath(file.name).parts[:-1] if p != "segmentations"]
    parent, stem = folders[-1] if folders else "", file.case
    yield stem, _organ(parent, organs)  # liver/CASE.nii.gz
    yield parent.removesuffix(CHANNEL), _organ(stem, organs)  # CASE/liver.nii.gz
    for cut in re.finditer(r"[\W_]+", stem):  # CASE_liver.nii.gz, the longest word
        case = stem[: cut.start()].removesuffix(CHANNEL)
        yield case, _organ(stem[cut.end() :], organs)


def _organ(text: str, organs: Collection[str]) -> str:
    """The organ that is named in whatever order, perhaps with its side."""
    words = {*re.split(r"[\W_]+", text.casefold())}
    return next((o for o in organs if words - _SIDES <= {*o.split("_")} <= words), "")
