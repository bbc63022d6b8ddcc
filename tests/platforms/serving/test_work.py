"""What is done with an archive: in time, and no value is better for a failed case."""

import json
import os
import signal
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from flare.common.errors import as_flare_error
from flare.platforms.serving.work import (
    NoCaseError,
    OverdueSignal,
    ServedWork,
    ended_after,
    returned_metrics,
)
from tests.builders import error_of
from tests.builders.measured import write_measured
from tests.builders.pages import write_json

WORST = {"runtime_s": 3600, "max_gpu_memory_mb": 24576}
CASES = ("case_1", "case_2", "case_3")
SCORES = {"liver": (0.9, 0.8, 0.7)}


@pytest.fixture
def team(tmp_path):
    """A measured team of three cases, which took 10, 11 and 12 s."""

    def make(failed=None):
        return write_measured(tmp_path, CASES, failed=failed, scores=SCORES)

    return make


def test_times_memory_and_statuses_are_beside_the_scores(team):
    found = returned_metrics(team(), WORST)

    assert found["case"]["runtime_s"] == {"0": 10, "1": 11, "2": 12}
    assert found["case"]["max_gpu_memory_mb"] == {"0": 1000, "1": 1100, "2": 1200}
    assert found["case"]["status"] == {"0": "ok", "1": "ok", "2": "ok"}
    aggregates = found["aggregates"]
    assert aggregates["runtime_s_mean"] == 11
    assert aggregates["runtime_s_std"] == 1
    assert aggregates["max_gpu_memory_mb_mean"] == 1100
    assert (aggregates["cases_ok"], aggregates["cases_failed"]) == (3, 0)
    assert "dsc_liver" in found["case"]


def test_a_case_that_has_failed_counts_as_the_slowest_there_can_be(team):
    """(10 + 3600 + 12) / 3 s; (1000 + 24576 + 1200) / 3 MB."""
    folder = team({"case_2": ("failed", "exit code 3")})

    found = returned_metrics(folder, WORST)

    assert found["case"]["runtime_s"] == {"0": 10, "1": None, "2": 12}
    assert found["case"]["status"]["1"] == "failed"
    assert found["aggregates"]["runtime_s_mean"] == pytest.approx(3622 / 3)
    assert found["aggregates"]["max_gpu_memory_mb_mean"] == pytest.approx(26776 / 3)
    assert found["aggregates"]["cases_failed"] == 1

    # Without a GPU that says how much it has, no number can stand for a failure.
    found = returned_metrics(folder, {**WORST, "max_gpu_memory_mb": None})
    assert "max_gpu_memory_mb_mean" not in found["aggregates"]
    assert json.dumps(found, allow_nan=False)


def test_all_cases_failed_is_no_result(team):
    failed = dict.fromkeys(CASES, ("failed", "exit code 3; see logs/x.log"))
    failed["case_3"] = ("timed out", "after 3600 s")

    error = error_of(NoCaseError, returned_metrics, team(failed), WORST)

    assert error.finding == (
        "0 of 3 cases gave all that is scored: 2 failed, 1 timed out (the first: an"
        " exit code other than 0)"
    )


def test_a_long_message_is_cut_and_names_no_case(team):
    failed = {case: ("failed", f"{case} " + "x" * 500) for case in CASES}

    text = str(error_of(NoCaseError, returned_metrics, team(failed), WORST))

    assert f"the first: CASE {'x' * 82}...)" in text
    assert len(text) < 300


def test_what_was_just_written_and_cannot_be_read_is_of_that_submission(
    team, tmp_path, monkeypatch
):
    """An error of the organisers would end the service at every start."""
    folder = team()
    content = json.loads((folder / "metrics.json").read_text())
    content["case"]["dsc"]["0"] = 1.5
    write_json(folder / "metrics.json", content)
    monkeypatch.setattr("flare.platforms.serving.work.evaluate_team", Mock())
    options = SimpleNamespace(ground_truth=tmp_path, workers=1)
    job = SimpleNamespace(results=tmp_path.parent, options=options, challenge=None)
    work = ServedWork(job=job, worst=WORST, telling=None, is_named=True)

    with pytest.raises(Exception, match="dsc is 1") as error:
        work.score(folder.name)

    fault = as_flare_error(error.value)
    assert (fault.code, "1.5" in str(fault)) == ("X01", False)
    assert "RankingError" in fault.trace


