"""Makes the page of one case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flare.common.text import printable, safe
from flare.reports.cases.colours import film_style
from flare.reports.cases.findings import CaseFinding
from flare.reports.cases.frames import frame_of
from flare.reports.cases.organ_table import organ_key, organ_table, volume_table
from flare.reports.cases.planes import plane_pictures
from flare.reports.cases.slices import slices_figure
from flare.reports.cases.views import BANDS_MM, Image, surface_pictures
from flare.reports.cases.volume import volume
from flare.reports.cases.words import remarks
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
class Place:
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
    place: Place,
    found: CaseFinding,
    images: list[Image],
    backgrounds: tuple[str, ...] = (),
) -> str:
    """The page of a case that was scored.

    Parameters
    ----------
    place : Place
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
            place,
            sections=(("organs", "Organs"),),
            failure="Neither label map has any organ: there is nothing to draw.",
            organs=(organ_table(found), volume_table(found)),
            remarks=remarks(found),
        )
    frame = frame_of(found)
    layers = [
        ("show-ref", "reference"),
        ("show-pred", "prediction"),
        ("show-wrong", "errors"),
    ]
    if backgrounds:
        layers.append(("show-ct", "CT"))
    return _page(
        place,
        sections=(
            ("worst", "Where it is worst"),
            ("surfaces", "Surfaces"),
            ("slices", "All slices"),
            ("organs", "Organs"),
        ),
        layers=layers,
        planes=plane_pictures(found, frame, backgrounds),
        organ_key=organ_key(found),
        worst_note=WORST_NOTE,
        surfaces=surface_pictures(found, frame, images),
        bands=_bands(),
        surfaces_note=SURFACES_NOTE,
        slices=slices_figure(found),
        organs=(organ_table(found), volume_table(found)),
        remarks=remarks(found),
        volume=volume(found, frame),
    )


def failed_html(place: Place, why: str) -> str:
    """The page of a case that was not scored, or has nothing to be drawn."""
    return _page(place, sections=(), failure=f"Not scored: {printable(why)}")


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
    place: Place, *, sections: tuple[tuple[str, str], ...], **content: Any
) -> str:
    """A page with what there is to show."""
    parts = ("failure", "planes", "slices", "organs", "remarks", "surfaces", "volume")
    shown: dict[str, Any] = dict.fromkeys(parts)
    tiles = [
        Tile(name=name, value=f"{score:.3f}", exact=repr(score), note="mean of organs")
        for name, score in (("DSC", place.dsc), ("NSD", place.nsd))
    ]
    shown |= {"tiles": tiles, "before": place.before, "after": place.after}
    shown["page"] = Frame(
        title=f"Case {safe(place.case)}",
        kicker=place.challenge,
        sections=sections,
        audience_note=ORGANISERS_NOTE,
    )
    style = film_style() + template_text("case.css")
    scripts = ("viewer.js",) if content.get("volume") else ()
    return page_html("case.html", *scripts, own_style=style, **shown | content)
