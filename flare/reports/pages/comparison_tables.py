"""Shows how one evaluation differs from another: its figures, with their tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from flare.reports.pages.comparison import Compared
from flare.reports.pages.distributions import difference_axis, spread_rows
from flare.reports.pages.paired import Paired, Pairs
from flare.reports.pages.parts import (
    NO_RESULT,
    Cell,
    Figure,
    Head,
    Row,
    Table,
    heads,
    name_cell,
    number_cell,
)
from flare.results.scores import statistics

BOUNDS = (0.01, 0.05, 0.2)
"""A difference above a bound has a darker shade than one up to it."""

LOSSES = ("s2", "s4", "s5")
"""Classes of losses, small ones first: shades of bad scores."""

GAINS = ("g1", "g2", "g3")

DIFFERENCE_KEY = (
    ("s5", "loss above 0.20"),
    ("s4", "above 0.05"),
    ("s2", "above 0.01"),
    ("", "at most 0.01 either way"),
    ("g1", "gain above 0.01"),
    ("g2", "above 0.05"),
    ("g3", "above 0.20"),
)


def difference_shade(value: float) -> str:
    """The class of a difference's shade; none of a small one.

    Examples
    --------
    >>> difference_shade(-0.3), difference_shade(0.01), difference_shade(0.05)
    ('s5', '', 'g1')
    """
    steps = sum(abs(value) > bound for bound in BOUNDS)
    shades = GAINS if value > 0 else LOSSES
    return shades[steps - 1] if steps else ""


def signed(value: float) -> str:
    """A difference with its sign.

    Examples
    --------
    >>> signed(0.0123), signed(-0.5), signed(0.0)
    ('+0.012', '-0.500', '0.000')
    """
    return f"{value:+.3f}" if value else "0.000"


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval of a difference in words."""
    if interval is None:
        return "too few cases"
    return f"{signed(interval[0])} to {signed(interval[1])}"


def difference_cell(
    value: float | None, *, exact: bool, is_shaded: bool = True
) -> Cell:
    """A difference with its sign, on its shade."""
    if value is None:
        return number_cell(None)
    return Cell(
        text=signed(value),
        css=difference_shade(value) if is_shaded else "",
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
    pairs: Sequence[Paired], first: Compared, other: Compared, *, title: str
) -> Table:
    """A row for each organ: both means, their difference, and how sure it is."""
    exact = other.scores.exact
    rows = []
    for own in pairs:
        cells = [
            name_cell(own.title),
            number_cell(own.before, exact=exact),
            number_cell(own.after, exact=exact),
            difference_cell(own.mean, exact=exact, is_shaded=False),
            Cell(text=interval_text(own.interval)),
            *(Cell(text=str(n)) for n in (own.better, own.equal, own.worse)),
            *_test_cells(own, exact=exact),
        ]
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"{title}: means, counts of cases, and tests",
        heads=heads(
            *("organ", f"mean: {first.name}", f"mean: {other.name}"),
            *("change", "95 % interval", "better", "equal", "worse", "effect"),
            *("p", "p (Holm)"),
            words=("organ",),
        ),
        rows=tuple(rows),
    )


def _test_cells(own: Paired, *, exact: bool) -> list[Cell]:
    """The effect and the p-values; words, where there is nothing to test."""
    if not own.is_tested:
        return [Cell(text="no test", css="none")] * 3
    return [
        Cell(text=f"{own.effect:+.2f}", exact=repr(own.effect) if exact else ""),
        *(
            Cell(text=p_text(p), exact=repr(p) if exact else "")
            for p in (own.p, own.p_holm)
        ),
    ]


def differences_figure(
    pairs: Pairs, score: str, first: Compared, other: Compared, *, title: str
) -> Figure:
    """A dot for each case and organ, and the line on which nothing has changed.

    The axis is the same for all scores.
    """
    every = [value for own in chain(*pairs.values()) for value in own.present]
    scale, ticks, is_stretched = difference_axis(every)
    rows = [own.present for own in pairs[score]]
    exact = other.scores.exact
    means = "; ".join(
        f"{own.title} mean {NO_RESULT if own.mean is None else signed(own.mean)}"
        for own in pairs[score]
    )
    note = f"Right of the line, {other.name} is better than {first.name}."
    if is_stretched:
        note += " The axis is stretched about 0 (square root)."
    boxed = (("boxed", "middle half"), ("line", "median"))
    return Figure(
        title=f"{title}: difference of each case",
        note=note,
        summary=means,
        labels=tuple(own.title for own in pairs[score]),
        drawing=spread_rows(rows, scale, ticks, has_boxes=exact, middle_line=True),
        key=(("dot", "a case"), ("zero", "no difference"), *(boxed if exact else ())),
        table=_spread_table(pairs[score], title=title, exact=exact),
        top=True,
    )


def _spread_table(pairs: Sequence[Paired], *, title: str, exact: bool) -> Table:
    """How the differences of each organ are spread."""
    names = ("std", "median", "min", "max") if exact else ()
    titles = ("SD", "median", "largest loss", "largest gain") if exact else ()
    rows = []
    for own in pairs:
        told = statistics(own.present) if own.present else {}
        cells = [
            name_cell(own.title),
            *(Cell(text=str(n)) for n in (own.better, own.equal, own.worse)),
            difference_cell(own.mean, exact=exact, is_shaded=False),
        ]
        for name in names:
            cell = number_cell if name == "std" else difference_cell
            cells.append(cell(told.get(name), exact=exact))
        rows.append(Row(cells=tuple(cells)))
    return Table(
        caption=f"{title}: how the differences are spread",
        heads=heads(
            "organ", "better", "equal", "worse", "mean", *titles, words=("organ",)
        ),
        rows=tuple(rows),
    )


def changes_table(
    pairs: Sequence[Paired], cases: Sequence[str], both: Sequence[Compared], title: str
) -> Table:
    """A row for each case, the largest loss first, and a column for each organ."""
    exact = both[1].scores.exact
    failed = any(each.failed for each in both)
    rows = []
    for number in largest_loss_first(pairs[0]):
        cells = [
            name_cell(cases[number]),
            *(difference_cell(own.differences[number], exact=exact) for own in pairs),
        ]
        if failed:
            remark = ", ".join(e.name for e in both if number in e.failed)
            remark = f"not scored: {remark}" if remark else ""
            cells.append(Cell(text=remark, css="wrap"))
        rows.append(Row(cells=tuple(cells)))
    columns = [Head(text="case", numeric=False), *heads(*(own.title for own in pairs))]
    if failed:
        columns.append(Head(text="remark", numeric=False))
    return Table(
        caption=f"{title}: differences of each case and organ, the largest loss first",
        heads=tuple(columns),
        rows=tuple(rows),
    )


def largest_loss_first(own: Paired) -> list[int]:
    """The numbers of the cases; those without a difference come last."""

    def place(number: int) -> tuple[bool, float, int]:
        value = own.differences[number]
        return value is None, value or 0.0, number

    return sorted(range(len(own.differences)), key=place)
