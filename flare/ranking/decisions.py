"""What organisers look at before they publish a ranking, and what they decide then."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import compress, pairwise
from pathlib import Path

import numpy as np

from flare.challenge.metrics import scored
from flare.common.files import read_regular
from flare.common.schema import build, check, problems_text
from flare.common.text import count, listing, nearest, printable, safe, why
from flare.ranking.ranks import Board
from flare.ranking.table import ResultTable
from flare.results.archives_csv import EXPLAINED
from flare.results.errors import RankingError
from flare.results.team_folder import check_names, plain_name

SHARE_OF_ZEROS = 0.1
"""A team with DSC 0 on more than this share of the cases is pointed out."""

HARDLY_EVER, FEWEST_CASES = 0.9, 3
"""A team with DSC 0 for an organ on this share of at least this many cases is, too."""

_REMEDY = "The documentation's page The final ranking shows such a file."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """What was decided, all of it in words."""

    reason: str
    """Why it was decided."""
    date: str
    """When it was decided."""

    def __post_init__(self) -> None:
        """Check the values."""
        for row in fields(self):
            value = getattr(self, row.name)
            expected = "a text: who reads the ranking will ask"
            check(bool(value.strip()), row.name, value, expected)

    def line(self, subject: str) -> str:
        """The decision on a subject, made safe so that it cannot break the line."""
        return f"{subject}: {printable(self.reason)} ({safe(self.date)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDecision(_Decision):
    """A case that does not count."""

    case: str
    """Its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamDecision(_Decision):
    """A team that is disqualified, or takes part out of competition."""

    team: str
    """Its name in the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameDecision(TeamDecision):
    """The name that a team is shown by."""

    name: str
    """What it is called instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Everything that was decided."""

    withdrawn: tuple[CaseDecision, ...] = ()
    """Cases that do not count."""
    disqualified: tuple[TeamDecision, ...] = ()
    """Teams that are not ranked."""
    out_of_competition: tuple[TeamDecision, ...] = ()
    """Teams such as baselines, which are shown, and change no other team's rank."""
    names: tuple[NameDecision, ...] = ()
    """Names that teams are shown by."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Each decision in a line, for printing with the ranking."""
        lines = []
        for withdrawal in self.withdrawn:
            lines.append(withdrawal.line(f"Withdrawn: case {safe(withdrawal.case)}"))
        for decision in self.disqualified:
            lines.append(decision.line(f"Disqualified: {safe(decision.team)}"))
        for guest in self.out_of_competition:
            lines.append(guest.line(f"Out of competition: {safe(guest.team)}"))
        for shown in self.names:
            lines.append(shown.line(f"Shown as {safe(shown.name)}: {safe(shown.team)}"))
        return tuple(lines)

    @property
    def guests(self) -> frozenset[str]:
        """Teams that are out of competition, as they are shown."""
        return frozenset(self.name_of(guest.team) for guest in self.out_of_competition)

    def name_of(self, team: str) -> str:
        """The name that a team is shown by."""
        names = (decision.name for decision in self.names if decision.team == team)
        return next(names, team)


def read_decisions(file: Path) -> Decisions:
    """Read a TOML file of decisions.

    A RankingError is raised if it breaks a rule; the message names the key and the
    value.
    """
    try:
        values = tomllib.loads(read_regular(file))
    except OSError as error:
        reason = why(error)
        raise RankingError(str(file), f"cannot be read ({reason})", _REMEDY) from error
    except (ValueError, RecursionError) as error:
        raise RankingError(str(file), safe(str(error)), _REMEDY) from error
    try:
        # Dates become texts, as they may also be written in quotes.
        return build(Decisions, json.loads(json.dumps(values, default=str)))
    except (ValueError, RecursionError) as error:
        raise RankingError(str(file), str(error), _REMEDY) from error


