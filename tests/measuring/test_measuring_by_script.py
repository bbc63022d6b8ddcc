"""Whole measurements with an engine that plays by a script: each status, and going on.

What a real engine does with the same images is in `test_measure.py`.
"""

import csv
import json
import re
from contextlib import nullcontext
from unittest import mock

import pytest

from flare.common.errors import EngineError
from flare.measuring.engines.interface import ENGINES
from flare.measuring.measure import count_done
from flare.measuring.sampling import ControlGroup
from flare.results.errors import ChangedSettingError, MeasurementError
from flare.results.measurement_json import MeasurementLog
from tests.builders.errors import told
from tests.builders.fewer import few_fast
from tests.builders.lanes import measuring
from tests.builders.teams import PREDICT, SCRIPTS
from tests.fakes.plain import PlainEngine
from tests.measuring.conftest import FakeGpu

pytestmark = pytest.mark.newest  # they wait for processes

HUNGRY = "touch $SCRIPTED/out-of-memory; echo killed; exit 137"
NOBODY = "echo 'unable to find user nobody' > $SCRIPTED/error; exit 126"

STATUSES = {
    "good": (PREDICT, "ok", r""),
    "crash": (SCRIPTS["crash"], "failed", r"the container ended with exit code 3 a.*"),
    "hang": (SCRIPTS["hang"], "timed out", r"the container was ended after \d\.\d s"),
    "hungry": (HUNGRY, "out of memory", r".* exit code 137 .* memory did not .*"),
    "silent": (SCRIPTS["silent"], "no output", r"it has written nothing to /workspa.*"),
    "misnamed": (SCRIPTS["misnamed"], "wrong output", r".*\[F03\]"),
    "text": (SCRIPTS["text"], "wrong output", r".*\[F06\]"),
    "link": (SCRIPTS["link"], "wrong output", r".*it is a link.*\[F06\]"),
    "nobody": (NOBODY, "failed", r"the engine cannot run it: unable to find.*"),
}
"""Each team's script, and what comes of it."""


@pytest.mark.parametrize("team", few_fast(STATUSES, fast=[0, 1, 3, 4, 5, 6, 7, 8]))
def test_the_status_of_a_team(bench, team):
    """Only the good one has values and a prediction; nothing is left behind."""
    script, status, message = STATUSES[team]

    failed = bench.measure(bench.archive(team, script), cases=1)

    assert failed == {}
    row = bench.rows(team)["validation_001"]
    assert row["status"] == status
    see = "" if status == "ok" else r"; see logs/validation_001\.log"
    assert re.fullmatch(message + see, row["message"])
    for name in ("runtime_s", "engine_runtime_s"):
        assert bool(row[name]) == (status == "ok")
    folder = bench.results / team
    predictions = [p.name for p in (folder / "predictions").glob("*")]
    assert predictions == (["validation_001.nii.gz"] if status == "ok" else [])
    assert (folder / "logs" / "validation_001.log").exists()
    assert (folder / "traces" / "validation_001.csv").exists()
    assert bench.engine.left() == []
    assert bench.hidden() == []
    assert bench.told == [(team, "validation_001", status, 1, 1), team]


def test_an_image_that_cannot_start_is_tried_twice_beside_one_of_ours(bench):
    bench.measure(bench.archive("nobody", NOBODY), cases=1)

    runs = bench.engine.calls("create --label")
    teams = [line.endswith("predict.sh") for line in runs if "/hold" not in line]
    assert teams == [False, True, False, True, False]
    log = bench.results / "nobody" / "logs" / "validation_001.log"
    assert log.read_text() == "unable to find user nobody\n"


