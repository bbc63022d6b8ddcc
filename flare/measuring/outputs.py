"""Takes what a container has written out of its volume, as plain files of our own.

The engine hands it over as a tar file, which is read as it comes. Nothing of it is
trusted: neither names, nor sizes, nor kinds. Only regular files are written, into a
closed folder, without their modes, owners and attributes.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

from flare.challenge.formats import case_name, suffix_of
from flare.common.engine import ANSWER_S, Engine
from flare.common.text import listing, safe
from flare.measuring.archive.strict import BrokenError, StrictHeader
from flare.measuring.contract import Contract
from flare.measuring.empty_image import OUTPUTS

MOST_ENTRIES = 10_000
"""Files and folders of an output."""

MOST_FILES = 100
"""Files that are taken out: a right output has one."""

MOST_MAPS = 4
"""All files together may be as large as this number of label maps."""

DEEPEST = 20
"""Folders within folders that a file may lie in."""

_KINDS = {
    tarfile.SYMTYPE: "a link",
    tarfile.LNKTYPE: "a link",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a container has written."""

    folder: Path
    """Holds the files, under the names that the container gave them."""
    files: tuple[str, ...] = ()
    """Their names, below the folder."""
    others: tuple[tuple[str, str], ...] = ()
    """Names of what is not a file, and what it is; folders are not counted."""
    problem: str = ""
    """Why not all was taken out: then nothing of it can be right."""


class _RefusedError(Exception):
    """An output is not taken out; the text says why."""


class _UnreadableError(Exception):
    """The engine hands over what cannot be read."""


def take_out(engine: Engine, holder: str, folder: Path, most_bytes: int) -> Output:
    """Copy the files of a volume to a folder.

    Parameters
    ----------
    engine : Engine
        Which has the volume.
    holder : str
        ID of the container of ours that holds it.
    folder : Path
        Empty, and closed to other users.
    most_bytes : int
        No honest file is larger.

    Raises
    ------
    EngineError
        If the engine does not answer any more.
    """
    process = engine.copy_out(holder, OUTPUTS)
    alarm = threading.Timer(ANSWER_S, process.kill)
    alarm.start()
    files: list[str] = []
    others: list[tuple[str, str]] = []
    problem, is_readable = "", True
    try:
        for name, kind in _copy_all(process, folder, most_bytes):
            if kind:
                others.append((name, kind))
            else:
                files.append(name)
    except _RefusedError as refused:
        problem = str(refused)
    except _UnreadableError:
        problem, is_readable = "the engine cannot read it", False
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        with suppress(OSError):
            if process.stdout:
                process.stdout.close()
    if not is_readable:
        engine.describe()  # if it does not answer, no team is at fault
    return Output(
        folder=folder, files=tuple(sorted(files)), others=tuple(others), problem=problem
    )


def _copy_all(
    process: subprocess.Popen[bytes], folder: Path, most_bytes: int
) -> Iterator[tuple[str, str]]:
    """What `_copy` finds in all that a process hands over."""
    try:
        yield from _copy(cast("IO[bytes]", process.stdout), folder, most_bytes)
        status = process.wait()
    except (
        BrokenError,
        tarfile.TarError,
        OSError,
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:
        raise _UnreadableError from error
    if status:
        raise _UnreadableError


def _copy(
    content: IO[bytes], folder: Path, most_bytes: int
) -> Iterator[tuple[str, str]]:
    """Names of all but folders, and what each is; label maps are copied.

    Of other files only the names count: they are made, and stay empty.
    """
    count = files = 0
    left_bytes = MOST_MAPS * most_bytes
    with tarfile.open(
        fileobj=content, mode="r|", tarinfo=StrictHeader, errors="surrogateescape"
    ) as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # they are not needed
            count += 1
            if count > MOST_ENTRIES:
                raise _RefusedError(
                    f"there are more than {MOST_ENTRIES} files and folders"
                )
            parts = [part for part in PurePosixPath(member.name).parts if part != "/"]
            name = "/".join(parts)
            if member.isdir():
                continue
            if not member.isreg():
                yield name, _KINDS.get(member.type, "no regular file")
                continue
            if member.size > most_bytes:
                size = f"{member.size} bytes are more than any label map of this CT"
                raise _RefusedError(f"{safe(name)}: {size}")
            if len(parts) > DEEPEST or ".." in parts or not parts:
                raise _RefusedError(
                    f"{safe(name)}: it lies deeper than {DEEPEST} folders"
                )
            left_bytes -= member.size  # holes are read as zeros, and take no room
            if left_bytes < 0:
                raise _RefusedError(
                    f"its files take more than {MOST_MAPS} label maps of this CT"
                )
            files += 1
            if files > MOST_FILES:
                raise _RefusedError(f"there are more than {MOST_FILES} files")
            file = folder.joinpath(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as target:
                source = archive.extractfile(member)
                if source and case_name(Path(name)):
                    shutil.copyfileobj(source, target)
            yield name, ""


def renamed(output: Output, case: str, folder: Path, contract: Contract) -> Output:
    """An output as FLARE's contract has it: with one file, called like its case.

    Parameters
    ----------
    output : Output
        What a container has written.
    case : str
        Name of the case.
    folder : Path
        Empty, on the file system of the output; the label map is moved there.
    contract : Contract
        Says where it has to be.

    Returns
    -------
    Output
        It; or what was written, with a problem, if there is not one file where the
        contract wants it.
    """
    is_empty = not output.files and not output.others
    if not contract.is_algorithm or output.problem or is_empty:
        return output
    kinds = {**dict.fromkeys(output.files, ""), **dict(output.others)}
    place = PurePosixPath(contract.output_path)
    there = sorted(name for name in kinds if PurePosixPath(name).parent == place)
    if len(there) != 1:
        found = listing(there or sorted(kinds))
        problem = f"expected one label map in {contract.written_to}, found {found}"
        return replace(output, problem=problem)
    (name,) = there
    if kinds[name]:
        return replace(output, problem=f"{safe(name)}: it is {kinds[name]}")
    suffix = suffix_of(name)
    if not suffix:
        problem = f"{safe(name)}: it is no label map; let the algorithm write .mha"
        return replace(output, problem=problem)
    called = f"{case}{suffix}"
    (output.folder / name).replace(folder / called)
    return Output(folder=folder, files=(called,))
