"""Writes a ranking: as text, CSV and JSON, for papers, and for each team alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from flare._version import __version__
from flare.analysis import Analysis
from flare.files import csv_text, write_whole
from flare.methods import methods_text
from flare.names import aligned, listing, printable, safe
from flare.pairwise import pairs_content, pairs_table
from flare.ranking import PRIZE_RULE, Standing
from flare.recount import recount_text
from flare.schemes import schemes_content, schemes_table
from flare.stability import spread_table

SHEETS = "sheets"
"""Folder of the sheets."""

_RESERVED = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
"""Names of devices, which no file has on Windows, with whatever extension."""

_MARKDOWN = re.compile(
    r"[\\`*_{}\[\]<>|~#$@]|&(?=[#\w])|:(?=\S)|(?<=www)\.", re.IGNORECASE
)
"""What can be HTML or Markdown within a line, or make a link of an address."""


# --- On the terminal --------------------------------------------------------------


def analysis_text(analysis: Analysis) -> str:
    """The ranking, the rule for prizes, decisions, and how sure it is, as text."""
    parts = ["\n".join(aligned(_table(analysis))), _remarks(analysis)]
    if analysis.flags:
        flags = "\n".join(f"  {flag}" for flag in analysis.flags)
        parts.append(f"To be looked at:\n{flags}")
    parts.append(recount_text(analysis.recounts))
    if analysis.bootstrap:
        parts.append(spread_table(analysis.bootstrap))
    if len(analysis.board.teams) > 1:
        parts.append(pairs_table(analysis.tests, analysis.board.teams))
        parts.append(schemes_table(analysis.schemes))
    return "\n\n".join(parts)


def _table(analysis: Analysis) -> list[list[str]]:
    """The ranking, as rows of cells."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    header = ["rank", "team", "score", *(f"mean rank {metric}" for metric in metrics)]
    return [header, *(_row(s, metrics) for s in analysis.standings.standings)]


def _row(standing: Standing, metrics: Sequence[str]) -> list[str]:
    """A team's row."""
    return [
        str(standing.rank or "-"),
        printable(standing.team),
        f"{float(standing.score):.4f}",
        *(f"{float(standing.mean_ranks[metric]):.2f}" for metric in metrics),
    ]


def _remarks(analysis: Analysis) -> str:
    """The rule for prizes, the decisions, and the results that are missing."""
    lines = [PRIZE_RULE, *analysis.decisions.lines]
    metrics: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for m in analysis.table.missing:
        # Of "status failed: the container ... after 0.3 s" what many cases share.
        is_status = m.reason.startswith("status ")
        reason = m.reason.partition(":")[0] if is_status else m.reason
        metrics[m.team, m.case, reason].append(m.metric)
    cases: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (team, case, reason), names in metrics.items():
        cases[team, ", ".join(names), reason].append(case)
    for (team, missing, reason), names in cases.items():
        of = f"{len(names)} of {len(analysis.table.cases)} cases ({listing(names)})"
        lines.append(f"Missing: {safe(team)}, {missing}, {of}: {safe(reason)}")
    return "\n".join(lines)


# --- Files ------------------------------------------------------------------------


