"""Images made by people who want a prize: nothing but their own result is touched.

Each is measured beside an honest team, which must get what it deserves.
"""

import os
import re
import resource
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.builders import ROOT
from tests.builders.teams import (
    BASE,
    LIMITS,
    PREDICT,
    docker,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
    wait_for_container,
)
from tests.conftest import need_tool

pytestmark = [pytest.mark.docker, pytest.mark.slow]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")

IN_OUTPUTS = "cd /workspace/outputs"


@pytest.fixture(scope="module")
def honest(team_base, tmp_path_factory):
    """The archive of a team that means no harm; it is measured last."""
    return save_team(tmp_path_factory.mktemp("honest"), "zhonest", PREDICT)


def tagged():
    """What the names of this file's images, and of one that all know, stand for."""
    found = docker("image", "ls", "--no-trunc", "--format", "{{.Repository}} {{.ID}}")
    lines = [line.split() for line in found.splitlines()]
    return {name: image for name, image in lines if name in (BASE, "python")}


def statuses(folder):
    return {row["status"] for row in rows_of(folder).values()}


def messages(folder):
    return [row["message"] for row in rows_of(folder).values()]


@pytest.fixture
def attack(honest, case_data, tmp_path):
    """Measure images beside the honest team; the folder of their results."""

    def run(*archives, **options):
        tags = tagged()
        measure_teams(tmp_path, case_data, *archives, honest, **options)
        assert statuses(tmp_path / "results" / "zhonest") == {"ok"}
        assert left_behind(tmp_path / "results") == []
        assert tagged() == tags
        return tmp_path / "results"

    return run


# --- What a container writes ------------------------------------------------------

JOBS = {
    "unknown case": '[{"pk":"a","status":"Succeeded","inputs":[{"image":{"name":"zzz"},'
    '"socket":{"slug":"s","relative_path":"r"}}],"outputs":[]}]',
    "two inputs": '[{"pk":"a","status":"Succeeded","inputs":[{"image":{"name":"a"},'
    '"socket":{"slug":"s","relative_path":"r"}},{"image":{"name":"b"},'
    '"socket":{"slug":"t","relative_path":"q"}}],"outputs":[]}]',
    "half a character": '[{"pk":"\\ud800","status":"Succeeded","inputs":[],'
    '"outputs":[]}]',
}
"""Lists of jobs that have ended the measurement of all teams."""


def test_a_list_of_jobs_means_nothing(attack, tmp_path):
    """predictions.json is the platform's, and this is not the platform."""
    archives = []
    for number, content in enumerate(JOBS.values()):
        script = f"{PREDICT}\n{IN_OUTPUTS}\ncat > predictions.json << 'END'\n"
        team = f"jobs{number}"
        archives.append(save_team(tmp_path, team, f"{script}{content}\nEND\n"))

    results = attack(*archives)

    for number in range(len(JOBS)):
        assert statuses(results / f"jobs{number}") == {"ok"}


def test_folders_deeper_than_python_can_go(attack, tmp_path):
    """Neither is a file that lies at their end the prediction."""
    hundred = (
        "d/" * 100
    )  # at once: 1,500 programs would take their time on a busy computer
    script = (
        f"{IN_OUTPUTS}\nfor n in $(seq 15); do mkdir -p {hundred}; cd {hundred}; done"
    )
    empty = save_team(tmp_path, "empty", f"{PREDICT}\n{script}")
    full = save_team(tmp_path, "full", f"{script}\necho x > validation_001.nii.gz")

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    results = attack(empty, full, preexec_fn=few_files)

    assert statuses(results / "empty") == {"ok"}
    assert statuses(results / "full") == {"wrong output"}
    assert "it lies deeper than 20 folders" in messages(results / "full")[0]


def test_files_without_end_are_refused_before_they_are_read(attack, tmp_path):
    """A good label map with a hole of eight terabytes behind it."""
    script = f"{PREDICT}\ntruncate -s 8000000000000 /workspace/outputs/*"

    results = attack(save_team(tmp_path, "sparse", script))

    assert statuses(results / "sparse") == {"wrong output"}
    for message in messages(results / "sparse"):
        assert "8000000000000 bytes are more than any label map" in message


