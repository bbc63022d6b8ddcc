"""Pairs each prediction with its reference, by the names of their cases."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from flare.challenge.rules import Challenge
from flare.common.errors import SubmissionError
from flare.evaluation.errors import (
    DuplicateCasesError,
    MisnamedCasesError,
    MissingCasesError,
    NothingToScoreError,
    UnexpectedCasesError,
)
from flare.evaluation.submission.find import Folder, LabelMapFile

EXAMPLE = "validation_001"
"""What a case may be called, where none is known."""

Reason = tuple[str, tuple[str, ...]]
"""Why a case cannot be scored, in equal words for all cases of which the same is wrong;
and the files that are meant."""


UNOPENED = "no file was submitted but an archive, which is not opened"
"""Why a case cannot be scored that may be in an archive."""


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
    """By case, as far as files were submitted that cannot be used; where there are
    archives, every case may be in them."""


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
    known = {file.case: file for file in references or ()}
    asked = {case: file.asked for case, file in known.items()}
    example = next(iter(asked.values()), challenge.names.prediction_of(EXAMPLE))
    strays = _strays(folder, known)
    archives = folder.archives
    reasons: dict[str, Reason] = dict.fromkeys(
        asked if archives else (), (UNOPENED, archives)
    )
    if not strays and all(file.is_foreign for file in folder.files):
        what = next((file.problem.problem for file in folder.files if file.problem), "")
        names = [file.name for file in folder.files] or [*folder.ignored]
        problem = NothingToScoreError(names, example, what)
        return Matching(pairs=(), problems=(problem,), reasons=reasons)

    problems: list[SubmissionError] = []
    submitted = _submitted(folder.files, known)
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
        absent = [case for case in asked if case not in {*submitted, *strays}]
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
    files = [file.name for case in others for file in submitted[case]]
    wrong = [(f.name, case) for name, case in renames.items() for f in submitted[name]]
    wrong += [(name, case) for case, name in strays.items()]
    if wrong:
        yield MisnamedCasesError([(name, asked[case]) for name, case in wrong])
    for name, case in wrong:
        reasons[case] = "no case has this name", (name,)
    if files:
        yield UnexpectedCasesError(files, next(iter(asked.values())))
    if missing:
        absent = [asked[case] for case in missing]
        yield MissingCasesError(
            absent, len(asked), folder.archives, folder.is_algorithm
        )


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


def nearest_cases(unexpected: Sequence[str], missing: Sequence[str]) -> dict[str, str]:
    """For names that no case has, the missing case that was probably meant.

    Equal but for letter case, punctuation, leading zeros and the marks of a copy comes
    first; then names that are contained in one another, or hardly differ. The numbers
    in them must be the same: a number is what tells cases apart, so another number is
    another case. Of two names that are near to one case, neither is: each may be of one
    organ alone, as ``CASE_liver``.
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
    meant: defaultdict[str, list[str]] = defaultdict(list)
    for name in strange:
        plain = _plain(name)
        same = [other for other in compared if _numbers(other) == _numbers(plain)]
        near = [other for other in same if plain in other or other in plain]
        near += difflib.get_close_matches(plain, same, n=1, cutoff=SIMILARITY)
        if near:
            meant[left[near[0]]].append(name)
    return found | {names[0]: case for case, names in meant.items() if len(names) == 1}


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
