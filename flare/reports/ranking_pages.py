"""Makes all pages of a ranking, of results or of what ``flare rank`` has written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from flare.challenge.metrics import lesions_by
from flare.challenge.reading import read_challenge
from flare.ranking.rank import rank_results
from flare.ranking.rules import RankingOptions
from flare.ranking.written import read_written
from flare.reports.model import INDEX, TEAMS, Page
from flare.reports.ranking.organisers import organiser_page
from flare.reports.ranking.page import public_ranking, ranking_page
from flare.reports.ranking.standing import own_standing, sheet_names
from flare.reports.ranking.teams import team_page
from flare.reports.ranking.values import WholeRanking, metric_values
from flare.results.groups_csv import Grouping, read_groups


def ranking_pages(
    source: Path,
    options: RankingOptions,
    *,
    is_written: bool,
    is_organiser: bool,
    has_teams: bool,
    figures: Path | None = None,
    groups: Path | None = None,
    cases: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, Page]]:
    """The pages of a ranking and their files, that of all teams first.

    The source has the results of all teams, which are ranked by the options, or a
    ranking that was written. `figures` is a folder for figures for a paper, `groups` a
    table of which case is in which group; `cases` are pages of cases by all teams. A
    RankingError is raised if the source cannot be read.
    """
    if is_written:
        analysis = replace(read_written(source), shows_means=options.means)
    else:
        challenge = read_challenge(options.challenge)
        analysis = rank_results(source, challenge, options, groups)
    groupings: tuple[Grouping, ...] = ()
    if groups:
        withdrawn = [decision.case for decision in analysis.decisions.withdrawn]
        groupings = read_groups(groups, analysis.board.cases, withdrawn)
    standings = analysis.standings.standings
    files = {}
    for name, standing in sheet_names(standings):
        files[standing.team] = f"{TEAMS}/{name}.html"
    links, ranking = files if has_teams else {}, None
    with lesions_by(analysis.challenge.lesions):
        public = public_ranking(
            analysis, groupings, is_organiser=is_organiser, has_organs=True
        )
        index = ranking_page(public, links)
        if is_organiser:
            values = metric_values(analysis)
            ranking = WholeRanking(analysis, public, values, groupings)
            index = organiser_page(ranking, links, cases)
            if figures:
                # Here, as pages should not wait for matplotlib.
                from flare.reports.paper.figures import write_ranking_figures

                write_ranking_figures(ranking, index, figures)
        yield INDEX, index
        for standing in standings if has_teams else ():
            page = team_page(own_standing(analysis, standing, public), ranking)
            yield files[standing.team], page
