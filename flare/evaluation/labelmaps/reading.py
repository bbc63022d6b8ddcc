"""Reads one label map, verified down to its checksum.

The content of a file decides how it is read, not its name. The voxels come from a
stream that is decompressed once, verified, and bounded by what the header promises;
each piece is turned into labels while it is in the CPU's cache. Files are (x, y, z),
everything else in this program is (z, y, x).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from flare.challenge.formats import ANY_FORMAT, FORMATS, NpzLayout
from flare.common.errors import InputError
from flare.common.files import open_regular
from flare.common.streams import PIECE_BYTES, DamagedStreamError, Stream
from flare.common.text import safe, why
from flare.evaluation.errors import (
    ROUND,
    DamagedFileError,
    FileFormatError,
    FractionError,
)
from flare.evaluation.labelmaps.grid import Grid, Header, is_link_text, kind_of, named
from flare.evaluation.metrics.arrays import Box, Bytes, Labels
from flare.evaluation.metrics.pairs import empty_map
from flare.evaluation.metrics.tally import VoxelMap

SNIFFED_BYTES = 512
"""The first bytes of a file, by which its format is recognised."""

UNKNOWN_LABELS_LIMIT = 20
"""At most this many different unknown labels of a file are kept, for its message."""


@dataclass(frozen=True, kw_only=True)
class LabelMap:
    """The labels of one file."""

    grid: Grid
    voxels: VoxelMap
    """All labels that it has, also unknown ones."""
    allowed: tuple[int, ...]
    """The labels that it may have, besides 0."""
    unknown: tuple[int, ...] = ()
    """Other labels in the file, smallest first; the first few of many."""
    intercept: float = 0.0
    """The number that its header adds to each voxel."""

    @cached_property
    def labels(self) -> Labels:
        """The labels of shape (Z, Y, X), for reading; 0 where they are unknown."""
        labels = self.voxels.slices(slice(None))
        if not set(self.voxels.present) <= {*self.allowed}:
            table = np.zeros(256, dtype=np.uint8)
            table[list(self.allowed)] = self.allowed
            labels = table[labels]
        labels.flags.writeable = False
        return labels

    def box(self, labels: Collection[int]) -> Box:
        """The smallest box around some labels, along z, y, x."""
        return self.voxels.box(labels)

    @cached_property
    def present(self) -> tuple[int, ...]:
        """The known labels that the file has, in the order of those."""
        present = frozenset(self.voxels.present)
        return tuple(label for label in self.allowed if label in present)


def read_labels(
    stream: Stream, header: Header, known_labels: Sequence[int]
) -> LabelMap:
    """Read the voxels behind a header, to their verified end.

    The stream has them in the order x, y, z: x is the fastest. `known_labels` are those
    of `LabelMapFile.read_labels`. A FileError is raised if there are more or fewer
    voxels than the header says, or one is no whole number. `opened` puts the name of
    the file into it.
    """
    voxels = empty_map(header.grid.shape)
    narrower = Narrower(header)
    stream.expect(header.promised_bytes)
    byte_count = stream.skip(header.voxel_offset)
    if byte_count == header.voxel_offset:
        byte_count += _read_voxels(stream, header, voxels, narrower)
    if byte_count < header.promised_bytes:
        raise DamagedFileError("", "it holds fewer voxels than its header says")
    if stream.read(1):
        raise DamagedFileError("", "it holds more voxels than its header says")
    if narrower.fraction is not None:
        problem = f"voxels are not whole numbers (found {narrower.fraction_text})"
        if header.is_scaled:
            problem += f" after scaling by scl_slope {header.slope:.6g}"
        raise FractionError("", problem, ROUND if narrower.is_near else "")
    strange = sorted(set(voxels.present).difference(known_labels))
    unknown = [*sorted(narrower.misfits), *strange][:UNKNOWN_LABELS_LIMIT]
    return LabelMap(
        grid=header.grid,
        voxels=voxels,
        allowed=tuple(known_labels),
        unknown=tuple(sorted(unknown)),
        intercept=header.intercept,
    )


def verify_voxels(path: Path, name: str) -> None:
    """Read an image of any values to its verified end.

    A FileFormatError or InputError is raised: as `LabelMapFile.read_grid`. A
    DamagedFileError is raised if the file is damaged, or ends early.
    """
    with opened(path, name) as (header, stream):
        if stream.skip(header.promised_bytes) < header.promised_bytes:
            raise DamagedFileError("", "it holds fewer voxels than its header says")
        stream.read(1)  # which verifies the checksum at the end of the file


# --- From file to labels ----------------------------------------------------------


@contextmanager
def opened(
    path: Path, name: str, npz: NpzLayout | None = None, stream: BinaryIO | None = None
) -> Iterator[tuple[Header, Stream]]:
    """Open a file by its content, not by its name: its header, then its voxels.

    Errors of readers, also those within the block, get the name of the file.
    """
    try:
        # To open a pipe would never end, which another user may put in a file's place.
        if not stream and not path.is_file() and path.exists():
            raise FileFormatError(name, "it is no regular file")
        source = nullcontext(stream) if stream else open_regular(path)
        with source as file, named(name):
            file.seek(0)
            start = file.read(SNIFFED_BYTES)
            file.seek(0)
            yield _read_header(file, start, npz)
    except DamagedStreamError as error:
        raise DamagedFileError(name, str(error)) from error
    except OSError as error:
        raise InputError(f"{safe(name)}: it cannot be read ({why(error)})") from error


def _read_header(
    file: BinaryIO, start: bytes, npz: NpzLayout | None
) -> tuple[Header, Stream]:
    """Find the format of a file that begins with `start`, and read its header."""
    if not start:
        raise DamagedFileError("", "the file is empty")
    for file_format in FORMATS:
        if file_format.elsewhere and not npz:
            continue
        # Not at the top: an evaluation of NIfTI files starts sooner without others.
        reader: Any = import_module(f"flare.evaluation.labelmaps.{file_format.reader}")
        if reader.is_start(start):
            arguments = (file, npz) if file_format.elsewhere else (file,)
            header_and_voxels: tuple[Header, Stream] = reader.open_voxels(*arguments)
            return header_and_voxels
    raise _foreign_file(start)


def _foreign_file(start: bytes) -> FileFormatError:
    if is_link_text(start):
        problem = "it is a symbolic link, of which a zip has the path alone"
        return FileFormatError("", problem, "Zip the files themselves: without zip -y.")
    expected = f"a {ANY_FORMAT} file"
    kind = kind_of(start)
    return FileFormatError(
        "", f"it is {kind}, expected {expected}" if kind else f"it is not {expected}"
    )


def _read_voxels(
    stream: Stream, header: Header, voxels: VoxelMap, narrower: Narrower
) -> int:
    """Fill a label map; return the number of bytes that were read.

    It is less than promised only if the stream ends. A piece of whole rows is read, and
    taken into the map at once, while it is in the CPU's cache.
    """
    is_plain = header.dtype == np.uint8 and not header.is_scaled
    width = header.grid.shape[2]
    step = max(1, PIECE_BYTES // header.dtype.itemsize // width) * width
    piece = np.empty(min(step, header.voxels), dtype=header.dtype)
    byte_count = 0
    for start in range(0, header.voxels, step):
        values = piece[: header.voxels - start]
        count = stream.readinto(values.view(np.uint8).data)
        byte_count += count
        if count < values.nbytes:
            break
        voxels.add(values if is_plain else narrower.narrow(values))
    return byte_count


NEAR = 0.01
"""The share by which labels differ from whole numbers, at most, that a program has
scaled to fit a type of integers: 1/255 in 8 bits."""

FARTHEST = 0.1
"""How far they may lie from them, which tells them from labels that were mixed."""


def _are_near(values: npt.NDArray[Any]) -> bool:
    """Whether values, of shape (n,), are whole numbers but for what scaling does."""
    whole = np.rint(values)
    with np.errstate(invalid="ignore"):
        limits = np.minimum(NEAR * np.maximum(np.abs(whole), 1), FARTHEST)
        return bool((np.abs(values - whole) <= limits).all())  # False for a NaN


class Narrower:
    """Turns stored values into labels of one byte, and remembers all other values.

    Nearly all pieces hold whole numbers from 0 to 255, as their smallest and largest
    values show. In all others, fractions and whole numbers that do not fit into a byte
    become 0, and are remembered for a message.
    """

    def __init__(self, header: Header) -> None:
        self.misfits: set[int] = set()
        """Whole numbers that fit into no byte; the first few of many."""
        self.fraction: np.floating[Any] | None = None
        """The first value that is not a whole number."""
        self.is_near = True
        """Whether all such values are labels but for what scaling does."""
        self._header = header

    @property
    def fraction_text(self) -> str:
        """The fraction to six digits, or to as many as it takes to look like one."""
        text = f"{self.fraction:.6g}"
        return str(self.fraction) if float(text).is_integer() else text

    def narrow(self, values: npt.NDArray[Any]) -> Bytes:
        """Values of shape (n,) as bytes: those that do not fit become 0."""
        values = self._scaled(values)
        if values.min() >= 0 and values.max() <= 255:  # False if there is a NaN
            labels = values.astype(np.uint8)
            is_whole = values.dtype.kind != "f" or np.array_equal(labels, values)
            if is_whole:
                return labels
        if values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                is_fraction = ~np.isfinite(values) | (np.rint(values) != values)
            if is_fraction.any():
                fractions = values[is_fraction]
                if self.fraction is None:
                    self.fraction = fractions[0]
                self.is_near &= _are_near(fractions)
                values = np.where(is_fraction, 0, values)
        fits = (values >= 0) & (values <= 255)
        room = UNKNOWN_LABELS_LIMIT - len(self.misfits)
        misfits = np.unique(values[~fits])[: max(0, room)]
        self.misfits.update(int(value) for value in misfits)
        return np.where(fits, values, 0).astype(np.uint8)

    def _scaled(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        header = self._header
        if header.is_scaled:
            with np.errstate(over="ignore", invalid="ignore"):
                values = values.astype(np.float64) * header.slope + header.intercept
        if header.is_rounded and values.dtype.kind == "f" and _are_near(values):
            values = np.rint(values)
        return values
