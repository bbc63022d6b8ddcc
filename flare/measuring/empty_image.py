"""An image of our own, with two tiny programs, and the volumes that one of them holds.

A container of the first program tells what the engine itself costs. One of the second
keeps a volume mounted while another container writes to it. So nothing of a team is run
for either of them.
"""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flare.common.engine import Engine

_EXIT_CODE = bytes.fromhex("31ff b83c000000 0f05")
"""xor edi, edi; mov eax, 60 (exit); syscall"""

_PAUSE_CODE = bytes.fromhex("b822000000 0f05 ebf7")
"""mov eax, 34 (pause); syscall; jump to the start"""

_BASE = 0x400000
"""Where Linux loads programs."""

_HEADER_BYTES = 0x78
"""The machine code lies behind both headers."""

NOTHING = ("/nothing",)
"""Ends at once, with exit code 0."""

HOLD = ("/hold",)
"""Waits until it is killed."""

OUTPUTS = "/outputs"
"""A folder of the image, for a volume."""

OUTPUT_FILES = 10_000
"""Number of files and folders that fit into a volume."""


def _elf_program(code: bytes) -> bytes:
    """An ELF file for x86-64 Linux with a single segment, which holds the code."""
    size = _HEADER_BYTES + len(code)
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)  # 64 bits, little-endian
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        identity,
        2,  # an executable
        62,  # x86-64
        1,
        _BASE + _HEADER_BYTES,  # where it starts
        64,  # the table of segments lies behind this header
        0,
        0,
        64,
        56,
        1,  # one segment
        64,
        0,
        0,
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 4096)
    return header + segment + code


def image_tar() -> bytes:
    """The file system of the image, as a tar file."""
    content = io.BytesIO()
    programs = {NOTHING: _EXIT_CODE, HOLD: _PAUSE_CODE}
    with tarfile.open(fileobj=content, mode="w") as archive:
        for (path,), code in programs.items():
            program = _elf_program(code)
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(program), 0o755
            archive.addfile(entry, io.BytesIO(program))
        folder = tarfile.TarInfo(OUTPUTS.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    return content.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume that vanishes with the container that holds it."""

    name: str
    holder: str
    """ID of the container of ours that does nothing but hold it."""


@contextmanager
def output_volume(
    engine: Engine, empty: str, label: str, size: str
) -> Iterator[Volume]:
    """A fresh volume in memory for the output of a container.

    It vanishes when no container has it any more: so one of ours holds it.

    Parameters
    ----------
    engine : Engine
        What makes it.
    empty : str
        ID of our own image.
    label : str
        Says which measurement it belongs to.
    size : str
        Such as 4g.
    """
    name, holder = "", ""
    try:
        name = engine.make_volume(label, size, OUTPUT_FILES)
        holder = engine.hold_volume(name, OUTPUTS, label, empty, HOLD)
        yield Volume(name=name, holder=holder)
    finally:
        if holder:
            engine.remove_container(holder)
        if name:
            engine.remove_volume(name)
