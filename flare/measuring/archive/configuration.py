"""Checks the configuration of an image: the types of its fields, and their number.

Engines read it into records of Go, as Docker and the Open Container Initiative have
them. A value of another type ends loading, and some of what is right, but a lot, costs
each container minutes: so both are refused before an engine sees them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from flare.common.text import safe
from flare.measuring.archive.strict import BrokenError, fields_of, strict_json

MOST_ENTRIES = 1_000
"""Entries of a list or a table of how containers are started. Docker compares each
variable with all others: 1,000 cost a container a tenth of a second, and 25,000
minutes."""

MOST_BYTES = 2**16
"""Together they take at most this much."""

_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
)
"""Times are written by RFC 3339, which Go expects."""


TEXT, FLAG, NUMBER = "a text", "true or false", "a whole number"
TIME = "a time such as 2026-11-24T10:00:00Z"
"""Values that hold no others, as messages call them."""

ANY = "*"
"""Stands for all keys of a table, which may have any."""

Kind: TypeAlias = "str | list[Kind] | Mapping[str, Kind]"
"""The type of a value: a list has the type of its items, and a mapping is an object
with these fields, and any others."""


def _all(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


_LISTS_AND_TABLES: Mapping[str, Kind] = {
    "ExposedPorts": {ANY: {}},
    **_all([TEXT], "Env Cmd"),
    "Volumes": {ANY: {}},
    **_all([TEXT], "Entrypoint OnBuild"),
    "Labels": {ANY: TEXT},
    "Shell": [TEXT],
}
"""Those of how containers are started."""

SETTINGS: Mapping[str, Kind] = {
    **_all(TEXT, "Hostname Domainname User Image WorkingDir MacAddress StopSignal"),
    **_all(FLAG, "AttachStdin AttachStdout AttachStderr Tty OpenStdin StdinOnce"),
    **_all(FLAG, "ArgsEscaped NetworkDisabled"),
    "StopTimeout": NUMBER,
    "Healthcheck": {
        "Test": [TEXT],
        **_all(NUMBER, "Interval Timeout StartPeriod StartInterval Retries"),
    },
    **_LISTS_AND_TABLES,
}
"""How containers of an image are started."""

CONFIGURATION: Mapping[str, Kind] = {
    **_all(TEXT, "id parent comment container docker_version author"),
    **_all(TEXT, "architecture variant os os.version"),
    "created": TIME,
    "container_config": SETTINGS,
    "config": SETTINGS,
    "os.features": [TEXT],
    "Size": NUMBER,
    "rootfs": {"type": TEXT, "diff_ids": [TEXT]},
    "history": [
        {
            "created": TIME,
            **_all(TEXT, "created_by author comment"),
            "empty_layer": FLAG,
        }
    ],
}
"""All that engines read of an image's configuration."""


def checked_configuration(content: bytes) -> dict[str, Any]:
    """The configuration of an image, if every engine can read it.

    A BrokenError is raised if it is not JSON, or a field is of another type than
    engines expect, or has other capitals.
    """
    configuration = fields_of(strict_json(content))
    _check(configuration, CONFIGURATION, "")
    return configuration


def _check(value: Any, kind: Kind, name: str) -> None:
    match kind:
        case str():
            _expect(_is_plain(value, kind), value, kind, name)
        case list():
            _expect(isinstance(value, list), value, "a list", name)
            for number, item in enumerate(value, start=1):
                _check(item, kind[0], f"{name}[{number}]")
        case _:
            _expect(isinstance(value, dict), value, "an object", name)
            if ANY in kind:
                kind = dict.fromkeys(value, kind[ANY])
            else:
                fields_of(value, *kind)
            for key, field_kind in kind.items():
                # What is null is as good as not there, for every engine.
                if value.get(key) is not None:
                    _check(value[key], field_kind, f"{name}.{key}" if name else key)


def _is_plain(value: Any, kind: str) -> bool:
    if kind == NUMBER:
        return type(value) is int and -(2**63) <= value < 2**63
    if kind == FLAG:
        return isinstance(value, bool)
    return isinstance(value, str) and (kind == TEXT or _is_time(value))


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[: len("2026-11-24T10:00:00")])
    except ValueError:  # no month has such a day, or no minute such a second
        return False
    return True


def _expect(holds: bool, value: Any, expected: str, name: str) -> None:
    if not holds:
        shown = safe(json.dumps(value)[:200])
        raise BrokenError(
            f"its configuration has {shown} for {safe(name)}, expected {expected}"
        )


def excesses(settings: Mapping[str, Any]) -> Iterator[str]:
    """Texts about lists and tables that are too long in how containers are started."""
    for name in _LISTS_AND_TABLES:
        entries = settings.get(name)
        if not entries:
            continue
        size = len(json.dumps(entries, ensure_ascii=False).encode("utf-8", "replace"))
        if len(entries) > MOST_ENTRIES or size > MOST_BYTES:
            text = f"its configuration has {len(entries):,} {name}, of {size:,} bytes"
            yield f"{text}, expected at most {MOST_ENTRIES:,}, of {MOST_BYTES:,}"
