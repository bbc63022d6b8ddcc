"""Reads a ranking that ``flare rank`` has written, as it was written.

The values stand in values.csv, all that was decided and counted in ranking.json, which
has the digest of values.csv: one that was changed afterwards is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.challenge.metrics import LEFT_OUT
from flare.challenge.reading import recorded_challenge
from flare.challenge.rules import Challenge, RankedMetric
from flare.challenge.scheme import SchemeRules, Ties
from flare.common.environment import __version__
from flare.common.files import read_regular
from flare.common.schema import build
from flare.common.text import cell_text, printable, safe, why
from flare.ranking.decisions import Decisions
from flare.ranking.inspection import Origin, RollCall
from flare.ranking.rank import Analysis, rank_teams
from flare.ranking.ranking_json import RANKING_JSON, VALUES_CSV
from flare.ranking.results_folder import EMPTY, CaseResult, Key
from flare.ranking.rules import MissingRule, RankingRules
from flare.ranking.sensitivity import Scheme, Sensitivity, SharedPlace, ranks_before
from flare.ranking.table import ResultTable, table_of
from flare.ranking.uncertainty import Bootstrap, PairTest
from flare.results.csv_rows import COLUMNS, KEYS, read_rows
from flare.results.errors import RankingError

_REMEDY = "Rank the results anew: flare rank RESULTS --output FOLDER."
_NOT_OURS = "it is no ranking.json that flare rank has written"
_BAD = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def read_written(folder: Path) -> Analysis:
    """Read a ranking that was written; texts are as ranking.json has them.

    A RankingError is raised if ranking.json or values.csv cannot be read, was written
    by another version, or they do not belong together.
    """
    file = folder / RANKING_JSON
    try:
        content = json.loads(read_regular(file))
        _check_version(file, content["settings"])
        _check_values(folder / VALUES_CSV, content["settings"]["values_sha256"])
        return _analysis(folder, content)
    except OSError as error:
        problem = f"it cannot be read ({why(error)})"
        raise RankingError(error.filename or str(file), problem, _REMEDY) from error
    except _BAD as error:
        raise RankingError(str(file), _NOT_OURS, _REMEDY) from error


def _check_version(file: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a ranking of another version, whose keys may mean something else."""
    version = str(settings["version"])
    if version != __version__ or "values_sha256" not in settings:
        problem = f"it was written by another version ({safe(version)})"
        raise RankingError(str(file), problem, _REMEDY)


def _check_values(file: Path, digest: str) -> None:
    """Refuse a values.csv that is not the one that was ranked."""
    if hashlib.sha256(read_regular(file).encode()).hexdigest() != digest:
        problem = f"it does not belong to the {RANKING_JSON} beside it"
        raise RankingError(str(file), problem, _REMEDY)


def _analysis(folder: Path, content: Mapping[str, Any]) -> Analysis:
    settings = content["settings"]
    rules = _rules(settings)
    challenge = _challenge(settings, rules)
    rules = replace(rules, worst_distance_mm=challenge.worst_distance_mm)
    decisions = build(Decisions, content["decided"])
    table = _table(folder / VALUES_CSV, content, rules)
    standings = rank_teams(table, rules, decisions.guests)
    ranks = dict(zip(standings.board.teams, standings.board.final_ranks, strict=True))
    draws = content.get("bootstrap")
    return Analysis(
        challenge=challenge,
        table=table,
        rules=rules,
        decisions=decisions,
        standings=standings,
        bootstrap=build(Bootstrap, draws) if draws else None,
        tests=tuple(map(_test, content["tests"]["pairs"])),
        schemes=tuple(_schemes(content["schemes"], ranks)),
        sensitivity=tuple(map(_sensitivity, content["recount"])),
        flags=tuple(map(str, content["flags"])),
    )


def _rules(settings: Mapping[str, Any]) -> RankingRules:
    return RankingRules(
        metrics=tuple(build(RankedMetric, rule) for rule in settings["metrics"]),
        scheme=build(SchemeRules, settings.get("scheme", {})),
        ties=Ties(settings["ties"]),
        ties_by=tuple(build(RankedMetric, r) for r in settings.get("ties_by", ())),
        missing=MissingRule(settings["missing"]),
        gate_dsc=float(settings["efficiency_gate_dsc"]),
        left_out=tuple(map(str, settings.get("not_measured", ()))),
    )


def _challenge(settings: Mapping[str, Any], rules: RankingRules) -> Challenge:
    """The challenge of the settings: enough to rank by, not to score by."""
    scoring, start = settings["scoring_rules"], "label of "
    organs = [key.removeprefix(start) for key in scoring if key.startswith(start)]
    return replace(
        recorded_challenge(settings["challenge"], scoring, organs),
        name=settings["challenge_name"],
        checksum=settings["challenge_sha256"],
        ranking=rules.metrics,
        efficiency_gate_dsc=rules.gate_dsc,
    )


def _table(file: Path, content: Mapping[str, Any], rules: RankingRules) -> ResultTable:
    """The values, to which all decisions have been applied."""
    reasons: dict[Key, tuple[str, str]] = {}
    for missing in content["missing"]:
        key = (missing["team"], missing["case"], missing["metric"])
        reasons[key] = (str(missing["reason"]), str(missing["kind"]))
    results = []
    for row in read_rows(file, COLUMNS):
        team, case, metric = (printable(cell_text(row.cells[name])) for name in KEYS)
        value, reason, kind = None, LEFT_OUT, ""
        if not row.is_left_out("value"):
            value, reason = row.value(metric, "value"), ""
            if value is None:
                reason, kind = reasons.get((team, case, metric), (EMPTY, ""))
        results.append(CaseResult(team, case, metric, value, reason, kind))
    origin = content["origin"]
    table = table_of(results, list(rules.names))
    groups = content["settings"].get("groups", {})
    return replace(
        table,
        groups=tuple(map(str, (groups[case] for case in table.cases if groups))),
        roll=build(RollCall, content["roll_call"]),
        origin=build(Origin, origin) if origin else None,
        worst_values=content.get("worst_values", {}),
    )


def _test(pair: Mapping[str, Any]) -> PairTest:
    """A test of a pair; by each key, as there are tens of thousands of them."""
    return PairTest(
        metric=pair["metric"],
        team=pair["team"],
        other=pair["other"],
        cases=pair["cases"],
        zeros=pair["zeros"],
        p=pair["p"],
        p_holm=pair["p_holm"],
        effect=pair["effect"],
    )


def _schemes(
    schemes: Sequence[Mapping[str, Any]], ranks: Mapping[str, int]
) -> Iterator[Scheme]:
    for scheme in schemes:
        yield Scheme(
            name=scheme["scheme"],
            ranks=scheme["ranks"],
            before=ranks_before(ranks, scheme["left_out"]),
            tau=scheme["kendall_tau"],
            left_out=scheme["left_out"],
        )


def _sensitivity(content: Mapping[str, Any]) -> Sensitivity:
    """The sensitivity of a first place; a shared place is no record that is built."""
    shared_places: list[SharedPlace] = []
    for place in content["shared_without_team"]:
        shared_places.append({"team": place["team"], "with": tuple(place["with"])})
    sensitivity = build(Sensitivity, {**content, "shared_without_team": []})
    return replace(sensitivity, shared_without_team=tuple(shared_places))
