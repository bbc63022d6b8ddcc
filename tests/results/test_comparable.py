"""Which evaluations can be compared case by case, and why others cannot."""

import pytest

from flare.ranking.provenance import Unlike, check_comparable
from flare.results.errors import MetricsFileError
from flare.results.metrics_reading import read_evaluation
from tests.builders.pages import metrics_content, write_json

ALIKE = (
    "Compare evaluations by the same rules: score the predictions anew with flare"
    " evaluate. [G05]"
)


def checked(folder, *evaluations):
    """Compare evaluations whose provenance has these entries besides the usual ones."""
    sources = []
    for name, evaluation in zip(("old", "new", "next"), evaluations, strict=False):
        content = metrics_content({"liver": [0.9, 0.8]})
        content["evaluation"] |= evaluation
        sources.append(write_json(folder / name / "metrics.json", content))
    return check_comparable(sources, [read_evaluation(source) for source in sources])


def refusal(folder, *evaluations):
    """The message of the refusal."""
    with pytest.raises(MetricsFileError) as caught:
        checked(folder, *evaluations)
    return str(caught.value)


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A folder whose path is not shortened in a message."""
    monkeypatch.chdir(tmp_path)
    return tmp_path.relative_to(tmp_path)


def test_evaluations_by_equal_rules_can_be_compared(tmp_path):
    rules = {"rules": {"decimals": 4}, "references_sha256": "b"}

    assert checked(tmp_path, rules, rules, rules) == ()


def test_another_challenge_is_refused(short):
    text = refusal(short, {}, {"challenge": "flare22"})

    assert text == (
        "new/metrics.json: its challenge is flare22, that of old/metrics.json flare21."
        f" {ALIKE}"
    )


def test_rules_that_only_one_tells_are_refused(short):
    text = refusal(
        short,
        {"rules": {"decimals": 4}, "challenge_sha256": "aa"},
        {"challenge_sha256": "bb"},
    )

    assert text == (
        "new/metrics.json: this file: an earlier version has scored this, and"
        " does not tell by which rules; its challenge_sha256 is bb, that of others is"
        f" not. {ALIKE}"
    )


def test_other_rules_are_refused_by_key_and_value(short):
    text = refusal(
        short,
        {"rules": {"decimals": 4}},
        {"rules": {"decimals": 4}},
        {"rules": {"decimals": 2}},
    )

    assert text == (
        "next/metrics.json: this file was scored by other rules: decimals: 2,"
        f" now 4. {ALIKE}"
    )


def test_of_earlier_versions_the_file_of_the_challenge_decides(short):
    text = refusal(short, {"challenge_sha256": "aa"}, {"challenge_sha256": "bb"})

    assert text == (
        "new/metrics.json: its challenge_sha256 is bb, that of others aa. " + ALIKE
    )


def test_evaluations_without_a_common_case_are_refused(short):
    contents = [metrics_content({"liver": [0.9]}) for _ in range(3)]
    contents[1]["case"]["gt_fname"] = {"0": "other.nii.gz"}
    names = ("a.json", "b.json", "c.json")
    sources = [write_json(short / n, c) for n, c in zip(names, contents, strict=True)]
    found = [read_evaluation(source) for source in sources]

    for number, others in ((2, "the other has"), (3, "the files before it have")):
        with pytest.raises(MetricsFileError) as caught:
            check_comparable(sources[:number], found[:number])
        assert str(caught.value) == (
            f"b.json: it has no case that {others}. Compare evaluations of the same"
            " cases. [G05]"
        )


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
