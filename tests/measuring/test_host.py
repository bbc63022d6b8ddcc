"""How busy a computer was, how full its disk is, and how safe its engine."""

import os
from types import SimpleNamespace

import pytest

from flare.common.errors import InputError
from flare.measuring import host
from flare.measuring.host import (
    MANY,
    SPARE_BYTES,
    SPARE_FILES,
    DiskWatch,
    Room,
    busy_s,
    choose_caches,
    empty_caches,
    is_busy,
    missing_walls,
    wait_until_idle,
)
from flare.measuring.options import Caches

GIB = 2**30


@pytest.fixture
def free(monkeypatch):
    """What is free, as (bytes, files) that a test can change."""
    now = {"bytes": 100 * GIB, "files": 5_000_000}
    monkeypatch.setattr(host, "room", lambda _: Room(now["bytes"], now["files"]))
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
def test_a_disk_that_loses_more_than_allowed_alarms(
    free, tmp_path, taken_bytes, taken_files, is_alarming
):
    """More than ten gibibytes, as was allowed, or than two million files."""
    watch = DiskWatch(tmp_path, 10 * GIB)
    free["bytes"] -= taken_bytes
    free["files"] -= taken_files

    assert watch.is_alarming() == is_alarming


def test_a_disk_that_is_nearly_full(free, tmp_path):
    for left_bytes, left_files, is_low in (
        (SPARE_BYTES, SPARE_FILES, False),
        (SPARE_BYTES - 1, SPARE_FILES, True),
        (SPARE_BYTES, SPARE_FILES - 1, True),
        (SPARE_BYTES, MANY, False),
    ):
        free["bytes"], free["files"] = left_bytes, left_files
        watch = DiskWatch(tmp_path, 10 * GIB)
        assert (watch.is_full, watch.is_alarming()) == (is_low, is_low)


@pytest.mark.parametrize(
    ("taken", "given_back", "is_it"),
    [
        # Half of what was taken has to be free again afterwards,
        ((12 * GIB, 0), (0, 0), False),
        ((12 * GIB, 0), (5 * GIB, 0), False),
        ((12 * GIB, 0), (6 * GIB, 0), True),
        ((0, 3_000_000), (0, 1_500_000), True),
        # of what was short: of bytes, files say nothing.
        ((12 * GIB, 20), (0, 20), False),
    ],
)
def test_room_that_is_given_back_was_taken_by_the_container(
    free, tmp_path, taken, given_back, is_it
):
    watch = DiskWatch(tmp_path, 10 * GIB)
    for kind, number in zip(free, taken, strict=True):
        free[kind] -= number
    assert watch.is_alarming()

    for kind, number in zip(free, given_back, strict=True):
        free[kind] += number

    assert watch.is_given_back() == is_it


def test_a_disk_that_cannot_be_seen():
    watch = DiskWatch(None, 0)

    assert (watch.is_full, watch.is_alarming(), watch.is_given_back()) == (
        *(False, False, False),
    )


TICKS = os.sysconf("SC_CLK_TCK")


def test_busy_seconds_are_the_sum_of_all_but_idle_ones(tmp_path):
    """User, nice, system, idle, waiting, interrupts, stolen; guests are in user.

    Of processors 1 and 10 alone: 2 and 3 s; none if one of them is not known.
    """
    file = tmp_path / "stat"
    lines = [f"cpu  {TICKS} 0 {2 * TICKS} 999 999 0 0 {TICKS} 77 77", "cpu0 9 0 0 9"]
    lines += [f"cpu1 {2 * TICKS} 0 0 9", f"cpu10 0 0 {3 * TICKS} 9"]
    file.write_text("\n".join(lines) + "\n")

    assert busy_s(file) == 4
    assert busy_s(file, cpus=(1, 10)) == 5
    assert busy_s(file, cpus=(1, 2)) is None
    for text in ("", "cpu x y", "nothing"):
        file.write_text(text)
        assert busy_s(file) in (None, 0)
    assert busy_s(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("busy", "looks"),
    [
        # Seconds of work so far, before and behind each pause of two seconds.
        ([0, 2, 5, 5.5, 6, 6.3], 3),
        ([0, 0.3], 1),
        ([0, None], 1),
        # It never is; after five minutes, nobody waits any more.
        ([2 * n for n in range(1000)], 150),
    ],
)
def test_an_idle_engine_is_waited_for(monkeypatch, busy, looks):
    answers, pauses = iter(busy), []
    monkeypatch.setattr(host.time, "sleep", pauses.append)
    monkeypatch.setattr(host.time, "monotonic", lambda: sum(pauses))

    wait_until_idle(SimpleNamespace(busy_s=lambda: next(answers)))

    assert pauses == [2.0] * looks


def test_when_a_computer_is_busy():
    """Half a second, and a tenth of four processors for five seconds."""
    for other_cpu_s, is_it in ((None, False), (2.49, False), (2.51, True)):
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
    with pytest.raises(InputError, match=r"--caches cold: .* cannot be written"):
        empty_caches()

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
    with pytest.raises(InputError, match="--caches cold: the engine is on another"):
        choose_caches(Caches.COLD, is_engine_here=False)


WALLS = {"security": ["name=seccomp,profile=builtin", "name=rootless"], "limits": []}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({"security": ["name=rootless"]}, "filters no system calls"),
        ({"security": ["name=seccomp,profile=unconfined", "name=userns"]},
         "filters no system calls"),
        ({"security": ["name=seccomp,profile=default"]}, "is root of this computer"),
        ({**WALLS, "limits": ["memory", "processes"]}, "cannot limit memory, proc"),
    ],
)  # fmt: skip
def test_each_wall_that_an_engine_lacks_is_told(engine, words):
    (line,) = missing_walls(engine)

    assert words in line
