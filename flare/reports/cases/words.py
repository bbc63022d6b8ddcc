"""Tells what is wrong with a case: a line for each fault, and a table of its organs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from flare.challenge.metrics import metrics_in
from flare.common.text import count, listing
from flare.reports.cases.findings import TILTED_DEGREES, CaseFinding, OrganFinding
from flare.reports.cases.surfaces import Component, OrganSurfaces
from flare.reports.model import Cell, Table, number_cell, table
from flare.reports.scores import metric_cell

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

WEAK_LOSS = 0.1
"""An organ that loses less of its DSC has no line, unless none loses more."""


class _Fault(NamedTuple):
    """A line on what is wrong."""

    weight: float
    """The loss of DSC; above 1 for what explains a loss."""
    line: str


def scores_text(scores: Mapping[str, float]) -> str:
    """Scores by metric.

    Examples
    --------
    >>> scores_text({"dsc": 0.9, "nsd": 1.0})
    'DSC 0.900, NSD 1.000'
    """
    phrases = []
    for metric in metrics_in(scores):
        value = metric.text(scores[metric.name])
        phrases.append(f"{metric.title} {value} {metric.unit}".rstrip())
    return ", ".join(phrases)


def means_words(finding: CaseFinding) -> str:
    """The means of a case, and what in them is of organs that are nowhere."""
    counted = [organ for organ in finding.organs if organ.in_mean]
    absent = [organ for organ in counted if organ.surfaces is None]
    means = f"Mean of {count(len(counted), 'organ')}: {scores_text(finding.scores)}."
    if not absent:
        return means
    return (
        f"{means} In neither label map, and so {scores_text(absent[0].scores)} in the"
        f" mean: {listing(organ.title for organ in absent)}."
    )


def organ_table(finding: CaseFinding) -> Table:
    """A row for each organ: its scores, how far surfaces lie, and volumes."""
    voxel_ml = finding.voxel_ml
    rows: list[list[Cell | str]] = []
    for organ in finding.organs:
        row: list[Cell | str] = [
            organ.title,
            *_score_cells(organ.scores),
            f"{organ.tolerance_mm:g}",
            _farthest(organ),
            *(_ml(voxels * voxel_ml) for voxels in organ.voxels),
        ]
        rows.append(row)
    rows.append(["mean of organs", *_score_cells(finding.scores), *[""] * 6])
    titles = [metric.title_with_unit for metric in metrics_in(finding.scores)]
    volumes = "reference (ml)", "prediction (ml)", "missed (ml)", "added (ml)"
    return table(
        f"Scores, distances and volumes; a voxel has {voxel_ml * 1000:.3g} mm3",
        ("organ", *titles, "tolerance (mm)", "farthest (mm)", *volumes),
        rows,
        words=("organ",),
        quiet=[n for n, organ in enumerate(finding.organs) if organ.surfaces is None],
        is_whole=True,
    )


def _score_cells(scores: Mapping[str, float]) -> list[Cell]:
    """The scores by metric, in full precision."""
    metrics = metrics_in(scores)
    return [metric_cell(metric, scores[metric.name], exact=True) for metric in metrics]


def _ml(volume: float) -> Cell:
    """A volume; a small one has digits behind the point."""
    return Cell(
        f"{volume:.0f}" if volume >= 100 else f"{volume:.3g}", exact=repr(volume)
    )


def _farthest(organ: OrganFinding) -> Cell:
    """How far one surface is from the other at most, where both are."""
    farthest = organ.surfaces.farthest if organ.surfaces else math.inf
    if farthest is None:
        return Cell("within", css="none")
    if farthest == math.inf:
        return Cell("none", css="none")
    return number_cell(farthest, decimals=1, exact=True)


def faults(finding: CaseFinding) -> list[str]:
    """A line for each thing that is wrong with a case, the worst first."""
    ordered = sorted(_faults(finding), key=lambda fault: -fault.weight)
    grave = [fault.line for fault in ordered if fault.weight >= WEAK_LOSS]
    if grave:
        return grave
    if ordered:
        return [ordered[0].line]
    if any(o.surfaces and o.scores["dsc"] < 1 - ROUNDED for o in finding.organs):
        return ["No voxel is wrong: a rule of the challenge has lowered the scores"]
    return ["No voxel is wrong"]


def _faults(finding: CaseFinding) -> Iterator[_Fault]:
    """All faults of a case, and then those of its organs in their order."""
    elsewhere = [organ.title for organ in finding.organs if _is_elsewhere(organ)]
    if finding.mending:
        dsc = f"DSC {finding.mending.scores['dsc']:.3f} without that"
        words = f"The prediction as a whole: {finding.mending.text} ({dsc})"
        yield _Fault(2.0, words)
    elif elsewhere:
        words = f"{listing(elsewhere)}: no voxel in common with the reference"
        yield _Fault(1.0, words)
    for organ in finding.organs:
        yield from _organ_faults(organ)


def _is_elsewhere(organ: OrganFinding) -> bool:
    """Whether both maps have an organ without a common voxel, for no known reason."""
    reference, prediction, missed, _ = organ.voxels
    return prediction > 0 and reference == missed > 0


def _organ_faults(organ: OrganFinding) -> Iterator[_Fault]:
    """The faults of an organ."""
    name, loss = organ.title, 1 - organ.scores["dsc"]
    reference, prediction, missed, added = organ.voxels
    if prediction and not reference:
        voxels = count(prediction, "voxel")
        words = f"{name}: {voxels} predicted, of an organ that the reference has not"
        yield _Fault(loss, words)
    elif reference and not prediction:
        yield _Fault(loss, f"{name}: all {count(reference, 'voxel')} missed")
    elif organ.surfaces and missed < reference and (missed or added):
        shares = f"{missed / reference:.1%} missed, {added / reference:.1%} added"
        yield _Fault(loss, f"{name}: DSC {organ.scores['dsc']:.3f}, {shares}")
        yield from _piece_faults(name, organ.surfaces)


def _piece_faults(name: str, surfaces: OrganSurfaces) -> Iterator[_Fault]:
    """The lines on pieces of an organ that lie far from the other label map's."""
    added, lost = surfaces.false_positives, surfaces.false_negatives
    if added:
        yield _Fault(WEAK_LOSS, _pieces(name, added, "reference"))
    if lost:
        what = f"{name} that was not found"
        yield _Fault(WEAK_LOSS, _pieces(what, lost, "prediction"))


