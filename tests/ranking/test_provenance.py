"""Results that were not made alike are refused, and the odd one out is named."""

from dataclasses import replace

import pytest

import flare
from flare.challenge.digest import scoring_rules
from flare.challenge.rules import Organ
from flare.common.text import safe
from flare.ranking.provenance import Unlike, check_comparable
from flare.ranking.table import read_results
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_reading import read_evaluation
from tests.builders.pages import metrics_content, write_json
from tests.builders.results import ranked, write_team

FLARE21 = flare.read_challenge("flare21")
WORST = {"on_bad_case": "worst", "grid": "size", "unknown_labels": "ignore"}
RUN = [("c1", "ok", 5, 9)]


def with_tolerance(tolerance_mm):
    first, *others = FLARE21.organs
    liver = replace(first, tolerance_mm=tolerance_mm)
    assert isinstance(liver, Organ)
    return replace(FLARE21, organs=(liver, *others), checksum="c" * 64)


def of(challenge, **more):
    return {
        "challenge": "flare21",
        "challenge_sha256": challenge.checksum,
        "rules": scoring_rules(challenge),
        **more,
    }


def refusal(tmp_path, challenge="", metrics=("dsc",)):
    with pytest.raises(RankingError) as caught:
        read_results(tmp_path, ranked(*metrics), challenge)
    # Long names of files are shortened, but not in commands.
    return (
        str(caught.value)
        .replace(safe(tmp_path / "a" / "metrics.json"), "RESULTS/a/metrics.json")
        .replace(str(tmp_path), "RESULTS")
        .replace(safe(tmp_path), "RESULTS")
    )


def test_scores_by_other_rules_than_those_given(tmp_path):
    for team in "ab":
        write_team(tmp_path / team, {"c1": 0.9}, **of(FLARE21))

    assert refusal(tmp_path, with_tolerance(2.5)) == (
        "RESULTS: all teams were scored by other rules: tolerance_mm of liver: 1, now"
        " 2.5. Score what the teams have submitted anew: flare score TEAMS"
        " --ground-truth LABELS --challenge flare21 --output RESULTS. [G06]"
    )


@pytest.mark.parametrize("has_kept", [["a"], ["a", "b"]])
def test_each_team_is_scored_anew_by_the_command_that_can(tmp_path, has_kept):
    for team in "ab":
        write_team(tmp_path / team, {"c1": 0.9}, **of(FLARE21))
    for team in has_kept:
        (tmp_path / team / "predictions").mkdir()

    text = refusal(tmp_path, with_tolerance(2.5))

    assert "flare rescore RESULTS --ground-truth" in text
    assert ("flare score TEAMS" in text) == (has_kept == ["a"])


def test_one_team_that_was_scored_by_other_rules(tmp_path):
    """Whether the challenge is given or not, and wherever it stands in the alphabet."""
    for team, rules in (("a", with_tolerance(2.5)), ("b", FLARE21), ("c", FLARE21)):
        write_team(tmp_path / team, {"c1": 0.9}, **of(rules))

    for given in (FLARE21, "flare21"):
        assert refusal(tmp_path, given).startswith(
            "RESULTS: a was scored by other rules: tolerance_mm of liver: 2.5, now 1."
        )


def test_a_comment_or_a_weight_changes_nothing(tmp_path):
    """Two files of other bytes, and a third one that is given."""
    write_team(tmp_path / "a", {"c1": 0.9}, **of(FLARE21))
    write_team(tmp_path / "b", {"c1": 0.9}, **of(replace(FLARE21, checksum="1" * 64)))
    given = replace(FLARE21, checksum="2" * 64, ranking=())

    table = read_results(tmp_path, ranked("dsc"), challenge=given)

    assert table.teams == ("a", "b")
    assert table.notes == ()


def test_the_only_one_with_other_options_is_named_with_the_command(tmp_path):
    for team in ("aa", "crasher", "good"):
        write_team(tmp_path / team, {"c1": 0.9}, RUN, **of(FLARE21, options=WORST))
    write_team(tmp_path / "baseline", {"c1": 0.9}, **of(FLARE21, options={}))

    assert refusal(tmp_path, FLARE21) == (
        "RESULTS: baseline was evaluated without --on-bad-case worst --grid size"
        " --unknown-labels ignore. Evaluate it again with them: flare evaluate --input"
        " PREDICTIONS --ground-truth LABELS --challenge flare21 --on-bad-case worst"
        " --grid size --unknown-labels ignore --output RESULTS/baseline. [G06]"
    )


def test_of_two_teams_the_measured_one_is_right(tmp_path):
    write_team(tmp_path / "zz", {"c1": 0.9}, RUN, **of(FLARE21, options=WORST))
    write_team(tmp_path / "late", {"c1": 0.9}, **of(FLARE21, options={"decimals": "4"}))

    assert (
        "late was evaluated without --on-bad-case worst --grid size --unknown-labels"
        " ignore and with --decimals 4. Evaluate"
    ) in refusal(tmp_path, FLARE21)


