"""Measuring with a real engine: tiny images of teams that are good, and of others."""

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from tests.builders import ROOT, case_names, write_cases
from tests.builders.alone import alone
from tests.builders.teams import (
    BASE,
    BRISK,
    LIMITS,
    PREDICT,
    SCRIPTS,
    brisk_command,
    docker,
    flare_command,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
    wait_for_container,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

STATUSES = {
    **dict.fromkeys(("good", "slow", "forking", "owner", "network"), "ok"),
    **dict.fromkeys(("meddling", "chatty"), "ok"),
    "crash": "failed",
    "hang": "timed out",
    "hungry": "out of memory",
    "silent": "no output",
    **dict.fromkeys(("misnamed", "extra", "text", "link", "pipe"), "wrong output"),
}
"""What comes of each team; a fork bomb is ended by one limit or another."""

CALIBRATED = ("good", "slow", "bomb")
"""They are measured by the program as it is, before all others."""


@pytest.fixture(scope="module")
def archives(team_base, tmp_path_factory):
    """What each team has sent."""
    folder = tmp_path_factory.mktemp("archives")
    return {
        team: save_team(folder, team, script, compressed=team == "good")
        for team, script in SCRIPTS.items()
    }


@pytest.fixture(scope="module")
def results(archives, case_data, tmp_path_factory):
    """All teams, measured on the first case and scored."""
    folder = tmp_path_factory.mktemp("measured")
    for kind, name in (("images", "_0000.nii.gz"), ("labels", ".nii.gz")):
        (folder / kind).mkdir()
        shutil.copy(case_data / kind / f"validation_001{name}", folder / kind)
    for run in (flare_command, brisk_command):
        (folder / run.__name__).mkdir()
    for team, file in archives.items():
        run = flare_command if team in CALIBRATED else brisk_command
        (folder / run.__name__ / file.name).symlink_to(file)
    for run in (flare_command, brisk_command):
        _, stderr = run(
            *("measure", folder / run.__name__, "--images", folder / "images"),
            *("--ground-truth", folder / "labels", "--output", folder / "results"),
            *(*LIMITS, "--no-warm-up"),
        )
        assert stderr == ""
    return folder / "results"


# --- What comes of a run ----------------------------------------------------------


@pytest.mark.parametrize("team", SCRIPTS)
def test_the_status_of_each_team(results, team):
    """And only the good ones have values."""
    row = rows_of(results / team)["validation_001"]

    if team == "bomb":
        assert row["status"] in ("failed", "timed out", "out of memory")
    else:
        assert row["status"] == STATUSES[team], row["message"]
    is_ok = row["status"] == "ok"
    for name in ("runtime_s", "cpu_s", "max_host_memory_mb", "engine_runtime_s"):
        assert bool(row[name]) == is_ok, name
    assert bool(row["message"]) != is_ok
    predictions = list((results / team / "predictions").iterdir())
    assert len(predictions) == is_ok
    rejected = results / team / "rejected"
    if team in ("misnamed", "text", "extra"):  # for whoever asks
        assert (rejected / "validation_001" / "0.nii.gz").exists()
    else:
        assert not rejected.exists()
    if not is_ok:
        log = re.search(r"see (logs/\S+)$", row["message"])[1]
        assert (results / team / log).is_file()


def test_nothing_is_left_behind(results):

    assert left_behind(results) == []
    assert list(results.rglob(".*")) == []
    assert {path.name for path in (results / "good").iterdir()} == {
        *("efficiency.csv", "logs", "measurement.json", "metrics.json"),
        *("predictions", "traces"),
    }


def test_messages_say_what_happened(results):
    messages = {team: rows_of(results / team)["validation_001"] for team in SCRIPTS}

    assert re.fullmatch(
        r"the container ended with exit code 3 after \d\.\d s; see"
        r" logs/validation_001\.log",
        messages["crash"]["message"],
    )
    assert (results / "crash" / "logs" / "validation_001.log").read_text() == (
        "no model\n"
    )
    assert messages["silent"]["message"].startswith("it has written nothing to")
    assert "[F03]" in messages["misnamed"]["message"]
    assert "[F06]" in messages["link"]["message"]
    assert "was ended after 6." in messages["hang"]["message"]


def test_a_time_is_that_of_the_container(results):
    """Two seconds of sleep, and what the engine costs, which is written down."""
    row = rows_of(results / "slow")["validation_001"]
    record = json.loads((results / "slow" / "measurement.json").read_text())
    (session,) = record["sessions"]
    cost = session["engine_cost_s"]

    within, whole = float(row["engine_runtime_s"]), float(row["runtime_s"])
    assert 2.0 <= within <= whole
    # What is around the container is the engine's work, as around an empty one.
    assert whole - within < 10 * cost["largest"]
    assert cost["runs"] == 3
    assert 0 < cost["smallest"] <= cost["median"] <= cost["largest"]


def test_the_record_has_what_matters(results):
    record = json.loads((results / "good" / "measurement.json").read_text())

    assert record["settings"]["timeout_s"] == 6
    (session,) = record["sessions"]
    assert session["engine"]["version"]
    assert session["host"]["cpus"] == os.cpu_count()
    assert session["gpu"] is None
    assert "--network none" in session["command"]


def test_traces_are_kept(results):
    with (results / "slow" / "traces" / "validation_001.csv").open() as content:
        samples = list(csv.DictReader(content))

    times = [float(sample["seconds"]) for sample in samples]
    assert 15 <= len(times) <= 40
    assert times == sorted(times)
    # The first may come before the container is there, the last when it has ended.
    memory_mb = [float(s["host_memory_mb"]) for s in samples if s["host_memory_mb"]]
    assert len(memory_mb) >= len(samples) - 5
    assert min(memory_mb) > 0


def test_metrics_and_efficiency_lie_side_by_side(results):
    """Predictions equal the labels: 1. Whatever failed scores 0, and says why."""
    good, crash = (
        json.loads((results / team / "metrics.json").read_text())
        for team in ("good", "crash")
    )

    assert good["aggregates"]["dsc_mean"] == 1
    assert good["efficiency"]["cases_ok"] == 1
    runtime_s = float(rows_of(results / "good")["validation_001"]["runtime_s"])
    assert good["efficiency"]["runtime_s_mean"] == runtime_s
    assert crash["aggregates"]["dsc_mean"] == 0
    assert crash["efficiency"] == {"cases": 1, "cases_ok": 0}
    assert crash["failed"]["validation_001"].startswith("failed: the container ended")


def test_measured_teams_can_be_ranked(results, tmp_path):
    """The good ones before all that failed; a crash is no fast run."""
    options = ("--metrics", "dsc,nsd,runtime_s", "--output", tmp_path)

    flare_command("rank", results, *options)

    with (tmp_path / "ranking.csv").open() as content:
        ranks = {row["team"]: int(row["rank"]) for row in csv.DictReader(content)}
    good = {team for team, status in STATUSES.items() if status == "ok"}
    assert max(ranks[team] for team in good) < min(
        rank for team, rank in ranks.items() if team not in good
    )
    assert ranks["slow"] == len(good)


# --- Going on ---------------------------------------------------------------------


def test_after_sigkill_at_random_moments_it_goes_on_to_the_end(
    archives, case_data, tmp_path
):
    """Ten times: nothing is lost or left behind, and no case is run twice."""
    (tmp_path / "archives").mkdir()
    for team in ("good", "slow"):
        shutil.copy(archives[team], tmp_path / "archives")
    command = [*BRISK, "measure", tmp_path / "archives"]
    command += [
        "--images",
        case_data / "images",
        "--ground-truth",
        case_data / "labels",
    ]
    command += ["--output", tmp_path / "results", *LIMITS, "--no-warm-up"]
    command = [str(word) for word in command]
    chance = random.Random(9)
    for _ in range(10):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.3, 5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = {}
    for team in ("good", "slow"):
        if (tmp_path / "results" / team / "efficiency.csv").exists():
            before[team] = rows_of(tmp_path / "results" / team)

    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    for team in ("good", "slow"):
        folder = tmp_path / "results" / team
        rows = rows_of(folder)
        assert {row["status"] for row in rows.values()} == {"ok"}
        assert list(rows) == case_names(3)
        for case, row in before.get(team, {}).items():
            assert rows[case] == row
        metrics = json.loads((folder / "metrics.json").read_text())
        assert metrics["aggregates"]["dsc_mean"] == 1
    deadline = time.monotonic() + 20
    while left_behind(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.5)  # a guard of a run that was killed may be at work
    assert left_behind(tmp_path) == []
    assert list((tmp_path / "results").rglob(".*")) == []


def start_hanging(archives, case_data, tmp_path):
    """Begin to measure a team whose container hangs."""
    command = [*BRISK, "measure", archives["hang"]]
    command += ["--images", case_data / "images", "--output", tmp_path / "results"]
    return subprocess.Popen(
        [str(word) for word in (*command, *LIMITS[:-2])],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_kill_alone_is_cleaned_up_after(archives, case_data, tmp_path):
    """Without going on: the guard removes the container that hangs, and the image."""
    process = start_hanging(archives, case_data, tmp_path)
    wait_for_container(tmp_path)

    process.send_signal(signal.SIGKILL)
    process.communicate()

    deadline = time.monotonic() + 20
    while left_behind(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left_behind(tmp_path) == []
    assert not [p for p in (tmp_path / "results").rglob(".work*") if p.exists()]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_ctrl_c_ends_it_with_one_line(archives, case_data, tmp_path, number, status):
    process = start_hanging(archives, case_data, tmp_path)
    wait_for_container(tmp_path)
    process.send_signal(number)

    _, stderr = process.communicate(timeout=60)

    assert process.returncode == status, stderr
    assert stderr.decode().count("\n") == 1
    assert left_behind(tmp_path) == []


def test_what_ctrl_c_leaves_is_told_and_scored(archives, case_data, tmp_path):
    """The first team is scored before the second one, which hangs, is ended."""
    (tmp_path / "archives").mkdir()
    for team in ("good", "hang"):
        shutil.copy(archives[team], tmp_path / "archives")
    command = [*BRISK, "measure", tmp_path / "archives"]
    command += ["--images", case_data / "images", "--output", tmp_path / "results"]
    command += ["--ground-truth", case_data / "labels", *LIMITS[:-2], "--no-warm-up"]
    process = subprocess.Popen(
        [str(word) for word in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    hanging = tmp_path / "results" / "hang"
    while not (hanging / "measurement.json").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    wait_for_container(hanging.parent)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert stderr == (
        "Measuring was interrupted. 3 of 6 cases are measured and kept; the same"
        " command goes on. [H04]\n"
    )
    assert "good: 3 ok" in stdout
    assert (tmp_path / "results" / "good" / "metrics.json").exists()
    ranking = ("--metrics", "dsc,nsd", "--output", tmp_path / "ranking")
    stdout, _ = flare_command("rank", tmp_path / "results", *ranking)
    assert stdout.startswith(
        "Interim ranking: 1 team is not measured to the end (hang)"
    )


def measure_good(archives, case_data, output, *options, team="good", status=0):
    return brisk_command(
        *("measure", archives[team], "--images", case_data / "images"),
        *("--output", output, *LIMITS, "--no-warm-up", *options),
        status=status,
    )


def test_a_rerun_that_is_killed_leaves_what_there_was(archives, case_data, tmp_path):
    """Neither its old values beside a new prediction, nor the other way round."""
    case = "validation_002"
    measure_good(archives, case_data, tmp_path, team="slow")
    before = rows_of(tmp_path / "slow")
    command = [*BRISK, "measure", archives["slow"], *LIMITS]
    command += ["--images", case_data / "images", "--output", tmp_path, "--no-warm-up"]
    command += ["--rerun", case, "--reason", "a fan"]
    process = subprocess.Popen(
        [str(word) for word in command], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    wait_for_container(tmp_path)  # it will sleep for two seconds
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert rows_of(tmp_path / "slow") == before
    stdout, _ = measure_good(archives, case_data, tmp_path, team="slow")
    assert "slow: 3 ok" in stdout


# --- What stands in the way -------------------------------------------------------


def test_an_archive_that_cannot_be_run_does_not_stop_the_others(
    archives, case_data, tmp_path
):
    (tmp_path / "archives").mkdir()
    shutil.copy(archives["good"], tmp_path / "archives")
    (tmp_path / "archives" / "bad.tar.gz").write_bytes(b"")

    stdout, stderr = brisk_command(
        *("measure", tmp_path / "archives", "--images", case_data / "images"),
        *("--output", tmp_path / "results", *LIMITS),
        status=1,
    )

    assert "good: 3 ok" in stdout
    assert stderr.startswith("bad.tar.gz: it is no tar file that can be read")
    with (tmp_path / "results" / "refused.csv").open() as content:
        (row,) = csv.DictReader(content)
    assert (row["team"], row["archive"]) == ("bad", "bad.tar.gz")
    assert row["problem"].endswith("[F15]")


def test_an_image_that_cannot_start_is_its_team_s_fault(archives, two_cases, tmp_path):
    """A user that is not there, and an entrypoint that does not run the command."""
    nobody = save_team(tmp_path, "nobody", PREDICT, "USER nobodyhere")
    entrypoint = 'ENTRYPOINT ["/workspace/start.sh"]'
    swallow = save_team(
        tmp_path, "swallow", PREDICT, "RUN echo 'exit 4' > start.sh", entrypoint,
        "RUN chmod 755 start.sh && sed -i '1i #!/bin/sh' start.sh || true",
    )  # fmt: skip

    measure_teams(tmp_path, two_cases, nobody, swallow, archives["good"])

    found = {
        team: {row["status"] for row in rows_of(tmp_path / "results" / team).values()}
        for team in ("nobody", "swallow", "good")
    }
    assert found == {"nobody": {"failed"}, "swallow": {"failed"}, "good": {"ok"}}
    log = tmp_path / "results" / "nobody" / "logs" / "validation_001.log"
    assert "unable to find user nobodyhere" in log.read_text()
    for row in rows_of(tmp_path / "results" / "nobody").values():
        assert row["message"].startswith("the engine cannot run it: unable to find")


def test_an_image_of_the_same_name_is_none_of_ours(archives, case_data, tmp_path):
    """Neither is it run, nor does it lose its name."""
    with alone("tags"):
        docker("tag", BASE, "good:latest")
        before = docker("image", "inspect", "--format", "{{.Id}}", "good:latest")
        try:
            measure_good(archives, case_data, tmp_path)
            after = docker("image", "inspect", "--format", "{{.Id}}", "good:latest")
        finally:
            docker("image", "rm", "good:latest")

    assert after == before
    assert {row["status"] for row in rows_of(tmp_path / "good").values()} == {"ok"}


def test_an_image_that_was_there_before_stays(archives, case_data, tmp_path):
    with alone("tags"):
        docker("load", "--input", archives["good"])
        try:
            measure_good(archives, case_data, tmp_path)
            assert docker("image", "inspect", "good:latest")
        finally:
            docker("image", "rm", "good:latest")


def test_two_measurements_of_a_team_wait_for_each_other(archives, case_data, tmp_path):
    """The second one finds everything done."""
    command = [*BRISK, "measure", archives["good"], *LIMITS]
    command += ["--images", case_data / "images", "--output", tmp_path, "--no-warm-up"]
    processes = [
        subprocess.Popen([str(word) for word in command], cwd=ROOT,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    errors = [process.communicate(timeout=120)[1] for process in processes]

    assert [process.returncode for process in processes] == [0, 0], errors
    assert {row["status"] for row in rows_of(tmp_path / "good").values()} == {"ok"}
    record = json.loads((tmp_path / "good" / "measurement.json").read_text())
    assert len(record["sessions"]) == 1
    assert left_behind(tmp_path) == []


def test_a_gpu_that_is_not_there(archives, case_data, tmp_path):
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU")

    _, stderr = measure_good(archives, case_data, tmp_path, "--gpu", "0", status=1)

    assert stderr.startswith("no NVIDIA driver answers")
    assert stderr.endswith("[H08]\n")


@pytest.mark.tools("cc")
@pytest.mark.skipif(bool(shutil.which("nvidia-smi")), reason="there is a real GPU")
def test_an_engine_that_knows_no_gpu(archives, case_data, tmp_path):
    """A driver answers, but the engine cannot hand its GPU on: no team is blamed."""
    source = ROOT / "tests" / "fakes" / "nvml.c"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "script").write_text("10000 300 0 0 0 0")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML": str(tmp_path / "script"),
    }

    _, stderr = brisk_command(
        *("measure", archives["good"], "--images", case_data / "images", "--gpu", "0"),
        *("--output", tmp_path / "results", "--memory", "120m", "--shm-size", "16m"),
        status=1,
        env=environment,
    )

    assert stderr.startswith("An empty container cannot be run (could not select")
    assert not (tmp_path / "results" / "good" / "efficiency.csv").exists()
    assert left_behind(tmp_path) == []


def test_check_runs_an_image_as_it_will_be_measured(archives, case_data):
    image = case_data / "images" / "validation_001_0000.nii.gz"
    limits = ("--memory", "120m", "--shm-size", "16m")

    stdout, _ = flare_command("check", archives["good"], "--run", image, *limits)
    assert re.search(r"^validation_001: ok, \d\.\d\d s\.$", stdout, re.MULTILINE)

    stdout, stderr = flare_command(
        "check", archives["crash"], "--run", image, *limits, status=1
    )
    assert "The container says:\n  no model\n" in stdout
    assert "crash, validation_001: failed: the container ended with exit" in stdout
    assert stderr == ""


@pytest.mark.tools(package="matplotlib")
@pytest.mark.usefixtures("page_cache")
def test_the_testing_phase_as_readme_shows_it(team_base, tmp_path):
    """Its commands, one after the other, in another folder for the results."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Measuring\n")[1]
    commands = re.search(r"```sh\n(.*?)```", section, flags=re.DOTALL)[1]
    assert commands.count("\n") == 4
    script = commands.replace("results/", f"{tmp_path}/")
    limits = "--gpu none --memory 1g --shm-size 64m"
    script = script.replace("--gpu none", limits)

    with alone("tags"):
        run = subprocess.run(
            ["bash", "-e", "-c", script], cwd=ROOT, capture_output=True, check=False
        )

    assert run.returncode == 0, run.stderr.decode()
    quoted = re.search(r"```text\n(.*?)```", section, flags=re.DOTALL)[1]
    for line in quoted.replace("...\n", "").splitlines():
        assert f"\n{line}\n" in run.stdout.decode()
    with (tmp_path / "ranking" / "ranking.csv").open() as content:
        ranks = {row["team"]: int(row["rank"]) for row in csv.DictReader(content)}
    assert (ranks["careful"], ranks["hasty"], ranks["crash"]) == (1, 2, 4)
    assert left_behind(tmp_path) == []


def test_cases_whose_names_begin_alike_keep_their_predictions(archives, tmp_path):
    """`a` and `a.b`, which is measured first."""
    folder = write_cases(tmp_path / "data" / "images", ["a.b_0000", "a_0000"])

    measure_good(archives, folder.parent, tmp_path)

    files = sorted(file.name for file in (tmp_path / "good/predictions").iterdir())
    assert files == ["a.b.nii.gz", "a.nii.gz"]
