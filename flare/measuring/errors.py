"""What is wrong with a team's image, or with the GPU that it is measured on."""

from __future__ import annotations

from flare.common.errors import FileError, HostError


class ArchiveError(FileError):
    """A team's image archive cannot be run."""

    code = "F15"
    remedy = "Write it with: docker save teamname:latest | gzip > teamname.tar.gz"


class LoadError(ArchiveError):
    """An engine cannot load what a team's archive holds."""


class DeviceError(HostError):
    """The GPU cannot be used, or read."""

    code = "H08"
    remedy = "Try nvidia-smi; --gpu none measures without a GPU."
