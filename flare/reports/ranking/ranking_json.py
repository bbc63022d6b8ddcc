"""Makes ranking.json: everything that is known of a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TypeVar

from flare.challenge.digest import scoring_rules
from flare.challenge.rules import Challenge
from flare.common.installation import __version__
from flare.common.schema import dump
from flare.common.text import printable
from flare.ranking.completeness import RollCall
from flare.ranking.rank import Analysis
from flare.ranking.ranking_json import (
    BootstrapContent,
    FirstPlace,
    PairTests,
    RankingFile,
    RankingSettings,
    Rival,
    RollCallContent,
    SchemeContent,
)
from flare.ranking.robustness.schemes import Scheme
from flare.ranking.robustness.sensitivity import Sensitivity
from flare.ranking.robustness.uncertainty import (
    ALPHA,
    CONFIDENCE,
    GENERATOR,
    Bootstrap,
    PairTest,
)
from flare.ranking.rules import RankingRules
from flare.reports.ranking.words import interim_text

_Content = TypeVar("_Content")


def ranking_content(analysis: Analysis) -> RankingFile:
    """What ranking.json holds."""
    table = analysis.table
    content: RankingFile = {
        "interim": interim_text(table.roll) or None,
        "settings": _settings(analysis.challenge, analysis.rules),
        "decisions": list(analysis.decisions.lines),
        "teams": len(analysis.board.teams),
        "cases": list(table.cases),
        "ranking": [
            {
                "team": s.team,
                "rank": s.rank,
                "score": float(s.score),
                "score_exact": str(s.score),
                "mean_ranks": {m: float(rank) for m, rank in s.mean_ranks.items()},
            }
            for s in analysis.standings.standings
            if s.rank is not None
        ],
        "out_of_competition": [
            {
                "team": s.team,
                "mean_ranks": {m: float(rank) for m, rank in s.mean_ranks.items()},
            }
            for s in analysis.standings.guests
        ],
        "roll_call": roll_content(table.roll),
        # Its tuples are written in one line, as ever.
        "origin": asdict(table.origin) if table.origin else None,
        "missing": [dump(found) for found in table.missing],
        "recount": [recount_content(found) for found in analysis.sensitivity],
        "schemes": schemes_content(analysis.schemes),
        "tests": pairs_content(analysis.tests),
        "flags": list(analysis.flags),
    }
    if analysis.bootstrap:
        content["bootstrap"] = bootstrap_content(analysis.bootstrap)
    return shown(content)


def shown(value: _Content) -> _Content:
    """The same content with texts that can be seen: names may hold anything."""
    found: object = value
    if isinstance(value, str):
        found = printable(value)
    elif isinstance(value, dict):
        found = {shown(key): shown(own) for key, own in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)(map(shown, value))
    return found  # type: ignore[return-value]


def _settings(challenge: Challenge, rules: RankingRules) -> RankingSettings:
    """What the ranking was made with."""
    content: RankingSettings = {
        "version": __version__,
        "challenge": challenge.key,
        "challenge_name": challenge.name,
        "challenge_sha256": challenge.checksum,
        "scoring_rules": scoring_rules(challenge),
        "ties": rules.ties.value,
        "missing": rules.missing.value,
        "efficiency_gate_dsc": rules.gate_dsc,
        "metrics": [dump(rule) for rule in rules.metrics],
    }
    if rules.left_out:
        content["not_measured"] = list(rules.left_out)
    return content


def bootstrap_content(found: Bootstrap) -> BootstrapContent:
    """How the ranks depend on the cases."""
    return {
        "samples": found.samples,
        "seed": found.seed,
        "generator": GENERATOR,
        "confidence": CONFIDENCE,
        "kendall_tau": list(found.taus) if found.taus else None,
        "teams": [
            {
                "team": interval.team,
                "interval": [interval.lowest, interval.highest],
                "frequencies": list(interval.frequencies),
            }
            for interval in found.intervals
        ],
    }


def recount_content(found: Sensitivity) -> FirstPlace:
    """What the first place of a team depends on."""
    return {
        "team": found.team,
        "withdrawals": _by_rival(found.withdrawals),
        "shares": _by_rival(found.shares),
        "lost_without_team": list(found.disqualifications),
        "shared_without_team": [
            {"team": team, "with": list(names)} for team, names in found.ties
        ],
        "choices_of_rules": found.choices,
        "alternatives": dict(found.alternatives),
        "different_rankings": found.rankings,
        "first_under": found.first,
    }


def _by_rival(withdrawn: Iterable[tuple[str, Sequence[str]]]) -> list[Rival]:
    """The cases that each rival needs to be withdrawn."""
    return [
        {
            "rival": rival,
            "number": len(cases),
            "cases": list(cases),
        }
        for rival, cases in withdrawn
    ]


def pairs_content(tests: Sequence[PairTest]) -> PairTests:
    """Which team is better than which other."""
    metrics = {test.metric for test in tests}
    return {
        "test": "one-sided Wilcoxon signed-rank, paired by case, normal approximation",
        "zeros": "cases without a difference are left out",
        "missing": "the worst value of any team, or that of a failed run",
        "adjustment": "Holm, over all ordered pairs of teams by one metric",
        "family_size": len(tests) // len(metrics) if metrics else 0,
        "alpha": ALPHA,
        "pairs": [dump(test) for test in tests],
    }


def schemes_content(schemes: Sequence[Scheme]) -> list[SchemeContent]:
    """How the teams rank in other ways."""
    return [
        {
            "scheme": scheme.name,
            "kendall_tau": scheme.tau,
            "ranks": dict(scheme.ranks),
            "moved": list(scheme.moved),
        }
        for scheme in schemes
    ]


def roll_content(roll: RollCall) -> RollCallContent:
    """For ranking.json."""
    return {
        "refused": [
            {
                "team": f.team,
                "file": f.archive,
                "reason": f.problem,
                "is_ranked": f.team in roll.ranked,
            }
            for f in roll.refused
        ],
        "replaced": [dump(found) for found in roll.replaced],
        "not_scored_yet": [
            {"team": f.team, "cases_measured": f.measured} for f in roll.waiting
        ],
        "not_measured_to_the_end": list(roll.unfinished),
        "equal_results": [dump(found) for found in roll.copies],
        "ignored": list(roll.strays),
    }
