"""Lesions from challenge file to pages: what is refused, scored, named, and told."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import flare
from flare.challenge.lesion_metrics import LESION_METRICS
from flare.challenge.metrics import METRICS, metric_named
from flare.challenge.reading import challenge_summary
from flare.common.schema import build
from flare.platforms.board import organ_metrics, title_of, total_metrics
from flare.ranking.rules import RankingOptions
from flare.reports.evaluation import case_table, participant_page
from flare.reports.model import NO_RESULT
from flare.reports.paper.scoring import evaluation_methods
from flare.reports.ranking_pages import ranking_pages
from flare.reports.render.html import page_html
from flare.reports.scores import own_scores
from flare.results.metrics_json import metrics_json
from flare.results.metrics_reading import read_evaluation
from flare.results.scores import results_table
from tests.builders import run_flare, write_nifti

NAMES = [metric.name for metric in LESION_METRICS]
WHOLE = {
    "name": "whole",
    "label": [1, 2],
    "tolerance_mm": 1.0,
    "lesions": "brats23-met",
}
CORE = {"name": "core", "label": 2, "tolerance_mm": 1.0}


def challenge_of(*organs, metrics=("dsc", "nsd", *NAMES)):
    rules = {"name": "Lesions", "organs": list(organs), "metrics": list(metrics)}
    return build(flare.Challenge, rules, key="lesions", checksum="")


MISTAKES = [
    (
        [CORE],
        NAMES[:1],
        r"metrics\[2\] is 'lesion_dsc', expected an organ with lesions",
    ),
    (
        [WHOLE | {"in_mean": False}, CORE],
        NAMES[:1],
        "an organ with lesions in the mean",
    ),
    (
        [WHOLE | {"lesions": "brats"}],
        NAMES,
        "lesions is 'brats', expected brats23-gli,",
    ),
    (
        [WHOLE | {"lesions": "autopet"}],
        ["lesion_dsc"],
        r"organs\[1\].lesions is 'autopet', expected a definition with a rule for"
        " lesion_dsc: brats23-gli, brats23-men, brats23-met",
    ),
    ([WHOLE | {"lesions": "wmh17"}], ["lesion_hd95"], "a rule for lesion_hd95"),
    ([WHOLE | {"lesions": "isles24"}], ["lesion_nsd"], "a rule for lesion_nsd"),
    ([WHOLE | {"lesions": "autopet"}], ["lesion_f1"], "a rule for lesion_f1: brats23"),
    ([WHOLE | {"label": None, "labels": "each"}], NAMES, "no lesions where each label"),
    (
        [WHOLE | {"tolerance_mm": None}],
        ["lesion_nsd"],
        "tolerance_mm is 'missing', expected a length in mm, as lesion_nsd is computed",
    ),
]


@pytest.mark.parametrize(("organs", "names", "problem"), MISTAKES)
def test_what_a_definition_has_no_rule_for_is_refused(organs, names, problem):
    with pytest.raises(ValueError, match=problem):
        challenge_of(*organs, metrics=["dsc", *names])


REFERENCE = np.array([[[1, 2, 2, 0, 0, 0, 0, 0, 1, 1, 1, 1]]], dtype=np.uint8)
PREDICTION = np.array([[[1, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0]]], dtype=np.uint8)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two cases, the second of which has no lesion in the reference."""
    folder = tmp_path_factory.mktemp("lesions")
    for case, reference in (("a", REFERENCE), ("b", 0 * REFERENCE)):
        write_nifti(folder / "labels" / f"{case}.nii.gz", reference, spacing=(1, 1, 1))
        write_nifti(folder / "own" / f"{case}.nii.gz", PREDICTION, spacing=(1, 1, 1))
    challenge = challenge_of(WHOLE, CORE)
    return flare.evaluate(
        folder / "own", folder / "labels", challenge=challenge, workers=1
    )


def test_values_by_hand_are_of_organs_with_lesions_alone(results):
    """3 of 5 predicted voxels hit a lesion of 3; one of 4 is missed, of b all false."""
    columns = results.metrics
    assert columns["lesion_dsc"] == columns["lesion_dsc_whole"] == (0.375, 0.0)
    assert columns["lesion_hd95_whole"] == (pytest.approx((2 + 374) / 2), 374.0)
    assert columns["lesion_recall"] == (0.5, 1.0)
    assert columns["lesion_precision"] == (1.0, 0.0)
    assert columns["false_volume"] == (0.0, 0.005)
    assert columns["missed_volume"] == (0.004, None)
    assert not [name for name in columns if "lesion" in name and "core" in name]


