"""Makes the pages of cases, one case at a time, so that memory stays what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from flare.challenge.metrics import lesions_by
from flare.common.files import file_names
from flare.common.text import count, safe
from flare.evaluation.submission.unpack import label_maps_folder
from flare.reports.cases.drawing import Picture
from flare.reports.cases.findings import CaseFinding, Mending
from flare.reports.cases.lesions import lesion_parts
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.cases.pictures import (
    axial_picture,
    band_key,
    layers,
    mending_pictures,
    plane_pictures,
    surface_pictures,
    surface_views,
    volume,
)
from flare.reports.cases.sources import (
    CaseFiles,
    ct_backgrounds,
    find_case_files,
    find_out,
)
from flare.reports.cases.words import (
    WEAK_LOSS,
    Fault,
    dsc_chips,
    means_words,
    notes,
    ordered_faults,
    organ_table,
    scores_text,
    worst_words,
)
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import Heading, Lines, Page, Part, Section, Words
from flare.reports.render.html import macro_html, page_html, template_text
from flare.reports.scores import (
    CaseScores,
    challenge_title,
    evaluation_names,
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
    " what is nearest to the eye."
)
MISSED_NOTE = " What is not grey is what NSD counts as missed."

NUMBERS_NOTE = (
    "Lesions of the reference, found or missed, are numbered together, false ones by"
    " themselves, the largest first. Each leads to the slices that hold most of it."
)

MENDED_NOTE = "The worst axial slice. flare doctor --fix FOLDER mends all predictions."

MENDED = "What was done to it"

FAULTS = 8
"""How many lines on what is wrong stand beside the pictures, the others below."""

_REMEDY = "Give the folder of the predictions, or their zip."

FOLDER = "cases"
"""The folder of these pages, below that of a report."""


class CasePage(NamedTuple):
    """The page of a case, and what its card in the index has; the index has no case."""

    page: Page
    words: str = ""
    """The fault that weighs most."""
    kinds: Sequence[str] = ()
    """The kinds of its faults, each once."""
    picture: Picture | None = None
    chips: Sequence[tuple[str, str]] = ()
    """The organs that are low, each behind the class of its shade."""
    cause: str = ""
    """What was done to the prediction as a whole."""
    file: str = f"{FOLDER}/index.html"
    case: str = ""
    scores: str = ""


def case_links(results: EvaluationFile, options: CaseOptions) -> dict[str, str]:
    """The files of the cases that get a page, the hardest first, below the report."""
    scores = scores_of(results)
    order = [scores.cases[number] for number in scores.worst_first]
    drawn = order[: options.worst or None]
    names = file_names(drawn, reserved=["index"])
    return {case: f"{FOLDER}/{name}.html" for case, name in names.items()}


def case_pages(
    metrics: Path,
    results: EvaluationFile,
    options: CaseOptions,
    on_drawn: OnDrawn | None = None,
) -> Iterator[CasePage]:
    """The pages of the hardest cases, and their index.

    A MetricsFileError is raised if the label maps are not those that were scored;
    errors of reading if one cannot be read.
    """
    links = case_links(results, options)
    titles = lesions_by(results.lesions)
    with titles, label_maps_folder(options.predictions, _REMEDY) as predictions:
        files = find_case_files(metrics, results, options, predictions, tuple(links))
        yield from _pages(results, files, links, on_drawn)


def _pages(
    results: EvaluationFile,
    files: CaseFiles,
    links: Mapping[str, str],
    on_drawn: OnDrawn | None,
) -> Iterator[CasePage]:
    """Read and draw one case after the other; last comes the index."""
    (evaluation,) = evaluation_names([files.metrics])
    empty = Page(
        title="",
        kicker=challenge_title(results.evaluation),
        audience_note=ORGANISERS_NOTE,
        sections=[],
    )
    names = ["", *(Path(file).name for file in links.values()), ""]
    cards = []
    for number, (case, file) in enumerate(links.items(), start=1):
        scores = results.scores_of(case)
        why = results.failed.get(case)
        if why is None:
            drawn = _drawn(empty, (case, number), scores, files)
        else:
            lead = [Words(f"Not scored: {why}", "banner")]
            drawn = CasePage(replace(empty, lead=lead), safe(why), ("not scored",))
        back = macro_html("back", before=names[number - 1], after=names[number + 1])
        title = f"Case {case}: {evaluation}"
        page = replace(drawn.page, title=title, lead=[back, *drawn.page.lead])
        drawn = drawn._replace(file=file, case=case, scores=scores_text(scores))
        yield drawn._replace(page=page)
        cards.append(drawn._replace(page=empty))
        if on_drawn:
            on_drawn(number, len(links), case)
    yield CasePage(_index(empty, evaluation, cards, scores_of(results)))


def _index(
    empty: Page, evaluation: str, cards: Sequence[CasePage], scores: CaseScores
) -> Page:
    """The page with a card for each case that has a page, of all the cases."""
    cases = len(scores.cases)
    if len(cards) < cases:
        end = scores.worst_end
        note = f"{len(cards)} of {count(cases, 'case')}, those with the {end}."
    elif cases > 1:
        note = f"All {count(cases, 'case')}."
    else:
        note = "The only case."
    words = Words(
        f"{note} A picture is the worst axial slice; below it are the fault that weighs"
        f" most, and organs with a DSC of at most {1 - WEAK_LOSS:g}."
    )
    kinds = Counter(chain.from_iterable(map(attrgetter("kinds"), cards)))
    shown = [macro_html("cards", cards=cards, kinds=kinds)]
    return replace(
        empty,
        title=f"What is wrong in the hardest cases: {evaluation}",
        lead=[macro_html("to_index", kind="evaluation"), words],
        sections=[Section("cases", "Cases", "The hardest first", shown)],
    )


def case_html(page: Page) -> str:
    """A page of a case, or their index, as HTML."""
    # Without pictures, it is the index, or has nothing to scroll through.
    script = "viewer.js" if len(page.sections) > 1 else "filters.js"
    return page_html(page, script, style=template_text("case.css"))


def _drawn(
    empty: Page,
    case_and_number: tuple[str, int],
    scores: Mapping[str, float | None],
    files: CaseFiles,
) -> CasePage:
    """Draw a case that was scored, as submitted, and mended if that explains it."""
    case, number = case_and_number
    finding, reference, prediction = find_out(files, case, scores)
    faults, means = ordered_faults(finding), Words(means_words(finding))
    words = worst_words(faults)
    all_kinds = chain.from_iterable(map(attrgetter("kinds"), faults))
    kinds = tuple(dict.fromkeys(all_kinds))
    organs = _organ_section(finding, faults[FAULTS:])
    if finding.is_blank:
        why = Words("Neither label map has any organ: there is nothing to draw.")
        page = replace(empty, lead=[means, why], sections=[organs])
        return CasePage(page, words, kinds)
    backgrounds = ct_backgrounds(files, case, reference.grid, finding)
    pictures = surface_pictures(finding, surface_views(finding))
    surfaces: list[Part] = [
        macro_html("surfaces", pictures=pictures, bands=band_key(finding)),
        Words(SURFACES_NOTE + MISSED_NOTE * ("nsd" in finding.scores), "note"),
    ]
    sections = [
        _fault_section(finding, faults, backgrounds),
        organs,
        Section("surfaces", "Surfaces", "Surfaces", surfaces),
    ]
    lesions = list(lesion_parts(finding, reference, prediction, files.challenge))
    if lesions:
        lesions.append(Words(NUMBERS_NOTE, "note"))
        sections.insert(2, Section("lesions", "Lesions", "Lesions", lesions))
    if finding.mending:
        sections.insert(1, _mending_section(finding, finding.mending, backgrounds))
    return CasePage(
        page=replace(empty, lead=[means], sections=sections),
        words=words,
        kinds=kinds,
        picture=axial_picture(finding, f"case-{number}", *backgrounds[:1]),
        chips=dsc_chips(finding, 1 - WEAK_LOSS),
        cause=finding.mending.text if finding.mending else "",
    )


def _fault_lines(faults: Sequence[Fault]) -> Lines:
    """Lines on what is wrong; each leads to its slices in the viewer."""
    places = [" ".join(map(str, fault.place or ())) for fault in faults]
    return Lines([fault.line for fault in faults], places=places)


def _fault_section(
    finding: CaseFinding, faults: Sequence[Fault], backgrounds: Sequence[str]
) -> Section:
    """The lines on what is wrong, as many as have a place, and the stage."""
    below = len(faults) - FAULTS
    faults = faults[:FAULTS]
    if below > 0:
        faults = [*faults, Fault(0.0, f"and {below} more, below the organs")]
    stage = macro_html(
        "stage",
        planes=plane_pictures(finding, backgrounds),
        layers=layers(backgrounds),
        volume=volume(finding),
    )
    parts: list[Part] = [_fault_lines(faults), stage, Words(WORST_NOTE, "note")]
    if finding.mending:
        parts.insert(1, Words(link=MENDED, href="#mended", text=", before and after."))
    return Section("wrong", "What is wrong", "What is wrong", parts)


def _mending_section(
    finding: CaseFinding, mending: Mending, backgrounds: Sequence[str]
) -> Section:
    """The causes, the usual reasons and remedies, and a slice before and after."""
    lines = [*chain.from_iterable(map(attrgetter("lines"), mending.causes))]
    pictures = mending_pictures(finding, mending, *backgrounds[:1])
    parts: list[Part] = [
        Words(f"The prediction as a whole: {mending.text}."),
        Lines(lines),
        macro_html("planes", pictures=pictures, css="planes compared"),
        Words(MENDED_NOTE, "note"),
    ]
    return Section("mended", MENDED, MENDED, parts)


def _organ_section(finding: CaseFinding, faults: Sequence[Fault]) -> Section:
    """The table of the organs, notes, and the lines that have no place above."""
    parts: list[Part] = [organ_table(finding)]
    remarks = notes(finding)
    if remarks:
        parts.append(Lines(remarks))
    if faults:
        parts += Heading("More that is wrong"), _fault_lines(faults)
    return Section("organs", "Organs", "Organs", parts)
