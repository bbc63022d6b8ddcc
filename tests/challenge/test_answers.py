"""Answers in challenge files: the editions that have them, and mistakes in them."""

import re
from dataclasses import replace

import numpy as np
import pytest

import flare
from flare.challenge.answers import KINDS, AnswerRules
from flare.challenge.reading import (
    ChallengeError,
    challenge_names,
    challenge_summary,
    read_challenge,
)
from flare.results.efficiency_csv import ranked_by_others
from tests.builders import ROOT, error_of, run_flare, write_nifti

EDITIONS = [name for name in challenge_names() if read_challenge(name).answers]

SMALL = """
name = "Two tables"

[[answers]]
name = "tumour"
kind = "binary"
file = "tumours.csv"
metrics = ["auroc", "f1"]

[[answers]]
name = "age"
kind = "number"
file = "ages.csv"
metrics = ["mean_absolute_error"]

[[ranking]]
metric = "auroc_tumour"
better = "higher"
"""


# --- The editions -------------------------------------------------------------------


def test_tasks_of_answers_have_editions():
    expected = ["flare25-foundation", "flare25-mllm-2d", "flare25-mllm-3d"]
    assert [*expected, "flare26-automsc"] == EDITIONS


CLASSES_OF_2D = """
[[answers]]
name = "disease"
classes = ["A", "B", "C", "D", "E"]
"""

RULES_OF_2026 = """
[[answers]]
name = "findings"
empty = "counted"
"""
for task in ("detection", "instances"):
    for ending in ("", "_03", "_steps"):
        name = f"{task}{ending}"
        RULES_OF_2026 += f'[[answers]]\nname = "{name}"\nmatching = "iou"\n'

LABELS = (
    '["liver_cyst", "kidney_stone", "ascites", "splenomegaly", "gallstone", "never"]'
)

EXAMPLES = {
    "fm-binary": ("flare25-foundation", ""),
    "fm-regression": (
        "flare25-foundation",
        """
        [[answers]]
        name = "task"
        kind = "number"
        metrics = ["mean_absolute_error", "rmse"]
        """,
    ),
    "fm-survival": (
        "flare25-foundation",
        """
        [[answers]]
        name = "task"
        kind = "time"
        metrics = ["c_index"]
        """,
    ),
    "fm-multiclass": (
        "flare25-foundation",
        """
        [[answers]]
        name = "task"
        kind = "classes"
        prediction = ["class_0", "class_1", "class_2", "class_3", "class_4"]
        classes = ["class_0", "class_1", "class_2", "class_3", "class_4"]
        metrics = ["mean_average_precision"]
        """,
    ),
    "fm-multilabel": (
        "flare25-foundation",
        f"""
        [[answers]]
        name = "task"
        kind = "labels"
        case = ["case_id"]
        prediction = {LABELS}
        reference = {LABELS}
        metrics = ["mean_average_precision"]
        """,
    ),
    "mllm2d-2025": ("flare25-mllm-2d", CLASSES_OF_2D),
    "mllm2d-2026": ("flare25-mllm-2d", CLASSES_OF_2D + RULES_OF_2026),
    "mllm3d": ("flare25-mllm-3d", ""),
    "automsc-binary": ("flare26-automsc", "organs = []"),
    "automsc-multiclass": (
        "flare26-automsc",
        """
        organs = []
        [[answers]]
        name = "diagnosis"
        kind = "classes"
        positive = "above"  # a key of another kind
        classes = ["benign", "borderline", "malignant"]
        metrics = ["accuracy", "balanced_accuracy", "auroc", "auprc", "f1", "precision"]
        """,
    ),
}
"""The edition of an example, and what a file that extends it has to say."""


@pytest.mark.shared
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_edition_is_extended_to_each_example(shared, read, example):
    """What examples score is compared with the scripts in `test_official.py`."""
    edition, text = EXAMPLES[example]
    file = shared / "data" / "answers" / "challenges" / f"{example}.toml"

    challenge = read(f'extends = "{edition}"\n{text}')

    assert challenge.answers == read_challenge(file).answers
    assert challenge.organs == ()


