"""Unpacks tars of our own or of the organiser, with any Python that we run with."""

import tarfile
from pathlib import Path


def unpack_own(archive: tarfile.TarFile, target: Path) -> None:
    """Unpack a tar that no stranger has sent.

    Python before 3.11.4 knows no filters, and unpacks as it always has.

    Parameters
    ----------
    archive : tarfile.TarFile
        What is unpacked.
    target : Path
        The folder that it goes to.
    """
    # An attribute, which an older Python does not look at: it knows no such argument.
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(target)
