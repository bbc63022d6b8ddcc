"""How busy a computer was, and what its memory still holds of the disk."""

import mmap
import os
from pathlib import Path

import pytest

from flare.common.errors import InputError
from flare.measuring import host
from flare.measuring.host import (
    busy_s,
    choose_caches,
    empty_caches,
    is_busy,
)
from flare.measuring.options import Caches

TICKS = os.sysconf("SC_CLK_TCK")

SIZE = 8 * 2**20
"""Of a file that is put into the memory."""


def test_busy_seconds_by_hand(tmp_path):
    """User, nice, system, idle, waiting, interrupts, stolen; guests are in user."""
    file = tmp_path / "stat"
    file.write_text(f"cpu  {TICKS} 0 {2 * TICKS} 999 999 0 0 {TICKS} 77 77\ncpu0 1 1\n")

    assert busy_s(file) == 4


def test_busy_seconds_of_some_processors_alone(tmp_path):
    """2 s of processor 1 and 3 s of processor 10; none if one of them is not known."""
    lines = ["cpu  900 0 0 9", "cpu0 9 0 0 9", f"cpu1 {2 * TICKS} 0 0 9"]
    file = tmp_path / "stat"
    file.write_text("\n".join([*lines, f"cpu10 0 0 {3 * TICKS} 9"]) + "\n")

    assert busy_s(file, cpus=(1, 10)) == 5
    assert busy_s(file, cpus=(1, 2)) is None


@pytest.mark.parametrize("text", ["", "cpu x y", "nothing"])
def test_an_unknown_load_is_none(tmp_path, text):
    file = tmp_path / "stat"
    file.write_text(text)

    assert busy_s(file) in (None, 0)
    assert busy_s(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("other_cpu_s", "is_it"), [(None, False), (2.49, False), (2.51, True)]
)
def test_when_a_computer_is_busy(other_cpu_s, is_it):
    """Half a second, and a tenth of four processors for five seconds."""
    assert is_busy(other_cpu_s, 5.0, 4) == is_it


@pytest.mark.parametrize(
    ("known", "cpus"),
    [({0, 1}, ""), ({0}, ""), ({0, 1, 2}, "1,2"), ({4, 6, 9, 2}, "4,6,9")],
)
def test_a_processor_is_left_to_the_sampler(monkeypatch, known, cpus):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: known)

    assert host.default_cpus() == cpus


def test_caches_are_cold_where_that_is_possible(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "CACHES", tmp_path / "absent")
    assert choose_caches(None, is_engine_here=True) is Caches.WARM
    monkeypatch.setattr(host, "CACHES", tmp_path)
    with pytest.raises(InputError) as caught:
        empty_caches()
    assert str(caught.value) == (
        f"--caches cold: {tmp_path} cannot be written (is a directory). Run it as root,"
        " or with --caches warm. [H01]"
    )

    file = tmp_path / "drop_caches"
    file.write_text("")
    monkeypatch.setattr(host, "CACHES", file)
    assert choose_caches(None, is_engine_here=True) is Caches.COLD
    assert choose_caches(None, is_engine_here=False) is Caches.WARM
    assert choose_caches(Caches.WARM, is_engine_here=True) is Caches.WARM
    assert choose_caches(Caches.COLD, is_engine_here=True) is Caches.COLD
    empty_caches()
    assert file.read_text() == "3"


def test_the_caches_of_another_computer():
    with pytest.raises(InputError) as caught:
        choose_caches(Caches.COLD, is_engine_here=False)
    assert str(caught.value) == (
        "--caches cold: the engine is on another computer, or hides its files. Run it"
        " there, or with --caches warm. [H01]"
    )


@pytest.mark.slow  # whatever else runs here has to read its files again
@pytest.mark.skipif(
    not os.access(host.CACHES, os.W_OK), reason="only root may empty the caches"
)
@pytest.mark.usefixtures("page_cache")
def test_a_file_is_really_gone_from_the_memory():
    """As the kernel counts it: of a file that was read, hardly anything is left."""
    file = Path(__file__).parent / ".caches-test"  # /tmp may be a file system in memory
    try:
        file.write_bytes(bytes(SIZE))
        with file.open("rb") as content:
            before = resident_pages(content)
            empty_caches()
            after = resident_pages(content)
    finally:
        file.unlink()

    assert before == SIZE // mmap.PAGESIZE
    assert after < before / 10


def resident_pages(content):
    """Pages of a file that are in memory, by mincore(2)."""
    import ctypes

    size = os.fstat(content.fileno()).st_size
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    address = library.mmap(
        None, ctypes.c_size_t(size), 1, 1, content.fileno(), ctypes.c_long(0)
    )
    vector = (ctypes.c_ubyte * (size // mmap.PAGESIZE))()
    assert library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector) == 0
    library.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    return sum(page & 1 for page in vector)
