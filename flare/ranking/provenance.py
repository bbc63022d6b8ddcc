"""Refuses results that were not made alike, by the name of the odd one out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from flare.challenge.digest import differences_text, scoring_rules
from flare.challenge.reading import challenge_names
from flare.challenge.rules import Challenge
from flare.common.schema import Count, Is
from flare.common.text import listing, safe, shell_word
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_reading import Evaluation, EvaluationFile
from flare.results.team_folder import PREDICTIONS

OPTIONS = {
    "on_bad_case": "--on-bad-case",
    "grid": "--grid",
    "unknown_labels": "--unknown-labels",
    "decimals": "--decimals",
}
"""Options of an evaluation, and their flags."""


ALIKE = (
    "Compare evaluations by the same rules: score the predictions anew with flare"
    " evaluate."
)

SAME_CASES = "Compare evaluations of the same cases."


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """A team whose label maps were scored."""

    team: str
    file: Path
    """Its metrics.json."""
    evaluation: Evaluation
    """What that file says about how it was made."""
    is_measured: bool
    """Whether the kit has run its image."""

    @property
    def rules(self) -> Mapping[str, Any] | None:
        """The rules that scoring has read; None in results of earlier versions."""
        rules = self.evaluation.rules
        return rules if isinstance(rules, dict) else None


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
        Is(each=("SETTING", "All values of a setting, in their order.")),
    ] = field(default_factory=dict)
    """By setting of measurement.json: all values that teams were measured with."""
    teams_measured: Count = 0
    """Teams whose measurement.json tells settings."""


def check_origins(
    found: Sequence[Evaluated], challenge: Challenge | str, results: Path
) -> tuple[Origin, tuple[str, ...]]:
    """See that all teams were scored alike, and by the rules that are given.

    Parameters
    ----------
    found : sequence of Evaluated
        The teams.
    challenge : Challenge or str
        By whose rules, or by which challenge, they should have been scored; an empty
        text for any.
    results : Path
        Where they are.

    Returns
    -------
    tuple of Origin and tuple of str
        What they were made by, and what is odd about it.

    Raises
    ------
    RankingError
        If a team was scored otherwise; the message names it, what is different by key
        and values, and the command that mends it.
    """
    remedy = _anew(found, challenge, results)
    notes = _check_rules(found, challenge, str(results), remedy)
    for key in ("references_sha256", "version"):
        _check_equal(found, key, remedy)
    _check_options(found, challenge, results, remedy)
    first = found[0].evaluation
    has_rules = all(team.rules is not None for team in found)
    origin = Origin(
        challenge_sha256=str(first.challenge_sha256 or ""),
        references_sha256=str(first.references_sha256 or ""),
        rules_sha256=str(first.rules_sha256 or "") if has_rules else "",
        options=_flags(first.options or {}),
    )
    return origin, notes


def _name(challenge: Challenge | str) -> str:
    """A challenge as on a command line."""
    key = challenge if isinstance(challenge, str) else challenge.key
    return key if key in ("", *challenge_names()) else f"{key}.toml"


def _text(value: object) -> str:
    """A value of metrics.json as it can be compared, and shown."""
    return json.dumps(value, sort_keys=True).strip('"')


def _usual(found: Sequence[Evaluated], texts: Sequence[str]) -> str:
    """What most teams have; in a tie, what most measured teams have."""
    teams = Counter(texts)
    measured = Counter(
        t for t, team in zip(texts, found, strict=True) if team.is_measured
    )
    return max(teams, key=lambda t: (teams[t], measured[t], -texts.index(t)))


def _likewise(odd: Sequence[Evaluated]) -> str:
    """The other teams that share the problem."""
    return f" (likewise {listing(team.team for team in odd[1:])})" if odd[1:] else ""


def _anew(found: Sequence[Evaluated], challenge: Challenge | str, results: Path) -> str:
    """The commands that score teams anew: kept predictions, or what was submitted."""
    key = _name(challenge)
    end = "--ground-truth LABELS" + (f" --challenge {safe(key)}" if key else "")
    folder = shell_word(results)
    kept = f"flare rescore {folder} {end}"
    submitted = f"flare score TEAMS {end} --output {folder}"
    are_kept = {
        team.is_measured or (team.file.parent / PREDICTIONS).is_dir() for team in found
    }
    if are_kept == {True}:
        return f"Score the kept predictions anew: {kept}."
    if are_kept == {False}:
        return f"Score what the teams have submitted anew: {submitted}."
    return f"Score the kept predictions anew: {kept}; teams without any: {submitted}."


def _check_equal(found: Sequence[Evaluated], key: str, remedy: str) -> None:
    """Refuse teams that have another value than most."""
    texts = [_text(getattr(team.evaluation, key)) for team in found]
    usual = _usual(found, texts)
    odd = [team for team, text in zip(found, texts, strict=True) if text != usual]
    if odd:
        own, others = (
            safe(text[:12] if key.endswith("_sha256") else text)
            for text in (_text(getattr(odd[0].evaluation, key)), usual)
        )
        problem = f"its {key} is {own}, that of others {others}{_likewise(odd)}"
        raise RankingError(str(odd[0].file), problem, remedy)


def _check_options(
    found: Sequence[Evaluated], challenge: Challenge | str, results: Path, anew: str
) -> None:
    """Refuse teams that were evaluated with other options than most."""
    options = [team.evaluation.options or {} for team in found]
    if not all(isinstance(own, dict) and set(own) <= set(OPTIONS) for own in options):
        _check_equal(found, "options", anew)
        return
    texts = [_text(own) for own in options]
    usual = json.loads(_usual(found, texts))
    odd = [team for team, own in zip(found, options, strict=True) if own != usual]
    if not odd:
        return
    own = odd[0].evaluation.options or {}
    parts = [
        f"{how} {_flags({k: v for k, v in one.items() if other.get(k) != v})}"
        for how, one, other in (("without", usual, own), ("with", own, usual))
        if any(other.get(k) != v for k, v in one.items())
    ]
    problem = f"{safe(odd[0].team)} was evaluated {' and '.join(parts)}{_likewise(odd)}"
    key = _name(challenge)
    command = " ".join(
        filter(
            None,
            [
                "flare evaluate --input PREDICTIONS --ground-truth LABELS",
                f"--challenge {safe(key)}" if key else "",
                _flags(usual),
                f"--output {shell_word(results / odd[0].team)}",
            ],
        )
    )
    if odd[0].is_measured:
        command = f"flare rescore {shell_word(results)} --ground-truth LABELS"
    them = "them" if usual else "none"
    remedy = f"Evaluate it again with {them}: {command}."
    raise RankingError(str(results), problem, remedy)


def _flags(options: object) -> str:
    """Options as on a command line."""
    if not isinstance(options, dict):
        return ""
    return " ".join(
        f"{OPTIONS[k]} {safe(str(options[k]))}" for k in OPTIONS if k in options
    )


def _check_rules(
    found: Sequence[Evaluated], challenge: Challenge | str, results: str, remedy: str
) -> tuple[str, ...]:
    """Refuse scores by other rules; tell what is odd about those of old versions."""
    key = challenge if isinstance(challenge, str) else challenge.key
    known = [team for team in found if team.rules is not None]
    older = [team for team in found if team.rules is None]
    expected: Mapping[str, Any] | None = None
    if isinstance(challenge, Challenge):
        expected = scoring_rules(challenge)
    elif known:
        expected = json.loads(_usual(known, [_text(team.rules) for team in known]))
    odd = [team for team in known if team.rules != expected]
    for team in [*odd, *older]:
        told = team.evaluation.challenge
        scored_by = key if told is None else str(told)
        if key and scored_by != key:
            problem = f"it was scored by {safe(scored_by)}, not by {safe(key)}"
            if team in odd and expected is not None:
                problem += f": {differences_text(team.rules or {}, expected)}"
            count = f"If the rules of {safe(scored_by)} count, give"
            other = f"{count} --challenge {safe(_name(scored_by))}. Otherwise, "
            remedy = other + remedy[0].lower() + remedy[1:]
            raise RankingError(str(team.file), problem, remedy)
    if odd and expected is not None:
        same = [team for team in odd if team.rules == odd[0].rules]
        who = "all teams" if len(same) == len(found) else listing(t.team for t in same)
        differences = differences_text(odd[0].rules or {}, expected)
        was = "were" if len(same) > 1 else "was"
        problem = f"{who} {was} scored by other rules: {differences}"
        raise RankingError(results, problem, remedy)
    _check_equal(older or found[:1], "challenge_sha256", remedy)
    if not older:
        return ()
    files = {_text(team.evaluation.challenge_sha256) for team in known}
    if isinstance(challenge, Challenge):
        files.add(challenge.checksum)
    own = _text(older[0].evaluation.challenge_sha256)
    if own in files or not files:
        return ()
    names = listing(team.team for team in older)
    if known:
        problem = (
            f"{names}: an earlier version has scored this, and does not tell by which"
            f" rules; its challenge_sha256 is {safe(own[:12])}, that of others is not"
        )
        raise RankingError(results, problem, remedy)
    return (
        f"By which rules {names} were scored, an earlier version does not tell, and the"
        f" challenge file was another one ({safe(own[:12])}): score them anew before"
        " you publish",
    )


class Unlike(Enum):
    """What else than predictions may be why scores differ, in words of a sentence."""

    REFERENCES = "other reference labels"
    VERSION = "another version of the program"
    OPTIONS = "other options"


def check_comparable(
    sources: Sequence[Path], found: Sequence[EvaluationFile]
) -> tuple[Unlike, ...]:
    """See that evaluations were made by the same rules, and have cases in common.

    Parameters
    ----------
    sources : sequence of Path
        Their files.
    found : sequence of EvaluationFile
        What these hold; all are compared with the first.

    Returns
    -------
    tuple of Unlike
        What else is not alike, though scores can be compared.

    Raises
    ------
    MetricsFileError
        If one is of another challenge, was scored by other rules as `flare rank` tells
        them apart, or has no case of the others; the message names it.
    """
    first = found[0].scores
    common = set(first.cases)
    for source, other in zip(sources[1:], found[1:], strict=True):
        own, usual = (
            str(each.evaluation.challenge or "") for each in (other.scores, first)
        )
        if own != usual:
            problem = (
                f"its challenge is {safe(own) or 'not told'}, that of"
                f" {safe(sources[0])} {safe(usual) or 'not told'}"
            )
            raise MetricsFileError(str(source), problem, ALIKE)
        _check_alike((sources[0], source), (found[0], other))
        common &= set(other.scores.cases)
        if not common:
            others = "the files before it have" if len(found) > 2 else "the other has"
            problem = f"it has no case that {others}"
            raise MetricsFileError(str(source), problem, SAME_CASES)
    return _unlike(found)


def _check_alike(sources: Sequence[Path], found: Sequence[EvaluationFile]) -> None:
    """Refuse the second of two evaluations if it was scored by other rules."""
    names = (str(sources[0]), "this file")
    both = [
        Evaluated(
            team=name,
            file=source,
            evaluation=each.scores.evaluation,
            is_measured=False,
        )
        for name, source, each in zip(names, sources, found, strict=True)
    ]
    try:
        _check_rules(both, "", str(sources[1]), "")
    except RankingError as error:
        raise MetricsFileError(str(sources[1]), error.problem, ALIKE) from error


def _unlike(found: Sequence[EvaluationFile]) -> tuple[Unlike, ...]:
    """What is not the same in all evaluations."""
    made = [each.scores.evaluation for each in found]
    kinds = (
        (Unlike.REFERENCES, [each.references_sha256 for each in made]),
        (Unlike.VERSION, [each.version for each in made]),
        (Unlike.OPTIONS, [each.options or {} for each in made]),
    )
    return tuple(
        kind for kind, told in kinds if any(each != told[0] for each in told[1:])
    )
