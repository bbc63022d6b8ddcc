"""Holds files against the schemas that are made of the records."""

import csv
import functools
import json
import runpy
from pathlib import Path

from jsonschema import Draft202012Validator

from tests.builders import ROOT

SCHEMAS = {
    name.removesuffix(".schema.json"): json.loads(text)
    for name, text in runpy.run_path(str(ROOT / "scripts" / "make_schemas.py"))[
        "schemas"
    ]().items()
}
"""By name."""


def problems(value, name, *, is_closed=True):
    """Where a value is not as its schema says; unless told, no unknown key is allowed.

    A schema lets later versions write further keys; this version writes none that its
    schema does not describe.
    """
    found = validator(name, is_closed).iter_errors(value)
    return [f"{error.json_path}: {error.message}" for error in found]


@functools.cache
def validator(name, is_closed):
    """What holds values against a schema; a table has it once for all of its rows."""
    schema = closed(SCHEMAS[name]) if is_closed else SCHEMAS[name]
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator(schema, format_checker=checker)


def closed(schema):
    """The same schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(item) for key, item in schema.items()}
    if "type" in found and "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def file_problems(file, name):
    """What is wrong with a file: a JSON file, or each row of a CSV file."""
    file = Path(file)
    if file.suffix == ".json":
        return problems(json.loads(file.read_text(encoding="utf-8")), name)
    columns, rows = read_table(file, name)
    assert is_in_order(columns, SCHEMAS[name])
    return [found for row in rows for found in problems(row, name)]


def read_table(file, name):
    """The columns of a CSV file, and its rows as the objects that schemas describe."""
    with file.open(encoding="utf-8", newline="") as content:
        table = csv.DictReader(content)
        rows = [
            {column: _cell(cell, column, SCHEMAS[name]) for column, cell in row.items()}
            for row in table
        ]
    return tuple(table.fieldnames), rows


def _cell(text, column, schema):
    own = schema["properties"].get(column, {})
    if not text:
        return None
    types = own.get("type", ())
    if "enum" in own or ("string" in types and "number" not in types):
        return text
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def is_in_order(columns, schema):
    """Whether the columns that a schema names are there in its order, first of all."""
    known = [column for column in schema["properties"] if column in columns]
    return list(columns[: len(known)]) == known
