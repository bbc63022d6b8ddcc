"""JSON with line breaks: as Python's own module writes it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare.common.json_text import indented

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
)


@given(VALUES)
def test_the_same_text_as_json_dumps(value):
    assert indented(value) == json.dumps(value, indent=2)


@pytest.mark.parametrize("value", [math.nan, {"a": math.inf}, [[-math.inf]]])
def test_a_number_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented(value)
