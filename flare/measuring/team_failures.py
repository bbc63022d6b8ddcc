"""Notes what ends the measurement of one team, so that the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flare.common.errors import FlareError, OutputError
from flare.common.text import safe, why
from flare.results.errors import MeasurementError

_log = logging.getLogger(__name__)


class Failures:
    """Teams whose measurement has ended by an error.

    One team does not end the measurement of the others: not even by something that
    nobody has thought of, of which the log gets everything.

    Parameters
    ----------
    tell : callable, optional
        Told of each team once, and of its first error.
    """

    def __init__(self, tell: Callable[[str, FlareError], None] | None = None) -> None:
        self.found: dict[str, FlareError] = {}
        self._tell = tell

    @contextmanager
    def noted(self, team: str) -> Iterator[None]:
        """Go on behind the block, whatever happens in it."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  see above
            obey_stop(error)
            found = _as_error(team, error)
            if team not in self.found:
                self.found[team] = found
                if self._tell:
                    self._tell(team, found)


def obey_stop(error: Exception) -> None:
    """End the program all the same if an error came up while it was being ended.

    What removes a container on the way out may fail, and its error takes the place of
    what has ended the program.

    Raises
    ------
    BaseException
        What has ended it, such as KeyboardInterrupt.
    """
    cause: BaseException | None = error
    while isinstance(cause, Exception | GeneratorExit):
        cause = cause.__context__
    if cause:
        raise cause


def _as_error(team: str, error: Exception) -> FlareError:
    """What has ended a team's measurement, as an error of ours."""
    if isinstance(error, FlareError):
        return error
    if isinstance(error, OSError):
        name = safe(str(error.filename or team))
        return OutputError(f"{name}: it cannot be written ({why(error)})")
    _log.error("Measuring %s has ended by an internal error", team, exc_info=error)
    problem = f"an internal error ({type(error).__name__}); the log has it"
    return MeasurementError(team, problem, "Please report it; the other teams went on.")