MIXED = """
name = "Mixed"
metrics = ["dsc", "lesion_dsc"]
organs = [
  {label = [1, 2], name = "whole", lesions = "brats23-met"},
  {label = 2, name = "core", lesions = "brats23-men"},
  {label = 1, name = "shell"},
]
ranking = [{metric = "lesion_dsc", better = "higher"}]
"""
RANKED_BY = [f"{n}.{end}" for n in ("ranking", "means") for end in ("md", "tex")]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """All that two teams and their organisers can read, by command and file."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "mixed.toml").write_text(MIXED)
    for name in ("labels/a", "labels/b", "teams/x/a", "teams/x/b"):
        maps = PREDICTION if "teams" in name else REFERENCE
        write_nifti(folder / f"{name}.nii.gz", maps, spacing=(1, 1, 1))
    shutil.copytree(folder / "teams" / "x", folder / "teams" / "y")
    commands = {
        "score": "score teams --ground-truth labels --output scores",
        "doctor": "doctor teams/x --ground-truth labels",
        "rank": "rank scores --output ranks",
        "participant": "report scores/x/metrics.json --output participant.html",
        "own": "report scores/x/metrics.json --output own.html --audience organiser",
        "pages": "report scores --output pages --audience organiser",
        "pair": "report scores/x/metrics.json scores/y/metrics.json --output pair.html",
    }
    texts = {}
    for name, command in commands.items():
        words = command.split()
        if ".json" not in command:
            words += "--challenge", "mixed.toml"
        run = run_flare(*words, cwd=folder)
        assert run.returncode == 0, run.stderr
        texts[name] = run.stdout
    for file in folder.rglob("*"):
        if file.suffix in (".html", ".md", ".tex", ".txt"):
            texts[str(file.relative_to(folder))] = file.read_text()
    return texts


PAGES = ("participant.html", "own.html", "pair.html", "pages/index.html")
PAPERS = [f"ranks/{name}" for name in (*RANKED_BY, "methods.txt", "report.txt")]


@pytest.mark.slow
@pytest.mark.gate
@pytest.mark.parametrize(
    "name",
    [*PAGES, "pages/teams/x.html", "scores/means.md", *PAPERS, "ranks/sheets/x.md"],
)
def test_what_has_numbers_of_lesions_has_their_definitions_once(texts, name):
    """In the order of the challenge's organs, not of their names."""
    starts = ("whole by brats23-met (BraTS 2023 MET, ", "core by brats23-men (BraTS")
    places = [texts[name].find(f"Lesions of {start}") for start in starts]

    assert -1 < places[0] < places[1]
    assert texts[name].count("lesions are components by 26 neighbours") == 2
    assert "MEN, BraTS 2023 MET" not in texts[name]


@pytest.mark.slow
@pytest.mark.gate
def test_definitions_are_named_in_files_tables_and_titles(results, texts):
    content = json.loads(metrics_json(results))
    assert content["lesions"] == {"whole": "brats23-met"}
    assert content["evaluation"]["rules"]["lesions of whole"] == "brats23-met"
    assert "Lesion-wise DSC (BraTS 2023 MET)" in results_table(results)
    title = "Lesion-wise DSC (BraTS 2023 MET, BraTS 2023 MEN)"
    assert f"x: DSC 0.3952 {title} 0.6875 (2 of 2" in texts["score"]
    assert [
        name for name in (*PAGES, "scores/means.md") if title not in texts[name]
    ] == []
    assert metric_named("lesion_f1").title == "Lesion-wise F1"


def test_lists_of_all_metrics_are_whole_in_methods_and_for_organisers(
    results, tmp_path
):
    file = read_evaluation(flare.write_metrics(results, tmp_path))
    methods = evaluation_methods(replace(file, failed={"b": "it is damaged"}))
    assert " and absolute volume difference of a case are the means" in methods
    assert [
        cut for cut in ("...", " and 1 more", " and 5 more") if cut in methods
    ] == []
    summary = challenge_summary(challenge_of(WHOLE))
    assert f"metrics: dsc, nsd, {', '.join(NAMES)}\n" in summary


def test_boards_have_means_and_no_organ_without_lesions():
    challenge = challenge_of(WHOLE, CORE)
    titles = [title_of(metric) for metric in total_metrics(challenge)]
    assert "Mean Lesion-wise recall (BraTS 2023 MET)" in titles
    names = {metric.name for metric in organ_metrics(challenge)}
    assert {"lesion_f1_whole", "dsc_core"} < names
    assert "lesion_f1_core" not in names


