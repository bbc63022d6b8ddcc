"""The keys of ranking.json, and the columns of the tables beside it.

`flare.reports.ranking.ranking_json` writes them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from flare.challenge.digest import Rule
from flare.challenge.metrics import MetricName
from flare.challenge.rules import RankedMetric
from flare.common.schema import (
    Count,
    Family,
    Is,
    Length,
    Positive,
    Sha256,
    Share,
    Text,
)
from flare.ranking.provenance import Origin
from flare.results.scores import EACH_RULE

MeanRank = Annotated[float, Is(minimum=1)]
TeamName = Annotated[str, Is(about="Name of the team, as it is shown.", minLength=1)]
_MEAN_RANKS = Family(
    "^[a-z][a-z0-9_]*$", "METRIC", "Mean rank by one metric.", MeanRank
)
_MeanRanks = Annotated[dict[str, float], Is(families=[_MEAN_RANKS])]
_Ranked = Annotated[dict[str, Any], Is(like=RankedMetric)]
_Tau = Annotated[float, Is(minimum=-1, maximum=1)]


class RankingFile(TypedDict):
    """Everything that is known of a ranking, with the settings it was made with."""

    interim: str | None
    """Why the ranking is not final yet; null if it can be."""
    settings: RankingSettings
    decisions: list[str]
    """What the organisers have decided, each in a line with its reason and date."""
    teams: Positive
    """Number of teams that compete."""
    cases: Annotated[list[str], Is(minItems=1)]
    """Names of the cases that count."""
    ranking: Annotated[list[Place], Is(minItems=1)]
    """The teams that compete, best first."""
    out_of_competition: list[Guest]
    """Teams that are shown without a rank, and change nobody's."""
    roll_call: RollCallContent
    origin: Annotated[dict[str, Any], Is(like=Origin)] | None
    """What all results were made with; null if they came as a table."""
    missing: list[MissingResult]
    """Ranked results that are not there."""
    recount: Annotated[list[FirstPlace], Is(minItems=1)]
    """What first place depends on, for each team that has it."""
    schemes: list[SchemeContent]
    """How the teams rank in other ways."""
    tests: PairTests
    flags: list[str]
    """What to look at before the ranking is published."""
    bootstrap: NotRequired[BootstrapContent]


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
    scoring_rules: Annotated[dict[str, Rule], Is(each=EACH_RULE)]
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
    """Other metrics than DSC and NSD count only on cases with at least this DSC; 0 for
    no gate."""
    metrics: Annotated[list[_Ranked], Is(minItems=1)]
    """The metrics that are ranked."""
    not_measured: NotRequired[Annotated[list[Text], Is(minItems=1)]]
    """Metrics of the challenge by which nobody is ranked, as no team was measured; only
    where there are such ones."""


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


class RollCallContent(TypedDict):
    """Who took part besides the teams that are ranked, and what is to be said of
    them.
    """  # noqa: D205  a sentence of the public schema

    refused: list[RefusedContent]
    """Archives or predictions that were refused."""
    replaced: list[ReplacedContent]
    """Archives that have replaced an earlier one of the team."""
    not_scored_yet: list[WaitingContent]
    """Teams that have sent an archive, and have no scores yet."""
    not_measured_to_the_end: list[str]
    """Teams that are ranked, though cases of theirs are still to be measured."""
    equal_results: list[EqualContent]
    """Teams that have the results of another team."""
    ignored: list[str]
    """Folders that hold no results."""


class RefusedContent(TypedDict):
    """Something that was refused."""

    team: TeamName
    file: Text
    """Name of what was refused."""
    reason: Text
    """Why it was refused."""
    is_ranked: bool
    """Whether the team is ranked by something else that it has sent."""


class ReplacedContent(TypedDict):
    """An archive that has replaced another one."""

    team: TeamName
    date: str
    """When the new one was first measured."""
    reason: str
    """Why it may replace the earlier one."""


class WaitingContent(TypedDict):
    """A team without scores."""

    team: TeamName
    cases_measured: Count
    """Cases that are measured."""


