"""Lays out the images of a case for a container, and takes its output out.

On the platform, /input/inputs.json lists what an algorithm gets. Newer editions call an
interface a socket there, and still have it under both names.

The engine hands an output over as a tar file, which is read as it comes. Nothing of it
is trusted: neither names, nor sizes, nor kinds. Only regular files are written, into a
closed folder, without their modes, owners and attributes.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import threading
import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from flare.challenge.formats import case_name, suffix_of
from flare.common.text import listing, safe
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME
from flare.measuring.archive.strict import BrokenError, StrictHeader, explained
from flare.measuring.engines.interface import ANSWER_S, Engine
from flare.measuring.image import OUTPUTS
from flare.measuring.options import Contract

MOST_ENTRIES = 10_000
"""Files and folders of an output."""

MOST_FILES = 100
"""Files that are taken out: a right output has one."""

MOST_ANSWER_BYTES = 2**14
"""A file of answers to one case has at most this many: those of a thousand cases can be
read together."""

MOST_MAPS = 4
"""All files together may be as large as this number of label maps."""

DEEPEST = 20
"""Folders within folders that a file may lie in."""


class WrongOutputError(Exception):
    """The output of a container cannot be right; the text says why."""


def lay_out(case: LabelMapFile, inputs: Path, contract: Contract) -> Path:
    """Put the images of a case where a container looks for them, as its contract says.

    They are copied under their own names into an empty folder, which the container
    will read. Nothing else is in the folder of the copies, which is returned.
    """
    folder = inputs
    for part in PurePosixPath(contract.input_path).parts:
        folder /= part
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whichever user the image has
    for source in (case, *case.channels):
        image = folder / Path(source.name).name
        shutil.copyfile(source.path, image)
        image.chmod(0o644)
    if contract.is_algorithm:
        name = Path(case.name).name
        _write_inputs(inputs / INPUTS_FILE_NAME, name, contract)
    return folder


def _write_inputs(file: Path, image: str, contract: Contract) -> None:
    socket: dict[str, Any] = {
        "title": contract.input_slug,
        "description": "",
        "slug": contract.input_slug,
        "kind": "Image",
        "super_kind": "Image",
        "relative_path": contract.input_path,
        "default_value": None,
        "overlay_segments": [],
        "look_up_table": None,
    }
    pk = str(uuid.uuid5(uuid.NAMESPACE_URL, image))
    value = {"value": None, "file": None, "image": {"pk": pk, "name": image}}
    text = json.dumps([{**value, "interface": socket, "socket": socket}], indent=2)
    file.write_text(f"{text}\n", encoding="utf-8")
    file.chmod(0o644)


def take_out(
    engine: Engine,
    holder: str,
    folder: Path,
    most_bytes: int,
    answer_files: Container[str] = (),
) -> dict[str, str]:
    """Copy the files of a volume to a folder: the bytes of label maps and of answers.

    A container of ours, the `holder`, holds the volume. The folder is empty, and closed
    to other users; no honest file is larger than `most_bytes`. Returns the names of
    what is not a regular file, and its kind; without folders. A WrongOutputError is
    raised if not all can be taken out; some of it may be in the folder. An EngineError
    is raised if the engine does not answer any more.
    """
    allowance = _Allowance(most_bytes, MOST_MAPS * most_bytes, answer_files)
    with engine.copy_out(holder, OUTPUTS) as process:
        alarm = threading.Timer(ANSWER_S, process.kill)
        alarm.start()
        try:
            with explained():
                irregular = _copy(cast("IO[bytes]", process.stdout), folder, allowance)
                is_read = process.wait() == 0
        except BrokenError:
            is_read = False
        finally:
            alarm.cancel()
            process.kill()
    if not is_read:
        engine.describe()  # if it does not answer, no team is at fault
        raise WrongOutputError("the engine cannot read it")
    return irregular


def _copy(content: IO[bytes], folder: Path, allowance: _Allowance) -> dict[str, str]:
    """Copy what is read; of other files only the names count: they stay empty."""
    irregular: dict[str, str] = {}
    with tarfile.open(
        fileobj=content, mode="r|", tarinfo=StrictHeader, errors="surrogateescape"
    ) as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # they are not needed
            allowance.enter()
            parts = [part for part in PurePosixPath(member.name).parts if part != "/"]
            name = "/".join(parts)
            if member.isdir():
                continue
            if not member.isreg():
                is_link = member.issym() or member.islnk()
                irregular[name] = "a link" if is_link else "no regular file"
                continue
            allowance.enter_file(parts, member.size)
            file = folder.joinpath(*parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as target:
                source = archive.extractfile(member)
                if source and allowance.is_for_content(file):
                    shutil.copyfileobj(source, target)
    return irregular


@dataclass(slots=True)
class _Allowance:
    """The part of an output that may still come; all methods raise WrongOutputError."""

    most_bytes: int
    """A file may have,"""
    left_bytes: int
    """and all further files together."""
    answer_files: Container[str] = ()
    """Names of files of answers, each of which may have `MOST_ANSWER_BYTES`."""
    entries: int = 0
    files: int = 0

    def enter(self) -> None:
        """Count a file or a folder."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise WrongOutputError(
                f"there are more than {MOST_ENTRIES} files and folders"
            )

    def is_for_content(self, file: Path) -> bool:
        """Whether a file may hold a label map or answers."""
        return bool(case_name(file)) or file.name in self.answer_files

    def enter_file(self, parts: Sequence[str], size: int) -> None:
        """Look at the name and the size of a regular file, and count it."""
        name = safe("/".join(parts))
        is_answers = bool(parts) and parts[-1] in self.answer_files
        if is_answers and size > MOST_ANSWER_BYTES:
            most = f"the {MOST_ANSWER_BYTES} that answers to one case may take"
            raise WrongOutputError(f"{name}: {size} bytes are more than {most}")
        if size > self.most_bytes:
            raise WrongOutputError(
                f"{name}: {size} bytes are more than any label map of this CT"
            )
        if len(parts) > DEEPEST or ".." in parts or not parts:
            raise WrongOutputError(f"{name}: it lies deeper than {DEEPEST} folders")
        self.left_bytes -= size  # holes are read as zeros, and take no room
        if self.left_bytes < 0:
            raise WrongOutputError(
                f"its files take more than {MOST_MAPS} label maps of this CT"
            )
        self.files += 1
        if self.files > MOST_FILES:
            raise WrongOutputError(f"there are more than {MOST_FILES} files")


