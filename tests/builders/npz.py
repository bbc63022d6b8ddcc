"""Makes .npz files: as NumPy writes them, and as nobody should."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import numpy as np


def npz_bytes(*, compressed=True, **arrays):
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def npy_bytes(array, *, line=None, version=1):
    """A member; `line` stands for what NumPy would say of the array."""
    if line is None:
        file = io.BytesIO()
        np.lib.format.write_array(file, array, allow_pickle=True)
        return file.getvalue()
    width = "<H" if version == 1 else "<I"
    text = line.encode()
    return (
        b"\x93NUMPY"
        + bytes((version, 0))
        + struct.pack(width, len(text))
        + text
        + array.tobytes()
    )


def zip_bytes(members, *, method=zipfile.ZIP_DEFLATED, comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
        archive.comment = comment
    return file.getvalue()


def raw_zip(members, *, count=None, flags=0):
    """A zip whose directory says what it is told.

    Each member has its name and content; its size, checksum and method if they are to
    be others than the right ones; its place if it is to lie elsewhere; and its extra
    field, if there is to be one in the directory.
    """
    content, directory = b"", b""
    for member in members:
        data = member["content"]
        method = member.get("method", 8)
        packed = member.get("packed", _deflated(data) if method == 8 else data)
        name = member["name"].encode()
        size = member.get("size", len(data))
        crc = member.get("crc", zlib.crc32(data))
        place = member.get("place", len(content))
        if "place" not in member:
            content += _local(name, method, crc, packed, size)
        extra = member.get("extra", b"")
        directory += struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\x01\x02", 20, 20, flags, method, 0, 0, crc),
            *(member.get("packed_size", len(packed)), size, len(name)),
            *(len(extra), 0, 0, 0, 0, place),
        )
        directory += name + extra
    count = len(members) if count is None else count
    end = (0, 0, count, count, len(directory), len(content), 0)
    return content + directory + struct.pack("<4s4H2IH", b"PK\x05\x06", *end)


def _local(name, method, crc, packed, size):
    head = (0, method, 0, 0, crc, len(packed), size, len(name), 0)
    return struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, *head) + name + packed


def overlapping(outer, inner):
    """A zip whose second member lies in the data of the first, which are not packed."""
    (name, content), (other, hidden) = outer, inner
    crc = zlib.crc32(hidden)
    within = _local(other.encode(), 0, crc, hidden, len(hidden))
    place = 30 + len(name) + len(content)
    first = {"name": name, "content": content + within, "method": 0}
    second = {"name": other, "content": hidden, "method": 0, "place": place}
    return raw_zip([first, second])


def _deflated(content):
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflate.compress(content) + deflate.flush()
