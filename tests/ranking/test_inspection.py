"""Nobody vanishes from a ranking, and results that were not made alike are refused."""

import json
from dataclasses import replace

import pytest

import flare
from flare.challenge.reading import scoring_rules
from flare.common.text import safe
from flare.ranking.inspection import check_comparable, check_origins
from flare.ranking.table import read_results
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_reading import read_evaluation
from tests.builders import error_of, write_file
from tests.builders.pages import metrics_content, write_json
from tests.builders.results import FLARE21, ranked, write_table, write_team

SCORES = {"c1": 0.91, "c2": 0.82, "c3": 0.73}
RUNS = [(case, "ok", 5, 9) for case in SCORES]
LEDGER = "team,archive_sha256,model_sha256,paper,date,reason\n"


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    write_team(folder / "a", SCORES, RUNS)
    write_team(folder / "b", {case: v / 2 for case, v in SCORES.items()}, RUNS)
    return folder


def rank(results, tmp_path):
    metrics = ["dsc", "nsd", "runtime_s", "max_gpu_memory_mb"]
    ranking = flare.rank(results, metrics=metrics, bootstrap=0)
    ranking.write(tmp_path / "out")
    found = json.loads((tmp_path / "out" / "ranking.json").read_text())
    return f"{ranking}\n", found, (tmp_path / "out" / "methods.txt").read_text()


def write_sent(results, *, refused="", ledger=""):
    head = "team,archive,archive_sha256,problem\n"
    (results / "refused.csv").write_text(head + refused)
    (results / "ledger.csv").write_text(LEDGER + ledger)


def test_what_was_sent_is_told_of_everywhere(results, tmp_path):
    write_sent(
        results,
        refused="bad,bad.tar.gz,1,it is no image. [F15]\n"
        "worse,,,too late\nb,b.tar.gz,2,it has no /bin/bash. [F15]\n",
        ledger="a,1,,,2026-01-01,\nb,2,,,2026-01-01,\na,3,,,2026-02-02,a wrong path\n",
    )

    text, found, methods = rank(results, tmp_path)

    roll, flags = found["roll_call"], "\n".join(found["flags"])
    assert [(f["team"], f["is_ranked"]) for f in roll["refused"]] == [
        *(("b", True), ("bad", False), ("worse", False)),
    ]
    assert roll["replaced"] == [
        {"team": "a", "date": "2026-02-02", "reason": "a wrong path"}
    ]
    for words in ("bad: bad.tar.gz was refused", "a: archive replaced on 2026-02-02"):
        assert words in text
        assert words in flags
    assert "not ranked, as what they sent could not be scored: bad, worse." in methods
    assert "Teams that replaced an archive" in methods
    assert found["interim"] is None


@pytest.mark.parametrize(
    ("refused", "ledger", "waiting"),
    [
        # Its archive was accepted, and the engine could not load it.
        ("x,x.tar.gz,5,the engine cannot load it. [F15]\n", "x,5,,,2026-01-01,\n", []),
        # The last archive that it has sent is another one.
        ("x,x.tar.gz,6,it is no image. [F15]\n", "x,7,,,2026-01-01,\n", ["x"]),
        # The same bytes, refused for the name that they were sent under.
        ("Copy,Copy.tar.gz,5,a team's name. [F15]\n", "x,5,,,2026-01-01,\n", ["x"]),
    ],
    ids=["not loaded", "another archive", "a refused copy"],
)
def test_a_team_without_scores_is_waited_for_unless_it_was_refused(
    results, refused, ledger, waiting
):
    (results / "x").mkdir()
    write_sent(results, refused=refused, ledger=ledger)

    roll = read_results(results, ranked("dsc"), FLARE21).roll

    assert [found.team for found in roll.not_scored_yet] == waiting
    assert [found.is_ranked for found in roll.refused] == [False]
    assert roll.ignored == ()


def test_a_team_that_is_not_scored_yet_makes_the_ranking_an_interim_one(
    results, tmp_path
):
    """One was begun, the other has sent an archive."""
    (results / "ledger.csv").write_text(f"{LEDGER}late,1,,,2026-01-01,\n")
    write_file(results / "half" / "efficiency.csv", "case,status\nc1,ok\n")

    text, found, methods = rank(results, tmp_path)

    first = (
        "Interim ranking: 2 teams are not measured to the end (half, late). Go on with"
        " flare measure, and rank again."
    )
    assert text.splitlines()[0] == found["interim"] == first
    assert methods.startswith(first)
    page = (tmp_path / "out" / "ranking.md").read_text()
    assert page.startswith("Interim ranking")
    assert "half has no scores yet, and is not ranked (1 case measured): go" in text
    assert found["roll_call"]["not_scored_yet"] == [
        {"team": "half", "cases_measured": 1},
        {"team": "late", "cases_measured": 0},
    ]


