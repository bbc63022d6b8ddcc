"""Results that were not made alike are refused, and the odd one out is named."""

from dataclasses import replace

import pytest

import flare
from flare.challenge.reading import scoring_rules
from flare.challenge.rules import Organ
from flare.common.text import safe
from flare.ranking.inspection import check_comparable
from flare.ranking.table import read_results
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_reading import read_evaluation
from tests.builders.pages import metrics_content, write_json
from tests.builders.results import ranked, write_team

FLARE21 = flare.read_challenge("flare21")
WORST = {"on_bad_case": "worst", "grid": "size", "unknown_labels": "ignore"}


def with_tolerance(tolerance_mm):
    first, *others = FLARE21.organs
    liver = replace(first, tolerance_mm=tolerance_mm)
    assert isinstance(liver, Organ)
    return replace(FLARE21, organs=(liver, *others), checksum="c" * 64)


def of(given, **more):
    return {
        "challenge": "flare21",
        "challenge_sha256": given.checksum,
        "rules": scoring_rules(given),
        **more,
    }


def refusal(tmp_path, challenge):
    with pytest.raises(RankingError) as caught:
        read_results(tmp_path, ranked("dsc"), challenge)
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

    text = refusal(tmp_path, FLARE21)

    assert text.startswith(f"RESULTS: {problem}")
    other = "If that challenge counts, give --challenge mine.toml. Else: Score the"
    assert (other in text) == ("challenge" in odd)


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
    with pytest.raises(MetricsFileError) as caught:
        checked(tmp_path, *evaluations)

    last = ("old", "new", "next")[len(evaluations) - 1]
    assert caught.value.file == str(tmp_path / last / "metrics.json")
    assert caught.value.problem.startswith(problem)
    assert "flare evaluate" in caught.value.remedy


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

    with pytest.raises(MetricsFileError) as caught:
        check_comparable(sources, found)
    assert caught.value.file == str(sources[1])
    assert caught.value.problem == "it has no case of those before it"


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