def test_the_record_has_what_matters(bench):
    bench.measure(bench.archive("good", PREDICT), cases=1)

    record = bench.record("good")
    assert record["settings"]["timeout_s"] == 3
    assert record["settings"]["caches"] == "warm"
    (session,) = record["sessions"]
    assert (session["team"], session["archive"]) == ("good", "good.tar.gz")
    assert session["engine"]["version"] == "24.0.7"
    assert session["weaknesses"] == []
    assert session["engine_cost_s"]["runs"] == 1
    assert session["gpu"] is None
    assert (session["warm_up"], session["interleaved"]) == (False, False)
    assert "/docker create --label flare.measure=KEY --env NV" in session["command"]
    assert session["command"].endswith("IMAGE /bin/bash -c 'sh predict.sh'")


def test_the_first_case_is_run_once_more_to_warm_up(bench):
    """And nothing of that run is kept."""
    script = f"echo >> runs\n{PREDICT}\nwc -l < runs"

    bench.measure(bench.archive("good", script), cases=1, has_warm_up=True)

    log = bench.results / "good" / "logs" / "validation_001.log"
    assert log.read_text() == "2\n"
    assert len(bench.told) == 2


def test_the_memory_of_a_gpu_is_that_of_all_samples(bench):
    """The same at all times, so it is stable.

    With repeats, and a case that is run again, every column has something.
    """
    archive = bench.archive("good", f"sleep 0.1\n{PREDICT}")
    (bench.engine.state / "gpus").touch()
    again = {"rerun": ("validation_001",), "reason": "the GPU was hot"}
    for options in ({}, again):
        bench.measure(archive, cases=1, gpu=FakeGpu(), repeats=2, **options)

    row = bench.rows("good")["validation_001"]
    for name in ("max_gpu_memory_mb", "peak_gpu_memory_mb", "idle_gpu_memory_mb"):
        assert row[name] == "300"
    assert (row["energy_j"], row["idle_power_w"]) == ("7.0", "61.5")
    area = float(row["gpu_memory_area_mb_s"]) / (300 * float(row["runtime_s"]))
    assert 0.5 < area < 1
    assert "1" in row["doubts"]
    assert (row["repeats"], float(row["runtime_s_spread"]) > 0) == ("2", True)
    # The scripted engine has no control groups.
    unknown = {"cpu_area_percent_s", "cpu_s", "max_host_memory_mb", "message"}
    assert {name for name, value in row.items() if not value} == unknown
    sessions = bench.record("good")["sessions"]
    assert [session["gpu"]["name"] for session in sessions] == ["G", "G"]


LOSING = "echo >> runs\n[ $(wc -l < runs) != 1 ] || { echo no CUDA; exit 3; }\n"
"""The first run of an image ends like that of a container whose GPU was taken."""


@pytest.mark.parametrize(
    ("script", "own", "status", "runs"),
    [
        (f"{LOSING}{PREDICT}", {1}, "ok", 2),
        # It was not seen on the GPU.
        (f"{LOSING}{PREDICT}", {2}, "failed", 1),
        ("echo >> runs\nexit 3", {1}, "failed", 2),
        ("echo >> runs\nsleep 600", {1}, "timed out", 1),
    ],
    ids=["lost", "never there", "crash", "hang"],
)
def test_a_container_that_fails_after_it_has_used_the_gpu_is_run_once_more(
    bench, monkeypatch, script, own, status, runs
):
    """FakeGpu has process 1."""
    monkeypatch.setattr(ControlGroup, "processes", lambda _: frozenset(own))
    (bench.engine.state / "gpus").touch()

    script = script.replace("runs", str(bench.folder / "runs"))
    bench.measure(bench.archive("a", script), cases=1, gpu=FakeGpu())

    row = bench.rows("a")["validation_001"]
    assert row["status"] == status
    assert (bench.folder / "runs").read_text().count("\n") == runs
    lost = "before, it used the GPU, and the container ended with exit code 3 after"
    assert (lost in row["doubts"]) == (status == "ok")


