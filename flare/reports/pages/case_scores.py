"""Shows what the cases of one evaluation score: tiles, tables, and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flare.challenge.metrics import SCORES
from flare.common.text import count, printable, safe
from flare.reports.pages.distributions import score_axis, spread_rows
from flare.reports.pages.intervals import mean_interval
from flare.reports.pages.parts import (
    NO_RESULT,
    Cell,
    Figure,
    Head,
    Row,
    Table,
    Tile,
    heads,
    name_cell,
    number_cell,
    score_cell,
)
from flare.reports.pages.tips import dot_tips
from flare.results.scores import statistics

WORST_CASES = 10
"""So many cases are named before all others."""

NO_LINKS: Mapping[str, str] = {}
"""No case has a page of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScores:
    """DSC and NSD of all cases."""

    cases: tuple[str, ...]
    organs: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]
    """By metric, such as ``dsc`` or ``nsd_liver``: a value for each case."""
    means: Mapping[str, float]
    """By metric, where the evaluation has told them."""
    exact: bool
    """Whether the page may hold values in full precision, and figures of other
    statistics than means."""

    def present(self, metric: str) -> list[float]:
        """The values that there are."""
        return [value for value in self.values.get(metric, ()) if value is not None]

    def mean(self, metric: str) -> float | None:
        """The mean over the cases; None if there is no value."""
        found = self.present(metric)
        if metric in self.means:
            return self.means[metric]
        return statistics(found)["mean"] if found else None

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """How each organ, and their mean, ends the name of a metric, and its title."""
        organs = [
            (f"_{organ}", printable(organ.replace("_", " "))) for organ in self.organs
        ]
        whole = [] if len(organs) == 1 else [("", "mean of organs")]
        return (*whole, *organs)


def mean_tiles(scores: CaseScores) -> tuple[Tile, ...]:
    """The mean DSC and NSD, with their intervals."""
    found = []
    for score in SCORES:
        mean = scores.mean(score)
        interval = mean_interval(scores.present(score))
        found.append(
            Tile(
                name=f"Mean {score.upper()}",
                value=NO_RESULT if mean is None else f"{mean:.3f}",
                exact=repr(mean) if scores.exact and mean is not None else "",
                note=f"95 % interval {_range(interval)}"
                if interval
                else "too few cases for an interval",
            )
        )
    return tuple(found)


def _range(interval: tuple[float, float]) -> str:
    """An interval in words."""
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def organ_table(scores: CaseScores, score: str) -> Table:
    """A row for each organ: its mean with an interval, and what else may be told."""
    names = ("std", "median", "min", "max") if scores.exact else ()
    titles = {"std": "SD", "median": "median", "min": "lowest", "max": "highest"}
    rows = []
    for end, title in scores.rows:
        values = scores.present(score + end)
        interval = mean_interval(values)
        told = statistics(values) if values else {}
        cells = [
            name_cell(title),
            number_cell(scores.mean(score + end), exact=scores.exact),
            Cell(text=_range(interval) if interval else "too few cases"),
            *(number_cell(told.get(name), exact=scores.exact) for name in names),
        ]
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"{score.upper()} over {count(len(scores.cases), 'case')}",
        heads=heads(
            *("organ", "mean", "95 % interval"),
            *(titles[name] for name in names),
            words=("organ",),
        ),
        rows=tuple(rows),
    )


def distribution(scores: CaseScores, score: str) -> Figure:
    """A dot for each case and organ."""
    rows = [scores.present(score + end) for end, _ in scores.rows]
    scale, ticks = score_axis([value for values in rows for value in values])
    title = score.upper()
    means = [scores.mean(score + end) for end, _ in scores.rows]
    summary = "; ".join(
        f"{name} mean {NO_RESULT if mean is None else format(mean, '.3f')}"
        for (_, name), mean in zip(scores.rows, means, strict=True)
    )
    boxed = (("swatch boxed", "middle half"), ("swatch line", "median"))
    return Figure(
        title=f"{title} of each case",
        note="" if ticks[0][1] == "0.0" else "The axis begins at 0.5.",
        summary=summary,
        labels=tuple(name for _, name in scores.rows),
        drawing=spread_rows(rows, scale, ticks, has_boxes=scores.exact),
        key=(("dot", "a case"), *((k[7:], t) for k, t in boxed if scores.exact)),
        table=organ_table(scores, score),
        top=True,
        tips=dot_tips(
            scores.cases, [scores.values.get(score + end, ()) for end, _ in scores.rows]
        ),
    )


def case_table(
    scores: CaseScores,
    score: str,
    order: Sequence[int],
    failed: Mapping[str, str],
    links: Mapping[str, str] = NO_LINKS,
) -> Table:
    """A row for each case, worst first, and a column for each organ, shaded.

    `links` are the pages of cases that have one.
    """
    rows = []
    for number in order:
        case = scores.cases[number]
        cells = [name_cell(case, links.get(case, ""))]
        for end, _ in scores.rows:
            values = scores.values.get(score + end, ())
            value = values[number] if values else None
            cells.append(score_cell(value, exact=scores.exact))
        if failed:
            remark = "not scored" if case in failed else ""
            cells.append(Cell(text=remark, css="wrap"))
        rows.append(Row(cells=tuple(cells)))
    titles = [title for _, title in scores.rows]
    columns = [Head(text="case", numeric=False), *heads(*titles)]
    if failed:
        columns.append(Head(text="remark", numeric=False))
    return Table(
        caption=f"{score.upper()} of each case and organ, the worst cases first",
        heads=tuple(columns),
        rows=tuple(rows),
    )


def worst_first(scores: CaseScores) -> list[int]:
    """The numbers of the cases, lowest scores first; equal ones in their order."""
    dsc, nsd = (
        [-1.0 if value is None else value for value in scores.values[score]]
        for score in SCORES
    )

    def badness(number: int) -> tuple[float, float, int]:
        return dsc[number], nsd[number], number

    return sorted(range(len(scores.cases)), key=badness)


def worst_table(
    scores: CaseScores,
    order: Sequence[int],
    reasons: Mapping[str, str],
    links: Mapping[str, str] = NO_LINKS,
) -> Table:
    """The worst cases with what they score, and why; `links` as in `case_table`."""
    rows = []
    for number in order[:WORST_CASES]:
        case = scores.cases[number]
        reason = reasons.get(case) or lowest_organ(scores, number)
        cells = [name_cell(case, links.get(case, ""))]
        for score in SCORES:
            value = scores.values[score][number]
            cells.append(score_cell(value, exact=scores.exact))
        rows.append(Row(cells=(*cells, Cell(text=printable(reason), css="wrap"))))
    return Table(
        caption=f"The {len(rows)} cases with the lowest DSC"
        if len(rows) > 1
        else "The only case",
        heads=heads("case", "DSC", "NSD", "why", words=("case", "why")),
        rows=tuple(rows),
    )


def lowest_organ(scores: CaseScores, number: int) -> str:
    """What the numbers tell of why a case scores low."""
    found = []
    for organ in scores.organs:
        value = scores.values[f"dsc_{organ}"][number]
        if value is not None:
            found.append((value, organ.replace("_", " ")))
    zeros = [safe(organ) for value, organ in found if value == 0]
    if zeros:
        return f"no overlap with the reference: {', '.join(zeros)}"
    if len(found) < 2:
        return ""
    value, organ = min(found)
    text = f"lowest organ: {safe(organ)}, DSC {value:.3f}"
    if scores.exact:
        usual = statistics(scores.present(f"dsc_{organ.replace(' ', '_')}"))["median"]
        text += f" (median of all cases {usual:.3f})"
    return text
