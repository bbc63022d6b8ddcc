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
        Of the team or submission that the block works on.
    tell : callable
        Told of the error, as one of ours.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  it ends this team alone
        obey_stop(error)
        found = as_flare_error(error)
        tell(found)
        keep_trace(results, name, found)


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
"""So many times workers may die of a piece of work before it is done alone, and then
before it is given up."""

FRUITLESS = 30
"""So many pools in a row whose workers die of nothing at all end the whole work."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Protocol):
    """Gives executors, whichever workers they have."""

    @property
    def workers(self) -> int:
        """How many there are."""

    @property
    def killed(self) -> tuple[type[Exception], ...]:
        """What a future raises of which several workers have died, one by one."""

    def started(self, workers: int) -> AbstractContextManager[Executor]:
        """An executor with so many workers; another one when it has broken."""


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
    executor with it: a new one goes on. Whatever was on its way when this happened
    `DEATHS` times is suspected, and done alone at the end, in parts.

    Parameters
    ----------
    pool : Pool
        Of workers.
    function : callable
        What is done; known to the workers by its name.
    items : iterable
        What it is done to.
    single : callable, optional
        Divides an item that is suspected.

    Raises
    ------
    WorkerError
        If workers die and die, whatever they do.
    """
    suspects: list[Item] = []
    for done in _phase(pool, function, iter(items), pool.workers):
        if done.is_lost:
            suspects.append(done.item)
        else:
            yield done
    if suspects:
        alone = chain.from_iterable(map(single, suspects))
        yield from _phase(pool, function, iter(alone), 1)


def _phase(  # noqa: C901
    pool: Pool,
    function: Callable[[Item], Result],
    items: Iterator[Item],
    workers: int,
) -> Iterator[Done[Item, Result]]:
    """Do work with executors of so many workers, one after the other."""
    again: deque[Item] = deque()
    deaths: Counter[int] = Counter()  # by the identity of items that are not done
    fruitless = 0
    while fruitless < FRUITLESS:
        running: dict[Future[Result], Item] = {}
        with pool.started(workers) as executor:
            try:
                executor.submit(int).result()  # breaks if workers die of nothing, too
                fruitless = 0
                while _fill(executor, function, running, again, items, workers):
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        error = future.exception()
                        if isinstance(error, BrokenExecutor):
                            raise error
                        item = running.pop(future)
                        deaths.pop(id(item), None)
                        yield _done(item, future, pool.killed)
                return
            except BrokenExecutor as error:
                _log.info("A worker process ended early (%r); starting others.", error)
        fruitless += 1
        for future, item in running.items():
            if not isinstance(future.exception(), BrokenExecutor):
                yield _done(item, future, pool.killed)
                continue
            deaths[id(item)] += 1
            if deaths[id(item)] < DEATHS:
                again.append(item)
            else:
                del deaths[id(item)]
                yield Done(item=item, error=future.exception(), is_lost=True)
    raise WorkerError(f"{FRUITLESS} worker processes were killed, one after the other")


def _fill(
    executor: Executor,
    function: Callable[[Item], Result],
    running: dict[Future[Result], Item],
    again: deque[Item],
    items: Iterator[Item],
    workers: int,
) -> bool:
    """Let each worker have its next item beside it; whether there is any work."""
    ahead = 1 if workers == 1 else 2 * workers
    while len(running) < ahead:
        if not again:
            again.extend(item for item in (next(items, None),) if item is not None)
        if not again:
            break
        running[executor.submit(function, again[0])] = again[0]
        again.popleft()
    return bool(running)


def _done(
    item: Item, future: Future[Result], killed: tuple[type[Exception], ...]
) -> Done[Item, Result]:
    """The outcome of a future that is done."""
    error = future.exception()
    if error is None:
        return Done(item=item, result=future.result())
    is_lost = isinstance(error, (MemoryError, *killed))
    return Done(item=item, error=error, is_lost=is_lost)


# --- On this computer -------------------------------------------------------------


class _Here(Executor):
    """Does the work at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        """Do it."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **named))
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
            yield _Here()
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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(parent: int) -> None:
    """Leave signals to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    end_with(parent)
