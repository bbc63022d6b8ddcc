"""Makes the page of one case, and the page that leads to the pages of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from flare.common.text import count, printable, safe
from flare.reports.cases.drawing import film_style
from flare.reports.cases.findings import CaseFinding, field_of_view
from flare.reports.cases.organs import (
    organ_key,
    organ_table,
    remarks,
    slices_figure,
    volume_table,
)
from flare.reports.cases.pictures import (
    BANDS,
    Image,
    plane_pictures,
    surface_pictures,
    volume,
)
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Cell,
    Lines,
    Page,
    Part,
    Section,
    Tile,
    Words,
    name_cell,
)
from flare.reports.render.html import macro_html, page_html, template_text

WORST_NOTE = (
    "In each plane, the slice in which errors weigh the most: every wrong voxel by its"
    " distance from the surface, of which up to 10 mm count. Slices are counted from"
    " the feet, the front, and the patient's right. The three planes are drawn to one"
    " scale; the patient's right is on the left."
)

SURFACES_NOTE = (
    "Both surfaces of all organs, the reference's and the prediction's, and of both"
    " what is nearest to the eye. What is not grey is what NSD counts as missed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHead:
    """Where a page stands among the others."""

    challenge: str
    case: str
    file: str
    dsc: float
    nsd: float
    before: str = ""
    """The file of the harder case."""
    after: str = ""
    """The file of the next one."""


def case_html(
    head: CaseHead,
    found: CaseFinding,
    images: list[Image],
    backgrounds: tuple[str, ...] = (),
) -> str:
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
    lines = remarks(found)
    told = [Lines(lines)] if lines else []
    organs = [
        Section(
            "organs",
            "Organs",
            "Organs",
            [organ_table(found), volume_table(found), *told],
        )
    ]
    if found.is_blank:
        why = "Neither label map has any organ: there is nothing to draw."
        return _page(head, organs, failure=why)
    field = field_of_view(found)
    layers = [
        ("show-ref", "reference"),
        ("show-pred", "prediction"),
        ("show-wrong", "errors"),
    ]
    if backgrounds:
        layers.append(("show-ct", "CT"))
    worst = _macro(
        "worst",
        layers=layers,
        planes=plane_pictures(found, field, backgrounds),
        organ_key=organ_key(found),
    )
    surfaces = _macro(
        "surfaces", pictures=surface_pictures(found, field, images), bands=BANDS
    )
    sections = [
        Section(
            "worst",
            "Where it is worst",
            "Where it is worst",
            [worst, Words(WORST_NOTE, "note")],
        ),
        Section(
            "surfaces",
            "Surfaces",
            "Surfaces",
            [surfaces, Words(SURFACES_NOTE, "note")],
        ),
        Section("slices", "All slices", "All slices", [slices_figure(found)]),
        *organs,
    ]
    packed = volume(found, field)
    if packed is None:
        return _page(head, sections)
    viewer = _macro("viewer", volume=packed)
    return _page(head, sections, "viewer.js", tail=[viewer])


def failed_html(head: CaseHead, why: str) -> str:
    """The page of a case that was not scored, or has nothing to be drawn."""
    return _page(head, [], failure=f"Not scored: {printable(why)}")


def _macro(name: str, **content: Any) -> Part:
    """A part that only pages of cases have."""
    return macro_html("case.html", name, **content)


def _page(
    head: CaseHead,
    sections: list[Section],
    *scripts: str,
    failure: str = "",
    tail: Sequence[Part] = (),
) -> str:
    """A page with what there is to show."""
    page = Page(
        title=f"Case {safe(head.case)}",
        kicker=head.challenge,
        audience_note=ORGANISERS_NOTE,
        lead=[_macro("back", before=head.before, after=head.after)],
        tiles=[
            Tile(name=name, value=f"{v:.3f}", exact=repr(v), note="mean of organs")
            for name, v in (("DSC", head.dsc), ("NSD", head.nsd))
        ],
        notes=[Words(failure, "banner")] if failure else [],
        sections=sections,
        tail=tail,
    )
    return page_html(page, *scripts, style=film_style() + template_text("case.css"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the index tells of a case."""

    head: CaseHead
    words: str
    thumbnail: Markup | None = None

    @property
    def name(self) -> Cell:
        """The name of the case."""
        return name_cell(self.head.case)

    @property
    def scores(self) -> str:
        """The scores of the case."""
        return f"DSC {self.head.dsc:.3f}, NSD {self.head.nsd:.3f}"


def cases_html(challenge: str, cards: list[Card], total: int) -> str:
    """The index of the pages of cases.

    Parameters
    ----------
    challenge : str
        Its name.
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
    page = Page(
        title="What is wrong in the hardest cases",
        kicker=challenge,
        audience_note=ORGANISERS_NOTE,
        lead=[_macro("to_evaluation"), words],
        sections=(),
        tail=[_macro("cards", found=cards)],
    )
    return page_html(page, style=film_style() + template_text("case.css"))
