"""Makes the pages of cases, one case at a time, so that memory stays what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from flare.common.files import file_names
from flare.common.text import count, printable, safe
from flare.evaluation.metrics.finder import ReusedMemory
from flare.reports.cases.findings import CaseFinding, field_of_view, look_at
from flare.reports.cases.organs import (
    faults,
    means_words,
    notes,
    organ_table,
    scores_text,
    slices_figure,
)
from flare.reports.cases.pictures import (
    BANDS,
    Image,
    all_surfels,
    plane_pictures,
    surface_pictures,
    thumbnail,
    view,
    volume,
)
from flare.reports.cases.planes import FRONT, PLANES
from flare.reports.cases.sources import (
    CaseFiles,
    Folders,
    ct_backgrounds,
    find_case_files,
    read_case,
)
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Cell,
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

WORST = 20
"""So many cases get a page if nothing is said."""

OnDrawn = Callable[[int, int, str], None]
"""Called after each page with its number, from 1, the number of pages, and the case."""

FOLDER = "cases"
"""Below the folder of a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHead:
    """Where a page stands among the others."""

    challenge: str
    evaluation: str
    """What its evaluation is called."""
    case: str
    file: str
    scores: str
    """The means of the case, in words."""
    before: str = ""
    """The file of the harder case."""
    after: str = ""
    """The file of the next one."""


def case_page(
    head: CaseHead,
    found: CaseFinding,
    images: list[Image],
    backgrounds: tuple[str, ...] = (),
) -> Page:
    """The page of a case that was scored.

    Parameters
    ----------
    head : CaseHead
        Where it stands.
    found : CaseFinding
        What was found.
    images : list of ndarray
        Its surfaces from three sides; none if there is no organ.
    backgrounds : tuple of str, optional
        The CT of the worst slice of each plane, as data URIs.
    """
    lines, told = faults(found), notes(found)
    organs: list[Part] = [organ_table(found), *([Lines(told)] if told else [])]
    if lines[FAULTS:]:
        organs += [Heading("More that is wrong"), Lines(lines[FAULTS:])]
        lines = [*lines[:FAULTS], f"and {len(lines) - FAULTS} more, below the organs"]
    means = Words(means_words(found))
    if found.is_blank:
        why = Words("Neither label map has any organ: there is nothing to draw.")
        return _page(
            head, [means, why], [Section("organs", "Organs", "Organs", organs)]
        )
    field, layers = field_of_view(found), ["reference", "prediction", "errors", "names"]
    stage = _macro(
        "stage",
        planes=plane_pictures(found, field, backgrounds),
        layers=[*layers, "CT"] if backgrounds else layers,
        volume=volume(found, field),
    )
    surfaces = _macro(
        "surfaces", pictures=surface_pictures(found, field, images), bands=BANDS
    )
    wrong: list[Part] = [Lines(lines), stage, Words(WORST_NOTE, "note")]
    seen: list[Part] = [surfaces, Words(SURFACES_NOTE, "note")]
    sections = [
        Section("wrong", "What is wrong", "What is wrong", wrong),
        Section("organs", "Organs", "Organs", organs),
        Section("slices", "All slices", "All slices", [slices_figure(found)]),
        Section("surfaces", "Surfaces", "Surfaces", seen),
    ]
    return _page(head, [means], sections)


def _macro(name: str, **content: Any) -> Part:
    """A part that only pages of cases have."""
    return macro_html("case.html", name, **content)


def _page(head: CaseHead, notes: list[Part], sections: list[Section]) -> Page:
    """A page with what there is to show."""
    return Page(
        title=f"Case {safe(head.case)}: {head.evaluation}",
        kicker=head.challenge,
        audience_note=ORGANISERS_NOTE,
        lead=[_macro("back", before=head.before, after=head.after), *notes],
        sections=sections,
    )


