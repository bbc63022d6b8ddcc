"""Records: the one description of what is in a file.

A record is a dataclass, or a `typing.TypedDict` where the program handles the object as
it is written. Its fields are the keys, in the order in which they are written; their
types are the allowed values, and `Is` adds what types cannot say, such as bounds; the
text below a field says what it means. `build` makes a dataclass from TOML or JSON, with
errors that name the key, and keeps numbers within their bounds; it can be lenient to
files of other programs and other versions. `dump` turns a record into JSON, and
`scripts/make_schemas.py` makes its JSON schema. Other rules of values are checked in
``__post_init__``, or in ``_check_rules`` of a `Checked` record, with `check`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from flare.common.text import count, listing, nearest, safe

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
    """The pattern of the keys; empty for all keys that no field has."""
    title: str
    """The name of such keys."""
    about: str
    """Their meaning."""
    kind: Any
    """The type of their values."""


class Is:
    """All that a JSON schema says of a value besides its type; for `Annotated`.

    The record `like` says which keys a mapping has, and `families` which of them are
    alike. A mapping without a record has an `entry`, the name of its keys and what its
    values mean, and a pattern of its `keys`. `form` has words for the `pattern` of a
    text, which is checked if it has them; `about` is the meaning of a value below which
    no text can stand. Files of others may lack the `optional` keys, with True all that
    have a default. All else are keywords of JSON Schema.
    """

    def __init__(
        self,
        *,
        like: Any = None,
        families: Sequence[Family] = (),
        entry: tuple[str, str] | None = None,
        keys: str = "",
        form: str = "",
        about: str = "",
        optional: Collection[str] | Literal[True] = (),
        **keywords: Any,
    ) -> None:
        self.like, self.families, self.entry, self.keys = like, families, entry, keys
        self.about, self.optional, self.keywords = about, optional, keywords
        self.form = form


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
"""The keywords of `Is` that are checked: the comparison, and the words for it."""


class RuleError(ValueError):
    """A value breaks a rule of its dataclass."""


_BROKEN: ContextVar[list[str] | None] = ContextVar("broken", default=None)
"""The list to which `check` adds the rules that a record of `build` breaks."""

MOST_PROBLEMS = 20
"""A message names at most this many mistakes of a file."""


def check(holds: bool, key: str, value: object, expected: str) -> None:
    """Raise unless a rule holds; the text names the key, the value and what is allowed.

    While `build` makes a record, mistakes are collected: it raises all of them at once.
    """
    if holds:
        return
    problem = f"{key} is {safe(repr(value))}, expected {expected}"
    broken = _BROKEN.get()
    if broken is None:
        raise RuleError(problem)
    broken.append(problem)


def problems_text(problems: Sequence[str]) -> str:
    """All problems on one line."""
    surplus = len(problems) - MOST_PROBLEMS
    end = f"; and {count(surplus, 'more mistake')}" if surplus > 0 else ""
    return "; ".join(problems[:MOST_PROBLEMS]) + end


def _check_value(value: Any, rules: Is, key: str) -> None:
    """Raise unless a value is among the allowed ones, and within its bounds."""
    if "enum" in rules.keywords:
        _member(value, [*rules.keywords["enum"]], key)
    if most := rules.keywords.get("maxLength"):
        least = rules.keywords.get("minLength", 0)
        check(least <= len(value) <= most, key, value, f"{least} to {most} characters")
    if rules.form:
        has_form = re.fullmatch(rules.keywords["pattern"], value) is not None
        check(has_form, key, value, rules.form)
    bounds = [name for name in rules.keywords if name in _BOUNDS]
    if not bounds:
        return
    is_within = abs(value) < math.inf  # isfinite would fail on a very large int
    expected = []
    for name in bounds:
        compare, words = _BOUNDS[name]
        bound = rules.keywords[name]
        is_within = is_within and compare(value, bound)
        expected.append(f"{words} {bound:g}")
    check(is_within, key, value, " and ".join(expected))


def _check_field(value: Any, hint: Any, key: str) -> None:
    """Raise unless a value, or each item of a tuple, keeps the rules of its type."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is tuple:
        for number, item in enumerate(value, start=1):
            _check_field(item, parts[0], f"{key}[{number}]")
    elif kind in (UnionType, Union):
        _check_field(value, _part_for(value, parts), key)
    elif kind is Annotated and value is not None:
        _check_value(value, parts[1], key)


