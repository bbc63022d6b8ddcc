"""Gives figures the values that they tell when they are pointed at."""

from __future__ import annotations

import json
from collections.abc import Sequence

from markupsafe import Markup

from flare.common.text import safe

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What could end a script, or begin a comment in it."""


def dot_tips(
    names: Sequence[str], rows: Sequence[Sequence[float | None]], decimals: int = 3
) -> Markup:
    r"""The values of dots as JSON: a name for each column, a line for each row.

    They have no more digits than the tables of the page.

    Examples
    --------
    >>> print(dot_tips(["a", "<b>"], [[0.51234, None]]))
    {"names":["a","\u003cb\u003e"],"rows":["0.512 -"]}
    """
    lines = [
        " ".join("-" if value is None else f"{value:.{decimals}f}" for value in row)
        for row in rows
    ]
    content = {"names": list(map(safe, names)), "rows": lines}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.translate(_ESCAPED))
