"""Pages of a ranking that was written: what stands there, and nothing decided anew."""

import json
import re
import shutil

import pytest

from flare.cli.main import main
from flare.common.text import safe
from flare.ranking.rules import MissingRule, RankingOptions, Ties
from flare.reports.rank import rank
from flare.reports.report import Kind, kind_of
from flare.results.errors import RankingError
from tests.builders.fewer import few_fast
from tests.builders.pages import Page, write_report
from tests.builders.results import write_teams

FIVE = {"teams": 5, "own": 0.0123, "others": 0.0123}

DECISIONS = """
[[withdrawn]]
case = "case_1"
reason = "wrong kidney"
date = 2026-09-01

[[disqualified]]
team = "team_4"
reason = "cheated"
date = 2026-09-01

[[out_of_competition]]
team = "team_2"
reason = "ours"
date = 2026-09-01

[[names]]
team = "team_1"
name = "=1+1"
reason = "as they like"
date = 2026-09-01
"""


def make_options(folder):
    """How they are ranked, with a decision about each."""
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
    """The results of all teams."""
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


def test_a_ranking_of_a_challenge_of_one_s_own_needs_no_file_of_it(results, tmp_path):
    """Its names, metrics and digest are on record."""
    from flare.challenge.reading import challenge_text

    mine = tmp_path / "mine.toml"
    mine.write_text(challenge_text("flare21").replace('"FLARE 2021"', '"Mine"', 1))
    rank(results, challenge=mine, bootstrap=0).write(tmp_path / "ranking")
    mine.unlink()

    write_report([tmp_path / "ranking"], tmp_path / "page.html", is_organiser=False)

    assert "Mine (mine)" in (tmp_path / "page.html").read_text(encoding="utf-8")


def other_draws(text):
    content = json.loads(text)
    content["bootstrap"]["teams"][0]["interval"] = [4, 4]
    return json.dumps(content)


def other_score(text):
    content = json.loads(text)
    content["ranking"][0]["score_exact"] = "1/7"
    return json.dumps(content)


VALUE = re.compile("^team_0,case_2,dsc,.*$", re.MULTILINE)
TEAM = re.compile("^team_0,.*\n", re.MULTILINE)
NOT_OURS = "it is no ranking.json that flare rank has written"


@pytest.mark.parametrize(
    ("name", "spoil", "named", "problem"),
    [
        (
            *("values.csv", lambda text: VALUE.sub("team_0,case_2,dsc,0.0001", text)),
            *("values.csv", "it does not belong to the ranking.json beside it"),
        ),
        (
            *("values.csv", lambda text: TEAM.sub("", text), "values.csv"),
            "it does not belong to the ranking.json beside it",
        ),
        *(
            (
                *("ranking.json", other, "values.csv"),
                "it does not belong to the ranking.json beside it",
            )
            for other in (other_draws, other_score)
        ),
        (
            *("values.csv", lambda text: text + "team_0,case_2,dsc,0.5\n"),
            *("values.csv", "team_0 case_2 dsc is there twice"),
        ),
        ("values.csv", None, "values.csv", "it cannot be read ("),
        ("ranking.json", lambda _: "{", "ranking.json", NOT_OURS),
        (
            *("ranking.json", lambda _: '{"settings": {}, "ranking": []}'),
            *("ranking.json", NOT_OURS),
        ),
    ],
    ids=[
        "value",
        "team",
        "draws",
        "score",
        "twice",
        "no values",
        "no JSON",
        "other JSON",
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    written, tmp_path, name, spoil, named, problem
):
    file = written / name
    text = file.read_text(encoding="utf-8")
    file.unlink()
    if spoil:
        file.write_text(spoil(text), encoding="utf-8")

    with pytest.raises(RankingError) as caught:
        write_report([written], tmp_path / "page.html", is_organiser=True)

    assert caught.value.finding.startswith(f"{safe(written / named)}: ")
    assert problem in caught.value.finding


def test_results_with_a_ranking_among_them_are_ranked(results):
    """As after flare rank RESULTS --output RESULTS."""
    rank(results, bootstrap=0).write(results)

    assert kind_of([results]) is Kind.RANKING


def test_means_of_what_was_written_are_shown_where_that_is_chosen(written, tmp_path):
    page = tmp_path / "page.html"

    assert main(["report", str(written), "--output", str(page), "--means"]) == 0

    assert len(Page(page.read_text(encoding="utf-8")).table("Means over 6 cases")) == 4


def test_what_is_told_in_words_may_be_anything(written, tmp_path):
    file = written / "ranking.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    told["flags"] = [None, 7]
    for missing in told["missing"]:
        missing |= {"reason": [], "kind": -1}
    file.write_text(json.dumps(told), encoding="utf-8")

    write_report([written], tmp_path / "pages", is_organiser=True)

    assert told["missing"]
    assert "None" in (tmp_path / "pages/index.html").read_text(encoding="utf-8")


def test_a_number_beyond_all_others_is_not_ours(written, tmp_path):
    file = written / "ranking.json"
    told = json.loads(file.read_text(encoding="utf-8"))
    told["settings"]["metrics"][0]["tolerance"] = 10**400
    file.write_text(json.dumps(told), encoding="utf-8")

    with pytest.raises(RankingError, match=NOT_OURS):
        write_report([written], tmp_path / "page.html", is_organiser=True)
