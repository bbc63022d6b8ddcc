"""Which of many alike cases run with the fast tests; the others are slow."""

import pytest


def few_fast(values, *, fast):
    """The values of a parameter, of which only those at the places `fast` are fast."""
    values = list(values)
    places = {range(len(values))[place] for place in fast}
    return [
        pytest.param(value, marks=[] if place in places else pytest.mark.slow)
        for place, value in enumerate(values)
    ]
