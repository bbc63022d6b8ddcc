"""Challenge files: what they hold, and how their mistakes are told."""

import hashlib
from dataclasses import is_dataclass, replace
from importlib import import_module
from typing import get_args, get_type_hints

import numpy as np
import pytest

import flare
from flare.challenge.lesion_metrics import LESION_METRICS
from flare.challenge.metrics import METRICS, Better, metric_named
from flare.challenge.organs import AbsentOrgans, Organ
from flare.challenge.reading import (
    ChallengeError,
    challenge_names,
    challenge_summary,
    challenge_text,
    read_challenge,
)
from flare.challenge.rules import RankedMetric
from flare.cli.main import main
from flare.evaluation.metrics.comparison import compare_organ
from flare.results.efficiency_csv import ranked_by_others
from tests.builders import ORGANS, ROOT, error_of, write_file
from tests.builders.maps import map_pair

SMALL = """
name = "Two organs"

[[organs]]
label = 7
name = "lung"
tolerance_mm = 2

[[organs]]
label = 200
name = "heart"
tolerance_mm = 1.5
in_mean = false
"""

FULL = (
    SMALL.replace(
        'name = "Two organs"',
        'name = "Two organs"\nsmallest_dsc_for_nsd = 0.2\ndecimals = 4',
    )
    + """
[absent_organs]
in_both = 0.5
in_reference = 0.25
in_prediction = 0.125

[z_range]
organs = ["heart"]
top_slice = "dropped"

[unknown_labels]
reference = "ignore"
prediction = "zero"

[grid]
compare = "size"
tolerance_mm = 0.5

[[ranking]]
metric = "dsc"
better = "higher"

[[ranking]]
metric = "gpu_area"
better = "lower"
weight = 0.5
tolerance = 2048
"""
)


def reported(*, rule="x", link="https://a.b", teams=1, keys="grid"):
    """A table of a rule that participants report."""
    return (
        f'[[reported]]\nrule = "{rule}"\nsource = ["{link}"]\nteams = {teams}\n'
        f'keys = ["{keys}"]\n'
    )


def test_flare21_has_the_published_rules():
    """Labels and tolerance of the official script; the four metrics of the ranking."""
    challenge = read_challenge("flare21")

    assert {organ.label: organ.name for organ in challenge.organs} == ORGANS
    assert {(organ.tolerance_mm, organ.in_mean) for organ in challenge.organs} == {
        (1.0, True)
    }
    assert challenge.absent_organs == AbsentOrgans(
        in_both=1.0, in_reference=0.0, in_prediction=0.0
    )
    assert (challenge.smallest_dsc_for_nsd, challenge.decimals) == (0.0, None)
    assert (challenge.metrics, challenge.z_range.organs) == (("dsc", "nsd"), ())
    assert [(rule.metric, rule.better.value) for rule in challenge.ranking] == [
        *(("dsc", "higher"), ("nsd", "higher")),
        *(("runtime_s", "lower"), ("max_gpu_memory_mb", "lower")),
    ]
    assert {rule.weight for rule in challenge.ranking} == {1.0}
    assert challenge.labels_text == (
        "0 background, 1 liver, 2 kidney, 3 spleen, 4 pancreas"
    )


