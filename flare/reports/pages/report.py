"""Writes the pages of results that their readers may see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flare.common.files import write_whole
from flare.reports.pages.evaluation import evaluation_html, evaluation_page
from flare.reports.pages.participant import participant_html, participant_page
from flare.reports.pages.sources import Kind, kind_of
from flare.results.errors import RankingError
from flare.results.evaluation_file import read_evaluation
from flare.results.groups_csv import read_groups
from flare.results.metrics_json import METRICS_JSON

INDEX = "index.html"
"""The page of a folder that leads to the others."""


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
    **ranking: Any,
) -> Path:
    """Write pages of results.

    Parameters
    ----------
    sources : sequence of Path
        A metrics.json; or the results of all teams, which are ranked.
    output : Path
        The page, where its name ends in ``.html``; else a folder, whose ``index.html``
        leads to all other pages. Each is written whole or not at all.
    is_organiser : bool
        Whether the pages may hold what would tell of the references.
    figures : Path, optional
        A folder for figures for a paper, which only organisers get.
    groups : Path, optional
        A CSV file of groups of cases, as `flare.results.groups_csv` reads it.
    **ranking
        As `flare.reports.ranking.ranking.rank` takes them.

    Returns
    -------
    Path
        The page to open.

    Raises
    ------
    MetricsFileError, RankingError, GroupsFileError
        If a source, or the file of groups, cannot be read.
    OutputError
        If a page cannot be written.
    """
    found = _pages(
        sources, is_organiser=is_organiser, figures=figures, groups=groups, **ranking
    )
    if is_page(output):
        write_whole(output, next(found)[1])
        return output
    for file, html in found:
        write_whole(output / file, html)
    return output / INDEX


def _pages(
    sources: Sequence[Path],
    *,
    is_organiser: bool,
    figures: Path | None,
    groups: Path | None,
    **ranking: Any,
) -> Iterator[tuple[str, str]]:
    """The pages and their files, each made when it is asked for; the index first."""
    source = sources[0]
    if kind_of(sources) is not Kind.EVALUATION:
        yield (
            INDEX,
            _ranking_html(
                source,
                is_organiser=is_organiser,
                figures=figures,
                groups=groups,
                **ranking,
            ),
        )
        return
    found = read_evaluation(source)
    groupings = read_groups(groups, found.scores.cases) if groups else ()
    if not is_organiser:
        yield INDEX, participant_html(participant_page(found, groupings))
        return
    if figures:
        from flare.reports.figures.folder import write_evaluation_figures

        write_evaluation_figures(found, figures, groupings)
    yield INDEX, evaluation_html(evaluation_page(found, groupings))


def _ranking_html(
    source: Path,
    *,
    is_organiser: bool,
    figures: Path | None,
    groups: Path | None,
    **ranking: Any,
) -> str:
    """The page of a ranking."""
    # Here, as the page of an evaluation should not wait for pandas.
    from flare.reports.pages.ranking import organiser_ranking, public_ranking
    from flare.reports.pages.ranking_page import organiser_html, public_html
    from flare.reports.ranking.ranking import rank

    if (source / METRICS_JSON).exists():
        problem = "it is the folder of one team"
        remedy = (
            f"Give its {METRICS_JSON}, or the folder above it, which has one for each"
            " team."
        )
        raise RankingError(str(source), problem, remedy)
    analysis = rank(source, **ranking).analysis
    withdrawn = [decision.case for decision in analysis.decisions.withdrawn]
    groupings = read_groups(groups, analysis.board.cases, withdrawn) if groups else ()
    if is_organiser:
        found = organiser_ranking(analysis, groupings)
        if figures:
            from flare.reports.figures.folder import write_ranking_figures

            write_ranking_figures(analysis, found, figures)
        return organiser_html(found)
    return public_html(public_ranking(analysis, groupings))
