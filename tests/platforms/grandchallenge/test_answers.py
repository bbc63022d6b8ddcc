"""The platform's settings and board for challenges that score tables of answers."""

import json
from pathlib import Path

import pytest

import flare
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.cli.main import main
from flare.common.schema import dump
from flare.platforms.board import Order
from flare.platforms.grandchallenge.phase import ScoringMethod, is_rankable, value_at
from flare.platforms.grandchallenge.phase_settings import (
    external_settings_for,
    settings_for,
)
from tests.builders.answers import DIAGNOSIS
from tests.builders.schemas import problems

ANSWERS = f"""
{DIAGNOSIS}
[[answers]]
name = "age"
kind = "number"
file = "results.csv"
reference_file = "reference.csv"
case = ["identifier"]
prediction = ["years"]
reference = ["years"]
metrics = ["mean_absolute_error"]
"""
ORGANS = """
[[organs]]
label = 1
name = "lesion"
tolerance_mm = 1
"""
RANKING = """
[[ranking]]
metric = "auroc_diagnosis"
better = "higher"
[[ranking]]
metric = "mean_absolute_error_age"
better = "lower"
"""

ACCURACY = "aggregates.accuracy_diagnosis"
AUROC = "aggregates.auroc_diagnosis"
ERROR = "aggregates.mean_absolute_error_age"

REFERENCES = "identifier,label,years\na,0,40\nb,1,50\n"


@pytest.fixture
def challenge_of(tmp_path):
    """A challenge of answers, with other parts of its file."""

    def read(*parts) -> Challenge:
        file = tmp_path / "mine.toml"
        file.write_text("\n".join(['name = "Mine"', ANSWERS, *parts]), "utf-8")
        return read_challenge(str(file))

    return read


# --- Settings of phases -----------------------------------------------------------


def test_a_phase_of_answers_alone_ranks_by_what_the_file_ranks_by(challenge_of):
    challenge = challenge_of(RANKING)

    for phase in settings_for(challenge).values():
        assert phase.ranked == {AUROC: Order.DESCENDING, ERROR: Order.ASCENDING}
        assert phase.scoring_method_choice is ScoringMethod.MEAN
        assert phase.columns == (
            ("Diagnosis AUROC", AUROC, ""),
            ("Diagnosis Accuracy", ACCURACY, ""),
            ("Age MAE", ERROR, ""),
        )
        assert (
            "one zip with `results.csv` with the columns `identifier`, `probs`, `years`"
            " (diagnosis: a probability from 0 to 1, or a class, 0 or 1; age: a number)"
        ) in phase.submission_page_markdown
        assert "label map" not in phase.submission_page_markdown
    assert problems(dump(settings_for(challenge)), "phase-settings") == []


@pytest.mark.parametrize(
    ("edition", "columns"),
    [
        ("flare25-mllm-2d", "`TaskType`, `ImageName`, `Answer` (disease: a word"),
        ("flare25-mllm-3d", "`scope`, `case_id`, `prediction`, `question_id` (global:"),
    ],
)
def test_the_page_names_the_columns_that_tell_rows_apart(edition, columns):
    phase = settings_for(read_challenge(edition))["test"]

    assert f"with the columns {columns}" in phase.submission_page_markdown
    assert phase.scoring_method_choice is ScoringMethod.MEAN


def test_without_a_ranking_the_first_value_is_the_score(challenge_of):
    assert settings_for(challenge_of())["test"].ranked == {ACCURACY: Order.DESCENDING}
    external = external_settings_for(challenge_of(), has_gpu=False)
    assert [*external.ranked] == [ACCURACY, "aggregates.runtime_s_mean"]


def test_label_maps_keep_their_score_beside_answers(challenge_of):
    """As without answers, whose values stand behind the means."""
    phase = settings_for(challenge_of(ORGANS, RANKING))["validation"]

    assert phase.ranked == {"aggregates.dsc_mean": Order.DESCENDING}
    assert phase.scoring_method_choice is ScoringMethod.ABSOLUTE
    assert [title for title, *_ in phase.columns] == [
        *("Mean DSC", "Mean NSD", "Diagnosis Accuracy", "Diagnosis AUROC", "Age MAE"),
        *("Lesion DSC", "Lesion NSD"),
    ]
    assert (
        "Labels: 0 background, 1 lesion. Save them with the header of the CT. Beside"
        " them is `results.csv` with"
    ) in phase.submission_page_markdown


def test_an_external_phase_ranks_by_answers_and_running_time(challenge_of):
    time = '[[ranking]]\nmetric = "runtime_s"\nbetter = "lower"\n'

    phase = external_settings_for(challenge_of(RANKING, time))

    assert [*phase.ranked] == [AUROC, ERROR, "aggregates.runtime_s_mean"]
    assert "challenge. Answers: `results.csv` with" in phase.submission_page_markdown
    assert "Labels" not in phase.submission_page_markdown


# --- The board --------------------------------------------------------------------


def test_the_board_is_that_of_the_ranks_of_values(challenge_of, tmp_path, capfd):
    """Best in one and last in the other: a 1 and 3, b 2 and 1, c 3 and 2."""
    challenge = challenge_of(RANKING)
    phases = tmp_path / "phases.json"
    phases.write_text(json.dumps(dump(settings_for(challenge))), "utf-8")
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "reference.csv").write_text(REFERENCES, "utf-8")
    answers = {"a": (0.1, 0.9, 60), "b": (0.5, 0.5, 50), "c": (0.9, 0.1, 55)}
    for team, (first, second, years) in answers.items():
        folder = tmp_path / team
        folder.mkdir()
        rows = f"identifier,probs,years\na,{first},40\nb,{second},{years}\n"
        (folder / "results.csv").write_text(rows, "utf-8")
        results = flare.evaluate(folder, tmp_path / "references", challenge=challenge)
        flare.write_metrics(results, folder)
    files = [str(tmp_path / team / "metrics.json") for team in answers]

    assert main(["leaderboard", *files, "--phase-settings", str(phases)]) == 0

    rows = [line.split() for line in capfd.readouterr().out.splitlines()[2:]]
    assert rows == [
        ["1", "b", "1.5", "0.5000", "0.5000", "0.0000"],
        ["2", "a", "2", "1.0000", "1.0000", "5.0000"],
        ["3", "c", "2.5", "0.0000", "0.0000", "2.5000"],
    ]
    metrics = json.loads((tmp_path / "a" / "metrics.json").read_text("utf-8"))
    assert metrics["case"] == {}
    for path in settings_for(challenge)["test"].paths:
        assert is_rankable(value_at(metrics, path))
    # As `flare download` leaves teams whose uploads are then fetched by a browser.
    for team in answers:
        (tmp_path / "teams" / team / "predictions").mkdir(parents=True)
        for name in ("metrics.json", "predictions/results.csv"):
            (tmp_path / team / Path(name).name).rename(tmp_path / "teams" / team / name)
    words = ["--challenge", str(tmp_path / "mine.toml")]
    rank = ["rank", str(tmp_path / "teams"), *words, "--output", str(tmp_path / "r")]
    assert main(rank) == 1
    assert "flare rescore (of what was uploaded to a platform" in capfd.readouterr().err
    references = ("--ground-truth", str(tmp_path / "references"))
    assert main(["rescore", str(tmp_path / "teams"), *references, *words]) == 0
    assert main(rank) == 0
