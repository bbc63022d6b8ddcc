"""Makes a team's own sheet: its values and ranks, and no one else's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flare.common.text import printable
from flare.ranking.standings import Standing
from flare.reports.ranking.markdown import escaped, markdown_table
from flare.reports.ranking.own import OwnMetric, OwnStanding
from flare.reports.ranking.rows import plain

_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
"""Names of devices, which no file may have on Windows, whatever its extension."""

LONGEST_NAME = 60
"""Letters of a team's name that its files have: in any script, their names fit."""


def sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    found: list[tuple[str, Standing]] = []
    seen: set[str] = set()
    for standing in sorted(standings, key=lambda standing: standing.team):
        stem = re.sub(r"[^\w-]", "_", standing.team)[:LONGEST_NAME]
        if _RESERVED.fullmatch(stem):
            stem += "_"
        name, number = stem, 1
        while name.lower() in seen:
            number += 1
            name = f"{stem}-{number}"
        seen.add(name.lower())
        found.append((name, standing))
    return found


def sheet_text(own: OwnStanding) -> str:
    """What a team gets to see: its own values and ranks, and no one else's."""
    rows = [["case", *(head for metric in own.metrics for head in _heads(metric))]]
    for case, results in zip(own.cases, own.results, strict=True):
        cells = [printable(case)]
        for metric, result in zip(own.metrics, results, strict=True):
            if metric.is_told:
                value = result.thousandths
                cells.append("missing" if value is None else metric.text(value))
            cells.append(str(plain(result.rank)))
        rows.append(cells)
    reasons = [
        "- Case " + escaped(f"{printable(case)}, {title}: {reason}")
        for case, title, reason in own.missing
    ]
    mean_ranks = "; ".join(f"{m.title} {m.mean_rank:.2f}" for m in own.metrics)
    lines = [
        f"# {escaped(printable(own.team))}",
        "",
        f"Rank in {escaped(printable(own.challenge))}: {own.place}.",
        f"{own.score_note}: {escaped(mean_ranks)}.",
        *([own.gate_note] if own.gate_note else []),
        *([escaped(own.left_out)] if own.left_out else []),
        "",
        *markdown_table(rows),
    ]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join(lines) + "\n"


def _heads(metric: OwnMetric) -> list[str]:
    """The heads of a metric's columns."""
    return [metric.title, "rank"] if metric.is_told else [f"{metric.title}: rank"]
