"""Makes ranking.json: everything that is known of a ranking, by its keys.

The columns of the tables beside it are described here, too.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from operator import attrgetter
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

from flare.challenge.metrics import MetricName
from flare.challenge.reading import Rule, scoring_rules
from flare.challenge.rules import RankedMetric
from flare.challenge.scheme import PLAIN_SCHEME, SchemeRules
from flare.common.environment import __version__
from flare.common.schema import (
    Count,
    Family,
    Is,
    Length,
    Positive,
    Sha256,
    Share,
    Text,
    dump,
)
from flare.common.text import printable
from flare.ranking.decisions import Decisions
from flare.ranking.inspection import Origin, RollCall
from flare.ranking.rank import Analysis, Standing
from flare.ranking.ranks import Tau
from flare.ranking.sensitivity import Sensitivity
from flare.ranking.table import Missing
from flare.ranking.uncertainty import Bootstrap, PairTest, methods_of
from flare.results.csv_rows import TeamName
from flare.results.scores import EACH_RULE
from flare.statistics import ALPHA

RANKING_JSON, VALUES_CSV = "ranking.json", "values.csv"

_Content = TypeVar("_Content")

MeanRank = Annotated[float, Is(minimum=1)]
_MEAN_RANKS = Family(
    "^[a-z][a-z0-9_]*$", "METRIC", "Mean rank by one metric.", MeanRank
)
_MeanRanks = Annotated[dict[str, float], Is(families=[_MEAN_RANKS])]
_WORST = ("METRIC", "What it is then, by case.")
_GROUP = ("CASE", "The group of the case.")
_Ranked = Annotated[dict[str, Any], Is(like=RankedMetric)]


class RankingFile(TypedDict):
    """Everything that is known of a ranking, with the settings it was made with."""

    interim: str | None
    """Why the ranking is not final yet; null if it can be."""
    settings: RankingSettings
    decisions: list[str]
    """What the organisers have decided, each in a line with its reason and date."""
    decided: Decisions
    teams: Positive
    """Number of teams that compete."""
    cases: Annotated[list[str], Is(minItems=1)]
    """Names of the cases that count."""
    ranking: Annotated[list[Place], Is(minItems=1)]
    """The teams that compete, best first."""
    out_of_competition: list[Guest]
    """Teams that are shown without a rank, and change nobody's."""
    roll_call: RollCall
    origin: Annotated[dict[str, Any], Is(like=Origin)] | None
    """What all results were made with; null if they came as a table."""
    missing: list[Missing]
    """Ranked results that are not there."""
    worst_values: NotRequired[Annotated[dict[str, dict[str, float]], Is(entry=_WORST)]]
    """Only where a metrics.json tells distances or other values without a fixed worst
    one of a case that could not be scored: means of teams have them in place of what is
    missing."""
    recount: Annotated[list[Sensitivity], Is(minItems=1)]
    """What first place depends on, for each team that has it."""
    schemes: list[SchemeContent]
    """How the teams rank in other ways."""
    tests: PairTests
    flags: list[str]
    """What to look at before the ranking is published."""
    bootstrap: NotRequired[Bootstrap]


class RankingSettings(TypedDict):
    """What the ranking was made with."""

    version: Text
    """Version of the program."""
    challenge: Text
    """Name of the challenge."""
    challenge_name: Text
    """Its name for people."""
    challenge_sha256: Sha256
    """SHA-256 of the bytes of its file."""
    values_sha256: Sha256
    """SHA-256 of the bytes of values.csv."""
    scoring_rules: Annotated[dict[str, Rule], Is(entry=EACH_RULE)]
    """All rules that the scores depend on, by their keys; those of an organ are called
    such as "tolerance_mm of liver". The page about challenge files explains them."""
    ties: Literal["min", "average", "max"]
    """The rank of equal values: the best of the places that they take together, their
    mean, or the worst."""
    missing: Literal["last", "worst-plus-one", "value", "refuse"]
    """The rank of a missing result: the number of teams, the places behind the highest
    rank that is given, or that of the challenge's value of a failed run. `refuse` means
    that none may be missing."""
    efficiency_gate_dsc: Share
    """Metrics that are not of label maps count only on cases with at least this DSC;
    0 for no gate."""
    metrics: Annotated[list[_Ranked], Is(minItems=1)]
    """The metrics that are ranked."""
    scheme: NotRequired[Annotated[dict[str, Any], Is(like=SchemeRules)]]
    """How values become one ranking, as the challenge file has it; only where that is
    not FLARE's ranking, as all that follows."""
    ties_by: NotRequired[list[_Ranked]]
    """The columns whose means order the teams that the ranking leaves equal."""
    groups: NotRequired[Annotated[dict[str, Text], Is(entry=_GROUP)]]
    """Only where teams are ranked in groups."""
    not_measured: NotRequired[Annotated[list[Text], Is(minItems=1)]]
    """Metrics of the challenge by which nobody is ranked, as no team was measured; only
    where there are such ones."""
    of_all_cases: NotRequired[Annotated[list[Text], Is(minItems=1)]]
    """Metrics of answers, whose value is of all cases together, and stands in every
    case; only where there are such ones. Schemes of `schemes` that go on cases, such as
    medians, change nothing about them, and are left out where all metrics are such
    ones."""


