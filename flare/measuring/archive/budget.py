"""Limits what is read of an archive, as whoever has made it may mean harm."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field

UNPACKED_BYTES = 2**37
"""An archive that unpacks to more than this, 128 GiB, is not gone through."""

MOST_ENTRIES = 1_000_000
"""Nor one with more files."""

KEPT_BYTES = 2**26
"""So much of small files is kept at most."""

NOTED_BYTES = 2**28
"""So much is noted of layers at most: about a million links."""

NOTE_BYTES = 200
"""What Python needs for a note, beside its text."""

_SENSELESS = "its headers make no sense"


class BrokenError(Exception):
    """The archive cannot be read; the text says why."""


class LimitError(BrokenError):
    """There is too much in it."""


@dataclass(slots=True)
class Budget:
    """What may still be read."""

    unpacked_bytes: int = field(default_factory=lambda: UNPACKED_BYTES)
    entries: int = field(default_factory=lambda: MOST_ENTRIES)
    kept_bytes: int = field(default_factory=lambda: KEPT_BYTES)
    noted_bytes: int = field(default_factory=lambda: NOTED_BYTES)

    def unpack(self, size: int) -> None:
        """Take off what was unpacked."""
        self.unpacked_bytes -= size
        self._check_size(0)

    def enter(self, member: tarfile.TarInfo) -> None:
        """Take off a file, which may claim any size."""
        if member.size < 0:
            raise BrokenError(_SENSELESS)
        self.entries -= 1
        self._check_size(member.size if member.isreg() else 0)

    def _check_size(self, size: int) -> None:
        if self.unpacked_bytes < size or self.entries < 0:
            raise LimitError(
                f"it holds more than {UNPACKED_BYTES >> 30} GiB, or too many files"
            )

    def keep(self, size: int) -> None:
        """Take off a small file that is kept."""
        self.kept_bytes -= size
        if self.kept_bytes < 0:
            raise LimitError(f"its small files take more than {KEPT_BYTES >> 20} MB")

    def note(self, size: int) -> None:
        """Take off a text that is noted."""
        self.noted_bytes -= size + NOTE_BYTES
        if self.noted_bytes < 0:
            raise LimitError("it has too many links, or files that layers remove")