def test_automsc_scores_label_maps_and_answers_by_hand(tmp_path):
    """A probability of 0.5 is positive there, and a missed lesion scores 0."""
    labels = np.zeros((2, 8, 8, 8), dtype=np.uint8)
    labels[:, 2:6, 2:6, 2:6] = 1
    for number, mask in enumerate(labels, start=1):
        write_nifti(tmp_path / "references" / f"P_{number}.nii.gz", mask)
        write_nifti(tmp_path / "team" / f"P_{number}.nii.gz", mask * (number == 1))
    table = tmp_path / "references" / "reference.csv"
    table.write_text("identifier,label\nP_1,1\nP_2,0\n")
    answers = '"[0.5, 0.5]"', "0.2"
    rows = [f"P_{number},{text}\n" for number, text in enumerate(answers, start=1)]
    (tmp_path / "team" / "results.csv").write_text("identifier,probs\n" + "".join(rows))

    results = flare.evaluate(
        tmp_path / "team", tmp_path / "references", challenge="flare26-automsc"
    )

    assert [(case.dsc, case.nsd) for case in results.cases] == [(1, 1), (0, 0)]
    assert set(results.answer_values.values()) == {1.0}
    assert len(results.answer_values) == 8


# --- Files that extend others, and what is printed ------------------------------------


def test_answers_of_the_same_name_replace_the_keys_that_they_give(read):
    """Others stay, in their places, and a further one comes last."""
    base = read_challenge("flare25-mllm-3d")

    mine = read(
        """
        extends = "flare25-mllm-3d"
        [[answers]]
        name = "report"
        kind = "choice"
        file = "reports.csv"
        metrics = ["accuracy"]
        [[answers]]
        name = "global"
        file = "answers.jsonl"
        """
    )

    global_rules, local_rules, report = mine.answers
    assert global_rules == replace(base.answers[0], file="answers.jsonl")
    assert local_rules == base.answers[1]
    assert report == AnswerRules(
        name="report", kind="choice", file="reports.csv", metrics=("accuracy",)
    )
    assert mine.ranking == base.ranking