def notes(finding: CaseFinding) -> list[str]:
    """A line for each thing that one has to know to read the numbers of a case."""
    lines = []
    for organ in finding.organs:
        name, scored_nsd = organ.title, organ.scores["nsd"]
        nsd = organ.surfaces.nsd if organ.surfaces else None
        if nsd is not None and abs(nsd - scored_nsd) >= ROUNDED:
            words = f"{name}: its NSD is {scored_nsd:.3f} by a rule of the challenge"
            lines.append(f"{words}; the surfaces alone give {nsd:.3f}")
        if organ.scored:
            first, last = organ.scored[0] + 1, organ.scored[1]
            words = f"{name}: scored in slices {first} to {last} alone, by the rules"
            lines.append(words)
    tilt = finding.orientation.tilt
    if tilt > TILTED_DEGREES:
        lines.append(
            f"The slices of the file are tilted by up to {tilt:.0f} degrees:"
            " pictures are along its axes, and directions are the nearest."
        )
    return lines


def _pieces(what: str, pieces: Sequence[Component], other: str) -> str:
    """Pieces that lie far from the other map: the largest, and how many more."""
    largest, *smaller = pieces
    voxels = count(largest.voxels, "voxel")
    words = f"{voxels} of {what}, {largest.distance:.0f} mm from any of the {other}"
    if smaller:
        voxels = count(sum(piece.voxels for piece in smaller), "voxel")
        words += f", and {count(len(smaller), 'more piece')} of {voxels} together"
    return words
