"""Makes a challenge of the rules that results remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flare.challenge.metrics import ALWAYS
from flare.challenge.npz_rules import NpzRules, SpacingOrder
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


def recorded_challenge(
    key: str, rules: Mapping[str, Any], organs: Sequence[str]
) -> Challenge:
    """The challenge that results were scored by, as far as scoring has read it.

    Parameters
    ----------
    key : str
        What the challenge is called.
    rules : mapping
        As `flare.challenge.rule_digest.scoring_rules` gives them.
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
        return Challenge(
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
            metrics=tuple(rules.get("metrics", ", ".join(ALWAYS)).split(", ")),
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
