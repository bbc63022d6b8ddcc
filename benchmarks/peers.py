"""What the benchmark compares with: each peer's loop over a folder of cases.

Run as a program of its own, so that its start-up, processor time and memory are its
own: ``python peers.py PEER FOLDER TOLERANCES``.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import SimpleITK as sitk
from zlib_ng import zlib_ng

Tolerances = dict[int, float]

COMPRESSED_PIECE_BYTES, PIECE_BYTES = 2**16, 2**19
"""Those of ``flare/common/streams.py``."""


def simpleitk(pairs: Iterator[tuple[Path, Path]], _: Tolerances) -> None:
    """Nothing but reading: what no evaluation in Python with SimpleITK can undercut."""
    for reference, prediction in pairs:
        sitk.ReadImage(str(reference))
        sitk.ReadImage(str(prediction))


def inflate(pairs: Iterator[tuple[Path, Path]], _: Tolerances) -> None:
    """Nothing but inflating, in the pieces of the kit: what no reader can undercut."""
    for path in itertools.chain.from_iterable(pairs):
        with path.open("rb") as file:
            stream, packed = zlib_ng.decompressobj(31), b""
            while not stream.eof:
                packed = packed or file.read(COMPRESSED_PIECE_BYTES)
                stream.decompress(packed, PIECE_BYTES)
                packed = stream.unconsumed_tail


def surface_distance(
    pairs: Iterator[tuple[Path, Path]], tolerances: Tolerances
) -> None:
    """The loop of the official scripts, with their library and the faster reader."""
    import surface_distance as package

    for reference, prediction, spacing in _read(pairs):
        for label, tolerance in tolerances.items():
            masks = reference == label, prediction == label
            package.compute_dice_coefficient(*masks)
            distances = package.compute_surface_distances(*masks, spacing)
            package.compute_surface_dice_at_tolerance(distances, tolerance)


def monai(pairs: Iterator[tuple[Path, Path]], tolerances: Tolerances) -> None:
    """MONAI's Dice, and its surface Dice with sub-voxel areas."""
    import torch
    from monai.metrics import DiceMetric, compute_surface_dice
    from monai.networks.utils import one_hot

    torch.set_num_threads(1)
    classes = len(tolerances) + 1
    dice = DiceMetric(include_background=False)
    for reference, prediction, spacing in _read(pairs):
        hot = [
            one_hot(torch.from_numpy(labels)[None, None], classes)
            for labels in (prediction, reference)
        ]
        dice(*hot)
        compute_surface_dice(
            *hot, list(tolerances.values()), spacing=spacing, use_subvoxels=True
        )


PEERS: dict[str, Callable[[Iterator[tuple[Path, Path]], Tolerances], None]] = {
    "simpleitk": simpleitk,
    "inflate": inflate,
    "surface-distance": surface_distance,
    "monai": monai,
}


def _read(pairs: Iterator[tuple[Path, Path]]) -> Iterator[tuple[Any, Any, Any]]:
    """Labels of both files, and the spacing in the order of their axes."""
    for pair in pairs:
        images = [sitk.ReadImage(str(file)) for file in pair]
        labels = [sitk.GetArrayFromImage(image).astype(np.uint8) for image in images]
        yield *labels, images[0].GetSpacing()[::-1]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the peers, about what they use
    peer, folder, *values = sys.argv[1:]
    references = sorted((Path(folder) / "reference").iterdir())
    PEERS[peer](
        ((file, Path(folder) / "predictions" / file.name) for file in references),
        {label: float(value) for label, value in enumerate(values, start=1)},
    )
