"""Reads JSON files, if all readers would read the same in them."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from flare.common.text import safe
from flare.measuring.archive.budget import BrokenError

SENSELESS = "its manifest, or its configuration, makes no sense"


def strict_json(content: bytes) -> Any:
    """What a small file holds; None if that is no JSON.

    Raises
    ------
    BrokenError
        If it has a number, or a key, that only some readers understand.
    """
    try:
        return json.loads(content, object_pairs_hook=_table, parse_constant=_constant)
    except (ValueError, RecursionError):
        return None


def _constant(name: str) -> NoReturn:
    """Refuse NaN and its like, which Python reads and engines do not."""
    raise BrokenError(f"its manifest, or its configuration, has {name} for a number")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys nobody can read in two ways."""
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BrokenError(
            f"its manifest, or its configuration, has {safe(twice)} twice"
        )
    return table


def fields_of(value: Any, *names: str) -> dict[str, Any]:
    """A JSON object with such fields: an engine would ignore capitals, and take any."""
    if not isinstance(value, dict):
        raise BrokenError(SENSELESS)
    folded = {name.casefold(): name for name in names}
    for key in value:
        name = folded.get(key.casefold(), key)
        if key != name:
            text = f"its manifest, or its configuration, has {safe(key)}"
            text += " twice" if name in value else f" in the place of {name}"
            raise BrokenError(text)
    return value
