"""Knows the two engines that images are run by, Docker and Apptainer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from flare.common.engine import Engine
from flare.measuring.apptainer.cleanup import clean_up_folder
from flare.measuring.apptainer.engine import Apptainer
from flare.measuring.apptainer.image import unpacked_image
from flare.measuring.archive.reading import Archive
from flare.measuring.cleanup import clean_up
from flare.measuring.conditions import Conditions
from flare.measuring.container import ContainerRun
from flare.measuring.outputs import Output
from flare.measuring.team_image import loaded_image
from flare.results.lock import FolderLock

ENGINES = ("docker", "apptainer")
"""Their names."""

AnyEngine = Engine | Apptainer


class RunnableImage(Protocol):
    """A team's image that an engine can run, and one of ours beside it."""

    @property
    def conditions(self) -> Conditions:
        """Under which their containers are run."""

    @property
    def image(self) -> str:
        """ID of the team's."""

    def fresh_folder(self, name: str) -> Path:
        """An empty folder, within one that other users cannot enter."""

    def fresh_volume(self) -> AbstractContextManager[Any]:
        """An empty volume for an output."""

    def run(self, inputs: Path, volume: Any) -> ContainerRun:
        """Run the team's image on what is in a folder, and measure it."""

    def run_ours(
        self,
        words: tuple[str, ...],
        inputs: Path,
        volume: Any,
        conditions: Conditions | None = None,
    ) -> ContainerRun:
        """Run a program of our own image, under the same conditions or others.

        See `flare.measuring.empty_image` for the programs.
        """

    def take_out(self, volume: Any, folder: Path, most_bytes: int) -> Output:
        """Copy the files that were written to a volume to a folder."""

    def command(self) -> str:
        """How a container is made, for the record."""


def engine_of(name: str) -> AnyEngine:
    """An engine by its name, one of `ENGINES`."""
    return Apptainer() if name == "apptainer" else Engine()


def settings_of(engine: AnyEngine) -> dict[str, str]:
    """What measurement.json says of an engine; nothing for Docker, as ever."""
    is_other = isinstance(engine, Apptainer)
    return {"container_engine": "apptainer"} if is_other else {}


def remove_leftovers(engine: AnyEngine, team_folder: Path) -> None:
    """Remove what a measurement of a team has made, if there is anything.

    Raises
    ------
    FlareError
        If it cannot be removed.
    """
    if isinstance(engine, Apptainer):
        clean_up_folder(team_folder)
    else:
        clean_up(engine, team_folder)


@contextmanager
def runnable_image(
    archive: Archive,
    folder: Path,
    *,
    engine: AnyEngine,
    conditions: Conditions,
    lock: FolderLock,
) -> Iterator[RunnableImage]:
    """An image that can be run, and is removed in the end.

    Parameters
    ----------
    archive : Archive
        Without problems.
    folder : Path
        Where folders for the container are made.
    engine : AnyEngine
        What it is run by.
    conditions : Conditions
        Under which its containers are run.
    lock : FolderLock
        Of the folder.

    Yields
    ------
    RunnableImage
        To be run.

    Raises
    ------
    FlareError
        If the image has no room, or the engine cannot have it.
    """
    if isinstance(engine, Apptainer):
        with unpacked_image(
            archive, folder, engine=engine, conditions=conditions, lock=lock
        ) as unpacked:
            yield unpacked
    else:
        with loaded_image(
            archive, folder, engine=engine, conditions=conditions, lock=lock
        ) as loaded:
            yield loaded
