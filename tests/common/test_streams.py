"""Decompressing: everything comes back, and any damage is noticed."""

import gzip
import io
import random
import tracemalloc
import zlib

import pytest

from flare.common.streams import (
    COMPRESSED_PIECE_BYTES,
    PIECE_BYTES,
    DamagedStreamError,
    GzipStream,
    PlainStream,
    ZlibStream,
)

CONTENT = random.Random(1).randbytes(3 * COMPRESSED_PIECE_BYTES) + bytes(3_000_000)
PACKED = gzip.compress(CONTENT, mtime=0)
EARLY = "its compressed data end early"
WRONG = "its compressed data do not fit their checksum"
BEHIND = "there are other data behind its compressed data"


def read_all(packed):
    reader = GzipStream(io.BytesIO(packed))
    content = reader.read(10_000_000)
    assert reader.read(1) == b""
    return content


def bgzip(content):
    """The content in blocks of 64 KiB, each a member with an extra header field."""
    blocks = [content[i : i + 2**16] for i in range(0, len(content), 2**16)]
    extra = b"\x1f\x8b\x08\x04" + bytes(6) + b"\x06\x00BC\x02\x00\x00\x00"
    packed = b""
    for block in blocks:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        trailer = zlib.crc32(block).to_bytes(4, "little")
        trailer += len(block).to_bytes(4, "little")
        packed += extra + deflate.compress(block) + deflate.flush() + trailer
    return packed


@pytest.mark.parametrize(
    ("packed", "content"),
    [
        pytest.param(PACKED, CONTENT, id="one member"),
        pytest.param(PACKED + PACKED, CONTENT * 2, id="two members"),
        pytest.param(bgzip(CONTENT), CONTENT, id="bgzip"),
        pytest.param(PACKED + bytes(100_000), CONTENT, id="zeros behind"),
        pytest.param(PACKED + bytes(2**20), CONTENT, id="a MiB of zeros behind"),
        pytest.param(PACKED + bytes(7) + PACKED, CONTENT * 2, id="zeros between"),
        pytest.param(gzip.compress(b"") + PACKED, CONTENT, id="an empty member"),
    ],
)
def test_the_content_comes_back(packed, content):
    assert read_all(packed) == content


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
        pytest.param(PACKED[:-4] + bytes(4), WRONG, id="wrong length"),
        pytest.param(PACKED[:-8] + bytes(4) + PACKED[-4:], WRONG, id="wrong checksum"),
    ],
)
def test_damage_is_noticed(packed, problem):
    with pytest.raises(DamagedStreamError) as caught:
        read_all(packed)

    assert str(caught.value) == problem


@pytest.mark.parametrize("position", range(10, len(PACKED) - 8, 9_973))
def test_a_flipped_bit_in_the_data_is_noticed(position):
    damaged = bytearray(PACKED)
    damaged[position] ^= 1 << (position % 8)

    with pytest.raises(DamagedStreamError):
        read_all(bytes(damaged))


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
        with pytest.raises(DamagedStreamError) as caught:
            stream.read(10_000_000)
        assert str(caught.value) == problem


def test_a_file_that_is_not_compressed_is_read_as_it_is():
    stream = PlainStream(io.BytesIO(CONTENT))

    assert stream.read(len(CONTENT) + 1) == CONTENT
    assert stream.read(1) == b""


def test_skipping_more_than_a_piece_stops_where_it_should():
    size = PIECE_BYTES + 10
    reader = GzipStream(io.BytesIO(gzip.compress(bytes(size) + b"next" + bytes(size))))

    assert reader.skip(size) == size
    assert reader.read(4) == b"next"


def test_skipping_beyond_the_end_says_how_much_there_was():
    assert GzipStream(io.BytesIO(gzip.compress(b"12345"))).skip(9) == 5


class Zeros(io.RawIOBase):
    """A gzip file with terabytes of zeros behind it; counts what is read of them."""

    def __init__(self):
        self.file, self.read_bytes = io.BytesIO(PACKED), 0

    def read(self, size=-1):
        self.read_bytes += size
        return self.file.read(size) or bytes(size)


@pytest.mark.parametrize("between", [b"", PACKED], ids=["behind", "between"])
def test_more_than_a_mib_of_zeros_is_refused(between):
    packed = PACKED + bytes(2**20 + 1) + between

    with pytest.raises(DamagedStreamError) as error:
        read_all(packed)

    text = "there are more than a MiB of zeros behind its compressed data"
    assert str(error.value) == text


def test_zeros_without_end_are_not_read():
    file = Zeros()

    with pytest.raises(DamagedStreamError):
        GzipStream(file).skip(10**9)

    assert file.read_bytes < len(PACKED) + 2**20 + 3 * COMPRESSED_PIECE_BYTES
