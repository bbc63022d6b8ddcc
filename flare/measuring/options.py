"""Declares what measuring can be told: by a command, or by a caller from Python.

A limit of a container is declared in `flare.results.limits`, as engines enforce it.

There are two ways in which an image is run. FLARE's reads a CT in /workspace/inputs,
and is started by ``sh predict.sh``. An algorithm of grand-challenge.org reads the image
of its interface below /input, writes below /output, and is started as its own
ENTRYPOINT and CMD say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

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
from flare.measuring.engines.interface import engine_option
from flare.results.limits import NO_GPU, Limits, limit

MODEL_FOLDER = "/opt/ml/model"
"""Folder of a container with the model that was sent beside its image, by either
contract: read-only, so that no case can leave something behind for the next one."""

_PATH = re.compile(r"images(?:/[A-Za-z0-9][\w.-]*)+", re.ASCII)
"""The platform's rule for the relative path of a socket that holds an image."""

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")


def image_socket(text: str) -> tuple[str, str]:
    """Slug and relative path of a socket.

    Examples
    --------
    >>> image_socket("ct-image=images/ct")
    ('ct-image', 'images/ct')
    """
    slug, _, path = text.partition("=")
    if not _SLUG.fullmatch(slug) or not path:
        raise ValueError(f"{text!r} is no slug and path such as ct-image=images/ct")
    return slug, image_path(path)


def image_path(text: str) -> str:
    """The relative path of a socket that holds an image."""
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is no path of an image socket such as images/ct")
    return text


def _option(help: str, **words: Any) -> Any:
    return option(help, title="Contract of the images", **words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The contract between an image and its organisers.

    A ValueError is raised if an algorithm's paths are missing, or nothing asks for
    them.

    Examples
    --------
    >>> Contract().written_to
    '/workspace/outputs'
    """

    contract: Literal["flare", "algorithm"] = _option(
        "Run images as FLARE does, by predict.sh in /workspace, or as algorithms of"
        " grand-challenge.org, by their own entrypoint with /input and /output"
        " (default: flare).",
        default="flare",
    )
    input_socket: tuple[str, str] | None = _option(
        "Slug and relative path of the algorithm's input image, such as"
        " ct-image=images/ct.",
        default=None,
        parse=image_socket,
        metavar="SLUG=PATH",
    )
    output_path: str = _option(
        "Relative path of the algorithm's label map, such as"
        " images/organ-segmentation.",
        default="",
        parse=image_path,
        metavar="PATH",
    )

    def __post_init__(self) -> None:
        flags = {"--input-socket": self.input_socket, "--output-path": self.output_path}
        missing = [flag for flag, value in flags.items() if not value]
        if self.is_algorithm and missing:
            needed = " and ".join(missing)
            raise ValueError(f"--contract algorithm needs {needed} of the interface")
        for flag, value in flags.items():
            if value and not self.is_algorithm:
                raise ValueError(f"{flag} is for --contract algorithm alone")

    @property
    def is_algorithm(self) -> bool:
        """Whether it is the platform's."""
        return self.contract == "algorithm"

    @property
    def inputs(self) -> str:
        """The folder that a container reads."""
        return "/input" if self.is_algorithm else "/workspace/inputs"

    @property
    def input_slug(self) -> str:
        """The slug of the socket of an algorithm's input image."""
        return self.input_socket[0] if self.input_socket else ""

    @property
    def input_path(self) -> str:
        """The folder of the image of a case, below `inputs`."""
        return self.input_socket[1] if self.input_socket else ""

    @property
    def outputs(self) -> str:
        """The folder that a container writes."""
        return "/output" if self.is_algorithm else "/workspace/outputs"

    @property
    def written_to(self) -> str:
        """The folder where a label map is expected, under any name."""
        return f"{self.outputs}/{self.output_path}".rstrip("/")

    @property
    def command(self) -> tuple[str, ...]:
        """The words that are run; empty for the image's own ENTRYPOINT and CMD."""
        return () if self.is_algorithm else ("/bin/bash", "-c", "sh predict.sh")

    @property
    def setting(self) -> str:
        """The setting of measurement.json that it is; empty for FLARE's, as ever."""
        if not self.input_socket:
            return ""
        return f"algorithm {'='.join(self.input_socket)} {self.output_path}"


FLARE = Contract()
"""The contract of FLARE's teams."""


class Caches(Enum):
    """The files that a run finds in the memory of the computer."""

    COLD = "cold"
    """None: they are read from the disk, for every run alike."""
    WARM = "warm"
    """Those that earlier runs have left: an earlier run can help a later one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How often a case is run, and what is sampled of it."""

    interval_s: float = option(  # as in the official scripts
        "Sample the memory every S seconds (default: 0.1).",
        default=0.1,
        parse=seconds,
        metavar="S",
    )
    repeats: int = option(  # `container.counted_run` says which one counts
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
    """Limits of containers; several may run side by side, each on a lane."""

    gpu: str = limit(
        "Give it this GPU, as nvidia-smi counts; several GPUs measure as many teams at"
        " once (default: 0).",
        default="0",
        metavar="INDEX|UUID[,...]|none",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """How images are run and scored, by a command or by a service."""

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
class MeasureOptions(ImageOptions):
    """The images that are measured, and how."""

    archives: Path = argument(
        "What a team has sent, or a folder of such files.",
        metavar="TEAMNAME.tar.gz|FOLDER",
    )
    images: Path = option("Folder of the CTs of all cases.", metavar="DIR")
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
        if self.runs.caches is Caches.COLD and self.lane_count > 1:
            raise InputError(
                "--caches cold: lanes of a computer share its caches",
                "Measure with warm ones, which is the default.",
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
