"""Whether what is drawn can be told apart, by numbers, in both palettes."""

from itertools import pairwise

import pytest

from flare.reports.cases.drawing import (
    ADDED,
    FILM,
    LETTERS,
    MISSED,
    ON_PAPER,
    ORGANS,
    PREDICTION,
    SURFACES,
    film_style,
)
from flare.reports.render.html import template_text
from flare.reports.render.style import (
    DARK,
    LIGHT,
)
from tests.builders.barriers import SHAPE_CONTRAST, TEXT_CONTRAST, contrast

PALETTES = pytest.mark.parametrize(
    ("name", "palette"), [("light", LIGHT), ("dark", DARK)], ids=["light", "dark"]
)


def test_what_is_on_film_can_be_seen():
    """A film is dark in both palettes, so this holds for both."""
    for colour in (*ORGANS, PREDICTION, MISSED, ADDED, *SURFACES):
        assert contrast(colour, FILM) >= SHAPE_CONTRAST, colour


def test_letters_on_film_can_be_read():
    assert contrast(LETTERS, FILM) >= TEXT_CONTRAST


@PALETTES
def test_marks_on_paper_can_be_seen(name, palette):
    for colour in ON_PAPER[name].values():
        assert contrast(colour, palette["paper"]) >= SHAPE_CONTRAST


def test_surfaces_can_be_told_apart_in_grey():
    """The farther, the darker."""
    for nearer, farther in pairwise(SURFACES):
        assert contrast(nearer, farther) >= 1.3
    on_film = [contrast(colour, FILM) for colour in SURFACES]
    assert on_film == sorted(on_film, reverse=True)


def test_organs_have_colours_of_their_own():
    assert len(set(ORGANS)) == len(ORGANS) >= 14
    assert not {MISSED, ADDED, PREDICTION} & set(ORGANS)


def test_missed_and_added_differ_by_more_than_their_colour():
    """Lines against dots, on film and on paper; the prediction's outline is dashed."""
    style = template_text("case.css")

    assert ".pattern-missed path{stroke:var(--film-missed);stroke-width" in style
    assert "stroke-linecap:round" in style.partition(".pattern-added path")[2]
    assert "stroke-dasharray" in rule(style, ".mark-added")
    assert "dasharray" not in rule(style, ".mark-missed")
    assert "stroke-dasharray" in rule(style, ".picture .pred")


def rule(style, selector):
    """The declarations of a rule that stands on a line of its own."""
    return style.partition(f"\n{selector}{{")[2].partition("}")[0]


def test_every_colour_of_the_style_is_there():
    for colour in (FILM, MISSED, ADDED, *ORGANS, *SURFACES):
        assert colour in film_style()
