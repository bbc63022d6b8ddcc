"""Whether what is drawn can be told apart, by numbers."""

import re
from itertools import pairwise

from flare.reports.cases.drawing import COLOURS, SURFACES
from flare.reports.render.html import template_text
from tests.builders.barriers import SHAPE_CONTRAST, TEXT_CONTRAST, contrast

STYLE = template_text("case.css")


def colours_of(text):
    """The colours that a part of the style sheet names."""
    return dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6})", text))


ON_FILM, ORGANS = map(
    colours_of, (line for line in STYLE.splitlines() if line.startswith(":root"))
)
FILM = ON_FILM["film"]


def test_what_is_on_film_can_be_seen():
    """A film is dark in both palettes, so this holds for both."""
    names = ("outline", "film-missed", "film-added")
    others = (ON_FILM[name] for name in names)
    for colour in (*ORGANS.values(), *others, *SURFACES):
        assert contrast(colour, FILM) >= SHAPE_CONTRAST, colour
    assert contrast(ON_FILM["letters"], FILM) >= TEXT_CONTRAST


def test_surfaces_can_be_told_apart_in_grey():
    """The farther, the darker; and as their key has them."""
    for number, colour in enumerate(SURFACES):
        assert f".far{number}{{background:{colour}}}" in STYLE
    for nearer, farther in pairwise(SURFACES):
        assert contrast(nearer, farther) >= 1.3
    on_film = [contrast(colour, FILM) for colour in SURFACES]
    assert on_film == sorted(on_film, reverse=True)


def test_organs_have_colours_of_their_own():
    assert len({*ORGANS.values()}) == len(ORGANS) == COLOURS >= 14
    assert not {*ON_FILM.values()} & {*ORGANS.values()}


def test_missed_and_added_differ_by_more_than_their_colour():
    """Lines against dots; the prediction's outline is dashed."""
    assert ".pattern-missed path{stroke:var(--film-missed);stroke-width" in STYLE
    assert "stroke-linecap:round" in STYLE.partition(".pattern-added path")[2]
    assert "stroke-dasharray" in rule(".picture .pred")


def rule(selector):
    """The declarations of a rule that stands on a line of its own."""
    return STYLE.partition(f"\n{selector}{{")[2].partition("}")[0]
