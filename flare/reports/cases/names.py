"""Gives the page of each case a file name that every system can hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

FOLDER = "cases"
"""Below the folder of a report."""

LONGEST = 80
"""Characters of a file name, without its extension."""

_TAKEN = {"index", "con", "prn", "aux", "nul"}
_TAKEN |= {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
"""The page of all cases, and names that Windows keeps to itself."""


def page_files(cases: Sequence[str]) -> dict[str, str]:
    """The file of each case's page, below `FOLDER`.

    Examples
    --------
    >>> page_files(["validation_001", "a/b", "a_b", "index"])
    {'validation_001': 'validation_001.html', 'a/b': 'a_b.html', 'a_b': 'a_b-2.html', \
'index': 'index-2.html'}
    """
    files: dict[str, str] = {}
    taken = set(_TAKEN)
    for case in cases:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", case)[:LONGEST] or "_"
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        files[case] = f"{name}.html"
    return files
