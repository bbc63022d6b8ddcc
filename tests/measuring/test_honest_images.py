"""Images as honest teams make them, which no protection may break."""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders.teams import (
    PREDICT,
    brisk_command,
    flare_command,
    measure_teams,
    rows_of,
    save_team,
    write_team,
)
from tests.builders.teams import docker as run_docker

pytestmark = [pytest.mark.docker, pytest.mark.slow]

PYTHON = r"""
set -e
python3 - <<'END'
import multiprocessing, os, pathlib, shutil, subprocess, tempfile
import numpy

def square(n):
    return int(numpy.square(n))

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:  # /dev/shm
        assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    assert pathlib.Path("/model/weights").read_text() == "weights\n"
    home = pathlib.Path.home()
    for folder in (tempfile.gettempdir(), ".", home, "/dev/shm"):
        file = pathlib.Path(folder, "scratch")
        file.write_text("x")
        file.unlink()
    pathlib.Path("/workspace/outputs/plans.json").write_text("{}")
    subprocess.run(["bash", "-c", "kill $$"], check=False)
END
"""
"""What nnU-Net and its like do, without the network: processes that share memory, a
model, temporary files in all the usual places, a file of its own beside the output."""

MODEL = (
    "RUN pip install --no-cache-dir numpy && mkdir /model"
    " && echo weights > /model/weights"
)

AS_ROOT = f"""{PYTHON}
# Files of another user, whom nobody else may read; archives with owners; another user.
cat /private/weights > /dev/null
tar -C /tmp -xf /private/model.tar && test "$(stat -c %u /tmp/weights)" = 1234
chown 1234:1234 /tmp/weights && chmod 600 /tmp/weights
touch -d 2001-01-01 /tmp/weights
su other -s /bin/bash -c "id -u" | grep 1234
cp -a /private/weights /tmp/copy
{PREDICT}
chown 1234:1234 /workspace/outputs/*"""

PRIVATE = (
    "RUN useradd -u 1234 -m other && mkdir /private && echo w > /private/weights"
    " && chown -R 1234:1234 /private && chmod -R 700 /private"
    " && tar -C /private -cf /private/model.tar weights",
)


@contextmanager
def base_with_model():
    """An image with Python, a package and a model, which is made only once."""
    name = f"flare-test-model-base-{os.getpid()}"
    text = ["FROM python:3.13-slim", MODEL]
    run_docker("build", "--quiet", "--tag", name, "-", input="\n".join(text).encode())
    try:
        yield name
    finally:
        run_docker("image", "rm", "--force", name)


@pytest.mark.usefixtures("engine_disk")
def test_images_as_teams_build_them(docker, two_cases, tmp_path):
    """Python and pip's packages, as root and as another user, with volumes and more."""
    user = ("RUN useradd -u 1000 -m team && chown -R team /workspace", "USER team")
    more = (
        "VOLUME /workspace/outputs",
        "VOLUME /scratch",
        "ENV LD_LIBRARY_PATH=/usr/local/lib:",
        "STOPSIGNAL SIGINT",
        'ENTRYPOINT ["/usr/bin/env"]',
    )
    teams = {
        "root": (AS_ROOT, *PRIVATE),
        "user": (f"{PYTHON}{PREDICT}", *user, *more),
    }
    with base_with_model() as base:
        archives = [
            # 400 MB, which take half a minute to compress and to read again; tiny
            # images are compressed elsewhere.
            save_team(tmp_path, team, *made, base=base, compressed=False)
            for team, made in teams.items()
        ]

    measure_teams(
        *(tmp_path, two_cases, *archives),
        more=("--memory", "1g", "--timeout", "120", "--shm-size", "64m"),
    )

    for team in ("root", "user"):
        for row in rows_of(tmp_path / "results" / team).values():
            assert row["status"] == "ok", row["message"]


# --- Engines with stronger walls --------------------------------------------------


@pytest.fixture
def mapped_engine(docker):
    """A second engine, in which root of a container is nobody on the computer."""
    needed = ("dockerd", "unshare", "useradd")
    if os.geteuid() != 0 or not all(map(shutil.which, needed)):
        pytest.skip("only root may start a second engine, with dockerd and unshare")
    tmp_path = Path(tempfile.mkdtemp(dir="/var/tmp"))
    tmp_path.chmod(0o755)  # for the user who root becomes
    socket = f"unix://{tmp_path}/engine.sock"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", "--net", "dockerd", "--userns-remap=default", "--host", socket,
             "--data-root", tmp_path / "data", "--exec-root", tmp_path / "exec",
             "--pidfile", tmp_path / "pid", "--bridge", "none", "--iptables=false"],
            stdout=log, stderr=log,
        )  # fmt: skip
    environment = os.environ | {"DOCKER_HOST": socket}
    deadline = time.monotonic() + 60
    while subprocess.run(["docker", "info"], env=environment, capture_output=True,
                         check=False).returncode:  # fmt: skip
        if time.monotonic() > deadline or process.poll() is not None:
            process.kill()
            pytest.skip(f"it does not start: {(tmp_path / 'log').read_text()[-500:]}")
        time.sleep(0.3)
    yield environment
    process.terminate()
    process.wait(60)
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_root_that_is_nobody(mapped_engine, one_case, tmp_path):
    """The user namespace is found, and measuring works in it as elsewhere."""
    script = f"cat /proc/self/uid_map\n{PREDICT}\nchmod 000 /workspace/outputs/*"
    archive = write_team(tmp_path, "mapped", script)

    stdout, _ = measure_teams(tmp_path, one_case, archive, env=mapped_engine)

    folder = tmp_path / "results" / "mapped"
    assert {row["status"] for row in rows_of(folder).values()} == {"ok"}
    log = (folder / "logs" / "validation_001.log").read_text()
    inside, outside, _ = log.splitlines()[0].split()
    assert (inside, outside == "0") == ("0", False)
    assert "root in a container is root of this computer" not in stdout


@pytest.mark.parametrize("runtime", ["runc", "nosuch"])
def test_a_runtime_can_be_chosen(archives, one_case, tmp_path, runtime):
    """One that is not there is no team's fault: not even our own image can be run."""
    is_there = runtime == "runc"

    stdout, stderr = measure_teams(
        *(tmp_path, one_case, archives["good"]),
        more=("--runtime", runtime),
        run=brisk_command if is_there else flare_command,
        status=int(not is_there),
    )

    if not is_there:
        assert "nosuch" in stderr
        assert stderr.endswith("[H05]\n")
        assert not (tmp_path / "results" / "good" / "efficiency.csv").exists()
    else:
        assert "good: 1 ok" in stdout
