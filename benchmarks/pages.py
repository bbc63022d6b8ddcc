"""Draws pages of a kind, and says what it takes: ``python pages.py KIND TEAMS FOLDER``.

Run as a program of its own, so that nothing was read before. It prints a JSON array of
what `Drawn` has. The folder keeps the results of made-up teams from one run to the
next. A page is drawn twice, and the second time counts: what templates are compiled to
is shared with whichever page is drawn first.

A new kind of page is a function here, and its name in `KINDS`; the sizes in which it is
drawn are in `measure_pages` of ``run.py``, which makes rows of whatever is printed.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from cases import write_cases

from flare.challenge.reading import read_challenge
from flare.evaluation.evaluate import evaluate
from flare.ranking.rules import RankingOptions
from flare.ranking.simulation import write_simulation
from flare.reports.cases.options import CaseOptions
from flare.reports.cases.pages import case_html, case_pages
from flare.reports.evaluation import organiser_page, participant_page
from flare.reports.measuring import MeasuringProgress, TeamProgress, measuring_page
from flare.reports.rank import rank
from flare.reports.ranking.organisers import WholeRanking, metric_values
from flare.reports.ranking.organisers import organiser_page as ranking_for_organisers
from flare.reports.ranking.page import public_ranking, ranking_page
from flare.reports.ranking_pages import ranking_pages
from flare.reports.render.html import page_html
from flare.reports.scores import own_scores
from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.metrics_json import metrics_json
from flare.results.metrics_reading import read_evaluation

CASES = 100
ORGANS = ("liver", "kidney", "spleen", "pancreas")


@dataclass(frozen=True)
class Drawn:
    """A page that was drawn."""

    page: str
    bytes: int
    draw_s: float
    """Processor time, once what it is made from was there."""
    beside: str = ""
    """Other work of the same process, with which it is compared."""
    beside_s: float | None = None
    """Processor time of that."""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes of some work, and its processor time."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def drawn(page: str, draw: Callable[[], str], ranking_s: float | None = None) -> Drawn:
    """Draw a page twice; the second time counts."""
    draw()
    html, draw_s = timed(draw)
    beside = "ranking" if ranking_s else ""
    return Drawn(
        page=page, bytes=_size(html), draw_s=draw_s, beside=beside, beside_s=ranking_s
    )


def _size(html: str) -> int:
    """The bytes of a page."""
    return len(html.encode("utf-8"))


def simulated(teams: int, folder: Path) -> Path:
    """Results of made-up teams."""
    source = folder / f"teams-{teams}"
    if not source.exists():
        write_simulation(read_challenge("flare21"), source, teams=teams, cases=CASES)
    return source


def rankings(teams: int, folder: Path) -> Iterator[Drawn]:
    """A ranking by the four metrics of FLARE21, with all that is said of it."""
    source = simulated(teams, folder)
    analysis, ranking_s = timed(lambda: rank(source).analysis)
    size = f"{teams} {'team' if teams == 1 else 'teams'}"
    yield drawn(
        f"ranking of {size}, for organisers",
        lambda: page_html(
            ranking_for_organisers(
                WholeRanking(
                    analysis,
                    public_ranking(analysis, is_organiser=True),
                    metric_values(analysis),
                    (),
                ),
                {},
            )
        ),
        ranking_s,
    )
    yield drawn(
        f"ranking of {size}, for everybody",
        lambda: page_html(ranking_page(public_ranking(analysis), {})),
        ranking_s,
    )


def report_pages(teams: int, folder: Path) -> Iterator[Drawn]:
    """The whole report of a ranking: its page, and one of each team."""
    source = simulated(teams, folder)

    def pages() -> list[str]:
        found = ranking_pages(
            source,
            RankingOptions(),
            is_written=False,
            is_organiser=True,
            has_teams=True,
        )
        return [page_html(page) for _, page in found]

    pages()
    _, ranking_s = timed(lambda: rank(source).analysis)
    found, all_s = timed(pages)
    yield Drawn(
        page=f"ranking of {teams} teams with a page of each",
        bytes=max(map(_size, found)),
        draw_s=all_s - ranking_s,
        beside="ranking",
        beside_s=ranking_s,
    )


def case_pages_of(cases: int, folder: Path) -> Iterator[Drawn]:
    """Pages of cases of 512 x 512 x 100, beside their scoring: each by the case."""
    maps, file = folder / f"cases-{cases}", folder / f"cases-{cases}.json"
    if not maps.exists():
        write_cases(maps, cases=cases, slices=100, organs=4, dtype="uint8")
    folders = maps / "predictions", maps / "reference"
    results, scoring_s = timed(lambda: evaluate(*folders, workers=1))
    file.write_text(metrics_json(results), encoding="utf-8")
    found = read_evaluation(file)
    wanted = CaseOptions(predictions=folders[0], ground_truth=folders[1], worst=0)
    list(case_pages(file, found, replace(wanted, worst=1)))
    pages, draw_s = timed(
        lambda: [case_html(page) for _, page in case_pages(file, found, wanted)]
    )
    yield Drawn(
        page="case of 512 x 512 x 100",
        bytes=max(map(_size, pages)),
        draw_s=draw_s / cases,
        beside="scoring",
        beside_s=scoring_s / cases,
    )


def evaluation_pages(_: int, folder: Path) -> Iterator[Drawn]:
    """One evaluation of four organs."""
    file = folder / "metrics.json"
    file.write_text(json.dumps(metrics_content()), encoding="utf-8")
    found = read_evaluation(file)
    yield drawn(
        "evaluation of 100 cases, for organisers",
        lambda: page_html(organiser_page(found)),
    )
    yield drawn(
        "evaluation of 100 cases, for its participant",
        lambda: page_html(participant_page(own_scores(found))),
    )


def metrics_content() -> dict[str, Any]:
    """A metrics.json with made-up scores."""
    chance = random.Random(1)
    columns: dict[str, list[float]] = {
        f"{kind}_{organ}": [1 - chance.betavariate(1, 9) for _ in range(CASES)]
        for kind in ("dsc", "nsd")
        for organ in ORGANS
    }
    for kind in ("dsc", "nsd"):
        rows = zip(*(columns[f"{kind}_{organ}"] for organ in ORGANS), strict=True)
        columns[kind] = [sum(row) / len(row) for row in rows]
    names = [f"case_{n:03}.nii.gz" for n in range(CASES)]
    case: dict[str, list[Any]] = {"alg_fname": names, "gt_fname": names, **columns}
    return {
        "case": {
            name: {str(n): value for n, value in enumerate(values)}
            for name, values in case.items()
        },
        "aggregates": {},
        "evaluation": {"challenge": "flare21", "version": "0", "options": {}},
        "failed": {},
        "warnings": [],
    }


def running_pages(teams: int, _: Path) -> Iterator[Drawn]:
    """A measurement that is nearly done, each tenth case of which has failed."""
    chance = random.Random(1)
    cases = tuple(f"case_{n:03}" for n in range(CASES))
    records = {
        case: CaseRecord(case=case, status=RunStatus.TIMED_OUT, message="ended late")
        if n % 10 == 0
        else CaseRecord(
            case=case, status=RunStatus.OK, runtime_s=chance.uniform(1, 300)
        )
        for n, case in enumerate(cases)
    }
    at = datetime(2026, 1, 1, tzinfo=UTC)
    run = MeasuringProgress(
        as_of=at,
        cases=cases,
        teams=tuple(
            TeamProgress(team=f"team_{n:02}", records=records) for n in range(teams)
        ),
        is_running=True,
    )
    name = f"measurement of {teams} teams"
    yield drawn(name, lambda: page_html(measuring_page(run)))


KINDS: dict[str, Callable[[int, Path], Iterator[Drawn]]] = {
    "ranking": rankings,
    "report": report_pages,
    "cases": case_pages_of,
    "evaluation": evaluation_pages,
    "running": running_pages,
}


def main(kind: str, teams: str, folder: str) -> None:
    """Draw all pages of a kind."""
    found = KINDS[kind](int(teams), Path(folder))
    print(json.dumps([asdict(page) for page in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