def test_the_smallest_file_gets_the_rules_of_flare21(read):
    challenge, flare21 = read(SMALL), read_challenge("flare21")

    assert challenge.key == "mine"
    assert challenge.name == "Two organs"
    assert challenge.checksum == hashlib.sha256(SMALL.encode()).hexdigest()
    assert challenge.organs == (
        Organ(label=7, name="lung", tolerance_mm=2.0, in_mean=True),
        Organ(label=200, name="heart", tolerance_mm=1.5, in_mean=False),
    )
    for rule in ("absent_organs", "z_range", "unknown_labels", "grid", "decimals"):
        assert getattr(challenge, rule) == getattr(flare21, rule)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "Two organs"', "", "name is missing"),
        ('"Two organs"', '" "', "name is ' ', expected a name for people"),
        ('"Two organs"', "5", "name is 5, expected a text in quotes"),
        ("tolerance_mm = 2\n", "", "organs[1].tolerance_mm is 'missing', expected"),
        ("tolerance_mm = 2\n", "tolerence_mm = 2\n",
         "organs[1].tolerence_mm is an unknown key (did you mean tolerance_mm?)"),
        ("label = 7", 'label = "7"', "organs[1].label is '7', expected a whole number"),
        ("label = 7", "label = 0", "organs[1].label is 0, expected at least 1 and"),
        ("label = 7", "label = 256", "organs[1].label is 256, expected at least 1"),
        ("label = 7", "label = 200", "organs[2].label is 200, expected another value"),
        ("label = 7", "label = [200]", "organs[2].label is 200, expected another"),
        ("label = 7", 'label = [7, 9]\nname = "both"\n[[organs]]\nlabel = [9, 7]',
         "organs[2].label is [7, 9], expected another value than organs[1].label"),
        ("label = 7", "label = [7, 300]", "organs[1].label[2] is 300, expected at"),
        ("label = 7", "label = [7, 7]", "organs[1].label is [7, 7], expected each"),
        ("label = 7", "label = []", "organs[1].label is [], expected each label once"),
        ("label = 7\n", "", "organs[1].label is None, expected a label, a list"),
        ("label = 7", 'label = 7\nlabels = "each"', "organs[1].label is 7, expected a"),
        ("label = 7", 'labels = "one"', "organs[1].labels is 'one', expected each"),
        ("decimals = 4\n\n[[organs]]\n", 'metrics = ["dsc", "lesion_hd95"]\n'
         'worst_distance_mm = 373\n[[organs]]\nlesions = "brats23-met"\n',
         "worst_distance_mm is 373.0, expected 374 or more, as a missed lesion has"),
        ('"lung"', '"heart"', "organs[2].name is 'heart', expected another value than"),
        ('"lung"', '"Left lung"', "organs[1].name is 'Left lung', expected lower-case"),
        ('"lung"', '"mean"', "organs[1].name is 'mean', expected another name than"),
        ("= 1.5", "= 0", "organs[2].tolerance_mm is 0.0, expected above 0"),
        ("= 1.5", "= nan", "organs[2].tolerance_mm is nan, expected a number"),
        ("= 1.5", "= inf", "organs[2].tolerance_mm is inf, expected a number"),
        ("in_mean = false", "in_mean = 0", "organs[2].in_mean is 0, expected true or"),
        ("tolerance_mm = 2\n", "tolerance_mm = 2\nin_mean = false\n",
         "organs is 'without any in_mean', expected at least one organ"),
        ("= 0.2\n", "= 1.2\n", "smallest_dsc_for_nsd is 1.2, expected at least 0 and"),
        ("decimals = 4", "decimals = 16", "decimals is 16, expected at least 0"),
        ("[z_range]", "[board]\ndecimals = 16\n[z_range]", "board.decimals is 16"),
        ("decimals = 4", "decimals = true", "decimals is True, expected a whole"),
        ("in_both = 0.5", "in_both = -1", "absent_organs.in_both is -1.0, expected"),
        ("in_both = 0.5", 'in_both = "none"', "absent_organs.in_both is 'none', exp"),
        ('["heart"]', '["hart"]', "z_range.organs is 'hart', expected names of organs"),
        ('["heart"]', '"heart"', "z_range.organs is 'heart', expected a list"),
        ('"dropped"', '"cut"', "z_range.top_slice is 'cut', expected kept or dropped"),
        ('"zero"', '"warn"', "unknown_labels.prediction is 'warn', expected refuse, "),
        ('"size"', '"none"', "grid.compare is 'none', expected strict or size"),
        ("= 0.5\n\n[[", "= -1\n\n[[", "grid.tolerance_mm is -1.0, expected above 0"),
        ("[grid]", "[[grid]]", "grid is [{'compare': 'size', 'tolerance_mm': 0.5}], "),
        ('"gpu_area"', '"dsc"', "ranking[2].metric is 'dsc', expected another value"),
        ('"gpu_area"', '"nsd"', "ranking[2].better is 'lower', expected higher, the"),
        ('"gpu_area"', '"volume_difference"',
         "ranking[2].metric is 'volume_difference', expected a metric with a good end"),
        ('"lower"', '"less"', "ranking[2].better is 'less', expected higher or lower"),
        ("weight = 0.5", "weight = 0", "ranking[2].weight is 0.0, expected above 0"),
        ("weight = 0.5", "weight = 0.12345", "ranking[2].weight is 0.12345, expected"),
        ("weight = 0.5", "weight = 1001", "ranking[2].weight is 1001.0, expected abov"),
        ("tolerance = 2048", "tolerance = -1", "ranking[2].tolerance is -1.0, "),
        ("tolerance = 2048", "trace_tolerance_mb = -1",
         "ranking[2].trace_tolerance_mb is -1.0, expected at least 0"),
        ("tolerance = 2048", "decimals = 16", "ranking[2].decimals is 16, expected"),
        ("tolerance = 2048", "failed = inf", "ranking[2].failed is inf, expected a"),
        ('"Two organs"', '"x"\nefficiency_gate_dsc = 2', "efficiency_gate_dsc is 2.0"),
        ('"Two organs"', '"x"\nmetrics = []', "metrics is [], expected at least one"),
        ('"Two organs"', '"x"\nmetrics = ["volume_difference"]', "metrics is ['volume"),
        *(('[grid]', f"[scheme]\n{lines}\n[grid]", problem) for lines, problem in (
            ('kind = "nested"', "scheme.kind is 'nested', expected \"cases\" or"),
            ('group = "centre"', "scheme.group is 'centre', expected none"),
            ('ties_by = ["dsc_hart"]', "scheme.ties_by[1] is 'dsc_hart', expected a c"),
            ('ties = "first"', "scheme.ties is 'first', expected min, average or max"),
          )),
        ('[grid]', '[scheme]\nkind = "means"\neach_organ = true\n[[ranking]]\nmetric = '
         '"dsc_lung"\nbetter = "higher"\n[grid]', "ranking is 'dsc_lung', expected "),
        ('"Two organs"', '"x"\nefficiency_gate_dsc = 0.5\nscheme.kind = "means"',
         "efficiency_gate_dsc is 0.5, expected 0"),
        ('"Two organs"', '"x"\nmetrics = ["dsc", "nsd", "hd"]', "metrics[3] is 'hd', "),
        ('"Two organs"', '"x"\nmetrics = ["dsc", "nsd", "nsd"]', "metrics[2] is 'nsd'"),
        ('extends', 'name = "None"\norgans = []', "organs is [], expected at"),
        ('extends', "organs: 4", "is not TOML ("),
        ('extends', 'extends = "flare20"', "extends is 'flare20', expected autopet3"),
        ('extends', "extends = 7", "extends is 7, expected"),
        ('extends', 'extends = "flare24"\ndecimal = 4', "decimal is an unknown key"),
        ("[grid]", f"{reported(rule=' ')}[grid]", "reported[1].rule is ' ', "),
        ("[grid]", f"{reported(link='http://a.b')}[grid]",
         "reported[1].source is 'http://a.b', expected links that begin with https://"),
        ("[grid]", f"{reported(teams=0)}[grid]", "reported[1].teams is 0, "),
        ("[grid]", f"{reported(keys='weather')}[grid]",
         "reported[1].keys is 'weather', expected a key of this file"),
        *(("[grid]", f"{reported(keys=key)}[grid]", f"reported[1].keys is '{key}', ")
          for key in ("organs.bogus", "grid.", "decimals.x", "answers.kinds")),
        ("[grid]", '[npz]\nprediction = "segs"\n[grid]', "npz.reference is '', "),
        ("[grid]", '[npz]\nprediction = "spacing"\nreference = "gts"\n[grid]',
         "npz.prediction is 'spacing', expected another array than spacing"),
        ("[grid]", '[npz]\nprediction = "s"\nreference = "g"\nspacing = "yxz"\n[grid]',
         "npz.spacing is 'yxz', expected xyz or zyx"),
        *(("[grid]", f'[names]\nimage = "{pattern}"\n[grid]', f"names.image {problem}")
          for pattern, problem in (
            ("ct", "is 'ct', expected {case} in it once, such as {case}_gt"),
            ("{case}_{case}", "is '{case}_{case}', expected {case} in it once"),
            ("{case}{0}", "is '{case}{0}', expected {case} in it once"),
            ("cts/{case}", "is 'cts/{case}', expected a name, no folder"),
            ("..\\\\{case}", "is '..\\\\{case}', expected a name, no folder"),
            ("{case}\\u0000", "is '{case}\\x00', expected a name, no folder"),
            (".{case}", "is '.{case}', expected a name of no hidden file"),
            ("{case}_ct.NII.gz", "is '{case}_ct.NII.gz', expected no extension"),
            ("{case}.gz", "is '{case}.gz', expected no extension"),
        )),
        ("[grid]", '[names]\nct = "{case}"\n[grid]', "names.ct is an unknown key, "),
    ],
)  # fmt: skip
def test_a_mistake_names_file_key_value_and_what_is_allowed(read, old, new, problem):
    text = new if old == "extends" else FULL.replace(old, new, 1)
    assert text != FULL

    error = error_of(ChallengeError, read, text)

    assert error.problem.startswith(problem)
    assert error.file.endswith("mine.toml")


