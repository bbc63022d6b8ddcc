"""Makes the JSON schemas of files from their records, see `flare.common.schema`.

Only ``scripts/make_schemas.py`` and the tests import this.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from flare.common.schema import Is

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
    defaults: dict[str, Any] = {}
    omitted = set()
    if dataclasses.is_dataclass(kind):
        hints = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
        for field in dataclasses.fields(kind):
            if field.default is not field.default_factory:
                defaults[field.name] = field.default
            if "omit" in field.metadata:
                omitted.add(field.name)
    omitted |= getattr(kind, "__optional_keys__", frozenset())
    keys, required = {}, []
    for name, hint in hints.items():
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
