"""Says who took part besides the teams that are ranked, and how results were made.

Nobody vanishes from a ranking: teams whose archives were refused or replaced, that are
not measured or scored yet, that have the results of another team, or that an
evaluation has warned of. Results that were not made alike are refused, by the name of
the odd one out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any, TypeVar

from flare.challenge.reading import challenge_names, rule_differences, scoring_rules
from flare.challenge.rules import Challenge
from flare.common.schema import Count, Is, Text
from flare.common.text import count, listing, printable, safe, shell_word
from flare.results.archives_csv import LEDGER_CSV, LedgerEntry, Refusal
from flare.results.csv_rows import TeamName, read_table
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_reading import EvaluationFile, ScoringRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """Teams that have the same results."""

    teams: Annotated[tuple[str, ...], Is(minItems=2)]
    """The teams."""
    what: Text = "the same DSC and NSD in every digit, on all cases"
    """What is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """An archive that has replaced another one."""

    team: TeamName
    date: str
    """When the new one was first measured."""
    reason: str
    """Why it may replace the earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A team without scores."""

    team: TeamName
    cases_measured: Count
    """Cases that are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTeam:
    """Something that was refused."""

    team: TeamName
    file: Text
    """Name of what was refused."""
    reason: Text
    """Why it was refused."""
    is_ranked: bool
    """Whether the team is ranked by something else that it has sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollCall:
    """Who took part besides the teams that are ranked, and what is to be said of
    them.
    """  # noqa: D205  a sentence of the public schema

    refused: tuple[RefusedTeam, ...] = ()
    """Archives or predictions that were refused."""
    replaced: tuple[Replacement, ...] = ()
    """Archives that have replaced an earlier one of the team."""
    not_scored_yet: tuple[Waiting, ...] = ()
    """Teams that have sent an archive, and have no scores yet."""
    not_measured_to_the_end: tuple[str, ...] = ()
    """Teams that are ranked, though cases of theirs are still to be measured."""
    equal_results: tuple[Copies, ...] = ()
    """Teams that have the results of another team."""
    ignored: tuple[str, ...] = ()
    """Folders that hold no results."""

    @property
    def interim_text(self) -> str:
        """Why the ranking is not final yet; empty if it is."""
        unscored = {waiting.team for waiting in self.not_scored_yet}
        names = sorted(unscored.union(self.not_measured_to_the_end))
        if not names:
            return ""
        verb = "is" if len(names) == 1 else "are"
        return (
            f"Interim ranking: {count(len(names), 'team')} {verb} not measured to the"
            f" end ({listing(names)}). Go on with flare measure, and rank again."
        )

    @property
    def lines(self) -> Iterator[str]:
        """The things that organisers should look at, each in a line."""
        for archive in self.refused:
            standing = "is not ranked"
            if archive.is_ranked:
                standing = "is ranked by what else it has sent"
            yield (
                f"{safe(archive.team)}: {safe(archive.file)} was refused, and the team"
                f" {standing}: {printable(archive.reason)}"
            )
        for replacement in self.replaced:
            yield (
                f"{safe(replacement.team)}: archive replaced on"
                f" {safe(replacement.date)}: {printable(replacement.reason)}"
            )
        for waiting in self.not_scored_yet:
            yield (
                f"{safe(waiting.team)} has no scores yet, and is not ranked"
                f" ({count(waiting.cases_measured, 'case')} measured): go on with flare"
                " measure --ground-truth"
            )
        for copies in self.equal_results:
            names = listing(copies.teams, last=" and ")
            yield f"{names} have {copies.what}: is one a copy?"

    def shown(self, name_of: Callable[[str], str]) -> RollCall:
        """The same roll call with the names that teams are shown by."""
        return replace(
            self,
            refused=_rename(self.refused, name_of),
            replaced=_rename(self.replaced, name_of),
            not_scored_yet=_rename(self.not_scored_yet, name_of),
            not_measured_to_the_end=tuple(map(name_of, self.not_measured_to_the_end)),
            equal_results=tuple(
                replace(copies, teams=tuple(map(name_of, copies.teams)))
                for copies in self.equal_results
            ),
        )


_Named = TypeVar("_Named", RefusedTeam, Replacement, Waiting)


