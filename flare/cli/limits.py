"""What a container may use, as a command is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from flare.cli.command import Option
from flare.cli.options import Parsed, with_options
from flare.common.machine import size_bytes
from flare.common.options import seconds

if TYPE_CHECKING:
    from flare.measuring.container_command import Limits
    from flare.measuring.sampling.nvml import NvmlSource


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitOptions:
    """What a container may use, as it was asked for."""

    gpu: str
    timeout: float
    memory: str | None
    """None if nothing was said."""
    shm_size: str
    output_size: str
    disk: int
    cpus: str | None
    """None if nothing was said."""
    runtime: str


def limit_options(
    *, gpu: str, is_several: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command be told what a container may use; it gets `LimitOptions`.

    Parameters
    ----------
    gpu : str
        The GPU, if nothing is said.
    is_several : bool
        Whether there may be several, each for containers of its own.
    """
    one, many = "INDEX|UUID|none", "INDEX|UUID[,...]|none"
    also = "; several GPUs measure as many teams at once" if is_several else ""
    equal = "; an equal part of the computer's, if that is less, on several lanes"
    options = [
        _limit("--gpu", many if is_several else one, gpu,
               f"Give it this GPU, as nvidia-smi counts{also} (default: {{}}).", str),
        _limit("--timeout", "S", "3600",
               "End it after S seconds on a case (default: {}).", seconds),
        _limit("--memory", "SIZE", None, "Give it so much memory of the host, such as"
               f" 28g (default: 28g{equal if is_several else ''}).", size),
        _limit("--shm-size", "SIZE", "28g", "Give it so much memory of /dev/shm, such"
               " as 28g (default: {}).", size),
        _limit("--output-size", "SIZE", "4g", "Give it so much of /workspace/outputs,"
               " which is in memory (default: {}).", size),
        _limit("--disk", "SIZE", "64g",
               "Let it write so much anywhere else (default: {}).", size_in_bytes),
        _limit("--cpus", "LIST|all", None, "Give it the processors of these numbers,"
               " such as 1-7 (default: all; all but the first one where there are more"
               " than two).", processors),
        _limit("--runtime", "NAME", "", "Run it by this runtime of the engine, such as"
               " runsc (default: the engine's).", str),
    ]  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**given: Any) -> Any:
            names = LimitOptions.__dataclass_fields__
            limits = {name: given.pop(name) for name in names}
            return function(limits=LimitOptions(**limits), **given)

        return with_options(command, options)

    return decorate


def _limit(
    flag: str,
    metavar: str,
    default: str | None,
    text: str,
    parse: Callable[[str], Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of a container's limits."""
    return click.option(
        flag,
        cls=Option,
        title="Limits of a container",
        type=Parsed(parse),
        default=default,
        metavar=metavar,
        help=text.format(default),
    )


def size(text: str) -> str:
    """A size as Docker takes it."""
    if not re.fullmatch(r"[1-9]\d{0,9}[bkmg]?", text):
        raise ValueError(f"{text!r} is not a size such as 28g or 512m")
    return text


def size_in_bytes(text: str) -> int:
    """A size, in bytes."""
    return size_bytes(size(text))


def processors(text: str) -> str:
    """Numbers of processors as Docker takes them; empty for all."""
    if text == "all":
        return ""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise ValueError(f"{text!r} are no numbers of processors such as 1-7 or 0,2")
    return text


def limits_of(options: LimitOptions) -> Limits:
    """The limits of containers, but for their processors and their GPU."""
    # A check of predictions has these options, too, where no container can be run.
    from flare.measuring.container_command import Limits

    limits = Limits(
        timeout_s=options.timeout,
        shm_size=options.shm_size,
        output_size=options.output_size,
        disk_bytes=options.disk,
        runtime=options.runtime,
    )
    return replace(limits, memory=options.memory) if options.memory else limits


@contextmanager
def open_limits(options: LimitOptions) -> Iterator[tuple[Limits, NvmlSource | None]]:
    """The limits of containers, and their GPU, if there is to be one."""
    from flare.measuring.host import default_cpus
    from flare.measuring.sampling.nvml import open_gpu

    cpus = default_cpus() if options.cpus is None else options.cpus
    limits = replace(limits_of(options), cpus=cpus)
    if options.gpu == "none":
        yield limits, None
        return
    with open_gpu(options.gpu) as gpu:
        yield replace(limits, gpu=gpu.device.uuid), gpu
