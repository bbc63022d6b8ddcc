"""Images made by people who want a prize: nothing but their own result is touched.

They are measured beside an honest team, which must get what it deserves: most of them
together, and those by themselves that need limits, or a user, of their own. Nobody else
may fill the disk, empty the memory, or keep the processors busy, meanwhile.
"""

import os
import re
import resource
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.builders.teams import (
    BASE,
    LIMITS,
    PREDICT,
    brisk_command,
    docker,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
    write_team,
)
from tests.conftest import need_tool

pytestmark = [pytest.mark.docker, pytest.mark.slow]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")

IN_OUTPUTS = "cd /workspace/outputs"


@pytest.fixture(scope="module")
def honest(team_base, tmp_path_factory):
    """The archive of a team that means no harm; it is measured last."""
    return write_team(tmp_path_factory.mktemp("honest"), "zhonest", PREDICT)


def tagged():
    """What the names of this file's images, and of one that all know, stand for."""
    found = docker("image", "ls", "--no-trunc", "--format", "{{.Repository}} {{.ID}}")
    lines = [line.split() for line in found.splitlines()]
    return {name: image for name, image in lines if name in (BASE, "python")}


def statuses(folder):
    return {row["status"] for row in rows_of(folder).values()}


def messages(folder):
    return [row["message"] for row in rows_of(folder).values()]


JOBS = f"""{PREDICT}
{IN_OUTPUTS}
cat > predictions.json << 'END'
[{{"pk":"\\ud800","status":"Succeeded","inputs":[],"outputs":[]}}]
END
"""
"""A list of jobs, with half a character, that has ended the measurement of all."""

HUNDRED = "d/" * 100
"""Made at once: 1,500 programs would take their time on a busy computer."""

DIG = f"{IN_OUTPUTS}\nfor n in $(seq 15); do mkdir -p {HUNDRED}; cd {HUNDRED}; done"

NAMES = ("a\nb.nii.gz", "\x1b[31mred.nii.gz", "=1+1.nii.gz", "-rf.nii.gz")

QUOTED = " ".join(f"'./{name}'" for name in NAMES)

