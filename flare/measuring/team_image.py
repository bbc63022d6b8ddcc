"""Keeps a team's image in the engine for as long as it is needed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flare.common.engine import Engine
from flare.common.files import remove_tree
from flare.common.text import safe
from flare.measuring.archive.reading import Archive
from flare.measuring.cleanup import guarded
from flare.measuring.conditions import Conditions
from flare.measuring.container import ContainerRun, run_container
from flare.measuring.container_command import create_command
from flare.measuring.disk import SPARE_BYTES, room
from flare.measuring.empty_image import make_empty_image
from flare.measuring.loading import find_image, load_image
from flare.measuring.model_folder import model_folder
from flare.measuring.outputs import Output, take_out
from flare.measuring.volumes import Volume, output_volume
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedImage:
    """A team's image in the engine, and one of ours beside it."""

    engine: Engine
    conditions: Conditions
    """Under which their containers are run."""
    image: str
    """ID of the team's."""
    overrides: tuple[str, ...]
    """What has to be set in its containers, as NAME=VALUE."""
    empty: str
    """ID of ours, see `flare.measuring.empty_image`."""
    key: str
    """Of all that is made for it."""
    work: Path
    """A folder that other users cannot enter."""
    model: Path | None = None
    """In it, what was sent beside the image; never changed."""

    def fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""
        folder = self.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whoever the image's user is
        return folder

    @contextmanager
    def fresh_volume(self) -> Iterator[Volume]:
        """An empty volume for an output."""
        limits = self.conditions.limits
        with output_volume(
            self.engine,
            empty=self.empty,
            key=self.key,
            size=limits.output_size,
            files=limits.output_files,
        ) as volume:
            yield volume

    def run(self, inputs: Path, volume: Volume) -> ContainerRun:
        """Run the team's image on what is in a folder, and measure it."""
        return run_container(
            *(self.engine, self.image, inputs, volume.name),
            conditions=self.conditions,
            key=self.key,
            command=self.conditions.contract.command,
            environment=self.overrides,
            model=self.model,
        )

    def run_ours(
        self,
        words: Sequence[str],
        inputs: Path,
        volume: Volume,
    ) -> ContainerRun:
        """Run a program of our own image, under the same conditions.

        See `flare.measuring.empty_image` for the programs.
        """
        return run_container(
            *(self.engine, self.empty, inputs, volume.name),
            conditions=self.conditions,
            key=self.key,
            command=words,
        )

    def take_out(self, volume: Volume, folder: Path, most_bytes: int) -> Output:
        """Copy the files that were written to a volume to a folder."""
        return take_out(self.engine, volume.holder, folder, most_bytes)

    def command(self) -> str:
        """How a container is made, for the record."""
        contract = self.conditions.contract
        words = (
            self.engine.program,
            *create_command(
                *("IMAGE", "INPUTS", "OUTPUTS", self.conditions.limits, "KEY"),
                *(self.overrides, contract),
                model="MODEL" if self.model else "",
            ),
            *((shlex.join(own),) if (own := contract.command) else ()),
        )
        return " ".join(words)


@contextmanager
def loaded_image(
    archive: Archive,
    folder: Path,
    *,
    engine: Engine,
    conditions: Conditions,
    lock: FolderLock,
) -> Iterator[LoadedImage]:
    """An image that is loaded, and removed in the end with all that was made for it.

    Parameters
    ----------
    archive : Archive
        Without problems.
    folder : Path
        Where folders for the container are made.
    engine : Engine
        What it is run by.
    conditions : Conditions
        Under which its containers are run.
    lock : FolderLock
        Of the folder.

    Yields
    ------
    LoadedImage
        To be run.

    Raises
    ------
    FlareError
        If the image or its model has no room, or cannot be loaded.
    """
    _check_disk(archive, engine)
    is_there, _ = find_image(engine, archive)
    images = () if is_there else (archive.image, archive.manifest)
    with guarded(engine, folder, images=images, lock=lock) as place:
        empty = make_empty_image(engine, place.empty_tag)
        with place.loading():
            image = load_image(engine, archive, place.team_tag)
        model = model_folder(archive, place.work)
        yield LoadedImage(
            engine=engine,
            conditions=conditions,
            image=image,
            overrides=archive.overrides,
            empty=empty,
            key=place.key,
            work=place.work,
            model=model,
        )


def _check_disk(archive: Archive, engine: Engine) -> None:
    """See that an image has room."""
    needed = 2 * archive.unpacked_bytes + SPARE_BYTES
    folder = engine.folder()
    free = room(folder).free_bytes if folder else needed
    if free < needed:
        raise MeasurementError(
            archive.path.name,
            f"{free / 2**30:.1f} GiB are free in {safe(str(folder))}, and the image"
            f" needs {needed / 2**30:.1f}",
            "Make room there.",
        )
