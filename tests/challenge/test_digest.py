"""What scoring reads of a challenge, what it does not, and what results remember."""

import dataclasses

import pytest

import flare
from flare.challenge.reading import (
    challenge_names,
    challenge_summary,
    measuring_rules,
    recorded_challenge,
    rule_differences,
    rules_digest,
    scoring_rules,
)
from flare.challenge.rules import Challenge
from tests.builders import ROOT

TEXT = """
name = "Thorax"

[[organs]]
label = 1
name = "trachea"
tolerance_mm = 1.5

[[organs]]
label = 7
name = "lung"
tolerance_mm = 3

[[ranking]]
metric = "dsc"
better = "higher"
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Further(Challenge):
    """With a rule that a later version may have."""

    least_voxels: float = 0.0


def test_a_further_rule_is_one_of_scoring_wherever_it_is_not_the_default():
    """It stands in the digest, in what validate prints, and in the Methods."""
    rules = flare.read_challenge("flare21")
    values = {row.name: getattr(rules, row.name) for row in dataclasses.fields(rules)}
    further = _Further(**values, least_voxels=1.5)

    assert scoring_rules(_Further(**values)) == scoring_rules(rules)
    assert scoring_rules(further) == {**scoring_rules(rules), "least_voxels": 1.5}
    assert "  least_voxels: 1.5" in challenge_summary(further).splitlines()
    assert "least_voxels" not in challenge_summary(rules)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"Thorax"', '"The thorax"  # a comment'),
        ('"higher"', '"higher"\nweight = 2'),
        ('metric = "dsc"', 'metric = "nsd"'),
        ('name = "Thorax"', 'name = "Thorax"\nefficiency_gate_dsc = 0.5'),
        ('name = "Thorax"', 'name = "Thorax"\nmax_gpu_memory = "plain"'),
        ('name = "Thorax"', 'name = "Thorax"\n[z_range]\ntop_slice = "dropped"'),
        ("[[ranking]]", "[algorithm]\nhide_cases = false\n[[ranking]]"),
    ],
    ids=["comment", "weight", "metric", "gate", "memory", "no z-range", "algorithm"],
)
def test_what_changes_no_score_changes_no_rule(read, old, new):
    before = read(TEXT)
    after = read(TEXT.replace(old, new, 1))

    assert before.checksum != after.checksum
    assert scoring_rules(before) == scoring_rules(after)


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("1.5", "2.5", "tolerance_mm of trachea 2.5 instead of 1.5"),
        ("label = 7", "label = 8", "label of lung 8 instead of 7"),
        ("label = 7", "label = [7, 8]", "label of lung 7, 8 instead of 7"),
        ("= 3", "= 3\nin_mean = false", "in_mean of lung false instead of true"),
        ("[[ranking]]", "[absent_organs]\nin_both = 0\n[[ranking]]",
         "absent_organs.in_both 0 instead of 1"),
        ("[[ranking]]", '[grid]\ncompare = "size"\n[[ranking]]',
         "grid.compare size instead of strict"),
        ("[[ranking]]", '[unknown_labels]\nreference = "zero"\n[[ranking]]',
         "unknown_labels.reference zero instead of refuse"),
        ('name = "Thorax"', 'name = "Thorax"\ndecimals = 4',
         "decimals 4 instead of none"),
    ],
)  # fmt: skip
def test_what_changes_scores_is_named_by_key_and_values(read, old, new, difference):
    before = scoring_rules(read(TEXT))
    after = scoring_rules(read(TEXT.replace(old, new, 1)))

    assert rule_differences(after, before) == (difference,)
    assert rules_digest(before) != rules_digest(after)


def test_a_z_range_and_an_organ_that_is_new(read):
    before = scoring_rules(read(TEXT))
    ranged = scoring_rules(read(f'{TEXT}\n[z_range]\norgans = ["trachea"]\n'))
    organ = '[[organs]]\nlabel = 9\nname = "heart"\ntolerance_mm = 2\n[[ranking]]'
    more = scoring_rules(read(TEXT.replace("[[ranking]]", organ)))

    assert rule_differences(ranged, before) == (
        "z_range.organs trachea instead of none",
        "z_range.top_slice kept instead of none",
    )
    assert rule_differences(more, before) == (
        "in_mean of heart true instead of nothing",
        "label of heart 9 instead of nothing",
        "tolerance_mm of heart 2 instead of nothing",
    )


def test_the_order_of_organs_is_no_rule():
    organs = flare.read_challenge("flare21").organs
    turned = dataclasses.replace(flare.read_challenge("flare21"), organs=organs[::-1])

    assert scoring_rules(turned) == scoring_rules(flare.read_challenge("flare21"))
    assert rules_digest(scoring_rules(turned)) == rules_digest(
        dict(reversed(scoring_rules(turned).items()))
    )


def test_measuring_reads_the_memory_rule_labels_and_answers(read):
    rules = {"max_gpu_memory": "stable", "labels": "1, 7", "answers": ""}
    assert measuring_rules(read(TEXT)) == rules
    changed = TEXT.replace("1.5", "2.5").replace('"higher"', '"higher"\nweight = 2')
    assert measuring_rules(read(changed)) == rules
    automsc = measuring_rules(flare.read_challenge("flare26-automsc"))
    assert automsc["answers"] == "results.csv: identifier, probs"


# --- Made again of what results remember ------------------------------------------

FLARE21 = flare.read_challenge("flare21")
RECIST = ROOT / "examples" / "challenges" / "recist.toml"


@pytest.mark.parametrize("name", [*challenge_names(), str(RECIST)])
def test_all_that_scoring_reads_comes_back(name):
    challenge = flare.read_challenge(name)
    organs = [organ.name for organ in challenge.organs]

    again = recorded_challenge(name, scoring_rules(challenge), organs)

    assert scoring_rules(again) == scoring_rules(challenge)
    assert again.metrics == challenge.metrics
    # What is counted besides the scores is no rule of them.
    plain = [dataclasses.replace(o, free_cases=False) for o in challenge.organs]
    assert list(again.organs) == plain


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"label of liver": "one"}, r"\S", id="a word for a label"),
        pytest.param({"label of liver": 300}, r"\S", id="a label beyond a byte"),
        pytest.param({"label of liver": "1, x"}, r"label\[2\]", id="in a region"),
        pytest.param({"unknown_labels.prediction": "keep"}, r"\S", id="unknown"),
        pytest.param({"grid.compare": None}, r"\S", id="none"),
        pytest.param({"z_range.organs": "heart"}, r"\S", id="no such organ"),
        pytest.param("decimals", "decimals", id="a rule that is missing"),
    ],
)
def test_rules_that_no_challenge_can_have_are_refused(change, words):
    rules = scoring_rules(FLARE21)
    if isinstance(change, str):
        del rules[change]
    else:
        rules |= change

    with pytest.raises(ValueError, match=words):
        recorded_challenge("flare21", rules, ["liver", "kidney", "spleen", "pancreas"])
