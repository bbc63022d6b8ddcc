"""Decompressing: everything comes back, and any damage is noticed, however it is read.

A gzip file whose length is known is read quickly, and refused in the careful words.
"""

import gzip
import io
import itertools
import random
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from zlib_ng import zlib_ng

from flare.common.streams import (
    COMPRESSED_PIECE_BYTES,
    MEMBERS,
    PIECE_BYTES,
    DamagedStreamError,
    GzipStream,
    SizedGzipStream,
    ZlibStream,
)
from tests.builders import error_of, gzip_with

CONTENT = random.Random(1).randbytes(3 * COMPRESSED_PIECE_BYTES) + bytes(3_000_000)
PACKED = gzip.compress(CONTENT, mtime=0)
EARLY = "its compressed data end early"
WRONG = "its compressed data do not fit their checksum"
ZEROS = "there are more than a MiB of zeros behind its compressed data"
BEHIND = "there are other data behind its compressed data"
HEADER = 348

BOTH = pytest.mark.parametrize("kind", [GzipStream, SizedGzipStream])


def read_all(kind, packed, size=3_196_608):
    stream = kind(io.BytesIO(packed))
    content = stream.read(HEADER)
    stream.expect(size - len(content))
    content += stream.read(10_000_000)
    assert stream.read(1) == b""
    return content


def flipped(place):
    packed = bytearray(PACKED)
    packed[place] ^= 16
    return bytes(packed)


def bgzip(content):
    """The content in blocks of 64 KiB, each a member with an extra header field."""
    blocks = [content[i : i + 2**16] for i in range(0, len(content), 2**16)]
    return b"".join(gzip_with(block, extra=b"BC\x02\x00\x00\x00") for block in blocks)


@BOTH
@pytest.mark.parametrize(
    ("packed", "content"),
    [
        pytest.param(PACKED, CONTENT, id="one member"),
        pytest.param(PACKED + PACKED, CONTENT * 2, id="two members"),
        pytest.param(bgzip(CONTENT), CONTENT, id="bgzip"),
        pytest.param(PACKED + bytes(100_000), CONTENT, id="zeros behind"),
        pytest.param(PACKED + bytes(2**20), CONTENT, id="a MiB of zeros behind"),
        pytest.param(PACKED + bytes(7) + PACKED, CONTENT * 2, id="zeros between"),
        pytest.param(gzip.compress(b"") + PACKED, CONTENT, id="an empty member first"),
        pytest.param(PACKED + gzip.compress(b""), CONTENT, id="an empty member last"),
    ],
)
def test_the_content_comes_back(kind, packed, content):
    assert read_all(kind, packed) == content


@BOTH
@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        pytest.param(b"", EARLY, id="nothing"),
        pytest.param(PACKED[:5], EARLY, id="within the header"),
        pytest.param(PACKED[:1000], EARLY, id="within the data"),
        pytest.param(PACKED[:-8], EARLY, id="without the trailer"),
        pytest.param(PACKED[:-1], EARLY, id="without the last byte"),
        pytest.param(PACKED + PACKED[:50], EARLY, id="within the second member"),
        pytest.param(PACKED + b"x", BEHIND, id="a byte behind"),
        pytest.param(PACKED + b"\x1f", BEHIND, id="half a magic number behind"),
        pytest.param(PACKED + bytes(70_000) + b"x", BEHIND, id="a byte behind zeros"),
        pytest.param(PACKED + PACKED[-4:], BEHIND, id="its length once more"),
        pytest.param(PACKED[:-4] + bytes(4), WRONG, id="wrong length"),
        pytest.param(PACKED[:-8] + bytes(4) + PACKED[-4:], WRONG, id="wrong checksum"),
        pytest.param(flipped(len(PACKED) // 2), WRONG, id="another bit"),
        pytest.param(
            PACKED[:-4] + bytes(40) + PACKED[-4:], WRONG, id="zeros in its trailer"
        ),
        pytest.param(
            PACKED + gzip.compress(b"") * MEMBERS,
            f"it has more than {MEMBERS} gzip members",
            id="too many members",
        ),
        pytest.param(PACKED + bytes(2**20 + 1), ZEROS, id="zeros behind"),
    ],
)
def test_damage_is_noticed_and_told_in_the_careful_words(kind, packed, problem):
    assert str(error_of(DamagedStreamError, read_all, kind, packed)) == problem


