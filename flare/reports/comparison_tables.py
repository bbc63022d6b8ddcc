"""Makes the tables and charts of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from flare.challenge.metrics import Metric
from flare.common.text import count
from flare.reports.charts import difference_axis, spread_chart
from flare.reports.comparison import Compared, Comparison, Paired, Pairs
from flare.reports.model import (
    NO_RESULT,
    Cell,
    Chart,
    Key,
    Table,
    name_cell,
    number_cell,
    table,
    text_cell,
)
from flare.reports.scores import title_within

BOUNDS = {"": (0.01, 0.05, 0.2), "mm": (1.0, 5.0, 20.0)}
"""By the unit of a metric: a difference above a bound has a darker shade than one up
to it."""

LOSSES = ("s2", "s4", "s5")
"""Classes of losses, small ones first: shades of bad scores."""

GAINS = ("g1", "g2", "g3")

# --- Differences ------------------------------------------------------------------


def difference_key(unit: str) -> Key:
    """What shades of differences in a unit mean."""
    low, middle, high = (f"{b:g} {unit}" if unit else f"{b:.2f}" for b in BOUNDS[unit])
    return (
        ("s5", f"loss above {high}"),
        ("s4", f"above {middle}"),
        ("s2", f"above {low}"),
        ("", f"at most {low} either way"),
        ("g1", f"gain above {low}"),
        ("g2", f"above {middle}"),
        ("g3", f"above {high}"),
    )


def difference_shade(value: float, unit: str = "") -> str:
    """The class of the shade of a difference in a unit; none of a small one.

    Examples
    --------
    >>> difference_shade(-0.3), difference_shade(0.01), difference_shade(0.05)
    ('s5', '', 'g1')
    """
    steps = sum(abs(value) > bound for bound in BOUNDS[unit])
    shades = GAINS if value > 0 else LOSSES
    return shades[steps - 1] if steps else ""


def signed(value: float, decimals: int = 3) -> str:
    """A difference with its sign, unless no digit of it is shown.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5, 1), signed(-0.0004)
    ('+0.012', '-0.5', '0.000')
    """
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def interval_text(own: Paired) -> str:
    """The interval of a mean difference in words: only those of scores have one."""
    if own.interval is None:
        return "too few cases" if own.metric.is_share else "none"
    return f"{signed(own.interval[0])} to {signed(own.interval[1])}"


def change_text(own: Paired) -> str:
    """The mean difference, with its sign."""
    return NO_RESULT if own.mean is None else signed(own.mean, own.metric.decimals)


def difference_cell(
    metric: Metric, value: float | None, *, exact: bool, is_shaded: bool = True
) -> Cell:
    """A difference with its sign, on its shade."""
    if value is None:
        return number_cell(None)
    return Cell(
        signed(value, metric.decimals),
        css=difference_shade(value, metric.unit) if is_shaded else "",
        exact=repr(value) if exact else "",
    )


def p_text(p: float) -> str:
    """A p-value, which sorts as a number.

    Examples
    --------
    >>> p_text(0.0421), p_text(1.0), p_text(0.000123)
    ('0.042', '1.000', '1.2e-04')
    """
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def tests_table(
    pairs: Sequence[Paired], first: Compared, other: Compared, title: str
) -> Table:
    """A row for each organ: both means, their difference, and how sure it is."""
    exact = other.scores.exact
    rows = [
        (
            name_cell(own.title),
            *(other.scores.cell(own.metric, mean) for mean in (own.before, own.after)),
            difference_cell(own.metric, own.mean, exact=exact, is_shaded=False),
            interval_text(own),
            *map(str, (own.better, own.equal, own.worse)),
            *_test_cells(own, exact=exact),
        )
        for own in pairs
    ]
    heads = (
        *("organ", f"mean: {first.name}", f"mean: {other.name}"),
        *("change", "95 % interval", "better", "equal", "worse", "effect"),
        *("p", "p (Holm)"),
    )
    gains = "a change above 0 is a gain"
    caption = f"{title}: means, counts of cases, and tests; {gains}"
    return table(caption, heads, rows, words=("organ",), is_whole=True)


def _test_cells(own: Paired, *, exact: bool) -> list[Cell]:
    """The effect and the p-values; words, where there is nothing to test."""
    if not own.is_tested:
        return [Cell("no test", css="none")] * 3
    return [
        Cell(f"{own.effect:+.2f}", exact=repr(own.effect) if exact else ""),
        *(Cell(p_text(p), exact=repr(p) if exact else "") for p in (own.p, own.p_holm)),
    ]


def differences_chart(
    metric: Metric, first: Compared, other: Compared, pairs: Pairs
) -> Chart:
    """A dot for each case and organ, and the line on which nothing has changed.

    The axis is the same for all metrics of one range.
    """
    own, exact = pairs[metric.name], other.scores.exact
    every = chain(*pairs.values())
    alike = (each for each in every if each.metric.range == metric.range)
    axis = difference_axis([value for each in alike for value in each.present])
    boxed = (("boxed", "middle half"), ("line", "median"))
    note = f"Right of the line, {other.name} is better than {first.name}. {axis.note}"
    return spread_chart(
        axis,
        [each.title for each in own],
        [each.present for each in own],
        has_boxes=exact,
        title=f"{metric.title_with_unit}: difference of each case",
        note=note.rstrip(),
        means=[change_text(each) for each in own],
        key=(("dot", "a case"), ("zero", "no difference"), *(boxed if exact else ())),
        zero=0.5,
    )


def changes_table(
    pairs: Sequence[Paired], found: Comparison, other: Compared, title: str
) -> Table:
    """A row for each case, the largest loss first, and a column for each organ."""
    exact, both = other.scores.exact, (found.first, other)
    remark = ("remark",) if any(each.failed for each in both) else ()
    rows = []
    for number in largest_loss_first(pairs[0]):
        failed = ", ".join(each.name for each in both if number in each.failed)
        words = Cell(f"not scored: {failed}" if failed else "", css="wrap")
        rows.append(
            (
                name_cell(found.cases[number]),
                *(
                    difference_cell(own.metric, own.differences[number], exact=exact)
                    for own in pairs
                ),
                *(words for _ in remark),
            )
        )
    return table(
        f"{title}: differences of each case and organ, the largest loss first",
        ("case", *(own.title for own in pairs), *remark),
        rows,
        words=("case", *remark),
    )


def largest_loss_first(own: Paired) -> list[int]:
    """The numbers of the cases; those without a difference come last."""

    def place(number: int) -> tuple[bool, float, int]:
        value = own.differences[number]
        return value is None, value or 0.0, number

    return sorted(range(len(own.differences)), key=place)


# --- All evaluations side by side -------------------------------------------------


def means_table(found: Comparison, metric: Metric) -> Table:
    """A row for each evaluation, and a column for each organ, shaded."""
    ends, titles = zip(*found.first.scores.rows, strict=True)
    rows = []
    for each in found.evaluations:
        means = (each.scores.mean(metric.name + end) for end in ends)
        cells = (each.scores.cell(metric, mean, is_shaded=True) for mean in means)
        rows.append((name_cell(each.name), *cells))
    caption = f"Mean {title_within(metric)} over {count(len(found.cases), 'case')}"
    return table(caption, ("evaluation", *titles), rows, words=("evaluation",))


def overview_table(
    found: Comparison, compared: Sequence[Pairs], metric: Metric
) -> Table:
    """A row for each organ, and a column for each evaluation but the first."""
    rows = []
    for number, (_, title) in enumerate(found.first.scores.rows):
        cells = [name_cell(title)]
        for pairs in compared:
            own = pairs[metric.name][number]
            cell = difference_cell(metric, own.mean, exact=found.first.scores.exact)
            arrow = " \u2191" if own.effect > 0 else " \u2193"
            text = cell.text + (arrow if own.is_significant else "")
            cells.append(replace(cell, text=text))
        rows.append(cells)
    return table(
        f"Mean difference of {metric.title} to {found.first.name}; \u2191 or \u2193:"
        " significantly better or worse, case by case",
        ("organ", *(each.name for each in found.others)),
        rows,
        words=("organ",),
        sortable=False,
    )


def reasons_table(found: Comparison) -> Table | None:
    """What is said of cases: a row for each of which anything is said."""
    told: list[Mapping[int, str]] = [
        {**each.reasons, **{n: f"not scored: {why}" for n, why in each.failed.items()}}
        for each in found.evaluations
    ]
    rows = [
        (found.cases[number], [own.get(number, "scored") for own in told])
        for number in sorted({number for own in told for number in own})
    ]
    caption = "Cases of which something is said; what is not scored counts, as written"
    return _side_by_side(caption, found, rows)


def left_out_table(found: Comparison) -> Table | None:
    """The cases that are not compared, as not all evaluations have them."""
    lists = [each.left_out for each in found.evaluations]
    rows = [
        (case, ["there" if case in own else "not there" for own in lists])
        for case in dict.fromkeys(chain(*lists))
    ]
    return _side_by_side("Cases that are left out", found, rows)


def _side_by_side(
    caption: str, found: Comparison, rows: Sequence[tuple[str, Sequence[str]]]
) -> Table | None:
    """A row for each case, and a column of words for each evaluation."""
    heads = ("case", *(each.name for each in found.evaluations))
    cells = ((name_cell(case), *map(text_cell, texts)) for case, texts in rows)
    return table(caption, heads, cells, words=heads) if rows else None


def provenance_table(found: Comparison) -> Table:
    """How each evaluation was made; where they differ, that is marked."""
    rows = []
    for key, texts in found.provenance:
        alike = Cell("" if len({*texts}) == 1 else "differs", css="alarm")
        rows.append((name_cell(key), alike, *map(text_cell, texts)))
    names = [each.name for each in found.evaluations]
    return table(
        "How the evaluations were made, as each metrics.json has it",
        ("what", "alike?", *names),
        rows,
        words=("what", *names),
        sortable=False,
    )