HIDDEN = [metric for metric in LESION_METRICS if not metric.tells_cases]


def test_of_single_cases_nothing_is_told_that_counts_lesions():
    assert [metric.name for metric in HIDDEN] == NAMES[3:]
    assert [metric.is_told(1) for metric in HIDDEN] == [False] * 7
    assert all(metric.is_told(2) for metric in HIDDEN)
    assert METRICS["lesion_dsc"].is_told(1)
    assert not METRICS["volume_difference"].is_told(2)


@pytest.mark.parametrize("cases", [1, 2])
def test_the_page_of_a_participant_has_means_of_several_cases(results, tmp_path, cases):
    """That of missed volume is of one case alone, and is not there."""
    shown = replace(results, cases=results.cases[:cases])
    file = read_evaluation(flare.write_metrics(shown, tmp_path))
    own = own_scores(file)

    html = page_html(participant_page(own))

    assert {name for name in own.values if name in NAMES} == {*NAMES[:3]}
    expected = {"lesion_recall": 0.75, "lesion_precision": 0.5, "false_volume": 0.002}
    assert {k: v for k, v in own.means.items() if k in expected} == (
        expected if cases == 2 else {}
    )
    assert ("Mean lesion-wise recall" in html) == (cases == 2)
    assert "missed lesions" not in html


def test_pages_have_no_row_without_lesions_and_last_what_is_left_out(results, tmp_path):
    own = own_scores(read_evaluation(flare.write_metrics(results, tmp_path)))
    heads = ("case", "mean of organs", "whole")

    assert case_table(own, METRICS["lesion_dsc"]).heads == heads
    assert case_table(own, METRICS["dsc"]).heads == (*heads, "core")
    assert own.mean("lesion_recall").interval_text == "values of cases are not told"
    dsc = {"dsc": (None, 0.9), "dsc_whole": (None, 0.9), "dsc_core": (None, 0.9)}
    assert replace(own, values=dsc).worst_first == [1, 0]
    assert replace(own, values=dsc, absent=NO_RESULT).worst_first == [0, 1]


RANKED = """
name = "Lesions"
metrics = ["dsc", "lesion_recall"]
organs = [{label = 1, name = "wt", lesions = "wmh17"}]
ranking = [
  {metric = "dsc", better = "higher"}, {metric = "lesion_recall", better = "higher"}
]
"""


@pytest.mark.parametrize("is_organiser", [False, True])
def test_a_team_is_told_no_rank_of_a_case_by_what_counts_lesions(
    tmp_path, is_organiser
):
    """Nor that there it has no value, as the reference has no lesion."""
    (tmp_path / "lesions.toml").write_text(RANKED)
    table = tmp_path / "scores.csv"
    rows = ("a,1,0.9,1", "a,2,0.8,", "b,1,0.8,0.5", "b,2,0.7,1")
    table.write_text("team,case,dsc,lesion_recall\n" + "\n".join(rows))
    options = RankingOptions(challenge=str(tmp_path / "lesions.toml"), bootstrap=0)
    audience = {"is_organiser": is_organiser, "has_teams": True}

    pages = dict(ranking_pages(table, options, is_written=False, **audience))

    html = page_html(pages["teams/a.html"])
    assert "rank: DSC" in html
    assert ("rank: Lesion-wise recall" in html) == is_organiser
    assert ("the value is empty" in html) == is_organiser


def test_a_table_of_cases_without_a_value_or_rank_is_left_out(tmp_path):
    rules = RANKED.replace('{metric = "dsc", better = "higher"}, ', "")
    (tmp_path / "lesions.toml").write_text(f'{rules}[scheme]\nkind = "means"\n')
    table = tmp_path / "scores.csv"
    table.write_text("team,case,lesion_recall\na,1,0.9\na,2,1\nb,1,0.5\nb,2,0.2\n")
    ranking = flare.rank(table, challenge=tmp_path / "lesions.toml", bootstrap=0)
    ranking.write(tmp_path / "ranks")
    options = RankingOptions(challenge=str(tmp_path / "lesions.toml"), bootstrap=0)
    audience = {"is_organiser": False, "has_teams": True}

    pages = dict(ranking_pages(table, options, is_written=False, **audience))

    assert "| case |" not in (tmp_path / "ranks" / "sheets" / "a.md").read_text()
    assert "cases" not in {section.id for section in pages["teams/a.html"].shown}
