"""Write the demonstration set, which is synthetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flare.cli.command import takes
from flare.cli.console import say
from flare.common.options import option, whole
from flare.evaluation.demonstration import SEED, write_demonstration

PLACE = ("For developers", 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class DemonstrationRequest:
    """Where the set is written."""

    output: Path = option(
        "Write references, predictions and images into this folder.", metavar="DIR"
    )
    seed: int = option(
        "Start the random generator here (default: that of the bundled set).",
        default=SEED,
        parse=whole,
        metavar="N",
    )


@takes(DemonstrationRequest)
def command(request: DemonstrationRequest) -> None:
    for file in write_demonstration(request.output, seed=request.seed):
        say(f"Wrote {file}")
