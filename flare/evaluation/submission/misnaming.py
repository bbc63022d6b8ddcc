"""Suggests the case that was meant by a name that no case has."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
