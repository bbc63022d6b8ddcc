"""Reads what the text headers of MetaImage and NRRD files have in common.

Both have lines of "key, separator, value", and directions and origins that SimpleITK
writes in LPS: to the left, back and top. Only what a label map needs is read; whatever
would change the meaning of the voxels, and is not known here, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from flare.common.text import safe
from flare.evaluation.labelmaps.errors import NamelessDamageError, NamelessFormatError

SIZE_DIGITS = 10
"""A number of voxels has fewer; Python would refuse to read one with thousands."""

LINE_BYTES = 2**14
"""Longest line of a header."""

LINES = 1000
"""Most lines of a header."""


def read_line(file: BinaryIO, lines: int) -> str:
    """The next line of a header, without its end."""
    line = file.readline(LINE_BYTES)
    if len(line) == LINE_BYTES or lines >= LINES:
        raise NamelessFormatError("its header is too long")
    if not line.endswith(b"\n"):
        raise NamelessDamageError("it ends within its header")
    return line.decode("latin-1").rstrip("\r\n")


def read_sizes(text: str) -> list[int]:
    """Numbers of voxels in the order of the file; 0 for a word that is not one."""
    words = text.split()
    is_size = [word.isdecimal() and len(word) < SIZE_DIGITS for word in words]
    return [int(word) if fits else 0 for word, fits in zip(words, is_size, strict=True)]


def read_numbers(text: str) -> list[float]:
    """The numbers in a value."""
    try:
        return [float(word) for word in text.split()]
    except ValueError as error:
        raise NamelessFormatError(
            f"its header has {safe(text[:40])} where numbers should be"
        ) from error


def read_vector(
    fields: Mapping[str, str],
    keys: Sequence[str],
    default: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Numbers under the first of several keys that is there; else the default."""
    for key in keys:
        if fields.get(key):
            numbers = read_numbers(fields[key])
            if len(numbers) != default.size:
                found = f"its header has {len(numbers)} numbers for {key}"
                raise NamelessFormatError(f"{found}, expected {default.size}")
            return np.array(numbers)
    return default


def stored_type(kind: str | None, found: str, order: str) -> np.dtype[Any]:
    """A stored type in its byte order."""
    if kind is None:
        raise NamelessFormatError(
            f"its voxels are of type {safe(found[:40])}, expected numbers"
        )
    return np.dtype(order + kind)