SETUID = f"""
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

ATTACKS = {
    "jobs": JOBS,
    "deepfull": f"{DIG}\necho x > validation_001.nii.gz",
    "sparse": f"{PREDICT}\ntruncate -s 8000000000000 /workspace/outputs/*",
    "bytes": "head -c 20000000 /dev/zero > /workspace/outputs/x.txt || exit 7",
    "files": f"{IN_OUTPUTS}\n(for n in $(seq 20000); do : > $n.txt; done) || exit 7",
    "names": f"{PREDICT}\n{IN_OUTPUTS}\nfor n in {QUOTED}; do"
    f' echo x > "$n"; done\necho {QUOTED}',
    "setuid": SETUID,
    "health": f"sleep 3\n{PREDICT}",
    "broken": PREDICT,
}
"""What the teams do that are measured together, each with the usual limits."""

OUTCOMES = {
    # predictions.json is the platform's, and this is not the platform.
    "jobs": ("ok", ""),
    # Deeper than Python can go.
    "deepfull": ("wrong output", "it lies deeper than 20 folders"),
    # A good label map with a hole of eight terabytes behind it.
    "sparse": ("wrong output", "8000000000000 bytes are more than any label map"),
    # An output has an end: its bytes, and its files.
    "bytes": ("failed", "exit code 7"),
    "files": ("failed", "exit code 7"),
    "names": ("wrong output", ""),
    "setuid": ("ok", ""),
    # A health check is not run: it would write a second label map.
    "health": ("ok", ""),
    # An entrypoint that is no program: the empty container still runs.
    "broken": ("failed", "the engine cannot run it: "),
    "zhonest": ("ok", ""),
}
"""Status and message of each, and of the honest team behind them."""

LEAVING = ("deepfull", "files", "names", "setuid")
"""Those that a second case is for: it would meet what the first one has left."""

LINES = {
    "health": "HEALTHCHECK --interval=1s CMD touch /workspace/outputs/second.nii.gz",
    "broken": 'ENTRYPOINT ["/workspace/predict.sh/x"]',
}
"""What else their images are made of."""


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def look(results, found):
    """As nobody, while a container of the team `setuid` is running."""
    while not found:
        work = list(results.glob("setuid/.work-*"))
        if work and list(work[0].glob("inputs/*")):
            run = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups",
                                  "ls", work[0]], capture_output=True,
                                 check=False)  # fmt: skip
            mode = stat.S_IMODE(work[0].stat().st_mode)
            found.append((mode, run.returncode, run.stdout))
        time.sleep(0.05)


@pytest.fixture(scope="module")
def attacked(request, honest, one_case, two_cases, tmp_path_factory):
    """The results of all attacks, what tags stood for, what nobody has seen."""
    folder, found = tmp_path_factory.mktemp("attacked"), []
    folder.chmod(0o755)
    archives = {
        team: save_team(folder, team, script, LINES[team])
        if team in LINES
        else write_team(folder, team, script)
        for team, script in ATTACKS.items()
    }
    leaving = [archives.pop(team) for team in LEAVING]
    results, tags = folder / "results", tagged()
    if os.geteuid() == 0:
        need_tool(request, "setpriv")
        threading.Thread(target=look, args=(results, found), daemon=True).start()
    options = {"results": results, "preexec_fn": few_files}
    measure_teams(folder / "one", one_case, *archives.values(), **options)
    measure_teams(folder / "two", two_cases, *leaving, honest, **options)
    return results, tags, found


def log_of(folder, case="validation_001"):
    return (folder / "logs" / f"{case}.log").read_text(encoding="utf-8")


# --- What a container writes ------------------------------------------------------


def test_nothing_but_their_own_result_is_touched(attacked):
    results, tags, _ = attacked

    assert left_behind(results) == []
    assert tagged() == tags


@pytest.mark.parametrize("team", OUTCOMES)
def test_a_hostile_image_gets_its_status_and_message(attacked, team):
    results, _, _ = attacked
    status, message = OUTCOMES[team]

    assert statuses(results / team) == {status}
    assert all(message in text for text in messages(results / team))
    if team in ("bytes", "files"):
        assert "No space left on device" in log_of(results / team)


def test_nothing_of_a_container_reaches_a_user_of_the_computer(attacked):
    """Programs of root, devices, links and attributes stay in its volume.

    Nor has a line, or a name, what a terminal or a folder would obey.
    """
    results, _, found = attacked

    log = log_of(results / "setuid")
    assert re.search(r"^tmpfs \S+ tmpfs rw,nosuid,nodev,", log, re.MULTILINE)
    # CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, SETGID 6 and SETUID 7
    expected = f"{1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7:016x}"
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert f"{name}:{expected}" in re.sub(r"[ \t]+|\\t", "", log)
    assert "\n0\n" in log
    for file in results.rglob("*"):
        assert file.name.isprintable()
        if file.suffix in (".csv", ".log", ".json"):
            assert "\x1b" not in file.read_text(encoding="utf-8")
        assert not file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID), file
        assert file.is_file() or file.is_dir()
        assert not os.listxattr(file)
    if os.geteuid() == 0:
        ((mode, status, listed),) = found
        assert (mode, status, listed) == (0o700, 2, b"")


# --- What a container does --------------------------------------------------------


@pytest.mark.gate
@needs_root
@pytest.mark.tools("setpriv")
def test_an_organiser_who_is_not_root_runs_nothing_of_the_team_s(
    honest, one_case, tmp_path
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

    measure_teams(tmp_path, one_case, closed, honest, prefix=prefix)

    results = tmp_path / "results"
    assert statuses(results / "closed") == statuses(results / "zhonest") == {"ok"}
    assert left_behind(results) == []
    assert list(results.rglob(".work*")) == []
    # Each run of that chown would take the engine's two minutes.
    assert time.monotonic() - start < 100


# --- The disk ---------------------------------------------------------------------


@pytest.mark.usefixtures("engine_disk")
def test_a_container_that_fills_the_disk_is_ended(archives, one_case, tmp_path):
    """Not its output, but its own file system, which lies on the engine's disk."""
    script = "head -c 700000000 /dev/zero > /tmp/x; sleep 100"
    archive = write_team(tmp_path, "filling", script)
    limits = ("--disk", "400m", "--timeout", "60")

    measure_teams(tmp_path, one_case, archive, archives["good"], more=limits)

    results = tmp_path / "results"
    assert statuses(results / "filling") == {"failed"}
    (row,) = rows_of(results / "filling").values()
    assert "it took too much of the disk (--disk)" in row["message"]
    # The other team is measured behind it, and gets what it deserves.
    assert statuses(results / "good") == {"ok"}
    assert left_behind(results) == []


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


def measure_repeats(archive, cases, output, caches):
    """The rows of a team that is run twice on each case."""
    brisk_command(
        *("measure", archive, "--images", cases / "images", "--output", output),
        *(*LIMITS, "--caches", caches, "--repeats", "2", "--no-warm-up"),
    )
    return list(rows_of(output / "remembering").values())


@needs_root
@pytest.mark.usefixtures("page_cache")
def test_cold_caches_tell_the_next_run_nothing(remembering, two_cases, tmp_path):
    """No run is quicker by the three seconds, however busy the computer is."""
    for row in measure_repeats(remembering, two_cases, tmp_path, "cold"):
        assert float(row["runtime_s"]) > 3
        assert float(row["runtime_s_spread"]) < 2