def files_of(folder: Path) -> list[str]:
    """Names of the files of an output, below its folder, in their order."""
    return sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()
    )


def move_answers(folder: Path, target: Path, names: Iterable[str]) -> None:
    """Move an algorithm's files of answers, which lie in no folder of its output."""
    for name in names:
        if (folder / name).is_file():
            (folder / name).replace(target / name)


def move_map(
    folder: Path, irregular: Mapping[str, str], file: Path, contract: Contract
) -> Path:
    """Move the label map of an algorithm to where FLARE's contract has it.

    `irregular` is what is not a regular file in the folder, see `take_out`. The new
    file is on the same file system; its name is that of the case, and gets an ending. A
    WrongOutputError is raised if there is not one file where the contract wants it.
    """
    kinds = dict.fromkeys(files_of(folder), "") | dict(irregular)
    place = PurePosixPath(contract.output_path)
    candidates = sorted(name for name in kinds if PurePosixPath(name).parent == place)
    if len(candidates) != 1:
        names = listing(candidates or sorted(kinds))
        raise WrongOutputError(
            f"expected one label map in {contract.written_to}, found {names}"
        )
    (name,) = candidates
    if kinds[name]:
        raise WrongOutputError(f"{safe(name)}: it is {kinds[name]}")
    suffix = suffix_of(name)
    if not suffix:
        raise WrongOutputError(
            f"{safe(name)}: it is no label map; let the algorithm write .mha"
        )
    return (folder / name).replace(file.with_name(f"{file.name}{suffix}"))
