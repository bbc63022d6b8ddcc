"""Measuring with a real engine: tiny images of teams that are good, and of others."""

import csv
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import ROOT, case_names, run_flare, write_cases
from tests.teams import PREDICT, SCRIPTS, docker, make_base, save_team

pytestmark = [pytest.mark.docker, pytest.mark.slow]

LIMITS = ("--gpu", "none", "--memory", "120m", "--shm-size", "16m", "--timeout", "6")

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


def flare_command(*arguments, status=0, **options):
    """Run a command; what it writes to stdout and stderr."""
    run = run_flare(*arguments, **options)
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout, run.stderr


def rows_of(folder):
    with (folder / "efficiency.csv").open() as content:
        return {row["case"]: row for row in csv.DictReader(content)}


def left_behind():
    """Containers, volumes and images of a measurement that are still there."""
    containers = docker("ps", "--all", "--quiet", "--filter", "label=flare.measure")
    volumes = docker("volume", "ls", "--quiet")
    images = docker("image", "ls", "--format", "{{.Repository}} {{.Size}}").splitlines()
    made = [
        name
        for name, size in (line.split() for line in images)
        if name in TEAMS or name.startswith("flare-nothing") or size == NOTHING_SIZE
    ]
    return containers.split(), volumes.split(), made


NOTHING_SIZE = "129B"
"""Of the image that does nothing, which would be untagged if it were left."""


TEAMS = {*SCRIPTS, "nobody", "swallow", "sparse", "deep", "closed", "filling"}


