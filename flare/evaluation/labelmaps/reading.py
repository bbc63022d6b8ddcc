"""Reads and writes one label map; what is read is verified down to its checksum.

What a file holds decides how it is read, not what it is called. The voxels come from a
stream that is decompressed once, verified, and bounded by what the header promises;
each piece is turned into labels while it is in the CPU's cache. Files are (x, y, z),
everything else in this program is (z, y, x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import nibabel as nib
import numpy as np
import numpy.typing as npt

from flare.common.errors import InputError
from flare.common.streams import (
    GZIP_MAGIC,
    PIECE_BYTES,
    DamagedStreamError,
    GzipStream,
    PlainStream,
    Stream,
)
from flare.common.text import safe, why
from flare.evaluation.errors import DamagedFileError, FileFormatError, FractionError
from flare.evaluation.labelmaps.grid import Grid, Header
from flare.evaluation.labelmaps.nifti import is_nifti, read_nifti_header
from flare.evaluation.labelmaps.text_headers import (
    is_metaimage,
    is_nrrd,
    read_metaimage_header,
    read_nrrd_header,
)
from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.metrics.occupancy import LabelFinder, Occupancy

_ONE_FILE = "Save each label map as one .nii.gz or .mha file."
_WITH_GRID = "Save label maps as .nii.gz or .mha, with the header of the CT."
_NO_ARCHIVE = "Submit one zip of the label maps themselves."

OTHER_SUFFIXES = {
    **dict.fromkeys(
        (".hdr", ".img", ".hdr.gz", ".img.gz", ".mhd", ".zraw", ".nhdr"),
        ("it is half of an image, whose header and voxels are two files", _ONE_FILE),
    ),
    **dict.fromkeys(
        (".tif", ".tiff"), ("its format does not say where the voxels are", _WITH_GRID)
    ),
    **dict.fromkeys(
        (".mgz", ".mgh", ".mnc", ".dcm", ".h5"),
        ("its format is not accepted", _ONE_FILE),
    ),
}
"""Image files all the same: they are named in an error, with what to do."""

ARCHIVE_SUFFIXES = (".zip", ".rar", ".7z", ".tar", ".tar.gz", ".tgz", ".tar.xz")

FOREIGN_SUFFIXES = {
    **dict.fromkeys(
        ARCHIVE_SUFFIXES,
        ("it is an archive within the zip, which is not opened", _NO_ARCHIVE),
    ),
    **dict.fromkeys(
        (".npz", ".npy"), ("it is a NumPy file, which has no grid", _WITH_GRID)
    ),
    **dict.fromkeys((".csv", ".xlsx"), ("it is a table, not a label map", _ONE_FILE)),
}
"""Files that matter only where a label map is missing."""

SNIFFED_BYTES = 512
"""How much of a file tells of what kind it is."""

UNKNOWN_LABELS_LIMIT = 20
"""So many different unknown labels of a file are kept, for its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMap:
    """The labels of one file."""

    grid: Grid
    labels: Labels
    """Shape (Z, Y, X); 0 also where the file has an unknown label."""
    places: Mapping[int, Occupancy]
    """Where each known label is."""
    unknown: tuple[int, ...]
    """Labels in the file that are not known, smallest first; the first few of many."""
    intercept: float = 0.0
    """What its header adds to each voxel."""

    @property
    def has_organs(self) -> bool:
        """Whether any voxel has a known label."""
        return bool(self.present)

    @property
    def present(self) -> tuple[int, ...]:
        """The known labels that there are."""
        places = self.places.items()
        return tuple(label for label, place in places if place.rows.any())


def read_grid(path: Path, name: str) -> Grid:
    """Read the grid of a label map from its header.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        What the file is called in an error.

    Raises
    ------
    FileFormatError
        If its format is not accepted, or of a kind that no label map has.
    DamagedFileError
        If it ends within its header.
    InputError
        If the file cannot be opened.
    """
    with _opened(path, name) as (header, _):
        return header.grid


def read_label_map(
    path: Path,
    name: str,
    known: Sequence[int],
    allocate: Callable[[int], Labels] | None = None,
) -> LabelMap:
    """Read a whole label map and verify it.

    Parameters
    ----------
    path : Path
        The file. Its header decides how much memory this takes: look at it first.
    name : str
        What the file is called in an error.
    known : sequence of int
        The labels, from 1 to 255, that may be there beside 0.
    allocate : callable, optional
        Gives an array of uint8 for so many labels, with any content.

    Raises
    ------
    FileFormatError, InputError
        As `read_grid`.
    DamagedFileError
        If the file is truncated, its checksum is wrong, or it holds more or less than
        its header promises.
    FractionError
        If a voxel is not a whole number.
    """
    with _opened(path, name) as (header, stream):
        labels = (allocate or _fresh)(header.voxels)
        narrower = _Narrower(header.slope, header.intercept)
        finder = LabelFinder(labels, header.grid.shape, known)
        found = stream.skip(header.voxel_offset)
        if found == header.voxel_offset:
            found += _read_voxels(stream, header, labels, narrower, finder)
        promised = header.voxel_offset + header.voxels * header.dtype.itemsize
        if found < promised or stream.read(1):
            more = "more" if found == promised else "fewer"
            text = f"it holds {more} voxels than its header says"
            raise DamagedFileError(name, text)
    if narrower.fraction is not None:
        text = f"voxels are not whole numbers (found {narrower.fraction:.6g})"
        if header.is_scaled:
            text += f" after scaling by scl_slope {header.slope:.6g}"
        raise FractionError(name, text)
    places = finder.finish()
    if finder.unwanted:
        _erase(labels, finder.unwanted)
    unknown = [*sorted(narrower.misfits), *sorted(finder.unwanted)]
    return LabelMap(
        grid=header.grid,
        labels=labels.reshape(header.grid.shape),
        places=places,
        unknown=tuple(sorted(unknown[:UNKNOWN_LABELS_LIMIT])),
        intercept=header.intercept,
    )


