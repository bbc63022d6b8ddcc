"""Makes the page of a comparison: for participants, or for organisers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

from flare.challenge.metrics import Better, Metric
from flare.common.text import count, listing
from flare.reports.charts import difference_axis, spread_chart
from flare.reports.comparison import (
    TEST_METHOD,
    Compared,
    Comparison,
    Paired,
    Pairs,
    change_text,
    compare_scores,
    interval_text,
    p_text,
    read_comparison,
    signed,
    tests_of_means,
    verdict,
)
from flare.reports.evaluation import NOTE, ORGANISERS_NOTE
from flare.reports.model import (
    Cell,
    Chart,
    Heading,
    Key,
    Legend,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    number_cell,
    table,
    text_cell,
)
from flare.reports.scores import INTERVAL, METHOD, title_within

CERTAINTY = (
    "p answers whether most cases change in one way; the interval, how far the mean may"
    " lie from 0 on unseen cases, whatever they are like. One can be sure where the"
    " other is not."
)

SURE = "better or worse beside a change: significantly so"

GAINED = {
    Better.HIGHER: "difference of",
    Better.LOWER: "how much lower in",
    None: "how much nearer to 0 in",
}
"""What a dot to the right of the line is, of a metric with this good end."""

LOSSES = ("s2", "s4", "s5")
"""Classes of losses, small ones first: shades of bad scores."""

GAINS = ("g1", "g2", "g3")


def comparison_page(sources: Sequence[Path], *, is_organiser: bool) -> Page:
    """The page of several evaluations, the first of which the others are compared with.

    Raises
    ------
    MetricsFileError
        If one cannot be read, or cannot be compared with the first.
    """
    found = read_comparison(sources, is_organiser=is_organiser)
    first, others = found.first, found.others
    compared = compare_scores(
        first.scores, [each.scores for each in others], found.metrics
    )
    tests = tests_of_means(compared[0], len(others))
    organs = tests * (len(first.scores.rows) - 1)
    holm = f"Holm's method adjusts for the {count(tests, 'test')} of means"
    if organs:
        holm = f"{holm}, and by themselves for the {organs} of organs"
    method = f"{TEST_METHOD} {holm}, those without any difference among them."
    sure = [Words(text) for text in (method, METHOD, CERTAINTY)]
    made = [provenance_table(found)] if found.provenance else []
    verdicts = [
        verdict(pairs, first, other, tests)
        for other, pairs in zip(others, compared, strict=True)
    ]
    if len(others) > 1:
        title = f"{first.name} and {len(others)} others"
        lead: list[Part] = [Lines(verdicts)]
        overview = [means_table(found, metric) for metric in found.metrics]
        overview += (overview_table(found, compared, own) for own in found.metrics)
    else:
        title = f"{others[0].name} against {first.name}"
        lead, overview = [Words(*verdicts)], []
    if found.unlike:
        what = listing(found.unlike, last=" and ")
        words = (
            f"These evaluations were not made alike: {what}. What differs here may come"
            " from that, not from the predictions."
        )
        lead.append(Words(words, "banner"))
    return Page(
        title=f"{title}: comparison on {count(len(found.cases), 'case')}",
        kicker=first.scores.challenge,
        audience_note=ORGANISERS_NOTE if is_organiser else NOTE,
        lead=lead,
        tiles=_tiles(found, compared),
        sections=[
            Section("overview", "Overview", "All evaluations", overview),
            *_differences(found, compared),
            Section("method", "Method", "How sure it is", sure),
            Section("remarks", "Remarks", "Remarks", _remarks(found)),
            Section("provenance", "Provenance", "Provenance", made),
        ],
    )


def _differences(found: Comparison, compared: Sequence[Pairs]) -> Iterator[Section]:
    """What is shown of each evaluation and the first."""
    first = found.first
    for number, (other, pairs) in enumerate(
        zip(found.others, compared, strict=True), start=1
    ):
        title = f"{other.name} against {first.name}"
        titles = {own.name: f"{own.title}, {title}" for own in found.metrics}
        charts = [differences_chart(own, first, other, pairs) for own in found.metrics]
        parts: list[Part] = [
            Pair(charts),
            *(tests_table(own, first, other, titles[n]) for n, own in pairs.items()),
            Heading("Who improved where"),
        ]
        for unit in dict.fromkeys(own.unit for own in found.metrics):
            parts.append(Legend(difference_key(unit)))
            parts += (
                changes_table(pairs[own.name], found, other, titles[own.name])
                for own in found.metrics
                if own.unit == unit
            )
        name = title if len(compared) > 1 else "Differences"
        yield Section(f"differences-{number}", name, title, parts)


def _tiles(found: Comparison, compared: Sequence[Pairs]) -> list[Tile]:
    """The mean differences of a single evaluation, and how many cases are compared."""
    rest = len({case for each in found.evaluations for case in each.left_out})
    note, tiles = f"{rest or 'none'} left out", []
    if len(compared) > 1:
        tiles.append(Tile(name="Evaluations", value=str(len(found.evaluations))))
    else:
        whole = [own[0] for own in compared[0].values()]
        tiles += map(_change_tile, whole, repeat(found.first.scores.exact))
        told = "{} better, {} equal, {} worse".format(*whole[0].counts)
        note = f"{told} by {whole[0].metric.title}; {note}"
    number = str(len(found.cases))
    return [*tiles, Tile(name="Cases compared", value=number, note=note)]


def _change_tile(own: Paired, is_exact: bool) -> Tile:
    """A mean difference, and what it is between."""
    means = [own.metric.text(m) for m in (own.before, own.after) if m is not None]
    note = f"from {' to '.join(means)}" if means else "no case has both"
    if own.metric.is_share:
        note = f"{note}; {INTERVAL} {interval_text(own)}"
    return Tile(
        name=f"Change of mean {title_within(own.metric)}",
        value=change_text(own),
        exact=repr(own.mean) if is_exact and means else "",
        note=note,
    )


# --- Charts and tables ------------------------------------------------------------


def _bounds(unit: str) -> tuple[float, float, float]:
    """A difference above one of these has a darker shade than one up to it."""
    return (1.0, 5.0, 20.0) if unit else (0.01, 0.05, 0.2)


def difference_shade(value: float, unit: str = "") -> str:
    """The class of the shade of a difference in a unit; none of a small one.

    Examples
    --------
    >>> difference_shade(-0.3), difference_shade(0.01), difference_shade(0.05)
    ('s5', '', 'g1')
    """
    steps = sum(abs(value) > bound for bound in _bounds(unit))
    return ("", *(GAINS if value > 0 else LOSSES))[steps]


def difference_key(unit: str) -> Key:
    """What shades of differences in a unit mean."""
    low, middle, high = (f"{b:g} {unit}" if unit else f"{b:.2f}" for b in _bounds(unit))
    return (
        ("s5", f"loss above {high}"),
        ("s4", f"above {middle}"),
        ("s2", f"above {low}"),
        ("", f"at most {low} either way"),
        ("g1", f"gain above {low}"),
        ("g2", f"above {middle}"),
        ("g3", f"above {high}"),
    )


def _difference_cell(
    metric: Metric, value: float | None, gain: float | None, *, exact: bool
) -> Cell:
    """A difference with its sign, on the shade of a gain or a loss."""
    if value is None or gain is None:
        return number_cell(None)
    css = difference_shade(gain, metric.unit)
    return Cell(signed(value, metric.decimals), css, repr(value) if exact else "")


def _change_cell(own: Paired, *, exact: bool) -> Cell:
    """A mean difference, and which way it is if it is significant."""
    cell = _difference_cell(own.metric, own.mean, own.mean_gain, exact=exact)
    word = "better" if own.effect > 0 else "worse"
    return replace(cell, text=f"{cell.text} {word}") if own.is_significant else cell


def _good_end(metric: Metric) -> str:
    """Which values of a metric are good, behind a caption, if that is not clear."""
    if metric.better is None:
        return "; best at 0"
    return "; lower is better" if metric.better is Better.LOWER else ""


def tests_table(
    pairs: Sequence[Paired], first: Compared, other: Compared, title: str
) -> Table:
    """A row for each organ: both means, their difference, and how sure it is."""
    exact = other.scores.exact
    rows = []
    for own in pairs:
        tested = [Cell("no test", css="none")] * 3
        if own.is_tested:
            texts = (f"{own.effect:+.2f}", p_text(own.p), p_text(own.p_holm))
            values = (own.effect, own.p, own.p_holm)
            tested = [
                Cell(text, exact=repr(value) if exact else "")
                for text, value in zip(texts, values, strict=True)
            ]
        row = (
            own.title,
            *(other.scores.cell(own.metric, mean) for mean in (own.before, own.after)),
            _change_cell(own, exact=exact),
            *(interval_text(own), *own.counts, *tested),
        )
        rows.append(row)
    heads = (
        *("organ", f"mean: {first.name}", f"mean: {other.name}"),
        *("change", "95 % interval", "better", "equal", "worse", "effect"),
        *("p", "p (Holm)"),
    )
    end = _good_end(pairs[0].metric)
    caption = f"{title}: means, counts of cases, and tests{end}; {SURE}"
    return table(caption, heads, rows, words=("organ",), is_whole=True)


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
        title=f"{metric.title_with_unit}: {GAINED[metric.better]} each case",
        note=note.rstrip(),
        means=[_gain_text(each) for each in own],
        key=(("dot", "a case"), ("zero", "no difference"), *(boxed if exact else ())),
        zero=0.5,
    )


def _gain_text(own: Paired) -> str:
    """The mean of the dots of a row; where they lie to the right, new is better."""
    if own.metric.better is None and own.mean_gain is not None:
        return signed(own.mean_gain, own.metric.decimals)
    return change_text(own)


def changes_table(
    pairs: Sequence[Paired], found: Comparison, other: Compared, title: str
) -> Table:
    """A row for each case, the largest loss first, and a column for each organ."""
    exact, both = other.scores.exact, (found.first, other)
    remark = ("remark",) if any(each.scores.failed for each in both) else ()
    rows = []
    whole = pairs[0].gains
    order = sorted(range(len(whole)), key=lambda n: (whole[n] is None, whole[n] or 0.0))
    for number in order:
        case = found.cases[number]
        failed = ", ".join(each.name for each in both if case in each.scores.failed)
        words = Cell(f"not scored: {failed}" if failed else "", css="wrap")
        changes = (
            _difference_cell(
                own.metric, own.differences[number], own.gains[number], exact=exact
            )
            for own in pairs
        )
        rows.append((case, *changes, *(words for _ in remark)))
    return table(
        f"{title}: differences of each case and organ, the largest loss first"
        f"{_good_end(pairs[0].metric)}",
        ("case", *(own.title for own in pairs), *remark),
        rows,
        words=("case", *remark),
    )


# --- All evaluations side by side -------------------------------------------------


def means_table(found: Comparison, metric: Metric) -> Table:
    """A row for each evaluation, and a column for each organ, shaded."""
    ends, titles = zip(*found.first.scores.rows, strict=True)
    rows = []
    for each in found.evaluations:
        means = (each.scores.mean(metric.name + end).value for end in ends)
        cells = (each.scores.cell(metric, mean, is_shaded=True) for mean in means)
        rows.append((each.name, *cells))
    caption = f"Mean {title_within(metric)} over {count(len(found.cases), 'case')}"
    return table(caption, ("evaluation", *titles), rows, words=("evaluation",))


def overview_table(
    found: Comparison, compared: Sequence[Pairs], metric: Metric
) -> Table:
    """A row for each organ, and a column for each evaluation but the first."""
    exact = found.first.scores.exact
    rows = (
        (organ[0].title, *(_change_cell(own, exact=exact) for own in organ))
        for organ in zip(*(pairs[metric.name] for pairs in compared), strict=True)
    )
    return table(
        f"Mean difference of {metric.title} to {found.first.name}"
        f"{_good_end(metric)}; {SURE}",
        ("organ", *(each.name for each in found.others)),
        rows,
        words=("organ",),
        sortable=False,
    )


def _remarks(found: Comparison) -> list[Part]:
    """What is said of single cases, and which are not compared."""
    told = [
        {
            **own.low_reasons,
            **{case: f"not scored: {why}" for case, why in own.failed.items()},
        }
        for own in (each.scores for each in found.evaluations)
    ]
    said = {
        case: [own.get(case, "scored") for own in told]
        for case in found.cases
        if any(case in own for own in told)
    }
    left_out = [each.left_out for each in found.evaluations]
    rest = {
        case: ["there" if case in own else "not there" for own in left_out]
        for own in left_out
        for case in own
    }
    heads = ("case", *(each.name for each in found.evaluations))
    parts: list[Part] = [
        table(
            caption,
            heads,
            ((case, *map(text_cell, texts)) for case, texts in rows.items()),
            words=heads,
        )
        for caption, rows in (
            (
                "Cases of which something is said; what is not scored counts, as"
                " written",
                said,
            ),
            ("Cases that are left out", rest),
        )
        if rows
    ]
    return parts or [Words("All cases are compared, and all of them were scored.")]


def provenance_table(found: Comparison) -> Table:
    """How each evaluation was made; where they differ, that is marked."""
    rows = []
    for key, texts in found.provenance:
        alike = Cell("" if len({*texts}) == 1 else "differs", css="alarm")
        rows.append((key, alike, *map(text_cell, texts)))
    names = [each.name for each in found.evaluations]
    return table(
        "How the evaluations were made, as each metrics.json has it",
        ("what", "alike?", *names),
        rows,
        words=("what", *names),
        sortable=False,
    )