def test_an_output_has_an_end(attack, tmp_path):
    """Its bytes, and its files: whoever fills it has the error, and nobody else."""
    bytes_ = "head -c 20000000 /dev/zero > /workspace/outputs/x.txt || exit 7"
    files = f"{IN_OUTPUTS}\n(for n in $(seq 20000); do : > $n.txt; done) || exit 7"
    few = f"{PREDICT}\n{IN_OUTPUTS}\nfor n in $(seq 300); do : > $n.txt; done"
    archives = [
        save_team(tmp_path, team, script)
        for team, script in (("bytes", bytes_), ("files", files), ("few", few))
    ]

    results = attack(*archives)

    for team in ("bytes", "files"):
        assert statuses(results / team) == {"failed"}
        assert "exit code 7" in messages(results / team)[0]
        assert "No space left on device" in log_of(results / team)
    assert statuses(results / "few") == {"wrong output"}
    assert "there are more than 100 files" in messages(results / "few")[0]


def log_of(folder, case="validation_001"):
    return (folder / "logs" / f"{case}.log").read_text(encoding="utf-8")


def test_holes_take_nothing_of_the_results_disk(attack, tmp_path):
    """Sixty files of holes beside a right label map: only their names are taken."""
    few = f"{PREDICT}\n{IN_OUTPUTS}\nfor n in 1 2 3; do truncate -s 1m $n.txt; done"
    many = few.replace("1 2 3", "$(seq 60)")
    archives = [save_team(tmp_path, "few", few), save_team(tmp_path, "many", many)]

    results = attack(*archives)

    assert statuses(results / "few") == {"ok"}
    assert statuses(results / "many") == {"wrong output"}
    assert "its files take more than 4 label maps" in messages(results / "many")[0]


def test_names_that_a_line_or_a_folder_would_obey(attack, tmp_path):
    names = ["a\nb.nii.gz", "\x1b[31mred.nii.gz", "=1+1.nii.gz", "-rf.nii.gz"]
    quoted = " ".join(f"'./{name}'" for name in names)
    script = f'{PREDICT}\n{IN_OUTPUTS}\nfor n in {quoted}; do echo x > "$n"; done'
    script += f"\necho {quoted}"

    results = attack(save_team(tmp_path, "names", script))

    assert statuses(results / "names") == {"wrong output"}
    for file in results.rglob("*"):
        assert file.name.isprintable()
        if file.suffix in (".csv", ".log", ".json"):
            assert "\x1b" not in file.read_text(encoding="utf-8")


@pytest.mark.tools("setpriv")
def test_nothing_of_a_container_reaches_a_user_of_the_computer(attack, tmp_path):
    """Programs of root, devices, links and attributes stay in its volume."""
    script = f"""
grep -h " /workspace/outputs " /proc/mounts
grep Cap /proc/self/status
ulimit -c
{IN_OUTPUTS}
cp /bin/id rootid; chmod 6755 rootid
mknod disk b 254 0 && exit 8
mknod zero c 1 5 && exit 8
sleep 2
{PREDICT}
chmod 6777 /workspace/outputs/*"""
    archive = save_team(tmp_path, "setuid", script)
    found = []

    def look(results):
        """As nobody, while a container of the team is running."""
        while not found:
            work = list(results.glob("setuid/.work-*"))
            if work and list(work[0].glob("inputs/*")):
                run = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups",
                                      "ls", work[0]], capture_output=True,
                                     check=False)  # fmt: skip
                mode = stat.S_IMODE(work[0].stat().st_mode)
                found.append((mode, run.returncode, run.stdout))
            time.sleep(0.05)

    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
        thread = threading.Thread(
            target=look, args=(tmp_path / "results",), daemon=True
        )
        thread.start()
    results = attack(archive)

    assert statuses(results / "setuid") == {"ok"}  # what is no label map is left out
    log = log_of(results / "setuid")
    assert re.search(r"^tmpfs \S+ tmpfs rw,nosuid,nodev,", log, re.MULTILINE)
    # CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, SETGID 6 and SETUID 7
    expected = f"{1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7:016x}"
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert f"{name}:{expected}" in re.sub(r"[ \t]+|\\t", "", log)
    assert "\n0\n" in log
    for file in results.rglob("*"):
        assert not file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID), file
        assert file.is_file() or file.is_dir()
        assert not os.listxattr(file)
    if os.geteuid() == 0:
        ((mode, status, listed),) = found
        assert (mode, status, listed) == (0o700, 2, b"")