def _rename(
    records: tuple[_Named, ...], name_of: Callable[[str], str]
) -> tuple[_Named, ...]:
    return tuple(replace(record, team=name_of(record.team)) for record in records)


def read_archives(
    results: Path, refused: Sequence[Refusal] = ()
) -> tuple[tuple[str, ...], tuple[Replacement, ...]]:
    """Teams whose archives were accepted, and those that have replaced another one.

    An archive that was accepted, and that the engine could not load, was refused. A
    RankingError is raised if ledger.csv is there, but cannot be read.
    """
    file = results / LEDGER_CSV
    entries = read_table(file, LedgerEntry) if lexists(file) else []
    latest: dict[str, LedgerEntry] = {}
    replaced = []
    for entry in entries:
        if entry.team in latest:
            replaced.append(
                Replacement(team=entry.team, date=entry.date, reason=entry.reason)
            )
        latest[entry.team] = entry
    not_loaded = {(archive.team, archive.archive_sha256) for archive in refused}
    accepted = sorted(
        team
        for team, entry in latest.items()
        if (team, entry.archive_sha256) not in not_loaded
    )
    return tuple(accepted), tuple(replaced)


# --- How results were made --------------------------------------------------------


OPTIONS = ("on_bad_case", "grid", "unknown_labels", "decimals")
"""Options of an evaluation, in the order in which they are told."""

ALIKE = (
    "Compare evaluations by the same rules: score the predictions anew with flare"
    " evaluate."
)

NO_RULES = "metrics.json of an earlier version, without the rules of scoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What all results were made with, as far as that is known."""

    challenge_sha256: str = ""
    """SHA-256 of the challenge's file that scored them; empty if it is not known."""
    references_sha256: str = ""
    """Digest of the references; empty if it is not known."""
    rules_sha256: str = ""
    """Digest of the rules that scored them; empty if a team's metrics.json does not
    tell."""
    options: str = ""
    """Options of the evaluation that change scores, as on the command line."""
    measured: Annotated[
        Mapping[str, tuple[str, ...]],
        Is(entry=("SETTING", "All values of a setting, in their order.")),
    ] = field(default_factory=dict)
    """By setting of measurement.json: all values that teams were measured with."""
    teams_measured: Count = 0
    """Teams whose measurement.json tells settings."""


def _conditions(evaluation: ScoringRecord) -> dict[str, Any]:
    """All that scores depend on besides predictions, as far as metrics.json tells it.

    An option is called by its flag, so that it is not taken for a rule.
    """
    options = {_flag(key): str(value) for key, value in evaluation.options.items()}
    return {
        **(evaluation.rules or {}),
        "references_sha256": evaluation.references_sha256,
        "version": evaluation.version,
        **options,
    }


def check_origins(
    evaluations: Mapping[str, ScoringRecord], challenge: Challenge, results: Path
) -> Origin:
    """See that all teams were scored alike by the rules of a challenge, and return how.

    `evaluations` tells by team how its label maps were scored; `results` is the folder
    of all teams. A RankingError is raised if a team was scored otherwise; the message
    names it, what is different by key and values, and the command that mends it.
    """
    usual = _usual(evaluations)
    expected = _conditions(replace(usual, rules=scoring_rules(challenge)))
    older = [team for team, scored in evaluations.items() if scored.rules is None]
    odd = older or [
        team for team, scored in evaluations.items() if _conditions(scored) != expected
    ]
    if older:
        problem = f"{_who(older, evaluations)}: {NO_RULES}"
    elif odd:
        problem = _describe_odd_teams(odd, evaluations, expected, challenge)
    if odd:
        remedy = _remedy(evaluations[odd[0]], usual, challenge, results)
        raise RankingError(str(results), problem, remedy)
    first = next(iter(evaluations.values()))
    return Origin(
        challenge_sha256=first.challenge_sha256,
        references_sha256=usual.references_sha256,
        rules_sha256=first.rules_sha256,
        options=_flags(usual),
    )


def _usual(evaluations: Mapping[str, ScoringRecord]) -> ScoringRecord:
    """How most teams were scored."""
    # As texts, which are counted in one go however many teams there are.
    texts = {
        team: json.dumps(_conditions(evaluation), sort_keys=True)
        for team, evaluation in evaluations.items()
    }
    counts = Counter(texts.values())
    return evaluations[max(texts, key=lambda team: counts[texts[team]])]