# --- Several teams ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "problem"),
    [
        (None, "docker create: no space left on device"),
        # It knows none.
        (FakeGpu(), "An empty container cannot be run (could not select device driver"),
    ],
)
def test_an_engine_that_runs_nothing_is_no_team_s_fault(bench, gpu, problem):
    if not gpu:
        bench.engine.fail("create", "no space left on device")

    failed = bench.measure(bench.archive("good", PREDICT), cases=1, gpu=gpu)

    assert isinstance(failed["good"], EngineError)
    assert problem in str(failed["good"])
    assert not (bench.results / "good" / "efficiency.csv").exists()
    assert bench.engine.left() == []


# --- Going on ---------------------------------------------------------------------


def test_an_engine_that_fails_in_between_is_no_team_s_fault(bench):
    """The rest of its cases have an engine error, and are run when it works again."""
    script = f"touch ../../../fail/volume-create\n{PREDICT}"
    file = bench.archive("good", script)

    bench.measure(file, cases=2)

    statuses = [row["status"] for row in bench.rows("good").values()]
    assert statuses == ["ok", "engine error"]
    assert count_done(bench.results / "good") == 1
    bench.engine.work("volume-create")
    bench.told.clear()
    bench.measure(file, cases=2)
    assert bench.told == [("good", "validation_002", "ok", 1, 1), "good"]


def test_an_engine_that_fails_at_a_repeat_ends_no_team(bench):
    """The label map of the repeat before is gone, and is not missed."""
    script = f"touch ../../../fail/volume-create\n{PREDICT}"

    failed = bench.measure(bench.archive("good", script), cases=1, repeats=2)

    assert failed == {}
    row = bench.rows("good")["validation_001"]
    assert row["status"] == "engine error"
    assert row["message"].endswith("; see logs/validation_001.log")


