"""The settings of the platform's phases, and its rule for paths."""

import json
import math
import re

import pytest

import flare
from flare.common.text import safe
from flare.evaluation.errors import PhaseSettingsError
from flare.platforms.board import Order
from flare.platforms.grandchallenge.phase import read_phase, rounded
from flare.platforms.leaderboard import value_at
from flare.results.metrics_json import metrics_json
from tests.builders import ROOT, error_of, run_program

SETTINGS = ROOT / "phase-settings.json"
PHASES = ("sanity", "validation", "test")

PLATFORM_FIELDS = """
title, slug, score_title, score_jsonpath, score_error_jsonpath, score_default_sort,
score_decimal_places, extra_results_columns, scoring_method_choice,
result_display_choice, creator_must_be_verified, submission_kind,
allow_submission_comments, display_submission_comments, supplementary_file_choice,
supplementary_file_label, supplementary_file_help_text, show_supplementary_file_link,
supplementary_url_choice, supplementary_url_label, supplementary_url_help_text,
show_supplementary_url, submissions_limit_per_user_per_period, submission_limit_period,
submissions_open_at, submissions_close_at, submission_page_html,
submission_page_markdown, auto_publish_new_results, display_all_metrics,
algorithm_time_limit, give_algorithm_editors_job_view_permissions,
evaluation_time_limit, evaluation_requires_gpu_type, evaluation_requires_memory_gb,
public, workstation, workstation_config, hanging_protocol, view_content, archive,
inputs, outputs, algorithm_inputs, algorithm_outputs, average_algorithm_job_duration,
compute_cost_euro_millicents, parent, external_evaluation, algorithm_interfaces,
additional_evaluation_inputs, evaluation_outputs, use_batch_mode,
algorithm_selectable_gpu_type_choices, algorithm_maximum_settable_memory_gb,
evaluation_selectable_gpu_type_choices, evaluation_maximum_settable_memory_gb,
optional_hanging_protocols
"""
FIELDS = re.findall(r"\w+", PLATFORM_FIELDS)

COLUMN_KEYS = {"title", "path", "order", "error_path", "exclude_from_ranking"}
"""EXTRA_RESULT_COLUMNS_SCHEMA of the platform; the first three are required."""


@pytest.fixture(scope="module")
def metrics():
    """What the bundled submission gets, as the platform reads it."""
    results = flare.evaluate(ROOT / "examples" / "predictions", ROOT / "ground-truth")
    return json.loads(metrics_json(results))


@pytest.fixture
def settings():
    return json.loads(SETTINGS.read_text(encoding="utf-8"))


def documented():
    """Every row of the documentation's table: what is done with the field, and why."""
    text = (ROOT / "docs" / "organisers" / "phase-settings.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {name: (value, why) for name, value, why in rows}


def test_every_field_of_the_platform_is_accounted_for():
    rows = documented()

    assert set(rows) == set(FIELDS)
    assert {value for value, _ in rows.values()} == {"set", "left alone", "read-only"}
    assert all(why.endswith(".") for _, why in rows.values())


@pytest.mark.parametrize("phase", PHASES)
def test_the_file_has_what_the_platform_takes(settings, metrics, phase):
    """Fields that are set, columns by its schema, and paths that lead to numbers.

    The score alone is ranked: a null in another column would remove a result.
    """
    expected = {name for name, (value, _) in documented().items() if value == "set"}
    assert set(settings[phase]) == expected
    columns = settings[phase]["extra_results_columns"]
    organs = [organ.name for organ in flare.read_challenge("flare21").organs]
    assert {column["path"] for column in columns} == {"aggregates.nsd_mean"} | {
        f"aggregates.{metric}_{organ}_mean"
        for metric in ("dsc", "nsd")
        for organ in organs
    }
    for column in columns:
        assert set(column) == COLUMN_KEYS
        assert column.pop("order") in ("asc", "desc")
        assert type(column.pop("exclude_from_ranking")) is bool
        assert {type(text) for text in column.values()} == {str}
    found = read_phase(SETTINGS, phase)
    assert found.ranked == {"aggregates.dsc_mean": Order.DESCENDING}
    # A single case has no standard deviation: the sanity check shows none.
    assert len(found.paths) == (10 if phase == "sanity" else 20)
    for path in found.paths:
        value = value_at(metrics, path)
        assert type(value) is float
        assert math.isfinite(value)


def test_the_bundled_file_is_what_the_command_prints():
    run = run_program("phase-settings", program=("-m", "flare"))

    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.decode() == SETTINGS.read_text(encoding="utf-8")


# --- Paths ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1.5),
        ("a", {"b": 1.5, "c d": None, "l": [7]}),
        ("a.c d", None),
        ("a.x", ""),
        ("x.y.z", ""),
        ("a.b.c", ""),
        ("$.a.b", ""),
        ("a.l.0", ""),
        ("a.l[0]", ""),
    ],
)
def test_a_path_is_keys_between_full_stops(path, value):
    assert value_at({"a": {"b": 1.5, "c d": None, "l": [7]}}, path) == value


