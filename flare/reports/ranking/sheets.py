"""Makes a team's own sheet: its values and ranks, and no one else's."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from flare.common.text import printable
from flare.ranking.rank import Analysis
from flare.ranking.standings import Standing
from flare.reports.ranking.markdown import escaped, markdown_table
from flare.reports.ranking.rows import plain
from flare.reports.ranking.titles import metric_title

_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
"""Names of devices, which no file may have on Windows, whatever its extension."""


def sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    found: list[tuple[str, Standing]] = []
    seen: set[str] = set()
    for standing in sorted(standings, key=lambda standing: standing.team):
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", standing.team)[:80]
        if _RESERVED.fullmatch(stem):
            stem += "_"
        name, number = stem, 1
        while name.lower() in seen:
            number += 1
            name = f"{stem}-{number}"
        seen.add(name.lower())
        found.append((name, standing))
    return found


def sheet_text(analysis: Analysis, standing: Standing) -> str:
    """What a team gets to see: its own values and ranks, and no one else's."""
    table, team = analysis.table, standing.team
    metrics = [rule.metric for rule in analysis.rules.metrics]
    teams = len(analysis.board.teams)
    place = f"{standing.rank} of {teams}" if standing.rank else "out of competition"
    titles = {metric: metric_title(metric) for metric in metrics}
    rows = [["case", *(name for m in metrics for name in (titles[m], "rank"))]]
    values = table.cube("value", [team], metrics)[0]
    ranks = analysis.standings.case_ranks[team].to_numpy().reshape(values.shape)
    for case, own, own_ranks in zip(table.cases, values, ranks, strict=True):
        cells = [printable(case)]
        for value, rank in zip(own, own_ranks, strict=True):
            cells += ["missing" if math.isnan(value) else f"{value:g}"]
            cells += [str(plain(rank))]
        rows.append(cells)
    reasons = [
        "- Case "
        + escaped(f"{printable(m.case)}, {titles[m.metric]}: {printable(m.reason)}")
        for m in table.missing
        if m.team == team
    ]
    mean_ranks = "; ".join(
        f"{titles[m]} {float(standing.mean_ranks[m]):.2f}" for m in metrics
    )
    score = (
        f"Score: {float(standing.score):.4f}, from the mean ranks"
        if standing.rank
        else f"Mean ranks, as if it alone had joined the {teams} teams that compete"
    )
    lines = [
        f"# {escaped(printable(team))}",
        "",
        f"Rank in {escaped(printable(analysis.challenge.name))}: {place}.",
        f"{score}: {escaped(mean_ranks)}.",
        *_gate_note(analysis),
        "",
        *markdown_table(rows),
    ]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join(lines) + "\n"


def _gate_note(analysis: Analysis) -> list[str]:
    """Why a rank may not match the value beside it."""
    gate = analysis.rules.gate_dsc
    if not gate:
        return []
    return [
        f"Metrics of efficiency count only on cases with a DSC of at least {gate:g};"
        " on others they are ranked like missing ones."
    ]
