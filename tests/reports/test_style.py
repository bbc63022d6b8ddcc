"""Whether colours can be told apart, by numbers: no program can do so in a drawing."""

from itertools import combinations, pairwise

import pytest

from flare.reports.measuring import SHADES
from flare.reports.render.style import BOX, DARK, DOT, EFFECT_SHADES, INK, LIGHT
from tests.builders.barriers import SHAPE_CONTRAST, TEXT_CONTRAST, contrast, luminance

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def numbered(palette, letter):
    """The shades, or the gains, of a palette, with their numbers."""
    names = (name for name in palette if name[0] == letter and name[1:].isdigit())
    return [(palette[name], name[1:]) for name in names]


@PALETTES
def test_texts_dots_and_lines_can_be_seen(palette):
    for text in (palette["ink"], palette["quiet"], palette["mark"], palette["alarm"]):
        for behind in (palette["paper"], palette["panel"]):
            assert contrast(text, behind) >= TEXT_CONTRAST
    for text, behind in (("t", "s"), ("u", "g")):
        for colour, number in numbered(palette, behind):
            assert contrast(palette[f"{text}{number}"], colour) >= TEXT_CONTRAST
    for shape, behind in (("mark", "paper"), ("ink", "soft"), ("quiet", "paper")):
        assert contrast(palette[shape], palette[behind]) >= SHAPE_CONTRAST
    # On paper; and, by hand, #777777 on white is 1.05 / (0.1845 + 0.05) = 4.478.
    assert min(contrast(DOT, "#ffffff"), contrast(DOT, BOX)) >= SHAPE_CONTRAST
    assert contrast(INK, BOX) >= TEXT_CONTRAST
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@PALETTES
def test_shades_can_be_told_apart_in_grey(palette):
    """Each is farther from the paper than the one before, by a step that is seen.

    And states of cases on the page of a measurement: done, running, and four others.
    """
    scores = [colour for colour, _ in numbered(palette, "s")]
    gains = [colour for colour, _ in numbered(palette, "g")]
    states = [palette["soft"], palette["mark"], *(palette[css] for css in SHADES)]
    for one, other in combinations(states, 2):
        assert contrast(one, other) >= 1.15, (one, other)
    for shades in (scores, [palette["paper"], *gains], ["#ffffff", *EFFECT_SHADES]):
        for nearer, farther in pairwise(shades):
            step = contrast(nearer, farther)
            assert step >= 1.15, (nearer, farther)
            distances = [
                abs(luminance(c) - luminance(shades[0])) for c in (nearer, farther)
            ]
            assert distances[0] < distances[1]
