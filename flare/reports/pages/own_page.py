"""Makes a team's own page of a ranking, of a type that holds nothing of other teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flare.common.text import count, printable, safe
from flare.ranking.rank import Analysis
from flare.ranking.standings import Standing
from flare.reports.pages.page import page_html
from flare.reports.pages.parts import (
    Cell,
    Frame,
    Head,
    Row,
    Table,
    Tile,
    heads,
    name_cell,
    number_cell,
    shade,
    text_cell,
)
from flare.reports.pages.rank_figures import own_draws_figure
from flare.reports.pages.rank_tables import rank_shade
from flare.reports.pages.ranking import Draws, PublicRanking
from flare.reports.pages.values_figures import values_figure
from flare.reports.ranking.own import OwnMetric, OwnResult, OwnStanding, own_standing
from flare.reports.ranking.rows import plain

NOTE = (
    "For this team alone: its own values, to three decimals, and ranks. It has nothing"
    " of any other team."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPage:
    """What a team's own page is made from."""

    standing: OwnStanding
    draws: Draws | None
    """None without bootstrap, and for a team out of competition."""
    draws_note: str
    interim: str


def own_page(analysis: Analysis, standing: Standing, public: PublicRanking) -> OwnPage:
    """What a team may know of the ranking; nothing else goes on from here."""
    return OwnPage(
        standing=own_standing(analysis, standing),
        draws=next((own for own in public.draws if own.team == standing.team), None),
        draws_note=public.draws_note,
        interim=public.interim,
    )


def own_html(page: OwnPage) -> str:
    """The page as HTML."""
    own = page.standing
    sections = (
        ("ranks", "Ranks"),
        *((("draws", "How sure it is"),) if page.draws else ()),
        ("values", "Values"),
        ("cases", "All cases"),
        *((("missing", "Missing results"),) if own.missing else ()),
    )
    return page_html(
        "ranked_team.html",
        page=Frame(
            title=f"{safe(own.team)} in the ranking",
            kicker=printable(own.challenge),
            sections=sections,
            audience_note=NOTE,
        ),
        interim=page.interim,
        tiles=rank_tiles(own),
        ranks=ranks_table(own),
        score_note=f"{own.score_note}.",
        gate_note=own.gate_note,
        left_out=own.left_out,
        draws=own_draws_figure(page.draws, own.teams, page.draws_note)
        if page.draws
        else None,
        values=[
            values_figure(
                metric.title,
                [(own.team, column)],
                own.cases,
                is_score=metric.is_score,
                decimals=3,
            )
            for metric, column in zip(own.metrics, _columns(own), strict=True)
            if metric.is_told
        ],
        cases=_cases_table(own),
        missing=missing_table(own.missing),
        alone=None,
        curves=[],
    )


def rank_tiles(own: OwnStanding) -> tuple[Tile, ...]:
    """Where the team stands."""
    cases = {case for case, _, _ in own.missing}
    return (
        Tile(name="Rank", value=own.place),
        Tile(name="Score", value=f"{own.score:.4f}" if own.rank else "none"),
        Tile(
            name="Cases",
            value=str(len(own.cases)),
            note=f"results are missing on {len(cases)}" if cases else "",
        ),
    )


def ranks_table(own: OwnStanding) -> Table:
    """The mean rank by each metric."""
    return Table(
        caption=f"Mean ranks over {count(len(own.cases), 'case')}; smaller is better",
        heads=heads("metric", "mean rank", words=("metric",)),
        rows=tuple(
            Row(
                cells=(
                    name_cell(metric.title),
                    number_cell(
                        metric.mean_rank,
                        decimals=2,
                        css=rank_shade(metric.mean_rank, own.teams),
                    ),
                )
            )
            for metric in own.metrics
        ),
    )


def missing_table(missing: Sequence[tuple[str, str, str]]) -> Table | None:
    """The results that are not there, and why: a row for each case and reason."""
    if not missing:
        return None
    found: dict[tuple[str, str], list[str]] = {}
    for case, title, reason in missing:
        found.setdefault((case, reason), []).append(title)
    return Table(
        caption="Results that are not there, and why",
        heads=heads("case", "of", "why", words=("case", "of", "why")),
        rows=tuple(
            Row(
                cells=(name_cell(case), text_cell(", ".join(titles)), text_cell(reason))
            )
            for (case, reason), titles in found.items()
        ),
    )


def _columns(own: OwnStanding) -> list[list[float | None]]:
    """The values by metric, and case."""
    return [
        [_value(row[number]) for row in own.results]
        for number in range(len(own.metrics))
    ]


def _value(found: OwnResult) -> float | None:
    """The value as a number."""
    return None if found.thousandths is None else found.thousandths / 1000


def _cases_table(own: OwnStanding) -> Table:
    """A row for each case, with value and rank by each metric."""
    columns = [Head(text="case", numeric=False)]
    for metric in own.metrics:
        if metric.is_told:
            columns.append(Head(text=metric.title))
        columns.append(Head(text=f"rank: {metric.title}"))
    rows = []
    for case, results in zip(own.cases, own.results, strict=True):
        cells = [name_cell(case)]
        for metric, found in zip(own.metrics, results, strict=True):
            if metric.is_told:
                cells.append(_value_cell(metric, found))
            css = rank_shade(found.rank, own.teams)
            cells.append(Cell(text=str(plain(found.rank)), css=css))
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption="Values and ranks of each case; a rank has a shade of its own",
        heads=tuple(columns),
        rows=tuple(rows),
    )


def _value_cell(metric: OwnMetric, found: OwnResult) -> Cell:
    """A value."""
    if found.thousandths is None:
        return number_cell(None)
    css = shade(found.thousandths / 1000) if metric.is_score else ""
    return Cell(text=metric.text(found.thousandths), css=css)
