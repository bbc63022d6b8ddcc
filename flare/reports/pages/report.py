"""Writes the page of results that its readers may see."""

from __future__ import annotations

from pathlib import Path

from flare.common.files import write_whole
from flare.reports.pages.evaluation import evaluation_html, evaluation_page
from flare.reports.pages.participant import participant_html, participant_page
from flare.results.evaluation_file import read_evaluation


def write_report(source: Path, output: Path, *, is_organiser: bool) -> None:
    """Write a page of the results of an evaluation.

    Parameters
    ----------
    source : Path
        A metrics.json.
    output : Path
        The file to write, whole or not at all.
    is_organiser : bool
        Whether the page may hold what would tell of the references.

    Raises
    ------
    MetricsFileError
        If the source is no metrics.json.
    OutputError
        If the page cannot be written.
    """
    found = read_evaluation(source)
    if is_organiser:
        html = evaluation_html(evaluation_page(found))
    else:
        html = participant_html(participant_page(found))
    write_whole(output, html)
