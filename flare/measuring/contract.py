"""Names the two ways in which an image is run: as FLARE's teams, or an algorithm.

FLARE's image reads a CT in /workspace/inputs, and is started by ``sh predict.sh``. An
algorithm of grand-challenge.org reads the image of its interface below /input, writes
below /output, and is started as its own ENTRYPOINT and CMD say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from flare.common.options import option

MODEL_FOLDER = "/opt/ml/model"
"""Where a container finds the model that was sent beside its image, by either contract:
read-only, so that no case can leave something behind for the next one."""

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
    """Relative path of a socket that holds an image."""
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is no path of an image socket such as images/ct")
    return text


def _option(help: str, **more: Any) -> Any:
    return option(help, title="Contract of the images", **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What an image and its organisers have agreed on.

    Raises
    ------
    ValueError
        If an algorithm's paths are missing, or nothing asks for them.

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
        given = {"--input-socket": self.input_socket, "--output-path": self.output_path}
        missing = [option for option, value in given.items() if not value]
        if self.is_algorithm and missing:
            needed = " and ".join(missing)
            raise ValueError(f"--contract algorithm needs {needed} of the interface")
        for option_, value in given.items():
            if value and not self.is_algorithm:
                raise ValueError(f"{option_} is for --contract algorithm alone")

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
        """Of the socket of an algorithm's input image."""
        return self.input_socket[0] if self.input_socket else ""

    @property
    def input_path(self) -> str:
        """Where the image of a case lies, below `inputs`."""
        return self.input_socket[1] if self.input_socket else ""

    @property
    def outputs(self) -> str:
        """The folder that a container writes."""
        return "/output" if self.is_algorithm else "/workspace/outputs"

    @property
    def written_to(self) -> str:
        """Where a label map is expected: of an algorithm under any name."""
        return f"{self.outputs}/{self.output_path}".rstrip("/")

    @property
    def command(self) -> tuple[str, ...]:
        """What is run; empty for the image's own ENTRYPOINT and CMD."""
        return () if self.is_algorithm else ("/bin/bash", "-c", "sh predict.sh")

    def settings(self) -> dict[str, Any]:
        """What measurement.json says of it; nothing for FLARE's, as ever."""
        if not self.input_socket:
            return {}
        read = "=".join(self.input_socket)
        return {"contract": f"algorithm {read} {self.output_path}"}


FLARE = Contract()
"""What the teams of FLARE are told."""
