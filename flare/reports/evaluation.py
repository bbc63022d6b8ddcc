"""Makes the pages of one evaluation: the organisers', and the participant's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from flare.challenge.metrics import Metric
from flare.common.intervals import FEWEST_VALUES
from flare.common.text import count, listing
from flare.reports.charts import spread_chart
from flare.reports.model import (
    Cell,
    Chart,
    Heading,
    Legend,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    metric_key,
    pairs_table,
    table,
    text_cell,
)
from flare.reports.scores import (
    INTERVAL,
    METHOD,
    CaseScores,
    Mean,
    OwnScores,
    group_title,
    scores_of,
    silence,
    title_within,
)
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile
from flare.results.scores import statistics

ORGANISERS_NOTE = (
    "For the organisers: it holds scores in full precision, from which volumes of the"
    " references can be found. Do not publish it."
)
NOTE = (
    "For the participant: scores are rounded to three decimals, and means are those of"
    " the rounded scores."
)
GROUPS_NOTE = (
    "Each interval is about one group alone: of many groups, some lie apart by chance."
    f" A group of fewer than {FEWEST_VALUES} cases has no interval. {METHOD}"
)

WORST_CASES = 10
"""So many cases are named before all others."""

NO_LINKS: Mapping[str, str] = {}


def participant_page(
    scores: OwnScores, groupings: Sequence[Grouping] = (), name: str = ""
) -> Page:
    """What a participant may know, from a type that holds nothing else."""
    title = f"your scores on {count(len(scores.cases), 'case')}"
    page = _scores_page(f"{name or scores.challenge}: {title}", NOTE, scores, groupings)
    return page if name else replace(page, kicker="")


def organiser_page(
    found: EvaluationFile,
    groupings: Sequence[Grouping] = (),
    links: Mapping[str, str] = NO_LINKS,
    name: str = "",
) -> Page:
    """All that an evaluation has found; `links` are the pages of single cases."""
    scores = scores_of(found)
    title = f"{name}: evaluation of {count(len(scores.cases), 'case')}"
    page = _scores_page(title, ORGANISERS_NOTE, scores, groupings, links)
    caption = "As metrics.json has it; the digests tell whether two were made alike"
    provenance = [pairs_table(caption, found.provenance)]
    more = (
        Section("remarks", "Remarks", "Remarks", _remarks(found)),
        Section("provenance", "Provenance", "Provenance", provenance),
    )
    return replace(page, sections=[*page.sections, *more])


def _scores_page(
    title: str,
    note: str,
    scores: CaseScores,
    groupings: Sequence[Grouping],
    links: Mapping[str, str] = NO_LINKS,
) -> Page:
    """What both audiences see; what is missed comes before all numbers."""
    pages = Words(
        ", with pictures of what is wrong.",
        href="cases/index.html",
        link="Pages of the hardest cases",
    )
    cases: list[Part | None] = []
    for metric in scores.metrics:
        key = metric_key(metric)
        table_ = case_table(scores, metric, links)
        cases += [Heading(metric.title), Legend(key) if key else None, table_]
    groups = [part for own in groupings for part in _group_parts(scores, own)]
    alike = _alike_text(scores) if scores.exact else ""
    means: list[Part | None] = [
        Pair([distribution(scores, metric) for metric in scores.metrics]),
        Words(alike) if alike else None,
        Words(METHOD, "note"),
    ]
    worst = [_worst_table(scores, links), pages if links else None]
    return Page(
        title=title.removeprefix(": "),
        kicker=scores.challenge,
        audience_note=note,
        lead=[Words(scores.missed)] if scores.missed else [],
        tiles=_tiles(scores),
        sections=[
            Section("means", "Means", "Means, and how the cases are spread", means),
            Section("worst", "Worst cases", "The worst cases first", worst),
            Section("cases", "All cases", "All cases and organs", cases),
            Section("groups", "Groups", "Groups of cases", groups),
        ],
    )


def _remarks(found: EvaluationFile) -> list[Part]:
    """What is odd."""
    low = [f"{o.reason} [{listing(o.cases)}]" for o in found.low_scores]
    told = {own.reason for own in found.low_scores}
    warnings = [line for line in found.warnings if line not in told]
    failed = found.failed
    free = [own.text for own in found.free_cases]
    parts: list[Part] = []
    if free:
        parts += [Heading("Cases without an organ, or without a lesion"), Lines(free)]
    if failed:
        caption = "Cases that were not scored, and got the worst value instead"
        pairs = failed.items()
        parts.append(pairs_table(caption, pairs, ("case", "why"), sortable=True))
    if low:
        parts += [Heading("Why cases score low"), Lines(low)]
    if warnings:
        parts += [Heading("Warnings of the evaluation"), Lines(warnings)]
    if not (failed or low or warnings):
        words = "All cases were scored, and the evaluation has warned of nothing."
        parts.append(Words(words))
    return parts


def _tiles(scores: CaseScores) -> list[Tile]:
    """The mean of each metric, with its interval; and how many cases there are."""
    found = []
    for metric in scores.metrics:
        mean = scores.mean(metric.name)
        cell = scores.cell(metric, mean.value)
        note = "too few cases for an interval" if metric.is_share else ""
        if mean.interval:
            note = f"{INTERVAL} {mean.interval_text}"
        elif "median" in metric.statistics and mean.known:
            note = f"median {metric.text(median(mean.known))}"
        name = f"Mean {title_within(metric)}"
        found.append(Tile(name=name, value=cell.text, exact=cell.exact, note=note))
    failed, number = len(scores.failed), str(len(scores.cases))
    note = f"{failed} not scored" if failed else "all scored"
    return [*found, Tile(name="Cases", value=number, note=note, is_alarm=failed > 0)]


def _alike_text(scores: CaseScores) -> str:
    """Of which organs cases have the best score, as those that neither map has."""
    first, found = scores.metrics[0], []
    for end, title in scores.organ_rows:
        values = scores.mean(first.name + end).known
        rest = [value for value in values if value != first.best]
        if len(rest) < len(values):
            mean = f" (mean of the others {fmean(rest):.3f})" if rest else ""
            found.append(f"{title} on {len(values) - len(rest)}{mean}")
    told = (
        f"{first.title} is exactly {first.best:g}, as where neither the reference nor"
        f" the prediction has the organ: {', '.join(found)}."
    )
    return told if found else ""


def distribution(scores: CaseScores, metric: Metric) -> Chart:
    """A dot for each case and organ."""
    rows = [(name, scores.mean(metric.name + end)) for end, name in scores.rows]
    return _spread(
        scores,
        metric,
        rows,
        title=f"{metric.title_with_unit} of each case",
        table=_organ_table(scores, metric, rows),
        tips=(scores.cases, [mean.values for _, mean in rows], metric.decimals),
        axis_title=metric.title_with_unit,
    )


def _spread(
    scores: CaseScores, metric: Metric, rows: Sequence[tuple[str, Mean]], **more: Any
) -> Chart:
    """A dot for each value of a mean in the row of its name."""
    return spread_chart(
        metric,
        [name for name, _ in rows],
        [mean.values for _, mean in rows],
        has_boxes=scores.exact,
        intervals=[mean.interval for _, mean in rows],
        means=[scores.cell(metric, mean.value).text for _, mean in rows],
        **more,
    )


def _organ_table(
    scores: CaseScores, metric: Metric, means: Sequence[tuple[str, Mean]]
) -> Table:
    """A row for each organ: its mean with an interval, and what else may be told."""
    titles = {"std": "SD", "median": "median", "min": "lowest", "max": "highest"}
    more = titles if scores.exact else {}
    rows = []
    for title, found in means:
        told = statistics(found.known) if found.known else {}
        numbers = [found.value, *(told.get(name) for name in more)]
        mean, *others = (scores.cell(metric, value) for value in numbers)
        rows.append((title, mean, found.interval_text, *others))
    caption = f"{metric.title_with_unit} over {count(len(scores.cases), 'case')}"
    heads = ("organ", "mean", "95 % interval", *more.values())
    return table(caption, heads, rows, words=("organ",))


def case_table(
    scores: CaseScores, metric: Metric, links: Mapping[str, str] = NO_LINKS
) -> Table:
    """A row for each case, worst first, and a column for each organ, shaded."""
    remark = ("remark",) if scores.failed else ()
    rows = []
    for number in scores.worst_first:
        case = scores.cases[number]
        cells = [Cell(case, href=links.get(case, ""))]
        for end, _ in scores.rows:
            values = scores.values.get(metric.name + end)
            value = values[number] if values else None
            cells.append(scores.cell(metric, value, is_shaded=True))
        told = "not scored" if case in scores.failed else ""
        rows.append((*cells, *(text_cell(told) for _ in remark)))
    return table(
        f"{metric.title_with_unit} of each case and organ, the worst cases first",
        ("case", *(title for _, title in scores.rows), *remark),
        rows,
        words=("case", *remark),
    )


def _worst_table(scores: CaseScores, links: Mapping[str, str]) -> Table:
    """The worst cases with what they score, and why: organs come before warnings."""
    rows = []
    for number in scores.worst_first[:WORST_CASES]:
        case = scores.cases[number]
        told = (scores.lowest_organ(number), scores.low_reasons.get(case, ""))
        why = scores.failed.get(case) or "; ".join(filter(None, told))
        cells = (
            scores.cell(own, scores.values[own.name][number], is_shaded=True)
            for own in scores.metrics
        )
        rows.append((Cell(case, href=links.get(case, "")), *cells, text_cell(why)))
    several = f"The {len(rows)} cases with the lowest {scores.metrics[0].title}"
    caption = several if len(rows) > 1 else "The only case"
    heads = ("case", *(own.title_with_unit for own in scores.metrics), "why")
    return table(caption, heads, rows, words=("case", "why"))


def _group_parts(scores: CaseScores, grouping: Grouping) -> list[Part]:
    """DSC and NSD in each group.

    Where scores may not be exact, there are only means, as a dot would tell the group
    of its case; and nothing is shown of a column with a small group.
    """
    heading, note = Heading(f"By {grouping.column}"), Words(GROUPS_NOTE, "note")
    if scores.exact:
        charts = [group_chart(scores, grouping, metric) for metric in scores.metrics]
        return [heading, note, Pair(charts)]
    if why := silence(grouping):
        return [heading, Words(why, "note")]
    tables = (_group_table(scores, grouping, metric) for metric in scores.metrics)
    return [heading, note, *tables]


def group_chart(scores: CaseScores, grouping: Grouping, metric: Metric) -> Chart:
    """A dot for each case in the row of its group."""
    rows = [
        (group_title(name, len(numbers)), scores.mean(metric.name, numbers))
        for name, numbers in grouping.groups
    ]
    return _spread(
        scores,
        metric,
        rows,
        title=f"{metric.title_with_unit} of each case by {grouping.column}",
        table=_group_table(scores, grouping, metric),
    )


def _group_table(scores: CaseScores, grouping: Grouping, metric: Metric) -> Table:
    """A row for each group and organ."""
    rows = []
    for name, numbers in grouping.groups:
        for end, title in scores.rows:
            mean = scores.mean(metric.name + end, numbers)
            cell = scores.cell(metric, mean.value)
            rows.append((name, str(len(numbers)), title, cell, mean.interval_text))
    return table(
        f"{metric.title_with_unit} by {grouping.column} and organ",
        ("group", "cases", "organ", "mean", "95 % interval"),
        rows,
        words=("group", "organ"),
    )
