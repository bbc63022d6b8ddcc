"""A bundle: its settings, its pages, and what is in its zips."""

import zipfile

import pytest
import yaml

from tests.builders import case_names, organ_boxes, write_cases
from tests.builders.codabench import inner_zip, write_light_bundle


@pytest.fixture
def labels(tmp_path):
    return write_cases(tmp_path / "labels", case_names(2), labels=organ_boxes())


@pytest.fixture
def bundle(monkeypatch, labels, tmp_path):
    options = {"title": "Große Prüfung 🫁", "start": "2026-03-01", "end": "2026-05-31"}
    return write_light_bundle(monkeypatch, tmp_path / "bundle.zip", labels, **options)


def test_the_settings_are_yaml_that_names_what_closes_a_trap(bundle):
    with zipfile.ZipFile(bundle) as archive:
        settings = yaml.safe_load(archive.read("competition.yaml").decode())
        files = set(archive.namelist())

    (board,), (phase,) = settings["leaderboards"], settings["phases"]
    (task,) = settings["tasks"]
    assert (settings["version"], settings["title"]) == (2, "Große Prüfung 🫁")
    assert settings["docker_image"] == "python:3.13-slim"
    assert (settings["enable_detailed_results"], phase["hide_score_output"]) == (1, 1)
    assert settings["show_detailed_results_in_leaderboard"] is False
    assert (phase["start"], phase["end"]) == ("2026-03-01", "2026-05-31")
    assert phase["execution_time_limit"] == 600
    assert (board["submission_rule"], board["primary_index"]) == ("Force_Best", 0)
    named = {page["file"] for page in settings["pages"]}
    named |= {settings["image"], settings["terms"]}
    named |= {task["scoring_program"], task["reference_data"]}
    assert files == {*named, "competition.yaml"}


def test_the_references_are_label_maps_alone(bundle, labels):
    archive = inner_zip(bundle, "reference_data.zip")
    files = {file.name: file.read_bytes() for file in labels.iterdir()}

    assert {name: archive.read(name) for name in archive.namelist()} == files
