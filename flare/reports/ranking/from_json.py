"""Takes back from ranking.json what `ranking_json` has put there of how sure it is.

What is not like that raises a ValueError, a KeyError, a TypeError or an AttributeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flare.common.text import printable
from flare.ranking.ranks import Board
from flare.ranking.robustness.schemes import Scheme, closed_up
from flare.ranking.robustness.sensitivity import Sensitivity
from flare.ranking.robustness.significance import PairTest
from flare.ranking.rules import RankingRules
from flare.ranking.standings import Standings


def read_tests(
    told: Iterable[Mapping[str, Any]], board: Board, rules: RankingRules
) -> tuple[PairTest, ...]:
    """Which team is better than which other."""
    names = _names(board.teams)
    metrics = {rule.metric: rule.metric for rule in rules.metrics}
    found = {
        (pair["metric"], pair["team"], pair["other"]): PairTest(
            metric=metrics[pair["metric"]],
            team=names[pair["team"]],
            other=names[pair["other"]],
            cases=int(pair["cases"]),
            zeros=int(pair["zeros"]),
            p=float(pair["p"]),
            p_holm=float(pair["p_holm"]),
            effect=float(pair["effect"]),
        )
        for pair in told
    }
    pairs = [(a, b) for a in names for b in names if a != b]
    return tuple(found[metric, *pair] for metric in metrics for pair in pairs)


def read_schemes(
    told: Iterable[Mapping[str, Any]], board: Board, standings: Standings
) -> tuple[Scheme, ...]:
    """How the teams rank in other ways."""
    names = _names(board.teams)
    by_team = {s.team: s.rank for s in standings.standings}
    ranks = [by_team[team] or 0 for team in board.teams]
    found = []
    for scheme in told:
        own = {names[team]: int(rank) for team, rank in scheme["ranks"].items()}
        tau = scheme["kendall_tau"]
        found.append(
            Scheme(
                name=str(scheme["scheme"]),
                ranks=own,
                before=closed_up(board.teams, ranks, tuple(own)),
                tau=None if tau is None else float(tau),
                left_out=next(iter(set(board.teams).difference(own)), None),
            )
        )
    return tuple(found)


def read_recounts(
    told: Iterable[Mapping[str, Any]], board: Board
) -> tuple[Sensitivity, ...]:
    """What the first place of each team that has it depends on."""
    teams, cases = _names(board.teams), _names(board.cases)
    return tuple(
        Sensitivity(
            team=teams[found["team"]],
            cases=len(board.cases),
            withdrawals=_by_rival(found["withdrawals"], teams, cases),
            shares=_by_rival(found["shares"], teams, cases),
            disqualifications=tuple(teams[t] for t in found["lost_without_team"]),
            ties=tuple(
                (teams[tie["team"]], tuple(teams[team] for team in tie["with"]))
                for tie in found["shared_without_team"]
            ),
            first=int(found["first_under"]),
            choices=int(found["choices_of_rules"]),
            alternatives=tuple(
                (str(name), int(n)) for name, n in found["alternatives"].items()
            ),
            rankings=int(found["different_rankings"]),
        )
        for found in told
    )


def _by_rival(
    told: Iterable[Mapping[str, Any]],
    teams: Mapping[str, str],
    cases: Mapping[str, str],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The cases that each rival needs to be withdrawn."""
    return tuple(
        (teams[found["rival"]], tuple(cases[case] for case in found["cases"]))
        for found in told
    )


def _names(names: Iterable[str]) -> dict[str, str]:
    """Names by how ranking.json has them."""
    return {printable(name): name for name in names}