class Place(TypedDict):
    """A team that competes."""

    team: TeamName
    rank: Positive
    """Its rank; teams with equal scores share one, and the ranks behind it are left
    out."""
    score: Length
    """Weighted mean of its ranks, divided by the number of teams; smaller is better."""
    score_exact: Annotated[str, Is(pattern="^[0-9]+(/[0-9]+)?$")]
    """The same as an exact fraction."""
    mean_ranks: _MeanRanks
    """By metric: the mean of the team's ranks over all cases, 1 being the best."""


class Guest(TypedDict):
    """A team that is shown without a rank."""

    team: TeamName
    mean_ranks: _MeanRanks
    """By metric: the mean of the ranks that it would have if it alone had joined the
    others."""


class SchemeContent(TypedDict):
    """Another way to rank."""

    scheme: Text
    """What is done in another way."""
    kendall_tau: Tau | None
    """Kendall's tau of its ranking and the ranking itself; null where it is
    undefined."""
    ranks: Annotated[dict[str, Positive], Is(entry=("TEAM", "The team's rank."))]
    """Ranks of the teams in it."""
    moved: list[str]
    """Teams whose rank differs, best first."""
    left_out: Text | None
    """The team that is left out; null if all are ranked."""


class PairTests(TypedDict):
    """Which team is better than which other, by each metric."""

    test: Text
    """Which test is used."""
    zeros: Text
    """What becomes of cases without a difference."""
    missing: Text
    """What a missing result counts as."""
    adjustment: Text
    """How p-values are adjusted."""
    family_size: Count
    """Ordered pairs of teams by one metric, over which they are adjusted."""
    alpha: Share
    """Largest adjusted p of a difference that is called significant."""
    pairs: list[PairTest]
    """All ordered pairs of teams, by each metric."""


# --- Tables -----------------------------------------------------------------------


class RankingRow(TypedDict):
    """The ranking, a row for each team, best first; teams out of competition come
    last.
    """  # noqa: D205  a sentence of the public schema

    team: TeamName
    rank: Positive | None
    """Its rank; empty for a team out of competition."""
    score: Length
    """Weighted mean of its ranks, divided by the number of teams; smaller is better."""


MEAN_RANK_COLUMNS = Family(
    "^mean_rank_[a-z][a-z0-9_]*$",
    "mean_rank_METRIC",
    "Mean of the team's ranks by one metric; a column for each that is ranked.",
    MeanRank,
)


class CaseRankRow(TypedDict):
    """Every single rank."""

    team: TeamName
    case: Text
    """Name of the case."""
    metric: MetricName
    """Name of the metric."""
    rank: Annotated[float, Is(minimum=1, multipleOf=0.5)] | Literal["left_out"]
    """Rank of the team on the case by the metric: a whole number, or a half if ties are
    averaged. By a metric of answers, each case has the rank of all together."""


# --- Written ----------------------------------------------------------------------


def ranking_json(analysis: Analysis, values_sha256: str) -> str:
    """The text of ranking.json, which belongs to the values.csv of this digest.

    Tests of pairs are most of it. The json module would take most of a ranking's time
    and memory to indent them, so each is made to text by itself.
    """
    content = json.dumps(_content(analysis, values_sha256), indent=2, allow_nan=False)
    if not analysis.tests:
        return content
    # An empty list holds their place.
    before, after = content.split('"pairs": []')
    encoder = json.JSONEncoder(separators=(",\n        ", ": "), allow_nan=False)
    names = PairTest.__slots__
    values_of = attrgetter(*names)
    pairs = []
    for test in analysis.tests:
        entries = dict(zip(names, values_of(test), strict=True))
        text = encoder.encode(shown(entries))[1:-1]
        pairs.append(f"      {{\n        {text}\n      }}")
    all_pairs = ",\n".join(pairs)
    return f'{before}"pairs": [\n{all_pairs}\n    ]{after}'


