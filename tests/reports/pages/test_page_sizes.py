"""The pages of a large challenge stay small, and are made in little time."""

import time

import pytest

from flare.challenge.reading import read_challenge
from flare.ranking.simulation import write_simulation
from flare.reports.ranking import pages as ranking_pages
from flare.reports.ranking.ranking import rank
from flare.reports.report import write_report

MEGABYTE = 1_000_000
SECONDS = 5


@pytest.mark.slow
@pytest.mark.parametrize("is_organiser", [True, False])
def test_fifty_teams_and_a_hundred_cases(tmp_path, monkeypatch, is_organiser):
    """No page has more than a megabyte; all 51 take 5 s beyond the ranking itself."""
    write_simulation(read_challenge("flare21"), tmp_path / "results", teams=50)
    ranking = rank(tmp_path / "results", bootstrap=100)
    monkeypatch.setattr(ranking_pages, "rank", lambda *_, **__: ranking)
    start = time.process_time()

    write_report([tmp_path / "results"], tmp_path / "pages", is_organiser=is_organiser)

    assert time.process_time() - start < SECONDS
    sizes = [file.stat().st_size for file in (tmp_path / "pages").rglob("*.html")]
    assert len(sizes) == 51
    assert max(sizes) <= MEGABYTE
