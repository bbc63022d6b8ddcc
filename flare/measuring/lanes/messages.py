"""What a process that measures a team tells whoever has started it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flare.common.errors import FlareError
from flare.results.efficiency_csv import CaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is left to do of the team, whose folder is locked now."""

    todo: tuple[str, ...]
    done: Mapping[str, CaseRecord]
    """What was measured before, by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A case is run next."""

    case: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A case was run."""

    record: CaseRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The measurement of the team could not begin, or go on."""

    error: FlareError


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A line of the log."""

    level: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """All is done that can be done; nothing is left behind, and nothing follows."""


Message = Planned | Begun | Ran | Failed | Said | Ended
