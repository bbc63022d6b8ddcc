"""How a team was measured: going on, as a ranking reads it, and unlike computers."""

import json

import pytest

from flare.results.errors import MeasurementError
from flare.results.measurement_json import (
    COMPARED,
    OF_HOST,
    SETTINGS,
    Measurement,
    MeasurementLog,
    read_measurement,
    unlike_teams,
)
from tests.builders.pages import write_json

NOTHING = Measurement(settings={}, noise_s=None)


def test_what_was_written_comes_back(tmp_path):
    file = tmp_path / "measurement.json"
    log = MeasurementLog(file, {"timeout_s": 60, "archive_sha256": "a"})
    log.add({"gpu": None, "engine": {"version": "28"}, "engine_cost_s": None})
    assert read_measurement(file).settings["device"] == "no GPU"
    cost = {"smallest": 0.25, "largest": 0.5}
    gpu = {"name": "A100", "driver": "570"}
    log.add({"gpu": gpu, "engine": {"version": "29"}, "engine_cost_s": cost})

    assert read_measurement(file) == Measurement(
        settings={"timeout_s": "60", "device": "A100 (driver 570)", "engine": "29"},
        noise_s=0.25,
    )


OF_OTHERS = [
    *("{", "[]", '{"settings": {}}', '{"settings": 5, "sessions": []}'),
    '{"settings": {}, "sessions": 3}',
]
"""Files that another program has written."""


@pytest.mark.parametrize(
    "content", [None, *OF_OTHERS, '{"settings": {}, "sessions": ["x"]}']
)
def test_no_file_or_that_of_another_program_tells_nothing(tmp_path, content):
    file = tmp_path / "measurement.json"
    if content is not None:
        file.write_text(content)

    assert read_measurement(file) == NOTHING


# --- Going on ---------------------------------------------------------------------


def written(tmp_path, settings, *sessions):
    content = {"settings": settings, "sessions": sessions}
    return write_json(tmp_path / "measurement.json", content)


def test_a_measurement_goes_on_with_its_settings_alone(tmp_path):
    settings = {"repeats": 1, "labels": "1, 7", "max_gpu_memory": "stable"}
    file = written(tmp_path, settings)

    MeasurementLog(file, settings)

    with pytest.raises(MeasurementError, match="with labels 1, 7, now it is 1, 8"):
        MeasurementLog(file, settings | {"labels": "1, 8"})


@pytest.mark.parametrize("content", OF_OTHERS)
def test_a_measurement_does_not_go_on_in_a_file_of_another_program(tmp_path, content):
    file = tmp_path / "measurement.json"
    file.write_text(content)

    with pytest.raises(MeasurementError, match="not what this program has written"):
        MeasurementLog(file, {})


def test_a_measurement_goes_on_in_a_file_of_a_later_version(tmp_path):
    content = {"settings": {}, "sessions": [{"kernel": "7"}], "signature": "x"}
    file = write_json(tmp_path / "measurement.json", content)

    MeasurementLog(file, {}).add({"gpu": None})

    sessions = json.loads(file.read_text())["sessions"]
    assert [session.get("kernel") for session in sessions] == ["7", None]


def test_settings_that_are_not_equal_for_all_teams():
    """One that a file has only where it is another one counts as its default.

    The version of the engine may differ.
    """
    a = {"memory": "28g", "repeats": "1", "device": "A100", "engine": "28"}
    b = {"memory": "28g", "repeats": "3", "device": "H100", "engine": "29"}
    b["contract"] = "algorithm x"
    teams = {
        "a": Measurement(settings=a, noise_s=None),
        "b": Measurement(settings=b, noise_s=None, unlike=("a move",)),
        "nothing": NOTHING,
    }

    assert list(unlike_teams(teams)) == [
        "Teams were measured with different repeats: a 1, b 3",
        "Teams were measured with different contract: a flare, b algorithm x",
        "Teams were measured with different device: a A100, b H100",
        "b was not measured on one steady computer: a move",
    ]


# --- Unlike computers -------------------------------------------------------------

OLD = {"unlike": {"reason": "it broke", "found": ["integers take 1.50 times as long"]}}


def test_what_was_accepted_is_told_of_old_files_too(tmp_path):
    now = {"unlike": {"reason": "moved", "found": ["cpus is 1-3 instead of 1-7"]}}
    odd = {"unlike": None}, {"unlike": 3}, "none"

    found = read_measurement(written(tmp_path, {"memory": "28g"}, OLD, now, *odd))

    assert found.unlike == (
        "integers take 1.50 times as long (accepted: it broke)",
        "cpus is 1-3 instead of 1-7 (accepted: moved)",
    )


def test_settings_are_compared_unless_they_are_of_a_team_alone():
    """In the order in which rankings have named them so far."""
    assert COMPARED[:3] == ("timeout_s", "memory", "shm_size")
    of_a_team = {"archive_sha256", "model_sha256", "labels", "answers"}
    assert set(SETTINGS) - set(COMPARED) == of_a_team
    assert set(OF_HOST) == {"gpu", "processor", "cpus"}
