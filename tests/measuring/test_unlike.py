"""Computers that are unlike the one that a team was measured on before."""

import pytest

from flare.results.errors import MeasurementError
from flare.results.measurement_json import MeasurementLog
from tests.builders.teams import PREDICT

AGAIN = {"rerun": ("validation_001",), "reason": "the computer was busy"}


def said(error):
    """A message, whose file must be the team's measurement.json."""
    file, _, text = str(error).partition(": ")
    assert file.endswith("good/measurement.json")
    return text


def test_another_processor_is_refused_and_can_be_accepted(bench):
    """The file keeps what the team was measured with first."""
    archive = bench.archive("good", PREDICT)
    bench.measure(archive, cases=1)
    now = bench.record("good")["settings"]["processor"]
    bench.change_setting("good", "processor", "Abacus 9000")

    failed = bench.measure(archive, cases=1, **AGAIN)

    text = said(failed["good"])
    assert text.startswith(
        f"the team was measured with processor Abacus 9000, now it is {now}"
    )
    assert text.endswith("Or accept it: --unlike-host REASON. [H07]")
    assert bench.measure(archive, cases=1, unlike_host="it broke", **AGAIN) == {}
    content = bench.record("good")
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
