"""Makes all pages of a ranking, from that of all teams to those of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from flare.challenge.reading import read_challenge
from flare.ranking.means import ranking_means
from flare.ranking.rank import Analysis, rank_results
from flare.ranking.rules import RankingOptions
from flare.reports.charts import memory_charts
from flare.reports.model import INDEX, MANY_ROWS, TEAMS, Chart, Page
from flare.reports.ranking.organisers import organiser_page
from flare.reports.ranking.own import own_standing, sheet_names
from flare.reports.ranking.page import public_ranking, ranking_page
from flare.reports.ranking.teams import Field, team_page
from flare.reports.ranking.written import read_written
from flare.results.groups_csv import Grouping, read_groups
from flare.results.traces_csv import BUCKETS, read_curve, traced_cases

MEMORY = "max_gpu_memory_mb"


def ranking_pages(
    source: Path,
    options: RankingOptions,
    *,
    is_written: bool,
    is_organiser: bool,
    has_teams: bool,
    figures: Path | None = None,
    groups: Path | None = None,
) -> Iterator[tuple[str, Page]]:
    """The pages of a ranking and their files, that of all teams first.

    Parameters
    ----------
    source : Path
        The results of all teams, or the folder of a ranking that was written, as
        `is_written` says.
    options : RankingOptions
        How teams are ranked, unless they have been.
    is_written, is_organiser, has_teams : bool
        Whether the pages may hold all teams' values, and whether there is one of each
        team, to which the first one leads.
    figures, groups : Path, optional
        A folder for figures for a paper, for organisers; and a table of which case is
        in which group.

    Raises
    ------
    RankingError
        If the source cannot be read.
    """
    told: dict[str, Any] = {}
    if is_written:
        analysis, told = read_written(source)
        analysis = replace(analysis, shows_means=options.means)
    else:
        challenge = read_challenge(options.challenge)
        analysis = rank_results(source, challenge, options)
    groupings: tuple[Grouping, ...] = ()
    if groups:
        withdrawn = [decision.case for decision in analysis.decisions.withdrawn]
        groupings = read_groups(groups, analysis.board.cases, withdrawn)
    public = public_ranking(analysis, groupings, is_organiser=is_organiser)
    public = replace(public, **told)  # as it was
    standings = analysis.standings.standings
    names = sheet_names(standings)
    files = {standing.team: f"{TEAMS}/{name}.html" for name, standing in names}
    links = files if has_teams else {}
    means = ranking_means(analysis, has_organs=False)
    field = None
    index = ranking_page(public, links)
    if is_organiser:
        curves = one_case(source, analysis)
        index = organiser_page(analysis, public, links, groupings, curves)
        field = Field(analysis, means)
        if figures:
            # Here, as pages should not wait for matplotlib.
            from flare.reports.paper_figures import write_ranking_figures

            write_ranking_figures(analysis, public, groupings, figures)
    yield INDEX, index
    for standing in standings if has_teams else ():
        own = own_standing(analysis, standing, public, means.counted)
        yield files[own.team], team_page(own, field.of(own.team) if field else None)


def one_case(source: Path, analysis: Analysis) -> list[Chart]:
    """Memory over time of all teams on one case: that with the most GPU memory.

    Where memory is not ranked, it is the first case with a trace.
    """
    folders = sorted(source.iterdir()) if source.is_dir() else []
    named = {analysis.decisions.name_of(own.name): own for own in folders}
    traced = {
        team: set(traced_cases(folder))
        for team, folder in named.items()
        if team in analysis.table.teams and folder.is_dir()
    }
    board, metrics = analysis.board, analysis.rules.names
    most = dict.fromkeys(analysis.table.cases, 0.0)
    if MEMORY in metrics:
        values = np.nan_to_num(board.values[:, :, metrics.index(MEMORY)])
        most |= zip(board.cases, values.max(axis=0).tolist(), strict=True)
    known = [case for case in most if any(case in own for own in traced.values())]
    if not known:
        return []
    case = max(known, key=most.__getitem__)
    with_traces = sum(map(bool, traced.values()))
    buckets = BUCKETS if with_traces <= MANY_ROWS else BUCKETS // 2
    curves = [
        (standing.team, read_curve(named[standing.team], case, buckets))
        for standing in analysis.standings.standings
        if case in traced.get(standing.team, ())
    ]
    return memory_charts(curves, "team", f"on {case}")
