"""Says from whom rules are known that the organisers have not confirmed."""

from __future__ import annotations

from dataclasses import dataclass

from flare.common.schema import check

RULES_NOTE = "rules as participants report them, not confirmed by the organisers"
"""What results say of such rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRule:
    """A rule, or several, that participants report."""

    rule: str
    """In words, for people."""
    source: tuple[str, ...]
    """Links to what was read, each to one version of it."""
    teams: int
    """How many teams that know nothing of each other say the same."""
    keys: tuple[str, ...] = ()
    """Keys of the challenge file that it is about; none if no key holds it."""

    def __post_init__(self) -> None:
        """Check the values."""
        check(bool(self.rule.strip()), "rule", self.rule, "a rule in words")
        check(bool(self.source), "source", [], "at least one link")
        for link in self.source:
            is_link = link.startswith("https://") and not link.split()[1:]
            check(is_link, "source", link, "links that begin with https://")
        check(self.teams >= 1, "teams", self.teams, "a number of teams, 1 or more")

    @property
    def teams_text(self) -> str:
        """How many teams agree, in words."""
        return "1 team" if self.teams == 1 else f"{self.teams} teams"
