"""Whether colours can be told apart, by numbers: no program can do so in a drawing."""

from itertools import combinations, pairwise

import pytest

from flare.reports.measuring import SHADES
from flare.reports.render.style import BOX, DARK, DOT, EFFECT_SHADES, INK, LIGHT
from tests.builders.barriers import (
    SHAPE_CONTRAST,
    TEXT_CONTRAST,
    contrast,
    luminance,
)

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def numbered(palette, letter):
    """The shades, or the gains, of a palette, with their numbers."""
    names = (name for name in palette if name[0] == letter and name[1:].isdigit())
    return [(palette[name], name[1:]) for name in names]


def test_contrast_is_that_of_the_standard():
    """By hand, for #777777 on white: 1.05 / (0.1845 + 0.05) = 4.478."""
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@PALETTES
def test_texts_can_be_read(palette):
    for text in (palette["ink"], palette["quiet"], palette["mark"], palette["alarm"]):
        for behind in (palette["paper"], palette["panel"]):
            assert contrast(text, behind) >= TEXT_CONTRAST
    for text, behind in (("t", "s"), ("u", "g")):
        for colour, number in numbered(palette, behind):
            assert contrast(palette[f"{text}{number}"], colour) >= TEXT_CONTRAST


@PALETTES
def test_dots_and_lines_can_be_seen(palette):
    assert contrast(palette["mark"], palette["paper"]) >= SHAPE_CONTRAST
    assert contrast(palette["ink"], palette["soft"]) >= SHAPE_CONTRAST
    assert contrast(palette["quiet"], palette["paper"]) >= SHAPE_CONTRAST


@PALETTES
def test_shades_can_be_told_apart_in_grey(palette):
    """Each is farther from the paper than the one before, by a step that is seen."""
    scores = [colour for colour, _ in numbered(palette, "s")]
    gains = [colour for colour, _ in numbered(palette, "g")]
    for shades in (scores, [palette["paper"], *gains]):
        for nearer, farther in pairwise(shades):
            step = contrast(nearer, farther)
            assert step >= 1.15, (nearer, farther)
            distances = [
                abs(luminance(c) - luminance(palette["paper"]))
                for c in (nearer, farther)
            ]
            assert distances[0] < distances[1]


@PALETTES
def test_states_of_cases_can_be_told_apart_in_grey(palette):
    """On the page of a measurement: done, running, and four that are looked at."""
    shades = [palette[css] for css in SHADES]

    for one, other in combinations([palette["soft"], palette["mark"], *shades], 2):
        assert contrast(one, other) >= 1.15, (one, other)


# --- Figures for papers -----------------------------------------------------------


@pytest.mark.parametrize(
    "shades",
    [[colour for colour, _ in numbered(LIGHT, "s")], EFFECT_SHADES],
    ids=["scores", "effects"],
)
def test_shades_are_told_apart_in_grey(shades):
    """Each is darker than the last; neighbours differ as what has to be seen must."""
    grey = [luminance(shade) for shade in shades]

    assert grey == sorted(grey, reverse=True)
    for lighter, darker in pairwise(shades):
        assert contrast(lighter, darker) >= 1.15


def test_dots_boxes_and_lines_are_told_apart_in_grey():
    assert contrast(DOT, "#ffffff") >= 3
    assert contrast(INK, BOX) >= 4.5
    assert contrast(DOT, BOX) >= 3