def test_all_mistakes_of_a_file_are_told_at_once(read):
    """Those of single keys first; once they are right, those of several keys."""
    text = FULL.replace("label = 200", "label = 300\ncolour = 1")
    text = text.replace("decimals = 4", "decimals = 99").replace('"size"', '"near"')
    text = text.replace("in_both = 0.5", "in_both = 2")
    text = text.replace("decimals", 'metrics = ["dsc", "nsd", "hd", 4]\ndecimals', 1)
    twice = FULL.replace('"heart"\ntol', '"lung"\ntol').replace("= 200", "= 7")
    found = []
    for each in (text, twice):
        error = error_of(ChallengeError, read, each)
        parts = error.problem.split("; ")
        found.append({part.partition(" is ")[0] for part in parts})

    assert found == [
        {
            *("organs[2].colour", "organs[2].label", "decimals"),
            *("absent_organs.in_both", "grid.compare", "metrics[3]", "metrics[4]"),
        },
        {"organs[2].label", "organs[2].name", "z_range.organs"},
    ]


@pytest.mark.parametrize(
    ("surplus", "end"), [(3, "3 more mistakes"), (1, "1 more mistake")]
)
def test_at_most_twenty_mistakes_are_told(read, surplus, end):
    extra = "".join(f"x{n} = 1\n" for n in range(20 + surplus))

    error = error_of(ChallengeError, read, extra + FULL)

    assert error.problem.count(" is an unknown key") == 20
    assert error.problem.endswith(f"; and {end}")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (lambda flare21: flare21, {"decimals": 16}),
        (lambda flare21: flare21.organs[0], {"label": 0}),
        (lambda flare21: flare21.organs[0], {"tolerance_mm": float("nan")}),
        (lambda flare21: flare21.grid, {"tolerance_mm": 0.0}),
        (lambda flare21: flare21.absent_organs, {"in_both": 1.5}),
        (lambda flare21: flare21.ranking[0], {"tolerance": -1.0}),
    ],
)
def test_no_challenge_that_a_program_makes_breaks_a_bound(part, change):
    with pytest.raises(ValueError, match=f"^{next(iter(change))} is .*, expected a"):
        replace(part(flare.read_challenge("flare21")), **change)


