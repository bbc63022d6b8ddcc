"""Names the two ways in which an image is run: as FLARE's teams, or an algorithm.

FLARE's image reads a CT in /workspace/inputs, and is started by ``sh predict.sh``. An
algorithm of grand-challenge.org reads the image of its interface below /input, writes
below /output, and is started as its own ENTRYPOINT and CMD say.
"""

from __future__ import annotations

from dataclasses import dataclass

MODEL_FOLDER = "/opt/ml/model"
"""Where a container finds the model that was sent beside its image, by either contract:
read-only, so that no case can leave something behind for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What an image and whoever runs it have agreed on."""

    inputs: str
    """The folder that it reads."""
    outputs: str
    """The folder that it writes."""
    command: tuple[str, ...] = ()
    """What is run in it; empty for its own ENTRYPOINT and CMD."""
    input_slug: str = ""
    """Of the socket of its input image."""
    input_path: str = ""
    """Where the image of a case lies, below `inputs`."""
    output_path: str = ""
    """Where its label map has to be, below `outputs`, under any name; empty for a file
    that is called like its case."""

    @property
    def is_algorithm(self) -> bool:
        """Whether it is the platform's."""
        return bool(self.output_path)

    @property
    def written_to(self) -> str:
        """The folder of the container in which a label map is expected."""
        return f"{self.outputs}/{self.output_path}".rstrip("/")

    def settings(self) -> dict[str, str]:
        """What measurement.json says of it; nothing for FLARE's, as ever."""
        if not self.is_algorithm:
            return {}
        read = f"{self.input_slug}={self.input_path}"
        return {"contract": f"algorithm {read} {self.output_path}"}


FLARE = Contract(
    inputs="/workspace/inputs",
    outputs="/workspace/outputs",
    command=("/bin/bash", "-c", "sh predict.sh"),
)
"""What the teams of FLARE are told."""


def algorithm(input_slug: str, input_path: str, output_path: str) -> Contract:
    """The contract of an algorithm by its interface.

    Parameters
    ----------
    input_slug, input_path : str
        Slug and relative path of the socket of the input image, such as ``ct-image``
        and ``images/ct``.
    output_path : str
        Relative path of the socket of the label map.

    Examples
    --------
    >>> algorithm("ct-image", "images/ct", "images/organs").written_to
    '/output/images/organs'
    """
    return Contract(
        inputs="/input",
        outputs="/output",
        input_slug=input_slug,
        input_path=input_path,
        output_path=output_path,
    )
