"""Write the demonstration set, which is synthetic."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from flare.cli.command import takes
from flare.common.options import option, whole
from flare.evaluation.demonstration import SEED, write_demonstration

PLACE = ("For developers", 1)

_log = logging.getLogger(__name__)


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
    """Write the demonstration set."""
    for file in write_demonstration(request.output, seed=request.seed):
        _log.info("Wrote %s", file)
