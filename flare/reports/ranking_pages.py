"""Makes all pages of a ranking, of results or of what ``flare rank`` has written.

Of a ranking that was written nothing is decided anew: the values of values.csv are
ranked by the settings of ranking.json, and have to give the ranking and the draws that
stand there; only where metrics of answers are ranked, the draws are taken as they are.
What was decided is told as it was written, and so is what was found odd: the decisions
have been applied to these values, and are not applied again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flare.challenge.reading import read_challenge, recorded_challenge
from flare.challenge.rules import Challenge, RankedMetric
from flare.common.files import read_regular
from flare.common.schema import build, dump
from flare.common.text import cell_text, printable, safe, why
from flare.ranking.decisions import Decisions, TeamDecision
from flare.ranking.rank import Analysis, Uncertainty, analyse, rank_results
from flare.ranking.ranking_json import shown
from flare.ranking.results_folder import EMPTY, CaseResult, Key
from flare.ranking.rules import MissingRule, RankingOptions, RankingRules, Ties
from flare.ranking.table import ResultTable, table_of
from flare.ranking.uncertainty import Bootstrap, PairTest
from flare.reports.model import INDEX, RANKING_JSON, TEAMS, Page
from flare.reports.ranking.organisers import WholeRanking, metric_values, organiser_page
from flare.reports.ranking.page import public_ranking, ranking_page
from flare.reports.ranking.standing import own_standing, sheet_names
from flare.reports.ranking.teams import team_page
from flare.results.csv_rows import COLUMNS, KEYS, read_rows
from flare.results.errors import RankingError
from flare.results.groups_csv import Grouping, read_groups

VALUES_CSV = "values.csv"

_REMEDY = "Rank the results anew: flare rank RESULTS --output FOLDER."
_NOT_OURS = "it is no ranking.json that flare rank has written"
_BAD = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


def ranking_pages(
    source: Path,
    options: RankingOptions,
    *,
    is_written: bool,
    is_organiser: bool,
    has_teams: bool,
    figures: Path | None = None,
    groups: Path | None = None,
    cases: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, Page]]:
    """The pages of a ranking and their files, that of all teams first.

    The source has the results of all teams, which are ranked by the options, or a
    ranking that was written. `figures` is a folder for figures for a paper, `groups` a
    table of which case is in which group; `cases` are pages of cases by all teams. A
    RankingError is raised if the source cannot be read.
    """
    if is_written:
        analysis, interim, decisions = read_written(source)
        analysis = replace(analysis, shows_means=options.means)
    else:
        analysis = rank_results(source, read_challenge(options.challenge), options)
        interim, decisions = analysis.table.roll.interim_text, analysis.decisions.lines
    groupings: tuple[Grouping, ...] = ()
    if groups:
        withdrawn = [decision.case for decision in analysis.decisions.withdrawn]
        groupings = read_groups(groups, analysis.board.cases, withdrawn)
    public = public_ranking(
        analysis, groupings, is_organiser=is_organiser, has_organs=True
    )
    public = replace(public, interim=interim, decisions=decisions)
    standings = analysis.standings.standings
    files = {}
    for name, standing in sheet_names(standings):
        files[standing.team] = f"{TEAMS}/{name}.html"
    links = files if has_teams else {}
    index, ranking = ranking_page(public, links), None
    if is_organiser:
        ranking = WholeRanking(analysis, public, metric_values(analysis), groupings)
        index = organiser_page(ranking, links, cases)
        if figures:
            # Here, as pages should not wait for matplotlib.
            from flare.reports.paper.figures import write_ranking_figures

            write_ranking_figures(ranking, index, figures)
    yield INDEX, index
    for standing in standings if has_teams else ():
        page = team_page(own_standing(analysis, standing, public), ranking)
        yield files[standing.team], page


# --- A ranking that was written ---------------------------------------------------


def read_written(folder: Path) -> tuple[Analysis, str, tuple[str, ...]]:
    """Read a ranking that was written: ranked anew, whether it is interim, decisions.

    A RankingError is raised if ranking.json or values.csv cannot be read, or they do
    not belong together.
    """
    file = folder / RANKING_JSON
    try:
        content = json.loads(read_regular(file))
        analysis = _analysis(folder, content)
        analysis = replace(analysis, flags=tuple(map(str, content["flags"])))
        return analysis, content["interim"] or "", tuple(content["decisions"])
    except OSError as error:
        problem = f"it cannot be read ({why(error)})"
        raise RankingError(str(file), problem, _REMEDY) from error
    except _BAD as error:
        raise RankingError(str(file), _NOT_OURS, _REMEDY) from error


def _analysis(folder: Path, content: Mapping[str, Any]) -> Analysis:
    """Rank the values anew, as they were; they have to give what is on record."""
    settings, draws = content["settings"], content.get("bootstrap") or {}
    rules = _rules(settings)
    challenge = _challenge(settings, rules)
    rules = replace(rules, worst_distance_mm=challenge.worst_distance_mm)
    reasons = {}
    for missing in content["missing"]:
        key = (missing["team"], missing["case"], missing["metric"])
        reasons[key] = (str(missing["reason"]), str(missing["kind"]))
    guests = [str(guest["team"]) for guest in content["out_of_competition"]]
    options = RankingOptions(
        bootstrap=int(draws.get("samples", 0)), seed=int(draws.get("seed", 0))
    )
    table = _table(folder / VALUES_CSV, reasons, rules)
    distances = _distances(content, table.cases)
    table = replace(table, worst_distances=distances)
    ranked = [str(place["team"]) for place in content["ranking"]]
    teams = sorted(map(printable, table.teams))
    has_teams = bool(ranked) and teams == sorted([*ranked, *guests])
    has_cases = list(map(printable, table.cases)) == list(content["cases"])
    _check(folder, is_equal=has_teams and has_cases)
    uncertainty = _recorded_uncertainty(content, table, rules)
    analysis = analyse(
        table, challenge, rules, _decisions(guests), options, uncertainty
    )
    recorded = [(p["team"], p["rank"], p["score_exact"]) for p in content["ranking"]]
    _check(folder, is_equal=_places(analysis) == recorded)
    if analysis.bootstrap:
        drawn_teams = shown(dump(analysis.bootstrap))["teams"]
        _check(folder, is_equal=drawn_teams == draws["teams"])
    return analysis


def _recorded_uncertainty(
    content: Mapping[str, Any], table: ResultTable, rules: RankingRules
) -> Uncertainty | None:
    """The draws and tests of a ranking by answers, which cannot be made anew.

    Answers tell the references, so that no ranking has them. None of other rankings.
    """
    if not rules.of_answers:
        return None
    teams = {printable(team): team for team in table.teams}
    draws = None
    if "bootstrap" in content:
        draws = build(Bootstrap, content["bootstrap"])
        intervals = [replace(i, team=teams[i.team]) for i in draws.teams]
        draws = replace(draws, teams=tuple(intervals))
    tests = []
    for pair in content["tests"]["pairs"]:
        test = build(PairTest, pair)
        tests.append(replace(test, team=teams[test.team], other=teams[test.other]))
    return Uncertainty(bootstrap=draws, tests=tuple(tests))


def _rules(settings: Mapping[str, Any]) -> RankingRules:
    return RankingRules(
        metrics=tuple(build(RankedMetric, rule) for rule in settings["metrics"]),
        ties=Ties(settings["ties"]),
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


def _distances(content: Mapping[str, Any], cases: Sequence[str]) -> dict[str, float]:
    """The worst distances in mm, by case, where they are on record."""
    recorded, distances = content.get("worst_distances_mm", {}), {}
    for case in cases:
        if printable(case) in recorded:
            distances[case] = float(recorded[printable(case)])
    return distances


def _decisions(guests: Sequence[str]) -> Decisions:
    """The one decision that still has to be applied: who does not compete."""
    text = f"see {RANKING_JSON}"
    teams = (TeamDecision(team=team, reason=text, date=text) for team in guests)
    return Decisions(out_of_competition=tuple(teams))


def _places(analysis: Analysis) -> list[tuple[str, int, str]]:
    """The competing teams with their ranks and scores, as ranking.json tells them."""
    places = []
    for place in analysis.standings.standings:
        if place.rank is not None:
            places.append((printable(place.team), place.rank, str(place.score)))
    return places


def _table(
    file: Path, reasons: Mapping[Key, tuple[str, str]], rules: RankingRules
) -> ResultTable:
    """The values, to which all decisions have been applied."""
    results: dict[Key, CaseResult] = {}
    for row in read_rows(file, COLUMNS):
        team, case, metric = (cell_text(row.cells[name]) for name in KEYS)
        key = (team, case, metric)
        value = row.value(metric, "value")
        if key in results:
            problem = f"{row.where}: {' '.join(map(safe, key))} is there twice"
            raise RankingError(str(file), problem, _REMEDY)
        reason, kind = reasons.get(key, (EMPTY, "")) if value is None else ("", "")
        results[key] = CaseResult(
            team=team, case=case, metric=metric, value=value, reason=reason, kind=kind
        )
    return table_of(list(results.values()), list(rules.names))


def _check(folder: Path, *, is_equal: bool) -> None:
    """Refuse files that do not belong together."""
    if not is_equal:
        problem = f"it does not belong to the {RANKING_JSON} beside it"
        raise RankingError(str(folder / VALUES_CSV), problem, _REMEDY)
