"""Who hears what happens in a measurement, and what ends that of one team."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from flare.common.bulkhead import bulkhead
from flare.common.errors import FlareError
from flare.measuring.team import TeamPlan
from flare.results.efficiency_csv import CaseRecord

_log = logging.getLogger(__name__)


class Listener:
    """Is told what happens, always between containers; this one does nothing with it.

    What it does takes nobody's running time. It must not raise anything.
    """

    def on_run(self, team: str, record: CaseRecord, number: int, total: int) -> None:
        """Hear of a case that was run.

        Parameters
        ----------
        team : str
            Whose case it is.
        record : CaseRecord
            Its outcome.
        number, total : int
            Which one it was, of how many that are run.
        """

    def on_team(self, team: str) -> None:
        """Hear of a team that is measured to the end."""

    def on_failure(self, team: str, error: FlareError) -> None:
        """Hear of a team whose measurement could not begin or go on."""


class Failures:
    """Teams whose measurement has ended by an error, see `flare.common.bulkhead`.

    Parameters
    ----------
    results : Path
        The folder of all teams.
    tell : callable, optional
        Told of each team once, and of its first error.
    """

    def __init__(
        self, results: Path, tell: Callable[[str, FlareError], None] | None = None
    ) -> None:
        self.found: dict[str, FlareError] = {}
        self._results, self._tell = results, tell

    def noted(self, team: str) -> AbstractContextManager[None]:
        """Go on behind the block, whatever error ends it."""
        return bulkhead(self._results, team, lambda error: self._note(team, error))

    def _note(self, team: str, error: FlareError) -> None:
        """Note the first error of a team."""
        if team not in self.found:
            self.found[team] = error
            if self._tell:
                self._tell(team, error)


def cases_to_run(plans: Sequence[TeamPlan]) -> int:
    """How many cases are to be run; those that are done already are told."""
    total = sum(len(plan.todo) for plan in plans)
    before = sum(len(plan.setup.job.cases) for plan in plans) - total
    if before:
        going_on = ", going on" if total else ""
        _log.info("%d of %d cases are done%s", before, before + total, going_on)
    return total
