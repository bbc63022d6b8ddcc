"""What is drawn can be told apart, by numbers; paths around voxels hold them."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flare.reports.cases.drawing import COLOURS, SURFACES, outline
from flare.reports.render.html import template_text
from tests.builders.barriers import SHAPE_CONTRAST, TEXT_CONTRAST, contrast

STYLE = template_text("case.css")


def colours_of(text):
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
    return STYLE.partition(f"\n{selector}{{")[2].partition("}")[0]


def filled(path, shape):
    """The voxels inside of a path, by the rule evenodd: how often it is crossed."""
    crossings = np.zeros((shape[0], shape[1] + 1), dtype=int)
    column = row = start = 0
    for kind, first, second in re.findall(r"([Mhvz])(-?\d+)?(?: (\d+))?", path):
        if kind == "M":
            column, row = int(first), int(second)
            start = row
        elif kind == "h":
            column += int(first)
        else:
            after = row + int(first) if kind == "v" else start
            crossings[min(row, after) : max(row, after), column] += 1
            row = after
    return (crossings.cumsum(axis=1) % 2 == 1)[:, :-1]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_filled_it_is_the_mask_again(seed, share):
    mask = np.random.default_rng(seed).random((7, 9)) < share

    assert np.array_equal(filled(outline(mask), mask.shape), mask)