def read_pieces(path: Path, name: str) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The values of any image, scaled, piece by piece, in the order of the file.

    With each piece comes the number of the voxels before it; the next overwrites it.

    Raises
    ------
    FileFormatError, InputError
        As `read_grid`.
    DamagedFileError
        If the file is damaged, or ends early.
    """
    with _opened(path, name) as (header, stream):
        whole = stream.skip(header.voxel_offset) == header.voxel_offset
        step = PIECE_BYTES // header.dtype.itemsize
        scratch = np.empty(step, dtype=header.dtype)
        for start in range(0, header.voxels, step):
            values = scratch[: min(step, header.voxels - start)]
            count = stream.readinto(values.view(np.uint8).data) if whole else 0
            if count < values.nbytes:
                problem = "it holds fewer voxels than its header says"
                raise DamagedFileError(name, problem)
            if header.is_scaled:
                yield start, values * header.slope + header.intercept
            else:
                yield start, values
        stream.read(1)  # what is at its end is verified then


def write_label_map(path: Path, labels: Labels, grid: Grid) -> None:
    """Write labels of shape (Z, Y, X) as .nii.gz; equal input gives equal bytes."""
    affine = np.vstack([np.array(grid.affine), (0, 0, 0, 1)])
    image = nib.Nifti1Image(labels.transpose(2, 1, 0), affine)
    image.header.set_xyzt_units("mm")
    image.set_qform(affine, code="scanner")
    image.set_sform(affine, code="scanner")
    nib.save(image, path)


# --- From file to labels ----------------------------------------------------------


@contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[Header, Stream]]:
    """Open a file by what it holds, whatever it is called: its header, then its voxels.

    What is wrong with it, also later, becomes an error that names it.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise FileFormatError(name, "it is no regular file")
        with path.open("rb") as file:
            start = file.read(SNIFFED_BYTES)
            file.seek(0)
            yield _read_header(file, start, name)
    except DamagedStreamError as error:
        raise DamagedFileError(name, str(error)) from error
    except OSError as error:
        reason = why(error)
        problem = f"{safe(name)}: it cannot be read ({reason})"
        raise InputError(problem) from error


def _read_header(file: BinaryIO, start: bytes, name: str) -> tuple[Header, Stream]:
    """Find out what kind of file begins with `start`, and read its header."""
    if not start:
        raise DamagedFileError(name, "the file is empty")
    if is_metaimage(start):
        return read_metaimage_header(file, name)
    if is_nrrd(start):
        return read_nrrd_header(file, name)
    stream: Stream
    if start.startswith(GZIP_MAGIC):
        stream = GzipStream(file)
    elif is_nifti(start):
        stream = PlainStream(file)
    else:
        raise FileFormatError(name, "it is not a NIfTI, MetaImage or NRRD file")
    return read_nifti_header(stream, name), stream


def _read_voxels(
    stream: Stream,
    header: Header,
    labels: Labels,
    narrower: _Narrower,
    finder: LabelFinder,
) -> int:
    """Fill `labels`; the number of bytes read is smaller only if the stream ends."""
    is_plain = header.dtype == np.uint8 and not header.is_scaled
    step = PIECE_BYTES // header.dtype.itemsize
    scratch = np.empty(step, dtype=header.dtype)
    read = 0
    for start in range(0, header.voxels, step):
        piece = labels[start : start + step]
        values = piece if is_plain else scratch[: piece.size]
        count = stream.readinto(values.view(np.uint8).data)
        read += count
        if count < values.nbytes:
            break
        if not is_plain:
            piece[:] = narrower.narrow(values)
        finder.add(start, start + piece.size)
    return read


def _erase(labels: Labels, unwanted: set[int]) -> None:
    """Replace some labels by 0."""
    table = np.arange(256, dtype=np.uint8)
    table[list(unwanted)] = 0
    for start in range(0, labels.size, PIECE_BYTES):
        piece = labels[start : start + PIECE_BYTES]
        piece[:] = table[piece]


def _fresh(size: int) -> Labels:
    """Memory for labels that nobody has used before."""
    return np.empty(size, dtype=np.uint8)


class _Narrower:
    """Turns stored values into labels of one byte, and remembers what was not one."""

    def __init__(self, slope: float, intercept: float) -> None:
        self.misfits: set[int] = set()
        """Whole numbers that fit into no byte; the first few of many."""
        self.fraction: float | None = None
        """The first value that is no whole number."""
        self._slope, self._intercept = slope, intercept

    def narrow(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values as labels of one byte; what fits into none becomes 0."""
        if (self._slope, self._intercept) != (1, 0):
            with np.errstate(over="ignore", invalid="ignore"):
                values = values.astype(np.float64) * self._slope + self._intercept
        if values.min() >= 0 and values.max() <= 255:  # False if there is a NaN
            labels = values.astype(np.uint8)
            if values.dtype.kind != "f" or np.array_equal(labels, values):
                return labels
        if values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                is_whole = np.isfinite(values) & (np.rint(values) == values)
            is_fraction = ~is_whole
            if is_fraction.any():
                if self.fraction is None:
                    self.fraction = float(values[is_fraction][0])
                values = np.where(is_fraction, 0, values)
        fits = (values >= 0) & (values <= 255)
        room = UNKNOWN_LABELS_LIMIT - len(self.misfits)
        misfits = np.unique(values[~fits])[: max(0, room)]
        self.misfits.update(int(value) for value in misfits)
        return np.where(fits, values, 0)