def case_html(page: Page) -> str:
    """A page of a case, or their index, as HTML."""
    scripts = ["viewer.js"] if len(page.sections) > 1 else []  # else it has no pictures
    return page_html(page, *scripts, style=template_text("case.css"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the index tells of a case."""

    head: CaseHead
    name: Cell
    words: str
    thumbnail: Markup | None = None


def index_page(challenge: str, evaluation: str, cards: list[Card], total: int) -> Page:
    """The index of the pages of cases.

    Parameters
    ----------
    challenge, evaluation : str
        What they are called.
    cards : list of Card
        Of the cases that have a page, the hardest first.
    total : int
        How many cases there are.
    """
    note = f"{len(cards)} of {count(total, 'case')}, those with the lowest DSC."
    if len(cards) == total:
        note = f"All {count(total, 'case')}." if total > 1 else "The only case."
    words = Words(
        f"{note} A small picture is the surface seen from the front: what is not grey"
        " is what NSD counts as missed."
    )
    shown = _macro("cards", found=cards)
    return Page(
        title=f"What is wrong in the hardest cases: {evaluation}",
        kicker=challenge,
        audience_note=ORGANISERS_NOTE,
        lead=[_macro("to_evaluation"), words],
        sections=[Section("cases", "Cases", "The hardest first", [shown])],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePages:
    """What is asked for."""

    folders: Folders
    worst: int = WORST
    """How many cases, the hardest first; 0 for all."""
    on_drawn: OnDrawn | None = None


def case_links(found: EvaluationFile, pages: CasePages) -> dict[str, str]:
    """The files of the cases that get a page, the hardest first, below the report."""
    scores = scores_of(found)
    order = [scores.cases[number] for number in scores.worst_first]
    drawn = order[: pages.worst] if pages.worst else order
    names = file_names(drawn, taken=["index"])
    return {case: f"{FOLDER}/{name}.html" for case, name in names.items()}


def case_pages(
    metrics: Path, found: EvaluationFile, pages: CasePages
) -> Iterator[tuple[str, Page]]:
    """The pages of the hardest cases, and their index, each with its file.

    Raises
    ------
    MetricsFileError
        If the label maps are not those that were scored.
    OrganiserError, SubmissionError, HostError
        If one cannot be read.
    """
    links = case_links(found, pages)
    cases = tuple(links)
    files = find_case_files(metrics, found, pages.folders, cases)
    memory = ReusedMemory()
    cards = []
    (name,) = evaluation_names([metrics])
    for number, head in enumerate(_places(found, name, links)):
        page, own = _drawn(head, found, files, memory)
        yield f"{FOLDER}/{head.file}", page
        cards.append(own)
        if pages.on_drawn:
            pages.on_drawn(number + 1, len(cases), head.case)
    yield (
        f"{FOLDER}/index.html",
        index_page(_challenge(found), name, cards, len(found.scores.cases)),
    )


def _challenge(found: EvaluationFile) -> str:
    """What the challenge is called."""
    return challenge_title(found.scores.evaluation.challenge)


def _places(
    found: EvaluationFile, name: str, links: Mapping[str, str]
) -> Iterator[CaseHead]:
    """Where each page stands."""
    files = ["", *(file.removeprefix(f"{FOLDER}/") for file in links.values()), ""]
    values = found.scores.values
    for case, before, file, after in zip(
        links, files, files[1:], files[2:], strict=False
    ):
        yield CaseHead(
            challenge=_challenge(found),
            evaluation=name,
            case=case,
            file=file,
            scores=scores_text({m: v for (c, m), v in values.items() if c == case}),
            before=before,
            after=after,
        )


def _drawn(
    head: CaseHead,
    found: EvaluationFile,
    files: CaseFiles,
    memory: ReusedMemory,
) -> tuple[Page, Card]:
    """The page of a case, and its card in the index."""
    case = head.case
    card = Card(head=head, name=name_cell(case), words="")
    why = found.scores.failed.get(case)
    if why is not None:
        failure = Words(f"Not scored: {printable(why)}", "banner")
        return _page(head, [failure], []), replace(card, words=safe(why))
    values = {m: v for (c, m), v in found.scores.values.items() if c == case}
    maps = read_case(files, case, values, memory)
    seen = look_at(case, *maps, files.challenge, values)
    first, *others = faults(seen)
    more = f" (and {len(others)} more)" if others else ""
    card = replace(card, words=f"{safe(first)}{more}")
    if seen.is_blank:
        return case_page(head, seen, []), card
    surfels = all_surfels(seen)
    images = [view(surfels, plane, seen.spacing) for plane in PLANES]
    lengths = tuple(
        surfels.shape[axis] * seen.spacing[axis] for axis in (FRONT.down, FRONT.right)
    )
    picture = thumbnail(images[PLANES.index(FRONT)], (lengths[0], lengths[1]))
    backgrounds: tuple[str, ...] = ()
    if files.images:
        grid, field = maps[0].grid, field_of_view(seen)
        ct = files.images[case]
        backgrounds = ct_backgrounds(ct, grid, files.challenge, seen, field)
    page = case_page(head, seen, images, backgrounds)
    return page, replace(card, thumbnail=picture)
