"""Reads a challenge from its TOML file, bundled or your own, and says what it means."""

from __future__ import annotations

import functools
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.challenge.digest import all_rules, rule_text
from flare.challenge.rules import Challenge
from flare.common.errors import AboutFile, OrganiserError
from flare.common.schema import build
from flare.common.text import count, listing, safe, why


class ChallengeError(AboutFile, OrganiserError):
    """A challenge file breaks its rules.

    For organisers: the file, the key, the value and what is allowed are in the message.
    See `docs/reference/challenge-files.md`.
    """

    code = "G01"
    remedy = "The documentation's page Challenge files explains every key."


EDITIONS = Path(__file__).parent / "editions"
"""Folder of the challenges that come with the program."""

EXTENDS = "extends"
"""The key that names the challenge of which a file says only what is different."""

KEPT = ("reported", "not_known")
"""Lists to which a file that extends another adds, and that it does not replace."""


def challenge_names() -> tuple[str, ...]:
    """Return the names of the challenges that come with the program."""
    return tuple(sorted(file.stem for file in EDITIONS.glob("*.toml")))


def challenge_text(name: str) -> str:
    """The file of a challenge, to start another one from.

    Behind it, as comments, are the files that it extends.

    Raises
    ------
    ChallengeError
        As `read_challenge`.
    """
    read_challenge(name)
    layers = _read_layers(name)
    parts = [layers[0].content.decode("utf-8").rstrip("\n")]
    for layer in layers[1:]:
        lines = layer.content.decode("utf-8").rstrip("\n").split("\n")
        title = f"# --- {layer.source.stem}, which is extended:"
        parts.append("\n".join([title, *(f"# {line}".rstrip() for line in lines)]))
    return "\n\n".join(parts) + "\n"


def _read_file(name: str) -> tuple[Path, bytes]:
    """Find the file of a challenge, and read it."""
    if name.endswith(".toml"):
        source = Path(name)
    elif name in challenge_names():
        source = EDITIONS / f"{name}.toml"
    else:
        problem = f"no such challenge; there are {listing(challenge_names())}, or give"
        raise ChallengeError(name, f"{problem} a file that ends in .toml")
    try:
        return source, source.read_bytes()
    except OSError as error:
        reason = why(error)
        raise ChallengeError(name, f"cannot be read ({reason})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """A challenge file, or one that it extends."""

    source: Path
    content: bytes
    values: dict[str, Any]


def _read_layers(name: str) -> tuple[_Layer, ...]:
    """Read the file of a challenge, and behind it those that it extends."""
    layers: list[_Layer] = []
    wanted: object = name
    while wanted is not None:
        if layers and wanted not in challenge_names():
            names = listing(challenge_names(), last=" or ")
            problem = f"extends is {safe(repr(wanted))}, expected {names}"
            raise ChallengeError(name, problem)
        source, content = _read_file(str(wanted))
        if source in [layer.source for layer in layers]:
            raise ChallengeError(name, f"extends leads back to {safe(source.name)}")
        try:
            values = tomllib.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ChallengeError(name, f"is not TOML ({safe(str(error))})") from error
        layers.append(_Layer(source=source, content=content, values=values))
        wanted = values.pop(EXTENDS, None)
    return tuple(layers)


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file that extends another: its own come first.

    Tables are merged key by key; what `KEPT` names is added to that of the base.
    """
    merged = dict(base)
    for key, value in own.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[key] = {**before, **value}
        elif key in KEPT and isinstance(before, list) and isinstance(value, list):
            merged[key] = [*before, *value]
        else:
            merged[key] = value
    return merged


def read_challenge(name: str | Path) -> Challenge:
    """Read a challenge.

    Parameters
    ----------
    name : str or Path
        Name of a bundled challenge, or the path of a TOML file (it ends in ``.toml``).

    Returns
    -------
    Challenge
        Its rules, which functions that take a ``challenge`` accept.

    Raises
    ------
    ChallengeError
        If there is no such challenge, or its file breaks a rule; the message names
        the file, the key, the value found and what is allowed.
    """
    name = str(name)
    layers = _read_layers(name)
    values = functools.reduce(_merged, (layer.values for layer in reversed(layers)))
    content = b"".join(layer.content for layer in layers)
    given = {
        "key": layers[0].source.stem,
        "checksum": hashlib.sha256(content).hexdigest(),
    }
    try:
        return build(Challenge, values, **given)
    except (ValueError, OverflowError) as error:
        raise ChallengeError(name, str(error)) from error


def challenge_summary(challenge: Challenge) -> str:
    """Say what a challenge asks for, by the keys of its file, for a person."""
    organs = sorted(challenge.organs, key=lambda organ: organ.label)
    width = max(len(organ.name) for organ in organs)
    lines = [f"{challenge.name} ({challenge.key})", ""]
    for organ in organs:
        line = f"{organ.label:>5}  {organ.name.ljust(width)}"
        line += f"  tolerance {organ.tolerance_mm:g} mm"
        line += "" if organ.in_mean else ", not in the means"
        line += ", cases without it are counted" if organ.free_cases else ""
        lines.append(line)
    rules = {
        key: value for key, value in all_rules(challenge).items() if " of " not in key
    }
    lines += ["", "Rules:", *(f"  {key}: {rule_text(rules, key)}" for key in rules)]
    if challenge.ranking:
        ranked = (f"{rule.metric} ({rule.better.value})" for rule in challenge.ranking)
        lines += ["", f"Ranked by {', '.join(ranked)}."]
    return "\n".join([*lines, *_provenance_lines(challenge)])


def _provenance_lines(challenge: Challenge) -> list[str]:
    """From whom rules are known that the organisers have not confirmed."""
    lines = []
    if challenge.reported:
        lines += ["", f"{challenge.rules_note[0].upper()}{challenge.rules_note[1:]}:"]
    for entry in challenge.reported:
        lines.append(f"  {entry.rule} ({count(entry.teams, 'team')}):")
        lines += [f"    {link}" for link in entry.source]
    if challenge.not_known:
        lines += ["", "Not known:", *(f"  {text}" for text in challenge.not_known)]
    return lines
