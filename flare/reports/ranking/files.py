"""Writes a ranking: as text, CSV and JSON, for papers, and for each team alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from flare.challenge.rulebook import scoring_rules
from flare.common.files import csv_text, write_whole
from flare.common.text import aligned, listing, printable, safe
from flare.common.version import __version__
from flare.ranking.rank import Analysis
from flare.ranking.reading import COLUMNS
from flare.ranking.robustness.bootstrap import spread_table
from flare.ranking.robustness.pairs import pairs_content, pairs_table
from flare.ranking.robustness.recount import recount_text
from flare.ranking.robustness.schemes import schemes_content, schemes_table
from flare.ranking.standings import PRIZE_RULE, Standing
from flare.reports.ranking.methods import methods_text
from flare.reports.ranking.titles import metric_title

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
    roll = analysis.table.roll
    parts = [roll.interim_text] if roll.is_interim else []
    parts += ["\n".join(_ranking_lines(analysis)), _remarks(analysis)]
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


def _ranking_lines(analysis: Analysis) -> list[str]:
    """The ranking, and below a line who is out of competition."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    heads = [f"mean rank {metric}" for metric in metrics]
    lines = aligned([*_table(analysis, heads), *_guest_rows(analysis)])
    guests = len(analysis.standings.guests)
    if not guests:
        return lines
    line = "-" * max(map(len, lines))
    return [*lines[:-guests], line, *lines[-guests:], _guests_note(analysis)]


def _table(analysis: Analysis, heads: Sequence[str]) -> list[list[str]]:
    """The ranking of the teams that compete, as rows of cells below these heads."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    ranked = [s for s in analysis.standings.standings if s.rank is not None]
    return [["rank", "team", "score", *heads], *(_row(s, metrics) for s in ranked)]


def _guest_rows(analysis: Analysis) -> list[list[str]]:
    """Teams out of competition: their mean ranks, which make no score."""
    metrics = [rule.metric for rule in analysis.rules.metrics]
    return [_row(s, metrics) for s in analysis.standings.guests]


def _guests_note(analysis: Analysis) -> str:
    """What the ranks of a team out of competition are."""
    count = len(analysis.board.teams)
    return (
        "Below the line: out of competition, without rank or score; ranked on each case"
        f" as if it alone had joined the {count} {'team' if count == 1 else 'teams'}."
    )


def _row(standing: Standing, metrics: Sequence[str]) -> list[str]:
    """A team's row."""
    return [
        str(standing.rank or "-"),
        printable(standing.team),
        f"{float(standing.score):.4f}" if standing.rank else "",
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
        reason = reason.replace(m.case, "CASE")
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

    Those are ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,
    ranking.tex, methods.txt, report.txt, and a sheet for each team.

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
        ("values.csv", csv_text(COLUMNS, _values(analysis))),
        ("ranking.json", json.dumps(_content(analysis), indent=2, allow_nan=False)),
        ("ranking.md", _page(analysis)),
        ("ranking.tex", _latex(analysis)),
        ("methods.txt", methods_text(analysis)),
        ("report.txt", analysis_text(analysis)),
    ):
        write_whole(folder / name, f"{text.rstrip()}\n")
    for name, standing in _sheet_names(analysis.standings.standings):
        write_whole(folder / SHEETS / f"{name}.md", _sheet(analysis, standing))


def _values(analysis: Analysis) -> list[list[Any]]:
    """A row for each value, also of single organs; what is missing is empty."""
    table = analysis.table
    known = {**table.others, **table.values}
    metrics = {*table.metrics, *(metric for _, _, metric in table.others)}
    return [
        [team, case, metric, known.get((team, case, metric), "")]
        for team in table.teams
        for case in table.cases
        for metric in sorted(metrics)
    ]


def _content(analysis: Analysis) -> dict[str, Any]:
    """What ranking.json holds."""
    rules, table = analysis.rules, analysis.table
    content: dict[str, Any] = {
        "interim": table.roll.interim_text or None,
        "settings": {
            "version": __version__,
            "challenge": analysis.challenge.key,
            "challenge_sha256": analysis.challenge.checksum,
            "scoring_rules": scoring_rules(analysis.challenge),
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
            if s.rank is not None
        ],
        "out_of_competition": [
            {
                "team": printable(s.team),
                "mean_ranks": {m: float(rank) for m, rank in s.mean_ranks.items()},
            }
            for s in analysis.standings.guests
        ],
        "roll_call": table.roll.content,
        "origin": asdict(table.origin) if table.origin else None,
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
    titles = [metric_title(rule.metric) for rule in analysis.rules.metrics]
    ranking = _table(analysis, [f"mean rank: {title}" for title in titles])
    interim = analysis.table.roll.interim_text
    lines = [_escaped(interim), ""] if interim else []
    lines += _markdown(ranking)
    guests = _guest_rows(analysis)
    if guests:
        note = _guests_note(analysis).replace("Below the line: out", "Out")
        header = [ranking[0][1], *ranking[0][3:]]
        rows = [[row[1], *row[3:]] for row in guests]
        lines += ["", note, "", *_markdown([header, *rows])]
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


def _latex(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    titles = [metric_title(rule.metric) for rule in analysis.rules.metrics]
    _, *ranked = _table(analysis, titles)
    guests = _guest_rows(analysis)
    interim = "Interim ranking" if analysis.table.roll.is_interim else "Ranking"
    caption = (
        f"{interim} of {analysis.challenge.name}: scores, and mean ranks by each"
        " metric; smaller is better."
    )
    if guests:
        caption += f" {_guests_note(analysis)}"
    body = [_latex_row(["Rank", "Team", "Score", *titles]), r"\midrule"]
    body += map(_latex_row, ranked)
    if guests:
        body += [r"\midrule", *map(_latex_row, guests)]
    return "\n".join(
        [
            r"% In the preamble: \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(caption)}}}",
            r"\label{tab:ranking}",
            rf"\begin{{tabular}}{{rl{'r' * (1 + len(titles))}}}",
            *(r"\toprule", *body, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return " & ".join(map(_latex_text, cells)) + r" \\"


def _latex_text(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return "".join(_LATEX.get(char, char) for char in text)


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
    titles = {metric: metric_title(metric) for metric in metrics}
    rows = [["case", *(name for m in metrics for name in (titles[m], "rank"))]]
    for case in table.cases:
        cells = [printable(case)]
        for metric in metrics:
            value = table.values.get((team, case, metric))
            rank = analysis.standings.case_ranks[team, case, metric]
            cells += ["missing" if value is None else f"{value:g}", str(_plain(rank))]
        rows.append(cells)
    reasons = [
        "- Case "
        + _escaped(f"{printable(m.case)}, {titles[m.metric]}: {printable(m.reason)}")
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
        f"# {_escaped(printable(team))}",
        "",
        f"Rank in {_escaped(printable(analysis.challenge.name))}: {place}.",
        f"{score}: {_escaped(mean_ranks)}.",
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