LEAK = "liver_1200ml_spleen_210ml"
"""What a container may call a file, once it has seen a CT that its author has not."""

WRONG = [
    f"{LEAK}.nii.gz: the file cannot be read. Write it again. [F06]; see logs/x.log",
    f"expected one label map, found {LEAK}.nii.gz, x.nii.gz; see logs/x.log",
    f"{LEAK}.nii.gz: 99 bytes are more than any label map of this CT; see logs/x.log",
    f"{LEAK} [F09]; see {LEAK} [F11]",
]


NUMBERS = [
    ("failed", "the container ended with exit code 173 after 173.4 s; see logs/x.log"),
    ("out of memory", "the container ended with exit code 173 after 173.4 s: its mem"),
    ("failed", "the container was ended after 173.4 s: it took too much of the disk"),
    ("timed out", "the container was ended after 173.4 s; see logs/x.log"),
]


@pytest.mark.parametrize(
    ("status", "message"), [*(("wrong output", text) for text in WRONG), *NUMBERS]
)
@pytest.mark.parametrize("count", [1, 3])
def test_nothing_that_a_container_has_chosen_is_told(team, status, message, count):
    """A number may be the HU or the volume of something in a CT."""
    failed = dict.fromkeys(CASES[:count], (status, message))
    folder = team(failed)
    content = json.loads((folder / "metrics.json").read_text())
    content["failed"] = dict.fromkeys(failed, f"{status}: {message}")
    write_json(folder / "metrics.json", content)

    if count == len(CASES):
        told = str(error_of(NoCaseError, returned_metrics, folder, WORST))
        assert f" that is scored: 3 {status} (the first: " in told
    else:
        returned = returned_metrics(folder, WORST)
        assert LEAK not in json.dumps(returned)
        told = json.dumps(returned["failed"])
        assert f'"case_1": "{status}: ' in told

    is_wrong = status == "wrong output"
    assert ("its output is refused" if is_wrong else "the container ") in told
    assert [secret for secret in (LEAK, "173") if secret in told] == []
    written = (folder / "efficiency.csv").read_text()
    assert (LEAK if is_wrong else "173") in written


def test_labels_and_sizes_that_a_container_has_chosen_are_the_organisers_to_see(team):
    """Warnings name labels; a case that ran, and cannot be scored, names its size."""
    folder = team()
    content = json.loads((folder / "metrics.json").read_text())
    line = "labels 173 and 1730 are no organs and count as background, in 1 of 3 files"
    content["warnings"] = [line]
    content["low_scores"] = [{"reason": line, "cases": ["case_1"]}]
    content["failed"] = {"case_2": "case_2.nii.gz: size is 173 x 173 x 173 voxels"}
    write_json(folder / "metrics.json", content)

    returned = returned_metrics(folder, WORST)

    assert "173" not in json.dumps(returned)
    assert returned["failed"] == {"case_2": "its output is refused"}
    assert len(returned["warnings"]) == 1
    assert returned_metrics(team(), WORST)["warnings"] == []


# --- The hours --------------------------------------------------------------------

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("left", [0, -5, 0.05])
def test_what_runs_is_ended_and_nothing_behind_it(left):
    """Without time, it is not begun."""
    begin, before = time.monotonic(), signal.getsignal(signal.SIGALRM)

    with pytest.raises(OverdueSignal), ended_after(left):
        time.sleep(60)
    with ended_after(0.05):
        pass
    time.sleep(0.1)

    assert time.monotonic() - begin < 30
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_signal_on_the_way_out_is_the_last(monkeypatch):
    """It comes when the block has ended, and the timer is not off yet."""
    before, real = signal.getsignal(signal.SIGALRM), signal.setitimer
    calls = []

    def late(timer, seconds, repeat=0.0):
        calls.append(seconds)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGALRM)
        real(timer, seconds, repeat)

    monkeypatch.setattr(signal, "setitimer", late)
    try:
        with pytest.raises(OverdueSignal), ended_after(60):
            pass

        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        real(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