def test_no_more_is_decompressed_than_is_asked_for():
    """A file of a gigabyte of zeros hands on the ten bytes that are read."""
    bomb = io.BytesIO(gzip.compress(bytes(2**24), mtime=0) * 64)
    tracemalloc.start()
    reader = GzipStream(bomb)
    first = reader.read(10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert first == bytes(10)
    assert peak < 4 * PIECE_BYTES
    assert reader.skip(10) == 10


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        pytest.param(zlib.compress(CONTENT), None, id="whole"),
        pytest.param(b"", EARLY, id="nothing"),
        pytest.param(zlib.compress(CONTENT)[:-1], EARLY, id="without the last byte"),
        pytest.param(zlib.compress(CONTENT)[:-4] + bytes(4), WRONG, id="checksum"),
        pytest.param(zlib.compress(CONTENT) + b"\0", BEHIND, id="a byte behind"),
        pytest.param(zlib.compress(b"") + bytes(70_000), BEHIND, id="much behind"),
    ],
)
def test_zlib_data_end_with_their_checksum(packed, problem):
    stream = ZlibStream(io.BytesIO(packed))

    if problem is None:
        assert stream.read(10_000_000) == CONTENT
    else:
        assert str(error_of(DamagedStreamError, stream.read, 10_000_000)) == problem


class Zeros(io.RawIOBase):
    """A gzip file with terabytes of zeros behind it; counts what is read of them."""

    def __init__(self):
        self.file, self.read_bytes = io.BytesIO(PACKED), 0

    def read(self, size=-1):
        self.read_bytes += size
        return self.file.read(size) or bytes(size)


def test_zeros_without_end_are_not_read():
    """Nor are those between members."""
    with pytest.raises(DamagedStreamError, match=ZEROS):
        read_all(GzipStream, PACKED + bytes(2**20 + 1) + PACKED)
    file = Zeros()

    with pytest.raises(DamagedStreamError):
        GzipStream(file).skip(10**9)

    assert file.read_bytes < len(PACKED) + 2**20 + 3 * COMPRESSED_PIECE_BYTES


# --- A gzip file whose length is known --------------------------------------------


@pytest.mark.parametrize(
    ("packed", "is_quick"),
    [
        (PACKED, True),
        (PACKED + bytes(1000), False),
        (gzip.compress(b"") + PACKED, False),
        (PACKED + PACKED[-4:], True),
        (PACKED + bytes(4_000_000) + PACKED[-4:], False),
        (PACKED[:-1], False),
    ],
)
def test_a_file_that_ends_with_its_length_is_read_quickly(packed, is_quick):
    stream = SizedGzipStream(io.BytesIO(packed))
    stream.read(HEADER)
    stream.expect(len(CONTENT) - HEADER)

    assert (stream._reader is not None) == is_quick


@pytest.mark.parametrize("has_reader", [True, False])
def test_a_file_within_a_file_is_read_from_where_it_begins(monkeypatch, has_reader):
    """By a library without its reader, too."""
    if not has_reader:
        monkeypatch.delattr(zlib_ng, "_GzipReader")
    file = io.BytesIO(b"some header\n" + PACKED)
    file.readline()
    stream = SizedGzipStream(file)
    stream.expect(len(CONTENT))

    assert stream.read(len(CONTENT) + 1) == CONTENT


def test_a_bit_that_is_flipped_anywhere_is_found_or_harmless():
    """As by the careful reader: the quick one accepts no file that it refuses."""
    whole = random.Random(4).randbytes(700) + bytes(3000)
    small = gzip.compress(whole, mtime=0)
    found = {GzipStream: [], SizedGzipStream: []}
    for place, bit in itertools.product(range(len(small)), (1, 128)):
        packed = bytearray(small)
        packed[place] ^= bit
        for kind, accepted in found.items():
            stream = kind(io.BytesIO(packed))
            with suppress(DamagedStreamError):
                content = stream.read(350)
                stream.expect(3350)
                content += stream.read(3350)
                # More than is expected is an error of its own.
                if len(content) == 3700 and not stream.read(1):
                    assert content == whole
                    accepted.append((place, bit))

    assert found[GzipStream] == found[SizedGzipStream]


def _fields():
    """Sizes of the fields of a header, around those at which something changes."""
    edges = (1, 255, 2**15, 65_000, 65_523, 65_524, 65_525, 65_535)
    yield from ({"extra": size} for size in edges)
    for kind in ("name", "comment"):
        sizes = (*edges, 65_536, 65_537, 66_000, 131_072, 200_000)
        yield from ({kind: size} for size in sizes)
    yield {"extra": 65_535, "name": 150_000, "comment": 70_000}


@pytest.mark.parametrize("fields", list(_fields()), ids=str)
def test_a_header_with_fields_of_any_size_is_read(fields):
    """Python's own reader says what is right; zlib-ng's stops at 64 KiB."""
    content = CONTENT[100_000:200_000]
    texts = {field: b"x" * size for field, size in fields.items()}
    packed = gzip_with(content, **texts)
    assert gzip.decompress(packed) == content
    stream = SizedGzipStream(io.BytesIO(packed))

    found = stream.read(348)
    stream.expect(len(content) - 348)
    found += stream.read(len(content))

    assert found == content
