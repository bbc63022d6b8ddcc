"""Reads a challenge from its TOML file, says what it means, and compares its rules.

Results remember these rules instead of the bytes of a file: a comment, a name, a weight
or the metrics of the ranking change no score, and nothing that was measured.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.metrics import SCORES
from flare.challenge.organs import Organ
from flare.challenge.rules import Challenge
from flare.common.errors import AboutFile, OrganiserError
from flare.common.schema import build, dump
from flare.common.text import count, joined, listing, printable, runs, safe, why

Rule = str | int | float | bool | None

Rules = Mapping[str, Rule]
"""Values by key; those of an organ have keys such as "tolerance_mm of liver"."""

READ = (
    *("organs", "absent_organs", "smallest_dsc_for_nsd", "decimals", "z_range"),
    *("unknown_labels", "grid", "npz", "metrics"),
)
"""Fields of a challenge that scoring reads, whatever their values."""

OF_ORGANS = ("label", "tolerance_mm", "in_mean")
"""The keys of an organ that scoring reads."""

OF_SOME_ORGANS = ("labels", "lesions")
"""Further ones, which are rules of those organs that have them."""

NOT_READ = (
    *("key", "name", "checksum", "algorithm", "ranking", "max_gpu_memory"),
    *("efficiency_gate_dsc", "board", "reported", "not_known", "names", "answers"),
    *("values", "scheme"),
)
"""Fields of a challenge that change no score of label maps; any further one does where
it is set."""

OF_SCORING = ("classes", "threshold", "positive", "empty", "iou", "matching", "worst")
"""The keys of answers that say how cells are read and scored, if they are set."""

SHOWN = ("algorithm", "max_gpu_memory", "efficiency_gate_dsc", "board", "names")
"""Fields among these that `all_rules` tells, where they are set."""


def further_rules(challenge: Challenge) -> dict[str, Rule]:
    """Rules of scoring beside `READ` that are not left at their defaults."""
    rules = {}
    for field in fields(challenge):
        value = getattr(challenge, field.name)
        if field.name not in (*READ, *NOT_READ) and value != field.default:
            rules[field.name] = dump(value)
    return rules


def _rules_of_field(challenge: Challenge, name: str) -> dict[str, Rule]:
    """A field of a challenge as JSON has it; if it is a table, each of its keys."""
    value = dump(getattr(challenge, name))
    if isinstance(value, dict):
        return {f"{name}.{key}": rule for key, rule in value.items()}
    return {name: value}


def scoring_rules(challenge: Challenge) -> dict[str, Rule]:
    """Everything that the scores of label maps depend on, by key.

    The order of the organs is not among it, nor is a rule that applies to nothing.

    Examples
    --------
    >>> from flare.challenge.reading import read_challenge
    >>> scoring_rules(read_challenge("flare21"))["tolerance_mm of liver"]
    1.0
    """
    rules: dict[str, Rule] = {}
    for organ in challenge.organs:
        rules |= _organ_rules(organ, has_tolerance=challenge.has_tolerance)
    for name in set(READ) - {"organs", "metrics"}:
        rules |= _rules_of_field(challenge, name)
    rules |= further_rules(challenge)
    for answers in challenge.answers:
        rules |= _answer_rules(answers)
    zs = challenge.z_range
    rules["z_range.organs"] = ", ".join(sorted(zs.organs))
    rules["z_range.top_slice"] = zs.top_slice.value if zs.organs else ""
    if challenge.metrics != SCORES:
        rules["metrics"] = ", ".join(challenge.metrics)
    if not challenge.npz.prediction:
        rules = {key: rule for key, rule in rules.items() if not key.startswith("npz.")}
    return dict(sorted(rules.items()))


def _organ_rules(organ: Organ, *, has_tolerance: bool) -> dict[str, Rule]:
    """The keys of an organ; the labels of a region are one text."""
    rules = {f"{key} of {organ.name}": getattr(organ, key) for key in OF_ORGANS}
    if not has_tolerance:
        rules[f"tolerance_mm of {organ.name}"] = None
    if isinstance(organ.label, tuple):
        rules[f"label of {organ.name}"] = ", ".join(map(str, organ.label))
    for key in OF_SOME_ORGANS:
        if value := getattr(organ, key):
            rules[f"{key} of {organ.name}"] = value
    return rules


def _answer_rules(answers: AnswerRules) -> dict[str, Rule]:
    """The keys of an ``[[answers]]`` that are set, each value as JSON has it."""
    rules: dict[str, Rule] = {}
    for field in fields(answers):
        value = getattr(answers, field.name)
        is_set = value not in (field.default, {})
        if is_set and field.name != "name":
            text = json.dumps(dump(value), ensure_ascii=False)
            rules[f"answers.{answers.name}.{field.name}"] = text
    return rules


def all_rules(challenge: Challenge) -> dict[str, Rule]:
    """The rules of scoring, and what else is not left at its default, by key."""
    rules = scoring_rules(challenge)
    for field in fields(challenge):
        if field.name in SHOWN and getattr(challenge, field.name) != field.default:
            rules |= _rules_of_field(challenge, field.name)
    return rules


def measuring_rules(challenge: Challenge) -> dict[str, Any]:
    """The rules that measuring depends on: memory that counts, labels, answers kept."""
    columns = [
        f"{rules.file}: {', '.join((*rules.case, *rules.prediction))}"
        for rules in challenge.answers
    ]
    return {
        "max_gpu_memory": challenge.max_gpu_memory.value,
        "labels": ", ".join(map(str, sorted(challenge.labels))),
        "answers": "; ".join(dict.fromkeys(columns)),
    }


def rules_digest(rules: Rules) -> str:
    """SHA-256 of rules, whatever their order."""
    text = json.dumps(dict(rules), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rule_differences(rules: Rules, other_rules: Rules) -> tuple[str, ...]:
    """How rules differ from other ones, each by its key and values.

    Examples
    --------
    >>> rule_differences({"decimals": None, "label of liver": 1}, {"decimals": 4})
    ('decimals none instead of 4', 'label of liver 1 instead of nothing')
    """
    differences = []
    for key in sorted({*rules, *other_rules}):
        is_in_both = key in rules and key in other_rules
        if not is_in_both or rules[key] != other_rules[key]:
            texts = safe(rule_text(rules, key)), safe(rule_text(other_rules, key))
            differences.append(f"{safe(key)} {' instead of '.join(texts)}")
    return tuple(differences)


def rule_text(rules: Rules, key: str) -> str:
    """A value as in a challenge file; the beginning of a digest."""
    value = rules.get(key, "nothing")
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else printable(str(value))
    return text[:12] if key.endswith("_sha256") else text


def recorded_challenge(
    key: str, rules: Mapping[str, Any], organs: Sequence[str]
) -> Challenge:
    """The challenge that results were scored by, as far as scoring has read it.

    `rules` are as `scoring_rules` gives them, and organs are in their order. A
    ValueError is raised if a rule is missing, or has a value that no rule can have.
    """
    z_range: dict[str, Any] = {}
    values: dict[str, Any] = {"z_range": z_range}
    for name, rule in rules.items():
        field, _, inner = name.partition(".")
        if field == "answers":
            continue
        if inner:
            values.setdefault(field, {})[inner] = rule
        elif " of " not in name:
            values[field] = _names_in(rule) if field == "metrics" else rule
    z_range["organs"] = _names_in(z_range.get("organs"))
    if not z_range.get("top_slice"):
        z_range.pop("top_slice", None)
    values["name"] = key
    values["organs"] = [_recorded_organ(rules, name) for name in organs]
    values["answers"] = _recorded_answers(rules)
    try:
        challenge = build(Challenge, values, key=key, checksum="")
    except OverflowError as error:
        raise ValueError(str(error)) from error
    missing_keys = scoring_rules(challenge).keys() - rules.keys()
    if missing_keys:
        raise ValueError(f"{listing(sorted(missing_keys))} is missing")
    return challenge


def _recorded_organ(rules: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of an organ as a challenge file has it."""
    organ = {
        key: rules.get(f"{key} of {name}") for key in (*OF_ORGANS, *OF_SOME_ORGANS)
    }
    label = organ["label"]
    if isinstance(label, str):
        texts = _names_in(label)
        organ["label"] = [int(text) if text.isdecimal() else text for text in texts]
    return {"name": name} | organ


