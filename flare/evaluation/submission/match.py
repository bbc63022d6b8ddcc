"""Pairs each prediction with its reference, by the names of their cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePath, PurePosixPath

from flare.challenge.formats import (
    ALL_SUFFIXES,
    CHANNEL,
    PLAIN_NAMES,
    SUFFIX,
    SUFFIXES,
    FileNames,
    suffix_of,
)
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
    ARCHIVE_SUFFIXES,
    Folder,
    LabelMapFile,
    is_ignored,
)

EXAMPLE = "validation_001"
"""What a case may be called, where none is known."""

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
    asked: Mapping[str, str]
    """What the file of each reference's case is to be called, by case."""


def match_cases(
    folder: Folder,
    references: Sequence[LabelMapFile] | None,
    organs: Mapping[str, int] | None = None,
    names: FileNames = PLAIN_NAMES,
) -> Matching:
    """Pair predictions with references by the names of their cases.

    What a file is called says its case, wherever it lies; `names` tell how. A file
    whose name nearly is that of a missing case is reported as misnamed, and that case
    is not reported as missing too. Nor is one whose `organs`, here with their labels,
    have files of their own. A file that has the name of a missing case and lacks its
    extension is misnamed as well.

    Without any references, every label map is taken for one of a case, and stands in
    its pair for the reference as well.
    """
    known = {file.case: file for file in references or ()}
    asked = {case: _asked_name(file, names) for case, file in known.items()}
    example = next(iter(asked.values()), names.prediction_of(EXAMPLE))
    strays = _strays(folder, known, names)
    if not strays and all(file.is_foreign for file in folder.files):
        problem = _nothing_to_score(folder, example)
        return Matching(pairs=(), problems=(problem,), asked=asked)

    cases = None if references is None else known.keys()
    of_organs = find_organ_files(
        [file.name for file in folder.files], organs or {}, cases, names
    )
    files = [file for file in folder.files if file.name not in of_organs]
    submitted = _submitted(files, known)
    expected = known if references is not None else submitted
    problems: list[SubmissionError] = []
    if of_organs:
        first = next(iter(of_organs.values()))
        example = asked.get(first, names.prediction_of(first))
        labels, cases_of = tuple((organs or {}).items()), tuple(of_organs.values())
        problems.append(OrganFilesError(tuple(of_organs), example, labels, cases_of))
    duplicates = [
        (case, tuple(file.name for file in same))
        for case, same in submitted.items()
        if len(same) > 1 and case in expected
    ]
    if duplicates:
        problems.append(DuplicateCasesError(duplicates))
    if references is not None:
        explained = {*strays, *of_organs.values()}
        problems += _name_problems(folder, asked, submitted, strays, explained)
    alone = {
        case: same[0]
        for case, same in sorted(submitted.items())
        if case in expected and len(same) == 1
    }
    problems += [file.problem for file in alone.values() if file.problem]
    return Matching(
        pairs=tuple(
            CasePair(case=case, reference=known.get(case, file), prediction=file)
            for case, file in alone.items()
            if not file.problem
        ),
        problems=tuple(problems),
        asked=asked,
    )


def _asked_name(reference: LabelMapFile, names: FileNames) -> str:
    """What the file of a case is to be called; of a secret one, what it is called."""
    name = PurePath(reference.name).name
    if reference.is_hidden or names.prediction == names.reference:
        return name
    suffix = suffix_of(name, ALL_SUFFIXES) or SUFFIX
    return names.prediction_of(reference.case, suffix)


def _name_problems(
    folder: Folder,
    file_names: Mapping[str, str],
    submitted: Mapping[str, Sequence[LabelMapFile]],
    strays: Mapping[str, str],
    explained: Container[str],
) -> Iterator[SubmissionError]:
    """Names that no case has, and cases without a file that are not `explained`."""
    missing = [
        case for case in file_names if case not in submitted and case not in explained
    ]
    unexpected = [case for case in submitted if case not in file_names]
    renames = nearest_cases(unexpected, missing)
    others = [case for case in unexpected if case not in renames]
    missing = [case for case in missing if case not in renames.values()]
    are_shifted = not renames and not strays and is_off_by_one(others, missing)
    if are_shifted:
        renames, others, missing = {others[0]: missing[0]}, [], []
    names = [file.name for case in others for file in submitted[case]]
    is_only_file = not strays and len(submitted) == len(names) == 1 < len(file_names)

    if renames or strays:
        pairs = [
            (file.name, file_names[case])
            for name, case in renames.items()
            for file in submitted[name]
        ]
        pairs += [(name, file_names[case]) for case, name in strays.items()]
        yield MisnamedCasesError(pairs, are_shifted)
    if names:
        cases = len(file_names) if is_only_file else 0
        yield UnexpectedCasesError(names, next(iter(file_names.values())), cases)
    if missing and not is_only_file:
        absent = [file_names[case] for case in missing]
        names = [file.name for file in folder.files]
        archives = [name for name in names if suffix_of(name, ARCHIVE_SUFFIXES)]
        yield MissingCasesError(absent, len(file_names), archives, folder.is_algorithm)