def test_values_at_the_bound_are_allowed(read):
    for found in (0, 15):
        text = FULL.replace("decimals = 4", f"decimals = {found}")
        assert read(text).decimals == found
    assert read(FULL.replace("label = 200", "label = 255")).organs[1].label == 255


@pytest.mark.parametrize(
    "text",
    [
        FULL.replace("= 1.5", "= 1" + "0" * 400),
        FULL.replace("= 1.5", "= 1" + "0" * 5000),
        "x = " + "[" * 5000,
        FULL.replace('"lung"', '"' + "x" * 3000 + '"'),
        FULL.replace("decimals", '"\\u001b[31m"'),
    ],
    ids=["400 digits", "5000 digits", "nested", "long", "escape sequence"],
)
def test_hostile_challenge_files_are_one_safe_line(read, text):
    error = error_of(ChallengeError, read, text)

    assert str(error).isprintable()
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/nowhere/mine.toml", "cannot be read (no such file or directory)"),
        ("flare20", "no such challenge; there are autopet3"),
    ],
)
def test_a_challenge_that_is_not_there(name, problem):
    assert error_of(ChallengeError, read_challenge, name).problem.startswith(problem)


def test_every_key_of_the_schema_is_documented():
    """The documentation has a row for each key that a challenge file can hold."""
    text = (ROOT / "docs" / "reference" / "challenge-files.md").read_text(
        encoding="utf-8"
    )
    kinds = {
        f"{key}.": kind
        for key, hint in get_type_hints(flare.Challenge).items()
        for kind in (hint, *get_args(hint))
        if is_dataclass(kind)
    }
    assert {"organs.", "grid.", "ranking.", "names."} <= kinds.keys()
    for table, kind in {"": flare.Challenge, **kinds}.items():
        for key in set(kind.__dataclass_fields__) - {"key", "checksum"}:
            if f"{key}." not in kinds:
                assert f"| `{table}{key}` |" in text


