"""Writes the page of results that its readers may see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flare.common.files import write_whole
from flare.reports.pages.evaluation import evaluation_html, evaluation_page
from flare.reports.pages.participant import participant_html, participant_page
from flare.results.errors import RankingError
from flare.results.evaluation_file import is_evaluation, read_evaluation
from flare.results.metrics_json import METRICS_JSON


def write_report(
    source: Path, output: Path, *, is_organiser: bool, **ranking: Any
) -> None:
    """Write a page of results.

    Parameters
    ----------
    source : Path
        A metrics.json; or the results of all teams, which are ranked.
    output : Path
        The file to write, whole or not at all.
    is_organiser : bool
        Whether the page may hold what would tell of the references.
    **ranking
        As `flare.reports.ranking.ranking.rank` takes them.

    Raises
    ------
    MetricsFileError, RankingError
        If the source cannot be read.
    OutputError
        If the page cannot be written.
    """
    if not is_evaluation(source):
        html = _ranking_html(source, is_organiser=is_organiser, **ranking)
    elif is_organiser:
        html = evaluation_html(evaluation_page(read_evaluation(source)))
    else:
        html = participant_html(participant_page(read_evaluation(source)))
    write_whole(output, html)


def _ranking_html(source: Path, *, is_organiser: bool, **ranking: Any) -> str:
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
    if is_organiser:
        return organiser_html(organiser_ranking(analysis))
    return public_html(public_ranking(analysis))
