"""Tells what a report is about, and writes the pages that its readers may see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from flare.common.files import write_whole
from flare.ranking.options import RankingOptions
from flare.reports.cases.options import CaseOptions
from flare.reports.model import INDEX, RANKING_JSON, TEAMS, Page
from flare.reports.render.html import page_html
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.groups_csv import read_groups
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluation
from flare.results.team_folder import is_team

if TYPE_CHECKING:
    from flare.reports.cases.pages import OnDrawn


class Kind(Enum):
    """What a report is about, in words of an error."""

    EVALUATION = "one evaluation"
    COMPARISON = "two or more evaluations"
    TEAM = "the folder of one team"
    RANKING = "the results of all teams"
    WRITTEN = "a ranking that was written"


def kind_of(sources: Sequence[Path]) -> Kind:
    """What a report of these sources is about.

    Several sources are evaluations, all of them: whoever reads them says so.
    """
    if len(sources) > 1:
        return Kind.COMPARISON
    if sources[0].suffix.lower() == ".json":
        return Kind.EVALUATION
    if is_team(sources[0]):
        return Kind.TEAM
    return Kind.WRITTEN if _is_written(sources[0]) else Kind.RANKING


def _is_written(folder: Path) -> bool:
    """Whether a folder has a ranking, and not the results as well."""
    if not (folder / RANKING_JSON).is_file():
        return False
    return not any(is_team(own) for own in folder.iterdir() if own.is_dir())


def is_unscored(results: Path) -> bool:
    """Whether teams were measured, and none of them has scores yet."""
    if not results.is_dir():
        return False
    measured = [file.parent for file in results.glob(f"*/{EFFICIENCY_CSV}")]
    return bool(measured) and not any(results.glob(f"*/{METRICS_JSON}"))


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
    cases: CaseOptions | None = None,
    on_drawn: OnDrawn | None = None,
    ranking: RankingOptions | None = None,
) -> Path:
    """Write pages of results.

    Parameters
    ----------
    sources : sequence of Path
        A metrics.json; several of them, which are compared with the first; the folder
        of a team; the results of all teams, which are ranked, or shown as
        a measurement if none has scores yet; or a ranking that was written.
    output : Path
        The page, where its name ends in ``.html``; else a folder, whose ``index.html``
        leads to all other pages. Each is written whole or not at all.
    is_organiser : bool
        Whether the pages may hold what would tell of the references.
    figures : Path, optional
        A folder for figures for a paper, which only organisers get.
    groups : Path, optional
        A CSV file of groups of cases, as `flare.results.groups_csv` reads it.
    cases : CaseOptions, optional
        For the organisers' report of one evaluation, in a folder: the pages of cases
        that it gets as well; each is told to `on_drawn`.
    ranking : RankingOptions, optional
        How teams are ranked, and what of a ranking everybody may see.

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
        links=_write_cases(sources[0], output, cases, on_drawn) if cases else {},
        ranking=ranking or RankingOptions(),
    )
    if not is_folder:
        write_whole(output, page_html(next(found)[1]))
        return output
    written = set()
    for file, page in found:
        write_whole(output / file, page_html(page))
        written.add(output / file)
    if any(file.parent == output / TEAMS for file in written):
        for old in (output / TEAMS).glob("*.html"):
            if old not in written:
                old.unlink()  # of a team that was disqualified since, perhaps
    return output / INDEX


def _write_cases(
    source: Path, folder: Path, cases: CaseOptions, on_drawn: OnDrawn | None
) -> Mapping[str, str]:
    """Write the pages of cases before those that lead to them: the file of each."""
    # Here, as other pages should not wait for SciPy.
    from flare.reports.cases.pages import case_html, case_links, case_pages

    evaluation = read_evaluation(source)
    for file, page in case_pages(source, evaluation, cases, on_drawn):
        write_whole(folder / file, case_html(page))
    return case_links(evaluation, cases)


def _pages(
    sources: Sequence[Path],
    *,
    is_organiser: bool,
    has_teams: bool,
    groups: Path | None,
    figures: Path | None,
    links: Mapping[str, str],
    ranking: RankingOptions,
) -> Iterator[tuple[str, Page]]:
    """The pages and their files, each made when it is asked for; the index first."""
    # Imported here: no page should wait for what another one needs.
    source, kind = sources[0], kind_of(sources)
    if kind is Kind.COMPARISON:
        from flare.reports.comparison_page import comparison_page

        yield INDEX, comparison_page(sources, is_organiser=is_organiser)
    elif kind is Kind.TEAM:
        from flare.reports.team import team_page

        yield INDEX, team_page(source, is_organiser=is_organiser)
    elif kind is Kind.EVALUATION:
        yield (
            INDEX,
            _evaluation(source, groups, figures, links, is_organiser=is_organiser),
        )
    elif kind is Kind.RANKING and is_organiser and is_unscored(source):
        from flare.reports.measuring import measuring_page, read_progress

        yield INDEX, measuring_page(read_progress(source))
    else:
        from flare.reports.ranking.pages import ranking_pages

        yield from ranking_pages(
            source,
            ranking,
            is_written=kind is Kind.WRITTEN,
            is_organiser=is_organiser,
            has_teams=has_teams,
            figures=figures,
            groups=groups,
        )


def _evaluation(
    source: Path,
    groups: Path | None,
    figures: Path | None,
    links: Mapping[str, str],
    *,
    is_organiser: bool,
) -> Page:
    """The page of an evaluation, with links to the pages of cases."""
    from flare.reports.evaluation import organiser_page, participant_page
    from flare.reports.scores import evaluation_names, own_scores

    found = read_evaluation(source)
    groupings = read_groups(groups, found.scores.cases) if groups else ()
    if not is_organiser:
        return participant_page(own_scores(found), groupings)
    if figures:
        from flare.reports.paper_figures import write_evaluation_figures

        write_evaluation_figures(found, figures, groupings)
    return organiser_page(found, groupings, links, evaluation_names([source])[0])
