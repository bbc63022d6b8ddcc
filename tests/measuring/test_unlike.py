"""Computers that are unlike the one that a team was measured on before."""

import json
import shutil

import pytest

from flare.results.errors import MeasurementError
from flare.results.measurement_json import MeasurementLog
from tests.builders.schemas import file_problems
from tests.builders.teams import PREDICT

pytestmark = pytest.mark.usefixtures("calibrating")

AGAIN = {"rerun": ("validation_001",), "reason": "the computer was busy"}

SLOWED = f"""
cp "$SCRIPTED/../../slower" "$SCRIPTED/../../calibration"
{PREDICT}
"""
"""While it runs, the computer becomes slower."""


@pytest.fixture
def measured(bench, measured_once):
    """A bench on which a team was measured: integers 20 ms, memory 25 ms a round."""
    bench.engine.calibrate(integers_ns=20_000_000, memory_ns=25_000_000)
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


# --- Before the cases -------------------------------------------------------------


def test_an_unlike_computer_is_refused(measured):
    """30 / 20 and 60 / 25 times as long; nothing is run."""
    bench, archive = measured
    before = (bench.results / "good" / "efficiency.csv").read_bytes()
    bench.engine.calibrate(integers_ns=30_000_000, memory_ns=60_000_000)

    failed = bench.measure(archive, cases=1, **AGAIN)

    assert said(failed["good"]) == (
        "this computer is unlike the one that the team was measured on:"
        " integers take 1.50 times as long, memory takes 2.40 times as long. Measure it"
        " there, or all anew with another --output, or accept it: --unlike-host REASON."
        " [H07]"
    )
    assert (bench.results / "good" / "efficiency.csv").read_bytes() == before
    assert len(record(bench)["sessions"]) == 1
    assert bench.engine.left() == []


def test_a_faster_one_is_refused_as_well(measured):
    bench, archive = measured
    bench.engine.calibrate(integers_ns=10_000_000, memory_ns=25_000_000)

    failed = bench.measure(archive, cases=1, **AGAIN)

    assert "integers take 0.50 times as long. " in str(failed["good"])


@pytest.mark.slow
def test_it_is_accepted_for_a_reason_that_is_kept(measured):
    bench, archive = measured
    bench.engine.calibrate(integers_ns=30_000_000, memory_ns=25_000_000)

    failed = bench.measure(archive, cases=1, unlike_host="the old one broke", **AGAIN)

    assert failed == {}
    first, second = record(bench)["sessions"]
    assert first["unlike"] is None
    assert second["unlike"] == {
        "reason": "the old one broke",
        "found": ["integers take 1.50 times as long"],
    }


@pytest.mark.slow
def test_the_first_computer_counts_and_not_the_last(measured):
    """A fifth slower, and again a fifth: 44 % slower than it was at first."""
    bench, archive = measured
    bench.engine.calibrate(integers_ns=24_000_000, memory_ns=25_000_000)
    assert bench.measure(archive, cases=1, **AGAIN) == {}
    bench.engine.calibrate(integers_ns=28_800_000, memory_ns=25_000_000)

    failed = bench.measure(archive, cases=1, **AGAIN)

    assert "integers take 1.44 times as long" in str(failed["good"])
    assert record(bench)["sessions"][1]["unlike"] is None


@pytest.mark.slow
def test_it_may_go_on_on_the_first_one_after_another_that_was_accepted(measured):
    bench, archive = measured
    bench.engine.calibrate(integers_ns=30_000_000, memory_ns=25_000_000)
    bench.measure(archive, cases=1, unlike_host="the old one was away", **AGAIN)
    bench.engine.calibrate(integers_ns=20_000_000, memory_ns=25_000_000)

    assert bench.measure(archive, cases=1, **AGAIN) == {}
    assert record(bench)["sessions"][2]["unlike"] is None


@pytest.mark.slow
def test_without_a_calibration_nothing_is_compared(measured):
    """That is in the record, and stands in nobody's way."""
    bench, archive = measured
    (bench.engine.state / "calibration").write_text("")

    assert bench.measure(archive, cases=1, **AGAIN) == {}

    found = record(bench)["sessions"][1]["calibration"]["before"]
    assert found["integers_s"] is None
    assert found["problem"].startswith("what it wrote cannot be read")


# --- Afterwards -------------------------------------------------------------------


@pytest.mark.slow
def test_a_computer_that_changes_meanwhile_is_refused_until_accepted(bench):
    """By the measurement itself, and by the next one; what was measured is kept."""
    bench.engine.calibrate(integers_ns=30_000_000, memory_ns=24_000_000)
    (bench.engine.state / "calibration").rename(bench.engine.state / "slower")
    bench.engine.calibrate(integers_ns=20_000_000, memory_ns=24_000_000)
    archive = bench.archive("good", SLOWED)

    found = [bench.measure(archive, cases=1)["good"] for _ in range(2)]

    assert {said(error) for error in found} == {
        "the computer has changed while the team was measured: integers take"
        " 1.50 times as long afterwards. Measure it anew with another --output, or"
        " accept it: --unlike-host REASON. [H07]"
    }
    assert bench.rows("good")["validation_001"]["status"] == "ok"
    assert bench.engine.left() == []

    assert bench.measure(archive, cases=1, unlike_host="a fan broke") == {}
    assert bench.measure(archive, cases=1) == {}
    (session,) = record(bench)["sessions"]
    assert session["unlike"] == {
        "reason": "a fan broke",
        "found": ["integers take 1.50 times as long afterwards"],
    }


# --- Names ------------------------------------------------------------------------


@pytest.mark.slow
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
