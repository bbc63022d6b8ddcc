"""How a team was measured, as a ranking reads it."""

import json

import pytest

from flare.results.measurement_json import (
    Measurement,
    MeasurementLog,
    read_measurement,
)

NOTHING = Measurement(settings={}, made_with={}, noise_s=None)


def test_what_was_written_comes_back(tmp_path):
    file = tmp_path / "measurement.json"
    log = MeasurementLog(file, {"timeout_s": 60, "archive_sha256": "a"})
    log.add({"gpu": None, "engine": {"version": "28"}, "engine_cost_s": None})
    cost = {"smallest": 0.25, "largest": 0.5}
    gpu = {"name": "A100", "driver": "570"}
    log.add({"gpu": gpu, "engine": {"version": "29"}, "engine_cost_s": cost})

    assert read_measurement(file) == Measurement(
        settings={"timeout_s": "60"},
        made_with={"device": "A100 (driver 570)", "engine": "29"},
        noise_s=0.25,
    )


def test_without_a_gpu(tmp_path):
    log = MeasurementLog(tmp_path / "measurement.json", {})
    log.add({"gpu": None})

    found = read_measurement(tmp_path / "measurement.json")

    assert found == Measurement(
        settings={}, made_with={"device": "no GPU"}, noise_s=None
    )


@pytest.mark.parametrize(
    "content", ["{", [], {"settings": 5}, {"settings": {}, "sessions": ["x"]}]
)
def test_the_file_of_another_program_tells_nothing(tmp_path, content):
    file = tmp_path / "measurement.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))

    assert read_measurement(file) == NOTHING


def test_a_team_that_was_not_measured(tmp_path):
    assert read_measurement(tmp_path / "measurement.json") == NOTHING
