"""The words of Docker: how a container is made, with a reason for each flag.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_words`. `is_of_content` understands what it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flare.common.engine import MEMORY, Container

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""What root in a container may do beyond other users: use all files of its image, and
be another user. The rest of Docker's fourteen, such as making devices and raw packets,
is not needed to predict."""

_CONTENT = re.compile(
    r"register layer|processing tar|apply(ing )?layer|tar header|diff ?id|xattr|unpack",
    re.IGNORECASE,
)
"""What engines say where they cannot use what an image holds."""

_HOST = re.compile(
    r"no space|quota|input/output|memory|open files|read-only|connect|time ?out"
    r"|deadline|kill|cancel",
    re.IGNORECASE,
)
"""What they say where the computer is why."""

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
"""Names of files, as some messages have them,"""

_PATH = re.compile(r"(?<![^\s(])/")
"""and where one begins in others."""

_TAIL = re.compile(r"(\)|: unknown|: exit status \d+)+\s*\Z")
"""What may come behind the reason."""


def create_words(container: Container) -> Iterator[str]:
    """The command of Docker that makes a container, without what it runs."""
    limits = container.limits
    # Made first and started later, so that making it is not timed.
    yield "create"
    # So that it is found and removed, even by a later run.
    yield from ("--label", container.label)
    if limits.runtime:
        yield from ("--runtime", limits.runtime)
    # One GPU, or none, whatever the image and the engine have as their defaults.
    if limits.has_gpu:
        yield from ("--gpus", f'"device={limits.gpu}"')
    else:
        yield from ("--env", "NVIDIA_VISIBLE_DEVICES=void")
    for line in container.environment:
        yield from ("--env", line)
    # Nothing is fetched while time runs, and no image leaves the computer.
    yield from ("--network", "none")
    # FLARE23's memory; without --memory-swap as much swap would be added.
    memory = limits.memory or MEMORY
    yield from ("--memory", memory, "--memory-swap", memory)
    yield from ("--shm-size", limits.shm_size)
    # One processor is left to the engine and the sampler, where there are enough.
    if limits.cpus:
        yield from ("--cpuset-cpus", limits.cpus)
    # One team's runaway processes must not end the others' measurement.
    yield from ("--pids-limit", str(limits.processes))
    # What predicting does not need, an attack could use.
    yield from ("--cap-drop", "ALL")
    for name in CAPABILITIES:
        yield from ("--cap-add", name)
    yield from ("--security-opt", "no-new-privileges")
    yield from ("--ulimit", "core=0:0")
    # The image's own would run beside the prediction, and be timed.
    yield "--no-healthcheck"
    # A log without end must not fill the disk.
    yield from ("--log-driver", "json-file", "--log-opt", "max-size=10m")
    # Read-only: nobody changes the images of others, and no case may leave
    # something behind for the next one.
    for source, place in container.reads:
        yield from ("--volume", f"{source}:{place}/:ro")
    # No folder of the computer: see `make_volume`.
    volume, place = container.writes
    yield from ("--volume", f"{volume}:{place}/")
    yield container.image


def is_of_content(said: str) -> bool:
    """Whether an engine that cannot load an image names what the image holds.

    The image's author chose the names of files in it, so they decide nothing: what
    counts is what comes before the first one, and the reason behind the last colon.

    Examples
    --------
    >>> is_of_content("failed to register layer: lsetxattr /x: invalid argument")
    True
    >>> is_of_content("failed to register layer: lsetxattr /kill: invalid argument")
    True
    >>> is_of_content("failed to register layer: write /x: no space left on device")
    False
    >>> is_of_content("No such image: sha256:1")
    False
    """
    own, *rest = _PATH.split(_TAIL.sub("", _QUOTED.sub("", said)), maxsplit=1)
    _, colon, reason = "".join(rest).rpartition(": ")
    reason = _PATH.split(reason)[0] if colon else ""
    return bool(_CONTENT.search(own)) and not _HOST.search(f"{own}\n{reason}")
