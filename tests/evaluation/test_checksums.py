"""Checksums of files: by their bytes if they are compressed, else by their runs."""

import hashlib
import tracemalloc

import numpy as np
import pytest

from flare.evaluation.checksums import file_checksum

PIECE = 2**19


@pytest.fixture
def write(tmp_path):
    """A function that writes bytes to a file."""

    def write(content: bytes):
        file = tmp_path / "map.nii"
        file.write_bytes(content)
        return file

    return write


def noise(size: int) -> bytes:
    return np.random.default_rng(7).bytes(size)


@pytest.mark.parametrize(
    "content",
    [b"", b"abc", bytes(PIECE - 1), noise(3 * PIECE + 5)],
    ids=["empty", "short", "zeros", "noise"],
)
def test_short_and_compressed_files_have_their_sha256(write, content):
    assert file_checksum(write(content)) == hashlib.sha256(content).hexdigest()


def test_of_long_runs_starts_and_words_count(write):
    """Words of eight bytes: one of zeros, seven of ones, then zeros, and a rest."""
    content = bytes(8) + b"\1" * 56 + bytes(PIECE - 64) + b"rest"
    told = (
        b"runs\3\0\0\0"
        + b"\0\0\1\0\x08\0"  # where they start
        + bytes(8)
        + b"\1" * 8
        + bytes(8)
        + b"rest"
    )
    assert file_checksum(write(content)) == hashlib.sha256(told).hexdigest()


@pytest.mark.parametrize("runs", [4096, 4097])
def test_short_runs_are_no_runs(write, runs):
    """65,536 words: up to 4,096 runs are sixteen words long in the mean."""
    words = np.zeros(PIECE // 8, dtype="<u8")
    words[: runs - 1] = np.arange(1, runs)
    content = words.tobytes()
    is_plain = file_checksum(write(content)) == hashlib.sha256(content).hexdigest()
    assert is_plain == (runs > 4096)


@pytest.mark.parametrize("where", [0, 1, 4095, PIECE - 1, PIECE, 2 * PIECE - 1])
def test_a_single_byte_tells_files_apart(write, where):
    content = bytearray(2 * PIECE)
    before = file_checksum(write(content))
    content[where] = 1
    assert file_checksum(write(content)) != before


def test_a_missing_end_tells_files_apart(write):
    sizes = (PIECE - 8, PIECE, PIECE + 8, 2 * PIECE)
    assert len({file_checksum(write(bytes(size))) for size in sizes}) == len(sizes)


def test_a_large_file_takes_no_more_memory(tmp_path):
    file = tmp_path / "map.nii"
    with file.open("wb") as content:
        content.truncate(32 * PIECE)
    tracemalloc.start()
    try:
        file_checksum(file)
        assert tracemalloc.get_traced_memory()[1] < 4 * PIECE
    finally:
        tracemalloc.stop()
