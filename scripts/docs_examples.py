"""Reports of the demonstration, which the site shows as they are."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import flare
from flare.ranking.simulation import write_simulation
from flare.reports.cases.options import CaseOptions
from flare.reports.report import write_report

FOLDER = "examples"
"""Of the reports, in the site."""


def example_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """The pages of `demo.sh`, each with its place in the site."""
    maps, references = root / "examples" / "predictions", root / "ground-truth"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "demonstration"
        pages, teams = work / "pages", work / "teams"
        metrics = flare.write_metrics(flare.evaluate(maps, references), work)
        cases = CaseOptions(ground_truth=references, predictions=maps)
        write_report([metrics], pages / "evaluation", is_organiser=True, cases=cases)
        write_report([metrics], pages / "participant.html", is_organiser=False)
        write_simulation(flare.read_challenge("flare21"), teams)
        write_report([teams], pages / "ranking", is_organiser=True)
        write_report([teams], pages / "public.html", is_organiser=False)
        for file in sorted(pages.rglob("*.html")):
            yield f"{FOLDER}/{file.relative_to(pages)}", file.read_bytes()
