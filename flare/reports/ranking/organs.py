"""Shows who is best at which organ: the means of teams by organ, shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from flare.challenge.metrics import Metric, metric_named
from flare.common.text import count, listing
from flare.ranking.means import Mean, Means
from flare.reports.model import BEST, Cell, Column, Table, table_of
from flare.reports.scores import metric_cell


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganMeans:
    """The means of teams by one metric and by organ, as far as readers may know."""

    metric: Metric
    organs: tuple[str, ...]
    cases: int
    teams: Mapping[str, Sequence[float | None]]
    """The means of each team by organ, in the order of the ranking."""
    titles: tuple[str, ...]
    """The organs in print, with how many cases their means are of, if that is fewer."""
    guests: frozenset[str]
    best: frozenset[tuple[str, str]]
    """Team and organ of the best mean of all cases, or of several that look equal."""

    def of_team(self, team: str) -> OrganMeans:
        """The part of a team, without a field for any other."""
        teams = {team: self.teams[team]}
        return replace(self, teams=teams, guests=frozenset(), best=frozenset())

    def cell(self, team: str, organ: str) -> Cell:
        """The mean of a team by an organ, on its shade; the best one is bold.

        An organ without lesions has no metric of them.
        """
        if organ not in self.organs:
            return Cell("-", css="none")
        cell = metric_cell(self.metric, self.teams[team][self.organs.index(organ)])
        is_best = (team, organ) in self.best
        return replace(cell, css=f"{cell.css} {BEST}".strip()) if is_best else cell


def organ_means(means: Means, *, is_organiser: bool) -> tuple[OrganMeans, ...]:
    """The means by organ; others than organisers get them rounded, if they may."""
    by_metric: dict[str, list[Mean]] = {}
    for mean in means.rows:
        cases = means.fewest_cases(mean.metric)
        if mean.organ and (is_organiser or metric_named(mean.metric).is_told(cases)):
            by_metric.setdefault(mean.metric, []).append(mean)
    of_rows = partial(_means_of, means=means, is_organiser=is_organiser)
    return tuple(map(of_rows, by_metric.values()))


def shown_mean(mean: Mean, means: Means, *, is_organiser: bool) -> float | None:
    """A mean, None without any result; others than organisers get it rounded."""
    value = None if mean.missing == means.cases else mean.mean
    if value is None or is_organiser:
        return value
    return float(metric_named(mean.metric).text(value))


def _means_of(rows: Sequence[Mean], means: Means, *, is_organiser: bool) -> OrganMeans:
    """The means by one metric; those that look like the best one are best, too."""
    teams: dict[str, list[float | None]] = {}
    best_values = set()
    for row in means.best.intersection(rows):
        best_values.add((row.organ, shown_mean(row, means, is_organiser=False)))
    best = set()
    for row in rows:
        value = shown_mean(row, means, is_organiser=is_organiser)
        teams.setdefault(row.team, []).append(value)
        rounded = shown_mean(row, means, is_organiser=False)
        is_complete = row.n + means.left_out[row] == means.cases
        competes = is_complete and row.team not in means.guests
        looks_best = rounded is not None and (row.organ, rounded) in best_values
        if competes and looks_best:
            best.add((row.team, row.organ))
    organs = dict.fromkeys(map(attrgetter("organ"), rows))
    return OrganMeans(
        metric=metric_named(rows[0].metric),
        organs=tuple(organs),
        cases=means.cases,
        teams=teams,
        titles=tuple(_organ_title(organ, rows, means) for organ in organs),
        guests=means.guests,
        best=frozenset(best),
    )


def _organ_title(organ: str, rows: Sequence[Mean], means: Means) -> str:
    """An organ, and how many cases its means are of, where some are left out."""
    title = organ.replace("_", " ")
    numbers = [means.cases - means.left_out[row] for row in rows if row.organ == organ]
    fewest, most = min(numbers), max(numbers)
    if fewest == means.cases:
        return title
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{title} ({number} of {means.cases})"


def organ_table(means: OrganMeans) -> Table:
    """A row for each team, in the order of the ranking, and a column for each organ."""
    columns = [Column("team", means.teams, is_text=True)]
    for organ, organ_title in zip(means.organs, means.titles, strict=True):
        cells = [means.cell(team, organ) for team in means.teams]
        columns.append(Column(organ_title, cells))
    guests = [n for n, team in enumerate(means.teams) if team in means.guests]
    title = f"{means.metric.heading} by organ, means over {count(means.cases, 'case')}"
    best = sorted(means.best, key=lambda pair: (means.organs.index(pair[1]), pair[0]))
    names = listing(f"{organ.replace('_', ' ')} {team}" for team, organ in best)
    bold = f"; bold: the best ({names})" if best else ""
    return table_of(f"{title}{bold}", columns, quiet=guests)


def team_table(team: str, all_means: Sequence[OrganMeans]) -> Table:
    """The means of one team: a row for each organ, and a column for each metric."""
    titles: dict[str, str] = {}
    for means in reversed(all_means):
        titles |= zip(means.organs, means.titles, strict=True)
    columns = [Column("organ", titles.values(), is_text=True)]
    for means in all_means:
        cells = map(partial(means.cell, team), titles)
        columns.append(Column(means.metric.heading, cells))
    caption = f"Own means by organ, over {count(all_means[0].cases, 'case')}"
    return table_of(caption, columns)
