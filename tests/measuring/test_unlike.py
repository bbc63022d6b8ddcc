"""Computers that are unlike the one that a team was measured on before."""

import json
import shutil

import pytest

from flare.results.errors import MeasurementError
from flare.results.measurement_json import MeasurementLog
from tests.builders.schemas import file_problems

AGAIN = {"rerun": ("validation_001",), "reason": "the computer was busy"}


@pytest.fixture
def measured(bench, measured_once):
    """A bench on which a team was measured."""
    for name in ("archives", "results"):
        shutil.copytree(measured_once.folder / name, bench.folder / name)
    return bench, bench.folder / "archives" / "good.tar.gz"


def record(bench, team="good"):
    """A team's measurement.json, which is as its schema says."""
    file = bench.results / team / "measurement.json"
    assert file_problems(file, "measurement") == []
    return json.loads(file.read_text())


def said(error):
    """A message, whose file must be the team's measurement.json."""
    file, _, text = str(error).partition(": ")
    assert file.endswith("good/measurement.json")
    return text


def change_setting(bench, name, value):
    """Let a team's measurement.json say that a setting was another one."""
    file = bench.results / "good" / "measurement.json"
    content = json.loads(file.read_text())
    content["settings"][name] = value
    file.write_text(json.dumps(content))


def test_another_processor_is_refused_and_can_be_accepted(measured):
    """The file keeps what the team was measured with first."""
    bench, archive = measured
    now = record(bench)["settings"]["processor"]
    change_setting(bench, "processor", "Abacus 9000")

    failed = bench.measure(archive, cases=1, **AGAIN)

    assert said(failed["good"]) == (
        "the team was measured with"
        f" processor Abacus 9000, now it is {now}. Measure it as before, or all anew"
        " with another --output. Or accept it: --unlike-host REASON. [H07]"
    )
    assert bench.measure(archive, cases=1, unlike_host="it broke", **AGAIN) == {}
    content = record(bench)
    assert content["settings"]["processor"] == "Abacus 9000"
    assert content["sessions"][1]["unlike"]["found"] == [
        f"processor is {now} instead of Abacus 9000"
    ]


@pytest.mark.parametrize(
    ("name", "before", "now"), [("gpu", "GPU-1", ""), ("memory", "28g", "14g")]
)
def test_what_is_no_other_computer_is_never_accepted(tmp_path, name, before, now):
    """No GPU at all instead of one, or another limit."""
    file = tmp_path / "measurement.json"
    MeasurementLog(file, {name: before}).add({})

    with pytest.raises(MeasurementError) as caught:
        MeasurementLog(file, {name: now}, accepted=("gpu", "processor", "cpus"))

    assert "--unlike-host" not in str(caught.value)


def test_another_gpu_of_the_same_name_can_be_accepted(tmp_path):
    file = tmp_path / "measurement.json"
    MeasurementLog(file, {"gpu": "GPU-1"}).add({})

    log = MeasurementLog(file, {"gpu": "GPU-2"}, accepted=("gpu",))

    assert log.unlike == ["gpu is GPU-2 instead of GPU-1"]


def test_a_team_of_apptainer_does_not_go_on_with_docker(measured):
    """Earlier versions had it; their files are still read."""
    bench, archive = measured
    change_setting(bench, "container_engine", "apptainer")

    failed = bench.measure(archive, cases=1, unlike_host="it is gone", **AGAIN)

    assert said(failed["good"]).startswith(
        "the team was measured with container_engine apptainer, now it is docker."
    )
