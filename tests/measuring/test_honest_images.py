"""Images as honest teams make them, which no protection may break."""

import os
from contextlib import contextmanager

import pytest

from tests.builders.teams import (
    PREDICT,
    measure_teams,
    rows_of,
    save_team,
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
