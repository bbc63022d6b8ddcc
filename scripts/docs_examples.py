"""Reports of the demonstration, which the site shows as they are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import flare
from flare.ranking.simulation import write_simulation
from flare.reports.cases.options import CaseOptions
from flare.reports.report import Report

FOLDER = "examples"
"""Of the reports, in the site."""


def example_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """The pages of `demo.sh`, and a comparison, each with its place in the site."""
    maps, references = root / "examples" / "predictions", root / "ground-truth"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "demonstration"
        pages, teams = work / "pages", work / "teams"
        metrics = flare.write_metrics(flare.evaluate(maps, references), work)
        cases = CaseOptions(ground_truth=references, predictions=maps)
        write_simulation(flare.read_challenge("flare21"), teams)
        pair = tuple(teams / name / "metrics.json" for name in ("team_07", "team_02"))
        for report in (
            Report(sources=(metrics,), output=pages / "participant.html"),
            Report(sources=(teams,), output=pages / "public.html"),
            Report(
                sources=(metrics,),
                output=pages / "evaluation",
                audience="organiser",
                cases=cases,
            ),
            Report(sources=pair, output=pages / "comparison", audience="organiser"),
            Report(sources=(teams,), output=pages / "ranking", audience="organiser"),
        ):
            report.write()
        for file in sorted(pages.rglob("*.html")):
            yield f"{FOLDER}/{file.relative_to(pages)}", file.read_bytes()
