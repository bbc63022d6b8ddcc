"""A bundle: its settings, its pages, what is in its zips, and what would not work."""

import json
import re
import sys
import zipfile
from dataclasses import replace
from importlib.machinery import SourcelessFileLoader

import pytest
import yaml

from flare.challenge.organs import AbsentOrgans
from flare.challenge.reading import read_challenge
from flare.common.errors import OutputError
from flare.evaluation.errors import PhaseSettingsError, UploadError
from flare.platforms.codabench import bundle as bundle_module
from flare.platforms.codabench import packages
from flare.platforms.codabench.bundle import BundleOptions
from flare.platforms.codabench.competition import leaderboard_for
from flare.platforms.codabench.packages import KERNEL, package_names, wheel_files
from tests.builders import (
    ROOT,
    case_names,
    error_of,
    organ_boxes,
    write_cases,
    write_file,
)
from tests.builders.codabench import inner_zip, write_light_bundle

OWN = """
name = "Mine"
metrics = ["dsc", "nsd", "hd95", "volume_difference"]
organs = [{ label = 1, name = "left_adrenal_gland_with_a_long_name", tolerance_mm = 1 }]
scheme = { kind = "means", ties_by = ["dsc"] }
[unknown_labels]
reference = "ignore"
[[answers]]
name = "age"
kind = "number"
file = "ages.csv"
reference_file = "true.csv"
case = ["case"]
prediction = ["age"]
reference = ["age"]
metrics = ["mean_absolute_error"]
[[ranking]]
metric = "nsd"
better = "higher"
"""


@pytest.fixture
def labels(tmp_path):
    labels = write_cases(tmp_path / "labels", case_names(2), labels=organ_boxes())
    (labels / "notes.txt").write_text("of nobody's concern")
    return labels


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    return file


@pytest.fixture
def bundle(monkeypatch, labels, tmp_path):
    options = {"title": "Große Prüfung 🫁", "start": "2126-03-01", "end": "2126-05-31"}
    return write_light_bundle(monkeypatch, tmp_path / "bundle.zip", labels, **options)


def test_the_settings_are_yaml_that_names_what_closes_a_trap(bundle):
    with zipfile.ZipFile(bundle) as archive:
        settings = yaml.safe_load(archive.read("competition.yaml").decode())
        overview = archive.read("overview.md").decode()
        files = set(archive.namelist())

    (board,), (phase,) = settings["leaderboards"], settings["phases"]
    (task,) = settings["tasks"]
    assert (settings["version"], settings["title"]) == (2, "Große Prüfung 🫁")
    assert settings["docker_image"] == "python:3.13-slim"
    assert (settings["enable_detailed_results"], phase["hide_score_output"]) == (1, 1)
    assert settings["show_detailed_results_in_leaderboard"] is False
    assert (phase["start"], phase["end"]) == ("2126-03-01", "2126-05-31")
    assert phase["execution_time_limit"] == 600
    assert (board["submission_rule"], board["primary_index"]) == ("Force_Best", 0)
    named = {page["file"] for page in settings["pages"]}
    named |= {settings["image"], settings["terms"]}
    named |= {task["scoring_program"], task["reference_data"]}
    assert files == {*named, "competition.yaml"}
    assert "final ranking, which ranks the\nteams on every case first." in overview


def test_columns_are_of_what_participants_may_know(own):
    """The site has room for 36 characters of a title or a key.

    A mean that may be of one case alone, by a prediction's choice, is as secret as that
    case.
    """
    isles = read_challenge("isles24")
    chosen = replace(isles, absent_organs=AbsentOrgans(in_prediction="left_out"))
    for rules, cases, columns in ((isles, 2, 8), (isles, 1, 2), (chosen, 2, 2)):
        assert len(leaderboard_for(rules, cases).columns) == columns
    with pytest.raises(PhaseSettingsError, match=r"\] has lesion_f1, lesion_count"):
        leaderboard_for(replace(isles, ranking=isles.ranking[1:]), 1)
    board = leaderboard_for(read_challenge(own), 2)

    assert board.primary_index == 1
    assert [
        (c.index, c.title, c.key, c.sorting.value, c.precision) for c in board.columns
    ] == [
        (0, "Mean DSC", "dsc_mean", "desc", 4),
        (1, "Mean NSD", "nsd_mean", "desc", 4),
        (2, "Mean HD95 (mm)", "hd95_mean", "asc", 3),
        (3, "Age MAE", "mean_absolute_error_age", "asc", 4),
        (4, "Left adrenal gland with a long na...", "column_4", "desc", 4),
        (5, "Left adrenal gland with a long na...", "column_5", "desc", 4),
        (6, "Left adrenal gland with a long na...", "column_6", "asc", 3),
    ]


def test_the_references_are_what_is_scored_alone(bundle, labels):
    archive = inner_zip(bundle, "reference_data.zip")
    files = {file.name: file.read_bytes() for file in labels.glob("*.nii.gz")}

    assert {name: archive.read(name) for name in archive.namelist()} == files


