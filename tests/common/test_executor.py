"""Work is done whatever happens to those who do it."""

import os
import pickle
import signal
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial

import pytest

from flare.common import executor
from flare.common.errors import (
    InputError,
    OutputError,
    ProgramError,
    WorkerError,
)
from flare.common.executor import FAULTS, LocalPool, bulkhead, completed


def double(item):
    return 2 * item


def fatal(item, kills=(3,)):
    """Doubles, too; but some kill whoever tries them, or end as by a closed pipe."""
    if item in kills and item > 12:
        raise OSError(9, "Bad file descriptor")
    if item in kills:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def outcome(done):
    return [(d.item, d.result, d.is_lost) for d in sorted(done, key=lambda d: d.item)]


@pytest.mark.parametrize("workers", [1, 3])
def test_each_item_is_done_once(workers):
    done = completed(LocalPool(workers), double, range(20))

    assert outcome(done) == [(n, 2 * n, False) for n in range(20)]


# More deaths in a row than end the work where workers die of nothing, too.
MOST = pytest.param(range(12), marks=pytest.mark.newest, id="most")


@pytest.mark.parametrize(
    "kills", [pytest.param((3,), id="one"), MOST, pytest.param((13,), id="pipe")]
)
def test_what_kills_its_workers_is_lost_alone(kills):
    done = completed(LocalPool(2), partial(fatal, kills=kills), range(16))

    assert outcome(done) == [
        (n, None if n in kills else 2 * n, n in kills) for n in range(16)
    ]


def divide(items):
    return [fatal(item) for item in items]


def test_what_is_suspected_is_done_in_parts():
    parts = [(0, 1), (2, 3), (4, 5)]

    done = completed(
        LocalPool(2), divide, parts, lambda items: ((item,) for item in items)
    )

    found = {d.item: d.result for d in done}
    assert found.pop((3,)) is None
    assert {n for items in found for n in items} == {0, 1, 2, 4, 5}
    assert all(result == [2 * n for n in items] for items, result in found.items())


def test_no_more_items_are_asked_for_than_are_needed_next():
    """However many there are: what is on its way is all that is in memory."""
    asked = []

    def items():
        for number in range(100):
            asked.append(number)
            yield number

    done = completed(LocalPool(2), double, items())
    next(done)

    assert len(asked) <= 2 * 2 + 1
    assert len(list(done)) == 99


class _Broken(Executor):
    """Does what it is first given, then breaks, and cancels the next."""

    def __init__(self, most=0):
        self.futures, self.most = [], most

    def submit(self, function, *items):
        future = Future()
        self.futures.append(future)
        if len(self.futures) <= self.most:
            future.set_result(function(*items))
        elif len(self.futures) == self.most + 2:
            future.cancel()
        else:
            future.set_exception(BrokenExecutor())
        return future


class BrokenPool:
    """One whose workers die whatever they do, after a first few items."""

    workers, fatal_errors = 2, ()
    started_so_far = 0

    def __init__(self, most=0):
        self.most = most

    @contextmanager
    def started(self, workers):
        self.started_so_far += 1
        yield _Broken(self.most)


def test_what_no_worker_has_begun_is_done_by_the_next():
    done = completed(BrokenPool(most=3), double, range(4))

    assert outcome(done) == [(n, 2 * n, False) for n in range(4)]


def test_an_end_is_made_where_workers_die_whatever_they_do():
    pool = BrokenPool()

    with pytest.raises(WorkerError):
        list(completed(pool, double, range(10_000)))

    assert pool.started_so_far == executor.FRUITLESS


# --- The bulkhead -----------------------------------------------------------------


def _raise(error):
    raise error


def _told(results, error):
    found = []
    with bulkhead(results, "team", found.append):
        raise error
    return found[0]


def test_what_nobody_expected_keeps_its_traceback(tmp_path):
    """Also on the way back from a worker."""
    found = _told(tmp_path, OverflowError("65535"))

    assert isinstance(found, ProgramError)
    assert "OverflowError" in str(found)
    text = (tmp_path / FAULTS / "team.txt").read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "OverflowError: 65535" in text
    assert pickle.loads(pickle.dumps(found)).trace == text


def test_a_name_that_is_no_utf_8_does_not_end_it(tmp_path):
    """Names of files are their authors', and stand in tracebacks."""
    _told(tmp_path, ValueError("a\udcff.nii.gz"))

    assert "\\udcff" in (tmp_path / FAULTS / "team.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device", "a.csv"), OutputError),
        (MemoryError(), WorkerError),
        (InputError("a"), InputError),
    ],
    ids=["disk", "memory", "ours"],
)
def test_what_the_computer_lacks_is_no_fault_of_the_program(tmp_path, error, kind):
    assert isinstance(_told(tmp_path, error), kind)
    assert not (tmp_path / FAULTS).exists()


def test_a_stop_goes_on_even_if_an_error_takes_its_place(tmp_path):
    """What cleans up after Ctrl-C may fail; the program ends all the same."""
    found = []

    with pytest.raises(KeyboardInterrupt):
        _stop_within_a_bulkhead(tmp_path, found)

    assert not found


def _stop_within_a_bulkhead(results, found):
    with bulkhead(results, "team", found.append):
        try:
            raise KeyboardInterrupt
        finally:
            _raise(InputError("while cleaning up"))