_SEVERAL = {tuple: list | tuple, Literal: str}
"""What the values are that stand for a type, where that is not the type itself."""


def _part_for(value: object, parts: Sequence[Any]) -> Any:
    """The part of a union that a value is of; the first one if it is of none."""
    for part in parts:
        plain = get_args(part)[0] if get_origin(part) is Annotated else part
        kind = get_origin(plain) or plain
        if isinstance(value, _SEVERAL.get(kind, kind)):
            return part
    return parts[0]


class Checked:
    """A record that checks its values whoever makes it, not only `build`."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the bounds, the allowed values, and the other rules."""
        for key, hint in _hints(type(self)).items():  # type: ignore[arg-type]
            _check_field(getattr(self, key), hint, key)
        self._check_rules()

    def _check_rules(self) -> None:
        """Check what no type can say; most records have no such rule."""


def build(
    kind: type[_Built],
    values: object,
    *,
    where: str = "",
    is_lenient: bool = False,
    **extra_fields: Any,
) -> _Built:
    """Build a dataclass from a TOML table, or from a JSON object.

    Its fields are numbers, texts, booleans, enums, other such dataclasses, or tuples,
    lists or mappings of these; or `Any`. `extra_fields` do not come from the table. In
    messages, `where` is the table's key, with a full stop behind it. Unknown keys are
    ignored, here and in the records of its fields, if it `is_lenient`: with a file that
    another program, or a later version, may have written.

    A ValueError is raised if a key is unknown, missing or of the wrong type, or its
    value breaks a rule; the message names each such key. Rules about several keys are
    checked when each key is right by itself.

    Examples
    --------
    A field that a later version has added:

    >>> from flare.challenge.organs import AbsentOrgans
    >>> build(AbsentOrgans, {"in_both": 0, "colour": "red"}, is_lenient=True).in_both
    0.0
    """
    if not isinstance(values, dict):
        name = where.rstrip(".")
        raise ValueError(f"{name} is {safe(repr(values))}, expected a table")
    problems: list[str] = []
    fields = {
        field.name: field
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in extra_fields
    }
    if not is_lenient:
        problems += _unknown_keys(values, fields, where)
    reader = _Reader(is_lenient)
    hints = _hints(kind)  # type: ignore[arg-type]
    arguments: dict[str, Any] = dict(extra_fields)
    for key, field in fields.items():
        if key in values:
            with _collecting(problems):
                arguments[key] = reader.convert(
                    values[key], hints[key], f"{where}{key}"
                )
        elif field.default is field.default_factory is dataclasses.MISSING:
            problems.append(f"{where}{key} is missing")
    if problems:
        raise _SeveralError(problems)
    return _checked(kind, arguments, where)


def _unknown_keys(
    values: Mapping[str, object], fields: Collection[str], where: str
) -> Iterator[str]:
    """The problem of each key that no field has, with the field that may be meant."""
    for key in values:
        if key not in fields:
            yield f"{where}{safe(key)} is an unknown key{nearest(key, fields)}"


def _checked(kind: type[_Built], arguments: Mapping[str, Any], where: str) -> _Built:
    """Make the record, or raise with all rules that it breaks."""
    token = _BROKEN.set([])
    try:
        record = kind(**arguments)
        problems = [f"{where}{problem}" for problem in _BROKEN.get() or ()]
    finally:
        _BROKEN.reset(token)
    if problems:
        raise _SeveralError(problems)
    return record


class _SeveralError(ValueError):
    """All problems of the values of a record."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems_text(problems))
        self.problems = problems


@contextmanager
def _collecting(problems: list[str]) -> Iterator[None]:
    """Add the problems of the block to a list, and go on behind it."""
    try:
        yield
    except _SeveralError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(str(error))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, kept because finding them takes time."""
    return get_type_hints(kind, include_extras=True)


