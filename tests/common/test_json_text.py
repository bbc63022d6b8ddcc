"""JSON with line breaks: as Python's own module writes it."""

import json
import math
import random

import pytest

from flare.common.json_text import indented


def anything(chance, depth):
    """A value of any kind that a ranking.json may hold."""
    kind = chance.randrange(9 if depth else 7)
    if kind == 7:
        return [anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 8:
        names = chance.sample(["a", "b,\n", '"', "\u00e9", "x: {}", ""], k=3)
        return {n: anything(chance, depth - 1) for n in names[: chance.randrange(4)]}
    some = ("", 'a,\n"b": [] \\', "\u00e9\ud800", None, True, 17, 0.1 + 0.2)
    return some[kind]


@pytest.mark.parametrize("seed", range(300))
def test_the_same_text_as_json_dumps(seed):
    value = anything(random.Random(seed), 5)

    assert indented(value) == json.dumps(value, indent=2)


@pytest.mark.parametrize("value", [math.nan, {"a": math.inf}, [[-math.inf]]])
def test_a_number_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(value)
