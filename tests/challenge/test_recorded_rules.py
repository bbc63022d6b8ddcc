"""A challenge that is made again of the rules that results remember."""

from dataclasses import replace

import pytest

from flare.challenge.digest import READ, recorded_challenge, scoring_rules
from flare.challenge.reading import challenge_names, read_challenge


@pytest.mark.parametrize("name", challenge_names())
def test_all_that_scoring_reads_comes_back(name):
    challenge = read_challenge(name)
    organs = [organ.name for organ in challenge.organs]

    again = recorded_challenge(name, scoring_rules(challenge), organs)

    for field in set(READ) - {"z_range", "organs"}:
        assert getattr(again, field) == getattr(challenge, field)
    # What is counted besides the scores is no rule of them.
    plain = tuple(replace(organ, free_cases=False) for organ in challenge.organs)
    assert again.organs == plain
    assert set(again.z_range.organs) == set(challenge.z_range.organs)
    if again.z_range.organs:
        assert again.z_range.top_slice == challenge.z_range.top_slice


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"label of liver": "one"}, id="a word for a label"),
        pytest.param({"label of liver": 300}, id="a label beyond a byte"),
        pytest.param({"unknown_labels.prediction": "keep"}, id="an unknown word"),
        pytest.param({"grid.compare": None}, id="none"),
        pytest.param({"z_range.organs": "heart"}, id="an organ that is not there"),
    ],
)
def test_rules_that_no_challenge_can_have_are_refused(change):
    rules = scoring_rules(read_challenge("flare21")) | change

    with pytest.raises(ValueError, match=r"\S"):
        recorded_challenge("flare21", rules, ["liver", "kidney", "spleen", "pancreas"])


def test_a_rule_that_is_missing_is_named():
    rules = scoring_rules(read_challenge("flare21"))
    del rules["decimals"]

    with pytest.raises(ValueError, match="decimals"):
        recorded_challenge("flare21", rules, ["liver", "kidney", "spleen", "pancreas"])