# --- flare challenge --------------------------------------------------------------


@pytest.mark.parametrize("name", challenge_names())
def test_what_show_prints_is_the_challenge(tmp_path, name):
    file, text = tmp_path / f"{name}.toml", challenge_text(name)
    file.write_text(text, encoding="utf-8")

    again, challenge = read_challenge(file), read_challenge(name)
    # Of a file that extends another, that one stands below it, in comments.
    is_whole = "\nextends = " not in text
    checksum = again.checksum if is_whole else challenge.checksum
    assert replace(again, checksum=checksum) == challenge


MEANING = """Two organs (mine)

    7  lung   tolerance 2 mm
  200  heart  tolerance 1.5 mm, not in the means

Rules:
  absent_organs.in_both: 0.5
  absent_organs.in_prediction: 0.125
  absent_organs.in_reference: 0.25
  decimals: 4
  grid.compare: size
  grid.tolerance_mm: 0.5
  smallest_dsc_for_nsd: 0.2
  unknown_labels.prediction: zero
  unknown_labels.reference: ignore
  z_range.organs: heart
  z_range.top_slice: dropped
  board.decimals: 3

Ranked by dsc (higher, weight 1), gpu_area (lower, weight 0.5)."""


def test_the_summary_says_what_a_file_means(read):
    challenge = read(FULL + "[board]\ndecimals = 3\n")

    assert challenge_summary(challenge) == MEANING
    assert challenge.ranking == (
        RankedMetric(metric="dsc", better=Better.HIGHER, weight=1, tolerance=0),
        RankedMetric(
            metric="gpu_area", better=Better.LOWER, weight=0.5, tolerance=2048
        ),
    )
    equal = challenge_summary(read(FULL.replace("weight = 0.5\n", "")))
    assert equal.endswith("\n\nRanked by dsc (higher), gpu_area (lower).")
    assert (challenge.board.decimals, read(SMALL).board.decimals) == (3, None)


def test_a_file_with_a_mistake_is_told_in_one_line(tmp_path, capfd):
    file = write_file(tmp_path / "mine.toml", SMALL.replace("label = 7", "label = 0"))

    status = main(["challenge", "validate", str(file)])

    stdout, stderr = capfd.readouterr()
    assert (status, stdout, stderr.count("\n")) == (1, "", 1)
    assert "mine.toml: organs[1].label is 0" in stderr
    assert stderr.endswith("[G01]\n")


