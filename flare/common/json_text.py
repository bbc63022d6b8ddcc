"""Writes JSON for people, and reads what of it can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from flare.common.files import read_regular

_INDENT = "  "


def indented(content: Any) -> str:
    r"""What ``json.dumps(content, indent=2, allow_nan=False)`` returns.

    With line breaks, Python's module encodes each value by itself, in Python. Here, an
    object or a list that holds no other one is encoded at once, in C.

    Parameters
    ----------
    content : object
        Of dictionaries whose keys are texts, lists, texts, numbers, truths and None; no
        tuples.

    Raises
    ------
    ValueError
        If a number is not finite.

    Examples
    --------
    >>> print(indented({"pairs": [{"p": 0.5, "zeros": 1}], "flags": []}))
    {
      "pairs": [
        {
          "p": 0.5,
          "zeros": 1
        }
      ],
      "flags": []
    }
    """
    return "".join(_parts(content, "\n"))


def _parts(value: Any, line: str) -> Iterator[str]:
    """A value in parts; what is in it begins with a deeper line than it does itself."""
    if not value or not isinstance(value, dict | list):
        yield _encoder("").encode(value)
        return
    inner = line + _INDENT
    items = value.values() if isinstance(value, dict) else value
    if not any(isinstance(item, dict | list) for item in items):
        text = _encoder(inner).encode(value)
        yield f"{text[0]}{inner}{text[1:-1]}{line}{text[-1]}"
        return
    is_object = isinstance(value, dict)
    yield "{" if is_object else "["
    for number, item in enumerate(value):
        yield f",{inner}" if number else inner
        if is_object:
            yield f"{_encoder('').encode(item)}: "
        yield from _parts(value[item] if is_object else item, inner)
    yield f"{line}{'}' if is_object else ']'}"


@cache
def _encoder(line: str) -> json.JSONEncoder:
    """Encodes what holds no other object, each member after this line break."""
    return json.JSONEncoder(allow_nan=False, separators=(f",{line}", ": "))


def json_at(file: Path, *keys: str | int) -> Any:
    """What a JSON file has at some keys; None, whatever is wrong with the file."""
    try:
        return at(json.loads(read_regular(file)), *keys)
    except (OSError, ValueError, RecursionError):
        return None


def at(content: Any, *keys: str | int) -> Any:
    """What JSON that any program may have written has at some keys; None for nothing.

    Examples
    --------
    >>> at({"sessions": [{"gpu": "A100"}]}, "sessions", -1, "gpu")
    'A100'
    >>> print(at(["gpu"], "sessions"), at({"sessions": []}, "sessions", 0))
    None None
    """
    for key in keys:
        try:
            content = content[key]
        except (KeyError, TypeError, IndexError):
            return None
    return content
