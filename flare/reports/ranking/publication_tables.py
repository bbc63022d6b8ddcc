"""Makes the tables of a ranking for a page or a paper."""

from __future__ import annotations

from flare.ranking.rank import Analysis
from flare.reports.ranking.latex import NEEDS, latex_table
from flare.reports.ranking.markdown import escaped, markdown_table
from flare.reports.ranking.roll_call import interim_text
from flare.reports.ranking.rows import guest_rows, guests_note, ranking_rows
from flare.reports.ranking.titles import left_out_text, metric_title


def page_text(analysis: Analysis) -> str:
    """The ranking, and the decisions that it rests on."""
    titles = [metric_title(rule.metric) for rule in analysis.rules.metrics]
    ranking = ranking_rows(analysis, [f"mean rank: {title}" for title in titles])
    interim = interim_text(analysis.table.roll)
    left_out = left_out_text(analysis.rules.left_out)
    lines = [
        part for note in (interim, left_out) if note for part in (escaped(note), "")
    ]
    lines += markdown_table(ranking)
    guests = guest_rows(analysis)
    if guests:
        note = guests_note(analysis).replace("Below the line: out", "Out")
        header = [ranking[0][1], *ranking[0][3:]]
        rows = [[row[1], *row[3:]] for row in guests]
        lines += ["", note, "", *markdown_table([header, *rows])]
    if analysis.decisions.lines:
        lines += ["", *(f"- {escaped(line)}" for line in analysis.decisions.lines)]
    return "\n".join(lines)


def latex_text(analysis: Analysis) -> str:
    """The ranking as a table in LaTeX."""
    titles = [metric_title(rule.metric) for rule in analysis.rules.metrics]
    _, *ranked = ranking_rows(analysis, titles)
    guests = guest_rows(analysis)
    interim = "Interim ranking" if analysis.table.roll.is_interim else "Ranking"
    caption = (
        f"{interim} of {analysis.challenge.name}: scores, and mean ranks by each"
        " metric; smaller is better."
    )
    if analysis.rules.left_out:
        caption += f" {left_out_text(analysis.rules.left_out)}"
    if guests:
        caption += f" {guests_note(analysis)}"
    heads = [["Rank", "Team", "Score", *titles]]
    columns = f"rl{'r' * (1 + len(titles))}"
    parts = [heads, ranked, *([guests] if guests else [])]
    return f"{NEEDS}\n{latex_table(caption, 'ranking', columns, parts)}"
