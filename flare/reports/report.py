"""Tells the kind of a report by its sources, and writes the pages for its readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from flare.challenge.metrics import lesions_by
from flare.common.files import write_whole
from flare.common.options import argument, option
from flare.ranking.rules import RankingOptions
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.model import INDEX, TEAMS, Page
from flare.reports.render.html import page_html
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.groups_csv import read_groups
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import read_evaluation
from flare.results.scores import LowScores
from flare.results.team_folder import is_team

if TYPE_CHECKING:
    from flare.ranking.comparison import ComparisonFile

Links = Mapping[str, str]  # from cases to their pages
Causes = Mapping[str, Sequence[str]]  # from causes of low scores to their cases


class Kind(Enum):
    """The kinds of reports; an error names what one is about by its value."""

    EVALUATION = "one evaluation"
    COMPARISON = "two or more evaluations"
    TEAM = "the folder of one team"
    RANKING = "the results of all teams"
    WRITTEN = "a ranking that was written"


def kind_of(sources: Sequence[Path]) -> Kind:
    """The kind of a report of these sources.

    Several sources are taken for evaluations: whoever reads them refuses others.
    """
    if len(sources) > 1:
        return Kind.COMPARISON
    if sources[0].suffix.lower() == ".json":
        return Kind.EVALUATION
    if is_team(sources[0]):
        return Kind.TEAM
    # Here, as it loads all of ranking.
    from flare.ranking.ranking_json import RANKING_JSON

    has_ranking = (sources[0] / RANKING_JSON).is_file()
    is_written = has_ranking and not any(map(is_team, sources[0].iterdir()))
    return Kind.WRITTEN if is_written else Kind.RANKING


def is_unscored(results: Path) -> bool:
    """Whether teams were measured, and none of them has scores yet."""
    is_measured = any(results.glob(f"*/{EFFICIENCY_CSV}"))
    return is_measured and not any(results.glob(f"*/{METRICS_JSON}"))


def is_page(output: Path) -> bool:
    """Whether a report goes into one file, not into a folder."""
    return output.suffix.lower() in (".html", ".htm")


_OTHER_FILES = (".csv", ".json", ".md", ".pdf", ".png", ".svg", ".txt", ".zip")


def page_or_folder(text: str) -> Path:
    """A file whose name says that it is a page, or a folder for several."""
    if Path(text).suffix.lower() in _OTHER_FILES:
        raise ValueError(
            f"{text!r} is neither a page, such as report.html, nor a folder"
        )
    return Path(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The sources of a report, and for whom it is."""

    sources: tuple[Path, ...] = argument(
        "The metrics.json of an evaluation; several of them, which are compared case by"
        " case with the first; the folder of a measured team; the results of all teams,"
        " as flare rank takes them, which are ranked; or the folder that flare rank has"
        " written.",
        metavar="SOURCE...",
    )
    output: Path = option(
        "Write the pages into this folder, beginning with index.html; or one page,"
        " which needs no other file, into this file.",
        parse=page_or_folder,
        metavar="FOLDER|FILE.html",
    )
    audience: Literal["organiser", "participant"] = option(
        "Show what these people may know: participants get scores of three decimals,"
        " or ranks (default: participant). Whoever gets scores of several submissions"
        " can work out volumes of the references even from three decimals.",
        default="participant",
    )
    page: Literal["cases", "means"] = option(
        "Show participants the scores of each case, or means alone (default: cases).",
        default="cases",
    )
    figures: Path | None = option(
        "Also write figures for a paper into this folder, as SVG and PDF with their"
        " numbers, the table in LaTeX and the Methods; needs --audience organiser and"
        " matplotlib.",
        default=None,
        metavar="FOLDER",
    )
    groups: Path | None = option(
        "Also show each group of cases: this file has a column case, and others such as"
        " centre, scanner or phase, by each of which the cases are grouped.",
        default=None,
        metavar="FILE.csv",
    )
    cases: CaseOptions = field(default_factory=CaseOptions)
    ranking: RankingOptions = field(default_factory=RankingOptions)
    on_drawn: OnDrawn | None = None

    @property
    def is_organiser(self) -> bool:
        """Whether the pages may hold what would tell of the references."""
        return self.audience == "organiser"

    def write(self) -> Path:
        """Write the pages, each whole or not at all, and return the one to open.

        A MetricsFileError, RankingError or GroupsFileError is raised if a source cannot
        be read, or label maps are not those that it was made from; an OutputError if a
        page cannot be written.
        """
        output = self.output
        links, causes = self._write_cases()
        if self.cases.case and is_page(output):
            return output
        pages = self._pages(links, causes)
        if is_page(output):
            _, page = next(pages)
            write_whole(output, page_html(page))
            return output
        written = set()
        for file, page in pages:
            write_whole(output / file, page_html(page))
            written.add(output / file)
        pages_of_teams = set((output / TEAMS).glob("*.html"))
        if not written.isdisjoint(pages_of_teams):
            for old_page in pages_of_teams - written:
                old_page.unlink()  # of a team that was disqualified since, perhaps
        return output / INDEX

    def _write_cases(self) -> tuple[Links, Causes]:
        if not self.cases.ground_truth:
            return {}, {}
        # Here, as other pages should not wait for SciPy.
        if self.cases.case:
            return self._write_cases_by_all_teams(), {}
        from flare.reports.cases.pages import case_html, case_links, case_pages

        source, cases = self.sources[0], self.cases
        evaluation = read_evaluation(source)
        causes: dict[str, list[str]] = {}
        for drawn in case_pages(source, evaluation, cases, self.on_drawn):
            write_whole(self.output / drawn.file, case_html(drawn.page))
            if drawn.cause:
                causes.setdefault(drawn.cause, []).append(drawn.case)
        return case_links(evaluation, cases), causes

    def _write_cases_by_all_teams(self) -> Links:
        """Write the pages of cases by all teams, or the only one."""
        from flare.reports.cases.all_teams import all_teams_pages

        links, output, has_ranking = {}, self.output, not is_page(self.output)
        for case, file, html in all_teams_pages(
            self.sources[0], self.cases, self.on_drawn, has_ranking=has_ranking
        ):
            write_whole(output / file if has_ranking else output, html)
            links[case] = file
        return links

    def _pages(self, links: Links, causes: Causes) -> Iterator[tuple[str, Page]]:
        """The pages and their files, each made when asked for; the index first."""
        # Imported here: no page should wait for what another one needs.
        source, kind = self.sources[0], kind_of(self.sources)
        is_organiser = self.is_organiser
        if kind is Kind.COMPARISON:
            from flare.reports.comparison import read_comparison
            from flare.reports.comparison_page import comparison_page

            comparison = read_comparison(self.sources, is_organiser=is_organiser)
            self._write_comparison(comparison.numbers)
            with lesions_by(comparison.lesions):
                page = comparison_page(comparison)
            yield INDEX, page
        elif kind is Kind.TEAM:
            from flare.reports.team import team_page

            yield INDEX, team_page(source, is_organiser=is_organiser)
        elif kind is Kind.EVALUATION:
            yield INDEX, self._evaluation(links, causes)
        elif kind is Kind.RANKING and is_organiser and is_unscored(source):
            from flare.reports.measuring import measuring_page, read_progress

            yield INDEX, measuring_page(read_progress(source))
        else:
            from flare.reports.ranking_pages import ranking_pages

            yield from ranking_pages(
                source,
                self.ranking,
                is_written=kind is Kind.WRITTEN,
                is_organiser=is_organiser,
                has_teams=not is_page(self.output),
                figures=self.figures,
                groups=self.groups,
                cases=links,
            )

    def _write_comparison(self, comparison: ComparisonFile) -> None:
        """Write comparison.json, or take away an earlier one from participants."""
        from flare.ranking.comparison import COMPARISON_JSON, comparison_json

        file = self.output / COMPARISON_JSON
        if is_page(self.output):
            file = self.output.with_suffix(f".{COMPARISON_JSON}")
        if self.is_organiser:
            write_whole(file, comparison_json(comparison))
        else:
            with suppress(OSError):  # where it cannot go, no page can be written
                file.unlink()

    def _evaluation(self, links: Links, causes: Causes) -> Page:
        from flare.ranking.answers import read_sheets
        from flare.reports.evaluation import (
            means_alone,
            organiser_page,
            participant_page,
        )
        from flare.reports.scores import evaluation_names, own_scores

        (source,) = self.sources
        evaluation = read_evaluation(source)
        groups = read_groups(self.groups, evaluation.cases) if self.groups else ()
        with lesions_by(evaluation.lesions):
            if not self.is_organiser:
                page = participant_page(own_scores(evaluation), groups)
                return page if self.page == "cases" else means_alone(page)
            if self.figures:
                from flare.reports.paper.figures import write_evaluation_figures

                write_evaluation_figures(evaluation, self.figures, groups)
            (name,) = evaluation_names([source])
            sheets = read_sheets(source, evaluation)
            low_scores = list(evaluation.low_scores)
            for cause, cases in causes.items():
                reason = f"the prediction as a whole: {cause}"
                low_scores.append(LowScores(reason=reason, cases=tuple(cases)))
            evaluation = replace(evaluation, low_scores=tuple(low_scores))
            return organiser_page(evaluation, groups, links, name, sheets)