@pytest.mark.slow
def test_a_case_is_run_again_with_a_reason(bench, monkeypatch):
    file = bench.archive("good", PREDICT)
    bench.measure(file, cases=2)
    again = {"rerun": ("validation_002",), "reason": "the fan stood still"}

    bench.measure(file, cases=2, **again)

    rows = bench.rows("good")
    note = r"the fan stood still \(before: ok, \d\.\d\d s\)"
    assert re.fullmatch(note, rows["validation_002"]["rerun"])
    assert rows["validation_001"]["rerun"] == ""
    interrupt = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("flare.measuring.team.run_case", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.measure(file, cases=2, **again)
    assert bench.rows("good") == rows  # what there is stays


def test_a_rerun_on_which_the_engine_fails_keeps_the_row(bench, monkeypatch):
    file = bench.archive("good", PREDICT)
    bench.measure(file, cases=1)
    rows = bench.rows("good")
    fail = mock.Mock(side_effect=EngineError("the engine is gone"))
    monkeypatch.setattr("flare.measuring.team.run_case", fail)

    assert bench.measure(file, cases=1, **AGAIN) == {}

    assert fail.called
    assert bench.rows("good") == rows


@pytest.mark.slow
def test_two_measurements_of_a_team_wait_for_each_other(bench):
    """The second one finds everything done."""
    bench.archive("good", PREDICT)
    what = (bench.folder, bench.images, *("--gpu", "none", "--caches", "warm"))

    with measuring(*what) as one, measuring(*what) as other:
        errors = [process.communicate(timeout=120)[1] for process in (one, other)]

    assert [one.returncode, other.returncode] == [0, 0], errors
    assert len(bench.record("good")["sessions"]) == 1
    assert bench.engine.left() == []


def test_other_settings_are_refused(bench):
    file = bench.archive("good", PREDICT)
    bench.measure(file, cases=1)

    for options, problem in (({"repeats": 2}, "repeats 1, now it is 2"),
                             ({"cases": 2}, "images_sha256")):  # fmt: skip
        failed = bench.measure(file, **{"cases": 1, **options})
        assert isinstance(failed["good"], ChangedSettingError)  # ends `flare serve`
        assert f"the team was measured with {problem}" in str(failed["good"])


def test_another_archive_needs_a_reason(bench):
    """What was measured of the first one is put aside, and ranked no more."""
    bench.measure(bench.archive("good", PREDICT), cases=1)
    before = (bench.results / "good" / "efficiency.csv").read_bytes()
    other = bench.archive("good", f"{PREDICT}\n# better")

    failed = bench.measure(other, cases=1)
    assert "team good has sent another archive on 20" in str(failed["good"])

    assert bench.measure(other, cases=1, new_archive="the jury has agreed") == {}
    (replaced,) = (bench.results / ".replaced").iterdir()
    assert (replaced / "efficiency.csv").read_bytes() == before
    with (bench.results / "ledger.csv").open() as content:
        assert [row["reason"] for row in csv.DictReader(content)] == [
            *("", "the jury has agreed"),
        ]


def test_what_is_about_one_team_is_not_asked_for_with_several(bench):
    files = [bench.archive(team, PREDICT) for team in ("a", "b")]

    with pytest.raises(MeasurementError, match="are about one team, but several arch"):
        bench.measure(*files, paper="p")


# --- Another engine ---------------------------------------------------------------


@pytest.mark.slow
def test_an_engine_of_another_kind_measures_a_team(bench, flare, monkeypatch):
    """It is a module of its own, and a line in the list of engines."""
    monkeypatch.setitem(ENGINES, "plain", "tests.fakes.plain:PlainEngine")
    monkeypatch.setattr(PlainEngine, "home", bench.folder / "plain", raising=False)
    PlainEngine.home.mkdir()

    status, _, stderr = flare(
        *("measure", bench.archive("good", PREDICT), "--images", bench.images),
        *("--output", bench.results, "--gpu", "none", "--engine", "plain"),
        *("--interval", "0.02", "--no-warm-up"),
    )

    assert (status, stderr) == (0, "")
    for row in bench.rows("good").values():
        assert (row["status"], row["engine_runtime_s"]) == ("ok", "0.5")
    record = bench.record("good")
    (session,) = record["sessions"]
    assert session["engine"]["version"] == "plain 1"
    assert session["command"] == "plain IMAGE"
    assert (bench.results / "good" / "logs" / "validation_001.log").read_text() == (
        "as a plain process\n"
    )
    assert not (bench.engine.state / "calls").exists()
    assert record["settings"]["container_engine"] == "plain"
    image = bench.cases[0].path
    archive = bench.archive("good", PREDICT)
    assert flare("check", archive, "--run", image, "--engine", "plain")[0] == 0
    failed = bench.measure(bench.archive("good", PREDICT))
    assert told(failed["good"])[0] == "H07"


AGAIN = {"rerun": ("validation_001",), "reason": "the computer was busy"}


def test_another_processor_is_refused_and_can_be_accepted(bench):
    """The file keeps what the team was measured with first."""
    archive = bench.archive("good", PREDICT)
    bench.measure(archive, cases=1)
    now = bench.record("good")["settings"]["processor"]
    file = bench.results / "good" / "measurement.json"
    file.write_text(file.read_text().replace(json.dumps(now), '"Abacus 9000"'))

    failed = bench.measure(archive, cases=1, **AGAIN)

    place, _, text = str(failed["good"]).partition(": ")
    assert place.endswith("good/measurement.json")
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


def test_what_can_be_accepted_of_another_computer(tmp_path):
    """A GPU of the same name, but not none instead of one, and no other limit."""
    for number, (name, before, now) in enumerate(
        (("gpu", "GPU-1", ""), ("memory", "28g", "14g"), ("gpu", "GPU-1", "GPU-2"))
    ):
        file = tmp_path / f"{number}" / "measurement.json"
        file.parent.mkdir()
        MeasurementLog(file, {name: before}).add({})
        with pytest.raises(MeasurementError) if now != "GPU-2" else nullcontext() as e:
            log = MeasurementLog(file, {name: now}, accepted=("gpu", "processor"))
        assert e is None or "--unlike-host" not in str(e.value)

    assert log.unlike == ["gpu is GPU-2 instead of GPU-1"]