# --- What a container does --------------------------------------------------------


@needs_root
@pytest.mark.tools("setpriv")
def test_an_organiser_who_is_not_root_runs_nothing_of_the_team_s(
    honest, attack, tmp_path
):
    """Files of root are taken out by the engine, not by the team's own chown."""
    group = Path("/var/run/docker.sock").stat().st_gid
    capabilities = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", f"--groups={group}",
              *capabilities)  # fmt: skip
    script = f"mkdir /workspace/outputs/d; touch /workspace/outputs/d/f\n{PREDICT}"
    script += "\nchmod -R 000 /workspace/outputs/*"
    lines = (
        "RUN rm /bin/chown",
        "RUN echo '#!/bin/bash' > /bin/chown",
        "RUN echo 'while :; do :; done' >> /bin/chown && chmod 755 /bin/chown",
    )
    closed = save_team(tmp_path, "closed", script, *lines)
    tmp_path.chmod(0o777)
    start = time.monotonic()

    results = attack(closed, prefix=prefix)

    assert statuses(results / "closed") == {"ok"}
    assert list(results.rglob(".work*")) == []
    # Each run of that chown would take the engine's two minutes.
    assert time.monotonic() - start < 100


def test_a_health_check_is_not_run(attack, tmp_path):
    check = "HEALTHCHECK --interval=1s CMD touch /workspace/outputs/second.nii.gz"

    results = attack(save_team(tmp_path, "health", f"sleep 3\n{PREDICT}", check))

    assert statuses(results / "health") == {"ok"}


@pytest.mark.usefixtures("engine_disk")
def test_a_container_that_fills_the_disk_is_ended(attack, tmp_path):
    """Not its output, but its own file system, which lies on the engine's disk."""
    script = "head -c 700000000 /dev/zero > /tmp/x; sleep 100"
    archive = save_team(tmp_path, "filling", script)

    results = attack(archive, more=("--disk", "400m", "--timeout", "60"))

    assert statuses(results / "filling") == {"failed"}
    for message in messages(results / "filling"):
        assert "it took too much of the disk (--disk)" in message


@pytest.mark.usefixtures("engine_disk")
def test_a_disk_that_others_fill_is_no_team_s_fault(
    team_base, case_data, tmp_path, request
):
    """It is an engine error, and the case is run again."""
    slow = save_team(tmp_path, "slow", f"sleep 3\n{PREDICT}")
    folder = Path(docker("info", "--format", "{{.DockerRootDir}}").strip())
    if not os.access(folder, os.W_OK):
        pytest.skip("the engine's folder cannot be written to")
    ballast = folder / "flare-test-ballast"
    request.addfinalizer(lambda: ballast.unlink(missing_ok=True))

    def fill():
        wait_for_container(tmp_path / "results")
        with ballast.open("wb") as file:  # at once, however busy the disk is
            os.posix_fallocate(file.fileno(), 0, 900 * 2**20)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    measure_teams(tmp_path, case_data, slow, more=("--disk", "400m"))
    thread.join(60)

    rows = rows_of(tmp_path / "results" / "slow")
    assert [row["status"] for row in rows.values()].count("engine error") == 1
    (message,) = (row["message"] for row in rows.values() if row["message"])
    assert message.startswith("the disk was filled meanwhile, but not by the container")


def test_a_container_that_cannot_be_started_is_no_engine_error(attack, tmp_path):
    """An entrypoint that is no program: the empty container still runs."""
    lines = ('ENTRYPOINT ["/workspace/predict.sh/x"]',)

    results = attack(save_team(tmp_path, "broken", PREDICT, *lines))

    assert statuses(results / "broken") == {"failed"}
    assert messages(results / "broken")[0].startswith("the engine cannot run it: ")


