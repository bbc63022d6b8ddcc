"""The flags of a team's container, with a reason for each.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_words`.
"""

from __future__ import annotations

from collections.abc import Iterator

from flare.measuring.engines.interface import Container
from flare.results.limits import MEMORY, NO_GPU

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""Rights that root in a container has beyond other users: to use all files of its
image, and to be another user. The rest of Docker's fourteen, such as making devices and
raw packets, is not needed to predict."""


def create_words(container: Container) -> Iterator[str]:
    """The command of Docker that makes a container, without what it runs."""
    limits = container.limits
    # Made first and started later, so that making it is not timed.
    yield "create"
    # So that it is found and removed, even by a later run.
    yield from ("--label", container.label)
    if limits.runtime:
        yield from ("--runtime", limits.runtime)
    # One GPU, or none, whatever the image and the engine have as their defaults; of one
    # that is to be measured, the name is known by now.
    if limits.gpu not in ("", NO_GPU):
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
