"""Packs both label maps of a case for the slice viewer of its page."""

from __future__ import annotations

import base64

import numpy as np
from zlib_ng import zlib_ng

from flare.evaluation.metrics.arrays import Labels
from flare.reports.cases.colours import ORGANS
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.frames import Frame

MOST_ORGANS = 15
"""The numbers of so many fit into half a byte, beside the background."""

MOST_VOXELS = 2**26
"""What a browser gets to unpack; four CTs of usual size."""

LEVEL = 6
"""Of compression: the last one takes three times as long for a tenth less."""


def volume(found: CaseFinding, frame: Frame) -> dict[str, object] | None:
    """What the viewer reads; None if a case has more than it can show.

    Label maps are packed as they are: differences of rows, or of slices, take more.
    """
    voxels = int(np.prod([frame.pixels(axis) for axis in range(3)], dtype=np.int64))
    if len(found.organs) > MOST_ORGANS or voxels > MOST_VOXELS:
        return None
    low, high = bytearray(256), bytearray(256)
    for number, organ in enumerate(found.organs, start=1):
        low[organ.label], high[organ.label] = number, number << 4

    def numbered(labels: Labels, table: bytearray) -> Labels:
        """What a table has for the labels of the part that is seen."""
        seen = labels[frame.box]
        content = seen.tobytes().translate(table)  # many times as fast as an index
        return np.frombuffer(content, dtype=np.uint8).reshape(seen.shape)

    both = numbered(found.reference, low) | numbered(found.prediction, high)
    packed = zlib_ng.compress(both.tobytes(), LEVEL)
    return {
        "shape": both.shape,
        "spacing": [round(length, 4) for length in frame.spacing],
        "first": [part.start for part in frame.box],
        "sizes": found.reference.shape,
        "worst": found.worst,
        "colours": [ORGANS[n % len(ORGANS)] for n in range(len(found.organs))],
        "voxels": base64.b64encode(packed).decode("ascii"),
    }
