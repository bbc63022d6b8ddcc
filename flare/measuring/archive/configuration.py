"""Checks the configuration of an image: the types of its fields, and their number.

Engines read it into records of Go, as Docker and the Open Container Initiative have
them. A value of another type ends loading, and some of what is right, but a lot, costs
each container minutes: so both are refused before an engine sees them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
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


class Plain(Enum):
    """A value that holds no others, as messages call it."""

    TEXT = "a text"
    FLAG = "true or false"
    NUMBER = "a whole number"
    TIME = "a time such as 2026-11-24T10:00:00Z"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose values are of one kind."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class TableOf:
    """An object that has any keys."""

    kind: Kind


Kind: TypeAlias = "Plain | ListOf | TableOf | Mapping[str, Kind]"
"""The type of a value; a mapping is an object with these fields, and any others."""

TEXTS = ListOf(Plain.TEXT)

SETTINGS: Mapping[str, Kind] = {
    "Hostname": Plain.TEXT,
    "Domainname": Plain.TEXT,
    "User": Plain.TEXT,
    "AttachStdin": Plain.FLAG,
    "AttachStdout": Plain.FLAG,
    "AttachStderr": Plain.FLAG,
    "ExposedPorts": TableOf({}),
    "Tty": Plain.FLAG,
    "OpenStdin": Plain.FLAG,
    "StdinOnce": Plain.FLAG,
    "Env": TEXTS,
    "Cmd": TEXTS,
    "Healthcheck": {
        "Test": TEXTS,
        "Interval": Plain.NUMBER,
        "Timeout": Plain.NUMBER,
        "StartPeriod": Plain.NUMBER,
        "StartInterval": Plain.NUMBER,
        "Retries": Plain.NUMBER,
    },
    "ArgsEscaped": Plain.FLAG,
    "Image": Plain.TEXT,
    "Volumes": TableOf({}),
    "WorkingDir": Plain.TEXT,
    "Entrypoint": TEXTS,
    "NetworkDisabled": Plain.FLAG,
    "MacAddress": Plain.TEXT,
    "OnBuild": TEXTS,
    "Labels": TableOf(Plain.TEXT),
    "StopSignal": Plain.TEXT,
    "StopTimeout": Plain.NUMBER,
    "Shell": TEXTS,
}
"""How containers of an image are started."""

CONFIGURATION: Mapping[str, Kind] = {
    "id": Plain.TEXT,
    "parent": Plain.TEXT,
    "comment": Plain.TEXT,
    "created": Plain.TIME,
    "container": Plain.TEXT,
    "container_config": SETTINGS,
    "docker_version": Plain.TEXT,
    "author": Plain.TEXT,
    "config": SETTINGS,
    "architecture": Plain.TEXT,
    "variant": Plain.TEXT,
    "os": Plain.TEXT,
    "os.version": Plain.TEXT,
    "os.features": TEXTS,
    "Size": Plain.NUMBER,
    "rootfs": {"type": Plain.TEXT, "diff_ids": TEXTS},
    "history": ListOf(
        {
            "created": Plain.TIME,
            "created_by": Plain.TEXT,
            "author": Plain.TEXT,
            "comment": Plain.TEXT,
            "empty_layer": Plain.FLAG,
        }
    ),
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
        case Plain():
            _expect(_is_plain(value, kind), value, kind.value, name)
        case ListOf():
            _expect(isinstance(value, list), value, "a list", name)
            for number, item in enumerate(value, start=1):
                _check(item, kind.kind, f"{name}[{number}]")
        case TableOf():
            _expect(isinstance(value, dict), value, "an object", name)
            _check_fields(value, dict.fromkeys(value, kind.kind), name)
        case _:
            _expect(isinstance(value, dict), value, "an object", name)
            _check_fields(fields_of(value, *kind), kind, name)


def _check_fields(
    values: Mapping[str, Any], kinds: Mapping[str, Kind], name: str
) -> None:
    for key, kind in kinds.items():
        # What is null is as good as not there, for every engine.
        if values.get(key) is not None:
            _check(values[key], kind, f"{name}.{key}" if name else key)


def _is_plain(value: Any, kind: Plain) -> bool:
    match kind:
        case Plain.TEXT:
            return isinstance(value, str)
        case Plain.FLAG:
            return isinstance(value, bool)
        case Plain.NUMBER:
            return type(value) is int and -(2**63) <= value < 2**63
        case Plain.TIME:
            return isinstance(value, str) and _is_time(value)


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
    for name, kind in SETTINGS.items():
        entries = settings.get(name)
        if not entries or not isinstance(kind, ListOf | TableOf):
            continue
        size = len(json.dumps(entries, ensure_ascii=False).encode("utf-8", "replace"))
        if len(entries) > MOST_ENTRIES or size > MOST_BYTES:
            text = f"its configuration has {len(entries):,} {name}, of {size:,} bytes"
            yield f"{text}, expected at most {MOST_ENTRIES:,}, of {MOST_BYTES:,}"