class EqualContent(TypedDict):
    """Teams that have the same results."""

    teams: Annotated[list[str], Is(minItems=2)]
    """The teams."""
    what: Text
    """What is the same."""


class MissingResult(TypedDict):
    """A result that is not there."""

    team: TeamName
    case: Text
    """Name of the case."""
    metric: MetricName
    """Name of the metric."""
    reason: str
    """Why it is missing."""
    kind: str
    """What many cases may share of the reason."""


class FirstPlace(TypedDict):
    """What the first place of a team depends on."""

    team: TeamName
    withdrawals: list[Rival]
    """Each rival that could be ahead if cases were withdrawn, and the fewest such
    cases; the rival that needs the fewest first."""
    shares: list[Rival]
    """Each rival that could share first place if cases were withdrawn, and the fewest
    such cases."""
    lost_without_team: list[str]
    """Each team without which another one would be first."""
    shared_without_team: list[SharedPlace]
    """Each team without which first place would be shared."""
    choices_of_rules: Positive
    """How many choices of rules were tried."""
    alternatives: Annotated[
        dict[str, Positive], Is(each=("RULE", "Number of its choices."))
    ]
    """What is chosen, and among how many; the product is `choices_of_rules`."""
    different_rankings: Positive
    """How many different rankings the choices give."""
    first_under: Count
    """Under how many choices the team is first."""


class Rival(TypedDict):
    """The cases that a rival needs to be withdrawn."""

    rival: TeamName
    number: Positive
    """How many cases it takes."""
    cases: Annotated[list[str], Is(minItems=1)]
    """Which cases they are."""


class SchemeContent(TypedDict):
    """Another way to rank."""

    scheme: Text
    """What is done in another way."""
    kendall_tau: _Tau | None
    """Kendall's tau of its ranking and the ranking itself; null where it is
    undefined."""
    ranks: Annotated[dict[str, Positive], Is(each=("TEAM", "The team's rank."))]
    """Ranks of the teams in it."""
    moved: list[str]
    """Teams whose rank differs, best first."""


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
    pairs: list[PairContent]
    """All ordered pairs of teams, by each metric."""


class PairContent(TypedDict):
    """An ordered pair of teams, by one metric."""

    metric: MetricName
    """Name of the metric."""
    team: Text
    """The team that may be better."""
    other: Text
    """The team that it is compared with."""
    cases: Count
    """Cases on which the two differ."""
    zeros: Count
    """Cases on which they do not, which the test leaves out."""
    p: Share
    """The p-value; 1 if they differ on no case."""
    p_holm: Share
    """The p-value, adjusted by Holm's method."""
    effect: _Tau
    """Matched-pairs rank-biserial correlation: 1 if `team` is better on every case on
    which they differ, -1 if it is worse."""


class BootstrapContent(TypedDict):
    """How the ranks depend on the cases; not there with `--bootstrap 0`."""

    samples: Positive
    """How often cases were drawn, as many as there are, with replacement."""
    seed: Count
    """Seed of the generator."""
    generator: Text
    """NumPy's name of the generator."""
    confidence: Share
    """Share of the samples within the intervals."""
    kendall_tau: Annotated[list[_Tau], Is(minItems=3, maxItems=3)] | None
    """Kendall's tau of the samples' rankings with the ranking itself: lower end of the
    interval, median, upper end; null if it is undefined."""
    teams: list[TeamInterval]
    """Each team, best first."""


class TeamInterval(TypedDict):
    """A team."""

    team: TeamName
    interval: Annotated[list[Positive], Is(minItems=2, maxItems=2)]
    """Best and worst rank of the interval."""
    frequencies: list[Share]
    """Share of the samples in which it has rank 1, 2, ..."""


SharedPlace = TypedDict(
    "SharedPlace",
    {
        "team": TeamName,
        "with": Annotated[
            list[str], Is(about="With whom it would be shared.", minItems=1)
        ],
    },
)
"""A team without which first place would be shared."""


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
    rank: Annotated[float, Is(minimum=1, multipleOf=0.5)]
    """Rank of the team on the case by the metric: a whole number, or a half if ties are
    averaged."""