def refusal(results, challenge=FLARE21):
    return error_of(RankingError, read_results, results, ranked("dsc"), challenge)


@pytest.mark.parametrize(
    ("unscored", "source", "file", "remedy"),
    [
        ("b", "", "b/metrics.json", "flare rescore RESULTS --ground-truth LABELS"),
        ("ab", "", "", "flare measure --ground-truth LABELS"),
        ("", "a", "a", "Give the folder above it, results,"),
    ],
    ids=["a team that could be scored", "no team is scored", "the folder of a team"],
)
def test_what_cannot_be_ranked_yet(results, unscored, source, file, remedy):
    for team in unscored:
        (results / team / "metrics.json").unlink()

    error = refusal(results / source)

    assert error.file == str(results / file)
    assert remedy in error.remedy.replace(str(results), "RESULTS")
    if unscored == "ab":
        assert error.problem.endswith("a (3 cases measured), b (3 cases measured)")


# --- Copies, and warnings ---------------------------------------------------------


def copies(results):
    return [
        (c.teams, c.what)
        for c in read_results(results, ranked("dsc"), FLARE21).roll.equal_results
    ]


VALUES = "the same DSC and NSD in every digit, on all cases"


def test_a_copy_is_found_by_its_values(results, tmp_path):
    assert copies(results) == []
    write_team(results / "z", SCORES, [(case, "ok", 6, 8) for case in SCORES])

    text, found, methods = rank(results, tmp_path)

    assert f"  a and z have {VALUES}: is one a copy?\n" in text
    assert found["roll_call"]["equal_results"] == [
        {"teams": ["a", "z"], "what": VALUES}
    ]
    assert f"a, z have {VALUES}." in methods


@pytest.mark.parametrize(
    ("scores", "failed"),
    [
        (dict.fromkeys("1234", 0.0), {}),
        (dict.fromkeys("1234", 1.0), {}),
        (SCORES, dict.fromkeys(SCORES, "no file")),
    ],
    ids=["all 0", "all 1", "teams that fail alike"],
)
def test_what_is_equal_and_no_copy(tmp_path, scores, failed):
    for team in "ab":
        write_team(tmp_path / team, scores, failed=failed)
    write_team(tmp_path / "c", dict.fromkeys(scores, 0.5))

    assert copies(tmp_path) == []


def test_a_copy_in_a_table(tmp_path):
    rows = [
        *((t, c, "dsc", v) for t in "ab" for c, v in SCORES.items()),
        *(("c", c, "dsc", v) for c, v in zip(SCORES, (0.91, 0.82, 0.7), strict=True)),
    ]

    assert copies(write_table(tmp_path / "x.csv", rows)) == [(("a", "b"), VALUES)]


def test_what_the_evaluation_has_warned_of_is_a_flag_in_its_words(results, tmp_path):
    lines = [
        "30 of 30 cases score 0: no case has the name of a file",
        "labels 1 to 5 are no organs and count as background, in 12 of 12 files",
        "c1.nii.gz: RAS origin (0, 0, 0), expected (1, 0, 0)",
    ]
    file = results / "b" / "metrics.json"
    content = json.loads(file.read_text())
    reasons = [{"reason": line, "cases": ["c1"]} for line in lines[:2]]
    file.write_text(json.dumps(content | {"warnings": lines, "low_scores": reasons}))

    text, found, _ = rank(results, tmp_path)

    assert f"  b: {lines[0]}\n  b: {lines[1]}\n" in text
    assert "RAS origin" not in text
    assert f"b: {lines[1]}" in found["flags"]


# --- Values and tables ------------------------------------------------------------


def test_values_can_be_ranked_again(results, tmp_path):
    """They are tidy, and have organs; what failed is empty."""
    file = results / "b" / "metrics.json"
    content = json.loads(file.read_text())
    content["case"]["dsc_liver"] = {"0": 0.5, "1": 0.25, "2": 0.125}
    content["failed"] = {"c3": "no file"}
    file.write_text(json.dumps(content))
    text, _, _ = rank(results, tmp_path)
    values = tmp_path / "out" / "values.csv"

    assert values.read_text().splitlines()[:6] == [
        "team,case,metric,value",
        "a,c1,dsc,0.91",
        "a,c1,dsc_liver,",
        "a,c1,max_gpu_memory_mb,9.0",
        "a,c1,nsd,0.91",
        "a,c1,runtime_s,5.0",
    ]
    assert "b,c2,dsc_liver,0.25\n" in values.read_text()
    assert "b,c3,dsc,\nb,c3,dsc_liver,\n" in values.read_text()
    again = rank(values, tmp_path)[0]
    assert again.splitlines()[:3] == text.splitlines()[:3]