@pytest.mark.parametrize(
    ("name", "answer"), [("is_loadable", False), ("kernel_problem", "it is old")]
)
def test_a_program_has_an_own_challenge_and_no_kernel_that_is_of_no_use(
    monkeypatch, labels, own, tmp_path, name, answer
):
    monkeypatch.setattr(packages, name, lambda *_: answer)
    (labels / "true.csv").write_text("case,age\nvalidation_001,4\nvalidation_002,5\n")

    file = tmp_path / "plain.zip"
    write_light_bundle(monkeypatch, file, labels, challenge=str(own))

    with zipfile.ZipFile(file) as archive:
        scheme = "That is not the final ranking. Teams are ranked by the means of"
        assert scheme in archive.read("overview.md").decode()
    program = inner_zip(file, "scoring_program.zip")
    assert program.read("mine.toml").decode() == OWN
    assert json.loads(program.read("settings.json"))["challenge"] == "mine.toml"
    assert program.read("metadata.yaml") == b"command: python3 /app/program/score.py\n"
    assert KERNEL not in program.namelist()
    assert "true.csv" in inner_zip(file, "reference_data.zip").namelist()
    rules = read_challenge("flare22")
    names = {*package_names(rules, is_plain=True)}
    assert names - {*package_names(rules, is_plain=False)} == {"scipy"}
    assert "scipy" in package_names(read_challenge("autopet3"), is_plain=False)


def test_modules_are_compiled_for_the_place_where_they_run(tmp_path):
    """Python loads them, whatever the time of the source."""
    ((name, content),) = packages.compiled({"flare/mine.py": b"VALUE = 3\n"}).items()

    file = write_file(tmp_path / name, content)
    code = SourcelessFileLoader("mine", str(file)).get_code("mine")
    assert name == f"flare/__pycache__/mine.{sys.implementation.cache_tag}.pyc"
    assert (code.co_filename, code.co_consts[0]) == ("/app/program/flare/mine.py", 3)


@pytest.mark.parametrize(
    ("name", "value", "options", "problem"),
    [
        ("QUOTA_BYTES", 100, {}, "its references have 0.0 GB, and"),
        ("LARGEST_BYTES", 500, {}, "it would have 0.0 GB; above 1 GB"),
        ("START_S", 2.0, {"time_limit_s": 3}, "takes about 2 s, more than half of 3 s"),
        ("PLAIN_FACTOR", 1e9, {}, "more than half of 600 s"),
    ],
)
def test_what_would_not_work_is_not_written(
    monkeypatch, labels, tmp_path, name, value, options, problem
):
    if name == "PLAIN_FACTOR":
        monkeypatch.setattr(packages, "is_loadable", lambda library: False)
        monkeypatch.setattr(bundle_module, "kernel_problem", lambda: "")
    monkeypatch.setattr(bundle_module, name, value)
    written = monkeypatch, tmp_path / "new" / "bundle.zip", labels

    error = error_of(UploadError, write_light_bundle, *written, **options)

    assert problem in str(error)
    assert not [*tmp_path.glob("new/*")]


def test_a_bundle_that_cannot_be_written_is_named(labels, tmp_path, monkeypatch):
    file = write_file(tmp_path / "file", "no folder") / "bundle.zip"

    with pytest.raises(OutputError, match=r"bundle\.zip: it cannot be written"):
        write_light_bundle(monkeypatch, file, labels)


def test_packages_have_the_versions_of_the_other_containers():
    """scripts/lock.sh writes all files, with the same conditions where it may."""
    pins = re.findall(r"^\S+==\S+ ", packages.REQUIREMENTS.read_text(), re.MULTILINE)
    other_pins = (ROOT / "scripts/container/requirements-service.txt").read_text()

    assert len(pins) == 12
    image_text = (ROOT / "requirements.txt").read_text()
    pins += re.findall(r"^\S+==.*\n", image_text, re.MULTILINE)
    assert [pin for pin in pins if pin not in other_pins] == []


def test_without_an_index_it_is_said_what_pip_says(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")

    error = error_of(UploadError, lambda: [*wheel_files(["click"], "3.13")])

    assert "no wheels for Python 3.13 on linux/amd64 (ERROR: No matching" in str(error)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"start": "31.5.2026"}, "'31.5.2026' is no date, such as 2026-05-31"),
        ({"start": "2126-05-31", "end": "2126-05-31"}, "is not after 2126-05-31"),
        ({"start": "2025-03-01", "end": "2025-05-31"}, "--end 2025-05-31 is not after"),
        ({"image": "debian:13"}, "'debian:13' is not like python:3.13-slim"),
        ({"image": "python:3.13-alpine"}, "is not like python:3.13-slim"),
    ],
)
def test_options_that_no_bundle_can_have(tmp_path, options, problem):
    with pytest.raises(ValueError, match=problem):
        BundleOptions(ground_truth=tmp_path, output=tmp_path / "b.zip", **options)
