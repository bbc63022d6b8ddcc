"""Unpacks the model of a team where its containers can have it, if there is room."""

from __future__ import annotations

from pathlib import Path

from flare.common.text import safe
from flare.measuring.archive.model import unpack_model
from flare.measuring.archive.reading import Archive
from flare.measuring.disk import SPARE_BYTES, room
from flare.results.errors import MeasurementError


def model_folder(archive: Archive, work: Path) -> Path | None:
    """The folder of the model that was sent beside an image; None if none was.

    It is for `flare.measuring.contract.MODEL_FOLDER` of each of its containers, where
    nobody may change it, and is removed with the folder that it is in.

    Parameters
    ----------
    archive : Archive
        Without problems.
    work : Path
        A folder of ours, without a model yet.

    Raises
    ------
    MeasurementError
        If there is no room for it.
    ModelError
        If the file has changed since it was read.
    OutputError
        If it cannot be written.
    """
    model = archive.model
    if not model:
        return None
    needed = model.unpacked_bytes + SPARE_BYTES
    free = room(work).free_bytes
    if free < needed:
        raise MeasurementError(
            model.path.name,
            f"{free / 2**30:.1f} GiB are free in {safe(work)}, and the model needs"
            f" {needed / 2**30:.1f}",
            "Make room there.",
        )
    folder = work / "model"
    unpack_model(model, folder)
    return folder