def apply_decisions(
    table: ResultTable, decisions: Decisions, file: str = "decisions"
) -> ResultTable:
    """Take out withdrawn cases and disqualified teams, and rename teams as decided.

    A RankingError is raised if a decision is about a case or team that is not there,
    two decisions are about the same, or nothing is left.
    """
    _check_names_in(table, decisions, file)
    withdrawn = {decision.case for decision in decisions.withdrawn}
    disqualified = {decision.team for decision in decisions.disqualified}
    name_of = decisions.name_of
    names = {team: name_of(team) for team in table.teams if team not in disqualified}
    if withdrawn.issuperset(table.cases) or decisions.guests.issuperset(names.values()):
        raise RankingError(file, "no case, or no team, is left", _REMEDY)
    if len(set(map(plain_name, names.values()))) < len(names):
        raise RankingError(file, "two teams are shown by one name", _REMEDY)
    check_names(file, "team", list(names.values()))
    selected = table.select(names, withdrawn)
    is_absent = np.asarray(np.isnan(selected.values).all(axis=(0, 1)))
    absent = list(compress(table.metrics, is_absent))
    if absent:
        raise RankingError(file, f"no value of {listing(absent)} is left", _REMEDY)
    warned = tuple((name_of(team), line) for team, line in table.warned)
    return replace(selected, roll=table.roll.shown(name_of), warned=warned)


def _check_names_in(table: ResultTable, decisions: Decisions, file: str) -> None:
    """Refuse decisions about what the table does not have, and two about the same."""
    cases = [decision.case for decision in decisions.withdrawn]
    unranked = (*decisions.disqualified, *decisions.out_of_competition)
    problems = [
        *_unknown("case", cases, table.all_cases),
        *_unknown("team", [decision.team for decision in unranked], table.teams),
        *_unknown("team", [name.team for name in decisions.names], table.teams),
    ]
    if problems:
        raise RankingError(file, problems_text(problems), _REMEDY)


def _unknown(
    kind: str, decided: Iterable[str], present: Collection[str]
) -> Iterator[str]:
    """Problems with names that are not in the table, or that were decided on twice."""
    for name, times in Counter(decided).items():
        if name not in present:
            yield f"there is no {kind} {safe(name)}{nearest(name, present)}"
        elif times > 1:
            yield f"{count(times, 'decision')} are about {kind} {safe(name)}"


# --- What to look at --------------------------------------------------------------


def find_flags(table: ResultTable, board: Board) -> tuple[str, ...]:
    """Find what is odd about results, each in a line; what matters most comes first."""
    return (
        # What may have made scores wrong is first: only the first ones stand in a box.
        *(f"{safe(team)}: {printable(line)}" for team, line in table.warned),
        *table.notes,
        *table.roll.lines,
        *organ_flags(table),
        *_teams_without_results(board),
        *_zeros_that_rank_well(board),
        *_cases_alike(board),
        *_cases_of_zeros(board),
        *_orders_within_noise(board),
    )


def organ_flags(table: ResultTable) -> Iterator[str]:
    """Organs that a team has hardly ever found, on cases where most others have."""
    columns = scored((*table.metrics, *table.others))
    organs = {c.name: safe(c.part_title) for c in columns if c.base == "dsc"}
    organs.pop("dsc", None)  # the mean over organs
    names = list(organs.values())
    scores = table.cube("value", table.teams, list(organs))
    filled = np.nan_to_num(scores)
    finders = (filled > 0).sum(axis=0)
    # A team whose low scores are explained, as by a mirrored axis, is not told twice.
    explained = {team for team, line in table.warned if line.endswith(EXPLAINED)}
    for number, team in enumerate(table.teams):
        other_finders = finders - (filled[number] > 0)
        is_found_by_most = other_finders * 2 > len(table.teams) - 1
        is_counted = is_found_by_most & ~np.isnan(scores[number])
        cases = is_counted.sum(axis=0)
        zeros = (is_counted & (scores[number] == 0)).sum(axis=0)
        is_lost = (cases >= FEWEST_CASES) & (zeros >= HARDLY_EVER * cases)
        lines = []
        for organ in np.flatnonzero(is_lost):
            other_scores = np.delete(filled[:, is_counted[:, organ], organ], number, 0)
            lines.append(
                f"{names[organ]} ({zeros[organ]} of {cases[organ]} cases, others"
                f" {np.median(other_scores):.2f} at the median)"
            )
        if lines and team not in explained:
            text = ", ".join(lines[:3])
            if len(lines) > 3:
                text += f" and {count(len(lines) - 3, 'more organ')}"
            yield f"{safe(team)} has DSC 0 where others have found the organ: {text}"


