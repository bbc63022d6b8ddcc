"""Says which teams were measured on computers or GPUs that are unlike."""

from __future__ import annotations

from collections.abc import Mapping

from flare.common.text import listing, safe
from flare.results.measurement_json import Measurement


def unlike_notes(teams: Mapping[str, Measurement]) -> tuple[str, ...]:
    """What is not the same of the computers that teams were measured on, in lines.

    Parameters
    ----------
    teams : mapping of str to Measurement
        How each team was measured.
    """
    devices = {
        team: own.made_with["device"]
        for team, own in teams.items()
        if "device" in own.made_with
    }
    notes = [
        f"{safe(team)} was not measured on one steady computer: {safe(text)}"
        for team, found in teams.items()
        for text in found.unlike
    ]
    if len(set(devices.values())) > 1:
        both = listing(f"{team} {device}" for team, device in devices.items())
        notes.insert(0, f"Teams were measured with different device: {both}")
    return tuple(notes)
