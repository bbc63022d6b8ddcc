"""The table of editions whose rules participants report, made of their files."""

from __future__ import annotations

from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import Challenge, ReportedRule
from flare.common.text import count, listing


def editions_table() -> str:
    """A row for each: what is scored, who reports each rule, and what is not known."""
    heads = (
        *("Edition", "Task", "File", "What is scored, with the tolerance of NSD"),
        *("Each rule, and who reports it", "Not known"),
    )
    found = (read_challenge(name) for name in challenge_names())
    rows = [heads, ("---",) * len(heads)]
    rows += [_cells(challenge) for challenge in found if challenge.reported]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _cells(challenge: Challenge) -> tuple[str, ...]:
    """The row of one edition."""
    edition, _, task = challenge.name.partition(", ")
    organs = sorted(challenge.organs, key=lambda organ: organ.label)
    scored = [
        f"{organ.label} {organ.name.replace('_', ' ')}, {organ.tolerance_mm:g} mm"
        for organ in organs
    ]
    for answers in challenge.answers:
        scored.append(f"`{answers.name}` ({answers.kind}): {listing(answers.metrics)}")
    return (
        edition,
        task,
        f"`{challenge.key}`",
        "<br>".join(scored),
        "<br>".join(map(_rule, challenge.reported)),
        "<br>".join(map(_sentence, challenge.not_known)),
    )


def _rule(entry: ReportedRule) -> str:
    """A rule with its links."""
    links = ", ".join(f"[{_name(link)}]({link})" for link in entry.source)
    rule = entry.rule.replace("|", r"\|")  # which would end the cell
    return f"{rule}: {count(entry.teams, 'team')} ({links})."


def _name(link: str) -> str:
    """Whose page a link is of."""
    return link.removeprefix("https://").split("/")[1]


def _sentence(text: str) -> str:
    """A text as a sentence of its own."""
    return f"{text[0].upper()}{text[1:]}."
