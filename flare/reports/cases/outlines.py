"""Traces the exact edges of voxels as the paths of an SVG."""

from __future__ import annotations

import numpy as np

from flare.evaluation.metrics.arrays import Mask


def outline(mask: Mask, before: tuple[int, int] = (0, 0)) -> str:
    """The path around all voxels of a mask; it can be filled by the rule evenodd.

    Parameters
    ----------
    mask : ndarray of bool, shape (rows, columns)
        The voxels of a slice.
    before : tuple of int
        How many rows and columns lie before it.

    Returns
    -------
    str
        In units of a voxel, columns first; empty if no voxel is in the mask.

    Notes
    -----
    A path turns only at corners of voxels. On each line of the grid, its corners follow
    each other in pairs, the ends of an edge. So from corner to corner, edges along the
    rows and along the columns take turns, until the first corner is reached again.

    Examples
    --------
    >>> outline(np.array([[True, True]]))
    'M0 0h2v1h-2z'
    """
    padded = np.pad(mask, 1).view(np.uint8)
    above = padded[:-1, :-1] | padded[:-1, 1:] << 1
    codes = above | padded[1:, :-1] << 2 | padded[1:, 1:] << 3
    times = _TURNS[codes]
    rows, columns = np.nonzero(times)
    number = times[rows, columns]
    rows, columns = np.repeat(rows, number), np.repeat(columns, number)
    order = np.lexsort((rows, columns))
    across = np.empty_like(order)
    across[order] = order[np.arange(order.size) ^ 1]
    return _path(
        (rows + before[0]).tolist(), (columns + before[1]).tolist(), across.tolist()
    )


def _turns() -> list[int]:
    """How often a path turns where two by two voxels meet, by their code."""
    found = []
    for code in range(16):
        voxels = [code >> n & 1 for n in range(4)]
        is_saddle = voxels in ([1, 0, 0, 1], [0, 1, 1, 0])
        found.append(2 if is_saddle else sum(voxels) % 2)
    return found


_TURNS = np.array(_turns(), dtype=np.uint8)


def _path(rows: list[int], columns: list[int], across: list[int]) -> str:
    """Go from corner to corner, until none is left."""
    words: list[str] = []
    is_left = bytearray(b"\1") * len(rows)
    for start in range(len(rows)):
        if not is_left[start]:
            continue
        words.append(f"M{columns[start]} {rows[start]}")
        here = start
        while True:
            there = here ^ 1  # the other end of the edge along the row
            after = across[there]  # the other end of the edge along the column
            is_left[here] = is_left[there] = 0
            words.append(f"h{columns[there] - columns[here]}")
            if after == start:
                words.append("z")
                break
            words.append(f"v{rows[after] - rows[there]}")
            here = after
    return "".join(words)
