"""A disk that is taken: when that is alarming, and who it was."""

import pytest

from flare.measuring import host
from flare.measuring.host import SPARE_BYTES, SPARE_FILES, DiskWatch, Room

GIB = 2**30


@pytest.fixture
def free(monkeypatch):
    """What is free, as (bytes, files) that a test can change."""
    now = {"bytes": 100 * GIB, "files": 5_000_000}
    monkeypatch.setattr(
        host,
        "room",
        lambda _: Room(free_bytes=now["bytes"], free_files=now["files"]),
    )
    return now


@pytest.mark.parametrize(
    ("taken_bytes", "taken_files", "is_alarming"),
    [
        (0, 0, False),
        (10 * GIB, 0, False),
        (10 * GIB + 1, 0, True),
        (-(10**12), 0, False),
        (0, 2_000_000, False),
        (0, 2_000_001, True),
    ],
)
def test_what_is_alarming(free, tmp_path, taken_bytes, taken_files, is_alarming):
    """More than ten gibibytes, as was allowed, or than two million files."""
    watch = DiskWatch(tmp_path, 10 * GIB)
    free["bytes"] -= taken_bytes
    free["files"] -= taken_files

    assert watch.is_alarming() == is_alarming


@pytest.mark.parametrize(
    ("left_bytes", "left_files", "is_low"),
    [
        (SPARE_BYTES, SPARE_FILES, False),
        (SPARE_BYTES - 1, SPARE_FILES, True),
        (SPARE_BYTES, SPARE_FILES - 1, True),
        (SPARE_BYTES, None, False),
    ],
)
def test_a_disk_that_is_nearly_full(free, tmp_path, left_bytes, left_files, is_low):
    free["bytes"], free["files"] = left_bytes, left_files

    watch = DiskWatch(tmp_path, 10 * GIB)

    assert watch.is_full == is_low
    assert watch.is_alarming() == is_low


@pytest.mark.parametrize(
    ("given_back", "is_it"), [(0, False), (5 * GIB, False), (6 * GIB, True)]
)
def test_whose_doing_it_was(free, tmp_path, given_back, is_it):
    """Twelve gibibytes were taken: half of them have to be free again afterwards."""
    watch = DiskWatch(tmp_path, 10 * GIB)
    free["bytes"] -= 12 * GIB
    assert watch.is_alarming()

    free["bytes"] += given_back

    assert watch.is_given_back() == is_it


def test_files_count_as_bytes_do(free, tmp_path):
    watch = DiskWatch(tmp_path, 10 * GIB)
    free["files"] -= 3_000_000
    assert watch.is_alarming()

    free["files"] += 1_500_000

    assert watch.is_given_back()


def test_what_was_not_short_clears_nobody(free, tmp_path):
    """Bytes were taken by something else: that files are free again says nothing."""
    watch = DiskWatch(tmp_path, 10 * GIB)
    free["bytes"] -= 12 * GIB
    free["files"] -= 20
    assert watch.is_alarming()

    free["files"] += 20

    assert not watch.is_given_back()


def test_a_disk_that_cannot_be_seen():
    watch = DiskWatch(None, 0)

    assert (watch.is_full, watch.is_alarming(), watch.is_given_back()) == (
        *(False, False, False),
    )


def test_the_real_disk(tmp_path):
    found = host.room(tmp_path)

    assert found.free_bytes > 0