def _teams_without_results(board: Board) -> Iterator[str]:
    """Teams whose results are all missing, or all by a metric that another team has."""
    is_absent = np.asarray(np.isnan(board.values).all(axis=1))
    is_absent[:, is_absent.all(axis=0)] = False
    for number, team in enumerate(board.teams):
        names = list(compress(board.rules.names, is_absent[number]))
        if names:
            has_some = len(names) < len(board.rules.names)
            of = f" of {listing(names)}" if has_some else ""
            yield f"{safe(team)} has no result{of} at all: was it run as it should be?"


def _zeros_that_rank_well(board: Board) -> Iterator[str]:
    """Teams with many cases of DSC 0 that are ahead of more accurate teams."""
    dsc = board.dsc
    if dsc is None:
        return
    zeros = (dsc == 0).sum(axis=1)
    means = np.ma.masked_invalid(dsc).mean(axis=1).filled(np.nan)
    sums = board.case_sums.sum(axis=1)
    for index, team in enumerate(board.teams):
        is_behind = (sums > sums[index]) & (means > means[index])
        behind = list(compress(board.teams, is_behind))
        if zeros[index] > SHARE_OF_ZEROS * len(board.cases) and behind:
            has = "has" if len(behind) == 1 else "have"
            advice = ": consider a gate (--gate)" if board.rules.has_cases else ""
            yield (
                f"{safe(team)} has DSC 0, or none, on {zeros[index]} of"
                f" {len(board.cases)} cases, and yet is ahead of {listing(behind)},"
                f" which {has} a higher DSC{advice}"
            )


def _cases_alike(board: Board) -> Iterator[str]:
    """Cases on which all teams have the same value, which decide nothing."""
    if len(board.teams) < 2:
        return
    for index, name in enumerate(board.rules.names):
        column = board.values[:, :, index]
        is_alike = (column == column[0]).all(axis=0)
        cases = list(compress(board.cases, is_alike))
        if cases:
            yield (
                f"All teams have the same {name} on {len(cases)} of"
                f" {len(board.cases)} cases: {listing(cases)}"
            )


def _cases_of_zeros(board: Board) -> Iterator[str]:
    """Cases on which no team has found anything."""
    dsc = board.dsc
    if dsc is None:
        return
    cases = list(compress(board.cases, (dsc == 0).all(axis=0)))
    if cases:
        yield (
            f"No team has a DSC above 0 on {listing(cases)}: are the reference and the"
            " image right?"
        )


def _orders_within_noise(board: Board) -> Iterator[str]:
    """Neighbours that could change places if they were measured again."""
    spreads = board.spreads
    if spreads is None or np.isnan(spreads).all() or not board.rules.has_cases:
        return
    ranks, totals = board.doubled_ranks, board.case_sums.sum(axis=1)
    for (first, better), (second, worse) in pairwise(enumerate(board.teams)):
        gap = np.abs(board.values[first] - board.values[second])
        # Where a value is missing, the comparison is false.
        is_close = gap <= np.fmax(spreads[first], spreads[second])
        is_close_win = is_close & (ranks[first] < ranks[second])
        gains = np.where(is_close_win, ranks[second] - ranks[first], 0)
        # Each win that turns into a loss takes from one team what the other gets.
        possible_change = 2 * int(gains.sum(axis=0) @ board.rules.weights)
        if possible_change and possible_change >= totals[second] - totals[first]:
            won = count(int(is_close_win.sum()), "comparison")
            yield (
                f"The order of {safe(better)} and {safe(worse)} is within the noise of"
                f" the measurement: on {won} that {safe(better)} wins, their values"
                " differ no more than those of one team do when it is measured again"
            )
