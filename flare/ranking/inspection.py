"""Says who took part besides the teams that are ranked, and how results were made.

Nobody vanishes from a ranking: teams whose archives were refused or replaced, that are
not measured or scored yet, that have the results of another team, or that an
evaluation has warned of. Results that were not made alike are refused, by the name of
the odd one out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any

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
        waiting = {found.team for found in self.not_scored_yet}
        names = sorted({*waiting, *self.not_measured_to_the_end})
        are = "is" if len(names) == 1 else "are"
        text = (
            f"Interim ranking: {count(len(names), 'team')} {are} not measured to the"
            f" end ({listing(names)}). Go on with flare measure, and rank again."
        )
        return text if names else ""

    @property
    def lines(self) -> Iterator[str]:
        """What organisers should look at, each in a line."""
        for f in self.refused:
            rest = (
                "is ranked by what else it has sent" if f.is_ranked else "is not ranked"
            )
            told = f"{safe(f.team)}: {safe(f.file)} was refused, and the team {rest}"
            yield f"{told}: {printable(f.reason)}"
        for r in self.replaced:
            yield (
                f"{safe(r.team)}: archive replaced on {safe(r.date)}:"
                f" {printable(r.reason)}"
            )
        for w in self.not_scored_yet:
            yield (
                f"{safe(w.team)} has no scores yet, and is not ranked"
                f" ({w.cases_measured} cases are measured): go on with flare measure"
                " --ground-truth"
            )
        for c in self.equal_results:
            yield f"{listing(c.teams, last=' and ')} have {c.what}: is one a copy?"

    def shown(self, name_of: Callable[[str], str]) -> RollCall:
        """The same roll call with the names that teams are shown by."""

        def renamed(found: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(replace(own, team=name_of(own.team)) for own in found)

        return replace(
            self,
            refused=renamed(self.refused),
            replaced=renamed(self.replaced),
            not_scored_yet=renamed(self.not_scored_yet),
            not_measured_to_the_end=tuple(map(name_of, self.not_measured_to_the_end)),
            equal_results=tuple(
                replace(own, teams=tuple(map(name_of, own.teams)))
                for own in self.equal_results
            ),
        )


def read_archives(
    results: Path, refused: Sequence[Refusal] = ()
) -> tuple[tuple[str, ...], tuple[Replacement, ...]]:
    """Teams whose archives were accepted, and those that have replaced another one.

    An archive that was accepted, and that the engine could not load, was refused.

    Raises
    ------
    RankingError
        If ledger.csv is there, but cannot be read.
    """
    file = results / LEDGER_CSV
    entries = read_table(file, LedgerEntry) if lexists(file) else []
    # The earliest entry comes last, and stays.
    first = {entries[n].team: n for n in reversed(range(len(entries)))}
    replaced = [
        Replacement(team=entry.team, date=entry.date, reason=entry.reason)
        for number, entry in enumerate(entries)
        if number > first[entry.team]
    ]
    last = {entry.team: entry.archive_sha256 for entry in entries}
    not_loaded = {(found.team, found.archive_sha256) for found in refused}
    accepted = sorted(team for team, _ in last.items() - not_loaded)
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


def made_by(evaluation: ScoringRecord) -> dict[str, Any]:
    """What scores depend on besides predictions: rules, references, options, version.

    An option is called by its flag, so that it is not taken for a rule.
    """
    options = {_flag(key): str(own) for key, own in evaluation.options.items()}
    return {
        **(evaluation.rules or {}),
        "references_sha256": evaluation.references_sha256,
        "version": evaluation.version,
        **options,
    }


def check_origins(
    found: Mapping[str, ScoringRecord], challenge: Challenge, results: Path
) -> Origin:
    """See that all teams were scored alike, and by the rules that are given.

    Parameters
    ----------
    found : mapping of str to ScoringRecord
        By team: how its label maps were scored.
    challenge : Challenge
        By whose rules they should have been scored.
    results : Path
        Where they are.

    Returns
    -------
    Origin
        What they were made with.

    Raises
    ------
    RankingError
        If a team was scored otherwise; the message names it, what is different by key
        and values, and the command that mends it.
    """
    usual = _usual(found)
    expected = made_by(replace(usual, rules=scoring_rules(challenge)))
    made = {team: made_by(own) for team, own in found.items()}
    older = [team for team, own in found.items() if own.rules is None]
    odd = older or [team for team, own in made.items() if own != expected]
    if odd:
        first = made[odd[0]]
        same = [team for team in odd if older or made[team] == first]
        who = "all teams" if len(same) == len(found) else listing(same)
        differences = f"with {listing(rule_differences(first, expected))}"
        remedy = _anew(usual, challenge, results)
        told = found[odd[0]].challenge
        if told not in ("", challenge.key):
            differences = (
                f"by {safe(told)}, not by {safe(challenge.key)}, {differences}"
            )
            name = safe(_name(told))
            remedy = (
                f"If that challenge counts, give --challenge {name}. Else: {remedy}"
            )
        problem = NO_RULES if older else f"scored {differences}"
        alike = [team for team in found if made[team] == expected]
        is_by_rules = found[odd[0]].rules == scoring_rules(challenge)
        if is_by_rules and len(alike) == len(same):  # nobody knows which is odd
            who = f"{listing(alike)} and {who}"
            problem = f"not scored alike, {listing(same)} {differences}"
        raise RankingError(str(results), f"{who}: {problem}", remedy)
    first_told = next(iter(found.values()))
    return Origin(
        challenge_sha256=first_told.challenge_sha256,
        references_sha256=usual.references_sha256,
        rules_sha256=first_told.rules_sha256,
        options=_flags(usual),
    )


def _usual(found: Mapping[str, ScoringRecord]) -> ScoringRecord:
    """How most teams were scored."""
    # As texts, which are counted in one go however many teams there are.
    made = {
        team: json.dumps(made_by(own), sort_keys=True) for team, own in found.items()
    }
    counts = Counter(made.values())
    return found[max(made, key=lambda team: counts[made[team]])]


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


def _anew(usual: ScoringRecord, challenge: Challenge, results: Path) -> str:
    """The commands that score teams anew: kept predictions, or what was submitted."""
    end = f"--ground-truth LABELS --challenge {safe(_name(challenge.key))}"
    folder = shell_word(results)
    options = " ".join(filter(None, [_flags(usual), f"--output {folder}"]))
    return (
        f"Score the kept predictions anew: flare rescore {folder} {end}; teams without"
        f" any, or with other options: flare score TEAMS {end} {options}."
    )


def check_comparable(
    sources: Sequence[Path], found: Sequence[EvaluationFile]
) -> tuple[str, ...]:
    """See that evaluations were made by the same rules, and have cases in common.

    Parameters
    ----------
    sources : sequence of Path
        Their files.
    found : sequence of EvaluationFile
        What these hold; all are compared with the first.

    Returns
    -------
    tuple of str
        What else than predictions may be why scores differ, in words of a sentence.

    Raises
    ------
    MetricsFileError
        If one is of another challenge, was scored by other rules, or has no case of
        the others; the message names it.
    """
    first = found[0]
    common = set(first.cases)
    for source, other in zip(sources, found, strict=True):
        own, usual = (
            {"challenge": told.challenge, **(told.rules or {})}
            for told in (other.evaluation, first.evaluation)
        )
        if other.evaluation.rules is None:
            raise MetricsFileError(str(source), NO_RULES, ALIKE)
        if own != usual:
            differences = listing(rule_differences(own, usual))
            raise MetricsFileError(
                str(source),
                f"scored with {differences}, as {safe(sources[0])} was",
                ALIKE,
            )
        common &= set(other.cases)
        if not common:
            problem = "it has no case of those before it"
            remedy = "Compare evaluations of the same cases."
            raise MetricsFileError(str(source), problem, remedy)
    made = [each.evaluation for each in found]
    kinds = {
        "other reference labels": {own.references_sha256 for own in made},
        "another version of the program": {own.version for own in made},
        "other options": {str(own.options) for own in made},
    }
    return tuple(what for what, told in kinds.items() if len(told) > 1)
