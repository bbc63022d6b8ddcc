"""Adds to the scores of teams what others have computed: RESULTS/TEAM/NAME.csv."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import filterfalse
from os.path import lexists
from pathlib import Path

from flare.challenge.formats import case_of
from flare.challenge.metrics import metric_named
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.text import listing, safe
from flare.results.csv_rows import read_rows
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.errors import RankingError
from flare.results.metrics_reading import EvaluationFile

_REMEDY = "It has the columns case and value; nothing here can compute it."

ValuesByCase = Mapping[str, float | None]
"""None is a value that is left out."""


def add_values(
    scores: Mapping[str, EvaluationFile],
    folders: Sequence[Path],
    challenge: Challenge,
    metrics: Sequence[RankedMetric],
) -> dict[str, EvaluationFile]:
    """Add the values of ``[[values]]`` to the scores of each team's folder.

    Cases are those of metrics.json. Where only answers are scored, questions that no
    answers.csv has may have values, if more than one team has them.

    A RankingError is raised if a file that is ranked is not there, cannot be read, has
    a case twice, an impossible value, or a case that nobody knows.
    """
    ranked = {rule.metric for rule in metrics}
    columns = {folder: _read_columns(folder, challenge, ranked) for folder in folders}
    shared = _shared_cases(columns)
    files = dict(scores)
    for folder, by_name in columns.items():
        file = scores[folder.name]
        values = dict(file.values)
        for name, column in by_name.items():
            known = set(file.cases)
            if not _has_maps(file):
                known |= shared[name]
            unknown = [*filterfalse(known.__contains__, column)]
            if unknown:
                problem = f"{listing(unknown)}: nobody else knows such a case"
                raise RankingError(str(folder / f"{name}.csv"), problem)
            values |= {(case, name): value for case, value in column.items()}
        files[folder.name] = replace(file, values=values)
    cases = set[str]().union(*(shared[name] for name in ranked & shared.keys()))
    has_runs = any(lexists(folder / EFFICIENCY_CSV) for folder in folders)
    others = ranked - shared.keys()
    needs_all = has_runs or any(metric_named(n).is_of_each_case for n in others)
    return _with_cases(files, cases, needs_all=needs_all)


def _has_maps(file: EvaluationFile) -> bool:
    """Whether metrics.json tells cases; one of answers alone does not."""
    return bool(file.content["case"])


def _shared_cases(
    columns: Mapping[Path, Mapping[str, ValuesByCase]],
) -> dict[str, set[str]]:
    """The cases of each table that more than one team has, or the only team."""
    fewest = min(2, len(columns))
    teams_by_case: dict[str, Counter[str]] = {}
    for by_name in columns.values():
        for name, column in by_name.items():
            teams_by_case.setdefault(name, Counter()).update(column.keys())
    return {
        name: {case for case, teams in counts.items() if teams >= fewest}
        for name, counts in teams_by_case.items()
    }


def _with_cases(
    scores: Mapping[str, EvaluationFile], value_cases: set[str], *, needs_all: bool
) -> dict[str, EvaluationFile]:
    """The scores, with the cases of values where only answers are scored.

    Cases that answers alone have are left out then, if nothing else has values of
    cases: all teams would share a rank there.
    """
    files = dict(scores)
    for team, file in scores.items():
        if value_cases and not _has_maps(file):
            cases = value_cases.union(file.cases if needs_all else ())
            files[team] = replace(file, cases=tuple(sorted(cases)))
    return files


def _read_columns(
    folder: Path, challenge: Challenge, ranked: set[str]
) -> dict[str, ValuesByCase]:
    """The tables that are ranked, and others that are there, by their names."""
    columns = {}
    for name in challenge.columns_of_others:
        file = folder / f"{name}.csv"
        if lexists(file):
            columns[name] = _read_values(file, name)
        elif name in ranked:
            problem = f"it is not there, and {name} is ranked"
            raise RankingError(str(file), problem, _REMEDY)
    return columns


def _read_values(file: Path, name: str) -> ValuesByCase:
    values: dict[str, float | None] = {}
    for row in read_rows(file, ("case", "value")):
        case = case_of(row.text("case"))
        if not case:
            raise row.error("the case is empty")
        if case in values:
            raise row.error(f"{safe(case)} is there twice")
        values[case] = None
        if not row.is_left_out("value"):
            values[case] = row.value(name, "value")
            if values[case] is None:
                raise row.error("the value is empty; leave the row out")
    return values
