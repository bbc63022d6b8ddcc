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
    pattern = f"{name.replace('-', '_')}-*.dist-info/METADATA"
    for place in sys.path:
        for file in Path(place).glob(pattern):
            for line in file.read_text(encoding="utf-8").splitlines():
                if line.startswith("Version: "):
                    return line.removeprefix("Version: ")
    from importlib.metadata import version  # not installed as pip does it

    return version(name)
