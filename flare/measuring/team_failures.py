"""Notes what ends the measurement of one team, so that the others go on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from flare.common.bulkhead import bulkhead
from flare.common.errors import FlareError


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
