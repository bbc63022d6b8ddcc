"""Fills a folder with all that a paper takes: figures, numbers, tables, Methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flare.common.files import write_whole
from flare.ranking.rank import Analysis
from flare.reports.figures.evaluation_plates import evaluation_plates
from flare.reports.figures.group_plates import rank_group_plates, score_group_plates
from flare.reports.figures.group_tables import rank_group_tables, score_group_tables
from flare.reports.figures.plates import write_plates
from flare.reports.figures.ranking_plates import ranking_plates
from flare.reports.figures.scoring_text import evaluation_methods, organs_latex
from flare.reports.pages.evaluation import scores_of
from flare.reports.pages.ranking import OrganiserRanking
from flare.reports.ranking.methods import methods_text
from flare.reports.ranking.publication_tables import latex_text
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile

METHODS = "methods.txt"


def write_evaluation_figures(
    found: EvaluationFile, folder: Path, groupings: Sequence[Grouping] = ()
) -> None:
    """Write the figures of one evaluation, organs.tex, groups.tex and methods.txt.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    scores = scores_of(found)
    plates = (*evaluation_plates(scores), *score_group_plates(scores, groupings))
    write_plates(plates, folder)
    for name, text in score_group_tables(scores, groupings):
        write_whole(folder / name, text)
    write_whole(folder / "organs.tex", f"{organs_latex(scores)}\n")
    write_whole(folder / METHODS, f"{evaluation_methods(found)}\n")


def write_ranking_figures(
    analysis: Analysis, found: OrganiserRanking, folder: Path
) -> None:
    """Write the figures of a ranking, ranking.tex, groups.tex and methods.txt.

    Parameters
    ----------
    analysis : Analysis
        Of which the table and the Methods are made.
    found : OrganiserRanking
        What organisers are shown of it; the figures draw nothing else.
    folder : Path
        To write to.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    write_plates((*ranking_plates(found), *rank_group_plates(found)), folder)
    for name, text in rank_group_tables(found):
        write_whole(folder / name, text)
    write_whole(folder / "ranking.tex", f"{latex_text(analysis)}\n")
    write_whole(folder / METHODS, f"{methods_text(analysis)}\n")
