"""What measuring is told: all that a command fills, and a caller from Python gives.

A limit of a container is declared in `flare.common.engine`, as engines enforce it, and
how an image is run in `flare.measuring.contract`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from flare.common.engine import NO_GPU, Limits, engine_option, limit, size
from flare.common.errors import InputError
from flare.common.options import (
    argument,
    challenge_option,
    option,
    page_file,
    positive,
    seconds,
    workers_option,
)
from flare.measuring.contract import Contract


class Caches(Enum):
    """What a run finds in the memory of the computer."""

    COLD = "cold"
    """Nothing: files are read from the disk, for every run alike."""
    WARM = "warm"
    """What earlier runs have left: an earlier run can help a later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How often a case is run, and what is sampled of it."""

    interval_s: float = option(  # as in the official scripts
        "Sample the memory every S seconds (default: 0.1).",
        default=0.1,
        parse=seconds,
        metavar="S",
    )
    repeats: int = option(  # `flare.measuring.record.counted_run` says which one counts
        "Run each case N times; the one with the median time counts (default: 1).",
        default=1,
        parse=positive,
        metavar="N",
    )
    caches: Caches | None = option(
        "Throw files out of the memory before each run, which only root can do, or"
        " do not (default: cold as root, else warm).",
        default=None,
    )
    has_warm_up: bool = option(
        "With warm caches, do not throw a first run away.",
        default=True,
        flag="--no-warm-up",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLimits(Limits):
    """Limits of containers that have a GPU unless told otherwise."""

    gpu: str = limit(
        "Give it this GPU, as nvidia-smi counts (default: 0).",
        default="0",
        metavar="INDEX|UUID|none",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLimits(Limits):
    """Limits of containers of which several may run side by side, each on a lane."""

    gpu: str = limit(
        "Give it this GPU, as nvidia-smi counts; several GPUs measure as many teams at"
        " once (default: 0).",
        default="0",
        metavar="INDEX|UUID[,...]|none",
    )
    memory: str = limit(
        "Give it so much memory of the host, such as 28g (default: 28g; an equal part"
        " of the computer's, if that is less, on several lanes).",
        default="",
        parse=size,
        metavar="SIZE",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringOptions:
    """How images are run and scored, those of a command as those of a service."""

    ground_truth: Path | None = option(
        "Score the predictions against these reference labels.",
        default=None,
        metavar="DIR",
    )
    limits: Limits = field(default_factory=ServedLimits)
    contract: Contract = field(default_factory=Contract)
    engine: str = engine_option()
    runs: RunOptions = field(default_factory=RunOptions)
    page: Path | None = option(
        "Show how it goes on, on this page, which a browser reads anew by itself;"
        " needs Jinja2.",
        default=None,
        parse=page_file,
        metavar="FILE.html",
    )
    challenge: str = challenge_option()
    workers: int | None = workers_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(MeasuringOptions):
    """What is measured, and how."""

    archives: Path = argument(
        "What a team has sent, or a folder of such files.",
        metavar="TEAMNAME.tar.gz|FOLDER",
    )
    model: Path | None = option(
        "The team's model, for /opt/ml/model of its containers (default:"
        " TEAMNAME.model.tar.gz beside the archive, if it is there).",
        default=None,
        metavar="FILE.tar.gz",
    )
    images: Path = option("Folder of the CTs, one for each case.", metavar="DIR")
    output: Path = option(
        "Folder that gets a folder for each team; a measurement that is there goes on.",
        metavar="RESULTS[/TEAMNAME]",
    )
    limits: Limits = field(default_factory=LaneLimits)
    lanes: int | None = option(
        "With --gpu none, measure N teams at once, each on processors of its own"
        " (default: 1).",
        default=None,
        parse=positive,
        metavar="N",
    )
    cluster: str | None = option(
        "Measure on the computers whose Dask workers have the resource GPU=1, each"
        " with an engine of its own; --gpu and --lanes are those of each computer.",
        default=None,
        metavar="tcp://HOST:PORT",
    )
    rerun: tuple[str, ...] = option(
        "Run this case again, whatever came of it; needs --reason.",
        default=(),
        metavar="CASE",
    )
    reason: str = option(
        "Say for the record why a case is run again.", default="", metavar="TEXT"
    )
    new_archive: str = option(
        "Accept another archive of a team than the first, for this reason.",
        default="",
        metavar="REASON",
    )
    unlike_host: str = option(
        "Accept another computer or GPU than that of a team's earlier cases, for this"
        " reason.",
        default="",
        parse=str.strip,
        metavar="REASON",
    )
    paper: str = option(
        "Note the team's paper in the ledger.", default="", metavar="TEXT"
    )

    def __post_init__(self) -> None:
        if self.rerun and not self.reason.strip():
            raise InputError(
                "--rerun: no reason was given",
                "Say why, for the record: --reason TEXT.",
            )
        if self.gpus and self.lanes and max(self.lanes, len(self.gpus)) > 1:
            raise InputError(
                f"--lanes {self.lanes}: it is for --gpu none, as each GPU has a lane",
                "Name the GPUs instead: --gpu 0,1.",
            )

    @property
    def gpus(self) -> tuple[str, ...]:
        """Indexes or UUIDs, a lane for each; none to measure without."""
        return () if self.limits.gpu == NO_GPU else tuple(self.limits.gpu.split(","))

    @property
    def lane_count(self) -> int:
        """Lanes of a computer."""
        return len(self.gpus) or self.lanes or 1

    @property
    def is_side_by_side(self) -> bool:
        """Whether there is to be more than one lane, or one elsewhere."""
        return self.lane_count > 1 or self.cluster is not None