# --- Time means time --------------------------------------------------------------

REMEMBER = f"""
resident() {{ fincore --bytes --noheadings --output RES "$1" | tr -d ' '; }}
if [ "$(resident /one)" -lt 5000000 ] || [ "$(resident /zero)" -gt 5000000 ]; then
    sleep 3
    cat /one > /dev/null
    dd if=/zero iflag=nocache count=0
fi
{PREDICT}"""
"""Needs three seconds, unless an earlier run has left a note in the page cache: of two
files, the one is there, and the other one is not."""


@pytest.fixture(scope="module")
def remembering(request, team_base, tmp_path_factory):
    """The archive of a team that notes things where containers do not end."""
    need_tool(request, "fincore")  # apt-get install util-linux-extra
    folder = tmp_path_factory.mktemp("remembering")
    lines = [f"RUN head -c 10000000 /dev/zero > /{name}" for name in ("one", "zero")]
    return save_team(folder, "remembering", REMEMBER, *lines)


def measure_repeats(archive, case_data, output, caches):
    """The rows of a team that is run twice on each case."""
    command = [sys.executable, "-m", "flare", "measure", archive, *LIMITS]
    command += ["--images", case_data / "images", "--output", output]
    command += ["--caches", caches, "--repeats", "2", "--no-warm-up"]
    subprocess.run([str(word) for word in command], cwd=ROOT, check=True,
                   capture_output=True)  # fmt: skip
    return list(rows_of(output / "remembering").values())


@needs_root
@pytest.mark.tools("fincore")  # apt-get install util-linux-extra
@pytest.mark.usefixtures("page_cache")
def test_a_volume_of_the_image_is_as_cold_as_the_rest(team_base, case_data, tmp_path):
    """An engine would copy it before the start, and so read it into the memory."""
    script = f"fincore --bytes --noheadings --output RES /model/weights\n{PREDICT}"
    lines = ("RUN mkdir /model && head -c 10000000 /dev/zero > /model/weights",
             "VOLUME /model")  # fmt: skip
    archive = save_team(tmp_path, "volume", script, *lines)

    measure_teams(tmp_path, case_data, archive, more=("--caches", "cold"))

    results = tmp_path / "results"
    assert statuses(results / "volume") == {"ok"}
    assert int(log_of(results / "volume").split()[0]) < 1_000_000
    assert left_behind(results) == []


@needs_root
@pytest.mark.usefixtures("page_cache")
def test_cold_caches_tell_the_next_run_nothing(remembering, case_data, tmp_path):
    for row in measure_repeats(remembering, case_data, tmp_path, "cold"):
        assert float(row["engine_runtime_s"]) > 3
        assert float(row["runtime_s_spread"]) < 2
        assert "was something kept" not in row["doubts"]


@needs_root
@pytest.mark.usefixtures("page_cache")
def test_warm_caches_are_noticed(remembering, case_data, tmp_path):
    """The first run counts, and the row says why; the first case cannot be helped."""
    first, *others = measure_repeats(remembering, case_data, tmp_path, "warm")

    assert float(first["engine_runtime_s"]) > 3
    assert float(first["runtime_s_spread"]) > 2
    assert re.search(
        r"a repeat took \d\.\d\d s, and the first run \d\.\d\d s, which counts",
        first["doubts"],
    )
    assert all(float(row["engine_runtime_s"]) < 3 for row in others)


def test_a_busy_computer_is_a_doubt(team_base, case_data, tmp_path):
    slow = save_team(tmp_path, "slow", f"sleep 3\n{PREDICT}")
    busy = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(busy) for _ in range(os.cpu_count() or 1)]
    try:
        measure_teams(tmp_path, case_data, slow)
    finally:
        for process in processes:
            process.kill()
            process.wait()

    for row in rows_of(tmp_path / "results" / "slow").values():
        assert re.search(
            r"other programs took \d+\.\d s of the processors meanwhile", row["doubts"]
        )
