"""Says which teams were measured on computers or GPUs that are unlike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from flare.common.text import listing, safe
from flare.results.calibration import (
    FLAGGED,
    GPU_SETTINGS,
    VERBS,
    Calibration,
    is_beyond,
    ratios,
)
from flare.results.measurement_json import Measurement

KNOWN_BY_DEVICE = "name"
"""Of the GPU: it is compared with its driver, whether it was calibrated or not."""


def unlike_notes(teams: Mapping[str, Measurement]) -> tuple[str, ...]:
    """What is not the same of the computers that teams were measured on, in lines.

    Parameters
    ----------
    teams : mapping of str to Measurement
        How each team was measured.
    """
    calibrated = {
        team: found.calibration for team, found in teams.items() if found.calibration
    }
    return (
        *_unlike_times(calibrated),
        *_unlike_gpus(teams, calibrated),
        *_not_calibrated(teams),
        *(
            f"{safe(team)} was not measured on one steady computer: {safe(text)}"
            for team, found in teams.items()
            for text in found.unlike
        ),
    )


def _unlike_times(teams: Mapping[str, Calibration]) -> Iterator[str]:
    """Kinds of work that take longer than on the computer that is the fastest at it."""
    for kind, bound in FLAGGED.items():
        seconds = {
            team: found.times[kind].smallest
            for team, found in teams.items()
            if kind in found.times
        }
        if not seconds:
            continue
        fastest = min(seconds, key=lambda team: seconds[team])
        slower = [
            (ratio, team)
            for team in seconds
            if is_beyond(bound, ratio := ratios(teams[fastest], teams[team])[kind])
        ]
        if slower:
            found = listing(
                f"{ratio:.2f} times as long on that of {team}"
                for ratio, team in sorted(slower, key=lambda pair: -pair[0])
            )
            yield (
                f"Teams were measured on unlike computers: {kind} {VERBS[kind]}"
                f" {found}, compared with that of {safe(fastest)}"
            )


def _unlike_gpus(
    teams: Mapping[str, Measurement], calibrated: Mapping[str, Calibration]
) -> Iterator[str]:
    """Devices, and settings of GPUs, that are not equal."""
    found = {
        "device": {
            team: own.made_with["device"]
            for team, own in teams.items()
            if "device" in own.made_with
        }
    }
    for name in GPU_SETTINGS:
        if name != KNOWN_BY_DEVICE:
            found[f"{name} of the GPU"] = {
                team: str(value)
                for team, own in calibrated.items()
                if own.gpu and (value := getattr(own.gpu, name)) is not None
            }
    for name, by_team in found.items():
        if len(set(by_team.values())) > 1:
            both = listing(f"{team} {value}" for team, value in by_team.items())
            yield f"Teams were measured with different {name}: {both}"


def _not_calibrated(teams: Mapping[str, Measurement]) -> Iterator[str]:
    """Teams without a calibration, if others have one."""
    with_times: Sequence[str] = [
        team for team, own in teams.items() if own.calibration and own.calibration.times
    ]
    without = [
        team for team, own in teams.items() if own.settings and team not in with_times
    ]
    if with_times and without:
        yield (
            f"Whether the computer of {listing(without)} was like that of the other"
            " teams is not known: it was not calibrated"
        )
