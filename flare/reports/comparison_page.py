"""Makes the page of a comparison: for participants, or for organisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from flare.challenge.metrics import Better
from flare.common.text import count, listing
from flare.reports.comparison import (
    TEST_METHOD,
    Compared,
    Comparison,
    Paired,
    Pairs,
    compare_scores,
    comparison,
    own_comparison,
    read_matched,
    worth,
)
from flare.reports.comparison_tables import (
    change_text,
    changes_table,
    difference_key,
    differences_chart,
    interval_text,
    left_out_table,
    means_table,
    overview_table,
    p_text,
    provenance_table,
    reasons_table,
    tests_table,
)
from flare.reports.evaluation import NOTE, ORGANISERS_NOTE
from flare.reports.model import (
    NO_RESULT,
    Heading,
    Legend,
    Lines,
    Page,
    Pair,
    Part,
    Section,
    Tile,
    Words,
)
from flare.reports.scores import INTERVAL, METHOD, title_within

FEWEST_TESTED = 6
"""On fewer cases, the test finds 5 % not even where all of them change in one way."""

CERTAINTY = (
    "p answers whether most cases change in one way; the interval, how far the mean may"
    " lie from 0 on unseen cases, whatever they are like. One can be sure where the"
    " other is not."
)


def comparison_page(sources: Sequence[Path], *, is_organiser: bool) -> Page:
    """The page of several evaluations, the first of which the others are compared with.

    Raises
    ------
    MetricsFileError
        If one cannot be read, or cannot be compared with the first.
    """
    matched = read_matched(sources)
    if is_organiser:
        return _page(comparison(matched), ORGANISERS_NOTE)
    return _page(own_comparison(matched), NOTE)


def _page(found: Comparison, note: str) -> Page:
    """The page of either audience."""
    others = [each.scores for each in found.others]
    compared, tests = compare_scores(found.first.scores, others, found.metrics)
    has_overview = len(compared) > 1
    overview: list[Part] = []
    if has_overview:
        overview += (means_table(found, metric) for metric in found.metrics)
        overview += (overview_table(found, compared, own) for own in found.metrics)
    sections = []
    for number, (other, pairs) in enumerate(
        zip(found.others, compared, strict=True), start=1
    ):
        title = f"{other.name} against {found.first.name}"
        name = title if has_overview else "Differences"
        parts = _differences(found, other, pairs, title)
        sections.append(Section(f"differences-{number}", name, title, parts))
    method = [
        f"{TEST_METHOD} Holm's method adjusts for all {tests} tests of this page, those"
        " without any difference among them.",
        METHOD,
        CERTAINTY,
    ]
    unlike, first = _unlike_text(found), found.first
    verdicts = [
        _verdict(pairs, first, other)
        for other, pairs in zip(found.others, compared, strict=True)
    ]
    lead = Lines(verdicts) if has_overview else Words(*verdicts)
    names = f"{first.name} and {len(compared)} others"
    title = names if has_overview else f"{found.others[0].name} against {first.name}"
    return Page(
        title=f"{title}: comparison on {count(len(found.cases), 'case')}",
        kicker=found.challenge,
        audience_note=note,
        lead=[lead, *([Words(unlike, "banner")] if unlike else [])],
        tiles=_overview_tiles(found) if has_overview else _tiles(compared[0], found),
        sections=[
            Section("overview", "Overview", "All evaluations", overview),
            *sections,
            Section("method", "Method", "How sure it is", list(map(Words, method))),
            Section("remarks", "Remarks", "Remarks", _remarks(found)),
            Section(
                "provenance",
                "Provenance",
                "Provenance",
                [provenance_table(found) if found.provenance else None],
            ),
        ],
    )


def _differences(
    found: Comparison, other: Compared, pairs: Pairs, title: str
) -> list[Part]:
    """What is shown of one evaluation and the first."""
    first = found.first
    titles = {own.name: f"{own.title}, {title}" for own in found.metrics}
    every = pairs.items()
    where: list[Part] = []
    for unit in dict.fromkeys(own.unit for own in found.metrics):
        where.append(Legend(difference_key(unit)))
        where += (
            changes_table(pairs[own.name], found, other, titles[own.name])
            for own in found.metrics
            if own.unit == unit
        )
    return [
        Pair([differences_chart(own, first, other, pairs) for own in found.metrics]),
        Lines(_lines(pairs)),
        *(tests_table(own, first, other, titles[n]) for n, own in every),
        Heading("Who improved where"),
        *where,
    ]


def _remarks(found: Comparison) -> list[Part | None]:
    """What is said of single cases."""
    tables = [reasons_table(found), left_out_table(found)]
    parts: list[Part | None] = [*tables]
    if not any(tables):
        parts.append(Words("All cases are compared, and all of them were scored."))
    return parts


def _unlike_text(found: Comparison) -> str:
    """A warning that scores may differ for another reason than the predictions."""
    if not found.unlike:
        return ""
    what = listing(found.unlike, last=" and ")
    return (
        f"These evaluations were not made alike: {what}. What differs here may come"
        " from that, not from the predictions."
    )


def _tiles(pairs: Pairs, found: Comparison) -> tuple[Tile, ...]:
    """The mean differences, and on how many cases there is one."""
    tiles = []
    for own in (pairs[metric.name][0] for metric in found.metrics):
        is_exact = found.first.scores.exact and own.mean is not None
        means = [own.metric.text(m) for m in (own.before, own.after) if m is not None]
        note = f"from {' to '.join(means)}" if means else "no case has both"
        what = "Change" if own.metric.better is Better.HIGHER else "Gain"
        tiles.append(
            Tile(
                name=f"{what} of mean {title_within(own.metric)}",
                value=change_text(own),
                exact=repr(own.mean) if is_exact else "",
                note=f"{note}; {INTERVAL} {interval_text(own)}"
                if own.metric.is_share
                else note,
            )
        )
    own, cases = pairs[found.metrics[0].name][0], _cases_tile(found)
    told = f"{own.better} better, {own.equal} equal, {own.worse} worse"
    note = f"{told} by {own.metric.title}; {cases.note}"
    return (*tiles, replace(cases, note=note))


def _cases_tile(found: Comparison) -> Tile:
    """How many cases are compared, and how many are not."""
    rest = len({case for each in found.evaluations for case in each.left_out})
    return Tile(
        name="Cases compared",
        value=str(len(found.cases)),
        note=f"{rest or 'none'} left out",
    )


def _overview_tiles(found: Comparison) -> tuple[Tile, ...]:
    """Which of many evaluations has the highest means."""
    tiles = [Tile(name="Evaluations", value=str(len(found.evaluations)))]
    for metric in found.metrics:
        means = {own.name: own.scores.mean(metric.name) for own in found.evaluations}
        known = {name: mean for name, mean in means.items() if mean is not None}
        best = max(known, key=lambda name: worth(metric, known[name]), default="")
        tiles.append(
            Tile(
                name=f"Best mean {title_within(metric)}",
                value=metric.text(known[best]) if known else NO_RESULT,
                exact=repr(known[best]) if found.first.scores.exact and known else "",
                note=best,
            )
        )
    return (*tiles, _cases_tile(found))


def _verdict(pairs: Pairs, first: Compared, other: Compared) -> str:
    """Which is better, by how much, in which organ, and how sure that is."""
    whole = [own[0] for own in pairs.values()]
    if not any(own.is_tested for own in chain(*pairs.values())):
        return f"{other.name} has the scores of {first.name} on every case."
    organs = [own for own in pairs[whole[0].metric.name][1:] if own.mean]
    most = max(organs, key=lambda own: abs(own.mean or 0.0), default=None)
    where = (
        f"; {most.title} changed most ({most.metric.title} {change_text(most)})"
        if most
        else ""
    )
    number = count(len(first.scores.cases), "case")
    told: dict[str, list[str]] = {}
    for own in whole:
        if own.is_significant:
            told.setdefault(_word(own), []).append(_change(own))
    if told:
        changes = (
            f"significantly {word} than {first.name}: {listing(texts, last=' and ')}"
            for word, texts in told.items()
        )
        return f"{other.name} is {' and '.join(changes)} on {number}{where}."
    few = len(first.scores.cases) < FEWEST_TESTED
    why = f"the test needs {FEWEST_TESTED} cases" if few else "both may be equally good"
    return (
        f"Neither {other.name} nor {first.name} is shown to be better on {number}, and"
        f" {why}: {listing(map(_change, whole), last=' and ')}{where}."
    )


def _word(own: Paired) -> str:
    """How it has changed on most cases; and on average, where that is the opposite."""
    words = ("better", "worse") if own.effect > 0 else ("worse", "better")
    if own.mean and (own.mean > 0) != (own.effect > 0):
        return f"{words[0]} on most cases, but {words[1]} on average,"
    return words[0]


def _change(own: Paired) -> str:
    """A metric, its mean difference, and how likely chance alone makes one as large."""
    return f"{own.metric.title} {change_text(own)} (p {p_text(own.p_holm)})"


def _lines(pairs: Pairs) -> list[str]:
    """Where it is significantly better, and where worse."""
    sure = [own for own in chain(*pairs.values()) if own.is_significant]
    lines = []
    for word, sign in (("better", 1), ("worse", -1)):
        names = [f"{o.metric.title} of {o.title}" for o in sure if o.effect * sign > 0]
        if names:
            text = f"Significantly {word}, case by case (5 %): {', '.join(names)}."
            lines.append(text)
    return lines
