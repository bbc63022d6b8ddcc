"""Makes an image of two tiny programs: one ends at once, one waits for ever.

A container of the first tells what the engine itself costs. One of the second keeps a
volume mounted while another container writes to it. They are written here byte by byte,
so that nothing of a team is run for it.
"""

from __future__ import annotations

import io
import struct
import tarfile

NOTHING = ("/nothing",)
"""Ends at once, with exit code 0."""

HOLD = ("/hold",)
"""Waits until it is killed."""

OUTPUTS = "/outputs"
"""A folder of the image, for a volume."""

_EXIT_CODE = bytes.fromhex("31ff b83c000000 0f05")
"""xor edi, edi; mov eax, 60 (exit); syscall"""

_PAUSE_CODE = bytes.fromhex("b822000000 0f05 ebf7")
"""mov eax, 34 (pause); syscall; jump to the start"""

_BASE = 0x400000
_HEADER_BYTES = 0x78


def image_tar() -> bytes:
    """The file system of the image, as a tar file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for (path,), code in ((NOTHING, _EXIT_CODE), (HOLD, _PAUSE_CODE)):
            program = _executable(code)
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(program), 0o755
            archive.addfile(entry, io.BytesIO(program))
        folder = tarfile.TarInfo(OUTPUTS.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    return content.getvalue()


def _executable(code: bytes) -> bytes:
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