def _strays(
    folder: Folder, expected: Container[str], names: FileNames
) -> dict[str, str]:
    """For cases without any image: a file with the name of the case, not its extension.

    Such files are ignored where the case has an image: beside it, they are notes.
    """
    has_image = {file.case for file in folder.files if not file.is_foreign}
    strays: dict[str, str] = {}
    for name in folder.ignored:
        path = Path(name)
        stem = _CASE_ALONE.sub("", path.name)
        case = names.case_of("prediction", stem, expected)
        if case in expected and case not in has_image and not is_ignored(path):
            strays.setdefault(case, name)
    return strays


def _nothing_to_score(folder: Folder, example: str) -> NothingToScoreError:
    """Say what a folder without any image holds instead."""
    what = next((file.problem.problem for file in folder.files if file.problem), "")
    found = [file.name for file in folder.files] or folder.ignored
    return NothingToScoreError(found, example, what)


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


# --- Files that hold one organ of a case each ---------------------------------------
#
# TotalSegmentator and others write CASE/liver.nii.gz, people CASE_liver.nii.gz. To such
# a file, "rename it to CASE.nii.gz" would be wrong advice: it would submit one organ.

SYNONYMS = {
    "liver": ("hepar",),
    "kidney": ("kidneys", "kidney_left", "kidney_right"),
    "kidney_left": ("left_kidney", "lk", "kidney_l"),
    "kidney_right": ("right_kidney", "rk", "kidney_r"),
    "spleen": ("lien",),
    "pancreas": ("panc",),
    "aorta": (),
    "inferior_vena_cava": ("ivc", "postcava", "vena_cava"),
    "adrenal_gland_left": ("left_adrenal_gland", "lag", "left_adrenal"),
    "adrenal_gland_right": ("right_adrenal_gland", "rag", "right_adrenal"),
    "gallbladder": ("gall_bladder",),
    "esophagus": ("oesophagus",),
    "stomach": (),
    "duodenum": (),
    "lesion": ("tumor", "tumour"),
}
"""What organs are called in files, TotalSegmentator's word first."""

LEAST_ORGANS = 2
"""Files are taken for organs if they name at least this many different ones: a single
word may be part of a name."""

_ENDINGS = re.compile(
    rf"({'|'.join(map(re.escape, ('.seg.nrrd', *SUFFIXES)))})$", re.IGNORECASE
)


def find_organ_files(
    names: Sequence[str],
    organs: Mapping[str, int],
    cases: Collection[str] | None,
    called: FileNames = PLAIN_NAMES,
) -> dict[str, str]:
    """The files that hold one organ of a case, with that case.

    Parameters
    ----------
    names : sequence of str
        Paths of label maps, with forward slashes.
    organs : mapping of str to int
        The organs of the challenge, and their labels.
    cases : collection of str, optional
        The cases that there are; None if that is not known.
    called : FileNames
        What their files are called.

    Returns
    -------
    dict of str to str
        Empty if there are files of fewer than two organs.

    Examples
    --------
    >>> organs = {"liver": 1, "kidney": 2}
    >>> find_organ_files(["a/liver.nii.gz", "a/kidney_left.nii.gz"], organs, ["a"])
    {'a/liver.nii.gz': 'a', 'a/kidney_left.nii.gz': 'a'}
    """
    words = _words(organs)
    found = {name: _split(name, words, cases, called) for name in names}
    known = {name: pair for name, pair in found.items() if pair}
    if len({organ for _, organ in known.values()}) < LEAST_ORGANS:
        return {}
    return {name: case for name, (case, _) in known.items()}


def _words(organs: Mapping[str, int]) -> dict[str, str]:
    """By the words that name them in files, the organs of a challenge."""
    words: dict[str, str] = {}
    for first, others in SYNONYMS.items():
        words |= dict.fromkeys((first, *others), first)
    return words | {_word(organ): _word(organ) for organ in organs}


def _word(text: str) -> str:
    """A word without what people tend to change in it."""
    return re.sub(r"[\W_]+", "_", text.casefold()).strip("_")


def _split(
    name: str,
    words: Mapping[str, str],
    cases: Collection[str] | None,
    called: FileNames,
) -> tuple[str, str] | None:
    """The case and the organ of a file, if its name says both."""
    path = PurePosixPath(name)
    stem = _ENDINGS.sub("", path.name)
    folders = [
        part for part in path.parts[:-1] if _word(part) not in ("", "segmentations")
    ]
    parent = folders[-1] if folders else ""
    case = called.case_of("prediction", stem, cases or ())
    if cases is not None and case in cases:
        if _word(parent) in words:  # liver/CASE.nii.gz
            return case, words[_word(parent)]
        return None
    if _word(stem) in words and parent:  # CASE/liver.nii.gz
        case = parent.removesuffix(CHANNEL)
        return (case, words[_word(stem)]) if cases is None or case in cases else None
    if cases is None and _word(parent) in words:
        return stem, words[_word(parent)]
    for cut in re.finditer(r"[\W_]+", stem):  # CASE_liver.nii.gz, the longest word
        case, word = stem[: cut.start()], _word(stem[cut.end() :])
        case = case.removesuffix(CHANNEL)
        if word in words and case and (cases is None or case in cases):
            return case, words[word]
    return None
