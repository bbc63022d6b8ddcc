"""Says what a challenge asks for, in a few lines for a person."""

from __future__ import annotations

from flare.challenge.digest import further_rules
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels

_UNKNOWN_TEXT = {
    UnknownLabels.REFUSE: "the file is refused",
    UnknownLabels.IGNORE: "they count as background",
    UnknownLabels.ZERO: "the case scores 0",
}

_GRID_TEXT = {
    GridComparison.STRICT: "size, and in position within ",
    GridComparison.SIZE: "size; a warning tells of positions off by more than ",
}


def challenge_summary(challenge: Challenge) -> str:
    """Say what a challenge asks for, in a few lines for a person."""
    organs = sorted(challenge.organs, key=lambda organ: organ.label)
    width = max(len(organ.name) for organ in organs)
    lines = [f"{challenge.name} ({challenge.key})", ""]
    for organ in organs:
        mean = "" if organ.in_mean else ", not in the means"
        tolerance = f"tolerance {organ.tolerance_mm:g} mm{mean}"
        lines.append(f"{organ.label:>5}  {organ.name.ljust(width)}  {tolerance}")
    absent, zs = challenge.absent_organs, challenge.z_range
    unknown, grid = challenge.unknown_labels, challenge.grid
    lines += [
        "",
        f"An organ in neither file scores {absent.in_both:g}, only in the prediction"
        f" {absent.in_reference:g}, only in the reference {absent.in_prediction:g}.",
        f"Other labels in references: {_UNKNOWN_TEXT[unknown.reference]};"
        f" in predictions: {_UNKNOWN_TEXT[unknown.prediction]}.",
        f"Grids must agree in {_GRID_TEXT[grid.compare]}{grid.tolerance_mm:g} mm.",
    ]
    if zs.organs:
        lines.append(
            f"Scored only where the reference has them, top slice {zs.top_slice.value}:"
            f" {', '.join(zs.organs)}."
        )
    if challenge.smallest_dsc_for_nsd:
        lines.append(f"NSD is 0 where DSC is below {challenge.smallest_dsc_for_nsd:g}.")
    if challenge.decimals is not None:
        lines.append(f"Values are rounded to {challenge.decimals} decimals.")
    if challenge.board.decimals is not None:
        decimals = challenge.board.decimals
        lines.append(f"For the board, numbers are rounded to {decimals} decimals.")
    counted = [organ.name for organ in organs if organ.free_cases]
    if counted:
        names = ", ".join(counted)
        lines.append(f"It is told how many cases without {names} are left empty.")
    lines += _npz_lines(challenge)
    further = further_rules(challenge).items()
    lines += [
        f"{key.replace('_', ' ').capitalize()}: {value}." for key, value in further
    ]
    if challenge.ranking:
        rules = (f"{rule.metric} ({rule.better.value})" for rule in challenge.ranking)
        lines.append(f"Ranked by {', '.join(rules)}.")
    if challenge.efficiency_gate_dsc:
        gate = f"{challenge.efficiency_gate_dsc:g}"
        lines.append(f"Efficiency counts only where DSC is at least {gate}.")
    return "\n".join([*lines, *_provenance_lines(challenge)])


def _npz_lines(challenge: Challenge) -> list[str]:
    """What .npz files hold, if they are read."""
    npz = challenge.npz
    if not npz.prediction:
        return []
    return [
        f"Label maps may be .npz files: {npz.prediction} in predictions,"
        f" {npz.reference} in references, spacing in the order {npz.spacing.value}."
    ]


def _provenance_lines(challenge: Challenge) -> list[str]:
    """From whom rules are known that the organisers have not confirmed."""
    lines = []
    if challenge.reported:
        lines += ["", f"{challenge.rules_note[0].upper()}{challenge.rules_note[1:]}:"]
    for entry in challenge.reported:
        lines.append(f"  {entry.rule} ({entry.teams_text}):")
        lines += [f"    {link}" for link in entry.source]
    if challenge.not_known:
        lines += ["", "Not known:", *(f"  {text}" for text in challenge.not_known)]
    return lines
