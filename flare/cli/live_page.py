"""Keeps a page of a measurement up to date, and never stands in its way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from flare.cli.live_run import LiveRun
from flare.common.errors import FlareError, OutputError
from flare.common.files import write_whole
from flare.common.text import safe
from flare.measuring.listener import Listener
from flare.measuring.team import Setup, TeamPlan
from flare.reports.pages.running import State
from flare.reports.pages.running_page import running_html
from flare.results.efficiency_csv import CaseRecord

_log = logging.getLogger(__name__)


class LivePage(Listener):
    """A page that is written anew when something has happened, until the block ends.

    It is written when a case begins, which is when the one before has ended, and when
    a team is done. What goes wrong with it is told once, and never ends a measurement.

    Parameters
    ----------
    file : Path
        The page.
    run : LiveRun
        Keeps what is shown.
    """

    def __init__(self, file: Path, run: LiveRun) -> None:
        self._file, self._run = file, run
        self._has_warned = False

    def __enter__(self) -> Self:
        """Write the page for the first time."""
        self._write()
        if not self._has_warned:
            _log.info("%s shows how it goes on: open it in a browser", safe(self._file))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the page for the last time."""
        if error is None:
            state, problem = State.FINISHED, ""
        elif isinstance(error, FlareError):
            state, problem = State.BROKEN, str(error)
        elif isinstance(error, Exception):
            state = State.BROKEN
            problem = f"An internal error ({type(error).__name__}); the log has it."
        else:
            state, problem = State.STOPPED, ""
        with self._never_failing():
            self._run.end(state, problem)
        self._write()

    def on_plan(self, setup: Setup, plans: Sequence[TeamPlan]) -> None:
        """Show what is to be done."""
        with self._never_failing():
            self._run.on_plan(setup, plans)
        self._write()

    def on_begin(self, team: str, case: str) -> None:
        """Show what is run next, and what came of the case before."""
        with self._never_failing():
            self._run.on_begin(team, case)
        self._write()

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Keep what came of a case, for when the next one begins."""
        with self._never_failing():
            self._run.on_run(team, record, number, total)

    def on_team(self, team: str) -> None:
        """Show that a team is done, and scored now."""
        with self._never_failing():
            self._run.on_team(team)
        self._write()

    def on_failure(self, team: str, error: FlareError) -> None:
        """Show what has ended the measurement of a team."""
        with self._never_failing():
            self._run.on_failure(team, error)
        self._write()

    def on_unscored(self, team: str, error: FlareError) -> None:
        """Show why a team was not scored."""
        with self._never_failing():
            self._run.on_unscored(team, error)
        self._write()

    def _write(self) -> None:
        """Write the page, if that can be."""
        with self._never_failing():
            write_whole(self._file, running_html(self._run.seen()))

    @contextmanager
    def _never_failing(self) -> Iterator[None]:
        """Go on behind the block, whatever happens in it; tell it the first time."""
        try:
            yield
        except OutputError as error:
            self._warn(f"The page is not up to date: {error}")
        except Exception as error:  # noqa: BLE001  a page is no reason to fail
            name = type(error).__name__
            self._warn(f"The page is not up to date ({name})", error)

    def _warn(self, text: str, error: Exception | None = None) -> None:
        """Tell something, but only once: measuring goes on for days."""
        if not self._has_warned:
            _log.warning("%s; measuring goes on", text, exc_info=error)
        self._has_warned = True
