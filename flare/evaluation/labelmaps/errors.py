"""Errors of label maps, raised where the name of the file is not known.

Whoever opens the file knows its name, and raises the error that carries it.
"""

from __future__ import annotations

from typing import ClassVar

from flare.common.errors import FileError
from flare.evaluation.errors import (
    DamagedFileError,
    FileFormatError,
    FractionError,
)


class NamelessError(Exception):
    """Something is wrong; a remedy of its own replaces the usual one."""

    error: ClassVar[type[FileError]]

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)

    def named(self, name: str) -> FileError:
        """The error that names the file."""
        return self.error(name, self.problem, self.remedy)


class NamelessFormatError(NamelessError):
    """It is no label map that can be read."""

    error = FileFormatError


class NamelessDamageError(NamelessError):
    """It is not whole."""

    error = DamagedFileError


class NamelessFractionError(NamelessError):
    """There are voxels that are no whole numbers."""

    error = FractionError
