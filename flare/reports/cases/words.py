"""Says in words what a picture cannot: pieces far away, and runs of slices."""

from __future__ import annotations

from collections.abc import Sequence

from flare.common.text import count, printable
from flare.reports.cases.findings import CaseFinding, OrganFinding
from flare.reports.cases.strays import Stray
from flare.reports.cases.turning import TILTED_DEGREES

FEW = 3
"""So many pieces of an organ are told one by one."""

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""


def title(organ: str) -> str:
    """The name of an organ for people."""
    return printable(organ.replace("_", " "))


def remarks(found: CaseFinding) -> list[str]:
    """What is to be said of a case, a line each."""
    lines = [line for organ in found.organs for line in organ_remarks(organ)]
    if found.turn.tilt > TILTED_DEGREES:
        lines.append(
            f"The slices of the file are tilted by up to {found.turn.tilt:.0f} degrees:"
            " pictures are along its axes, and directions are the nearest."
        )
    return lines


def organ_remarks(organ: OrganFinding) -> list[str]:
    """What is to be said of an organ."""
    name = title(organ.name)
    reference, prediction, shared = organ.voxels
    lines = []
    if not reference and prediction:
        what = count(prediction, "voxel")
        lines.append(
            f"{name}: {what} predicted, of an organ that the reference has not"
        )
    if reference and not prediction:
        lines.append(f"{name}: all {count(reference, 'voxel')} missed")
    if reference and prediction and not shared:
        lines.append(f"{name}: reference and prediction have no voxel in common")
    for pieces, whose in ((organ.strays, ""), (organ.lost, " that was not found")):
        lines += _pieces(name, pieces, whose)
    lines += _by_rule(organ)
    if organ.scored:
        first, last = organ.scored[0] + 1, organ.scored[1]
        lines.append(f"{name}: scored in slices {first} to {last} alone, by the rules")
    return lines


def _by_rule(organ: OrganFinding) -> list[str]:
    """That a rule of the challenge has replaced the NSD of the surfaces."""
    own = organ.surfaces.nsd if organ.surfaces else None
    if own is None or abs(own - organ.nsd) < ROUNDED:
        return []
    return [
        f"{title(organ.name)}: its NSD is {organ.nsd:.3f} by a rule of the challenge;"
        f" the surfaces alone give {own:.3f}"
    ]


def _pieces(name: str, pieces: Sequence[Stray], whose: str) -> list[str]:
    """Pieces that lie far away; the largest, and how many others there are."""
    where = "of the prediction" if whose else "of the reference"
    lines = [
        f"{count(piece.voxels, 'voxel')} of {name}{whose},"
        f" {piece.distance:.0f} mm from any {where}"
        for piece in pieces[:FEW]
    ]
    rest = pieces[FEW:]
    if rest:
        voxels = count(sum(piece.voxels for piece in rest), "voxel")
        lines.append(
            f"{count(len(rest), 'more piece')} of {name}{whose}, of {voxels} together"
        )
    return lines


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers that follow each other: the first, and the last, of each run.

    Examples
    --------
    >>> runs([3, 4, 5, 9])
    [(3, 5), (9, 9)]
    """
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def runs_text(numbers: Sequence[int]) -> str:
    """Numbers of slices, from 0, as people count them.

    Examples
    --------
    >>> runs_text([2, 3, 4, 8]), runs_text([])
    ('3-5, 9', 'none')
    """
    texts = [
        f"{first + 1}" if first == last else f"{first + 1}-{last + 1}"
        for first, last in runs(numbers)
    ]
    return ", ".join(texts) or "none"
