"""Tells what is wrong with a case: a line for each fault, and a table of its organs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from flare.challenge.metrics import METRICS, NO_VALUE, Metric, metrics_in
from flare.common.text import count, listing
from flare.reports.cases.findings import TILTED_DEGREES, CaseFinding, OrganFinding
from flare.reports.cases.surfaces import OrganSurfaces, Place
from flare.reports.model import (
    Cell,
    Column,
    Table,
    metric_shade,
    ml_cell,
    number_cell,
    table_of,
)
from flare.reports.scores import metric_cell

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

WEAK_LOSS = 0.1
"""An organ that loses less of its DSC has no line, unless none loses more."""


CAUSE_KINDS = {
    "header": "wrong header",
    "regrid": "another grid",
    "cut": "cropped",
    "labels": "other numbers",
    "outside": "other numbers",
    "exchanged": "another case",
}
"""The kinds of causes of `flare doctor` whose names are not words for people."""


class Fault(NamedTuple):
    """A line on what is wrong."""

    weight: float
    """The loss of DSC; above 1 for what explains a loss."""
    line: str
    kinds: tuple[str, ...] = ()
    """The words by which the index of cases is filtered."""
    place: Place | None = None
    """The slices in which it is seen best."""


def scores_text(scores: Mapping[str, float | None]) -> str:
    """Scores by metric.

    Examples
    --------
    >>> scores_text({"dsc": 0.9, "nsd": 1.0})
    'DSC 0.900, NSD 1.000'
    """
    phrases = []
    for metric in metrics_in(scores):
        value = scores[metric.name]
        unit = "" if value is None else metric.unit
        phrases.append(f"{metric.title} {metric.text(value)} {unit}".rstrip())
    return ", ".join(phrases)


def means_words(finding: CaseFinding) -> str:
    """The means of a case, and what in them is of organs that are nowhere."""
    left_out = [organ.title for organ in finding.organs if organ.is_left_out]
    in_mean = filter(attrgetter("in_mean"), finding.organs)
    counted = [organ for organ in in_mean if not organ.is_left_out]
    absent = [organ for organ in counted if organ.surfaces is None]
    means = f"Mean of {count(len(counted), 'organ')}: {scores_text(finding.scores)}."
    if left_out:
        means += f" Left out, by a rule of the challenge: {listing(left_out)}."
    if not absent:
        return means
    return (
        f"{means} In neither label map, and so {scores_text(absent[0].scores)} in the"
        f" mean: {listing(organ.title for organ in absent)}."
    )


def organ_table(finding: CaseFinding) -> Table:
    """A row for each organ: its scores, how far surfaces lie, and volumes."""
    organs, voxel_ml = finding.organs, finding.voxel_ml
    titles = [*map(attrgetter("title"), organs), "mean of organs"]
    columns = [Column("organ", titles, is_text=True)]
    all_scores = [*(organ.scores for organ in organs), finding.scores]
    for metric in metrics_in(finding.scores):
        columns.append(_metric_column(metric, all_scores))
    if finding.has_tolerance:
        tolerances = [f"{organ.tolerance_mm:g}" for organ in organs]
        columns.append(Column("tolerance (mm)", [*tolerances, ""]))
    columns.append(Column("farthest (mm)", [*map(_farthest, organs), ""]))
    for number, name in enumerate(("reference", "prediction", "missed", "added")):
        volumes = [ml_cell(organ.voxels[number] * voxel_ml) for organ in organs]
        columns.append(Column(f"{name} (ml)", [*volumes, ""]))
    caption = f"Scores, distances and volumes; a voxel has {voxel_ml * 1000:.3g} mm3"
    absent = [n for n, organ in enumerate(organs) if organ.surfaces is None]
    return table_of(caption, columns, quiet=absent, is_whole=True)


def _metric_column(
    metric: Metric, all_scores: Sequence[Mapping[str, float | None]]
) -> Column:
    """A metric of each organ, and its mean; without lesions there is none of them."""
    cells = []
    for scores in all_scores:
        absent = NO_VALUE if metric.name in scores else "-"
        value = scores.get(metric.name)
        cells.append(metric_cell(metric, value, exact=True, absent=absent))
    return Column(metric.heading, cells)


def _farthest(organ: OrganFinding) -> Cell:
    """How far one surface is from the other at most, where both are."""
    farthest = organ.surfaces.farthest if organ.surfaces else math.inf
    if farthest is None and organ.tolerance_mm:
        return Cell("within", css="none")
    if farthest == math.inf:
        return Cell("none", css="none")
    return number_cell(farthest or 0.0, decimals=1, exact=True)


def worst_words(faults: Sequence[Fault]) -> str:
    """The worst fault, and how many more there are."""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{faults[0].line}{more}"


def ordered_faults(finding: CaseFinding) -> list[Fault]:
    """The faults of a case, the worst first; without any, one that says so."""
    ordered = sorted(_faults(finding), key=lambda fault: -fault.weight)
    grave = [fault for fault in ordered if fault.weight >= WEAK_LOSS]
    if ordered:
        return grave or ordered[:1]
    if any(o.surfaces and o.dsc < 1 - ROUNDED for o in finding.organs):
        words = "No voxel is wrong: a rule of the challenge has lowered the scores"
        return [Fault(0.0, words, ("lowered by a rule",))]
    return [Fault(0.0, "No voxel is wrong", ("nothing wrong",))]


def dsc_chips(finding: CaseFinding, highest: float = 1.0) -> list[tuple[str, str]]:
    """Organs with a DSC up to a value, the lowest first: classes of shades, and DSC."""
    chips = []
    for organ in sorted(finding.organs, key=attrgetter("dsc")):
        if organ.dsc <= highest and not organ.is_left_out:
            shade = metric_shade(METRICS["dsc"], organ.dsc)
            chips.append((shade, f"{organ.title} {organ.dsc:.2f}"))
    return chips


def _faults(finding: CaseFinding) -> Iterator[Fault]:
    """All faults of a case, and then those of its organs in their order."""
    elsewhere: dict[str, Place | None] = {}
    for organ in finding.organs:
        reference, prediction, missed, _ = organ.voxels
        # Both maps have it without a common voxel, for no known reason.
        if prediction > 0 and reference == missed > 0:
            elsewhere[organ.title] = organ.worst
    if finding.mending:
        kinds = []
        for cause in finding.mending.causes:
            kinds.append(CAUSE_KINDS.get(cause.name, cause.name))
        dsc = f"DSC {finding.mending.scores['dsc']:.3f} without that"
        words = f"The prediction as a whole: {finding.mending.text} ({dsc})"
        yield Fault(2.0, words, tuple(kinds), finding.worst)
    elif elsewhere:
        words = f"{listing(elsewhere)}: no voxel in common with the reference"
        yield Fault(1.0, words, ("elsewhere",), next(iter(elsewhere.values())))
    for organ in finding.organs:
        yield from _organ_faults(organ)


def _organ_faults(organ: OrganFinding) -> Iterator[Fault]:
    name, loss = organ.title, 0.0 if organ.is_left_out else 1 - organ.dsc
    reference, prediction, missed, added = organ.voxels
    if prediction and not reference:
        voxels = count(prediction, "voxel")
        words = f"{name}: {voxels} predicted, of an organ that the reference has not"
        yield Fault(loss, words, ("not in the reference",), organ.worst)
    elif reference and not prediction:
        words = f"{name}: all {count(reference, 'voxel')} missed"
        yield Fault(loss, words, ("missed",), organ.worst)
    elif organ.surfaces and missed < reference and (missed or added):
        shares = f"{missed / reference:.1%} missed, {added / reference:.1%} added"
        words = f"{name}: DSC {organ.dsc:.3f}, {shares}"
        yield Fault(loss, words, ("partly wrong",), organ.worst)
        yield from _piece_faults(name, organ.surfaces)


def _piece_faults(name: str, surfaces: OrganSurfaces) -> Iterator[Fault]:
    """The pieces that lie far from the other map: the largest, and how many more."""
    for what, pieces, other in (
        (name, surfaces.prediction.pieces, "reference"),
        (f"{name} that was not found", surfaces.reference.pieces, "prediction"),
    ):
        if pieces:
            largest, *smaller = pieces
            voxels, far = count(largest.voxels, "voxel"), f"{largest.distance:.0f} mm"
            words = f"{voxels} of {what}, {far} from any of the {other}"
            if smaller:
                voxels = count(sum(piece.voxels for piece in smaller), "voxel")
                pieces_text = count(len(smaller), "more piece")
                words += f", and {pieces_text} of {voxels} together"
            yield Fault(WEAK_LOSS, words, ("far away",), largest.place)


def notes(finding: CaseFinding) -> list[str]:
    """A line for each thing that one has to know to read the numbers of a case."""
    lines = []
    for organ in finding.organs:
        name, scored_nsd = organ.title, organ.scores.get("nsd")
        nsd = organ.surfaces.nsd if organ.surfaces else None
        if nsd is None or scored_nsd is None:
            nsd = scored_nsd = 0.0  # nothing was scored
        if abs(nsd - scored_nsd) >= ROUNDED:
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
