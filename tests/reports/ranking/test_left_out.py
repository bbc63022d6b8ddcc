"""What nobody has measured is left out of a ranking, which says so everywhere."""

import json
from dataclasses import replace

import pandas as pd
import pytest

import flare
from flare.results.errors import RankingError
from tests.builders import error_of
from tests.builders.pages import write_report
from tests.builders.results import FLARE21, write_table, write_team

LINE = "Not ranked: Running time (s) and GPU memory (MB), as no team was measured."
SCORES = {"a": {"1": 0.9, "2": 0.8}, "b": {"1": 0.7, "2": 0.6}}


@pytest.fixture
def scored(tmp_path):
    """Results of two teams as flare score writes them: nothing was measured."""
    for team, scores in SCORES.items():
        write_team(tmp_path / "results" / team, scores)
    return tmp_path / "results"


def test_without_measurements_teams_are_ranked_by_their_scores(scored, tmp_path):
    found = flare.rank(scored, bootstrap=0)
    found.write(tmp_path / "ranking")

    assert str(found).count(LINE) == 1
    content = json.loads((tmp_path / "ranking" / "ranking.json").read_text())
    assert content["settings"]["not_measured"] == ["runtime_s", "max_gpu_memory_mb"]
    assert [rule["metric"] for rule in content["settings"]["metrics"]] == ["dsc", "nsd"]
    # Always the better of two by both metrics, and always the worse one.
    found = {team["team"]: team["score"] for team in content["ranking"]}
    assert found == {"a": 1 / 2, "b": 2 / 2}
    for name in ("report.txt", "methods.txt", "ranking.tex"):
        assert LINE in (tmp_path / "ranking" / name).read_text()
    for name in ("ranking.md", "sheets/a.md", "sheets/b.md"):
        assert LINE.split(":")[0] in (tmp_path / "ranking" / name).read_text()
    for is_organiser in (False, True):
        write_report([scored], tmp_path / "pages", is_organiser=is_organiser)
        pages = [page.read_text() for page in (tmp_path / "pages").rglob("*.html")]
        assert [page.count(LINE) for page in pages] == [1] * 3


@pytest.mark.parametrize(
    "name", ["efficiency.csv", "measurement.json"], ids=["rows", "settings"]
)
def test_where_a_team_was_measured_nothing_is_left_out(scored, name):
    """Though what was measured has no value, or the team has no scores yet."""
    (scored / "c").mkdir()
    text = "case,status\n" if name == "efficiency.csv" else "{}"
    (scored / "c" / name).write_text(text)

    with pytest.raises(RankingError, match="no team has a value of runtime_s"):
        flare.rank(scored, bootstrap=0)


def test_a_table_without_them_is_refused(tmp_path):
    """It may lack them by mistake; and what to type instead is said."""
    rows = [
        (team, case, metric, value)
        for team, own in SCORES.items()
        for case, value in own.items()
        for metric in ("dsc", "nsd")
    ]
    frame = pd.DataFrame(rows, columns=["team", "case", "metric", "value"])
    for table in (frame, write_table(tmp_path / "results.csv", rows)):
        error = error_of(RankingError, flare.rank, table, bootstrap=0)
        assert "--metrics dsc,nsd." in str(error)


def test_a_challenge_of_measurements_alone_needs_them(scored):
    challenge = replace(FLARE21, ranking=FLARE21.ranking[2:])

    with pytest.raises(RankingError, match="no team has a value of runtime_s"):
        flare.rank(scored, challenge=challenge, bootstrap=0)
