"""Refuses computers that are unlike the one that a team was measured on before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flare.results.calibration import (
    Calibration,
    calibrations_of,
    changes_of,
    find_unlike,
)
from flare.results.errors import MeasurementError
from flare.results.measurement_json import ACCEPT, MeasurementLog


def check_host(
    log: MeasurementLog, now: Calibration, reason: str
) -> dict[str, Any] | None:
    """See that this computer is like the one that a team was measured on first.

    Parameters
    ----------
    log : MeasurementLog
        Of the team.
    now : Calibration
        Of this computer.
    reason : str
        Why it may be unlike; empty if it may not.

    Returns
    -------
    dict or None
        What the record is to say of it; None if it is alike, or the first one.

    Raises
    ------
    MeasurementError
        If it is unlike, and may not be.
    """
    found = list(log.unlike)
    for session in log.sessions:
        usual, _ = calibrations_of(session)
        if usual.integers:
            found += find_unlike(usual, now)
            break
    if not found:
        return None
    if not reason:
        problem = (
            "this computer is unlike the one that the team was measured on:"
            f" {', '.join(found)}"
        )
        remedy = (
            "Measure it there, or all anew with another --output, or accept it:"
            f" {ACCEPT}."
        )
        raise MeasurementError(str(log.file), problem, remedy)
    return {"reason": reason, "found": found}


def check_steady(log: MeasurementLog, reason: str) -> None:
    """See that no computer has changed while a team was measured on it.

    Parameters
    ----------
    log : MeasurementLog
        Of the team. It notes the reason.
    reason : str
        Why one may have changed; empty if it may not.

    Raises
    ------
    MeasurementError
        If one has, and that was not accepted before.
    """
    for session in log.sessions:
        changes = changes_of(session)
        before, known = _accepted(session)
        if set(changes) <= set(known):
            continue
        if not reason:
            problem = (
                "the computer has changed while the team was measured:"
                f" {', '.join(changes)}"
            )
            remedy = f"Measure it anew with another --output, or accept it: {ACCEPT}."
            raise MeasurementError(str(log.file), problem, remedy)
        why = reason if before in ("", reason) else f"{before}; {reason}"
        log.amend(session, unlike={"reason": why, "found": [*known, *changes]})


def _accepted(session: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Why something unlike was accepted in a session, and what it is."""
    unlike = session.get("unlike")
    if not isinstance(unlike, dict) or not isinstance(unlike.get("found"), list):
        return "", []
    return str(unlike.get("reason")), [str(text) for text in unlike["found"]]
