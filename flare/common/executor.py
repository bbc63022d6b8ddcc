"""Keeps the other work going when a part of it fails, or a worker process dies.

The class of an error says who is to blame for it, see `flare.common.errors`; the table
in docs/developers/blame.md says what follows from that.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from errno import EBADF, EPIPE
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from flare.common.environment import end_with
from flare.common.errors import (
    FlareError,
    ProgramError,
    WorkerError,
    as_flare_error,
    raise_stop,
)
from flare.common.files import write_whole
from flare.common.text import safe

_log = logging.getLogger(__name__)

FAULTS = ".faults"
"""Folder in RESULTS for tracebacks of what nobody expected, a file for each team."""


@contextmanager
def bulkhead(
    results: Path, name: str, tell: Callable[[FlareError], object]
) -> Iterator[None]:
    """Report an error that ends the block, and go on; a stop still ends the program.

    `tell` is called with the error. The traceback of an error that nobody expected is
    kept in the folder of results, under the name of the team or submission.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  it ends this team alone
        raise_stop(error)
        flare_error = as_flare_error(error)
        tell(flare_error)
        keep_trace(results, name, flare_error)


def keep_trace(results: Path, name: str, error: FlareError) -> None:
    """Keep the traceback of an error, if it has one, for the developers."""
    if isinstance(error, ProgramError) and error.trace:
        file = results / FAULTS / f"{name}.txt"
        # The traceback may have the name of a file, which need not be valid UTF-8.
        write_whole(file, error.trace.encode("utf-8", "backslashreplace"))
        _log.error("%s: %s Its traceback is in %s", safe(name), error, safe(file))


# --- Workers ----------------------------------------------------------------------

DEATHS = 3
"""An item is suspected when it was in progress at this many deaths of workers: it is
then done alone, and given up after as many deaths again."""