def keys_of(kind: type) -> Iterator[str]:
    """The keys of a dataclass, and those of its tables, such as ``grid.compare``."""
    for key, hint in _hints(kind).items():
        yield key
        while get_args(hint):
            hint = get_args(hint)[0]
        if dataclasses.is_dataclass(hint):
            yield from (f"{key}.{field.name}" for field in dataclasses.fields(hint))


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """Converts values of TOML and JSON to the types of fields."""

    is_lenient: bool

    def convert(self, value: object, hint: Any, key: str) -> Any:
        """Return a value as a field of the type holds it; raise if it cannot."""
        read_parts = self._PARTS.get(get_origin(hint))
        if read_parts:
            return read_parts(self, value, hint, key)
        if hint is Any:
            return value
        if dataclasses.is_dataclass(hint):
            return build(
                hint,  # type: ignore[arg-type]
                value,
                where=f"{key}.",
                is_lenient=self.is_lenient,
            )
        if issubclass(hint, Enum):
            return hint(_member(value, [member.value for member in hint], key))
        return _plain(value, hint, key)

    def _annotated(self, value: object, hint: Any, key: str) -> Any:
        plain_hint, rules, *_ = get_args(hint)
        converted = self.convert(value, plain_hint, key)
        _check_value(converted, rules, key)
        return converted

    def _union(self, value: object, hint: Any, key: str) -> Any:
        # Only JSON can write None.
        if value is None:
            return None
        return self.convert(value, _part_for(value, get_args(hint)), key)

    def _items(self, value: object, hint: Any, key: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{key} is {safe(repr(value))}, expected a list")
        keys = [f"{key}[{number}]" for number in range(1, len(value) + 1)]
        items = self._all(value, get_args(hint)[0], keys)
        return items if get_origin(hint) is list else tuple(items)

    def _all(self, values: Iterable[object], hint: Any, keys: Iterable[str]) -> Any:
        """Values of one type; raise with the problems of all if some have any."""
        problems: list[str] = []
        converted = []
        for value, key in zip(values, keys, strict=True):
            with _collecting(problems):
                converted.append(self.convert(value, hint, key))
        if problems:
            raise _SeveralError(problems)
        return converted

    def _entries(self, value: object, hint: Any, key: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{key} is {safe(repr(value))}, expected a table")
        entry_hint = get_args(hint)[1]
        if entry_hint is Any:
            return value
        keys = [f"{key}.{safe(name)}" for name in value]
        entries = self._all(value.values(), entry_hint, keys)
        return dict(zip(value, entries, strict=True))

    def _choice(self, value: object, hint: Any, key: str) -> Any:
        return _member(value, get_args(hint), key)

    _PARTS: ClassVar[Mapping[Any, Callable[[_Reader, object, Any, str], Any]]] = {
        Annotated: _annotated,
        UnionType: _union,
        Union: _union,
        tuple: _items,
        list: _items,
        dict: _entries,
        Mapping: _entries,
        Literal: _choice,
    }
    """The method that reads a type with parts, by the origin of the type."""


def _member(value: object, allowed: Sequence[Any], key: str) -> Any:
    check(value in allowed, key, value, listing(allowed, last=" or "))
    return value


def _plain(value: object, hint: Any, key: str) -> Any:
    if hint is float and type(value) is int:
        value = float(value)
    is_finite = not isinstance(value, float) or math.isfinite(value)
    check(type(value) is hint and is_finite, key, value, _TYPE_NAMES[hint])
    return value


def dump(value: Any) -> Any:
    """Return a record as JSON has it: its keys in the order of its fields.

    Examples
    --------
    >>> from flare.challenge.organs import TopSlice, ZRange
    >>> dump(ZRange(organs=("aorta",), top_slice=TopSlice.DROPPED))
    {'organs': ['aorta'], 'top_slice': 'dropped'}
    """
    if dataclasses.is_dataclass(value):
        entries = {}
        for field in dataclasses.fields(value):
            entry = getattr(value, field.name)
            if entry != field.default or "omit" not in field.metadata:
                entries[field.name] = dump(entry)
        return entries
    if isinstance(value, Mapping):
        return {key: dump(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    return value.value if isinstance(value, Enum) else value