# --- How results were made --------------------------------------------------------

WORST = {"on_bad_case": "worst", "grid": "size", "unknown_labels": "ignore"}


def with_tolerance(tolerance_mm):
    first, *others = FLARE21.organs
    liver = replace(first, tolerance_mm=tolerance_mm)
    return replace(FLARE21, organs=(liver, *others), checksum="c" * 64)


def of(given, **more):
    return {
        "challenge": "flare21",
        "challenge_sha256": given.checksum,
        "rules": scoring_rules(given),
        **more,
    }


def refusal_text(tmp_path, challenge):
    # Long names of files are shortened, but not in commands.
    return (
        str(refusal(tmp_path, challenge))
        .replace(safe(tmp_path / "a" / "metrics.json"), "RESULTS/a/metrics.json")
        .replace(str(tmp_path), "RESULTS")
        .replace(safe(tmp_path), "RESULTS")
    )


def test_scores_by_other_rules_than_those_given(tmp_path):
    for team in "ab":
        write_team(tmp_path / team, {"c1": 0.9}, **of(FLARE21))

    assert refusal_text(tmp_path, with_tolerance(2.5)) == (
        "RESULTS: all teams: scored with tolerance_mm of liver 1 instead of 2.5."
        " Score the kept predictions anew: flare rescore RESULTS --ground-truth LABELS"
        " --challenge flare21; teams without any, or with other options: flare score"
        " TEAMS --ground-truth LABELS --challenge flare21 --output RESULTS. [G06]"
    )


def test_a_comment_or_a_weight_changes_nothing(tmp_path):
    """Two files of other bytes, and a third one that is given."""
    write_team(tmp_path / "a", {"c1": 0.9}, **of(FLARE21))
    write_team(tmp_path / "b", {"c1": 0.9}, **of(replace(FLARE21, checksum="1" * 64)))
    given = replace(FLARE21, checksum="2" * 64, ranking=())

    table = read_results(tmp_path, ranked("dsc"), challenge=given)

    assert table.teams == ("a", "b")
    assert table.notes == ()


@pytest.mark.parametrize(
    ("others", "odd", "problem"),
    [
        (
            {"options": WORST},
            {"options": {}},
            "odd: scored with --grid nothing instead of size, --on-bad-case nothing"
            " instead of worst, --unknown-labels nothing instead of ignore. Score the"
            " kept predictions anew: flare rescore RESULTS --ground-truth LABELS"
            " --challenge flare21; teams without any, or with other options: flare"
            " score TEAMS --ground-truth LABELS --challenge flare21 --on-bad-case worst"
            " --grid size --unknown-labels ignore --output RESULTS. [G06]",
        ),
        (
            {},
            {"rules": scoring_rules(with_tolerance(2.5))},
            "odd: scored with tolerance_mm of liver 2.5 instead of 1. Score the",
        ),
        ({}, {"version": "0.1"}, "odd: scored with version 0.1 instead of 1. Score"),
        (
            {},
            {"references_sha256": "1" * 64},
            "odd: scored with references_sha256 111111111111 instead of b. Score the",
        ),
        (
            {},
            {"challenge": "mine", "rules": {}},
            "odd: scored by mine, not by flare21, with absent_organs.in_both nothing"
            " instead of 1, ",
        ),
        (
            {},
            {"rules": None},
            "odd: metrics.json of an earlier version, without the rules of scoring.",
        ),
    ],
    ids=["options", "rules", "version", "references", "challenge", "no rules"],
)
def test_the_odd_one_out_is_named_with_all_that_differs(tmp_path, others, odd, problem):
    for team in ("a", "z"):
        write_team(tmp_path / team, {"c1": 0.9}, **of(FLARE21, **others))
    write_team(tmp_path / "odd", {"c1": 0.9}, **of(FLARE21, **odd))

    text = refusal_text(tmp_path, FLARE21)

    assert text.startswith(f"RESULTS: {problem}")
    other = "If that challenge counts, give --challenge mine.toml. Else: Score the"
    assert (other in text) == ("challenge" in odd)


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ({"version": "0.1"}, "a and b: not scored alike, b with version 0.1 instead"),
        (
            {"options": WORST},
            "a and b: not scored alike, b with --grid size instead of nothing,"
            " --on-bad-case worst instead of nothing, --unknown-labels ignore instead"
            " of nothing. Score the kept predictions anew: flare rescore RESULTS"
            " --ground-truth LABELS --challenge flare21; teams without any, or with"
            " other options: flare score TEAMS --ground-truth LABELS --challenge"
            " flare21 --on-bad-case worst --grid size --unknown-labels ignore --output",
        ),
        # Which of them is odd is said by the challenge that is given.
        ({"rules": scoring_rules(with_tolerance(2.5))}, "b: scored with tolerance_mm"),
    ],
)
def test_of_two_unlike_teams_both_are_named(tmp_path, odd, problem):
    """Nobody knows which one is odd, unless the rules are those of none but one."""
    write_team(tmp_path / "a", {"c1": 0.9}, **of(FLARE21))
    write_team(tmp_path / "b", {"c1": 0.9}, **of(FLARE21, **odd))

    assert refusal_text(tmp_path, FLARE21).startswith(f"RESULTS: {problem}")


