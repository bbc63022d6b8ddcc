"""Packs both label maps of a case for the slice viewer of its page."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from flare.evaluation.metrics.arrays import Labels
from flare.reports.cases.colours import ORGANS
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.frames import Frame

MOST_ORGANS = 15
"""The numbers of so many fit into half a byte, beside the background."""

MOST_VOXELS = 2**26
"""What a browser gets to unpack; four CTs of usual size."""

LEVEL = 7
"""Of compression: the last one takes four times as long for an eighth less."""


def volume(found: CaseFinding, frame: Frame) -> dict[str, object] | None:
    """What the viewer reads; None if a case has more than it can show.

    Label maps are packed as they are: differences of rows, or of slices, take more.
    """
    voxels = int(np.prod([frame.pixels(axis) for axis in range(3)], dtype=np.int64))
    if len(found.organs) > MOST_ORGANS or voxels > MOST_VOXELS:
        return None
    numbers = np.zeros(256, dtype=np.uint8)
    for number, organ in enumerate(found.organs, start=1):
        numbers[organ.label] = number

    def numbered(labels: Labels) -> Labels:
        """The numbers of organs in the part that is seen."""
        return numbers[labels[frame.box]]

    both = numbered(found.reference) | numbered(found.prediction) << 4
    packed = zlib.compress(both.tobytes(), LEVEL)
    return {
        "shape": both.shape,
        "spacing": [round(length, 4) for length in frame.spacing],
        "first": [part.start for part in frame.box],
        "sizes": found.reference.shape,
        "worst": found.worst,
        "colours": [ORGANS[n % len(ORGANS)] for n in range(len(found.organs))],
        "voxels": base64.b64encode(packed).decode("ascii"),
    }