# --- Mistakes ---------------------------------------------------------------------


GOOD = {"title": "M", "score_title": "S", "score_jsonpath": "aggregates.dsc_mean"}
COLUMN = {"title": "NSD", "path": "aggregates.nsd_mean", "order": "desc"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"score_jsonpat": "a"}, "mine.score_jsonpat is an unknown key (did you mean"),
        ({"title": ""}, "mine.title is '', expected 1 to 64 characters"),
        ({"title": "x" * 65}, "expected 1 to 64 characters"),
        ({"score_jsonpath": "$.a"}, "mine.score_jsonpath is '$.a', expected keys"),
        ({"score_jsonpath": "a..b"}, "expected keys with full stops between them"),
        ({"score_jsonpath": "a" * 256}, "0 to 255 characters"),
        ({"score_default_sort": "up"}, "score_default_sort is 'up', expected asc or"),
        ({"scoring_method_choice": "mean"}, "expected abs, avg or med"),
        ({"result_display_choice": "best"}, "expected all, rec or bst"),
        ({"score_decimal_places": "4"}, "decimal_places is '4', expected a whole"),
        ({"score_decimal_places": -1}, "places is -1, expected at least 0 and at"),
        ({"score_decimal_places": 21}, "places is 21, expected at least 0 and at"),
        ({"submission_limit_period": 0}, "expected at least 1"),
        ({"submissions_limit_per_user_per_period": -1}, "expected at least 0"),
        ({"evaluation_requires_memory_gb": 3}, "is 3, expected at least 4"),
        ({"evaluation_requires_memory_gb": 33}, "is 33, expected at least 4"),
        ({"supplementary_file_label": "x" * 33}, "expected 0 to 32 characters"),
        ({"supplementary_url_help_text": "x" * 129}, "expected 0 to 128"),
        ({"extra_results_columns": [{}]}, "extra_results_columns[1].title is missing"),
        ({"extra_results_columns": [{**COLUMN, "order": "down"}]},
         "extra_results_columns[1].order is 'down', expected asc or desc"),
        ({"extra_results_columns": [{**COLUMN, "error": "a"}]},
         "extra_results_columns[1].error is an unknown key"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_field_the_value_and_what_is_allowed(
    tmp_path, changes, problem
):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"mine": {**GOOD, **changes}}))

    error = error_of(PhaseSettingsError, read_phase, file, "mine")

    assert problem in str(error)
    assert str(error).startswith(f"{safe(file)}: mine.")
    assert str(error).endswith("Phase settings explains every field. [G04]")


MOST = {"title": 64, "supplementary_file_label": 32, "supplementary_url_help_text": 128}
NUMBERS = ("score_decimal_places", "evaluation_requires_memory_gb")


@pytest.mark.parametrize(
    "values",
    [
        {key: "x" * most for key, most in {**MOST, "score_jsonpath": 255}.items()},
        {**dict(zip(NUMBERS, (20, 32), strict=True)), "submission_limit_period": None},
        {**dict(zip(NUMBERS, (0, 4), strict=True)), "submission_limit_period": 1},
        {"title": "x"},
    ],
)
def test_settings_at_their_limits_are_read(tmp_path, values):
    (tmp_path / "settings.json").write_text(json.dumps({"mine": {**GOOD, **values}}))

    found = read_phase(tmp_path / "settings.json", "mine")

    assert {name: getattr(found, name) for name in values} == values


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read (no such file"),
        ("{", "is not JSON"),
        ("[]", "has no phase mine (found no object)"),
        ('{"a": {}, "b": {}}', "has no phase mine (found a, b)"),
        ('{"mine": 3}', "mine is 3, expected a table"),
    ],
)
def test_a_file_that_is_no_settings(tmp_path, content, problem):
    file = tmp_path / "settings.json"
    if content is not None:
        file.write_text(content)

    assert problem in str(error_of(PhaseSettingsError, read_phase, file, "mine"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.00015, "0.0002"),  # its double is below, and prints as 0.0001
        (0.00025, "0.0003"),  # its double is above
        (0.12345, "0.1235"),
        (0.123449999, "0.1234"),
        (1, "1.0000"),
        (True, "1.0000"),
        (-0.00015, "-0.0002"),
        (1e300, "1" + "0" * 300 + ".0000"),
    ],
)
def test_the_board_rounds_the_shortest_decimals_half_up(value, shown):
    """As Django's floatformat does: 0.00015 is 0.0002, whatever its double is."""
    assert rounded(value, 4) == shown
