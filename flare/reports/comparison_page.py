"""Makes the page of a comparison: for participants, or for organisers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter

from flare.challenge.metrics import Better, Metric
from flare.common.text import count, listing
from flare.ranking.comparison import SIGNED_RANKS_NOTE, Difference
from flare.reports.answers_comparison import comparison_section
from flare.reports.charts import difference_axis, gain_shade, spread_chart
from flare.reports.comparison import (
    Compared,
    Comparison,
    change_text,
    interval_text,
    p_text,
    signed,
    testable_means,
    verdict,
)
from flare.reports.evaluation import NOTE, ORGANISERS_NOTE
from flare.reports.model import (
    Axis,
    Cell,
    Chart,
    Column,
    Heading,
    Key,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    folded,
    number_cell,
    table_of,
    text_cell,
)
from flare.reports.scores import INTERVAL, METHOD
from flare.results.scores import present

ANSWERS_VERDICT = "Only answers are compared: no evaluation has a label map."

CERTAINTY = (
    "p answers whether most cases change in one way; the interval, how far the mean may"
    " lie from 0. One can be sure where the other is not; neither tells of failures"
    " that are not among the cases."
)

SURE = "a change that is significant says so"

GAIN_PHRASES = {
    Better.HIGHER: "difference of",
    Better.LOWER: "how much lower in",
    None: "how much nearer to 0 in",
}
"""How far a dot lies to the right of the line, by the good end of its metric."""


def comparison_page(comparison: Comparison) -> Page:
    """The page of evaluations, the first of which the others are compared with.

    Without label maps there is nothing to compare but answers.
    """
    first, candidates = comparison.first, comparison.candidates
    number, verdicts = "answers", [ANSWERS_VERDICT]
    certainty: list[Part] = []
    tiles: list[Tile] = []
    if comparison.cases:
        number = count(len(comparison.cases), "case")
        means = chain(*(testable_means(other.pairs) for other in candidates))
        tests = sum(mean.has_test for mean in means)
        verdicts = [verdict(first, candidate, tests) for candidate in candidates]
        method = f"{SIGNED_RANKS_NOTE} {_holm_text(comparison, tests)}"
        certainty += map(Words, (method, METHOD, CERTAINTY))
        tiles = _tiles(comparison)
    title = f"{candidates[0].name} against {first.name}"
    lead: list[Part] = [Words(verdicts[0])]
    overview: list[Part] = []
    if len(candidates) > 1:
        title = f"{first.name} and {len(candidates)} others"
        lead = [Lines(verdicts)]
        for table in (means_table, overview_table):
            overview += folded(map(partial(table, comparison), comparison.metrics))
    if comparison.numbers.unlike:
        what = listing(comparison.numbers.unlike, last=" and ")
        words = (
            f"These evaluations were not made alike: {what}. What differs here may come"
            " from that, not from the predictions."
        )
        lead.append(Words(words, "banner"))
    provenance = [provenance_table(comparison)] if comparison.provenance else []
    return Page(
        title=f"{title}: comparison on {number}",
        kicker=first.scores.challenge,
        audience_note=ORGANISERS_NOTE if first.scores.exact else NOTE,
        lead=lead,
        tiles=tiles,
        sections=[
            Section("overview", "Overview", "All evaluations", overview),
            comparison_section(comparison),
            *_differences(comparison),
            Section("method", "Method", "How sure it is", certainty),
            Section("remarks", "Remarks", "Remarks", _remarks(comparison)),
            Section("provenance", "Provenance", "Provenance", provenance),
        ],
    )


def _holm_text(comparison: Comparison, tests: int) -> str:
    """The numbers of tests of means and of organs for which p-values are adjusted."""
    organs = sum(pair.has_test for pair in comparison.numbers.differences) - tests
    text = f"Holm's method adjusts for the {count(tests, 'test')} of means"
    if organs:
        text += f", and by themselves for the {organs} of organs"
    return f"{text}, those without any difference among them."


def _differences(comparison: Comparison) -> Iterator[Section]:
    first, candidates = comparison.first, comparison.candidates
    for number, candidate in enumerate(candidates if comparison.cases else (), start=1):
        title = f"{candidate.name} against {first.name}"
        name = "Differences" if len(candidates) == 1 else title
        charts, tests, changes = [], [], []
        for metric in comparison.metrics:
            axis = _axis(metric, comparison)
            charts.append(differences_chart(metric, first, candidate, axis))
            caption, pairs = f"{metric.title}, {title}", candidate.pairs[metric.name]
            tests.append(tests_table(pairs, first, candidate, caption))
            changes.append(changes_table(pairs, comparison, candidate, caption))
        shown, where = int(number == 1), Heading("Who improved where")
        tables = [*folded(tests, shown), where, *folded(changes, shown)]
        parts: list[Part] = [Pair(charts), *tables]
        yield Section(f"differences-{number}", name, title, parts)


def _tiles(comparison: Comparison) -> list[Tile]:
    """The mean differences of a single candidate, and how many cases are compared."""
    left_out: set[str] = set()
    for evaluation in comparison.evaluations:
        left_out.update(evaluation.left_out)
    note = f"{len(left_out) or 'none'} left out"
    if len(comparison.candidates) > 1:
        evaluations = str(len(comparison.evaluations))
        tiles = [Tile(name="Evaluations", value=evaluations)]
    else:
        (candidate,) = comparison.candidates
        means = [pairs[0] for pairs in candidate.pairs.values()]
        is_exact = comparison.first.scores.exact
        tiles = [_change_tile(mean, is_exact) for mean in means]
        mean = means[0]
        counts = f"{mean.better} better, {mean.equal} equal, {mean.worse} worse"
        note = f"{counts} by {mean.record.title}; {note}"
    number = str(len(comparison.cases))
    return [*tiles, Tile(name="Cases compared", value=number, note=note)]


def _change_tile(pair: Difference, is_exact: bool) -> Tile:
    metric = pair.record
    note = "no case has both"
    if pair.before is not None and pair.after is not None:
        note = f"from {metric.text(pair.before)} to {metric.text(pair.after)}"
    if metric.is_share:
        note = f"{note}; {INTERVAL} {interval_text(pair)}"
    return Tile(
        name=f"Change of mean {metric.heading_within}",
        value=change_text(pair),
        exact=repr(pair.difference) if is_exact and pair.difference is not None else "",
        note=note,
    )


# --- Charts and tables ------------------------------------------------------------


def _bounds(unit: str) -> tuple[float, float, float]:
    """A difference above one of these has a darker shade than one up to it."""
    return (1.0, 5.0, 20.0) if unit else (0.01, 0.05, 0.2)


def difference_key(unit: str) -> Key:
    """The meaning of the shades of differences in a unit."""
    form = "{:g} " + unit if unit else "{:.2f}"
    low, middle, high = map(form.format, _bounds(unit))
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
    css = gain_shade(gain, _bounds(metric.unit))
    return Cell(signed(value, metric.decimals), css, repr(value) if exact else "")


def _change_cell(pair: Difference, *, exact: bool) -> Cell:
    """A mean difference, and which way it is if it is significant."""
    cell = _difference_cell(pair.record, pair.difference, pair.mean_gain, exact=exact)
    if not pair.is_significant:
        return cell
    word = "better" if pair.effect > 0 else "worse"
    return replace(cell, note=f"significantly {word}")


def _good_end(metric: Metric) -> str:
    """The good values of a metric, behind a caption, if they are not clear."""
    if metric.better is None:
        return "; best at 0"
    return "; lower is better" if metric.better is Better.LOWER else ""


def tests_table(
    pairs: Sequence[Difference], first: Compared, candidate: Compared, title: str
) -> Table:
    """A row for each organ: both means, their difference, and how sure it is."""
    scores, exact = candidate.scores, candidate.scores.exact
    metric = pairs[0].record
    cell = partial(scores.cell, metric)
    tests = zip(*map(partial(_test_cells, exact=exact), pairs), strict=True)
    columns = [
        Column("organ", map(attrgetter("title"), pairs), is_text=True),
        Column(f"mean: {first.name}", map(cell, map(attrgetter("before"), pairs))),
        Column(f"mean: {candidate.name}", map(cell, map(attrgetter("after"), pairs))),
        Column("change", map(partial(_change_cell, exact=exact), pairs)),
        Column("95 % interval", map(interval_text, pairs)),
        Column("better", map(attrgetter("better"), pairs)),
        Column("equal", map(attrgetter("equal"), pairs)),
        Column("worse", map(attrgetter("worse"), pairs)),
        *map(Column, ("effect", "p", "p (Holm)"), tests),
    ]
    end = _good_end(metric)
    caption = f"{title}: means, counts of cases, and tests{end}; {SURE}"
    return table_of(caption, columns, is_whole=True)


def _test_cells(pair: Difference, *, exact: bool) -> list[Cell]:
    if not pair.has_test or pair.equal == pair.cases:
        return [Cell("no test", css="none")] * 3
    return [
        Cell(f"{pair.effect:+.2f}", exact=repr(pair.effect) if exact else ""),
        Cell(p_text(pair.p), exact=repr(pair.p) if exact else ""),
        Cell(p_text(pair.p_holm), exact=repr(pair.p_holm) if exact else ""),
    ]


def differences_chart(
    metric: Metric, first: Compared, candidate: Compared, axis: Axis
) -> Chart:
    """A dot for each case and organ, and the line on which nothing has changed."""
    rows, has_boxes = candidate.pairs[metric.name], candidate.scores.exact
    not_scored = _not_scored(metric, first, candidate)
    note = f"Right of the line, {candidate.name} is better than {first.name}."
    if not_scored:
        cases = f"{count(len(not_scored), 'case')} that one of both has not scored"
        note += f" Without a dot, but in the means: {cases}."
    chart = spread_chart(
        replace(axis, note=note),
        [pair.title for pair in rows],
        [_drawn(pair, not_scored) for pair in rows],
        has_boxes=has_boxes,
        title=f"{metric.heading}: {GAIN_PHRASES[metric.better]} each case",
        means=[_gain_text(pair) for pair in rows],
    )
    dot, *boxed = chart.key
    return replace(chart, key=(dot, ("zero", "no difference"), *boxed), zero=0.5)


def _axis(metric: Metric, comparison: Comparison) -> Axis:
    """The axis of the differences to all candidates by all metrics of one range."""
    values: list[float] = []
    for candidate in comparison.candidates:
        not_scored = _not_scored(metric, comparison.first, candidate)
        for pair in chain.from_iterable(candidate.pairs.values()):
            if pair.record.range == metric.range:
                values += _drawn(pair, not_scored)
    return difference_axis(values)


def _not_scored(metric: Metric, first: Compared, candidate: Compared) -> set[int]:
    """The numbers of the cases that have no dot: one of both has not scored them.

    Their distances were not measured: they are the challenge's, or a diagonal.
    """
    if metric.worst is not None:
        return set()
    failed = {*first.scores.failed, *candidate.scores.failed}
    return {n for n, case in enumerate(first.scores.cases) if case in failed}


def _drawn(pair: Difference, left_out: Collection[int]) -> list[float]:
    """The gains and losses of all cases but some."""
    gains = [gain for n, gain in enumerate(pair.gains) if n not in left_out]
    return present(gains)


def _gain_text(pair: Difference) -> str:
    """The mean of the dots of a row; where they lie to the right, new is better."""
    if pair.record.better is None and pair.mean_gain is not None:
        return signed(pair.mean_gain, pair.record.decimals)
    # As "4.31 higher": beside a small chart, there is no room for more.
    return change_text(pair).partition(" (")[0].replace(f" {pair.record.unit} ", " ")


def changes_table(
    pairs: Sequence[Difference], comparison: Comparison, candidate: Compared, title: str
) -> Table:
    """A row for each case, the largest loss first, and a column for each organ."""
    exact, both = candidate.scores.exact, (comparison.first, candidate)
    gains = pairs[0].gains
    # Cases without a gain come last.
    order = sorted(range(len(gains)), key=lambda n: (gains[n] is None, gains[n] or 0.0))
    cases = list(map(comparison.cases.__getitem__, order))
    columns = [Column("case", cases, is_text=True)]
    for pair in pairs:
        cells = []
        for number in order:
            value, gain = pair.differences[number], pair.gains[number]
            cells.append(_difference_cell(pair.record, value, gain, exact=exact))
        columns.append(Column(pair.title, cells))
    if any(evaluation.scores.failed for evaluation in both):
        remarks = map(partial(_remark_cell, evaluations=both), cases)
        columns.append(Column("remark", remarks, is_text=True))
    end = _good_end(pairs[0].record)
    caption = f"{title}: differences of each case and organ, the largest loss first"
    key = difference_key(pairs[0].record.unit)
    return table_of(f"{caption}{end}", columns, key=key)


def _remark_cell(case: str, evaluations: Sequence[Compared]) -> Cell:
    names = [e.name for e in evaluations if case in e.scores.failed]
    return Cell(f"not scored: {', '.join(names)}" if names else "", css="wrap")


# --- All evaluations side by side -------------------------------------------------


def means_table(comparison: Comparison, metric: Metric) -> Table:
    """A row for each evaluation, and a column for each organ, shaded."""
    evaluations = comparison.evaluations
    names = map(attrgetter("name"), evaluations)
    columns = [Column("evaluation", names, is_text=True)]
    for suffix, title in comparison.first.scores.rows:
        cells = []
        for evaluation in evaluations:
            mean = evaluation.scores.mean(metric.name + suffix).value
            cells.append(evaluation.scores.cell(metric, mean, is_shaded=True))
        columns.append(Column(title, cells))
    cases = count(len(comparison.cases), "case")
    return table_of(f"Mean {metric.heading_within} over {cases}", columns)


def overview_table(comparison: Comparison, metric: Metric) -> Table:
    """A row for each organ, and a column for each candidate."""
    exact, first = comparison.first.scores.exact, comparison.first.name
    organs = [title for _, title in comparison.first.scores.rows]
    columns = [Column("organ", organs, is_text=True)]
    for candidate in comparison.candidates:
        cells = map(partial(_change_cell, exact=exact), candidate.pairs[metric.name])
        columns.append(Column(candidate.name, cells))
    caption = f"Mean difference of {metric.title} to {first}{_good_end(metric)}; {SURE}"
    return table_of(caption, columns, sortable=False)


def _remarks(comparison: Comparison) -> list[Part]:
    """Tables of remarks on single cases, and of those that are not compared."""
    parts: list[Part] = []
    remarks = list(map(_remarks_by_case, comparison.evaluations))
    said = set(chain.from_iterable(remarks))
    if cases := [case for case in comparison.cases if case in said]:
        caption = (
            "Cases of which something is said; what is not scored counts, as written"
        )
        parts.append(_case_table(caption, comparison, cases, remarks, "scored"))
    left_out = [dict.fromkeys(e.left_out, "there") for e in comparison.evaluations]
    if cases := list(dict.fromkeys(chain.from_iterable(left_out))):
        caption = "Cases that are left out"
        parts.append(_case_table(caption, comparison, cases, left_out, "not there"))
    return parts or [Words("All cases are compared, and all of them were scored.")]


def _remarks_by_case(evaluation: Compared) -> dict[str, str]:
    remarks = dict(evaluation.scores.low_reasons)
    for case, why in evaluation.scores.failed.items():
        remarks[case] = f"not scored: {why}"
    return remarks


def _case_table(
    caption: str,
    comparison: Comparison,
    cases: Sequence[str],
    texts: Sequence[Mapping[str, str]],
    default: str,
) -> Table:
    """A row for each case, and a column for each evaluation with its texts."""
    columns = [Column("case", cases, is_text=True)]
    for evaluation, by_case in zip(comparison.evaluations, texts, strict=True):
        cells = [text_cell(by_case.get(case, default)) for case in cases]
        columns.append(Column(evaluation.name, cells, is_text=True))
    return table_of(caption, columns)


def provenance_table(comparison: Comparison) -> Table:
    """How each evaluation was made; where they differ, that is marked."""
    keys, texts = zip(*comparison.provenance, strict=True)
    marks = [Cell("differs" * (len({*row}) > 1), css="alarm") for row in texts]
    columns = [Column("what", keys, is_text=True), Column("alike?", marks)]
    by_evaluation = zip(comparison.evaluations, zip(*texts, strict=True), strict=True)
    for evaluation, column in by_evaluation:
        columns.append(Column(evaluation.name, map(text_cell, column), is_text=True))
    caption = "How the evaluations were made, as each metrics.json has it"
    return table_of(caption, columns, sortable=False)
