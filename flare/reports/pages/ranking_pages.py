"""Makes all pages of a ranking, from that of all teams to those of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.ranking.rank import Analysis
from flare.reports.pages.field_page import field_html
from flare.reports.pages.own_page import own_html, own_page
from flare.reports.pages.ranking import (
    OrganiserRanking,
    PublicRanking,
    organiser_ranking,
    public_ranking,
)
from flare.reports.pages.ranking_page import organiser_html, public_html
from flare.reports.pages.ranking_traces import (
    one_case,
    own_curves,
    trace_folders,
)
from flare.reports.pages.sources import INDEX, TEAMS, Kind, kind_of
from flare.reports.pages.team_in_field import field_of, team_in_field
from flare.reports.pages.written import WrittenRanking, read_written
from flare.reports.ranking.ranking import rank
from flare.reports.ranking.sheets import sheet_names
from flare.results.groups_csv import Grouping, read_groups


def ranking_pages(
    source: Path,
    *,
    is_organiser: bool,
    has_teams: bool,
    figures: Path | None = None,
    groups: Path | None = None,
    **ranking: Any,
) -> Iterator[tuple[str, str]]:
    """The pages of a ranking and their files, that of all teams first.

    Parameters
    ----------
    source : Path
        The results of all teams, or the folder of a ranking that was written.
    is_organiser : bool
        Whether the pages may hold all teams' values.
    has_teams : bool
        Whether there is a page of each team, to which the first one leads.
    figures : Path, optional
        For organisers: gets figures for a paper.
    groups : Path, optional
        A table of which case is in which group.
    **ranking
        As `flare.reports.ranking.ranking.rank` takes them.

    Raises
    ------
    RankingError
        If the source cannot be read.
    """
    written = None
    if kind_of([source]) is Kind.WRITTEN:
        written = read_written(source)
        analysis = written.analysis
    else:
        analysis = rank(source, **ranking).analysis
    groupings = _groupings(groups, analysis)
    public = _public(analysis, written, groupings)
    files = {
        standing.team: f"{TEAMS}/{name}.html"
        for name, standing in sheet_names(analysis.standings.standings)
    }
    links = files if has_teams else {}
    folders = trace_folders(source, analysis) if is_organiser else {}
    if is_organiser:
        found = _organiser(analysis, written, groupings)
        if figures:
            # Here, as pages should not wait for matplotlib.
            from flare.reports.figures.folder import write_ranking_figures

            write_ranking_figures(analysis, found, figures)
        curves = one_case(analysis, folders)
        yield INDEX, organiser_html(found, links, curves)
    else:
        yield INDEX, public_html(public, links)
    if is_organiser and has_teams:
        yield from _full_pages(analysis, public, files, folders)
    elif has_teams:
        for standing in analysis.standings.standings:
            page = own_page(analysis, standing, public)
            yield files[standing.team], own_html(page)


def _full_pages(
    analysis: Analysis,
    public: PublicRanking,
    files: Mapping[str, str],
    folders: Mapping[str, Path],
) -> Iterator[tuple[str, str]]:
    """The organisers' page of each team."""
    field = field_of(analysis)
    for standing in analysis.standings.standings:
        page = team_in_field(analysis, field, standing, public)
        curves = own_curves(folders.get(standing.team), page)
        yield files[standing.team], field_html(page, curves)


def _groupings(file: Path | None, analysis: Analysis) -> tuple[Grouping, ...]:
    """How the cases are grouped."""
    if file is None:
        return ()
    withdrawn = [decision.case for decision in analysis.decisions.withdrawn]
    return read_groups(file, analysis.board.cases, withdrawn)


def _public(
    analysis: Analysis,
    written: WrittenRanking | None,
    groupings: tuple[Grouping, ...],
) -> PublicRanking:
    """What everybody may know; what was written before is told as it was."""
    found = public_ranking(analysis, groupings)
    if written is None:
        return found
    return replace(found, interim=written.interim, decisions=written.decisions)


def _organiser(
    analysis: Analysis,
    written: WrittenRanking | None,
    groupings: tuple[Grouping, ...],
) -> OrganiserRanking:
    """What organisers look at; what was written before is told as it was."""
    found = organiser_ranking(analysis, groupings)
    if written is None:
        return found
    public = replace(found.public, interim=written.interim, decisions=written.decisions)
    return replace(found, public=public, flags=written.flags)