@pytest.mark.parametrize("key", ["references_sha256", "version"])
def test_the_odd_one_out_is_named_not_the_second(tmp_path, key):
    write_team(tmp_path / "a", {"c1": 0.9}, **of(FLARE21, **{key: "other"}))
    for team in "bc":
        write_team(tmp_path / team, {"c1": 0.9}, **of(FLARE21))

    assert refusal(tmp_path).startswith(
        f"RESULTS/a/metrics.json: its {key} is other, that of others "
    )


def test_an_earlier_version_is_told_by_the_digest_of_its_file(tmp_path):
    """It is taken if that is the file which is given, and doubted if not."""
    write_team(tmp_path / "a", {"c1": 0.9}, challenge_sha256=FLARE21.checksum)
    write_team(tmp_path / "b", {"c1": 0.8}, **of(FLARE21))
    assert read_results(tmp_path, ranked("dsc"), challenge=FLARE21).notes == ()

    other = {"challenge_sha256": "1" * 64}
    (tmp_path / "a" / "metrics.json").unlink()
    (tmp_path / "a").rmdir()
    write_team(tmp_path / "a", {"c1": 0.9}, **other)
    assert "a: an earlier version has scored this" in refusal(tmp_path, FLARE21)

    (tmp_path / "b" / "metrics.json").unlink()
    assert read_results(tmp_path, ranked("dsc"), challenge=FLARE21).notes[1:] == (
        "By which rules a were scored, an earlier version does not tell, and the"
        " challenge file was another one (111111111111): score them anew before you"
        " publish",
    )


# --- Evaluations that are compared ------------------------------------------------


def checked(folder, *evaluations):
    """Compare evaluations whose provenance has these entries besides the usual ones."""
    sources = []
    for name, evaluation in zip(("old", "new", "next"), evaluations, strict=False):
        content = metrics_content({"liver": [0.9, 0.8]})
        content["evaluation"] |= evaluation
        sources.append(write_json(folder / name / "metrics.json", content))
    return check_comparable(sources, [read_evaluation(source) for source in sources])


def test_evaluations_by_equal_rules_can_be_compared(tmp_path):
    rules = {"rules": {"decimals": 4}, "references_sha256": "b"}

    assert checked(tmp_path, rules, rules, rules) == ()


RULES = {"rules": {"decimals": 4}}


@pytest.mark.parametrize(
    ("evaluations", "problem"),
    [
        ([{}, {"challenge": "flare22"}], "its challenge is flare22, that of "),
        (
            [RULES, RULES, {"rules": {"decimals": 2}}],
            "this file was scored by other rules: decimals: 2, now 4",
        ),
        (
            [RULES | {"challenge_sha256": "aa"}, {"challenge_sha256": "bb"}],
            "this file: an earlier version has scored this, and does not tell by which"
            " rules; its challenge_sha256 is bb, that of others is not",
        ),
        (
            [{"challenge_sha256": "aa"}, {"challenge_sha256": "bb"}],
            "its challenge_sha256 is bb, that of others aa",
        ),
    ],
    ids=["challenge", "rules", "only one tells", "earlier versions"],
)
def test_what_cannot_be_compared_is_named(tmp_path, evaluations, problem):
    """The last one, whose scores may be made anew."""
    with pytest.raises(MetricsFileError) as caught:
        checked(tmp_path, *evaluations)

    last = ("old", "new", "next")[len(evaluations) - 1]
    assert caught.value.file == str(tmp_path / last / "metrics.json")
    assert caught.value.problem.startswith(problem)
    assert "flare evaluate" in caught.value.remedy


def test_evaluations_without_a_common_case_are_refused(tmp_path):
    contents = [metrics_content({"liver": [0.9]}) for _ in range(3)]
    contents[1]["case"]["gt_fname"] = {"0": "other.nii.gz"}
    names = ("a.json", "b.json", "c.json")
    sources = [
        write_json(tmp_path / n, c) for n, c in zip(names, contents, strict=True)
    ]
    found = [read_evaluation(source) for source in sources]

    for number, others in ((2, "the other has"), (3, "the files before it have")):
        with pytest.raises(MetricsFileError) as caught:
            check_comparable(sources[:number], found[:number])
        assert caught.value.file == str(sources[1])
        assert caught.value.problem == f"it has no case that {others}"


@pytest.mark.parametrize(
    ("evaluation", "unlike"),
    [
        ({"references_sha256": "other"}, Unlike.REFERENCES),
        ({"version": "0.1.0"}, Unlike.VERSION),
        ({"options": {"on_bad_case": "worst"}}, Unlike.OPTIONS),
    ],
)
def test_what_else_is_not_alike_is_told(tmp_path, evaluation, unlike):
    assert checked(tmp_path, {}, evaluation) == (unlike,)
    assert checked(tmp_path, evaluation, evaluation) == ()
