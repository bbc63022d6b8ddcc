"""Unpacks the layers of an image into a folder, out of which nothing can lead.

It is a program of its own, which is run in a box, as its root:

    unpack_layers.py FOLDER LAYER ...

The folder becomes its root before anything is unpacked: so neither names nor links lead
to files of this computer. ``apptainer build`` follows links of an image there, and
writes to what they lead to. Layers are plain tar files, the lowest first.
"""

import os
import posixpath
import shutil
import sys
import tarfile
from contextlib import suppress

_GONE = ".wh."
"""Before the name of something that a layer removes."""

_EMPTIED = ".wh..wh..opq"
"""In a folder of which a layer removes all that was there before."""

_PIECE_BYTES = 2**20


def main(folder: str, *layers: str) -> None:
    """Unpack layers into a folder."""
    files = [open(layer, "rb") for layer in layers]  # noqa: SIM115, PTH123  see below
    os.chroot(folder)  # from here on, nothing else can be opened
    os.chdir("/")
    os.umask(0o022)
    for file in files:
        _unpack(file)


def _unpack(file) -> None:  # type: ignore[no-untyped-def]
    """Unpack a layer over those below it."""
    with tarfile.open(fileobj=file, mode="r:", errors="surrogateescape") as archive:
        own: set[str] = set()
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # they are not needed
            path = posixpath.normpath(f"/{member.name}")
            parent, name = posixpath.split(path)
            if name == _EMPTIED:
                _empty(parent, own)
            elif name.startswith(_GONE):
                _remove(posixpath.join(parent, name.removeprefix(_GONE)))
            elif name:
                _write(member, path, archive)
                own.add(path)


def _write(member: tarfile.TarInfo, path: str, archive: tarfile.TarFile) -> None:
    """Write an entry, in the place of what was there."""
    os.makedirs(posixpath.dirname(path), exist_ok=True)  # noqa: PTH103
    is_there = os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114
    if not (member.isdir() and is_there):
        _remove(path)
    if member.isdir():
        with suppress(FileExistsError):
            os.mkdir(path)  # noqa: PTH102
    elif member.issym():
        os.symlink(member.linkname, path)  # noqa: PTH211
        return
    elif member.islnk():
        target = posixpath.normpath(f"/{member.linkname}")
        os.link(target, path, follow_symlinks=False)
        return
    elif member.isfifo():
        os.mkfifo(path)
    elif member.isreg():
        source = archive.extractfile(member)
        with open(path, "xb") as target_file:  # noqa: PTH123
            if source:
                shutil.copyfileobj(source, target_file, _PIECE_BYTES)
    else:
        return  # a device, which nobody but root of the computer can make
    os.chmod(path, member.mode & 0o7777)  # noqa: PTH101
    # Python compiles anew what is not as old as it was.
    os.utime(path, (member.mtime, member.mtime))


def _empty(folder: str, own: set[str]) -> None:
    """Remove what lower layers have in a folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(folder):  # noqa: PTH208
            path = posixpath.join(folder, name)
            is_own = path in own or any(known.startswith(f"{path}/") for known in own)
            if not is_own:
                _remove(path)


def _remove(path: str) -> None:
    """Remove a file, or a folder with all that is in it."""
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)  # noqa: PTH108


if __name__ == "__main__":
    main(*sys.argv[1:])
