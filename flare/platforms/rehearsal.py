"""Rehearsals of what a platform does with a submission: what all of them share.

How a submission is run, and what comes of it, is each platform's own rule, in its
folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flare.common.errors import EngineError
from flare.common.options import argument, option
from flare.common.text import aligned, safe


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionOptions:
    """What is rehearsed, and by which engine."""

    submission: Path = argument(
        "What a participant would upload, or an /input with a predictions.json.",
        metavar="FOLDER|ZIP|TABLE.csv|JOBS_FOLDER",
    )
    output: Path | None = option(
        "Folder that gets metrics.json, or what Codabench gets: scores.json and the"
        " page.",
        default=None,
        metavar="DIR",
    )
    engine: str = option(
        "Run it by docker or podman (default: $FLARE_ENGINE, else docker).",
        default="docker",
        envvar="FLARE_ENGINE",
        metavar="NAME",
    )


def open_to_all(folder: Path, *writable: Path) -> None:
    """Let any user read a folder, as on platforms, and write to some folders of it."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    for path in writable:
        path.chmod(0o777)


def files_below(folder: Path) -> tuple[str, ...]:
    """The paths of all files below a folder."""
    paths = (path for path in folder.rglob("*") if not path.is_dir())
    return tuple(sorted(str(path.relative_to(folder)) for path in paths))


def not_run(image: str, stderr: bytes, remedy: str = "") -> EngineError:
    """The error of an image that the engine cannot run, by the engine's last line."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    problem = f"{image}: it cannot be run ({safe(' '.join(lines[-1:]))})"
    return EngineError(problem, remedy)


def outcome_text(
    lines: Iterable[str],
    row: Iterable[tuple[str, str]],
    *,
    is_ranked: bool,
    failure_log: str | None = None,
) -> str:
    """Tell the organiser what was seen, and the titles and cells of the board's row.

    A `failure_log` is what the program wrote where the evaluation would fail.
    """
    if failure_log is not None:
        end = "The evaluation would fail. The participant would read:"
        return "\n".join(filter(None, [failure_log, *lines, end]))
    board = ". The" if is_ranked else ", and NOT be on the"
    head = "leaderboard's row:" if is_ranked else "leaderboard:"
    cells = [f"  {line}" for line in aligned([*row])]
    return "\n".join([*lines, f"The evaluation would succeed{board} {head}", *cells])
