"""Says how a team's container is made: the command, with a reason for each flag.

The published command is

    docker container run --gpus "device=1" --name teamname --rm
        -v $PWD/inputs/:/workspace/inputs/ -v $PWD/teamname_outputs/:/workspace/outputs/
        teamname:latest /bin/bash -c "sh predict.sh"

What differs here is in `create_command`; algorithms of grand-challenge.org have folders
of their own, see `flare.measuring.contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flare.measuring.cleanup import label_of
from flare.measuring.contract import FLARE, MODEL_FOLDER, Contract

COMMAND = FLARE.command

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
"""What root in a container may do beyond other users: use all files of its image, and
be another user. The rest of Docker's fourteen, such as making devices and raw packets,
is not needed to predict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a container may use."""

    timeout_s: float = 3600.0
    """FLARE22 counts a container as stuck after this time."""
    memory: str = "28g"
    """FLARE23's limit; swap is not added."""
    shm_size: str = "28g"
    """FLARE23's size of /dev/shm."""
    output_size: str = "4g"
    """Of /workspace/outputs, which is in memory and counts as such."""
    output_files: int = 10_000
    """Files and folders there."""
    disk_bytes: int = 64 * 2**30
    """All that a container writes elsewhere."""
    processes: int = 4096
    cpus: str = ""
    """Numbers of the processors, such as 1-7; empty for all."""
    gpu: str = ""
    """UUID of the GPU; empty for none."""
    runtime: str = ""
    """Of the engine, such as runsc; empty for its default."""


def create_command(
    image: str,
    inputs: str,
    outputs: str,
    limits: Limits,
    key: str,
    environment: Sequence[str] = (),
    contract: Contract = FLARE,
    model: str = "",
) -> tuple[str, ...]:
    """The engine's command that makes a container, without what it runs.

    Parameters
    ----------
    image : str
        Its ID.
    inputs : str
        An absolute folder, which cannot be written to.
    outputs : str
        Name of a volume.
    limits : Limits
        What it may use.
    key : str
        Says which measurement it belongs to.
    environment : sequence of str
        Variables that replace those of the image.
    contract : Contract
        Where it reads and writes.
    model : str
        An absolute folder with the model that was sent beside it; empty for none.
    """
    return (
        # Made first and started later, so that making it is not timed.
        "create",
        # So that it is found and removed, even by a later run.
        *("--label", label_of(key)),
        *(("--runtime", limits.runtime) if limits.runtime else ()),
        *_gpu_flags(limits.gpu),
        *(word for line in environment for word in ("--env", line)),
        # Nothing is fetched while time runs, and no image leaves the computer.
        *("--network", "none"),
        # FLARE23's memory; without --memory-swap as much swap would be added.
        *("--memory", limits.memory, "--memory-swap", limits.memory),
        *("--shm-size", limits.shm_size),
        # One processor is left to the engine and the sampler, where there are enough.
        *(("--cpuset-cpus", limits.cpus) if limits.cpus else ()),
        # One team's runaway processes must not end the others' measurement.
        *("--pids-limit", str(limits.processes)),
        # What predicting does not need, an attack could use.
        *("--cap-drop", "ALL"),
        *(word for name in CAPABILITIES for word in ("--cap-add", name)),
        *("--security-opt", "no-new-privileges"),
        *("--ulimit", "core=0:0"),
        # The image's own would run beside the prediction, and be timed.
        "--no-healthcheck",
        # A log without end must not fill the disk.
        *("--log-driver", "json-file", "--log-opt", "max-size=10m"),
        # Read-only: nobody changes the images of others.
        *("--volume", f"{inputs}:{contract.inputs}/:ro"),
        # No case may leave something behind for the next one.
        *(("--volume", f"{model}:{MODEL_FOLDER}/:ro") if model else ()),
        # No folder of the computer: see `flare.measuring.empty_image.output_volume`.
        *("--volume", f"{outputs}:{contract.outputs}/"),
        image,
    )


def _gpu_flags(gpu: str) -> tuple[str, ...]:
    """One GPU, or none, whatever the image and the engine have as their defaults."""
    if gpu:
        return ("--gpus", f'"device={gpu}"')
    return ("--env", "NVIDIA_VISIBLE_DEVICES=void")
