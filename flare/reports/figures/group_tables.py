"""Writes what groups of cases score as tables: in LaTeX, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flare.challenge.metrics import SCORES, is_score
from flare.common.files import csv_text
from flare.common.text import printable
from flare.reports.figures.group_plates import group_name, group_stem
from flare.reports.figures.names import file_stem
from flare.reports.figures.scoring_text import decimals_text, interval_text
from flare.reports.pages.case_scores import CaseScores
from flare.reports.pages.groups import GroupMean, group_mean
from flare.reports.pages.parts import NO_RESULT
from flare.reports.pages.ranking import OrganiserRanking
from flare.reports.ranking.latex import NEEDS, latex_table
from flare.results.groups_csv import Grouping

GROUPS_TEX = "groups.tex"

Tables = Iterator[tuple[str, str]]
"""Names of files, and what they hold."""

_MEAN = ("cases", "missing", "mean", "low", "high")


def _numbers(found: GroupMean) -> tuple[object, ...]:
    """The columns of a mean."""
    return found.cases, found.missing, found.mean, *(found.interval or (None, None))


def score_group_tables(scores: CaseScores, groupings: Sequence[Grouping]) -> Tables:
    """Of one evaluation: a CSV file for each column, and all of them in LaTeX."""
    tables = []
    for number, grouping in enumerate(groupings, start=1):
        stem = group_stem(number, grouping.column)
        rows = []
        printed = []
        for group, numbers in grouping.groups:
            for end, title in scores.rows:
                means = [
                    group_mean(score, scores.values[score + end], numbers)
                    for score in SCORES
                ]
                rows += [
                    (group, title, score, *_numbers(mean))
                    for score, mean in zip(SCORES, means, strict=True)
                ]
                cells = [printable(group), str(len(numbers)), title]
                for mean in means:
                    cells += [decimals_text(mean.mean), interval_text(mean.interval)]
                printed.append(cells)
        yield f"{stem}.csv", csv_text(("group", "organ", "metric", *_MEAN), rows)
        heads = ["Group", "Cases", "Organ"]
        for score in SCORES:
            heads += [f"{score.upper()}, mean", "95 % interval"]
        caption = (
            f"DSC and NSD by {printable(grouping.column)}: means, and their intervals"
            " by Gaffke's method, each for one group alone."
        )
        tables.append(latex_table(caption, stem, "lrlrlrl", [[heads], printed]))
    if tables:
        yield GROUPS_TEX, "\n\n".join([NEEDS, *tables]) + "\n"


def rank_group_tables(found: OrganiserRanking) -> Tables:
    """Of a ranking: CSV files of running times and such, and all tables in LaTeX."""
    tables = []
    teams = found.public.teams
    pairs = zip(found.public.groups, found.groupings, strict=True)
    for number, (ranked, grouping) in enumerate(pairs, start=1):
        stem = group_stem(number, grouping.column)
        groups = [group_name(*group) for group in ranked.groups]
        columns = f"l{'r' * len(groups)}"
        caption = (
            f"Ranks by {printable(grouping.column)}, with the number of cases of each"
            " group, each of which is ranked by itself."
        )
        rows = [
            [printable(team), *(str(own[row]) for own in ranked.ranks)]
            for row, team in enumerate(teams)
        ]
        heads = [["Team", *groups]]
        tables.append(latex_table(caption, f"{stem}_ranks", columns, [heads, rows]))
        for own in found.metrics:
            means = [
                [group_mean(own.metric, row, numbers) for _, numbers in grouping.groups]
                for row in own.values
            ]
            rows = [
                [printable(team), *(_mean_text(own.metric, mean) for mean in row)]
                for team, row in zip(teams, means, strict=True)
            ]
            caption = (
                f"{printable(own.title)} by {printable(grouping.column)}: means of the"
                " cases with a result"
                + (", with 95 % intervals." if is_score(own.metric) else ".")
            )
            label = f"{stem}_{file_stem(own.metric)}"
            tables.append(latex_table(caption, label, columns, [heads, rows]))
            if not is_score(own.metric):
                numbers = [
                    (team, group, *_numbers(mean)[:3])
                    for team, row in zip(teams, means, strict=True)
                    for (group, _), mean in zip(grouping.groups, row, strict=True)
                ]
                heading = ("team", "group", *_MEAN[:3])
                yield f"{stem}_{file_stem(own.metric)}.csv", csv_text(heading, numbers)
    if tables:
        yield GROUPS_TEX, "\n\n".join([NEEDS, *tables]) + "\n"


def _mean_text(metric: str, found: GroupMean) -> str:
    """A mean, its interval, and what is missing."""
    if found.mean is None:
        return NO_RESULT
    text = f"{found.mean:.3f}" if is_score(metric) else f"{found.mean:.1f}"
    if is_score(metric):
        text += f" ({interval_text(found.interval)})"
    return f"{text}, {found.missing} missing" if found.missing else text