def test_the_page_has_a_file_of_several_tasks(read):
    page = (ROOT / "docs" / "reference" / "answers.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)

    challenge = read(text)

    assert [rules.kind for rules in challenge.answers] == ["binary", "classes", "time"]
    assert len({rules.file for rules in challenge.answers}) == 3
    assert ranked_by_others(challenge, "mine.toml") == ()


@pytest.mark.parametrize("name", EDITIONS)
def test_validate_tells_files_columns_and_metrics_and_no_rule_without_effect(name):
    challenge = read_challenge(name)

    text = challenge_summary(challenge)

    for rules in challenge.answers:
        lines = text[text.index(f"{rules.name} ({rules.kind}): ") :].splitlines()
        assert lines[0].endswith(KINDS[rules.kind].about)
        assert lines[1].startswith(f"  submission: {rules.file}, columns ")
        assert lines[2].startswith(f"  references: {rules.references}, columns ")
        assert f"  metrics: {', '.join(rules.metrics)}" in lines
    assert "answers." not in text
    assert ("grid.compare" in text) == bool(challenge.organs)
    assert ranked_by_others(challenge, name) == ()


def test_validate_prints_the_answers_of_a_challenge(tmp_path):
    file = tmp_path / "mine.toml"
    text = SMALL.replace('"ages.csv"', '"ages.csv"\nworst = 50')
    file.write_text(f'{text}[[values]]\nname = "green"\nbetter = "higher"\n')

    run = run_flare("challenge", "validate", file)

    assert (run.returncode, run.stderr) == (0, "")
    assert (
        run.stdout
        == f"""Two tables (mine)

tumour (binary): a probability from 0 to 1, or a class, 0 or 1
  submission: tumours.csv, columns name, prediction
  references: tumours.csv, columns name, gt
  metrics: auroc, f1
age (number): a number
  submission: ages.csv, columns name, prediction
  references: ages.csv, columns name, gt
  metrics: mean_absolute_error
  worst: 50.0
green: others compute it, RESULTS/TEAM/green.csv

Ranked by auroc_tumour (higher).

This challenge can be used: --challenge {file}
"""
    )


# --- Mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"binary"', '"yes_or_no"', "answers[1].kind is 'yes_or_no', expected bina"),
        ('kind = "binary"\n', "", "answers[1].kind is missing"),
        ('"age"', '"tumour"', "answers[2].name is 'tumour', expected another value"),
        *(('"age"', f'"{name}"', f"answers[2].name is '{name}', expected a name that d")
          for name in ("age_mean", "a_free_cases", "free_cases", "b_free_left_empty")),
        ('"age"', '"Age"', "answers[2].name is 'Age', expected lower-case letters"),
        ('["auroc", "f1"]', '["auroc", "rmse"]',
         "answers[1].metrics[2] is 'rmse', expected each once, of kind binary: ac"),
        ('["auroc", "f1"]', '["dsc"]', "answers[1].metrics[1] is 'dsc', expected"),
        ('["auroc", "f1"]', '["f1", "f1"]', "answers[1].metrics[1] is 'f1', expected"),
        ('["auroc", "f1"]', "[]", "answers[1].metrics is [], expected at least one"),
        ('"ages.csv"', '"tables/ages.csv"', "answers[2].file is 'tables/ages.csv', e"),
        ('"ages.csv"', '"ages.xlsx"', "answers[2].file is 'ages.xlsx', expected a"),
        ('"ages.csv"', '".csv"', "answers[2].file is '.csv', expected a name without "),
        ('"ages.csv"', '"ages.csv"\nreference_file = "a"',
         "answers[2].reference_file is 'a', expected a name without folders"),
        ('"ages.csv"', '"ages.csv"\nprediction = ["low", "high"]',
         "answers[2].prediction is ['low', 'high'], expected 1 column"),
        ('"ages.csv"', '"ages.csv"\ncase = []', "answers[2].case is [], expected at"),
        ('"ages.csv"', '"ages.csv"\nworst = -1', "answers[2].worst is -1.0, expected"),
        ('"ages.csv"', '"ages.csv"\nclass = ["a"]', "answers[2].class is an unknown"),
        ('"binary"', '"binary"\nthreshold = 1.5', "answers[1].threshold is 1.5, expec"),
        ('"binary"', '"binary"\npositive = "over"', "answers[1].positive is 'over', e"),
        ('"binary"', '"classes"', "answers[1].classes is [], expected the names of"),
        ('"binary"', '"classes"\nclasses = ["a", "b"]\nprediction = ["a", "b", "c"]',
         "answers[1].prediction is ['a', 'b', 'c'], expected 1 or 2 columns"),
        ('"binary"', '"binary"\niou = [2]', "answers[1].iou[1] is 2.0, expected"),
        ('"binary"', '"binary"\nmatching = "best"', "answers[1].matching is 'best', "),
        ('"higher"', '"lower"', "ranking[1].better is 'lower', expected higher, the"),
        ("[[ranking]]", "[[reported]]\nrule = 1", "reported[1].rule is 1, expected a"),
        ("extends", '[answers]\nname = "global"', "answers is {'name': 'global'}, "),
        ("extends", 'answers = ["age"]', "answers[3] is 'age', expected"),
        ("extends", "answers = 5", "answers is 5, expected a list"),
        ("extends", "[[answers]]\nname = [4]", "answers[3].name is [4], expected"),
        ("extends", '[[answers]]\nfile = "a.csv"', "answers[3].name is missing"),
        ("extends", '[[answers]]\nname = "global"\nkind = "boxes"',
         "answers[1].metrics[1] is 'overlap', expected each once, of kind boxes"),
        ("extends", '[[answers]]\nname = "local"\n' * 2 + 'kind = "chain"\n'
         'file = "a.csv"\nmetrics = ["chain_accuracy"]',
         "answers[3].name is 'local', expected another value than answers[2].name"),
    ],
)  # fmt: skip
def test_a_mistake_in_answers_is_told_in_one_line(read, old, new, problem):
    text = SMALL.replace(old, new, 1)
    if old == "extends":
        text = f'extends = "flare25-mllm-3d"\n{new}'
    assert text != SMALL

    error = error_of(ChallengeError, read, text)

    problems = error.problem.split("; ")
    assert [line for line in problems if line.startswith(problem)], problems
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ("auprc_tumour", "which nothing here makes"),
        ("auroc_tumor", "which nothing here makes (did you mean auroc_tumour?)"),
        ("dsc", "which nothing here makes"),
    ],
)
def test_a_ranking_by_what_is_not_computed_is_refused(read, metric, problem):
    challenge = read(SMALL.replace("auroc_tumour", metric))

    error = error_of(ChallengeError, ranked_by_others, challenge, "mine.toml")

    assert error.problem.startswith(f"ranking[1].metric is '{metric}', {problem}")
