"""Says how a submission is evaluated: what commands and Python users can set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from flare.common.options import decimals, option
from flare.common.schema import check


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """The options that `flare.evaluate`, `flare.evaluate_many` and commands share.

    Their values are checked here alone, and the commands take their help from here. A
    ValueError is raised if a value is not one of those that are allowed.
    """

    on_bad_case: Literal["refuse", "worst"] = option(
        "Refuse a submission with a missing or unusable case, or let the case score 0"
        " (default: refuse).",
        default="refuse",
    )
    grid: Literal["strict", "size"] | None = option(
        "Say whether only the size of a grid must be right (default: the challenge's"
        " rule).",
        default=None,
    )
    unknown_labels: Literal["refuse", "ignore"] | None = option(
        "Say what unknown labels in predictions mean (default: the challenge's rule).",
        default=None,
    )
    decimals: int | None = option(
        "Round the numbers in metrics.json to N decimals (default: $FLARE_DECIMALS,"
        " else the challenge's for the board, else not at all).",
        default=None,
        parse=decimals,
        envvar="FLARE_DECIMALS",
        metavar="N",
    )

    def __post_init__(self) -> None:
        for name, allowed in (
            ("on_bad_case", ("refuse", "worst")),
            ("grid", ("strict", "size", None)),
            ("unknown_labels", ("refuse", "ignore", None)),
        ):
            value = getattr(self, name)
            check(value in allowed, name, value, " or ".join(map(repr, allowed)))
        check_count("decimals", self.decimals, least=0)

    @property
    def is_refused(self) -> bool:
        """Whether a submission with a bad case is refused."""
        return self.on_bad_case == "refuse"

    def changed(self) -> dict[str, str]:
        """The options that are not at their default, as metrics.json has them."""
        changed = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                changed[field.name] = str(value)
        return changed

    @property
    def flags(self) -> str:
        """The flags of `changed`, each with a blank before it."""
        options = self.changed().items()
        return "".join(f" --{name.replace('_', '-')} {v}" for name, v in options)


def check_count(name: str, value: object, *, least: int) -> None:
    """Refuse a value of an argument that is neither None nor a number to count with."""
    is_count = value is None or (type(value) is int and value >= least)
    check(is_count, name, value, f"None or a whole number (int) from {least} on")
