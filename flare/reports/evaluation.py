"""Makes the pages of one evaluation: the organisers', and the participant's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter, methodcaller
from statistics import fmean, median

from flare.challenge.metrics import Metric, metrics_in
from flare.common.text import count, listing
from flare.ranking.answers import AnswerSheet
from flare.reports.answers import answer_tiles, answers_section
from flare.reports.charts import spread_chart, value_axis
from flare.reports.model import (
    Cell,
    Chart,
    Column,
    Heading,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Table,
    Tile,
    Words,
    folded,
    metric_key,
    pairs_table,
    table_of,
    table_of_rows,
    text_cell,
)
from flare.reports.scores import (
    INTERVAL,
    METHOD,
    CaseScores,
    Mean,
    OwnScores,
    group_title,
    reason_for_silence,
    scores_of,
)
from flare.results.groups_csv import Grouping
from flare.results.metrics_reading import EvaluationFile
from flare.results.scores import statistics
from flare.statistics.bootstrap import FEWEST_VALUES

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
"""The table of the worst cases has at most this many."""

_STATISTICS = {"std": "SD", "median": "median", "min": "lowest", "max": "highest"}

NO_LINKS: Mapping[str, str] = {}


def participant_page(
    scores: OwnScores, groupings: Sequence[Grouping] = (), name: str = ""
) -> Page:
    """The page for a participant; `OwnScores` cannot hold what they may not know."""
    subject = name or scores.challenge
    title = f"your scores on {_number_text(scores)}"
    page = _scores_page(f"{subject}: {title}", NOTE, scores, groupings)
    if not name:
        page = replace(page, kicker="")  # the title begins with the challenge
    return page


def means_alone(page: Page) -> Page:
    """A page without anything of single cases: of each chart, its table stays."""
    sections = []
    for section in page.sections:
        parts: list[Part] = []
        for part in section.parts:
            if isinstance(part, Pair):
                parts += [chart.table for chart in part.charts if chart.table]
            else:
                parts.append(part)
        if section.id not in ("worst", "cases"):
            sections.append(replace(section, title=section.name, parts=parts))
    return replace(page, sections=sections)


def organiser_page(
    file: EvaluationFile,
    groupings: Sequence[Grouping] = (),
    links: Mapping[str, str] = NO_LINKS,
    name: str = "",
    sheets: Sequence[AnswerSheet] = (),
) -> Page:
    """All that an evaluation holds; `links` are the pages of single cases."""
    scores = scores_of(file)
    title = f"{name}: evaluation of {_number_text(scores)}"
    page = _scores_page(title, ORGANISERS_NOTE, scores, groupings, links, sheets)
    caption = "As metrics.json has it; the digests tell whether two were made alike"
    provenance = [pairs_table(caption, file.provenance)]
    sections = [
        *page.sections,
        Section("remarks", "Remarks", "Remarks", _remarks(file)),
        Section("provenance", "Provenance", "Provenance", provenance),
    ]
    return replace(page, sections=sections)


def _number_text(scores: CaseScores) -> str:
    """The number of cases with label maps; without any, answers alone are scored."""
    return count(len(scores.cases), "case") if scores.cases else "answers"


def _scores_page(
    title: str,
    note: str,
    scores: CaseScores,
    groupings: Sequence[Grouping],
    links: Mapping[str, str] = NO_LINKS,
    sheets: Sequence[AnswerSheet] = (),
) -> Page:
    """A page for either audience; cases and organs that are missed come first."""
    tiles = answer_tiles(scores.answers, exact=scores.exact)
    sections: Sequence[Section] = ()
    if scores.cases:
        tiles = _tiles(scores)
        sections = _label_map_sections(scores, groupings, links)
    answers = answers_section(scores.answers, sheets, exact=scores.exact)
    return Page(
        title=title.removeprefix(": "),  # of an evaluation without a name
        kicker=scores.challenge,
        audience_note=note,
        lead=[Words(scores.missed_text)] if scores.missed_text else [],
        tiles=tiles,
        sections=[*sections[:1], answers, *sections[1:]],
    )


def _label_map_sections(
    scores: CaseScores, groupings: Sequence[Grouping], links: Mapping[str, str]
) -> Sequence[Section]:
    """Means and single cases of label maps; the means come first."""
    charts = [distribution(scores, metric) for metric in scores.metrics]
    means: list[Part] = [Pair(charts)]
    if scores.exact and (best_scores := _best_scores_text(scores)):
        means.append(Words(best_scores))
    means.append(Words(METHOD, "note"))
    worst: list[Part] = [_worst_table(scores, links)]
    if links:
        link_to_pages = Words(
            link="Pages of the hardest cases",
            href="cases/index.html",
            text=", with pictures of what is wrong.",
        )
        worst.append(link_to_pages)
    cases = folded(case_table(scores, metric, links) for metric in scores.metrics)
    groups: list[Part] = []
    for grouping in groupings:
        groups += _group_parts(scores, grouping)
    return (
        Section("means", "Means", "Means, and how the cases are spread", means),
        Section("worst", "Worst cases", "The worst cases first", worst),
        Section("cases", "All cases", "All cases and organs", cases),
        Section("groups", "Groups", "Groups of cases", groups),
    )


def _remarks(file: EvaluationFile) -> list[Part]:
    """All that is odd: missing organs, failed cases, low scores and warnings."""
    parts: list[Part] = []
    if file.free_cases:
        texts = [free.text for free in file.free_cases]
        parts += [Heading("Cases without an organ, or without a lesion"), Lines(texts)]
    if file.failed:
        caption = "Cases that were not scored, and got the worst value instead"
        pairs = file.failed.items()
        parts.append(pairs_table(caption, pairs, ("case", "why"), sortable=True))
    if file.low_scores:
        lines = [f"{low.reason} [{listing(low.cases)}]" for low in file.low_scores]
        parts += [Heading("Why cases score low"), Lines(lines)]
    reasons = set(map(attrgetter("reason"), file.low_scores))
    if warnings := [text for text in file.warnings if text not in reasons]:
        parts += [Heading("Warnings of the evaluation"), Lines(warnings)]
    if not any((file.failed, file.low_scores, warnings)):
        scored = f"All {'cases' if file.cases else 'answers'} were scored"
        words = f"{scored}, and the evaluation has warned of nothing."
        parts.append(Words(words))
    return parts


def _tiles(scores: CaseScores) -> list[Tile]:
    """The mean of each metric, with its interval, and the number of cases."""
    metrics = metrics_in((*scores.values, *scores.means))
    tiles = [_mean_tile(scores, metric) for metric in metrics]
    failed = len(scores.failed)
    cases = Tile(
        name="Cases",
        value=str(len(scores.cases)),
        note=f"{failed} not scored" if failed else "all scored",
        is_alarm=failed > 0,
    )
    return [*tiles, cases]


def _mean_tile(scores: CaseScores, metric: Metric) -> Tile:
    mean = scores.mean(metric.name)
    cell = scores.cell(metric, mean.value)
    note = ""
    if mean.interval:
        note = f"{INTERVAL} {mean.interval_text}"
    elif "median" in metric.statistics and mean.present:
        note = f"median {metric.text(median(mean.present))}"
    elif metric.is_share:
        note = f"no interval: {mean.interval_text}"
    title = f"Mean {metric.heading_within}{scores.number_text(mean)}"
    return Tile(name=title, value=cell.text, exact=cell.exact, note=note)


def _best_scores_text(scores: CaseScores) -> str:
    """Tell on which cases organs have the best score that there is; else empty."""
    metric = scores.metrics[0]
    title_and_best = f"{metric.title} is exactly {metric.best:g}"
    phrases, is_perfect = [], True
    for suffix, title in scores.organ_rows:
        values = scores.mean(metric.name + suffix).present
        lower = [value for value in values if value != metric.best]
        best_cases = len(values) - len(lower)
        is_perfect = is_perfect and not lower
        if best_cases:
            mean = f" (mean of the others {fmean(lower):.3f})" if lower else ""
            phrases.append(f"{title} on {best_cases}{mean}")
    if not phrases:
        return ""
    if is_perfect:
        return f"{title_and_best} for each organ of every scored case."
    return (
        f"{title_and_best} where no voxel of an organ is wrong, as where neither the"
        f" reference nor the prediction has it: {', '.join(phrases)}."
    )


def distribution(scores: CaseScores, metric: Metric) -> Chart:
    """A chart with a row for each organ, and a dot in it for each case."""
    rows = []
    for suffix, title in scores.rows_of(metric):
        mean = scores.mean(metric.name + suffix)
        rows.append((f"{title}{scores.number_text(mean)}", mean))
    values = [mean.values for _, mean in rows]
    chart = _spread(
        scores,
        metric,
        rows,
        title=f"{metric.heading} of each case",
        table_of_rows=_organ_table(scores, metric, rows),
    )
    return replace(
        chart,
        tips=(scores.cases, values, metric.decimals),
        axis_title=metric.heading,
    )


def _spread(
    scores: CaseScores,
    metric: Metric,
    rows: Sequence[tuple[str, Mean]],
    *,
    title: str,
    table_of_rows: Table,
) -> Chart:
    """A chart with a row for each name, and a dot in it for each value of its mean."""
    means = [mean for _, mean in rows]
    all_values = (scores.mean(metric.name + end).present for end, _ in scores.rows)
    return spread_chart(
        value_axis(metric, list(chain.from_iterable(all_values))),
        [name for name, _ in rows],
        [mean.values for mean in means],
        has_boxes=scores.exact,
        intervals=[mean.interval for mean in means],
        means=[scores.cell(metric, mean.value).text for mean in means],
        title=title,
        table=table_of_rows,
    )


def _organ_table(
    scores: CaseScores, metric: Metric, rows: Sequence[tuple[str, Mean]]
) -> Table:
    """A row for each organ: its mean and interval, and more where scores are exact."""
    titles, means = zip(*rows, strict=True)
    cell = partial(scores.cell, metric)
    columns = [
        Column("organ", titles, is_text=True),
        Column("mean", map(cell, map(attrgetter("value"), means))),
        Column("95 % interval", map(attrgetter("interval_text"), means)),
    ]
    summaries = [statistics(mean.present) if mean.present else {} for mean in means]
    for name, head in _STATISTICS.items() if scores.exact else ():
        values = map(methodcaller("get", name), summaries)
        columns.append(Column(head, map(cell, values)))
    caption = f"{metric.heading} over {count(len(scores.cases), 'case')}"
    return table_of(caption, columns)


def case_table(
    scores: CaseScores, metric: Metric, links: Mapping[str, str] = NO_LINKS
) -> Table:
    """A row for each case, worst first, and a column for each organ, shaded."""
    numbers = scores.worst_first
    values = [(title, metric, suffix) for suffix, title in scores.rows_of(metric)]
    columns = _case_columns(scores, numbers, links, values)
    if scores.failed:
        cases = map(scores.cases.__getitem__, numbers)
        remarks = ["not scored" if case in scores.failed else "" for case in cases]
        columns.append(Column("remark", map(text_cell, remarks), is_text=True))
    caption = f"{metric.heading} of each case and organ, the worst cases first"
    return table_of(caption, columns, key=metric_key(metric))


def _case_columns(
    scores: CaseScores,
    numbers: Sequence[int],
    links: Mapping[str, str],
    values: Iterable[tuple[str, Metric, str]],
) -> list[Column]:
    """Some cases, and below each head their values by a metric and a suffix, shaded."""
    cases = map(scores.cases.__getitem__, numbers)
    names = [Cell(case, href=links.get(case, "")) for case in cases]
    columns = [Column("case", names, is_text=True)]
    for head, metric, suffix in values:
        row = scores.values.get(metric.name + suffix) or [None] * len(scores.cases)
        cell = partial(scores.cell, metric, is_shaded=True)
        columns.append(Column(head, map(cell, map(row.__getitem__, numbers))))
    return columns


def _worst_table(scores: CaseScores, links: Mapping[str, str]) -> Table:
    """The worst cases, their scores, and why these are low: organs before warnings."""
    numbers = scores.worst_first[:WORST_CASES]
    values = [(metric.heading, metric, "") for metric in scores.metrics]
    columns = _case_columns(scores, numbers, links, values)
    why = []
    for number in numbers:
        case = scores.cases[number]
        reasons = [scores.lowest_organ(number), scores.low_reasons.get(case, "")]
        if case in scores.failed:
            reasons = [scores.failed[case]]
        why.append(text_cell("; ".join(filter(None, reasons))))
    columns.append(Column("why", why, is_text=True))
    metric = scores.deciding[0]
    caption = "The only case"
    if all(value == metric.best for value in scores.values[metric.name]):
        caption = f"{metric.title} is {metric.text(metric.best)} in every case"
    elif len(numbers) > 1:
        caption = f"The {len(numbers)} cases with the {scores.worst_end}"
    return table_of(caption, columns)


def _group_parts(scores: CaseScores, grouping: Grouping) -> list[Part]:
    """The scores in each group.

    Participants see only means, as a dot would tell the group of its case; and nothing
    at all where a group is small.
    """
    heading, note = Heading(f"By {grouping.column}"), Words(GROUPS_NOTE, "note")
    if scores.exact:
        charts = [group_chart(scores, grouping, metric) for metric in scores.metrics]
        return [heading, note, Pair(charts)]
    reason = reason_for_silence(grouping)
    if reason:
        return [heading, Words(reason, "note")]
    tables = (_group_table(scores, grouping, metric) for metric in scores.metrics)
    return [heading, note, *folded(tables)]


def group_chart(scores: CaseScores, grouping: Grouping, metric: Metric) -> Chart:
    """A chart with a row for each group, and a dot in it for each case."""
    rows = []
    for name, case_numbers in grouping.groups:
        title = group_title(name, len(case_numbers))
        mean = scores.mean(metric.name, case_numbers)
        rows.append((f"{title}{scores.number_text(mean)}", mean))
    return _spread(
        scores,
        metric,
        rows,
        title=f"{metric.heading} of each case by {grouping.column}",
        table_of_rows=_group_table(scores, grouping, metric),
    )


def _group_table(scores: CaseScores, grouping: Grouping, metric: Metric) -> Table:
    rows = []
    for name, numbers in grouping.groups:
        for suffix, organ in scores.rows_of(metric):
            mean = scores.mean(metric.name + suffix, numbers)
            cell = scores.cell(metric, mean.value)
            organ_cell = Cell(f"{organ}{scores.number_text(mean)}", css="left")
            rows.append((name, len(numbers), organ_cell, cell, mean.interval_text))
    caption = f"{metric.heading} by {grouping.column} and organ"
    heads = ("group", "cases", "organ", "mean", "95 % interval")
    return table_of_rows(caption, heads, rows, words=("group", "organ"))
