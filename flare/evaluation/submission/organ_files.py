"""Recognises files that hold one organ of a case each, by their names.

TotalSegmentator and others write CASE/liver.nii.gz, people CASE_liver.nii.gz. To such a
file, "rename it to CASE.nii.gz" would be wrong advice: whoever obeys submits one organ.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from flare.challenge.formats import CHANNEL, SUFFIXES

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
    names: Sequence[str], organs: Mapping[str, int], cases: Collection[str] | None
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
    found = {name: _split(name, words, cases) for name in names}
    known = {name: pair for name, pair in found.items() if pair}
    if len({organ for _, organ in known.values()}) < LEAST_ORGANS:
        return {}
    return {name: case for name, (case, _) in known.items()}


def _words(organs: Mapping[str, int]) -> dict[str, str]:
    """By the words that name them in files, the organs of a challenge."""
    words: dict[str, str] = {}
    for first, others in SYNONYMS.items():
        words |= dict.fromkeys((first, *others), first)
    return words | {_plain(organ): _plain(organ) for organ in organs}


def _plain(text: str) -> str:
    """A word without what people tend to change in it."""
    return re.sub(r"[\W_]+", "_", text.casefold()).strip("_")


def _split(
    name: str, words: Mapping[str, str], cases: Collection[str] | None
) -> tuple[str, str] | None:
    """The case and the organ of a file, if its name says both."""
    path = PurePosixPath(name)
    stem = _ENDINGS.sub("", path.name)
    folders = [
        part for part in path.parts[:-1] if _plain(part) not in ("", "segmentations")
    ]
    parent = folders[-1] if folders else ""
    if cases is not None and stem in cases:
        if _plain(parent) in words:  # liver/CASE.nii.gz
            return stem, words[_plain(parent)]
        return None
    if _plain(stem) in words and parent:  # CASE/liver.nii.gz
        case = parent.removesuffix(CHANNEL)
        return (case, words[_plain(stem)]) if cases is None or case in cases else None
    if cases is None and _plain(parent) in words:
        return stem, words[_plain(parent)]
    for cut in re.finditer(r"[\W_]+", stem):  # CASE_liver.nii.gz, the longest word
        case, word = stem[: cut.start()], _plain(stem[cut.end() :])
        case = case.removesuffix(CHANNEL)
        if word in words and case and (cases is None or case in cases):
            return case, words[word]
    return None
