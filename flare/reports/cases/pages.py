"""Makes the pages of cases, one case at a time, so that memory stays what it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.challenge.metrics import metrics_in
from flare.common.files import file_names
from flare.common.text import count, listing, safe
from flare.evaluation.metrics.finder import ReusedMemory
from flare.evaluation.submission.unpack import opened
from flare.reports.cases.findings import (
    TILTED_DEGREES,
    CaseFinding,
    OrganFinding,
    look_at,
)
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.cases.pictures import (
    BANDS,
    plane_pictures,
    surface_pictures,
    surface_views,
    thumbnail,
    volume,
)
from flare.reports.cases.sources import (
    CaseFiles,
    ct_backgrounds,
    find_case_files,
    read_case,
)
from flare.reports.cases.surfaces import Component
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Cell,
    Heading,
    Lines,
    Page,
    Part,
    Section,
    Table,
    Words,
    number_cell,
    table,
)
from flare.reports.render.html import macro_html, page_html, template_text
from flare.reports.scores import (
    challenge_title,
    evaluation_names,
    metric_cell,
    scores_of,
)
from flare.results.metrics_reading import EvaluationFile

WORST_NOTE = (
    "In each plane, the slice in which errors weigh the most: every wrong voxel by its"
    " distance from the surface, of which up to 10 mm count. Slices are counted from"
    " the feet, the front, and the patient's right, which is on the left."
)

SURFACES_NOTE = (
    "Both surfaces of all organs, the reference's and the prediction's, and of both"
    " what is nearest to the eye. What is not grey is what NSD counts as missed."
)

FAULTS = 8
"""So many lines on what is wrong stand beside the pictures, the others below."""

ROUNDED = 0.006
"""A challenge or a board that has two decimals changes a score by less."""

WEAK_LOSS = 0.1
"""An organ that loses less of its DSC has no line, unless none loses more."""

_REMEDY = "Give the folder of the predictions, or their zip."

FOLDER = "cases"
"""Below the folder of a report."""


def case_links(found: EvaluationFile, options: CaseOptions) -> dict[str, str]:
    """The files of the cases that get a page, the hardest first, below the report."""
    scores = scores_of(found)
    order = [scores.cases[number] for number in scores.worst_first]
    drawn = order[: options.worst or None]
    names = file_names(drawn, taken=["index"])
    return {case: f"{FOLDER}/{name}.html" for case, name in names.items()}


def case_pages(
    metrics: Path,
    found: EvaluationFile,
    options: CaseOptions,
    on_drawn: OnDrawn | None = None,
) -> Iterator[tuple[str, Page]]:
    """The pages of the hardest cases, and their index, each with its file.

    Raises
    ------
    MetricsFileError
        If the label maps are not those that were scored.
    OrganiserError, SubmissionError, HostError
        If one cannot be read.
    """
    links = case_links(found, options)
    with opened(options.predictions, _REMEDY) as predictions:
        files = find_case_files(metrics, found, options, predictions, tuple(links))
        yield from _pages(metrics, found, files, links, on_drawn)


def _pages(
    metrics: Path,
    found: EvaluationFile,
    files: CaseFiles,
    links: Mapping[str, str],
    on_drawn: OnDrawn | None,
) -> Iterator[tuple[str, Page]]:
    """The same, from the files of the cases."""
    (evaluation,) = evaluation_names([metrics])
    empty = Page(
        title="",
        kicker=challenge_title(found.evaluation),
        audience_note=ORGANISERS_NOTE,
        sections=[],
    )
    names = ["", *(Path(file).name for file in links.values()), ""]
    memory, cards = ReusedMemory(), []
    for number, (case, file) in enumerate(links.items(), start=1):
        back = _macro("back", before=names[number - 1], after=names[number + 1])
        title = f"Case {case}: {evaluation}"
        scores = {m: v for (c, m), v in found.values.items() if c == case}
        card = {
            "file": names[number],
            "case": case,
            "scores": scores_text(scores),
            "thumbnail": None,
        }
        why = found.failed.get(case)
        if why is not None:
            page = replace(empty, lead=[Words(f"Not scored: {why}", "banner")])
            card["words"] = safe(why)
        else:
            page, more = _drawn(empty, case, scores, files, memory)
            card |= more
        yield file, replace(page, title=title, lead=[back, *page.lead])
        cards.append(card)
        if on_drawn:
            on_drawn(number, len(links), case)
    total = len(found.cases)
    note = f"{len(cards)} of {count(total, 'case')}, those with the lowest DSC."
    if len(cards) == total:
        note = f"All {count(total, 'case')}." if total > 1 else "The only case."
    words = Words(
        f"{note} A small picture is the surface seen from the front: what is not grey"
        " is what NSD counts as missed."
    )
    shown = [_macro("cards", found=cards)]
    index = replace(
        empty,
        title=f"What is wrong in the hardest cases: {evaluation}",
        lead=[_macro("to_evaluation"), words],
        sections=[Section("cases", "Cases", "The hardest first", shown)],
    )
    yield f"{FOLDER}/index.html", index


def case_html(page: Page) -> str:
    """A page of a case, or their index, as HTML."""
    scripts = ["viewer.js"] if len(page.sections) > 1 else []  # else it has no pictures
    return page_html(page, *scripts, style=template_text("case.css"))


def _drawn(
    empty: Page,
    case: str,
    scores: Mapping[str, float],
    files: CaseFiles,
    memory: ReusedMemory,
) -> tuple[Page, dict[str, Any]]:
    """The page of a case that was scored, and what else is on its card."""
    maps = read_case(files, case, scores, memory)
    found = look_at(*maps, files.challenge, scores)
    lines, told = faults(found), notes(found)
    more = f" (and {len(lines) - 1} more)" if lines[1:] else ""
    card: dict[str, Any] = {"words": f"{safe(lines[0])}{more}"}
    organs: list[Part] = [organ_table(found), *([Lines(told)] if told else [])]
    if lines[FAULTS:]:
        organs += [Heading("More that is wrong"), Lines(lines[FAULTS:])]
        lines = [*lines[:FAULTS], f"and {len(lines) - FAULTS} more, below the organs"]
    means, own = (
        Words(means_words(found)),
        Section("organs", "Organs", "Organs", organs),
    )
    if found.is_blank:
        why = Words("Neither label map has any organ: there is nothing to draw.")
        return replace(empty, lead=[means, why], sections=[own]), card
    layers, backgrounds = ["reference", "prediction", "errors", "names"], []
    if files.images:
        layers.append("CT")
        ct, grid = files.images[case], maps[0].grid
        backgrounds = ct_backgrounds(ct, grid, files.challenge, found)
    stage = _macro(
        "stage",
        planes=plane_pictures(found, backgrounds),
        layers=layers,
        volume=volume(found),
    )
    images = surface_views(found)
    card["thumbnail"] = thumbnail(found, images)
    pictures = surface_pictures(found, images)
    surfaces = _macro("surfaces", pictures=pictures, bands=BANDS)
    wrong: list[Part] = [Lines(lines), stage, Words(WORST_NOTE, "note")]
    seen: list[Part] = [surfaces, Words(SURFACES_NOTE, "note")]
    sections = [
        Section("wrong", "What is wrong", "What is wrong", wrong),
        own,
        Section("surfaces", "Surfaces", "Surfaces", seen),
    ]
    return replace(empty, lead=[means], sections=sections), card


def _macro(name: str, **content: Any) -> Part:
    """A part that only pages of cases have."""
    return macro_html("case.html", name, **content)


# --- What is wrong, in tables and in words ----------------------------------------


def scores_text(scores: Mapping[str, float]) -> str:
    """Scores by metric.

    Examples
    --------
    >>> scores_text({"dsc": 0.9, "nsd": 1.0})
    'DSC 0.900, NSD 1.000'
    """
    return ", ".join(
        f"{own.title} {own.text(scores[own.name])} {own.unit}".rstrip()
        for own in metrics_in(scores)
    )


def means_words(found: CaseFinding) -> str:
    """The means of a case, and what in them is of organs that are nowhere."""
    counted = [organ for organ in found.organs if organ.in_mean]
    absent = [organ for organ in counted if organ.surfaces is None]
    whole = f"Mean of {count(len(counted), 'organ')}: {scores_text(found.scores)}."
    if not absent:
        return whole
    return (
        f"{whole} In neither label map, and so {scores_text(absent[0].scores)} in the"
        f" mean: {listing(organ.title for organ in absent)}."
    )


def organ_table(found: CaseFinding) -> Table:
    """What each organ of the challenge scores, how far surfaces lie, and volumes."""
    metrics = metrics_in(found.scores)
    rows: list[list[Cell | str]] = [
        [
            organ.title,
            *(metric_cell(own, organ.scores[own.name], exact=True) for own in metrics),
            f"{organ.tolerance_mm:g}",
            _farthest(organ),
            *(_ml(voxels * found.voxel_ml) for voxels in organ.voxels),
        ]
        for organ in found.organs
    ]
    means = (metric_cell(own, found.scores[own.name], exact=True) for own in metrics)
    rows.append(["mean of organs", *means, *[""] * 6])
    names = ("reference", "prediction", "missed", "added")
    return table(
        f"Scores, distances and volumes; a voxel has {found.voxel_ml * 1000:.3g} mm3",
        (
            *("organ", *(metric.title_with_unit for metric in metrics)),
            *("tolerance (mm)", "farthest (mm)", *(f"{name} (ml)" for name in names)),
        ),
        rows,
        words=("organ",),
        quiet=[n for n, organ in enumerate(found.organs) if organ.surfaces is None],
        is_whole=True,
    )


def _ml(volume: float) -> Cell:
    """A volume, of which small ones have digits, too."""
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


def faults(found: CaseFinding) -> list[str]:
    """What is wrong with a case, a line each, the worst first."""
    lines, way = [], found.mirrored
    if way:
        words = f"The prediction looks mirrored {way.axes}: DSC {way.dsc:.2f} if it is"
        lines.append((2.0, words))
    apart = (o.title for o in found.organs if _is_elsewhere(o) and not o.instead)
    if names := listing(apart):
        lines.append((1.0, f"{names}: no voxel in common with the reference"))
    organs = {own.name: own for own in found.organs}
    for organ in found.organs:
        lines += _faults(organ, organs)
    lines.sort(key=lambda line: -line[0])
    most = [line for weight, line in lines if weight >= WEAK_LOSS]
    equal = "No voxel is wrong"
    if any(own.surfaces and own.scores["dsc"] < 1 - ROUNDED for own in found.organs):
        equal += ": a rule of the challenge has lowered the scores"
    return most or [line for _, line in lines[:1]] or [equal]


def _is_elsewhere(organ: OrganFinding) -> bool:
    """Whether both label maps have an organ, but no voxel in common."""
    reference, prediction, missed, _ = organ.voxels
    return prediction > 0 and reference == missed > 0


def _faults(  # noqa: C901
    organ: OrganFinding, organs: Mapping[str, OrganFinding]
) -> Iterator[tuple[float, str]]:
    """What is wrong with an organ, and how much that weighs."""
    name, loss, own = organ.title, 1 - organ.scores["dsc"], organ.surfaces
    reference, prediction, missed, added = organ.voxels
    if organ.instead:
        other, dsc = organs[organ.instead[0]], organ.instead[1]
        if not other.instead or other.instead[0] != organ.name:
            words = f"{name} is predicted as {other.title}"
            yield 1.2, f"{words}: DSC {dsc:.2f} if renamed"
        elif organ.name < other.name:
            words = f"{name} and {other.title} look swapped: DSC {dsc:.2f} and"
            yield 1.5, f"{words} {other.instead[1]:.2f} if exchanged"
    elif not reference and prediction:
        what = count(prediction, "voxel")
        yield loss, f"{name}: {what} predicted, of an organ that the reference has not"
    elif reference and not prediction:
        yield loss, f"{name}: all {count(reference, 'voxel')} missed"
    elif own and missed < reference and (missed or added):
        shares = f"{missed / reference:.1%} missed, {added / reference:.1%} added"
        yield loss, f"{name}: DSC {organ.scores['dsc']:.3f}, {shares}"
        lost = f"{name} that was not found"
        for what, pieces, map_ in (
            (name, own.false_positives, "reference"),
            (lost, own.false_negatives, "prediction"),
        ):
            if pieces:
                yield WEAK_LOSS, _pieces(what, pieces, map_)


def notes(found: CaseFinding) -> list[str]:
    """What has to be known of a case to read its numbers, a line each."""
    lines = []
    for organ in found.organs:
        name, told = organ.title, organ.scores["nsd"]
        own = organ.surfaces.nsd if organ.surfaces else None
        if own is not None and abs(own - told) >= ROUNDED:
            words = f"{name}: its NSD is {told:.3f} by a rule of the challenge"
            lines.append(f"{words}; the surfaces alone give {own:.3f}")
        if organ.scored:
            first, last = organ.scored[0] + 1, organ.scored[1]
            words = f"{name}: scored in slices {first} to {last} alone, by the rules"
            lines.append(words)
    tilt = found.orientation.tilt
    if tilt > TILTED_DEGREES:
        lines.append(
            f"The slices of the file are tilted by up to {tilt:.0f} degrees:"
            " pictures are along its axes, and directions are the nearest."
        )
    return lines


def _pieces(what: str, pieces: Sequence[Component], other: str) -> str:
    """Pieces that lie far from the other map: the largest, and how many more."""
    first, *rest = pieces
    voxels = count(first.voxels, "voxel")
    words = f"{voxels} of {what}, {first.distance:.0f} mm from any of the {other}"
    if rest:
        voxels = count(sum(piece.voxels for piece in rest), "voxel")
        words += f", and {count(len(rest), 'more piece')} of {voxels} together"
    return words
