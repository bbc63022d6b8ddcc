"""Writes pictures of few colours as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def png(
    pixels: npt.NDArray[np.uint8], colours: Sequence[tuple[int, int, int]]
) -> bytes:
    """A PNG whose pixels are numbers of colours; the first of them is not seen.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (rows, columns)
        The number of each pixel's colour.
    colours : sequence of tuple of int
        Red, green and blue, from 0 to 255.
    """
    rows, columns = pixels.shape
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)  # each begins with its filter
    lines[:, 1:] = pixels
    size = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", size),
        (b"PLTE", bytes(part for colour in colours for part in colour)),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )


def data_uri(content: bytes, kind: str) -> str:
    """A picture as part of a page; `kind` is such as png."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
