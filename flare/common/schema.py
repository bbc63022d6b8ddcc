"""Records: the one description of what is in a file.

A record is a dataclass, or a `typing.TypedDict` where the program handles the object as
it is written. Its fields are the keys, in the order in which they are written; their
types are the allowed values, and `Is` says of a value what its type cannot; the text
below a field says what it means. `build` makes a dataclass from TOML or JSON, with
errors that name the key, and keeps numbers within their bounds; `dump` makes of it what
`json` writes; `json_schema` makes the JSON schema. Other rules of values are checked in
``__post_init__`` with `check`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import operator
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from flare.common.text import listing, nearest, safe

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
"""What is checked of what `Is` says."""


class RuleError(ValueError):
    """A value breaks a rule of its dataclass."""


_BROKEN: ContextVar[list[str] | None] = ContextVar("broken", default=None)
"""Where `check` puts what is wrong with a record that `build` is making."""

MOST_PROBLEMS = 20
"""So many mistakes of a file are told at once."""


def check(holds: bool, key: str, value: object, expected: str) -> None:
    """Raise unless a rule holds; the text names key, value and what is allowed.

    While `build` makes a record, nothing is raised: all that is wrong is told at once.
    """
    if holds:
        return
    problem = f"{key} is {safe(repr(value))}, expected {expected}"
    broken = _BROKEN.get()
    if broken is None:
        raise RuleError(problem)
    broken.append(problem)


def problems_text(problems: Sequence[str]) -> str:
    """All that is wrong, on one line."""
    more = len(problems) - MOST_PROBLEMS
    end = f"; and {more} more mistakes" if more > 0 else ""
    return "; ".join(problems[:MOST_PROBLEMS]) + end


def _check_bounds(value: float, rules: Is, key: str) -> None:
    """Raise unless a number is within the bounds of its type."""
    bounds = {name: own for name, own in rules.said.items() if name in _BOUNDS}
    expected = " and ".join(f"{_BOUNDS[k][1]} {own:g}" for k, own in bounds.items())
    holds = all(_BOUNDS[name][0](value, own) for name, own in bounds.items())
    is_finite = not bounds or abs(value) < math.inf  # whatever the size of an int
    check(holds and is_finite, key, value, expected)


class Checked:
    """A record whose numbers are within their bounds also where no `build` makes it."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the bounds."""
        for key, hint in _hints(type(self)).items():  # type: ignore[arg-type]
            value = getattr(self, key)
            is_union = get_origin(hint) in (UnionType, Union)
            for part in get_args(hint) if is_union else (hint,):
                if get_origin(part) is Annotated and value is not None:
                    _check_bounds(value, get_args(part)[1], key)


