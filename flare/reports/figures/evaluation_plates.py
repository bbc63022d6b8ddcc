"""Says which figures one evaluation has, and what each is drawn from."""

from __future__ import annotations

from functools import partial

from flare.challenge.metrics import SCORES
from flare.common.text import count, printable
from flare.reports.figures.mosaics import draw_mosaic, score_shade
from flare.reports.figures.plates import Plate
from flare.reports.figures.spreads import INTERVALS, KEY, draw_spreads
from flare.reports.pages.case_scores import CaseScores, worst_first
from flare.reports.pages.distributions import score_axis
from flare.reports.pages.intervals import mean_interval


def evaluation_plates(scores: CaseScores) -> tuple[Plate, ...]:
    """How organs are spread, and all cases and organs, by DSC and by NSD."""
    return (
        *(_spread_plate(scores, score) for score in SCORES),
        *(_cases_plate(scores, score) for score in SCORES),
    )


def _spread_plate(scores: CaseScores, score: str) -> Plate:
    """A dot for each case and organ."""
    rows = [scores.present(score + end) for end, _ in scores.rows]
    names = [title for _, title in scores.rows]
    return Plate(
        name=f"organs_{score}",
        caption=f"{score.upper()} of each organ on {count(len(scores.cases), 'case')}."
        f" {KEY}{INTERVALS}",
        columns=("organ", "case", score),
        rows=tuple(
            (title, printable(case), value)
            for end, title in scores.rows
            for case, value in zip(
                scores.cases, scores.values.get(score + end, ()), strict=True
            )
        ),
        draw=partial(
            draw_spreads,
            names=names,
            values=rows,
            axis=score_axis([value for values in rows for value in values]),
            title=score.upper(),
            intervals=[mean_interval(own) for own in rows],
        ),
    )


def _cases_plate(scores: CaseScores, score: str) -> Plate:
    """All cases and organs, the worst case first."""
    order = worst_first(scores)
    columns = [scores.values[score + end] for end, _ in scores.rows]
    titles = [title for _, title in scores.rows]
    values = [[own[number] for own in columns] for number in order]
    cases = [printable(scores.cases[number]) for number in order]
    return Plate(
        name=f"cases_{score}",
        caption=f"{score.upper()} of each case and organ, the lowest DSC first; a line"
        " marks what has no result.",
        columns=("case", *titles),
        rows=tuple((case, *own) for case, own in zip(cases, values, strict=True)),
        draw=partial(
            draw_mosaic,
            rows=cases,
            columns=titles,
            values=values,
            form=".2f",
            shade_of=score_shade,
            has_score_key=True,
        ),
    )
