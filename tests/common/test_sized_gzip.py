"""A gzip file of known length is read quickly, and refused in the careful words."""

import gzip
import io
import itertools
import random
import zlib
from contextlib import suppress

import pytest
from zlib_ng import zlib_ng

from flare.common.streams import (
    MEMBERS,
    DamagedStreamError,
    GzipStream,
    SizedGzipStream,
)
from tests.builders import gzip_with

SIZE = 2_150_000
CONTENT = random.Random(3).randbytes(150_000) + bytes(2_000_000)
PACKED = gzip.compress(CONTENT, mtime=0)
BEHIND = "there are other data behind its compressed data"
EARLY = "its compressed data end early"
DAMAGED = "its compressed data do not fit their checksum"


def read(packed, *, size=SIZE, header=348):
    """The content as a label map is read: its header, the rest, and a byte more."""
    stream = SizedGzipStream(io.BytesIO(packed))
    content = stream.read(header)
    stream.expect(size - len(content))
    content += stream.read(size - len(content))
    assert (stream._reader is not None) == (size == len(CONTENT) and packed == PACKED)
    return content, stream.read(1)


def test_a_whole_file_is_read_quickly():
    assert read(PACKED) == (CONTENT, b"")


@pytest.mark.parametrize("pieces", [1, 7, 350, 10**6])
def test_pieces_of_any_size_give_the_same(pieces):
    stream = SizedGzipStream(io.BytesIO(PACKED))
    content = bytearray(stream.read(350))
    stream.expect(len(CONTENT) - 350)
    assert stream.skip(10) == 10
    rest = bytearray()
    while more := stream.read(pieces if len(rest) < 5000 else 10**6):
        rest += more

    assert content + CONTENT[350:360] + rest == CONTENT


def test_a_file_within_a_file_is_read_from_where_it_begins():
    file = io.BytesIO(b"some header\n" + PACKED)
    file.readline()
    stream = SizedGzipStream(file)
    stream.expect(len(CONTENT))

    assert stream.read(len(CONTENT) + 1) == CONTENT


def test_a_library_without_its_reader_is_no_hindrance(monkeypatch):
    monkeypatch.delattr(zlib_ng, "_GzipReader")
    stream = SizedGzipStream(io.BytesIO(PACKED))
    stream.expect(len(CONTENT))

    assert stream.read(len(CONTENT) + 1) == CONTENT


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(PACKED + bytes(1000), id="padding"),
        pytest.param(gzip.compress(CONTENT[:9000]) + gzip.compress(CONTENT[9000:])),
        pytest.param(gzip.compress(b"") + PACKED, id="an empty member first"),
        pytest.param(PACKED + gzip.compress(b""), id="an empty member last"),
    ],
)
def test_what_is_not_one_member_is_read_carefully(packed):
    assert read(packed) == (CONTENT, b"")


def test_more_content_than_expected_is_there_to_be_seen():
    content, more = read(PACKED, size=len(CONTENT) - 5)

    assert (content, more) == (CONTENT[:-5], CONTENT[-5:-4])


def flipped(place):
    """The packed content with another bit."""
    packed = bytearray(PACKED)
    packed[place] ^= 16
    return bytes(packed)


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        pytest.param(PACKED[:-4], EARLY, id="an early end"),
        pytest.param(PACKED[: len(PACKED) // 2], EARLY, id="half of it"),
        pytest.param(flipped(-6), DAMAGED, id="another checksum"),
        pytest.param(flipped(-2), DAMAGED, id="another length"),
        pytest.param(flipped(len(PACKED) // 2), DAMAGED, id="another bit"),
        pytest.param(PACKED + PACKED[-4:], BEHIND, id="its length once more"),
        pytest.param(
            PACKED[:-4] + bytes(40) + PACKED[-4:], DAMAGED, id="zeros in its trailer"
        ),
        pytest.param(
            PACKED + gzip.compress(b"") * MEMBERS,
            f"it has more than {MEMBERS} gzip members",
            id="too many members",
        ),
    ],
)
def test_damage_is_told_in_the_words_of_the_careful_reader(packed, text):
    with pytest.raises(DamagedStreamError) as careful:
        GzipStream(io.BytesIO(packed)).read(len(CONTENT) + 1)
    assert str(careful.value) == text

    stream = SizedGzipStream(io.BytesIO(packed))
    stream.read(348)
    stream.expect(len(CONTENT) - 348)
    with pytest.raises(DamagedStreamError) as quick:
        stream.read(len(CONTENT) + 1)
    assert str(quick.value) == text


def test_a_checksum_that_is_wrong_is_found_though_the_length_is_right():
    """Other content of the same length, under the trailer of the first."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    other = packer.compress(bytes(len(CONTENT))) + packer.flush()
    packed = PACKED[:10] + other + PACKED[-8:]

    with pytest.raises(DamagedStreamError, match=DAMAGED):
        read(packed)


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
    chance = random.Random(29)
    for _ in range(30):
        names = chance.sample(["extra", "name", "comment"], chance.randint(1, 3))
        most = {"extra": 65_535}
        yield {name: chance.randint(1, most.get(name, 150_000)) for name in names}


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


@pytest.mark.parametrize("size", [100, 70_000])
def test_damage_behind_a_long_header_is_found(size):
    packed = bytearray(gzip_with(CONTENT, name=b"x" * size))
    packed[-5] ^= 1  # of the checksum
    stream = SizedGzipStream(io.BytesIO(packed))
    stream.read(348)
    stream.expect(len(CONTENT) - 348)

    with pytest.raises(DamagedStreamError, match=DAMAGED):
        stream.read(len(CONTENT))