# --- validate ---------------------------------------------------------------------


RANKED = 'extends = "flare21"\nname = "Mine"\n[[ranking]]\nbetter = "lower"\nmetric = "'


@pytest.mark.parametrize(
    ("content", "text", "is_computed"),
    [
        (SMALL, "cannot be ranked", False),
        (f'{RANKED}area"', "Nothing here makes area", False),
        (f'{RANKED}hd95"', "To have hd95 computed, add it to metrics.", True),
    ],
)
def test_validate_says_how_teams_can_be_ranked(
    tmp_path, capfd, content, text, is_computed
):
    file = write_file(tmp_path / "mine.toml", content)

    status = main(["challenge", "validate", str(file)])

    stdout, stderr = capfd.readouterr()
    assert (status, stderr) == (0, "")
    assert f"This challenge can be used: --challenge {file}\n" in stdout
    assert text in stdout
    assert ("To have" in stdout) == is_computed


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        *(("hd95", ""), ("dsc_liver", ""), ("cpu_s", "")),
        ("dsc_heart", "dsc_heart', which nothing here makes"),
        ("run_time_s", r"\(did you mean runtime_s\?\)"),
    ],
)
def test_a_metric_of_one_s_own_table_can_be_ranked(metric, problem):
    """A score of no organ, and a slip of the pen, are refused."""
    flare21 = read_challenge("flare21")
    better = Better.HIGHER if metric.startswith("dsc") else Better.LOWER
    rule = RankedMetric(metric=metric, better=better)
    challenge = replace(flare21, ranking=(*flare21.ranking, rule))

    if problem:
        with pytest.raises(ChallengeError, match=problem):
            ranked_by_others(challenge, "mine.toml")
    else:
        others = ranked_by_others(challenge, "mine.toml")
        assert others == (metric,) * (metric == "hd95")


# --- Metrics ----------------------------------------------------------------------


@pytest.mark.parametrize("name", set(METRICS) - {m.name for m in LESION_METRICS})
def test_a_metric_has_its_best_value_for_equal_masks(name):
    """And the worst one, if there is one, for an empty prediction."""
    metric = METRICS[name]
    labels = np.zeros((4, 5, 6), dtype=np.uint8)
    labels[1:3, 1:4, 2:5] = 1

    def value(prediction):
        pair = map_pair(labels, prediction, (2, 1, 1)).cut((1,))
        found = compare_organ(pair, 1.0, has_distances=True)
        if not metric.function:
            return {"dsc": found.voxels.dsc, "nsd": found.nsd}[metric.name]
        module, _, name = metric.function.partition(":")
        function = getattr(import_module(f"flare.evaluation.metrics.{module}"), name)
        return function(found)

    assert value(labels) == metric.best
    assert value(np.zeros_like(labels)) in (None, metric.worst)


def test_a_column_belongs_to_the_metric_that_it_begins_with():
    nsd = metric_named("nsd_left_kidney")
    assert (nsd.base, nsd.part) == ("nsd", "left_kidney")
    assert nsd.bounds == METRICS["nsd"].bounds
    names = ("runtime_s", "dscent", "")
    assert [metric_named(name).is_scored for name in names] == [False] * 3
    assert metric_named("dsc").is_share
    distance = replace(METRICS["dsc"], unit="mm", range=(0.0, 9.0), better=Better.LOWER)
    assert (distance.is_share, distance.best) == (False, 0.0)
    assert distance.heading == "DSC (mm)"


@pytest.mark.parametrize(
    ("metric", "value"),
    [("dsc", 1.235), ("nsd", 1.235), ("hd95", 1.23), ("assd", 1.23)],
)
def test_participants_are_told_few_decimals(metric, value):
    """More digits would tell the volume of a reference."""
    assert METRICS[metric].told(1.23456) == value