def _content(analysis: Analysis, values_sha256: str) -> RankingFile:
    """The content of ranking.json, but the tests of pairs."""
    table = analysis.table
    content: RankingFile = {
        "interim": table.roll.interim_text or None,
        "settings": _settings(analysis, values_sha256),
        "decisions": list(analysis.decisions.lines),
        "decided": dump(analysis.decisions),
        "teams": len(analysis.board.teams),
        "cases": list(table.cases),
        "ranking": [
            {
                "team": standing.team,
                "rank": standing.rank,
                "score": float(standing.score),
                "score_exact": str(standing.score),
                "mean_ranks": _mean_ranks(standing),
            }
            for standing in analysis.standings.standings
            if standing.rank is not None
        ],
        "out_of_competition": [
            {"team": guest.team, "mean_ranks": _mean_ranks(guest)}
            for guest in analysis.standings.guests
        ],
        "roll_call": dump(table.roll),
        "origin": asdict(table.origin) if table.origin else None,
        "missing": dump(table.missing),
        "recount": dump(analysis.sensitivity),
        "schemes": [
            {
                "scheme": scheme.name,
                "kendall_tau": scheme.tau,
                "ranks": dict(scheme.ranks),
                "moved": list(scheme.moved),
                "left_out": scheme.left_out,
            }
            for scheme in analysis.schemes
        ],
        "tests": _pair_tests(analysis),
        "flags": list(analysis.flags),
    }
    if table.worst_values:
        content["worst_values"] = {n: dict(v) for n, v in table.worst_values.items()}
    if analysis.bootstrap:
        content["bootstrap"] = dump(analysis.bootstrap)
    return shown(content)


def _settings(analysis: Analysis, values_sha256: str) -> RankingSettings:
    challenge, rules = analysis.challenge, analysis.rules
    settings: RankingSettings = {
        "version": __version__,
        "challenge": challenge.key,
        "challenge_name": challenge.name,
        "challenge_sha256": challenge.checksum,
        "values_sha256": values_sha256,
        "scoring_rules": scoring_rules(challenge),
        "ties": rules.ties.value,
        "missing": rules.missing.value,
        "efficiency_gate_dsc": rules.gate_dsc,
        "metrics": dump(rules.metrics),
    }
    if rules.scheme != PLAIN_SCHEME:
        settings["scheme"] = dump(rules.scheme)
        settings["ties_by"] = dump(rules.ties_by)
    if analysis.table.groups:
        groups = zip(analysis.table.cases, analysis.table.groups, strict=True)
        settings["groups"] = dict(groups)
    if rules.left_out:
        settings["not_measured"] = list(rules.left_out)
    if rules.of_all_cases:
        settings["of_all_cases"] = list(rules.of_all_cases)
    return settings


def _mean_ranks(standing: Standing) -> dict[str, float]:
    return {metric: float(rank) for metric, rank in standing.mean_ranks.items()}


def _pair_tests(analysis: Analysis) -> PairTests:
    tests, rules = analysis.tests, analysis.rules
    metrics = {test.metric for test in tests}
    methods = (method.recorded for method in methods_of(rules.records))
    return {
        "test": "; ".join(methods),
        "zeros": "cases without a difference are left out",
        "missing": "that of a failed run, or the worst of the metric, or of any team",
        "adjustment": "Holm, over all ordered pairs of teams by one metric",
        "family_size": len(tests) // len(metrics) if metrics else 0,
        "alpha": ALPHA,
        "pairs": [],
    }


def shown(value: _Content) -> _Content:
    """The same content with texts that can be seen: names may hold anything."""
    content: object = value
    if isinstance(value, str):
        content = printable(value)
    elif isinstance(value, dict):
        content = {shown(key): shown(item) for key, item in value.items()}
    elif isinstance(value, list | tuple):
        content = type(value)(map(shown, value))
    return content  # type: ignore[return-value]