@pytest.fixture(scope="module")
def base(docker):
    """The image that all teams start from."""
    make_base()
    yield
    subprocess.run(["docker", "image", "rm", "--force", "flare-test-team-base"],
                   capture_output=True, check=False)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Images, which are label maps here, and labels of three cases."""
    folder = tmp_path_factory.mktemp("data")
    write_cases(folder / "labels", case_names(3))
    (folder / "images").mkdir()
    for file in (folder / "labels").iterdir():
        name = file.name.replace(".nii.gz", "_0000.nii.gz")
        shutil.copy(file, folder / "images" / name)
    return folder


@pytest.fixture(scope="module")
def archives(base, tmp_path_factory):
    """What each team has sent."""
    folder = tmp_path_factory.mktemp("archives")
    return {
        team: save_team(folder, team, script, compressed=team == "good")
        for team, script in SCRIPTS.items()
    }


@pytest.fixture(scope="module")
def measured(archives, data, tmp_path_factory):
    """All teams, measured on the first case and scored."""
    folder = tmp_path_factory.mktemp("measured")
    for kind, name in (("images", "_0000.nii.gz"), ("labels", ".nii.gz")):
        (folder / kind).mkdir()
        shutil.copy(data / kind / f"validation_001{name}", folder / kind)
    (folder / "archives").mkdir()
    for file in archives.values():
        (folder / "archives" / file.name).symlink_to(file)
    stdout, stderr = flare_command(
        *("measure", folder / "archives", "--images", folder / "images"),
        *("--ground-truth", folder / "labels", "--output", folder / "results"),
        *(*LIMITS, "--no-warm-up"),
    )
    assert stderr == ""
    return folder / "results", stdout


# --- What comes of a run ----------------------------------------------------------


@pytest.mark.parametrize("team", SCRIPTS)
def test_the_status_of_each_team(measured, team):
    """And only the good ones have values."""
    results, _ = measured
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


def test_nothing_is_left_behind(measured):
    results, _ = measured

    assert left_behind() == ([], [], [])
    assert list(results.rglob(".*")) == []
    assert {path.name for path in (results / "good").iterdir()} == {
        *("efficiency.csv", "logs", "measurement.json", "metrics.json"),
        *("predictions", "traces"),
    }


def test_messages_say_what_happened(measured):
    results, _ = measured
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


def test_a_time_is_that_of_the_container(measured):
    """Two seconds of sleep, and what the engine costs, which is written down."""
    results, _ = measured
    row = rows_of(results / "slow")["validation_001"]
    record = json.loads((results / "slow" / "measurement.json").read_text())
    (session,) = record["sessions"]
    cost = session["engine_cost_s"]

    within, whole = float(row["engine_runtime_s"]), float(row["runtime_s"])
    assert 2.0 <= within <= whole
    # What is around the container is the engine's work, as around an empty one.
    assert whole - within < 10 * cost["largest"]
    assert cost["runs"] == 5
    assert 0 < cost["smallest"] <= cost["median"] <= cost["largest"]


def test_the_record_has_what_matters(measured):
    results, _ = measured
    record = json.loads((results / "good" / "measurement.json").read_text())

    assert record["settings"]["timeout_s"] == 6
    (session,) = record["sessions"]
    assert session["engine"]["version"]
    assert session["host"]["cpus"] == os.cpu_count()
    assert session["gpu"] is None
    assert "--network none" in session["command"]


def test_traces_are_kept(measured):
    results, _ = measured
    with (results / "slow" / "traces" / "validation_001.csv").open() as content:
        samples = list(csv.DictReader(content))

    times = [float(sample["seconds"]) for sample in samples]
    assert 15 <= len(times) <= 40
    assert times == sorted(times)
    assert float(samples[-1]["host_memory_mb"]) > 0


def test_metrics_and_efficiency_lie_side_by_side(measured):
    """Predictions equal the labels: 1. Whatever failed scores 0, and says why."""
    results, _ = measured
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


def test_measured_teams_can_be_ranked(measured, tmp_path):
    """The good ones before all that failed; a crash is no fast run."""
    results, _ = measured
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
    archives, data, tmp_path
):
    """Ten times: nothing is lost or left behind, and no case is run twice."""
    (tmp_path / "archives").mkdir()
    for team in ("good", "slow"):
        shutil.copy(archives[team], tmp_path / "archives")
    command = [sys.executable, "-m", "flare", "measure", tmp_path / "archives"]
    command += ["--images", data / "images", "--ground-truth", data / "labels"]
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
    while left_behind() != ([], [], []) and time.monotonic() < deadline:
        time.sleep(0.5)  # a guard of a run that was killed may be at work
    assert left_behind() == ([], [], [])
    assert list((tmp_path / "results").rglob(".*")) == []


def start_hanging(archives, data, tmp_path):
    """Begin to measure a team whose container hangs."""
    command = [sys.executable, "-m", "flare", "measure", archives["hang"]]
    command += ["--images", data / "images", "--output", tmp_path / "results"]
    return subprocess.Popen(
        [str(word) for word in (*command, *LIMITS[:-2])],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_kill_alone_is_cleaned_up_after(archives, data, tmp_path):
    """Without going on: the guard removes the container that hangs, and the image."""
    process = start_hanging(archives, data, tmp_path)
    deadline = time.monotonic() + 30
    while not left_behind()[0] and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)
    assert left_behind()[0], "the container should be running"

    process.send_signal(signal.SIGKILL)
    process.communicate()

    deadline = time.monotonic() + 20
    while left_behind() != ([], [], []) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left_behind() == ([], [], [])
    assert not [p for p in (tmp_path / "results").rglob(".work*") if p.exists()]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_ctrl_c_ends_it_with_one_line(archives, data, tmp_path, number, status):
    process = start_hanging(archives, data, tmp_path)
    time.sleep(6)
    process.send_signal(number)

    _, stderr = process.communicate(timeout=60)

    assert process.returncode == status, stderr
    assert stderr.decode().count("\n") == 1
    assert left_behind() == ([], [], [])


def measure_good(archives, data, output, *options, team="good", status=0):
    return flare_command(
        *("measure", archives[team], "--images", data / "images"),
        *("--output", output, *LIMITS, "--no-warm-up", *options),
        status=status,
    )


def test_what_is_done_is_not_run_again(archives, data, tmp_path):
    measure_good(archives, data, tmp_path / "good")
    before = (tmp_path / "good" / "efficiency.csv").read_bytes()

    stdout, _ = measure_good(archives, data, tmp_path)

    assert "good: 3 ok" in stdout
    assert "[1/" not in stdout
    assert (tmp_path / "good" / "efficiency.csv").read_bytes() == before


def test_a_case_is_run_again_with_a_reason(archives, data, tmp_path):
    measure_good(archives, data, tmp_path)
    case = "validation_002"
    again = ("--rerun", case)
    _, stderr = measure_good(archives, data, tmp_path, *again, status=1)
    assert stderr.startswith("--rerun: no reason was given. Say why")
    _, stderr = measure_good(
        *(archives, data, tmp_path, "--rerun", "x", "--reason", "y"), status=1
    )
    assert stderr.startswith("x: there is no such case to run again, but validation_")

    stdout, _ = measure_good(
        archives, data, tmp_path, *again, "--reason", "the fan stood still"
    )

    assert "[1/1] good validation_002: ok" in stdout
    rows = rows_of(tmp_path / "good")
    assert re.fullmatch(
        r"the fan stood still \(before: ok, \d\.\d\d s\)", rows[case]["rerun"]
    )
    assert rows["validation_001"]["rerun"] == ""


def test_repeats_have_a_spread(archives, data, tmp_path):
    measure_good(archives, data, tmp_path, "--repeats", "3")

    for row in rows_of(tmp_path / "good").values():
        assert row["repeats"] == "3"
        assert 0 < float(row["runtime_s_spread"]) < 3


def test_other_settings_are_refused(archives, data, tmp_path):
    measure_good(archives, data, tmp_path)

    _, stderr = measure_good(archives, data, tmp_path, "--repeats", "2", status=1)

    assert (
        "good/measurement.json: the team was measured with repeats 1, now it is 2."
        " Measure it as before" in stderr
    )


def test_another_archive_is_refused(archives, data, tmp_path):
    measure_good(archives, data, tmp_path)
    other = save_team(tmp_path, "good", f"{PREDICT}\n# better")

    _, stderr = measure_good({"good": other}, data, tmp_path, status=1)

    assert "team good has sent another archive on 20" in stderr
    assert stderr.endswith("[H07]\n")


def test_an_archive_may_replace_another_with_a_reason(archives, data, tmp_path):
    """What was measured of the first one is kept, and ranked no more."""
    measure_good(archives, data, tmp_path)
    before = (tmp_path / "good" / "efficiency.csv").read_bytes()
    other = save_team(tmp_path / "new", "good", f"{PREDICT}\n# better")
    reason = ("--new-archive", "the jury has agreed")

    stdout, _ = measure_good({"good": other}, data, tmp_path, *reason)

    assert "[3/3] good validation_003: ok" in stdout
    (replaced,) = (tmp_path / ".replaced").iterdir()
    assert (replaced / "efficiency.csv").read_bytes() == before
    with (tmp_path / "ledger.csv").open() as content:
        reasons = [row["reason"] for row in csv.DictReader(content)]
    assert reasons == ["", "the jury has agreed"]
    _, stderr = measure_good(archives, data, tmp_path, status=1)
    assert "team good has sent another archive" in stderr


def test_other_images_are_refused(archives, data, tmp_path):
    """Half of the cases would be of other images than the other half."""
    measure_good(archives, data, tmp_path)
    shutil.copytree(data / "images", tmp_path / "data" / "images")
    case = tmp_path / "data" / "images" / "validation_001_0000.nii.gz"
    case.write_bytes(case.read_bytes() + bytes(9))

    _, stderr = measure_good(archives, tmp_path / "data", tmp_path, status=1)

    assert "the team was measured with images_sha256" in stderr


def test_a_rerun_that_is_killed_leaves_what_there_was(archives, data, tmp_path):
    """Neither its old values beside a new prediction, nor the other way round."""
    case = "validation_002"
    measure_good(archives, data, tmp_path, team="slow")
    before = rows_of(tmp_path / "slow")
    command = [sys.executable, "-m", "flare", "measure", archives["slow"], *LIMITS]
    command += ["--images", data / "images", "--output", tmp_path, "--no-warm-up"]
    command += ["--rerun", case, "--reason", "a fan"]
    process = subprocess.Popen(
        [str(word) for word in command], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    listed = ("ps", "--no-trunc", "--filter", "label=flare.measure", "--format")
    deadline = time.monotonic() + 60
    while "predict.sh" not in docker(*listed, "{{.Command}}"):
        assert time.monotonic() < deadline, "the rerun has not begun"
        time.sleep(0.02)  # it will sleep for two seconds
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert rows_of(tmp_path / "slow") == before
    stdout, _ = measure_good(archives, data, tmp_path, team="slow")
    assert "slow: 3 ok" in stdout


def test_teams_take_turns(archives, data, tmp_path):
    (tmp_path / "archives").mkdir()
    for team in ("good", "crash"):
        shutil.copy(archives[team], tmp_path / "archives")

    stdout, _ = flare_command(
        *("measure", tmp_path / "archives", "--images", data / "images"),
        *("--output", tmp_path / "results", *LIMITS, "--interleave"),
    )

    order = re.findall(r"^\[\d/6\] (\w+) validation_00(\d)", stdout, re.MULTILINE)
    assert order == [(team, n) for n in "123" for team in ("crash", "good")]
    assert left_behind() == ([], [], [])


# --- What stands in the way -------------------------------------------------------


def test_an_archive_that_cannot_be_run_does_not_stop_the_others(
    archives, data, tmp_path
):
    (tmp_path / "archives").mkdir()
    shutil.copy(archives["good"], tmp_path / "archives")
    (tmp_path / "archives" / "bad.tar.gz").write_bytes(b"")

    stdout, stderr = flare_command(
        *("measure", tmp_path / "archives", "--images", data / "images"),
        *("--output", tmp_path / "results", *LIMITS),
        status=1,
    )

    assert "good: 3 ok" in stdout
    assert stderr.startswith("bad.tar.gz: it is no tar file that can be read")
    with (tmp_path / "results" / "refused.csv").open() as content:
        (row,) = csv.DictReader(content)
    assert (row["team"], row["archive"]) == ("bad", "bad.tar.gz")
    assert row["problem"].endswith("[F15]")


def measure_teams(folder, data, *archives, status=0, prefix=(), **options):
    """Measure some archives together."""
    (folder / "archives").mkdir()
    for file in archives:
        shutil.copy(file, folder / "archives")
    run = subprocess.run(
        [*prefix, sys.executable, "-m", "flare", "measure", folder / "archives",
         "--images", data / "images", "--output", folder / "results", *LIMITS,
         "--no-warm-up"],
        cwd=ROOT, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout, run.stderr


def test_an_image_that_cannot_start_is_its_team_s_fault(archives, data, tmp_path):
    """A user that is not there, and an entrypoint that does not run the command."""
    nobody = save_team(tmp_path, "nobody", PREDICT, "USER nobodyhere")
    entrypoint = 'ENTRYPOINT ["/workspace/start.sh"]'
    swallow = save_team(
        tmp_path, "swallow", PREDICT, "RUN echo 'exit 4' > start.sh", entrypoint,
        "RUN chmod 755 start.sh && sed -i '1i #!/bin/sh' start.sh || true",
    )  # fmt: skip

    measure_teams(tmp_path, data, nobody, swallow, archives["good"])

    found = {
        team: {row["status"] for row in rows_of(tmp_path / "results" / team).values()}
        for team in ("nobody", "swallow", "good")
    }
    assert found == {"nobody": {"failed"}, "swallow": {"failed"}, "good": {"ok"}}
    log = tmp_path / "results" / "nobody" / "logs" / "validation_001.log"
    assert "unable to find user nobodyhere" in log.read_text()


def test_files_without_end_are_refused_before_they_are_read(data, tmp_path, base):
    """A good label map with a hole of eight terabytes behind it."""
    script = f"{PREDICT}\nfor f in /workspace/outputs/*; do"
    script += " dd if=/dev/zero of=$f bs=1 count=0 seek=8000000000000; done"
    sparse = save_team(tmp_path, "sparse", script)

    measure_teams(tmp_path, data, sparse)

    for row in rows_of(tmp_path / "results" / "sparse").values():
        assert row["status"] == "wrong output"
        assert "8000000000000 bytes are more than any label map" in row["message"]


def test_folders_deeper_than_python_can_remove(data, tmp_path, base):
    script = f"{PREDICT}\ncd /workspace/outputs; for n in $(seq 1500); do"
    script += " mkdir d; cd d; done"
    deep = save_team(tmp_path, "deep", script)

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    measure_teams(tmp_path, data, deep, preexec_fn=few_files)

    assert len(rows_of(tmp_path / "results" / "deep")) == 3
    assert list((tmp_path / "results").rglob(".work*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_an_organiser_who_is_not_root(archives, data, tmp_path, base):
    """Files of root are removed by the team's image, only after they were judged.

    Its chown makes a prediction when it is called: that is too late.
    """
    group = Path("/var/run/docker.sock").stat().st_gid
    capabilities = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", f"--groups={group}",
              *capabilities)  # fmt: skip
    script = "mkdir /workspace/outputs/d; touch /workspace/outputs/d/f"
    script += f"; chmod 000 /workspace/outputs/d\n{PREDICT}"
    closed = save_team(tmp_path, "closed", script)
    late = save_team(
        tmp_path, "filling", "touch /workspace/outputs/x.bin",
        "RUN rm /bin/chown",
        "RUN echo '#!/bin/bash' > /bin/chown",
        "RUN echo 'cp /flare/../workspace/predict.sh /flare/validation_001.nii.gz'"
        " >> /bin/chown && chmod 755 /bin/chown",
    )  # fmt: skip
    owner = save_team(tmp_path, "swallow", f"{PREDICT}\nchmod 000 /workspace/outputs/*")
    tmp_path.chmod(0o777)

    measure_teams(tmp_path, data, closed, late, owner, prefix=prefix)

    results = tmp_path / "results"
    assert len(rows_of(results / "closed")) == 3
    assert len(rows_of(results / "swallow")) == 3
    assert {row["status"] for row in rows_of(results / "filling").values()} == {
        "wrong output"
    }
    assert list(results.rglob(".work*")) == []
    assert left_behind() == ([], [], [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
def test_a_container_that_fills_the_disk_is_ended(data, tmp_path, base):
    script = "head -c 80000000 /dev/zero > /workspace/outputs/x; sleep 100"
    filling = save_team(tmp_path, "filling", script)
    (tmp_path / "results").mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=1080m", "tmpfs", tmp_path / "results")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted")
    try:
        measure_teams(tmp_path, data, filling)
        rows = rows_of(tmp_path / "results" / "filling")
    finally:
        subprocess.run(["umount", tmp_path / "results"], check=True)

    for row in rows.values():
        assert row["status"] == "failed"
        assert "less than 1 GiB were left on the disk" in row["message"]


def test_an_image_of_the_same_name_is_not_overwritten(archives, data, tmp_path):
    docker("tag", "flare-test-team-base", "good:latest")
    try:
        _, stderr = measure_good(archives, data, tmp_path, status=1)
        assert docker("image", "inspect", "good:latest")
    finally:
        docker("image", "rm", "good:latest")

    assert stderr.startswith(
        "good.tar.gz: there is another image good:latest on this computer. Remove it"
    )


def test_an_image_that_was_there_before_stays(archives, data, tmp_path):
    docker("load", "--input", archives["good"])
    try:
        measure_good(archives, data, tmp_path)
        assert docker("image", "inspect", "good:latest")
    finally:
        docker("image", "rm", "good:latest")


def test_two_measurements_of_a_team_wait_for_each_other(archives, data, tmp_path):
    """The second one finds everything done."""
    command = [sys.executable, "-m", "flare", "measure", archives["good"], *LIMITS]
    command += ["--images", data / "images", "--output", tmp_path, "--no-warm-up"]
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
    assert left_behind() == ([], [], [])


def test_a_gpu_that_is_not_there(archives, data, tmp_path):
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU")

    _, stderr = measure_good(archives, data, tmp_path, "--gpu", "0", status=1)

    assert stderr.startswith("no NVIDIA driver answers")
    assert stderr.endswith("[H08]\n")


def test_an_engine_that_knows_no_gpu(archives, data, tmp_path):
    """A driver answers, but the engine cannot hand its GPU on: no team is blamed."""
    compiler = shutil.which("cc")
    if not compiler or shutil.which("nvidia-smi"):
        pytest.skip("no C compiler, or a real GPU")
    source = ROOT / "tests" / "nvml.c"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "script").write_text("10000 300 0 0 0 0")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML": str(tmp_path / "script"),
    }

    _, stderr = flare_command(
        *("measure", archives["good"], "--images", data / "images", "--gpu", "0"),
        *("--output", tmp_path / "results", "--memory", "120m", "--shm-size", "16m"),
        status=1,
        env=environment,
    )

    assert stderr.startswith("An empty container cannot be run (could not select")
    assert not (tmp_path / "results" / "good" / "efficiency.csv").exists()
    assert left_behind() == ([], [], [])


def test_check_runs_an_image_as_it_will_be_measured(archives, data):
    image = data / "images" / "validation_001_0000.nii.gz"
    limits = ("--memory", "120m", "--shm-size", "16m")

    stdout, _ = flare_command("check", archives["good"], "--run", image, *limits)
    assert re.search(r"^validation_001: ok, \d\.\d\d s\.$", stdout, re.MULTILINE)

    stdout, stderr = flare_command(
        "check", archives["crash"], "--run", image, *limits, status=1
    )
    assert "The container says:\n  no model\n" in stdout
    assert "crash, validation_001: failed: the container ended with exit" in stdout
    assert stderr == ""
    assert left_behind() == ([], [], [])


def test_pictures_of_the_memory(archives, data, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    measure_good(archives, data, tmp_path, "--plots", team="slow")

    pictures = sorted((tmp_path / "slow" / "plots").iterdir())
    assert [file.name for file in pictures] == [f"{c}.png" for c in case_names(3)]
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in pictures)


def test_the_testing_phase_as_readme_shows_it(base, tmp_path):
    """Its commands, one after the other, in another folder for the results."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## The testing phase: measuring\n")[1]
    commands = re.search(r"```sh\n(.*?)```", section, flags=re.DOTALL)[1]
    assert commands.count("\n") == 5
    script = commands.replace("results/", f"{tmp_path}/")
    limits = "--gpu none --memory 1g --shm-size 64m"
    script = script.replace("--gpu none", limits)

    run = subprocess.run(
        ["bash", "-e", "-c", script], cwd=ROOT, capture_output=True, check=False
    )

    assert run.returncode == 0, run.stderr.decode()
    with (tmp_path / "ranking" / "ranking.csv").open() as content:
        ranks = {row["team"]: int(row["rank"]) for row in csv.DictReader(content)}
    assert (ranks["careful"], ranks["hasty"], ranks["crash"]) == (1, 2, 4)
    assert left_behind()[0] == []


def test_cases_whose_names_begin_alike_keep_their_predictions(archives, tmp_path):
    """`a` and `a.b`, which is measured first."""
    folder = write_cases(tmp_path / "data" / "images", ["a.b_0000", "a_0000"])

    measure_good(archives, folder.parent, tmp_path)

    files = sorted(file.name for file in (tmp_path / "good/predictions").iterdir())
    assert files == ["a.b.nii.gz", "a.nii.gz"]
