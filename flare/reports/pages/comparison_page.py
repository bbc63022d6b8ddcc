"""Makes the page of a comparison: for participants, or for organisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.challenge.metrics import SCORES
from flare.common.text import count, listing
from flare.reports.pages.comparison import (
    Compared,
    Comparison,
    comparison,
    read_matched,
)
from flare.reports.pages.comparison_tables import (
    DIFFERENCE_KEY,
    changes_table,
    differences_figure,
    interval_text,
    signed,
    tests_table,
)
from flare.reports.pages.evaluation import ORGANISERS_NOTE
from flare.reports.pages.intervals import DIFFERENCES_METHOD
from flare.reports.pages.own_comparison import own_comparison, rounded
from flare.reports.pages.page import page_html
from flare.reports.pages.paired import TEST_METHOD, Paired, Pairs, compare_scores
from flare.reports.pages.participant import NOTE
from flare.reports.pages.parts import NO_RESULT, Figure, Frame, Table, Tile
from flare.reports.pages.side_by_side import (
    left_out_table,
    means_table,
    overview_table,
    provenance_table,
    reasons_table,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is shown of one evaluation and the first."""

    anchor: str
    title: str
    lines: tuple[str, ...]
    figures: tuple[Figure, ...]
    tests: tuple[Table, ...]
    changes: tuple[Table, ...]


def comparison_html(sources: Sequence[Path], *, is_organiser: bool) -> str:
    """The page of several evaluations, the first of which the others are compared with.

    Raises
    ------
    MetricsFileError
        If one cannot be read, or cannot be compared with the first.
    """
    matched = read_matched(sources)
    if is_organiser:
        return _html(comparison(matched), ORGANISERS_NOTE)
    return _html(rounded(own_comparison(matched)), NOTE)


def _html(found: Comparison, note: str) -> str:
    """The page as HTML."""
    others = [each.scores for each in found.others]
    compared, tests = compare_scores(found.first.scores, others)
    parts = [
        _part(found, other, pairs, number)
        for number, (other, pairs) in enumerate(
            zip(found.others, compared, strict=True), start=1
        )
    ]
    has_overview = len(parts) > 1
    sections = (
        *([("overview", "Overview")] if has_overview else []),
        *((p.anchor, p.title if has_overview else "Differences") for p in parts),
        ("method", "Method"),
        ("remarks", "Remarks"),
        *([("provenance", "Provenance")] if found.provenance else []),
    )
    number = len(found.evaluations)
    return page_html(
        "comparison.html",
        page=Frame(
            title=f"Comparison of {count(number, 'evaluation')} on"
            f" {count(len(found.cases), 'case')}",
            kicker=found.challenge,
            sections=sections,
            audience_note=note,
        ),
        lead=_lead(found),
        unlike=_unlike_text(found),
        tiles=_overview_tiles(found) if has_overview else _tiles(compared[0], found),
        means=[means_table(found, score) for score in SCORES] if has_overview else [],
        overview=[overview_table(found, compared, score) for score in SCORES],
        comparisons=parts,
        method=DIFFERENCES_METHOD,
        test_method=f"{TEST_METHOD} Holm's method adjusts for all {tests} tests of"
        " this page, those without any difference among them.",
        shades=DIFFERENCE_KEY,
        reasons=reasons_table(found),
        failed=_failed_lines(found),
        left_out=left_out_table(found),
        provenance=provenance_table(found) if found.provenance else None,
    )


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
    for score in SCORES:
        own = pairs[score][0]
        is_exact = found.first.scores.exact and own.mean is not None
        tiles.append(
            Tile(
                name=f"Change of mean {score.upper()}",
                value=NO_RESULT if own.mean is None else signed(own.mean),
                exact=repr(own.mean) if is_exact else "",
                note=_means_text(own),
            )
        )
    own = pairs[SCORES[0]][0]
    tiles.append(
        Tile(
            name="Cases better/equal/worse",
            value=f"{own.better}/{own.equal}/{own.worse}",
            note=f"by {SCORES[0].upper()}",
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
    for score in SCORES:
        means = {each.name: each.scores.mean(score) for each in found.evaluations}
        known = {name: mean for name, mean in means.items() if mean is not None}
        best = max(known, key=lambda name: known[name], default="")
        tiles.append(
            Tile(
                name=f"Highest mean {score.upper()}",
                value=f"{known[best]:.3f}" if known else NO_RESULT,
                exact=repr(known[best]) if found.first.scores.exact and known else "",
                note=best,
            )
        )
    return (*tiles, _cases_tile(found))


def _part(found: Comparison, other: Compared, pairs: Pairs, number: int) -> Part:
    """What is shown of one evaluation and the first."""
    first = found.first
    title = f"{other.name} against {first.name}"
    titles = {score: f"{score.upper()}, {title}" for score in SCORES}
    return Part(
        anchor=f"differences-{number}",
        title=title,
        lines=_lines(pairs),
        figures=tuple(
            differences_figure(pairs, score, first, other, title=titles[score])
            for score in SCORES
        ),
        tests=tuple(
            tests_table(pairs[score], first, other, title=titles[score])
            for score in SCORES
        ),
        changes=tuple(
            changes_table(pairs[score], found.cases, (first, other), titles[score])
            for score in SCORES
        ),
    )


def _lines(pairs: Pairs) -> tuple[str, ...]:
    """What has come of it, in words."""
    every = [own for score in SCORES for own in pairs[score]]
    if not any(own.is_tested for own in every):
        return (
            "Both have the same scores on every case: there is nothing to test, and"
            " nobody is better.",
        )
    lines = [_score_line(pairs[score][0]) for score in SCORES]
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
    return f"{own.score.upper()} of {own.title}"


def _score_line(own: Paired) -> str:
    """How one score has changed."""
    start = f"{own.score.upper()}, {own.title}: "
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
