"""Builds frozen dataclasses from TOML or JSON, with errors that name the key.

A dataclass is the schema: its fields are the keys, their types the allowed values, and
their defaults the defaults. Rules of values are checked in its ``__post_init__`` with
`check`.
"""

from __future__ import annotations

import dataclasses
import functools
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from flare.common.text import alike, listing, safe

_Built = TypeVar("_Built")

_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    bool: "true or false",
}


class RuleError(ValueError):
    """A value breaks a rule of its dataclass."""


def check(holds: bool, key: str, value: object, expected: str) -> None:
    """Raise unless a rule holds; the text names key, value and what is allowed."""
    if not holds:
        text = f"{key} is {safe(repr(value))}, expected {expected}"
        raise RuleError(text)


def build(
    kind: type[_Built], values: object, *, where: str = "", **given: str
) -> _Built:
    """Build a dataclass from a TOML table.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are numbers, texts, booleans, enums, other such
        dataclasses, or tuples of these.
    values : object
        What `tomllib` or `json` made of the table.
    where : str
        Key of the table, with a full stop behind, for messages.
    **given : str
        Fields that do not come from the table.

    Raises
    ------
    ValueError
        If a key is unknown, missing or of the wrong type, or its value breaks a rule;
        the message names the key.
    """
    if not isinstance(values, dict):
        text = f"{where.rstrip('.')} is {values!r}, expected a table"
        raise ValueError(text)
    fields = {
        field.name: field
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in given
    }
    for key in values:
        if key not in fields:
            expected = f"expected {alike(key, fields) or listing(fields)}"
            text = f"{where}{safe(key)} is an unknown key, {expected}"
            raise ValueError(text)
    hints = _hints(kind)  # type: ignore[arg-type]
    arguments: dict[str, Any] = dict(given)
    for key, field in fields.items():
        if key in values:
            arguments[key] = _convert(values[key], hints[key], f"{where}{key}")
        elif field.default is dataclasses.MISSING:
            text = f"{where}{key} is missing"
            raise ValueError(text)
    try:
        return kind(**arguments)
    except RuleError as error:
        text = f"{where}{error}"
        raise ValueError(text) from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass; to find them takes a while."""
    return get_type_hints(kind)


def _convert(value: object, hint: Any, key: str) -> Any:
    """Turn a value into what a field of type `hint` holds."""
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            text = f"{key} is {value!r}, expected a list"
            raise ValueError(text)
        inner = get_args(hint)[0]
        return tuple(
            _convert(item, inner, f"{key}[{number}]")
            for number, item in enumerate(value, start=1)
        )
    if get_origin(hint) is UnionType:  # a value or None, which only JSON can write
        if value is None:
            return None
        hint = get_args(hint)[0]
    if dataclasses.is_dataclass(hint):
        return build(hint, value, where=f"{key}.")  # type: ignore[arg-type]
    if issubclass(hint, Enum):
        allowed = [member.value for member in hint]
        check(value in allowed, key, value, listing(allowed, last=" or "))
        return hint(value)
    if hint is float and type(value) is int:
        value = float(value)
    check(type(value) is hint, key, value, _TYPE_NAMES[hint])
    return value
