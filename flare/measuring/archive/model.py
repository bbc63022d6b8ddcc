"""Unpacks the model that a team has sent beside its image, which may mean harm.

grand-challenge.org unpacks such a file, TEAMNAME.model.tar.gz here, to /opt/ml/model of
an algorithm's container. It is gone through by the same rules twice: to judge it, then
to write its files. No file is ever written through a link: links come last, and each
leads to some place in the folder, whatever else the archive holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from flare.common.errors import InputError, OutputError
from flare.common.files import open_regular
from flare.common.streams import PIECE_BYTES
from flare.common.text import safe, why
from flare.measuring.archive import model_tar
from flare.measuring.archive.budget import BrokenError, LimitError
from flare.measuring.archive.model_tar import Kind, ModelTar
from flare.measuring.archive.strict_tar import NO_FILE, explained
from flare.measuring.errors import ModelError

MODEL_SUFFIX = ".model.tar.gz"

_CHANGED = "it has changed since it was checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of a model before it is unpacked."""

    path: Path
    sha256: str
    """Of the file."""
    unpacked_bytes: int
    """Of the tar file in it."""


def model_beside(archive: Path) -> Path | None:
    """The model that lies beside TEAMNAME.tar.gz; None if there is none.

    Examples
    --------
    >>> model_beside(Path("nowhere/team.tar.gz")) is None
    True
    """
    file = archive.with_name(f"{archive.name.removesuffix('.tar.gz')}{MODEL_SUFFIX}")
    return file if file.exists() else None


def read_model(path: Path) -> Model:
    """Go through a model once, without writing anything.

    Raises
    ------
    ModelError
        If it cannot be unpacked.
    InputError
        If there is no such file, or it may not be read.
    """
    try:
        open_regular(path).close()
    except OSError as error:
        if error.errno in NO_FILE:
            raise ModelError(path.name, "it is no file") from error
        raise InputError(
            f"{safe(path)}: it cannot be read ({why(error)})",
            "Give the model as the team has sent it.",
        ) from error
    walk = ModelTar(path)
    try:
        kinds = {entry.kind for entry in walk.entries()}
    except BrokenError as error:
        raise _model_error(path, error) from error
    if Kind.FILE not in kinds:
        raise ModelError(path.name, "it holds no file")
    return Model(path=path, sha256=walk.sha256, unpacked_bytes=walk.unpacked_bytes)


def unpack_model(model: Model, folder: Path) -> None:
    """Write the files of a model into a folder, where anybody may read them.

    Parameters
    ----------
    model : Model
        That was read.
    folder : Path
        There is nothing of this name yet.

    Raises
    ------
    ModelError
        If the file has changed since it was read.
    OutputError
        If they cannot be written.
    """
    walk, links = ModelTar(model.path), []
    try:
        _make_folder(folder)
        for entry in walk.entries():
            path = folder / entry.name
            if entry.kind is Kind.LINK:
                links.append((path, entry.target))
            elif entry.content is None:
                _make_folder(path)
            else:
                _write(path, entry.content, mode=0o755 if entry.is_program else 0o644)
        for path, target in links:
            path.symlink_to(target)
    except BrokenError as error:
        raise ModelError(model.path.name, _CHANGED, "Hand it in again.") from error
    except OSError as error:
        raise OutputError(
            f"{safe(folder)}: the model cannot be unpacked ({why(error)})",
            "Make room there.",
        ) from error
    if walk.sha256 != model.sha256:
        raise ModelError(model.path.name, _CHANGED, "Hand it in again.")


def _make_folder(path: Path) -> None:
    """Make a folder that anybody may read."""
    path.mkdir()
    path.chmod(0o755)  # whoever the image's user is


def _write(path: Path, content: IO[bytes], *, mode: int) -> None:
    """Write a file that is not there yet."""
    with path.open("xb") as file:
        while True:
            with explained():
                piece = content.read(PIECE_BYTES)
            if not piece:
                break
            file.write(piece)
    path.chmod(mode)


def _model_error(path: Path, error: BrokenError) -> ModelError:
    """What is wrong with a model, for whoever has sent it."""
    problem = str(error)
    if isinstance(error, LimitError):
        problem = (
            f"it holds more than {model_tar.MODEL_BYTES >> 30} GiB, or more than"
            f" {model_tar.MODEL_ENTRIES} files"
        )
        return ModelError(path.name, problem, "Leave out what is not needed.")
    return ModelError(path.name, problem)
