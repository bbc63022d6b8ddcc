"""Tells which file was read, by a checksum of what is in it.

SHA-256 of a label map that is not compressed takes as long as half of all that is done
with it, and nearly all of it are runs of equal voxels. So of a piece with long runs,
where each of them starts, with its word, is what counts: that tells every byte as well.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flare.common.streams import PIECE_BYTES

_LONG_RUNS = 16
"""A piece is taken by its runs if these are so many words long, in the mean."""

_TAG = b"runs"
"""What stands before the runs of a piece, and their number."""


def file_checksum(file: Path) -> str:
    """Checksum of the bytes of a file, in the hexadecimal digits of a SHA-256.

    It is the SHA-256 of the file unless a piece of it has long runs of equal words:
    that is so for compressed files, and those of less than a piece (512 KiB).
    """
    words = np.empty(PIECE_BYTES // 8, dtype="<u8")
    content = words.view(np.uint8).data
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while count := source.readinto(content):
            runs = _runs(words) if count == PIECE_BYTES else None
            digest.update(content[:count] if runs is None else runs)
    return digest.hexdigest()


def _runs(words: npt.NDArray[np.uint64]) -> bytes | None:
    """Where each run of equal words starts, then its word; None if runs are short."""
    is_start = np.ones(words.size, dtype=np.bool_)
    np.not_equal(words[1:], words[:-1], out=is_start[1:])
    count = int(np.count_nonzero(is_start))
    if count * _LONG_RUNS > words.size:
        return None
    starts = is_start.nonzero()[0]
    head = _TAG + count.to_bytes(4, "little")
    return head + starts.astype("<u2").tobytes() + words[starts].tobytes()
