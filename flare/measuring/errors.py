"""What is wrong with a team's image, or with the GPU that it is measured on."""

from __future__ import annotations

from flare.common.errors import FileError, HostError


class ArchiveError(FileError):
    """A team's image archive cannot be run.

    Of TEAMNAME.tar.gz: the message says what to change in the Dockerfile or in
    predict.sh. Then build it anew, `docker save teamname:latest | gzip >
    teamname.tar.gz`, and try it as it will be measured: `flare check
    teamname.tar.gz --run CT.nii.gz`. `docker export` writes another kind of file, which
    has no commands and no layers.
    """

    code = "F15"
    remedy = "Write it with: docker save teamname:latest | gzip > teamname.tar.gz"


class ModelError(FileError):
    """A model that was sent beside an image cannot be unpacked.

    It is unpacked to `/opt/ml/model` of the container, as grand-challenge.org does it.
    It may hold files, folders, and symbolic links that stay within it: no name with
    `..`, or with a `/` at its beginning, no hard links (`tar --hard-dereference` writes
    files instead), no devices, and no name twice. Write it anew, and look at what it
    holds with `tar -tzvf`.
    """

    code = "F19"
    remedy = (
        "Write it with: tar --hard-dereference -czf TEAMNAME.model.tar.gz -C FOLDER ."
    )


class LoadError(ArchiveError):
    """An engine cannot load what a team's archive holds."""


class DeviceError(HostError):
    """The GPU cannot be used, or read.

    There is no driver, or no such GPU, or it is divided (MIG), or does not answer any
    more. `nvidia-smi` should show it; `--gpu none` measures without one.
    """

    code = "H08"
    remedy = "Try nvidia-smi; --gpu none measures without a GPU."
