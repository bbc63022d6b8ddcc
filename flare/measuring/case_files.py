"""Keeps the files of a case: log, trace, and the label maps that it has written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flare.challenge.case_names import SUFFIXES
from flare.common.files import remove_tree, write_whole
from flare.common.text import printable
from flare.measuring.container import ContainerRun
from flare.measuring.record import counted_run
from flare.results.team_folder import PREDICTIONS
from flare.results.traces_csv import TRACES, write_trace

LOGS = "logs"
REJECTED = "rejected"
"""Folder of label maps that cannot be used, for whoever asks."""

REJECTED_BYTES = 2**28
"""So much of them is kept of a team."""


def keep_runs(folder: Path, case: str, runs: Sequence[ContainerRun]) -> None:
    """Write the log of the last run of a case, and the trace of the one that counts.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    if runs:
        write_whole(folder / LOGS / f"{case}.log", log_text(runs[-1].log))
        write_trace(counted_run(runs).trace, folder / TRACES / f"{case}.csv")


def keep_label_maps(
    folder: Path, case: str, files: Sequence[Path], *, is_right: bool
) -> None:
    """Move what a case has written to its place, where nothing older stays.

    Parameters
    ----------
    folder : Path
        Of the team.
    case : str
        Its name.
    files : sequence of Path
        Label maps, on the same file system.
    is_right : bool
        Whether they are a prediction; else some of them are kept aside.
    """
    predictions = folder / PREDICTIONS
    rejected = folder / REJECTED / case
    for suffix in SUFFIXES:
        (predictions / f"{case}{suffix}").unlink(missing_ok=True)
    remove_tree(rejected)
    for number, file in enumerate(files):
        suffix = _suffix_of(file)
        if is_right:
            predictions.mkdir(exist_ok=True)
            file.replace(predictions / f"{case}{suffix}")
        elif _rejected_bytes(folder) + file.stat().st_size <= REJECTED_BYTES:
            rejected.mkdir(parents=True, exist_ok=True)
            file.replace(rejected / f"{number}{suffix}")


def _rejected_bytes(folder: Path) -> int:
    """What is kept of a team's outputs that cannot be used."""
    return sum(file.stat().st_size for file in (folder / REJECTED).glob("*/*"))


def _suffix_of(file: Path) -> str:
    """The extension of a label map, as the program writes it."""
    return next(s for s in SUFFIXES if file.name.lower().endswith(s))


def log_text(log: bytes) -> str:
    """What a container has written, without anything that a terminal would obey."""
    text = log.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        return ""
    return "".join(
        f"{printable(line.expandtabs())}\n"
        for line in text.removesuffix("\n").split("\n")
    )
