"""Writes the pages of results that their readers may see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flare.common.files import write_whole
from flare.reports.pages.case_scores import NO_LINKS
from flare.reports.pages.evaluation import evaluation_html, evaluation_page
from flare.reports.pages.participant import participant_html, participant_page
from flare.reports.pages.sources import INDEX, TEAMS, Kind, kind_of
from flare.results.groups_csv import read_groups
from flare.results.metrics_reading import read_evaluation

if TYPE_CHECKING:
    from flare.reports.cases.write import CasePages


def is_page(output: Path) -> bool:
    """Whether a report goes into one file, not into a folder."""
    return output.suffix.lower() in (".html", ".htm")


def write_report(
    sources: Sequence[Path],
    output: Path,
    *,
    is_organiser: bool,
    figures: Path | None = None,
    groups: Path | None = None,
    cases: CasePages | None = None,
    **ranking: Any,
) -> Path:
    """Write pages of results.

    Parameters
    ----------
    sources : sequence of Path
        A metrics.json; several of them, which are compared with the first; the folder
        of a team; the results of all teams, which are ranked; or a ranking that was
        written.
    output : Path
        The page, where its name ends in ``.html``; else a folder, whose ``index.html``
        leads to all other pages. Each is written whole or not at all.
    is_organiser : bool
        Whether the pages may hold what would tell of the references.
    figures : Path, optional
        A folder for figures for a paper, which only organisers get.
    groups : Path, optional
        A CSV file of groups of cases, as `flare.results.groups_csv` reads it.
    cases : CasePages, optional
        For the organisers' report of one evaluation, in a folder: the pages of cases
        that it gets as well.
    **ranking
        As `flare.reports.ranking.ranking.rank` takes them.

    Returns
    -------
    Path
        The page to open.

    Raises
    ------
    MetricsFileError, RankingError, GroupsFileError
        If a source, or the file of groups, cannot be read, or label maps are not those
        that a source was made from.
    OutputError
        If a page cannot be written.
    """
    is_folder = not is_page(output)
    found = _pages(
        sources,
        is_organiser=is_organiser,
        has_teams=is_folder,
        figures=figures,
        groups=groups,
        links=_write_cases(sources[0], output, cases) if cases else NO_LINKS,
        **ranking,
    )
    if not is_folder:
        write_whole(output, next(found)[1])
        return output
    written = set()
    for file, html in found:
        write_whole(output / file, html)
        written.add(output / file)
    if any(page.parent == output / TEAMS for page in written):
        for page in (output / TEAMS).glob("*.html"):
            if page not in written:
                page.unlink()  # of a team that was disqualified since, perhaps
    return output / INDEX


def _write_cases(source: Path, folder: Path, cases: CasePages) -> Mapping[str, str]:
    """Write the pages of cases before those that lead to them: the file of each."""
    # Here, as other pages should not wait for SciPy.
    from flare.reports.cases.write import case_links, case_pages

    evaluation = read_evaluation(source)
    for file, html in case_pages(source, evaluation, cases):
        write_whole(folder / file, html)
    return case_links(evaluation, cases)


def _pages(
    sources: Sequence[Path],
    *,
    is_organiser: bool,
    has_teams: bool,
    figures: Path | None,
    groups: Path | None,
    links: Mapping[str, str],
    **ranking: Any,
) -> Iterator[tuple[str, str]]:
    """The pages and their files, each made when it is asked for; the index first."""
    source, kind = sources[0], kind_of(sources)
    if kind is Kind.COMPARISON:
        # Here, as the page of one evaluation should not wait for SciPy.
        from flare.reports.pages.comparison_page import comparison_html

        yield INDEX, comparison_html(sources, is_organiser=is_organiser)
    elif kind is Kind.TEAM:
        from flare.reports.pages.team import team_html

        yield INDEX, team_html(source, is_organiser=is_organiser)
    elif kind is not Kind.EVALUATION:
        # Here, as the page of an evaluation should not wait for pandas.
        from flare.reports.pages.ranking_pages import ranking_pages

        yield from ranking_pages(
            source,
            is_organiser=is_organiser,
            has_teams=has_teams,
            figures=figures,
            groups=groups,
            **ranking,
        )
    else:
        html = _evaluation_html(
            source,
            is_organiser=is_organiser,
            figures=figures,
            groups=groups,
            links=links,
        )
        yield INDEX, html


def _evaluation_html(
    source: Path,
    *,
    is_organiser: bool,
    figures: Path | None,
    groups: Path | None,
    links: Mapping[str, str],
) -> str:
    """The page of an evaluation, with links to the pages of cases."""
    found = read_evaluation(source)
    groupings = read_groups(groups, found.scores.cases) if groups else ()
    if not is_organiser:
        return participant_html(participant_page(found, groupings))
    if figures:
        from flare.reports.figures.folder import write_evaluation_figures

        write_evaluation_figures(found, figures, groupings)
    return evaluation_html(evaluation_page(found, groupings), links)
