"""Makes the organisers' page of a team among all others."""

from __future__ import annotations

from collections.abc import Sequence

from flare.challenge.metrics import RUNTIME
from flare.common.text import count, printable, safe
from flare.reports.pages.own_page import missing_table, rank_tiles, ranks_table
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import (
    Cell,
    Figure,
    Frame,
    Head,
    Row,
    Table,
    Tile,
    heads,
    name_cell,
    number_cell,
    shade,
)
from flare.reports.pages.rank_figures import own_draws_figure
from flare.reports.pages.rank_tables import rank_shade
from flare.reports.pages.ranking_page import ORGANISERS_NOTE
from flare.reports.pages.team_in_field import LOW, OTHERS, MetricInField, TeamInField
from flare.reports.pages.values_figures import values_figure
from flare.reports.ranking.rows import plain


def field_html(page: TeamInField, curves: Sequence[Figure]) -> str:
    """The page as HTML."""
    own, draws = page.own.standing, page.own.draws
    sections = (
        ("ranks", "Ranks"),
        *((("draws", "How sure it is"),) if draws else ()),
        *((("alone", "Fails alone"),) if page.alone else ()),
        ("values", "Values"),
        ("cases", "All cases"),
        *((("missing", "Missing results"),) if own.missing else ()),
        *((("memory", "Memory over time"),) if curves else ()),
    )
    return page_html(
        "ranked_team.html",
        page=Frame(
            title=f"{safe(own.team)} in the ranking",
            kicker=printable(own.challenge),
            sections=sections,
            audience_note=ORGANISERS_NOTE,
        ),
        interim=page.own.interim,
        tiles=(
            *rank_tiles(own),
            Tile(name="Fails alone", value=str(len(page.alone)), note="cases"),
        ),
        ranks=ranks_table(own),
        score_note=f"{own.score_note}.",
        gate_note=own.gate_note,
        left_out=own.left_out,
        draws=own_draws_figure(draws, own.teams, page.own.draws_note)
        if draws
        else None,
        values=[
            values_figure(
                found.title,
                [(own.team, found.values), (OTHERS, found.others)],
                page.cases,
                is_score=found.is_score,
                is_time=found.metric.startswith(RUNTIME),
                has_boxes=True,
                table=_means_table(found),
            )
            for found in page.metrics
        ],
        cases=_cases_table(page),
        missing=missing_table(page.missing),
        alone=_alone_table(page) if page.alone else None,
        curves=curves,
    )


def _means_table(found: MetricInField) -> Table:
    """The mean over the cases, and those of the others."""
    return Table(
        caption=f"{found.title}: means over the cases with a result",
        heads=heads("whose", "mean", words=("whose",)),
        rows=tuple(
            Row(
                cells=(
                    name_cell(name),
                    number_cell(mean, decimals=found.decimals, exact=True),
                )
            )
            for name, mean in found.means
        ),
    )


def _alone_table(page: TeamInField) -> Table:
    """Where the team fails, and no other."""
    title = next(found.title for found in page.metrics if found.is_score)
    return Table(
        caption=f"{count(len(page.alone), 'case')} where it alone has no {title} above"
        f" {LOW:g}",
        heads=heads("case", title, "lowest of the others", words=("case",)),
        rows=tuple(
            Row(
                cells=(
                    name_cell(case),
                    number_cell(score, css="" if score is None else shade(score)),
                    number_cell(lowest, css=shade(lowest)),
                )
            )
            for case, score, lowest in page.alone
        ),
    )


def _cases_table(page: TeamInField) -> Table:
    """A row for each case, with value, rank, and the others' median by each metric."""
    columns = [Head(text="case", numeric=False)]
    for metric in page.metrics:
        columns += heads(
            metric.title, f"rank: {metric.title}", f"others' {metric.title}"
        )
    rows = []
    for number, case in enumerate(page.cases):
        cells = [name_cell(case)]
        for metric in page.metrics:
            rank = metric.ranks[number]
            cells += [
                _field_cell(metric, metric.values[number]),
                Cell(
                    text=str(plain(rank)), css=rank_shade(rank, page.own.standing.teams)
                ),
                _field_cell(metric, metric.others[number]),
            ]
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption="Values and ranks of each case, and the median of the other teams",
        heads=tuple(columns),
        rows=tuple(rows),
    )


def _field_cell(metric: MetricInField, value: float | None) -> Cell:
    """A value on its shade."""
    css = shade(value) if value is not None and metric.is_score else ""
    return number_cell(value, decimals=metric.decimals, css=css)
