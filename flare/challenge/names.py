"""Says what cases are called, and which `[names]` make files that end alike fit."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import product

from flare.challenge.formats import CASE, FileNames
from flare.challenge.reading import challenge_names
from flare.common.text import listing, safe

_LABEL_ENDING = re.compile(
    r"[_. -](seg|segmentation|gt|ground_?truth|labels?|masks?|annotations?)$", re.I
)
"""What people add to the name of a case to call its labels."""


def cases_text(cases: Collection[str], submitted: str) -> str:
    """Name the cases, and the file to submit for the first one.

    Examples
    --------
    >>> cases_text(["a", "b"], "a.nii.gz")
    'Cases: a, b (submitted as a.nii.gz)'
    """
    return f"Cases: {listing(cases)} (submitted as {safe(submitted)})"


def label_ending(cases: Collection[str]) -> str:
    """The ending of all names, if it is one of labels; else empty.

    Examples
    --------
    >>> label_ending(["a_seg", "b_seg"]), label_ending(["a_seg", "b"])
    ('_seg', '')
    """
    matches = [_LABEL_ENDING.search(case) for case in cases]
    endings = {match[0] if match else "" for match in matches}
    return endings.pop() if len(endings) == 1 else ""


def names_advice(
    names: FileNames, challenge: str, reference: str, image: str = ""
) -> str:
    """Tell which `[names]` take the endings of files from the names of their cases.

    Empty if there are none; the lines behind the first one are TOML. `names` are those
    that the challenge of this key has.
    """
    endings = {"reference": reference, "image": image}
    lines = []
    for role, ending in endings.items():
        if ending:
            pattern = getattr(names, role).replace(CASE, CASE + ending)
            lines.append(f'{role} = "{pattern}"')
    if not lines:
        return ""
    no_part = listing(filter(None, endings.values()), last=" and ")
    text = "\n".join(["[names]", *lines])
    file = "the challenge file"
    if challenge in challenge_names():
        file = f"a challenge file (flare challenge show {challenge} > mine.toml)"
    return f"If {no_part} is no part of the name, write into {file}:\n{text}"


def shared_endings(
    references: Collection[str], images: Collection[str]
) -> tuple[str, str]:
    """The endings without which references and images are of the same cases.

    A few may be missing. Both are empty if there are none.

    Examples
    --------
    >>> shared_endings(["a_seg", "b_seg"], ["a", "b"])
    ('_seg', '')
    >>> shared_endings(["a_1_gt", "b_1_gt"], ["a_1_ct", "b_1_ct"])
    ('_gt', '_ct')
    """
    for reference, image in product(_endings(references), _endings(images)):
        cases = {name.removesuffix(reference) for name in references}
        others = {name.removesuffix(image) for name in images}
        is_any = len(cases) == 1 and reference and image  # a_1 and a_2 are two cases
        if not is_any and (cases <= others or others <= cases):
            return reference, image
    return "", ""


def _endings(names: Collection[str]) -> list[str]:
    """Endings with letters that all names have, each from a sign on, shortest first."""
    first = min(names, key=len, default="")
    starts = [match.start() for match in re.finditer(r"[_. -](?=.*[^\W\d_])", first)]
    endings = [first[start:] for start in reversed(starts) if start]
    return ["", *(end for end in endings if all(name.endswith(end) for name in names))]
