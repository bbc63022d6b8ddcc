"""Makes the page of a comparison: for participants, or for organisers."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from flare.reports.comparison_tables import (
    DIFFERENCE_KEY,
    changes_table,
    differences_chart,
    interval_text,
    left_out_table,
    means_table,
    overview_table,
    provenance_table,
    reasons_table,
    signed,
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
from flare.reports.scores import DIFFERENCES_METHOD

CERTAINTY = (
    "The test asks whether most cases change in one way, the interval how far the mean"
    " may lie from 0 on cases that nobody has seen: the one can be sure where the other"
    " is not."
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
        DIFFERENCES_METHOD,
        CERTAINTY,
    ]
    unlike = _unlike_text(found)
    return Page(
        title=f"Comparison of {count(len(found.evaluations), 'evaluation')} on"
        f" {count(len(found.cases), 'case')}",
        kicker=found.challenge,
        audience_note=note,
        lead=[Words(_lead(found)), *([Words(unlike, "banner")] if unlike else [])],
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
    return [
        Lines(_lines(pairs)),
        Pair([differences_chart(pairs, n, first, other, titles[n]) for n in pairs]),
        *(tests_table(own, first, other, titles[n]) for n, own in every),
        Heading("Who improved where"),
        Legend(DIFFERENCE_KEY),
        *(changes_table(own, found, other, titles[n]) for n, own in every),
    ]


def _remarks(found: Comparison) -> list[Part | None]:
    """What is said of single cases."""
    failed = _failed_lines(found)
    tables = [reasons_table(found), left_out_table(found)]
    parts: list[Part | None] = [Lines(failed) if failed else None, *tables]
    if not any(tables):
        parts.append(Words("All cases are compared, and all of them were scored."))
    return parts


def _lead(found: Comparison) -> str:
    """What is compared with what."""
    names = listing((each.name for each in found.others), last=" and ")
    is_or_are, those = ("is", "both") if len(found.others) == 1 else ("are", "all")
    return (
        f"{names} {is_or_are} compared with {found.first.name}, case by case, on the"
        f" cases that {those} have. A difference above 0 is a gain."
    )


def _unlike_text(found: Comparison) -> str:
    """A warning that scores may differ for another reason than the predictions."""
    if not found.unlike:
        return ""
    what = listing((kind.value for kind in found.unlike), last=" and ")
    return (
        f"These evaluations were not made alike: {what}. What differs here may come"
        " from that, not from the predictions."
    )


def _tiles(pairs: Pairs, found: Comparison) -> tuple[Tile, ...]:
    """The mean differences, and on how many cases there is one."""
    tiles = []
    for metric in found.metrics:
        own = pairs[metric.name][0]
        is_exact = found.first.scores.exact and own.mean is not None
        tiles.append(
            Tile(
                name=f"Change of mean {metric.title}",
                value=NO_RESULT if own.mean is None else signed(own.mean),
                exact=repr(own.mean) if is_exact else "",
                note=_means_text(own),
            )
        )
    own = pairs[found.metrics[0].name][0]
    tiles.append(
        Tile(
            name="Cases better/equal/worse",
            value=f"{own.better}/{own.equal}/{own.worse}",
            note=f"by {own.metric.title}",
        )
    )
    return (*tiles, _cases_tile(found))


def _means_text(own: Paired) -> str:
    """Both means."""
    if own.before is None or own.after is None:
        return "no case has both scores"
    return f"from {own.before:.3f} to {own.after:.3f}"


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
        is_high = metric.better is Better.HIGHER
        best = (max if is_high else min)(known, key=known.__getitem__, default="")
        tiles.append(
            Tile(
                name=f"{'Highest' if is_high else 'Lowest'} mean {metric.title}",
                value=f"{known[best]:.3f}" if known else NO_RESULT,
                exact=repr(known[best]) if found.first.scores.exact and known else "",
                note=best,
            )
        )
    return (*tiles, _cases_tile(found))


def _lines(pairs: Pairs) -> tuple[str, ...]:
    """What has come of it, in words."""
    every = list(chain(*pairs.values()))
    if not any(own.is_tested for own in every):
        return (
            "Both have the same scores on every case: there is nothing to test, and"
            " nobody is better.",
        )
    lines = [_score_line(own[0]) for own in pairs.values()]
    sure = [own for own in every if own.is_significant]
    for sign, word, other in ((1, "better", "lower"), (-1, "worse", "higher")):
        found = [own for own in sure if own.effect * sign > 0]
        if found:
            names = ", ".join(map(_name, found))
            lines.append(f"Significantly {word}, case by case (5 %): {names}.")
        against = [own for own in found if (own.mean or 0.0) * sign < 0]
        if against:
            names = ", ".join(map(_name, against))
            lines.append(
                f"And yet the mean is {other}, as a few cases outweigh the many that"
                f" are {word}: {names}."
            )
    if not sure:
        lines.append(
            "No difference is significant (5 %). That does not show that both are"
            " equally good."
        )
    return tuple(lines)


def _name(own: Paired) -> str:
    """What has been tested."""
    return f"{own.metric.title} of {own.title}"


def _score_line(own: Paired) -> str:
    """How one score has changed."""
    start = f"{own.metric.title}, {own.title}: "
    if own.mean is None:
        return f"{start}no case has both scores."
    interval = f" (95 % interval {interval_text(own.interval)})" if own.interval else ""
    return (
        f"{start}better on {own.better} of {count(len(own.present), 'case')}, equal on"
        f" {own.equal}, worse on {own.worse}; on average {signed(own.mean)}{interval}."
    )


def _failed_lines(found: Comparison) -> tuple[str, ...]:
    """How many cases were not scored, and how they count."""
    return tuple(
        f"{each.name}: {count(len(each.failed), 'case')} not scored; what stands in"
        " metrics.json instead counts here as any other score."
        for each in found.evaluations
        if each.failed
    )