FRUITLESS = 30
"""All work ends when this many executors in a row have broken before a worker has done
anything."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Protocol):
    """A source of executors, which hides what kind of workers these have."""

    @property
    def workers(self) -> int:
        """The number of workers."""

    @property
    def fatal_errors(self) -> tuple[type[Exception], ...]:
        """The errors that tell that an item has killed one worker after the other."""

    def started(self, workers: int) -> AbstractContextManager[Executor]:
        """A new executor with that many workers, which is shut down at the end."""


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """The outcome of a piece of work: a result, or an error."""

    item: Item
    result: Result | None = None
    error: BaseException | None = None
    is_lost: bool = False
    """Whether workers have died of it, or ran out of memory."""


def completed(
    pool: Pool,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    divide: Callable[[Item], Iterable[Item]] = lambda item: (item,),
) -> Generator[Done[Item, Result], None, None]:
    """Apply a function to items in workers; the results come in any order.

    Items are only asked for shortly before they are done. A worker that dies breaks its
    executor, and a new one goes on. An item that was in progress when this happened
    `DEATHS` times is suspected: `divide` makes parts of it, which are done at the end,
    one at a time, each asked for when those before it are done. Workers import the
    function by its name. A WorkerError is raised if workers keep dying before they have
    done anything.
    """
    suspects: list[Item] = []
    for done in _Phase(pool, function, iter(items), pool.workers).run():
        if done.is_lost:
            suspects.append(done.item)
        else:
            yield done
    if suspects:
        parts = chain.from_iterable(map(divide, suspects))
        yield from _Phase(pool, function, parts, 1).run()


class _Phase(Generic[Item, Result]):
    """Work on items by one executor after the other, until all are done."""

    def __init__(
        self,
        pool: Pool,
        function: Callable[[Item], Result],
        items: Iterator[Item],
        workers: int,
    ) -> None:
        self._pool, self._function, self._workers = pool, function, workers
        self._items = items
        self._queue: deque[Item] = deque()  # these are done before further `_items`
        self._running: dict[Future[Result], Item] = {}
        self._deaths: Counter[int] = Counter()  # by the identity of unfinished items

    def run(self) -> Iterator[Done[Item, Result]]:
        """Go on until all is done, or `FRUITLESS` executors in a row have broken."""
        breaks = 0
        while breaks < FRUITLESS:
            self._running = {}
            with self._pool.started(self._workers) as executor:
                try:
                    # If this trivial task is done, workers can run here: those that
                    # die later die of their items.
                    executor.submit(int).result()
                    breaks = 0
                    yield from self._use(executor)
                    return
                except BrokenExecutor as error:
                    _log.info(
                        "A worker process ended early (%r); starting others.", error
                    )
            breaks += 1
            yield from self._recover()
        raise WorkerError(
            f"{FRUITLESS} worker processes were killed, one after the other"
        )

    def _use(self, executor: Executor) -> Iterator[Done[Item, Result]]:
        """Do work until none is left; raise BrokenExecutor if a worker dies."""
        while self._fill(executor):
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if _is_broken(error):
                    raise BrokenExecutor from error
                item = self._running.pop(future)
                self._deaths.pop(id(item), None)
                yield _done(item, future, self._pool.fatal_errors)

    def _fill(self, executor: Executor) -> bool:
        """Submit items for all workers; tell whether anything is running.

        Each worker has a second item ready, so that it never waits. A single worker has
        none: if it dies, the item that it works on is to blame.
        """
        most_running = 1 if self._workers == 1 else 2 * self._workers
        while len(self._running) < most_running:
            if not self._queue:
                next_item = next(self._items, None)
                if next_item is None:
                    break
                self._queue.append(next_item)
            # The item stays in the queue if a broken executor does not take it.
            item = self._queue[0]
            future = executor.submit(self._function, item)
            self._queue.popleft()
            self._running[future] = item
        return bool(self._running)

    def _recover(self) -> Iterator[Done[Item, Result]]:
        """Queue again the items that a broken executor has not done.

        It yields the outcomes of the others: items that it has done, and items that
        were in progress at too many deaths.
        """
        for future, item in self._running.items():
            if future.cancelled():  # before any worker had it
                self._queue.append(item)
                continue
            error = future.exception()
            if not _is_broken(error):
                yield _done(item, future, self._pool.fatal_errors)
                continue
            self._deaths[id(item)] += 1
            if self._deaths[id(item)] < DEATHS:
                self._queue.append(item)
            else:
                del self._deaths[id(item)]
                yield Done(item=item, error=error, is_lost=True)


def _is_broken(error: BaseException | None) -> bool:
    """Whether a worker is lost: an executor tells it also by a pipe that it closed."""
    number = error.errno if isinstance(error, OSError) else None
    return isinstance(error, BrokenExecutor) or number in (EBADF, EPIPE)


def _done(
    item: Item, future: Future[Result], fatal_errors: tuple[type[Exception], ...]
) -> Done[Item, Result]:
    """The outcome of a future, which is lost if its error is a fatal one."""
    error = future.exception()
    if error is None:
        return Done(item=item, result=future.result())
    is_lost = isinstance(error, (MemoryError, *fatal_errors))
    return Done(item=item, error=error, is_lost=is_lost)


# --- On this computer -------------------------------------------------------------


class _SameProcess(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do the work, and return a future that has the result."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  raised where the result is asked for
            future.set_exception(error)
        return future


@dataclass(frozen=True, slots=True)
class LocalPool:
    """Processes of this computer, reached by pipes; with one worker, this process."""

    workers: int
    fatal_errors: tuple[type[Exception], ...] = ()

    @contextmanager
    def started(self, workers: int) -> Iterator[Executor]:
        """Start worker processes, which end when this process ends."""
        # The pool's number decides, not that of this executor: a pool of several
        # workers does suspects, which may kill a worker, in another process, too.
        if self.workers == 1:
            yield _SameProcess()
            return
        # Not at the top: with one worker, an evaluation starts sooner without them.
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # Forked workers start at once, and without a helper process, which could write
        # to stderr after this program has ended. The first submit forks all of them,
        # before the executor starts a thread: a fork beside threads may hang.
        is_linux = sys.platform == "linux"
        executor = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("fork" if is_linux else "spawn"),
            initializer=_begin_worker,
            initargs=(os.getpid(),),
        )
        try:
            with _signals_wait():
                executor.submit(int)
            yield executor
        finally:
            executor.shutdown(cancel_futures=True)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Hold signals back in the block, in which workers are forked.

    The workers get the signals when they have begun: Python forgets a signal that comes
    while a child process is being set up. When a worker dies, the executor ends its
    other workers by SIGTERM, and would wait for ever for one that has missed it. A
    worker that Ctrl-C reaches too early would write a traceback.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin_worker(parent_id: int) -> None:
    """Leave Ctrl-C to the parent process, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    end_with(parent_id)
