"""What stands in the way of a measurement with a real engine, and what comes of it."""

import json
import os
import shutil
import subprocess

import pytest

from tests.builders import ROOT, write_cases
from tests.builders.teams import (
    BASE,
    BRISK,
    LIMITS,
    PREDICT,
    brisk_command,
    docker,
    flare_command,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
    write_team,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow]

NAMED = f"named{os.getpid()}"
"""A team that nobody else has on this engine."""


def measure_good(archives, cases, output, *options, team="good", status=0):
    return brisk_command(
        *("measure", archives[team], "--images", cases / "images"),
        *("--output", output, *LIMITS, "--no-warm-up", *options),
        status=status,
    )


def test_an_image_that_cannot_start_is_its_team_s_fault(archives, one_case, tmp_path):
    """A user that is not there, and an entrypoint that does not run the command."""
    nobody = save_team(tmp_path, "nobody", PREDICT, "USER nobodyhere")
    entrypoint = 'ENTRYPOINT ["/workspace/start.sh"]'
    swallow = save_team(
        tmp_path, "swallow", PREDICT, "RUN echo 'exit 4' > start.sh", entrypoint,
        "RUN chmod 755 start.sh && sed -i '1i #!/bin/sh' start.sh || true",
    )  # fmt: skip

    measure_teams(tmp_path, one_case, nobody, swallow, archives["good"])

    found = {
        team: {row["status"] for row in rows_of(tmp_path / "results" / team).values()}
        for team in ("nobody", "swallow", "good")
    }
    assert found == {"nobody": {"failed"}, "swallow": {"failed"}, "good": {"ok"}}
    log = tmp_path / "results" / "nobody" / "logs" / "validation_001.log"
    assert "unable to find user nobodyhere" in log.read_text()
    for row in rows_of(tmp_path / "results" / "nobody").values():
        assert row["message"].startswith("the engine cannot run it: unable to find")


@pytest.fixture
def known(team_base, tmp_path):
    """The archive of a team whose name, and tag, is that of this run of the tests."""
    return {NAMED: write_team(tmp_path / "sent", NAMED, PREDICT)}


def test_an_image_of_the_same_name_is_none_of_ours(known, one_case, tmp_path):
    """Neither is it run, nor does it lose its name."""
    docker("tag", BASE, f"{NAMED}:latest")
    before = docker("image", "inspect", "--format", "{{.Id}}", f"{NAMED}:latest")
    try:
        measure_good(known, one_case, tmp_path, team=NAMED)
        after = docker("image", "inspect", "--format", "{{.Id}}", f"{NAMED}:latest")
    finally:
        docker("image", "rm", f"{NAMED}:latest")

    assert after == before
    assert {row["status"] for row in rows_of(tmp_path / NAMED).values()} == {"ok"}


def test_an_image_that_was_there_before_stays(known, one_case, tmp_path):
    docker("load", "--input", known[NAMED])
    try:
        measure_good(known, one_case, tmp_path, team=NAMED)
        assert docker("image", "inspect", f"{NAMED}:latest")
    finally:
        docker("image", "rm", f"{NAMED}:latest")


def test_two_measurements_of_a_team_wait_for_each_other(archives, one_case, tmp_path):
    """The second one finds everything done."""
    command = [*BRISK, "measure", archives["good"], *LIMITS]
    command += ["--images", one_case / "images", "--output", tmp_path, "--no-warm-up"]
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


@pytest.mark.tools("cc")
@pytest.mark.skipif(bool(shutil.which("nvidia-smi")), reason="there is a real GPU")
def test_an_engine_that_knows_no_gpu(archives, one_case, tmp_path):
    """A driver answers, but the engine cannot hand its GPU on: no team is blamed."""
    source = ROOT / "tests" / "fakes" / "nvml.c"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "script").write_text("10000 300 0 0 0 0")
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML": str(tmp_path / "script"),
    }

    _, stderr = flare_command(
        *("measure", archives["good"], "--images", one_case / "images", "--gpu", "0"),
        *("--output", tmp_path / "results", "--memory", "120m", "--shm-size", "16m"),
        status=1,
        env=environment,
    )

    assert stderr.startswith("An empty container cannot be run (could not select")
    assert not (tmp_path / "results" / "good" / "efficiency.csv").exists()
    assert left_behind(tmp_path) == []


def test_cases_whose_names_begin_alike_keep_their_predictions(archives, tmp_path):
    """`a` and `a.b`, which is measured first."""
    folder = write_cases(tmp_path / "data" / "images", ["a.b_0000", "a_0000"])

    measure_good(archives, folder.parent, tmp_path)

    files = sorted(file.name for file in (tmp_path / "good/predictions").iterdir())
    assert files == ["a.b.nii.gz", "a.nii.gz"]
