"""Has work go on where a part of it fails: beside a bulkhead, or in workers that die.

Who is to blame for an error is said by its class, see `flare.common.errors`; what
follows from that is one table, docs/developers/blame.md.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from flare.common.environment import end_with
from flare.common.errors import (
    FlareError,
    ProgramError,
    WorkerError,
    as_flare_error,
    obey_stop,
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
    """Go on behind the block, whatever error ends it; a stop of the program still does.

    Parameters
    ----------
    results : Path
        Folder that keeps the traceback of an error that nobody expected.
    name : str
        The team or submission that the block works on.
    tell : callable
        Gets the error, as one of ours.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  it ends this team alone
        obey_stop(error)
        flare_error = as_flare_error(error)
        tell(flare_error)
        keep_trace(results, name, flare_error)


def keep_trace(results: Path, name: str, error: FlareError) -> None:
    """Keep the traceback of an error, if it has one, for the developers.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    if isinstance(error, ProgramError) and error.trace:
        file = results / FAULTS / f"{name}.txt"
        # A name of a file in it may be no UTF-8.
        write_whole(file, error.trace.encode("utf-8", "backslashreplace"))
        _log.error("%s: %s Its traceback is in %s", safe(name), error, safe(file))


# --- Workers ----------------------------------------------------------------------

DEATHS = 3
"""How often workers may die of a piece of work before it is done alone, and then before
it is given up."""

FRUITLESS = 30
"""After this many pools in a row whose workers die of nothing, all work ends."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Protocol):
    """Gives executors, whichever workers they have."""

    @property
    def workers(self) -> int:
        """How many there are."""

    @property
    def killed(self) -> tuple[type[Exception], ...]:
        """The errors of a future whose work has killed several workers, one by one."""

    def started(self, workers: int) -> AbstractContextManager[Executor]:
        """An executor with that many workers; another one when it has broken."""


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
    single: Callable[[Item], Iterable[Item]] = lambda item: (item,),
) -> Iterator[Done[Item, Result]]:
    """Apply a function to items in workers; the results come in any order.

    No more items are asked for than are needed next. A worker that dies takes the
    executor with it: a new one goes on. An item that was on its way when this happened
    `DEATHS` times is suspected, and done alone at the end, in parts.

    Parameters
    ----------
    pool : Pool
        Gives the workers.
    function : callable
        The work; workers import it by its name.
    items : iterable
        The pieces of work.
    single : callable, optional
        Divides an item that is suspected.

    Raises
    ------
    WorkerError
        If workers die and die, whatever they do.
    """
    suspects: list[Item] = []
    for done in _Phase(pool, function, iter(items), pool.workers).run():
        if done.is_lost:
            suspects.append(done.item)
        else:
            yield done
    if suspects:
        parts = chain.from_iterable(map(single, suspects))
        yield from _Phase(pool, function, iter(parts), 1).run()


class _Phase(Generic[Item, Result]):
    """Work that executors do, one after the other, with this many workers each."""

    def __init__(
        self,
        pool: Pool,
        function: Callable[[Item], Result],
        items: Iterator[Item],
        workers: int,
    ) -> None:
        self._pool, self._function, self._workers = pool, function, workers
        self._items = items
        self._queue: deque[Item] = deque()  # items that come before those
        self._running: dict[Future[Result], Item] = {}
        self._deaths: Counter[int] = Counter()  # by the identity of unfinished items

    def run(self) -> Iterator[Done[Item, Result]]:
        """Go on until all is done, or nothing is done any more."""
        fruitless = 0
        while fruitless < FRUITLESS:
            self._running = {}
            with self._pool.started(self._workers) as executor:
                try:
                    # It breaks if workers die of nothing, too.
                    executor.submit(int).result()
                    fruitless = 0
                    yield from self._use(executor)
                    return
                except BrokenExecutor as error:
                    _log.info(
                        "A worker process ended early (%r); starting others.", error
                    )
            fruitless += 1
            yield from self._count_deaths()
        raise WorkerError(
            f"{FRUITLESS} worker processes were killed, one after the other"
        )

    def _use(self, executor: Executor) -> Iterator[Done[Item, Result]]:
        """Do work until none is left; raise BrokenExecutor if a worker dies."""
        while self._fill(executor):
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error
                item = self._running.pop(future)
                self._deaths.pop(id(item), None)
                yield _done(item, future, self._pool.killed)

    def _fill(self, executor: Executor) -> bool:
        """Let each worker have its next item beside it; whether there is any work."""
        most_running = 1 if self._workers == 1 else 2 * self._workers
        while len(self._running) < most_running:
            if not self._queue:
                next_item = next(self._items, None)
                if next_item is None:
                    break
                self._queue.append(next_item)
            # An item leaves the queue when it is submitted: a broken executor raises
            # before that.
            item = self._queue[0]
            self._running[executor.submit(self._function, item)] = item
            self._queue.popleft()
        return bool(self._running)

    def _count_deaths(self) -> Iterator[Done[Item, Result]]:
        """Do again what was on its way, but for what workers have died of too often."""
        for future, item in self._running.items():
            error = future.exception()
            if not isinstance(error, BrokenExecutor):
                yield _done(item, future, self._pool.killed)
                continue
            self._deaths[id(item)] += 1
            if self._deaths[id(item)] < DEATHS:
                self._queue.append(item)
            else:
                del self._deaths[id(item)]
                yield Done(item=item, error=error, is_lost=True)


def _done(
    item: Item, future: Future[Result], killed: tuple[type[Exception], ...]
) -> Done[Item, Result]:
    """The outcome of a future; it is lost if it raises an error of `killed`."""
    error = future.exception()
    if error is None:
        return Done(item=item, result=future.result())
    is_lost = isinstance(error, (MemoryError, *killed))
    return Done(item=item, error=error, is_lost=is_lost)


# --- On this computer -------------------------------------------------------------


class _SameProcess(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Do the work, whose result the future has at once."""
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
    killed: tuple[type[Exception], ...] = ()

    @contextmanager
    def started(self, workers: int) -> Iterator[Executor]:
        """Start worker processes that end with us, whatever ends us."""
        if self.workers == 1:
            yield _SameProcess()
            return
        # Not at the top: with one worker, an evaluation starts sooner without them.
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # Forked workers cost no second start-up, and need no helper process, which
        # could write to stderr after us. All are forked by the first submit, before
        # the executor has any thread.
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
    """Fork workers so that none misses a signal, which waits until they have begun.

    Python forgets a signal that comes while a child is set up. When a worker dies, the
    pool ends the others by SIGTERM, and waits for them: for ever, if one has missed it.
    One that Ctrl-C reaches before it has begun would write a traceback.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin_worker(parent: int) -> None:
    """Leave signals to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    end_with(parent)
