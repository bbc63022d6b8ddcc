"""Writes files whole or not at all, opens and removes them, and looks into JSON."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from flare.common.errors import unwritable
from flare.common.text import csv_cell


def write_whole(file: Path, content: str | bytes, *, is_lasting: bool = False) -> None:
    """Write a file under another name, and give it its own when it is whole.

    Folders are made if need be; text is written as UTF-8. If `is_lasting`, the file is
    on the disk, under its name, even after a power cut. An OutputError is raised if it
    cannot be written; what was there before stays.
    """
    part = file.with_name(f".{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Made anew, so that nothing is written through a link that lies there.
        part.unlink(missing_ok=True)
        with part.open("xb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            if is_lasting:
                stream.flush()
                os.fsync(stream.fileno())
        part.replace(file)
        if is_lasting:  # the new name is a part of the folder
            folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise unwritable(file, error) from error


@contextmanager
def closed_to_others() -> Iterator[None]:
    """Let other users read no file that is made in the block; the group still may."""
    umask = os.umask(0)
    os.umask(umask | 0o007)
    try:
        yield
    finally:
        os.umask(umask)


def is_file(path: Path) -> bool:
    """Whether a path leads to a regular file; unlike `Path.is_file`, raises nothing."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; unlike `Path.is_dir`, raises nothing."""
    return os.path.isdir(path)  # noqa: PTH112


def open_regular(file: Path, *, is_real: bool = False) -> io.BufferedReader:
    """Open a file to be read, unless it is a pipe or a device.

    A pipe would be waited for, and a device may have no end. If `is_real`, no part of
    the path was a link earlier: a file behind a link is refused, too. An OSError is
    raised if it cannot be opened, or is not a regular file.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        if is_real and _path_of(descriptor, file) != os.fspath(file):
            raise OSError(errno.EINVAL, "a link leads to it now", str(file))
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def _path_of(descriptor: int, file: Path) -> str:
    """The path of an open file; on Linux, its path now, even if it was renamed."""
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return os.path.realpath(file)


def read_regular(file: Path) -> str:
    """The text of a file, opened as `open_regular` does.

    A UnicodeDecodeError is raised if it is not UTF-8.
    """
    with open_regular(file) as content:
        return content.read().decode()


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""A table as CSV; texts cannot be formulas, numbers stay as they are.

    Examples
    --------
    >>> csv_text(["team", "lead"], [["a, b", -1], ["=1+1", None]])
    'team,lead\n"a, b",-1\n\'=1+1,\n'
    """
    import csv  # not at the top: an evaluation, which writes none, starts sooner

    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    for row in (columns, *rows):
        writer.writerow(
            [csv_cell(cell) if isinstance(cell, str) else cell for cell in row]
        )
    return content.getvalue()


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, if that is possible."""
    import subprocess  # not at the top: an evaluation without it starts sooner

    # Unlike shutil, rm removes a tree of any depth.
    command = ["rm", "-rf", "--", str(folder)]
    subprocess.run(command, capture_output=True, check=False)


def json_at(file: Path, *keys: str | int) -> Any:
    """The value at some keys of a JSON file; None if there is none, or no such file.

    A file in which nothing may be missing is read by `flare.common.schema.build`.
    """
    import json

    try:
        return at(json.loads(read_regular(file)), *keys)
    except (OSError, ValueError, RecursionError):
        return None


def at(content: Any, *keys: str | int) -> Any:
    """The value at some keys of JSON that any program may have written, or None.

    Examples
    --------
    >>> at({"sessions": [{"gpu": "A100"}]}, "sessions", -1, "gpu")
    'A100'
    >>> print(at(["gpu"], "sessions"), at({"sessions": []}, "sessions", 0))
    None None
    """
    for key in keys:
        try:
            content = content[key]
        except (KeyError, TypeError, IndexError):
            return None
    return content


LONGEST_STEM = 60
"""The most letters of a file's name without its extension, which fit in any script."""


def file_names(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Names of files, without extensions, that differ on any computer.

    They are made from names in any characters; no file gets a `reserved` one.

    Examples
    --------
    >>> file_names(["team_a", "a/b", "A_b"])
    {'team_a': 'team_a', 'a/b': 'a_b', 'A_b': 'A_b-2'}
    """
    stems: dict[str, str] = {}
    used = {*reserved}
    for name in names:
        plain_name = re.sub(r"[^\w-]", "_", name)[:LONGEST_STEM] or "_"
        stem, number = plain_name, 1
        while stem.lower() in used:
            number += 1
            stem = f"{plain_name}-{number}"
        used.add(stem.lower())
        stems[name] = stem
    return stems