def build(  # noqa: C901
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
        the message names each such key. Rules about several keys are looked at once
        each of them is right by itself.
    """
    if not isinstance(values, dict):
        raise ValueError(
            f"{where.rstrip('.')} is {safe(repr(values))}, expected a table"
        )
    problems: list[str] = []
    fields = {
        field.name: field
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in given
    }
    for key in values:
        if key not in fields:
            meant = nearest(key, fields)
            problems.append(f"{where}{safe(key)} is an unknown key{meant}")
    hints = _hints(kind)  # type: ignore[arg-type]
    arguments: dict[str, Any] = dict(given)
    for key, field in fields.items():
        if key in values:
            with _collecting(problems):
                arguments[key] = _convert(values[key], hints[key], f"{where}{key}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            problems.append(f"{where}{key} is missing")
    if not problems:
        token = _BROKEN.set([])
        try:
            record = kind(**arguments)
            problems = [f"{where}{problem}" for problem in _BROKEN.get() or ()]
        finally:
            _BROKEN.reset(token)
        if not problems:
            return record
    raise _SeveralError(problems)


class _SeveralError(ValueError):
    """All that is wrong with the values of a record."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems_text(problems))
        self.problems = problems


@contextmanager
def _collecting(problems: list[str]) -> Iterator[None]:
    """Add what is wrong to a list, and go on."""
    try:
        yield
    except _SeveralError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(str(error))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass; to find them takes a while."""
    return get_type_hints(kind, include_extras=True)


def _convert(value: object, hint: Any, key: str) -> Any:  # noqa: C901
    if get_origin(hint) is Annotated:
        hint, rules, *_ = get_args(hint)
        found = _convert(value, hint, key)
        _check_bounds(found, rules, key)
        return found
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{key} is {safe(repr(value))}, expected a list")
        problems: list[str] = []
        inner, items = get_args(hint)[0], []
        for number, item in enumerate(value, start=1):
            with _collecting(problems):
                items.append(_convert(item, inner, f"{key}[{number}]"))
        if problems:
            raise _SeveralError(problems)
        return tuple(items)
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


# --- JSON schemas -----------------------------------------------------------------

ROW = (
    "One row of the table as an object: the properties are the columns, in their"
    " order; an empty cell is null."
)

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """The JSON schema of a file.

    Parameters
    ----------
    kind : type
        Its record, which may be `Annotated`.
    title : str
        Name of the file.

    Raises
    ------
    ValueError
        If nothing says what a key means.
    """
    content = _schema(kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": _rules(kind)[1].about or _about(_record(kind)),
        **content,
    }


def row_schema(kind: Any, title: str) -> dict[str, Any]:
    """The JSON schema of a row of a table; a text that may be empty may be null."""
    found = json_schema(kind, title)
    for child in found["properties"].values():
        has_rules = child.keys() & {"minLength", "format", "pattern"}
        if child.pop("may_be_empty", not has_rules) and child.get("type") == "string":
            child["type"] = ["string", "null"]
    first = ("$schema", "title", "description")
    return {
        **{key: found[key] for key in first},
        "$comment": ROW,
        **{key: value for key, value in found.items() if key not in first},
    }


def _rules(hint: Any) -> tuple[Any, Is]:
    if get_origin(hint) is NotRequired:
        hint = get_args(hint)[0]
    if get_origin(hint) is Annotated:
        hint, rules, *_ = get_args(hint)
        return hint, rules
    return hint, Is()


def _record(hint: Any) -> Any:
    """The record of a type; None if it has none."""
    plain, rules = _rules(hint)
    if rules.like is not None:
        return rules.like
    for part in (plain, *get_args(plain)):
        if dataclasses.is_dataclass(part) or is_typeddict(part):
            return part
    return None


def _schema(hint: Any) -> dict[str, Any]:
    hint, rules = _rules(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        found = [_schema(part) for part in parts if part is not NoneType]
        kinds = [child.pop("type") for child in found]
        if "number" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        kinds += ["null"] if NoneType in parts else []
        merged = {key: value for child in found for key, value in child.items()}
        return {"type": kinds, **merged, **rules.said}
    if rules.like or dataclasses.is_dataclass(hint) or is_typeddict(hint):
        return _object(rules.like or hint, rules)
    if origin in (tuple, list, Sequence):
        return {"type": "array", **rules.said, "items": _schema(parts[0])}
    if origin is Literal:
        return {"enum": list(parts)} if parts[1:] else {"const": parts[0]}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if origin in (dict, Mapping):
        return _mapping(parts[1], rules)
    return rules.said if hint is Any else {"type": _TYPES[hint], **rules.said}


def _mapping(kind: Any, rules: Is) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", **rules.said}
    if rules.families:
        return found | _families(rules)
    child = _schema(kind)
    if rules.each:
        title, about = rules.each
        child = {"description": about, **child}
        child = {"title": title, **child} if title else child
    if rules.keys:
        found["patternProperties"] = {rules.keys: child}
        return found | {"additionalProperties": False}
    return found | ({"additionalProperties": child} if child else {})


def _families(rules: Is) -> dict[str, Any]:
    """What a JSON schema says of keys that are alike; there are no others."""
    found = {
        family.pattern: {
            "title": family.title,
            "description": family.about,
            **_schema(family.kind),
        }
        for family in rules.families
    }
    others = found.pop("", False)
    patterns = {"patternProperties": found} if found else {}
    return {**patterns, "additionalProperties": others}


def _object(kind: Any, rules: Is) -> dict[str, Any]:
    """What a JSON schema says of a record."""
    hints = get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    defaults = {own.name for own in fields if own.default is not own.default_factory}
    omitted = {own.name for own in fields if "omit" in own.metadata}
    omitted |= getattr(kind, "__optional_keys__", frozenset())
    keys, required = {}, []
    for name in [own.name for own in fields] or hints:
        hint = hints[name]
        about = texts.get(name) or _rules(hint)[1].about or _about(_record(hint))
        if not about:
            raise ValueError(f"{kind.__name__}.{name}: nothing says what it means")
        keys[name] = {"description": about, **_schema(hint)}
        optional = defaults if rules.optional is True else rules.optional
        if name not in {*omitted, *optional} and get_origin(hint) is not NotRequired:
            required.append(name)
    return {
        "type": "object",
        **({"properties": keys} if keys else {}),
        **({"required": required} if required else {}),
        **(_families(rules) if rules.families else {}),
        **rules.said,
    }


def _about(kind: Any) -> str:
    """What a record is, as its docstring says; empty of none."""
    text = inspect.cleandoc(kind.__doc__ or "") if kind is not None else ""
    return " ".join(text.split())


@functools.cache
def _texts(kind: type) -> dict[str, str]:
    """What the fields of a record mean, as its source says below them."""
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call: what its values mean stands in their types
        return {}
    (tree,) = ast.parse(textwrap.dedent(source)).body
    if not isinstance(tree, ast.ClassDef):
        return {}
    texts: dict[str, str] = {}
    for base in tree.bases:
        found = vars(sys.modules[kind.__module__]).get(getattr(base, "id", ""))
        if is_typeddict(found) or dataclasses.is_dataclass(found):
            texts |= _texts(found)
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts
