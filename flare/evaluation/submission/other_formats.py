"""Lists suffixes of files that are not label maps, with what to do about each."""

from __future__ import annotations

from flare.challenge.formats import FORMATS

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
    ".npy": ("it is a NumPy file, which has no grid", _WITH_GRID),
    **{
        suffix: (each.elsewhere, _WITH_GRID)
        for each in FORMATS
        if each.needs_layout
        for suffix in each.suffixes
    },
    **dict.fromkeys((".csv", ".xlsx"), ("it is a table, not a label map", _ONE_FILE)),
}
"""Files that matter only where a label map is missing."""
