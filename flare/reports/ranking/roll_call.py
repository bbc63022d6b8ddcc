"""Tells who took part besides the teams that are ranked."""

from __future__ import annotations

from flare.common.text import listing, printable, safe
from flare.ranking.completeness import RollCall
from flare.ranking.ranking_json import RollCallContent


def interim_text(roll: RollCall) -> str:
    """Why a ranking is not final yet; empty if it is."""
    if not roll.is_interim:
        return ""
    names = sorted({*(found.team for found in roll.waiting), *roll.unfinished})
    are = "is" if len(names) == 1 else "are"
    count = "1 team" if len(names) == 1 else f"{len(names)} teams"
    return (
        f"Interim ranking: {count} {are} not measured to the end"
        f" ({listing(names)}). Go on with flare measure, and rank again."
    )


def roll_lines(roll: RollCall) -> tuple[str, ...]:
    """What organisers should look at, each in a line."""
    lines = [
        f"{safe(f.team)}: {safe(f.archive)} was refused, and the team"
        + (
            " is ranked by what else it has sent"
            if f.team in roll.ranked
            else " is not ranked"
        )
        + f": {printable(f.problem)}"
        for f in roll.refused
    ]
    lines += [
        f"{safe(f.team)}: archive replaced on {safe(f.date)}: {printable(f.reason)}"
        for f in roll.replaced
    ]
    lines += [
        f"{safe(f.team)} has no scores yet, and is not ranked ({f.measured} cases"
        " are measured): go on with flare measure --ground-truth"
        for f in roll.waiting
    ]
    lines += [
        f"{listing(f.teams, last=' and ')} have {f.what}: is one a copy?"
        for f in roll.copies
    ]
    lines += [f"{safe(team)}: {printable(line)}" for team, line in roll.warned]
    if roll.strays:
        lines.append(
            f"Ignored, as there are no results in them: {listing(roll.strays)}"
        )
    return tuple(lines)


def roll_content(roll: RollCall) -> RollCallContent:
    """For ranking.json."""
    return {
        "refused": [
            {
                "team": printable(f.team),
                "file": printable(f.archive),
                "reason": printable(f.problem),
                "is_ranked": f.team in roll.ranked,
            }
            for f in roll.refused
        ],
        "replaced": [
            {
                "team": printable(f.team),
                "date": printable(f.date),
                "reason": printable(f.reason),
            }
            for f in roll.replaced
        ],
        "not_scored_yet": [
            {"team": printable(f.team), "cases_measured": f.measured}
            for f in roll.waiting
        ],
        "not_measured_to_the_end": [printable(team) for team in roll.unfinished],
        "equal_results": [
            {"teams": [printable(team) for team in f.teams], "what": f.what}
            for f in roll.copies
        ],
        "ignored": [printable(name) for name in roll.strays],
    }