class CountedText(str):
    """A version that counts how often any is compared with another object."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedText.comparisons += 1
        return str.__eq__(self, other)


def test_each_team_is_compared_once_however_many_there_are(tmp_path, monkeypatch):
    """Not with each other: for 4,000 teams, that took 20 seconds."""
    monkeypatch.setattr(CountedText, "comparisons", 0)
    write_team(tmp_path / "a", SCORES, RUNS)
    usual = read_evaluation(tmp_path / "a" / "metrics.json").evaluation
    made = {f"team {n}": replace(usual, version=CountedText("1.0")) for n in range(50)}

    check_origins(made, FLARE21, tmp_path)

    assert CountedText.comparisons <= 50


# --- Evaluations that are compared ------------------------------------------------


def checked(folder, *evaluations):
    """Compare evaluations whose provenance has these entries besides the usual ones."""
    sources = []
    for name, evaluation in zip(("old", "new", "next"), evaluations, strict=False):
        content = metrics_content({"liver": [0.9, 0.8]})
        content["evaluation"] |= evaluation
        sources.append(write_json(folder / name / "metrics.json", content))
    return check_comparable(sources, [read_evaluation(source) for source in sources])


RULES = {"rules": {"decimals": 4}}


@pytest.mark.parametrize(
    ("evaluations", "problem"),
    [
        (
            [RULES, RULES | {"challenge": "flare22"}],
            "scored with challenge flare22 instead of ",
        ),
        (
            [RULES, RULES, {"rules": {"decimals": 2}}],
            "scored with decimals 2 instead of 4, as ",
        ),
        ([RULES, {"rules": None}], "metrics.json of an earlier version, without"),
    ],
    ids=["challenge", "rules", "an earlier version"],
)
def test_what_cannot_be_compared_is_named(tmp_path, evaluations, problem):
    """The last one, whose scores may be made anew."""
    error = error_of(MetricsFileError, checked, tmp_path, *evaluations)

    last = ("old", "new", "next")[len(evaluations) - 1]
    assert error.file == str(tmp_path / last / "metrics.json")
    assert error.problem.startswith(problem)
    assert "flare evaluate" in error.remedy


def test_evaluations_without_a_common_case_are_refused(tmp_path):
    contents = [metrics_content({"liver": [0.9]}) for _ in range(3)]
    for content in contents:
        content["evaluation"] |= RULES
    contents[1]["case"]["gt_fname"] = {"0": "other.nii.gz"}
    names = ("a.json", "b.json", "c.json")
    sources = [
        write_json(tmp_path / n, c) for n, c in zip(names, contents, strict=True)
    ]
    found = [read_evaluation(source) for source in sources]

    error = error_of(MetricsFileError, check_comparable, sources, found)
    assert error.file == str(sources[1])
    assert error.problem == "it has no case of those before it"


@pytest.mark.parametrize(
    ("evaluation", "unlike"),
    [
        ({"references_sha256": "other"}, "other reference labels"),
        ({"version": "0.1.0"}, "another version of the program"),
        ({"options": {"on_bad_case": "worst"}}, "other options"),
    ],
)
def test_what_else_is_not_alike_is_told(tmp_path, evaluation, unlike):
    assert checked(tmp_path, RULES, RULES | evaluation) == (unlike,)
