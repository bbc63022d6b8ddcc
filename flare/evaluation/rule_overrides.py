"""Changes rules of a challenge for one run, as arguments say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flare.challenge.rules import Challenge, GridComparison, UnknownLabels


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a value of an argument that is not one of a few."""
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}: {value!r}")


def check_count(name: str, value: object, *, least: int) -> None:
    """Refuse a value of an argument that is neither None nor a number to count with."""
    if value is None or (type(value) is int and value >= least):
        return
    raise ValueError(
        f"{name} must be None or a whole number (int) from {least} on: {value!r}"
    )


def check_rule_options(grid: object, unknown_labels: object) -> None:
    """Refuse values that no rule of that name has; None leaves the challenge's."""
    if grid is not None:
        check_choice("grid", grid, ("strict", "size"))
    if unknown_labels is not None:
        check_choice("unknown_labels", unknown_labels, ("refuse", "ignore"))


def with_options(
    challenge: Challenge, grid: str | None, unknown_labels: str | None
) -> Challenge:
    """A challenge, some of whose rules were set for this run."""
    if grid:
        compare = GridComparison(grid)
        challenge = replace(challenge, grid=replace(challenge.grid, compare=compare))
    if unknown_labels:
        rules = replace(
            challenge.unknown_labels, prediction=UnknownLabels(unknown_labels)
        )
        challenge = replace(challenge, unknown_labels=rules)
    return challenge
