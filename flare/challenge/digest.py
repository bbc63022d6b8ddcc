"""Compares challenges by the rules that scoring and measuring read of them.

Results remember these rules instead of the bytes of a file: a comment, a name, a weight
or the metrics of the ranking change no score, and nothing that was measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from flare.challenge.metrics import SCORES
from flare.challenge.rules import (
    Challenge,
)
from flare.common.schema import build, dump
from flare.common.text import listing, safe

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
    further = [
        rule.name
        for rule in fields(challenge)
        if rule.name not in (*READ, *NOT_READ)
        and getattr(challenge, rule.name) != rule.default
    ]
    return _values(challenge, further)


def _values(challenge: Challenge, names: Iterable[str]) -> dict[str, Any]:
    """Some fields of a challenge, as JSON has them."""
    return {name: dump(getattr(challenge, name)) for name in names}


def scoring_rules(challenge: Challenge) -> dict[str, Rule]:
    """Everything that the scores of label maps depend on, by key.

    The order of the organs is not among it, nor is a rule that applies to nothing.

    Examples
    --------
    >>> from flare.challenge.reading import read_challenge
    >>> scoring_rules(read_challenge("flare21"))["tolerance_mm of liver"]
    1.0
    """
    rules: dict[str, Rule] = {}
    for organ in challenge.organs:
        for key in OF_ORGANS:
            rules[f"{key} of {organ.name}"] = getattr(organ, key)
    read = set(READ) - {"organs", "metrics"}
    for field, value in _values(challenge, read).items():
        if isinstance(value, dict):
            rules |= {f"{field}.{key}": own for key, own in value.items()}
        else:
            rules[field] = value
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
        own = getattr(challenge, field.name)
        if field.name in SHOWN and own != field.default:
            told = dump(own)
            inner = told if isinstance(told, dict) else {"": told}
            rules |= {f"{field.name}.{key}".rstrip("."): v for key, v in inner.items()}
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
        As `flare.challenge.digest.scoring_rules` gives them.
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
