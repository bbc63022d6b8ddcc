"""Makes the JSON schema of a file from its record, whose docstrings are the texts."""

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
    schema = json_schema(kind, title)
    for child in schema["properties"].values():
        has_rules = child.keys() & {"minLength", "format", "pattern"}
        if child.pop("may_be_empty", not has_rules) and child.get("type") == "string":
            child["type"] = ["string", "null"]
    head = {key: schema.pop(key) for key in ("$schema", "title", "description")}
    return {**head, "$comment": ROW, **schema}


def _rules(hint: Any) -> tuple[Any, Is]:
    """A type without what `Is` says of its values, and that."""
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
        if _is_record(part):
            return part
    return None


def _is_record(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or is_typeddict(hint)


def _schema(hint: Any) -> dict[str, Any]:
    """The JSON schema of a value."""
    hint, rules = _rules(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return _union(parts, rules)
    if rules.like or _is_record(hint):
        return _object(rules.like or hint, rules)
    if origin in (tuple, list, Sequence):
        return {"type": "array", **rules.keywords, "items": _schema(parts[0])}
    if origin is Literal:
        return {"enum": list(parts)} if parts[1:] else {"const": parts[0]}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    if origin in (dict, Mapping):
        return _mapping(parts[1], rules)
    return rules.keywords if hint is Any else {"type": _TYPES[hint], **rules.keywords}


def _union(parts: Sequence[Any], rules: Is) -> dict[str, Any]:
    """The schema of a value that may be of several types, or null."""
    types: list[str] = []
    keywords: dict[str, Any] = {}
    for part in parts:
        if part is not NoneType:
            child = _schema(part)
            if "const" in child:  # a word in place of a number
                child = {"type": "string", "pattern": f"^{child['const']}$"}
            types.append(child.pop("type"))
            keywords |= child
    if "number" in types:
        types = [name for name in types if name != "integer"]
    if NoneType in parts:
        types.append("null")
    return {"type": types, **keywords, **rules.keywords}


def _mapping(kind: Any, rules: Is) -> dict[str, Any]:
    """The schema of an object with keys that no record has."""
    schema: dict[str, Any] = {"type": "object", **rules.keywords}
    if rules.families:
        return schema | _families(rules)
    child = _schema(kind)
    if rules.entry:
        title, about = rules.entry
        child = {"description": about, **child}
        child = {"title": title, **child} if title else child
    if rules.keys:
        schema["patternProperties"] = {rules.keys: child}
        return schema | {"additionalProperties": False}
    return schema | ({"additionalProperties": child} if child else {})


def _families(rules: Is) -> dict[str, Any]:
    """The keywords for keys that are alike; an object has no further ones."""
    patterns = {
        family.pattern: {
            "title": family.title,
            "description": family.about,
            **_schema(family.kind),
        }
        for family in rules.families
    }
    further_keys = patterns.pop("", False)
    keywords = {"patternProperties": patterns} if patterns else {}
    return {**keywords, "additionalProperties": further_keys}


def _object(kind: Any, rules: Is) -> dict[str, Any]:
    """The schema of a record."""
    hints = get_type_hints(kind, include_extras=True)
    texts = _texts(kind)
    optional = _optional_keys(kind, rules)
    properties, required = {}, []
    for name in _keys(kind):
        hint = hints[name]
        about = texts.get(name) or _rules(hint)[1].about or _about(_record(hint))
        if not about:
            raise ValueError(f"{kind.__name__}.{name}: nothing says what it means")
        properties[name] = {"description": about, **_schema(hint)}
        if name not in optional and get_origin(hint) is not NotRequired:
            required.append(name)
    return {
        "type": "object",
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
        **(_families(rules) if rules.families else {}),
        **rules.keywords,
    }


def _keys(kind: Any) -> list[str]:
    """The keys of a record, in their order."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(get_type_hints(kind))


def _optional_keys(kind: Any, rules: Is) -> set[str]:
    """The keys that a file may lack."""
    optional = set(getattr(kind, "__optional_keys__", ()))
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    for field in fields:
        has_default = field.default is not field.default_factory
        if "omit" in field.metadata or (rules.optional is True and has_default):
            optional.add(field.name)
    return optional if rules.optional is True else {*optional, *rules.optional}


def _about(kind: Any) -> str:
    """The docstring of a record; empty without one."""
    text = inspect.cleandoc(kind.__doc__ or "") if kind is not None else ""
    return " ".join(text.split())


@functools.cache
def _texts(kind: type) -> dict[str, str]:
    """The texts that stand below the fields of a record in its source."""
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call: what its values mean stands in their types
        return {}
    (tree,) = ast.parse(textwrap.dedent(source)).body
    if not isinstance(tree, ast.ClassDef):
        return {}
    texts: dict[str, str] = {}
    for base in tree.bases:
        base_record = vars(sys.modules[kind.__module__]).get(getattr(base, "id", ""))
        if _is_record(base_record):
            texts |= _texts(base_record)
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and _is_text(below):
            texts[ast.unparse(field.target)] = " ".join(below.value.value.split())
    return texts


def _is_text(statement: ast.stmt) -> bool:
    """Whether a line of a class is a text alone."""
    is_constant = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
    return is_constant and isinstance(statement.value.value, str)