def recorded_answers(rules: Mapping[str, Any]) -> tuple[AnswerRules, ...]:
    """The rules of answers that results were scored by, as they were recorded.

    A ValueError is raised if a rule has a value that no rule can have.
    """
    return tuple(build(AnswerRules, table) for table in _recorded_answers(rules))


def _recorded_answers(rules: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tables of answers as a challenge file has them."""
    tables: dict[str, dict[str, Any]] = {}
    for key, rule in rules.items():
        if key.startswith("answers."):
            _, name, field = key.split(".", 2)
            tables.setdefault(name, {"name": name})[field] = json.loads(str(rule))
    return [*tables.values()]


def _names_in(rule: Rule) -> list[str]:
    """The names that a rule has as one text, separated by commas."""
    return [name for name in str(rule or "").split(", ") if name]


# --- The file -----------------------------------------------------------------------


class ChallengeError(AboutFile, OrganiserError):
    """A challenge file breaks its rules.

    For organisers: the file, the key, the value and what is allowed are in the message.
    See `docs/reference/challenge-files.md`.
    """

    code = "G01"
    remedy = "The documentation's page Challenge files explains every key."


EDITIONS = Path(__file__).parent / "editions"
"""Folder of the challenges that come with the program."""

KEPT = ("reported", "not_known")
"""Lists to which a file that extends another adds, and that it does not replace."""


def challenge_names() -> tuple[str, ...]:
    """Return the names of the challenges that come with the program."""
    return tuple(sorted(file.stem for file in EDITIONS.glob("*.toml")))


def challenge_text(name: str) -> str:
    """The file of a challenge, to start another one from.

    Errors are those of `read_challenge`.
    """
    read_challenge(name)
    files, _ = _read_layers(name)
    first, *base_files = files
    parts = [files[first].decode().rstrip("\n")]
    for file in base_files:
        lines = [f"# --- {file.stem}, which is extended:"]
        for line in files[file].decode().rstrip("\n").split("\n"):
            lines.append(f"# {line}".rstrip())
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _read_file(name: str) -> tuple[Path, bytes]:
    """Find the file of a challenge, and read it."""
    if name.endswith(".toml"):
        source = Path(name)
    elif name in challenge_names():
        source = EDITIONS / f"{name}.toml"
    else:
        problem = f"no such challenge; there are {listing(challenge_names())}, or give"
        raise ChallengeError(name, f"{problem} a file that ends in .toml")
    try:
        return source, source.read_bytes()
    except OSError as error:
        reason = why(error)
        raise ChallengeError(name, f"cannot be read ({reason})") from error


def _read_layers(name: str) -> tuple[dict[Path, bytes], list[dict[str, Any]]]:
    """The file of a challenge, and those that it extends behind it; their values."""
    files: dict[Path, bytes] = {}
    layers: list[dict[str, Any]] = []
    base: object = name
    while base is not None:
        if layers and base not in challenge_names():
            names = listing(challenge_names(), last=" or ")
            problem = f"extends is {safe(repr(base))}, expected {names}"
            raise ChallengeError(name, problem)
        source, content = _read_file(str(base))
        if source in files:
            raise ChallengeError(name, f"extends leads back to {safe(source.name)}")
        try:
            values = tomllib.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ChallengeError(name, f"is not TOML ({safe(str(error))})") from error
        files[source] = content
        layers.append(values)
        base = values.pop("extends", None)
    return files, layers


def _merged(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file that extends another: its own come first.

    Tables are merged key by key, and so are answers of one name; what `KEPT` names is
    added to that of the base.
    """
    merged = dict(base)
    for key, value in values.items():
        base_value = merged.get(key)
        if isinstance(base_value, dict) and isinstance(value, dict):
            merged[key] = {**base_value, **value}
        elif key == "answers" and isinstance(base_value, list):
            merged[key] = _merged_answers(base_value, value)
        elif key in KEPT and isinstance(base_value, list) and isinstance(value, list):
            merged[key] = [*base_value, *value]
        else:
            merged[key] = value
    return merged


def _merged_answers(base_answers: list[Any], answers: Any) -> Any:
    """The answers of a base, whose keys are replaced by those of the same name.

    Whatever is no table is refused later, and so is a name that a file has twice.
    """
    if not isinstance(answers, list):
        return answers
    tables = [*base_answers]
    names = [table["name"] for table in base_answers]
    for table in answers:
        name = table.get("name") if isinstance(table, dict) else None
        if name in names:
            place = names.index(name)
            names[place] = None
            tables[place] = {**tables[place], **table}
        else:
            tables.append(table)
    return tables


def read_challenge(name: str | Path) -> Challenge:
    """Read a challenge.

    Parameters
    ----------
    name : str or Path
        Name of a bundled challenge, or the path of a TOML file (it ends in ``.toml``).

    Returns
    -------
    Challenge
        Its rules, which functions that take a ``challenge`` accept.

    Raises
    ------
    ChallengeError
        If there is no such challenge, or its file breaks a rule; the message names
        the file, the key, the value found and what is allowed.
    """
    name = str(name)
    files, layers = _read_layers(name)
    values = functools.reduce(_merged, reversed(layers))
    checksum = hashlib.sha256(b"".join(files.values())).hexdigest()
    try:
        return build(Challenge, values, key=next(iter(files)).stem, checksum=checksum)
    except (ValueError, OverflowError) as error:
        raise ChallengeError(name, str(error)) from error


def as_challenge(challenge: str | Path | Challenge) -> Challenge:
    """Return a challenge that was read before, or read it by its name or path."""
    return challenge if isinstance(challenge, Challenge) else read_challenge(challenge)


def challenge_summary(challenge: Challenge) -> str:
    """Say what a challenge asks for, by the keys of its file, for a person."""
    lines = [f"{challenge.name} ({challenge.key})", "", *_organ_lines(challenge)]
    lines += _answers_lines(challenge)
    for values in challenge.values:
        lines.append(
            f"{values.name}: others compute it, RESULTS/TEAM/{values.name}.csv"
        )
    rules = all_rules(challenge)
    keys = [key for key in rules if _is_told_as_rule(key, challenge)]
    if keys:
        lines += ["", "Rules:", *(f"  {key}: {rule_text(rules, key)}" for key in keys)]
    if challenge.ranking:
        lines += ["", f"Ranked by {', '.join(_ranked_metrics(challenge))}."]
        lines += filter(None, [challenge.scheme_text])
    if challenge.reported:
        lines += ["", *_reported_lines(challenge)]
    if challenge.not_known:
        lines += ["", "Not known:", *(f"  {text}" for text in challenge.not_known)]
    return "\n".join(lines)


def _is_told_as_rule(key: str, challenge: Challenge) -> bool:
    """Whether no line of an organ or of answers tells a rule, and it has an effect."""
    field, _, _ = key.partition(".")
    has_effect = bool(challenge.organs) or field not in READ
    return has_effect and " of " not in key and field != "answers"


def _organ_lines(challenge: Challenge) -> Iterator[str]:
    organs = sorted(challenge.organs, key=lambda organ: min(organ.region))
    width = max((len(organ.name) for organ in organs), default=0)
    labels = [", ".join(runs(sorted(organ.region))) for organ in organs]
    label_width = max(map(len, ("     ", *labels)))
    for organ, label in zip(organs, labels, strict=True):
        line = f"{label:>{label_width}}  {organ.name.ljust(width)}"
        if organ.tolerance_mm is not None:
            line += f"  tolerance {organ.tolerance_mm:g} mm"
        line += "" if organ.in_mean else ", not in the means"
        line += ", cases without it are counted" if organ.free_cases else ""
        line += ", each label is one" if organ.labels else ""
        line += f", lesions by {organ.lesions}" if organ.lesions else ""
        yield line.rstrip()


def _answers_lines(challenge: Challenge) -> Iterator[str]:
    """Say of each answers where they are, what they are, and how they are scored."""
    for answers in challenge.answers:
        yield f"{answers.name} ({answers.kind}): {KINDS[answers.kind].about}"
        columns = joined([*answers.case, *answers.prediction], ", ")
        yield f"  submission: {answers.file}, columns {columns}"
        columns = joined([*answers.case, *answers.reference], ", ")
        yield f"  references: {answers.references}, columns {columns}"
        for column, value in answers.only.items():
            yield f"  rows: those whose {column} is {value}"
        yield f"  metrics: {joined(answers.metrics, ', ')}"
        for field in fields(answers):
            value = getattr(answers, field.name)
            if field.name in OF_SCORING and value != field.default:
                text = json.dumps(dump(value), ensure_ascii=False)
                yield f"  {field.name}: {text}"


def _ranked_metrics(challenge: Challenge) -> Iterator[str]:
    """Name each ranked metric and its good end, and its weight if weights differ."""
    has_weights = any(rule.weight != 1 for rule in challenge.ranking)
    for rule in challenge.ranking:
        weight = f", weight {rule.weight:g}" if has_weights else ""
        yield f"{rule.metric} ({rule.better.value}{weight})"


def _reported_lines(challenge: Challenge) -> Iterator[str]:
    yield f"{challenge.rules_note[0].upper()}{challenge.rules_note[1:]}:"
    for reported_rule in challenge.reported:
        teams = count(reported_rule.teams, "team")
        yield f"  {reported_rule.rule} ({teams}):"
        for link in reported_rule.source:
            yield f"    {link}"
