"""Pages of a ranking that was written: what stands there, and nothing decided anew."""

import json
import re
import shutil

import pytest

from flare.challenge.scheme import Ties
from flare.cli.main import main
from flare.common.text import safe
from flare.ranking.rules import MissingRule, RankingOptions
from flare.ranking.written import read_written
from flare.reports.rank import rank
from flare.reports.report import Kind, kind_of
from flare.results.errors import RankingError
from tests.builders import error_of
from tests.builders.fewer import few_fast
from tests.builders.pages import Page, write_report
from tests.builders.results import decisions, write_teams, write_values

FIVE = {"teams": 5, "own": 0.0123, "others": 0.0123}

DECISIONS = decisions("case_1", "team_4", "team_2", "team_1", "=1+1")


def make_options(folder):
    (folder / "decisions.toml").write_text(DECISIONS)
    return {
        "decisions": folder / "decisions.toml",
        "bootstrap": 25,
        "seed": 3,
        "ties": Ties.AVERAGE,
        "missing": MissingRule.WORST_PLUS_ONE,
        "gate": 0.3,
    }


@pytest.fixture
def results(tmp_path):
    return write_teams(tmp_path / "results", **FIVE)


@pytest.fixture(scope="module")
def written_once(tmp_path_factory):
    """What flare rank has written of them; nobody may change it."""
    folder = tmp_path_factory.mktemp("written")
    rank(write_teams(folder / "results", **FIVE), **make_options(folder)).write(
        folder / "ranking"
    )
    return folder / "ranking"


@pytest.fixture
def written(written_once, tmp_path):
    """A copy of it."""
    return shutil.copytree(written_once, tmp_path / "ranking")


@pytest.mark.parametrize("is_organiser", few_fast([True, False], fast=[0]))
def test_pages_of_what_was_written_are_those_of_the_results(
    results, written, tmp_path, is_organiser
):
    """With decisions, options, flags and reasons: byte by byte.

    Defaults of the command, such as the challenge, do not count.
    """
    options, other = make_options(tmp_path), {"challenge": "flare22"}
    for source, name, more in ((results, "a", options), (written, "b", other)):
        ranking = RankingOptions(**more)
        output = tmp_path / name
        write_report([source], output, is_organiser=is_organiser, ranking=ranking)

    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*"))
    assert len(files) == 6  # the index, the folder, and four teams
    for file in files:
        if file.suffix:
            first, second = (tmp_path / name / file for name in "ab")
            assert first.read_bytes() == second.read_bytes()


def test_a_first_place_that_a_disqualification_makes_shared_is_told(tmp_path):
    """Ranks are 1 3 of a, 2 1 of b and 3 2 of c; without c, 1 2 of a and 2 1 of b."""
    values = {"a": [(0.9,), (0.7,)], "b": [(0.8,), (0.9,)], "c": [(0.1,), (0.8,)]}
    table = write_values(tmp_path / "all.csv", values)
    rank(table, metrics=["dsc"], bootstrap=0).write(tmp_path / "ranking")

    page = tmp_path / "page.html"
    page = write_report([tmp_path / "ranking"], page, is_organiser=True)

    told = "if c is disqualified, it would then share first place with a"
    assert told in page.read_text(encoding="utf-8")


def test_a_ranking_of_a_challenge_of_one_s_own_needs_no_file_of_it(results, tmp_path):
    """Its names, metrics and digest are on record."""
    from flare.challenge.reading import challenge_text

    mine = tmp_path / "mine.toml"
    mine.write_text(challenge_text("flare21").replace('"FLARE 2021"', '"Mine"', 1))
    rank(results, challenge=mine, bootstrap=0).write(tmp_path / "ranking")
    mine.unlink()

    page = tmp_path / "page.html"
    page = write_report([tmp_path / "ranking"], page, is_organiser=False)

    assert "Mine (mine)" in page.read_text(encoding="utf-8")


VALUE = re.compile("^team_0,case_2,dsc,.*$", re.MULTILINE)
NOT_OURS = "it is no ranking.json that flare rank has written"
ANOTHER = "it was written by another version"
OTHER = "it does not belong to the ranking.json beside it"


def settings_with(**changes):
    """Spoils the settings of a ranking.json; None takes a key out."""

    def spoil(text):
        content = json.loads(text)
        for key, value in changes.items():
            content["settings"].pop(key)
            if value is not None:
                content["settings"][key] = value
        return json.dumps(content)

    return spoil


@pytest.mark.parametrize(
    ("name", "spoil", "problem"),
    [
        ("values.csv", lambda text: VALUE.sub("team_0,case_2,dsc,0.0001", text), OTHER),
        ("values.csv", lambda text: text + "\n", OTHER),
        ("ranking.json", settings_with(version="0.1.0"), f"{ANOTHER} (0.1.0)"),
        ("ranking.json", settings_with(values_sha256=None), f"{ANOTHER} ("),
        ("ranking.json", settings_with(metrics=[{"tolerance": 10**400}]), NOT_OURS),
        ("ranking.json", lambda _: "{", NOT_OURS),
        ("ranking.json", lambda _: '{"settings": {}, "ranking": []}', NOT_OURS),
    ],
    ids=["value", "line", "version", "digest", "number", "no JSON", "other JSON"],
)
def test_files_that_do_not_belong_together_are_refused(
    written, tmp_path, name, spoil, problem
):
    file = written / name
    file.write_text(spoil(file.read_text(encoding="utf-8")), encoding="utf-8")

    with pytest.raises(RankingError) as caught:
        write_report([written], tmp_path / "page.html", is_organiser=True)

    assert caught.value.finding.startswith(f"{safe(file)}: ")
    assert problem in caught.value.finding
    assert "flare rank RESULTS" in str(caught.value)


@pytest.mark.parametrize("name", ["values.csv", "ranking.json"])
def test_a_file_that_is_not_there_is_named(written, name):
    (written / name).unlink()

    assert name in error_of(RankingError, read_written, written).finding


def test_results_with_a_ranking_among_them_are_ranked(results):
    """As after flare rank RESULTS --output RESULTS."""
    rank(results, bootstrap=0).write(results)

    assert kind_of([results]) is Kind.RANKING


def test_means_of_what_was_written_are_shown_where_that_is_chosen(written, tmp_path):
    page = tmp_path / "page.html"

    assert main(["report", str(written), "--output", str(page), "--means"]) == 0

    assert len(Page(page.read_text(encoding="utf-8")).table("Means over 6 cases")) == 4
