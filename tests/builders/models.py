"""Models that are sent beside images: tar files, entry by entry."""

import functools
import gzip
import io
import tarfile

WEIGHTS = {"weights/fold_0.pt": b"\x00\x01" * 2000, "plans.json": b"{}"}
"""What an honest one holds."""


def entry(name, content=b"", **fields):
    """An entry, and what it holds; `fields` are those of its header."""
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for field, value in fields.items():
        setattr(header, field, value)
    return header, content


def tar_of(entries):
    """A tar file of what `entry` gives."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for header, data in entries:
            archive.addfile(header, io.BytesIO(data))
    return content.getvalue()


# Without the time in its header, the same files give the same bytes.
compress = functools.partial(gzip.compress, mtime=0)


def model_bytes(files=WEIGHTS, *more, pack=compress):
    # As tar -C FOLDER . writes it.
    folder = entry(".", type=tarfile.DIRTYPE, mode=0o755)
    plain = [entry(f"./{name}", data) for name, data in files.items()]
    return pack(tar_of([folder, *plain, *more]))


def write_model(folder, files=WEIGHTS, *more, name="team_a.model.tar.gz"):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(model_bytes(files, *more))
    return file
