"""The two smallest programs for Linux: one ends at once, one waits for ever.

They are written byte by byte, for x86-64, because whatever else could be run in a
container would have to come from a team, or from the network.
"""

from __future__ import annotations

import struct

_EXIT_CODE = bytes.fromhex("31ff b83c000000 0f05")
"""xor edi, edi; mov eax, 60 (exit); syscall"""

_PAUSE_CODE = bytes.fromhex("b822000000 0f05 ebf7")
"""mov eax, 34 (pause); syscall; jump to the start"""

_BASE = 0x400000
"""Where Linux loads programs."""

_HEADER_BYTES = 0x78
"""The machine code lies behind both headers."""


def program_that_ends() -> bytes:
    """A program that ends at once, with exit code 0."""
    return _elf_program(_EXIT_CODE)


def program_that_waits() -> bytes:
    """A program that waits until it is killed."""
    return _elf_program(_PAUSE_CODE)


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
