"""Reads a challenge from its TOML file, says what it means, and compares its rules.

Results remember these rules instead of the bytes of a file: a comment, a name, a weight
or the metrics of the ranking change no score, and nothing that was measured.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from flare.challenge.metrics import SCORES
from flare.challenge.rules import Challenge
from flare.common.errors import AboutFile, OrganiserError
from flare.common.schema import build, dump
from flare.common.text import count, listing, safe, why

Rule = str | int | float | bool | None

Rules = Mapping[str, Rule]
"""Values by key; those of an organ have keys such as "tolerance_mm of liver"."""

READ = (
    *("organs", "absent_organs", "smallest_dsc_for_nsd", "decimals", "z_range"),
    *("unknown_labels", "grid", "npz", "metrics"),
)
"""Fields of a challenge that scoring reads, whatever their values."""

OF_ORGANS = ("label", "tolerance_mm", "in_mean")
"""What of these it reads of an organ."""

NOT_READ = (
    *("key", "name", "checksum", "algorithm", "ranking", "max_gpu_memory"),
    *("efficiency_gate_dsc", "board", "reported", "not_known", "names"),
)
"""Fields of a challenge that change no score; any further one does where it is set."""

SHOWN = ("algorithm", "max_gpu_memory", "efficiency_gate_dsc", "board", "names")
"""What of these is told of a challenge by its key."""


def further_rules(challenge: Challenge) -> dict[str, Rule]:
    """Rules of scoring beside `READ` that are not left at their defaults."""
    return {
        rule.name: dump(getattr(challenge, rule.name))
        for rule in fields(challenge)
        if rule.name not in (*READ, *NOT_READ)
        and getattr(challenge, rule.name) != rule.default
    }


def _told(challenge: Challenge, name: str) -> dict[str, Rule]:
    """A field of a challenge as JSON has it; of a table, its keys."""
    value = dump(getattr(challenge, name))
    if isinstance(value, dict):
        return {f"{name}.{key}": own for key, own in value.items()}
    return {name: value}


def scoring_rules(challenge: Challenge) -> dict[str, Rule]:
    """Everything that the scores of label maps depend on, by key.

    The order of the organs is not among it, nor is a rule that applies to nothing.

    Examples
    --------
    >>> from flare.challenge.reading import read_challenge
    >>> scoring_rules(read_challenge("flare21"))["tolerance_mm of liver"]
    1.0
    """
    rules: dict[str, Rule] = {
        f"{key} of {organ.name}": getattr(organ, key)
        for organ in challenge.organs
        for key in OF_ORGANS
    }
    for name in set(READ) - {"organs", "metrics"}:
        rules |= _told(challenge, name)
    rules |= further_rules(challenge)
    zs = challenge.z_range
    rules["z_range.organs"] = ", ".join(sorted(zs.organs))
    rules["z_range.top_slice"] = zs.top_slice.value if zs.organs else ""
    if challenge.metrics != SCORES:
        rules["metrics"] = ", ".join(challenge.metrics)
    if not challenge.npz.prediction:
        rules = {key: own for key, own in rules.items() if not key.startswith("npz.")}
    return dict(sorted(rules.items()))


def all_rules(challenge: Challenge) -> dict[str, Rule]:
    """The rules of scoring, and what else is not left at its default, by key."""
    rules = scoring_rules(challenge)
    for field in fields(challenge):
        if field.name in SHOWN and getattr(challenge, field.name) != field.default:
            rules |= _told(challenge, field.name)
    return rules


def measuring_rules(challenge: Challenge) -> dict[str, Any]:
    """What measuring a team depends on: the memory that counts, and the labels."""
    labels = sorted(organ.label for organ in challenge.organs)
    return {
        "max_gpu_memory": challenge.max_gpu_memory.value,
        "labels": ", ".join(map(str, labels)),
    }


def rules_digest(rules: Rules) -> str:
    """SHA-256 of rules, whatever their order."""
    text = json.dumps(dict(rules), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rule_differences(own: Rules, others: Rules) -> tuple[str, ...]:
    """How rules differ from others, each by its key and values.

    Examples
    --------
    >>> rule_differences({"decimals": None, "label of liver": 1}, {"decimals": 4})
    ('decimals none instead of 4', 'label of liver 1 instead of nothing')
    """
    return tuple(
        f"{safe(key)} {rule_text(own, key)} instead of {rule_text(others, key)}"
        for key in sorted({*own, *others})
        if key not in own or key not in others or own[key] != others[key]
    )


def rule_text(rules: Rules, key: str) -> str:
    """A value as in a challenge file; the beginning of a digest."""
    value = rules.get(key, "nothing")
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else safe(str(value))
    return text[:12] if key.endswith("_sha256") else text


def recorded_challenge(
    key: str, rules: Mapping[str, Any], organs: Sequence[str]
) -> Challenge:
    """The challenge that results were scored by, as far as scoring has read it.

    Parameters
    ----------
    key : str
        What the challenge is called.
    rules : mapping
        As `flare.challenge.reading.scoring_rules` gives them.
    organs : sequence of str
        The names of its organs, in their order.

    Raises
    ------
    ValueError
        If a rule is missing, or has a value that no rule can have.
    """
    found: dict[str, Any] = {"z_range": {}}
    for name, rule in rules.items():
        field, _, inner = name.partition(".")
        if inner:
            found.setdefault(field, {})[inner] = rule
        elif " of " not in name:
            found[field] = _parts(rule) if field == "metrics" else rule
    found["z_range"]["organs"] = _parts(found["z_range"].get("organs"))
    if not found["z_range"].get("top_slice"):
        found["z_range"].pop("top_slice", None)
    own = [
        {"name": name, **{each: rules.get(f"{each} of {name}") for each in OF_ORGANS}}
        for name in organs
    ]
    values = {**found, "name": key, "organs": own}
    try:
        challenge = build(Challenge, values, key=key, checksum="")
    except OverflowError as error:
        raise ValueError(str(error)) from error
    missing = scoring_rules(challenge).keys() - rules.keys()
    if missing:
        raise ValueError(f"{listing(sorted(missing))} is missing")
    return challenge


def _parts(rule: Rule) -> list[str]:
    """What a rule lists."""
    return [part for part in str(rule or "").split(", ") if part]


# --- The file -----------------------------------------------------------------------


class ChallengeError(AboutFile, OrganiserError):
    """A challenge file breaks its rules.

    For organisers: the file, the key, the value and what is allowed are in the message.
    See `docs/reference/challenge-files.md`.
    """

    code = "G01"
    remedy = "The documentation's page Challenge files explains every key."


EDITIONS = Path(__file__).parent / "editions"
"""Folder of the challenges that come with the program."""

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
    files, _ = _read_layers(name)
    own, *others = (
        (file.stem, text.decode().rstrip("\n")) for file, text in files.items()
    )
    parts = [own[1]]
    for stem, text in others:
        lines = (f"# {line}".rstrip() for line in text.split("\n"))
        parts.append("\n".join([f"# --- {stem}, which is extended:", *lines]))
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


def _read_layers(name: str) -> tuple[dict[Path, bytes], list[dict[str, Any]]]:
    """The file of a challenge, and those that it extends behind it; their values."""
    files: dict[Path, bytes] = {}
    layers: list[dict[str, Any]] = []
    wanted: object = name
    while wanted is not None:
        if layers and wanted not in challenge_names():
            names = listing(challenge_names(), last=" or ")
            problem = f"extends is {safe(repr(wanted))}, expected {names}"
            raise ChallengeError(name, problem)
        source, content = _read_file(str(wanted))
        if source in files:
            raise ChallengeError(name, f"extends leads back to {safe(source.name)}")
        try:
            values = tomllib.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ChallengeError(name, f"is not TOML ({safe(str(error))})") from error
        files[source] = content
        layers.append(values)
        wanted = values.pop("extends", None)
    return files, layers


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
    files, layers = _read_layers(name)
    values = functools.reduce(_merged, reversed(layers))
    checksum = hashlib.sha256(b"".join(files.values())).hexdigest()
    try:
        return build(Challenge, values, key=next(iter(files)).stem, checksum=checksum)
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
    if challenge.reported:
        lines += ["", f"{challenge.rules_note[0].upper()}{challenge.rules_note[1:]}:"]
    for entry in challenge.reported:
        lines.append(f"  {entry.rule} ({count(entry.teams, 'team')}):")
        lines += [f"    {link}" for link in entry.source]
    if challenge.not_known:
        lines += ["", "Not known:", *(f"  {text}" for text in challenge.not_known)]
    return "\n".join(lines)