def _who(teams: Sequence[str], evaluations: Mapping[str, ScoringRecord]) -> str:
    return "all teams" if len(teams) == len(evaluations) else listing(teams)


def _describe_odd_teams(
    odd: Sequence[str],
    evaluations: Mapping[str, ScoringRecord],
    expected: Mapping[str, Any],
    challenge: Challenge,
) -> str:
    """Say how the first odd team was scored, and which teams were scored as it was."""
    first = evaluations[odd[0]]
    conditions = _conditions(first)
    same = [team for team in odd if _conditions(evaluations[team]) == conditions]
    differences = f"with {listing(rule_differences(conditions, expected))}"
    if first.challenge not in ("", challenge.key):
        differences = (
            f"by {safe(first.challenge)}, not by {safe(challenge.key)}, {differences}"
        )
    odd_teams = frozenset(odd)
    alike = [team for team in evaluations if team not in odd_teams]
    if first.rules == scoring_rules(challenge) and len(alike) == len(same):
        # Either half may be the odd one.
        teams = f"{listing(alike)} and {listing(same)}"
        return f"{teams}: not scored alike, {listing(same)} {differences}"
    return f"{_who(same, evaluations)}: scored {differences}"


def _name(key: str) -> str:
    """A challenge as on a command line."""
    return key if key in challenge_names() else f"{key}.toml"


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _flags(evaluation: ScoringRecord) -> str:
    """Options as on a command line."""
    options = evaluation.options
    return " ".join(
        f"{_flag(key)} {safe(str(options[key]))}" for key in OPTIONS if key in options
    )


def _remedy(
    odd: ScoringRecord, usual: ScoringRecord, challenge: Challenge, results: Path
) -> str:
    """The commands that score teams anew: kept predictions, or what was submitted."""
    end = f"--ground-truth LABELS --challenge {safe(_name(challenge.key))}"
    folder = shell_word(results)
    # What was accepted without options scores the same with them: not the reverse.
    options = f"{_flags(usual) or _flags(odd)} --output {folder}".lstrip()
    remedy = (
        f"Score the kept predictions anew: flare rescore {folder} {end}; teams without"
        f" any, or with other options: flare score TEAMS {end} {options}."
    )
    if odd.challenge in ("", challenge.key):
        return remedy
    name = safe(_name(odd.challenge))
    return f"If that challenge counts, give --challenge {name}. Else: {remedy}"


def check_comparable(
    sources: Sequence[Path], evaluations: Sequence[EvaluationFile]
) -> tuple[str, ...]:
    """See that evaluations were made by the same rules, and have cases in common.

    Each is compared with the first. The result has reasons why scores may differ though
    the predictions do not, in words of a sentence. A MetricsFileError is raised if one
    is of another challenge, was scored by other rules, or has no case of the others;
    the message names it.
    """
    common = set(evaluations[0].cases)
    rules = _named_rules(evaluations[0].evaluation)
    for source, file in zip(sources, evaluations, strict=True):
        if file.evaluation.rules is None:
            raise MetricsFileError(str(source), NO_RULES, ALIKE)
        file_rules = _named_rules(file.evaluation)
        if file_rules != rules:
            differences = listing(rule_differences(file_rules, rules))
            raise MetricsFileError(
                str(source),
                f"scored with {differences}, as {safe(sources[0])} was",
                ALIKE,
            )
        common &= set(file.cases)
        if not common and file.cases:  # of answers alone, no case is told
            problem = "it has no case of those before it"
            remedy = "Compare evaluations of the same cases."
            raise MetricsFileError(str(source), problem, remedy)
    return tuple(_other_reasons([file.evaluation for file in evaluations]))


def _named_rules(evaluation: ScoringRecord) -> dict[str, Any]:
    """All rules of a metrics.json, and its challenge as if that were a rule."""
    return {"challenge": evaluation.challenge, **(evaluation.rules or {})}


def _other_reasons(evaluations: Sequence[ScoringRecord]) -> Iterator[str]:
    """Reasons why scores may differ, besides predictions."""
    if len({evaluation.references_sha256 for evaluation in evaluations}) > 1:
        yield "other reference labels"
    if len({evaluation.version for evaluation in evaluations}) > 1:
        yield "another version of the program"
    if len({str(evaluation.options) for evaluation in evaluations}) > 1:
        yield "other options"
