"""Compares challenges by the rules that scoring and measuring read of them.

Results remember these rules instead of the bytes of a file: a comment, a name, a weight
or the metrics of the ranking change no score, and nothing that was measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from flare.challenge.formats import NpzRules, SpacingOrder
from flare.challenge.metrics import SCORES
from flare.challenge.rules import (
    AbsentOrgans,
    Challenge,
    GridComparison,
    GridRules,
    Organ,
    TopSlice,
    UnknownLabelRules,
    UnknownLabels,
    ZRange,
)
from flare.common.text import listing, safe

Rule = str | int | float | bool | None


Rules = Mapping[str, Rule]
"""Values by key; those of an organ have keys such as "tolerance_mm of liver"."""


SPELT_OUT = (
    *("organs", "absent_organs", "smallest_dsc_for_nsd", "decimals", "z_range"),
    *("unknown_labels", "grid", "npz", "metrics"),
)
"""Fields of a challenge that scoring reads, and that `scoring_rules` has by keys of
their own."""

NOT_READ = (
    *("key", "name", "checksum", "algorithm", "ranking", "max_gpu_memory"),
    *("efficiency_gate_dsc", "board", "reported", "not_known"),
)
"""Fields of a challenge that change no score; any other one does."""


def further_rules(challenge: Challenge) -> dict[str, Rule]:
    """Rules of scoring that are neither spelt out here nor left at their defaults."""
    return {
        rule.name: getattr(challenge, rule.name)
        for rule in fields(challenge)
        if rule.name not in (*SPELT_OUT, *NOT_READ)
        and getattr(challenge, rule.name) != rule.default
    }


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
        rules[f"label of {organ.name}"] = organ.label
        rules[f"tolerance_mm of {organ.name}"] = organ.tolerance_mm
        rules[f"in_mean of {organ.name}"] = organ.in_mean
    absent, grid = challenge.absent_organs, challenge.grid
    unknown, zs = challenge.unknown_labels, challenge.z_range
    rules |= {
        "absent_organs.in_both": absent.in_both,
        "absent_organs.in_prediction": absent.in_prediction,
        "absent_organs.in_reference": absent.in_reference,
        "decimals": challenge.decimals,
        "grid.compare": grid.compare.value,
        "grid.tolerance_mm": grid.tolerance_mm,
        "smallest_dsc_for_nsd": challenge.smallest_dsc_for_nsd,
        "unknown_labels.prediction": unknown.prediction.value,
        "unknown_labels.reference": unknown.reference.value,
        "z_range.organs": ", ".join(sorted(zs.organs)),
        "z_range.top_slice": zs.top_slice.value if zs.organs else "",
    }
    rules |= further_rules(challenge)
    if challenge.metrics != SCORES:
        rules["metrics"] = ", ".join(challenge.metrics)
    if challenge.npz.prediction:
        rules |= {
            "npz.prediction": challenge.npz.prediction,
            "npz.reference": challenge.npz.reference,
            "npz.spacing": challenge.npz.spacing.value,
        }
    return dict(sorted(rules.items()))


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


def rule_differences(before: Rules, now: Rules) -> tuple[str, ...]:
    """How rules differ, each by its key and values.

    Examples
    --------
    >>> rule_differences({"decimals": None, "label of liver": 1}, {"decimals": 4})
    ('decimals: none, now 4', 'label of liver: 1, now gone')
    """
    return tuple(
        f"{safe(key)}: {_text(before, key, 'new')}, now {_text(now, key, 'gone')}"
        for key in sorted({*before, *now})
        if key not in before or key not in now or before[key] != now[key]
    )


def differences_text(before: Rules, now: Rules) -> str:
    """The same as part of a sentence, which counts what it does not name."""
    return listing(rule_differences(before, now))


def _text(rules: Rules, key: str, absent: str) -> str:
    """A value as in a challenge file."""
    if key not in rules:
        return absent
    value = rules[key]
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else safe(str(value))


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
    try:
        names = str(rules["z_range.organs"])
        top_slice = rules["z_range.top_slice"] or TopSlice.KEPT
        further = [
            row.name
            for row in fields(Challenge)
            if row.name in rules and row.name not in (*SPELT_OUT, *NOT_READ)
        ]
        return Challenge(
            **{name: rules[name] for name in further},
            key=key,
            name=key,
            checksum="",
            organs=tuple(
                Organ(
                    label=rules[f"label of {name}"],
                    name=name,
                    tolerance_mm=rules[f"tolerance_mm of {name}"],
                    in_mean=rules[f"in_mean of {name}"],
                )
                for name in organs
            ),
            metrics=tuple(rules.get("metrics", ", ".join(SCORES)).split(", ")),
            absent_organs=AbsentOrgans(
                in_both=rules["absent_organs.in_both"],
                in_prediction=rules["absent_organs.in_prediction"],
                in_reference=rules["absent_organs.in_reference"],
            ),
            smallest_dsc_for_nsd=rules["smallest_dsc_for_nsd"],
            decimals=rules["decimals"],
            z_range=ZRange(
                organs=tuple(names.split(", ")) if names else (),
                top_slice=TopSlice(top_slice),
            ),
            unknown_labels=UnknownLabelRules(
                reference=UnknownLabels(rules["unknown_labels.reference"]),
                prediction=UnknownLabels(rules["unknown_labels.prediction"]),
            ),
            grid=GridRules(
                compare=GridComparison(rules["grid.compare"]),
                tolerance_mm=rules["grid.tolerance_mm"],
            ),
            npz=NpzRules(
                prediction=rules.get("npz.prediction", ""),
                reference=rules.get("npz.reference", ""),
                spacing=SpacingOrder(rules.get("npz.spacing", "xyz")),
            ),
        )
    except (KeyError, TypeError) as error:
        text = f"a rule is missing or has an impossible value: {error}"
        raise ValueError(text) from error
