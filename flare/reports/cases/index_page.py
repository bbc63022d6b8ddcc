"""Makes the page that leads to the pages of cases."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from flare.common.text import count, printable, safe
from flare.reports.cases.case_page import Place
from flare.reports.cases.colours import film_style
from flare.reports.pages.evaluation import ORGANISERS_NOTE
from flare.reports.pages.page import page_html, template_text
from flare.reports.pages.parts import Frame


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


def card(place: Place, words: str, thumbnail: Markup | None = None) -> Card:
    """What the index tells of a case."""
    short, full = safe(place.case), printable(place.case)
    return Card(
        file=place.file,
        name=short,
        full="" if short == full else full,
        scores=f"DSC {place.dsc:.3f}, NSD {place.nsd:.3f}",
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
