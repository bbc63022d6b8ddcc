"""Makes an image of our own, with two tiny programs and an empty folder.

A container of the first program tells what the engine itself costs. One of the second
keeps a volume mounted while another container writes to it. So nothing of a team is run
for either of them.
"""

from __future__ import annotations

import io
import tarfile

from flare.common.engine import Engine
from flare.measuring.tiny_programs import program_that_ends, program_that_waits

NOTHING = ("/nothing",)
"""Ends at once, with exit code 0."""

HOLD = ("/hold",)
"""Waits until it is killed."""

OUTPUTS = "/outputs"
"""A folder of the image, for a volume."""


def make_empty_image(engine: Engine, tag: str) -> str:
    """Make the image under a tag, and return its ID.

    Raises
    ------
    EngineError
        If that fails.
    """
    engine.call("import", "-", tag, content=image_tar())
    return engine.image_id(tag)


def image_tar() -> bytes:
    """The file system of the image, as a tar file."""
    content = io.BytesIO()
    programs = (
        (NOTHING, program_that_ends()),
        (HOLD, program_that_waits()),
    )
    with tarfile.open(fileobj=content, mode="w") as archive:
        for (path,), program in programs:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(program), 0o755
            archive.addfile(entry, io.BytesIO(program))
        folder = tarfile.TarInfo(OUTPUTS.lstrip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    return content.getvalue()
