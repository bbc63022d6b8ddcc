"""Records: the one description of what is in a file.

A record is a dataclass, or a `typing.TypedDict` where the program handles the object as
it is written. Its fields are the keys, in the order in which they are written; their
types are the allowed values, and `Is` says of a value what its type cannot; the text
below a field says what it means. `build` makes a dataclass from TOML or JSON, with
errors that name the key, and keeps numbers within their bounds; `dump` makes of it what
`json` writes; `json_schema`, in a module of its own, makes the JSON schema. Other rules
of values are checked in ``__post_init__`` with `check`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from flare.common.text import alike, listing, safe

_Built = TypeVar("_Built")

_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
    bool: "true or false",
}


OMIT = {"omit": True}
"""Metadata of a field that is not written where it has its default."""


class Family(NamedTuple):
    """Keys of an object that are alike, such as a mean of each metric."""

    pattern: str
    """Empty for all keys that no field has."""
    title: str
    """How the keys are called."""
    about: str
    """What they mean."""
    kind: Any
    """The type of their values."""


class Is:
    """What a JSON schema says of a value besides its type; for `Annotated`.

    Parameters
    ----------
    like : type, optional
        The record that says which keys a mapping has.
    families : sequence of Family
        Its keys that are alike.
    each : tuple of str, optional
        Of a mapping with any keys: how they are called, and what the values mean.
    keys : str
        Of such a mapping: the pattern of its keys.
    about : str
        What a value means, where no text can stand below it.
    optional : collection of str or True
        Keys that may be missing from files that others write; True for all that have a
        default.
    **said : object
        Keywords of JSON Schema.
    """

    def __init__(
        self,
        *,
        like: Any = None,
        families: Sequence[Family] = (),
        each: tuple[str, str] | None = None,
        keys: str = "",
        about: str = "",
        optional: Collection[str] | Literal[True] = (),
        **said: Any,
    ) -> None:
        self.like, self.families, self.each, self.keys = like, families, each, keys
        self.about, self.optional, self.said = about, optional, said


Text = Annotated[str, Is(minLength=1)]
Sha256 = Annotated[str, Is(pattern="^[0-9a-f]{64}$")]
DateTime = Annotated[str, Is(format="date-time")]
Count = Annotated[int, Is(minimum=0)]
Positive = Annotated[int, Is(minimum=1)]
Amount = Annotated[float, Is(minimum=0)]
Length = Annotated[float, Is(exclusiveMinimum=0)]
Share = Annotated[float, Is(minimum=0, maximum=1)]


_BOUNDS = {
    "minimum": (operator.ge, "at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
}
"""What `build` checks of what `Is` says."""


class RuleError(ValueError):
    """A value breaks a rule of its dataclass."""


def check(holds: bool, key: str, value: object, expected: str) -> None:
    """Raise unless a rule holds; the text names key, value and what is allowed."""
    if not holds:
        raise RuleError(f"{key} is {safe(repr(value))}, expected {expected}")


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
        raise ValueError(f"{where.rstrip('.')} is {values!r}, expected a table")
    fields = {
        field.name: field
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in given
    }
    for key in values:
        if key not in fields:
            expected = f"expected {alike(key, fields) or listing(fields)}"
            raise ValueError(f"{where}{safe(key)} is an unknown key, {expected}")
    hints = _hints(kind)  # type: ignore[arg-type]
    arguments: dict[str, Any] = dict(given)
    for key, field in fields.items():
        if key in values:
            arguments[key] = _convert(values[key], hints[key], f"{where}{key}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where}{key} is missing")
    try:
        return kind(**arguments)
    except RuleError as error:
        raise ValueError(f"{where}{error}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass; to find them takes a while."""
    return get_type_hints(kind, include_extras=True)


def _convert(value: object, hint: Any, key: str) -> Any:
    if get_origin(hint) is Annotated:
        hint, rules, *_ = get_args(hint)
        found = _convert(value, hint, key)
        bounds = {name: own for name, own in rules.said.items() if name in _BOUNDS}
        expected = " and ".join(f"{_BOUNDS[k][1]} {own:g}" for k, own in bounds.items())
        holds = all(_BOUNDS[name][0](found, own) for name, own in bounds.items())
        check(holds, key, found, expected)
        return found
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{key} is {value!r}, expected a list")
        inner = get_args(hint)[0]
        return tuple(
            _convert(item, inner, f"{key}[{number}]")
            for number, item in enumerate(value, start=1)
        )
    if get_origin(hint) in (UnionType, Union):
        # Only JSON can write None.
        return None if value is None else _convert(value, get_args(hint)[0], key)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, where=f"{key}.")  # type: ignore[arg-type]
    if issubclass(hint, Enum):
        allowed = [member.value for member in hint]
        check(value in allowed, key, value, listing(allowed, last=" or "))
        return hint(value)
    if hint is float and type(value) is int:
        value = float(value)
    is_number = not isinstance(value, float) or math.isfinite(value)
    check(type(value) is hint and is_number, key, value, _TYPE_NAMES[hint])
    return value


def dump(value: Any) -> Any:
    """What `json` writes of a record: its keys in the order of its fields.

    Examples
    --------
    >>> from flare.challenge.rules import TopSlice, ZRange
    >>> dump(ZRange(organs=("aorta",), top_slice=TopSlice.DROPPED))
    {'organs': ['aorta'], 'top_slice': 'dropped'}
    """
    if dataclasses.is_dataclass(value):
        return {
            field.name: dump(own)
            for field in dataclasses.fields(value)
            if (own := getattr(value, field.name)) != field.default
            or "omit" not in field.metadata
        }
    if isinstance(value, Mapping):
        return {key: dump(own) for key, own in value.items()}
    if isinstance(value, tuple | list):
        return [dump(own) for own in value]
    return value.value if isinstance(value, Enum) else value
