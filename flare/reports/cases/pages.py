"""Makes the pages of cases, one case at a time, so that memory stays what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.common.files import file_names
from flare.common.text import count, printable, safe
from flare.evaluation.metrics.finder import ReusedMemory
from flare.reports.cases.findings import field_of_view, look_at
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.cases.organs import (
    faults,
    means_words,
    notes,
    organ_table,
    scores_text,
)
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
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Heading,
    Lines,
    Page,
    Part,
    Section,
    Words,
    name_cell,
)
from flare.reports.render.html import macro_html, page_html, template_text
from flare.reports.scores import challenge_title, evaluation_names, scores_of
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
    files = find_case_files(metrics, found, options, tuple(links))
    (evaluation,) = evaluation_names([metrics])
    empty = Page(
        title="",
        kicker=challenge_title(found.evaluation.challenge),
        audience_note=ORGANISERS_NOTE,
        sections=[],
    )
    names = ["", *(Path(file).name for file in links.values()), ""]
    memory, cards = ReusedMemory(), []
    for number, (case, file) in enumerate(links.items(), start=1):
        back = _macro("back", before=names[number - 1], after=names[number + 1])
        title = f"Case {safe(case)}: {evaluation}"
        scores = {m: v for (c, m), v in found.values.items() if c == case}
        card = {
            "file": names[number],
            "name": name_cell(case),
            "scores": scores_text(scores),
            "thumbnail": None,
        }
        why = found.failed.get(case)
        if why is not None:
            page = replace(
                empty, lead=[Words(f"Not scored: {printable(why)}", "banner")]
            )
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
    field, layers = field_of_view(found), ["reference", "prediction", "errors", "names"]
    backgrounds: tuple[str, ...] = ()
    if files.images:
        layers.append("CT")
        ct, grid = files.images[case], maps[0].grid
        backgrounds = ct_backgrounds(ct, grid, files.challenge, found, field)
    stage = _macro(
        "stage",
        planes=plane_pictures(found, field, backgrounds),
        layers=layers,
        volume=volume(found, field),
    )
    images = surface_views(found)
    card["thumbnail"] = thumbnail(found, images)
    pictures = surface_pictures(found, field, images)
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
