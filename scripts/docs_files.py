"""The page about the files that the program writes, made of their schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from make_schemas import schemas

Schema = Mapping[str, Any]

INTRODUCTION = """# Files

What the commands write, and where; and one table that they read:

```text
RESULTS                    a folder with a folder for each team
├── ledger.csv             which archive of each team counts
├── refused.csv            what could not be run or scored
├── flags.csv              what organisers should look at
├── means.csv, .md, .tex   of `flare score`: means of all teams, as in RANKING
└── TEAM
    ├── metrics.json       scores: all that `flare evaluate` writes
    ├── answers.csv        each answer beside its reference: for organisers alone
    ├── predictions        label maps
    ├── efficiency.csv     running times and memory
    ├── measurement.json   how they were measured
    ├── traces/CASE.csv    every sample
    ├── logs/CASE.log      what the container has written
    ├── platform.json      of a download: which evaluation it is of
    └── predictions.zip    of a download: what was uploaded

RANKING                    what `flare rank --output` writes
├── ranking.csv            the ranking
├── case_ranks.csv         every single rank
├── values.csv             every value
├── ranking.json           everything, with the settings
├── ranking.md             the ranking for a page
├── ranking.tex            the ranking for a paper
├── means.csv              means of all teams by metric and organ, and their spread
├── means.md, means.tex    the same for a page and a paper
├── methods.txt            the paragraph of its Methods
├── report.txt             all that is printed
└── sheets/TEAM.md         a team's own values and ranks

FIGURES                    what `flare report --figures` writes
├── NAME_column.svg, .pdf  a figure for one column of a paper
├── NAME_page.svg, .pdf    the same for a whole page
├── NAME.csv               the numbers behind it
├── captions.txt           what each figure shows
├── organs.tex             the table of an evaluation; of a ranking it is ranking.tex
├── groups.tex             tables of groups, with --groups
└── methods.txt            the paragraph of the Methods

REPORT                     what `flare report A B` writes for organisers
└── comparison.json        all numbers of the page: differences, intervals, tests

RESULTS/.serve             what `flare serve` goes on with, however it was ended
├── journal.json           how far each submission is
└── answers/KEY.json       what is sent for it

DIR/returned               what `flare serve --drop-folder DIR` answers
└── TEAMNAME.json          metrics, or one line

CASES.csv                  what `flare report --groups` reads
phase-settings.json        what `flare phase-settings` prints
LEADERBOARD.csv            what `flare leaderboard --output` writes
```

Each JSON file and each table below has a [JSON Schema](https://json-schema.org), draft
2020-12, made of its record by `python scripts/make_schemas.py`; the tests hold what the
commands really write against it. The schema of a table is that of one row, as an
object: its properties are the columns in their order, and an empty cell is null.

Files are UTF-8, and numbers are in full precision unless an option says otherwise.
Where a schema allows further keys, a later version may write some. In tables, a text
that a spreadsheet would take for a formula has an apostrophe before it. What was
measured of an archive that another one has replaced lies in `RESULTS/.replaced`.

"""


def files_page() -> str:
    """The layout of the results, and a section for each schema."""
    return INTRODUCTION + "\n".join(
        _section(name, schema) for name, schema in read_schemas().items()
    )


def read_schemas() -> dict[str, Schema]:
    """All schemas by the names of their files, in the order of the page."""
    contents = {name: json.loads(text) for name, text in schemas().items()}
    return dict(sorted(contents.items(), key=lambda item: _place(item[1]["title"])))


def _place(title: str) -> int:
    """Where a file stands in the layout."""
    place = INTRODUCTION.find(f" {title} ")
    return place if place >= 0 else INTRODUCTION.index(title)


def _section(name: str, schema: Schema) -> str:
    """The section of a file."""
    kind = "Column" if "$comment" in schema else "Key"
    rows = [f"| {' | '.join(row)} |" for row in _rows(schema, "")]
    return "\n".join(
        [
            f"## {schema['title']}\n",
            f"{schema['description']} [Schema](schemas/{name})\n",
            f"| {kind} | Type | Meaning | Always there |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _rows(schema: Schema, path: str) -> Iterator[tuple[str, ...]]:
    """A row for each key of an object, and for those of the objects in it."""
    for name, child, is_required in _children(schema):
        key = ", ".join(f"{path}{word}" for word in name.split(", "))
        description = child.get("description", "")
        must = "yes" if is_required else ""
        yield f"`{key}`", _type(child), description.replace("|", "\\|"), must
        items = child.get("items", {})
        is_list = "properties" in items
        yield from _rows(items if is_list else child, f"{key}{'[]' * is_list}.")


def _children(schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
    """Names, schemas of an object's keys, and whether they are always there."""
    required = schema.get("required", ())
    for name, child in schema.get("properties", {}).items():
        yield name, child, name in required
    others = [*schema.get("patternProperties", {}).values()]
    others.append(schema.get("additionalProperties"))
    for child in others:
        # The keys of lists by case, which are numbers, need no row of their own.
        if isinstance(child, dict) and "title" in child:
            yield child["title"], child, False


def _type(schema: Schema) -> str:
    """What a value can be, in words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema["type"]
    names = [kinds] if isinstance(kinds, str) else kinds
    *words, last = (_kind(name, schema) for name in names)
    return f"{', '.join(words)} or {last}" if words else last


def _kind(name: str, schema: Schema) -> str:
    """The name of a type; of a list, and of values by case, also that of its parts."""
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    if name == "array":
        return f"list of {_type(schema['items'])}"
    (child, *_) = schema.get("patternProperties", {}).values() or [{}]
    if name == "object" and child and "title" not in child:
        return f"{_type(child)}, by case"
    return words.get(name, name)