def write_analysis(analysis: Analysis, folder: Path) -> None:
    """Write all files of a ranking.

    Those are ranking.csv, case_ranks.csv, ranking.json, ranking.md, ranking.tex,
    methods.txt, and a sheet for each team.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    metrics = [rule.metric for rule in analysis.rules.metrics]
    ranking = [
        [s.team, s.rank or "", _plain(s.score)]
        + [_plain(s.mean_ranks[metric]) for metric in metrics]
        for s in analysis.standings.standings
    ]
    columns = ["team", "rank", "score", *(f"mean_rank_{metric}" for metric in metrics)]
    case_ranks = [
        [team, case, metric, _plain(rank)]
        for (team, case, metric), rank in sorted(analysis.standings.case_ranks.items())
    ]
    for sheet in (folder / SHEETS).glob("*.md"):
        sheet.unlink()  # of a team that was disqualified since, perhaps
    for name, text in (
        ("ranking.csv", csv_text(columns, ranking)),
        ("case_ranks.csv", csv_text(["team", "case", "metric", "rank"], case_ranks)),
        ("ranking.json", json.dumps(_content(analysis), indent=2, allow_nan=False)),
        ("ranking.md", _page(analysis)),
        ("ranking.tex", _latex(_table(analysis))),
        ("methods.txt", methods_text(analysis)),
    ):
        write_whole(folder / name, f"{text.rstrip()}\n")
    for name, standing in _sheet_names(analysis.standings.standings):
        write_whole(folder / SHEETS / f"{name}.md", _sheet(analysis, standing))


def _content(analysis: Analysis) -> dict[str, Any]:
    """What ranking.json holds."""
    rules = analysis.rules
    content: dict[str, Any] = {
        "settings": {
            "version": __version__,
            "challenge": analysis.challenge.key,
            "challenge_sha256": analysis.challenge.checksum,
            "ties": rules.ties.value,
            "missing": rules.missing.value,
            "efficiency_gate_dsc": rules.gate_dsc,
            "metrics": [
                {
                    "metric": rule.metric,
                    "better": rule.better.value,
                    "weight": rule.weight,
                    "tolerance": rule.tolerance,
                    "trace_tolerance_mb": rule.trace_tolerance_mb,
                    "decimals": rule.decimals,
                    "failed": rule.failed,
                }
                for rule in rules.metrics
            ],
        },
        "decisions": list(analysis.decisions.lines),
        "teams": len(analysis.board.teams),
        "cases": [printable(case) for case in analysis.table.cases],
        "ranking": [
            {
                "team": printable(s.team),
                "rank": s.rank,
                "score": float(s.score),
                "score_exact": str(s.score),
                "mean_ranks": {m: float(rank) for m, rank in s.mean_ranks.items()},
            }
            for s in analysis.standings.standings
        ],
        "missing": [
            {
                "team": printable(m.team),
                "case": printable(m.case),
                "metric": m.metric,
                "reason": printable(m.reason),
            }
            for m in analysis.table.missing
        ],
        "recount": [found.content for found in analysis.recounts],
        "schemes": schemes_content(analysis.schemes),
        "tests": pairs_content(analysis.tests),
        "flags": list(analysis.flags),
    }
    if analysis.bootstrap:
        content["bootstrap"] = analysis.bootstrap.content
    return content


def _plain(number: Fraction) -> int | float:
    """A whole number as such, and other ones in full precision."""
    return number.numerator if number.denominator == 1 else float(number)


# --- For papers, and for teams ----------------------------------------------------


def _page(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on."""
    lines = _markdown(_table(analysis))
    if analysis.decisions.lines:
        lines += ["", *(f"- {_escaped(line)}" for line in analysis.decisions.lines)]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, its first row the header."""
    escaped = [[_escaped(cell) for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def _latex(rows: Sequence[Sequence[str]]) -> str:
    """A table in LaTeX, its first row the header; it needs the package booktabs."""
    lines = [
        " & ".join("".join(_LATEX.get(char, char) for char in cell) for cell in row)
        + r" \\"
        for row in rows
    ]
    columns = "rl" + "r" * (len(rows[0]) - 2)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            *(r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"),
            r"\end{tabular}",
        ]
    )


def _sheet_names(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """File names of the sheets, which no two teams share on any computer."""
    found: list[tuple[str, Standing]] = []
    seen: set[str] = set()
    for standing in sorted(standings, key=lambda standing: standing.team):
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", standing.team)[:80]
        if _RESERVED.fullmatch(plain):
            plain += "_"
        name, number = plain, 1
        while name.lower() in seen:
            number += 1
            name = f"{plain}-{number}"
        seen.add(name.lower())
        found.append((name, standing))
    return found


def _sheet(analysis: Analysis, standing: Standing) -> str:
    """What a team gets to see: its own values and ranks, and no one else's."""
    table, team = analysis.table, standing.team
    metrics = [rule.metric for rule in analysis.rules.metrics]
    teams = len(analysis.board.teams)
    place = f"{standing.rank} of {teams}" if standing.rank else "out of competition"
    rows = [["case", *(name for m in metrics for name in (m, "rank"))]]
    for case in table.cases:
        cells = [printable(case)]
        for metric in metrics:
            value = table.values.get((team, case, metric))
            rank = analysis.standings.case_ranks[team, case, metric]
            cells += ["missing" if value is None else f"{value:g}", str(_plain(rank))]
        rows.append(cells)
    reasons = [
        f"- Case {_escaped(f'{printable(m.case)}, {m.metric}: {printable(m.reason)}')}"
        for m in table.missing
        if m.team == team
    ]
    mean_ranks = "; ".join(f"{m} {float(standing.mean_ranks[m]):.2f}" for m in metrics)
    lines = [
        f"# {_escaped(printable(team))}",
        "",
        f"Rank in {_escaped(printable(analysis.challenge.name))}: {place}.",
        f"Score: {float(standing.score):.4f}, from the mean ranks:"
        f" {_escaped(mean_ranks)}.",
        *_gate_note(analysis),
        "",
        *_markdown(rows),
    ]
    if reasons:
        lines += ["", "Missing results:", "", *reasons]
    return "\n".join(lines) + "\n"


def _gate_note(analysis: Analysis) -> list[str]:
    """Why a rank may not be that of the value beside it."""
    gate = analysis.rules.gate_dsc
    if not gate:
        return []
    return [
        f"Metrics of efficiency count only on cases with a DSC of at least {gate:g};"
        " on others they are ranked like missing ones."
    ]
