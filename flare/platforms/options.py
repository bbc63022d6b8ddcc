"""Which platform a command is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flare.common.options import option


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformOptions:
    """The platform, and what its rules are in where that is a file."""

    platform: Literal["grand-challenge", "codabench"] = option(
        "Go by the rules of grand-challenge (the default) or codabench.",
        default="grand-challenge",
    )
    bundle: Path | None = option(
        "The bundle.zip of codabench, whose settings apply.",
        default=None,
        metavar="ZIP",
    )

    def __post_init__(self) -> None:
        """Check that a bundle is given where the platform has one."""
        if (self.platform == "codabench") != bool(self.bundle):
            raise ValueError("--platform codabench and --bundle need each other")
