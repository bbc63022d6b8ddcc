"""Makes the page of one case, and the page that leads to the pages of cases."""

from __future__ import annotations

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
from flare.reports.cases.slices import plane_pictures, volume
from flare.reports.cases.views import BANDS_MM, Image, surface_pictures
from flare.reports.pages.evaluation import ORGANISERS_NOTE
from flare.reports.pages.page import page_html, template_text
from flare.reports.pages.parts import Frame, Tile

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
    if found.is_blank:
        return _page(
            head,
            sections=(("organs", "Organs"),),
            failure="Neither label map has any organ: there is nothing to draw.",
            organs=(organ_table(found), volume_table(found)),
            remarks=remarks(found),
        )
    field = field_of_view(found)
    layers = [
        ("show-ref", "reference"),
        ("show-pred", "prediction"),
        ("show-wrong", "errors"),
    ]
    if backgrounds:
        layers.append(("show-ct", "CT"))
    return _page(
        head,
        sections=(
            ("worst", "Where it is worst"),
            ("surfaces", "Surfaces"),
            ("slices", "All slices"),
            ("organs", "Organs"),
        ),
        layers=layers,
        planes=plane_pictures(found, field, backgrounds),
        organ_key=organ_key(found),
        worst_note=WORST_NOTE,
        surfaces=surface_pictures(found, field, images),
        bands=_bands(),
        surfaces_note=SURFACES_NOTE,
        slices=slices_figure(found),
        organs=(organ_table(found), volume_table(found)),
        remarks=remarks(found),
        volume=volume(found, field),
    )


def failed_html(head: CaseHead, why: str) -> str:
    """The page of a case that was not scored, or has nothing to be drawn."""
    return _page(head, sections=(), failure=f"Not scored: {printable(why)}")


def _bands() -> list[tuple[str, str]]:
    """What the colours of surfaces mean."""
    first, second = (f"{distance:g} mm" for distance in BANDS_MM)
    return [
        ("far0", "within the tolerance of the organ"),
        ("far1", f"beyond it, up to {first}"),
        ("far2", f"{first} to {second}"),
        ("far3", f"farther than {second}, or nothing to be near to"),
    ]


def _page(
    head: CaseHead, *, sections: tuple[tuple[str, str], ...], **content: Any
) -> str:
    """A page with what there is to show."""
    parts = ("failure", "planes", "slices", "organs", "remarks", "surfaces", "volume")
    shown: dict[str, Any] = dict.fromkeys(parts)
    tiles = [
        Tile(name=name, value=f"{score:.3f}", exact=repr(score), note="mean of organs")
        for name, score in (("DSC", head.dsc), ("NSD", head.nsd))
    ]
    shown |= {"tiles": tiles, "before": head.before, "after": head.after}
    shown["page"] = Frame(
        title=f"Case {safe(head.case)}",
        kicker=head.challenge,
        sections=sections,
        audience_note=ORGANISERS_NOTE,
    )
    style = film_style() + template_text("case.css")
    scripts = ("viewer.js",) if content.get("volume") else ()
    return page_html("case.html", *scripts, own_style=style, **shown | content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What the index tells of a case."""

    file: str
    name: str
    full: str
    """The whole name, where it was shortened."""
    scores: str
    words: str
    thumbnail: Markup | None


def card(head: CaseHead, words: str, thumbnail: Markup | None = None) -> Card:
    """What the index tells of a case."""
    short, full = safe(head.case), printable(head.case)
    return Card(
        file=head.file,
        name=short,
        full="" if short == full else full,
        scores=f"DSC {head.dsc:.3f}, NSD {head.nsd:.3f}",
        words=safe(words),
        thumbnail=thumbnail,
    )


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
    return page_html(
        "cases.html",
        own_style=film_style() + template_text("case.css"),
        page=Frame(
            title="What is wrong in the hardest cases",
            kicker=challenge,
            sections=(),
            audience_note=ORGANISERS_NOTE,
        ),
        note=f"{note} A small picture is the surface seen from the front: what is not"
        " grey is what NSD counts as missed.",
        cards=cards,
    )
