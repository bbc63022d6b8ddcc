"""Says how values become one ranking: by ranks on each case, or by ranks of means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flare.challenge.metrics import metric_named
from flare.common.schema import Checked, check
from flare.common.text import joined


class Ties(StrEnum):
    """The rank that teams with equal values get."""

    MIN = "min"
    """The best of the places that they take together."""
    AVERAGE = "average"
    MAX = "max"


CASES, MEANS = "cases", "means"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeRules(Checked):
    """What teams are ranked on; by default FLARE's ranking."""

    kind: str = CASES
    """``cases`` for ranks on each case, ``means`` for ranks of the means of cases."""
    each_organ: bool = False
    """Whether there is a rank for each organ, in place of one by the mean of organs."""
    group: str = ""
    """The column of groups.csv, in each of whose groups there are means and ranks."""
    ties: Ties = Ties.MIN
    """The rank of equal values."""
    ties_by: tuple[str, ...] = ()
    """Columns whose means order the teams that the ranking leaves equal."""

    @property
    def is_of_means(self) -> bool:
        """Whether means are ranked."""
        return self.kind == MEANS

    def _check_rules(self) -> None:
        expected = (
            f'"{CASES}" or "{MEANS}": ranks of ranks, such as HECKTOR\'s nested Borda'
            " counts, are not supported, as one sum of ranks has to order the teams"
        )
        check(self.kind in (CASES, MEANS), "kind", self.kind, expected)
        is_grouped = self.is_of_means or not self.group
        check(is_grouped, "group", self.group, f'none, as kind is not "{MEANS}"')

    def text(self, columns: int) -> str:
        """The scheme of a ranking by so many columns; empty of FLARE's own.

        Examples
        --------
        >>> SchemeRules(kind="means", ties_by=("dsc_tumor",)).text(2).partition(";")[0]
        'Teams are ranked by the means of all cases, by each metric, and then by the \
mean of these ranks'
        >>> SchemeRules(kind="means").text(1)
        'Teams are ranked by the means of all cases. No case has ranks of its own.'
        """
        if self == PLAIN_SCHEME:
            return ""
        cases = f"the cases of each {self.group}" if self.group else "all cases"
        values = {CASES: "values of each case", MEANS: f"the means of {cases}"}
        text = f"Teams are ranked by {values[self.kind]}"
        if columns > 1:
            text += f", by each metric{' of each organ' if self.each_organ else ''}"
        if columns > 1 or self.group or not self.is_of_means:
            text += ", and then by the mean of these ranks"
        if self.ties_by:
            titles = (metric_named(name).title_within for name in self.ties_by)
            text += f"; teams that are equal then, by {joined(titles, ', then ')}"
        return f"{text}.{' No case has ranks of its own.' * self.is_of_means}"


PLAIN_SCHEME = SchemeRules()
"""FLARE's: on each case by each metric; the mean of these ranks, and equal ranks."""
