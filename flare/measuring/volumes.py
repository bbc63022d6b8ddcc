"""Makes the volumes in memory that containers write their outputs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flare.common.engine import Engine
from flare.common.errors import EngineError
from flare.measuring.cleanup import label_of
from flare.measuring.empty_image import HOLD, OUTPUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume that vanishes with the container that holds it."""

    name: str
    holder: str
    """ID of the container of ours that does nothing but hold it."""


@contextmanager
def output_volume(
    engine: Engine, *, empty: str, key: str, size: str, files: int
) -> Iterator[Volume]:
    """A fresh volume in memory for the output of a container.

    It takes no more bytes or files than it is told, knows neither devices nor
    programs that change the user, and never lies where users of this computer can
    reach it. It vanishes when no container has it any more: so one of ours holds it.

    Parameters
    ----------
    engine : Engine
        What makes it.
    empty : str
        The image of `flare.measuring.empty_image`.
    key : str
        Says which measurement it belongs to.
    size : str
        Such as 4g.
    files : int
        Files and folders that fit.

    Yields
    ------
    Volume
        It, and the container that holds it.
    """
    options = f"size={size},nr_inodes={files},mode=0777,nosuid,nodev"
    label = ("--label", label_of(key))
    name, holder = "", ""
    try:
        name = engine.call(
            *("volume", "create", "--driver", "local", *label),
            *("--opt", "type=tmpfs", "--opt", "device=tmpfs"),
            *("--opt", f"o={options}"),
        )
        try:
            holder = engine.call(
                *("run", "--detach", *label, "--network", "none", "--cap-drop", "ALL"),
                *("--security-opt", "no-new-privileges", "--read-only"),
                *("--volume", f"{name}:{OUTPUTS}", empty, *HOLD),
            )
        except EngineError:
            engine.remove_created(label_of(key))  # made, and not started
            raise
        yield Volume(name=name, holder=holder)
    finally:
        if holder:
            engine.remove_container(holder)
        if name:
            engine.call("volume", "rm", "--force", name, check=False)
