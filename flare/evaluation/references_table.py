"""Tells organisers how often organs occur in the references, their sizes and grids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flare.challenge.rules import Challenge
from flare.common.text import aligned, listing
from flare.evaluation.references import ReferenceSet


def references_table(found: ReferenceSet, challenge: Challenge) -> str:
    """How often each organ is there, how large, and on what grids; for organisers."""
    from statistics import median  # slow to load, which no evaluation has to wait for

    count = len(found.grids)
    if not count:
        return "They are the demonstration set, which was not read."
    rows: list[Sequence[str]] = [("", "in", "smallest", "median", "largest")]
    for organ in challenge.organs:
        volumes = found.volumes_ml[organ.name]
        texts = ["-", "-", "-"]
        if volumes:
            middle = median(volumes)
            texts = [f"{v:.1f} ml" for v in (volumes[0], middle, volumes[-1])]
        rows.append((organ.name, f"{len(volumes)} of {count}", *texts))
    lines = aligned(rows)
    for axis, name in enumerate("zyx"):
        lengths = [grid.spacing[axis] for grid in found.grids]
        sizes = [grid.shape[axis] for grid in found.grids]
        lines.append(
            f"Along {name}: spacing {_span(f'{v:g}' for v in _ends(lengths))} mm,"
            f" {_span(str(v) for v in _ends(sizes))} voxels"
        )
    absent = [name for name, volumes in found.volumes_ml.items() if not volumes]
    if absent:
        challenge_is = f"is --challenge {challenge.key} the right one?"
        lines.append(f"No label map has {listing(absent)}: {challenge_is}")
    return "\n".join(lines)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest of some numbers."""
    return min(values), max(values)


def _span(ends: Iterable[str]) -> str:
    """A range in words; one number, if its ends are alike."""
    return " to ".join(dict.fromkeys(ends))
