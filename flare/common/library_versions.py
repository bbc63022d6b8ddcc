"""Tells which version of a package is installed, quicker than importlib.metadata."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


@cache
def library_version(name: str) -> str:
    """Version of an installed package, as ``importlib.metadata.version`` tells it.

    That parses an e-mail with the whole description of the package, for which the
    standard library loads forty modules: a fourteenth of the start of an evaluation.
    The version stands in one of the first lines.

    Parameters
    ----------
    name : str
        Of the package on PyPI, such as zlib-ng.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If there is no such package.
    """
    start = f"{name.replace('-', '_')}-"
    for place in sys.path:
        for folder in _packages_in(place):
            if not folder.startswith(start):
                continue
            if found := _version_in(Path(place, folder, "METADATA")):
                return found
    from importlib.metadata import version  # not installed as pip does it

    return version(name)


@cache
def _packages_in(place: str) -> tuple[str, ...]:
    """Names of folders about packages in one of Python's places, looked for once."""
    try:
        names = [path.name for path in Path(place).iterdir()]
    except OSError:  # a zip file, or nothing that we may read: Python ignores it, too
        return ()
    return tuple(name for name in names if name.endswith(".dist-info"))


def _version_in(file: Path) -> str:
    """What a file about a package says; nothing if it is not there."""
    if not file.is_file():
        return ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ")
    return ""
