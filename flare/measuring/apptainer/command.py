"""Says how Apptainer runs a team's image: the command, with a reason for each flag."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from flare.measuring.container_command import Limits
from flare.measuring.contract import MODEL_FOLDER, Contract

SHM = "/dev/shm"


def exec_command(
    program: str,
    directory: str,
    *,
    inputs: Path,
    outputs: Path,
    shm: Path,
    overlay: Path,
    limits: Limits,
    contract: Contract,
    model: Path | None = None,
) -> tuple[str, ...]:
    """The command that runs an image in a box, without the image and what it runs.

    Parameters
    ----------
    program : str
        Name or path of Apptainer.
    directory : str
        Of the image, in which it is run.
    inputs : Path
        A folder, which cannot be written to.
    outputs, shm : Path
        Empty folders in memory; the second one becomes /dev/shm.
    overlay : Path
        An empty folder, which gets whatever else is written.
    limits : Limits
        What it may use.
    contract : Contract
        Where it reads and writes.
    model : Path, optional
        A folder with the model that was sent beside it.
    """
    return (
        # One team's runaway processes must not end the others' measurement.
        *("prlimit", f"--nproc={limits.processes}:{limits.processes}"),
        "--core=0:0",
        # One processor is left to the sampler, where there are enough.
        *(("taskset", "--cpu-list", limits.cpus) if limits.cpus else ()),
        *(program, "--silent", "exec"),
        # No folder, process or variable of this computer or this user is seen.
        *("--containall", "--cleanenv", "--no-home"),
        # Nothing in a variable, or in a command, is taken for something to be run.
        "--no-eval",
        # Nor what a site mounts everywhere; /tmp is that of the image.
        *("--no-mount", "home,cwd,tmp,hostfs,bind-paths"),
        # What predicting does not need, an attack could use.
        "--no-privs",
        *(("--nv",) if limits.gpu else ()),
        *("--pwd", directory),
        # Nothing of a run is left for the next one.
        *("--overlay", str(overlay)),
        # Read-only: nobody changes the images of others.
        *("--mount", f"{_bind(inputs, contract.inputs)},ro"),
        *(("--mount", f"{_bind(model, MODEL_FOLDER)},ro") if model else ()),
        *("--mount", _bind(outputs, contract.outputs)),
        *("--mount", _bind(shm, SHM)),
    )


def _bind(source: Path, target: str) -> str:
    """A folder of the box in a folder of the container."""
    return f"type=bind,source={source},destination={target}"


def exec_environment(
    work: Path, variables: Sequence[str], limits: Limits
) -> dict[str, str]:
    """All variables that Apptainer gets: none of this user's settings, or secrets.

    Parameters
    ----------
    work : Path
        A folder for whatever it keeps.
    variables : sequence of str
        Those of the container, as NAME=VALUE; the last of several counts.
    limits : Limits
        They name its GPU.
    """
    parts = (line.partition("=") for line in variables)
    own = {name: value for name, _, value in parts if name}
    own["CUDA_VISIBLE_DEVICES"] = limits.gpu
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(work),
        "TMPDIR": str(work),
        "APPTAINER_CONFIGDIR": str(work / "settings"),
        "APPTAINER_CACHEDIR": str(work / "cache"),
        **{f"APPTAINERENV_{name}": value for name, value in own.items()},
    }
