"""Measuring with the real Apptainer: tiny images of teams that are good, and of others.

They are made without any engine. Root is refused, so these tests need another user.
"""

import json
import os
import re
import shutil

import pytest

from tests.builders.archives import save, tar
from tests.builders.models import write_model
from tests.builders.teams import (
    LIMITS,
    PREDICT,
    SCRIPTS,
    flare_command,
    root_files,
    rows_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.apptainer]

STATUSES = {
    **dict.fromkeys(("good", "slow", "forking", "owner", "network"), "ok"),
    **dict.fromkeys(("meddling", "chatty", "probe", "trained"), "ok"),
    **dict.fromkeys(("home", "settings", "devices"), "ok"),
    "crash": "failed",
    **dict.fromkeys(("hang", "bomb"), "timed out"),
    **dict.fromkeys(("hungry", "several"), "out of memory"),
    "silent": "no output",
    **dict.fromkeys(("misnamed", "extra", "text", "link", "pipe"), "wrong output"),
}
"""What comes of each team."""

PROBE = f"""
grep -E "^(CapEff|CapBnd|NoNewPrivs):" /proc/self/status
echo 5 > /proc/sys/user/max_user_namespaces && exit 4
touch /etc/new /tmp/new /workspace/new || exit 5
head -c 20000000 /dev/zero > /workspace/outputs/big && exit 6
rm /workspace/outputs/big
ls -A /sys/fs/cgroup
env
umask
{PREDICT}
"""

MORE = {
    "probe": PROBE,
    "several": "for n in 1 2 3 4 5 6 7 8; do (x=$(head -c 20000000 /dev/zero"
    " | tr '\\0' a); sleep 60) & done; wait",
    "trained": "test -s /opt/ml/model/plans.json || exit 7\n"
    f"touch /opt/ml/model/mine 2> /dev/null && exit 8\n{PREDICT}",
}

ENVIRONMENT = ["PATH=/bin:/usr/bin", "TEXT=$(id) `id` \"a\" 'b', c=d", "A=B"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """What each team has sent."""
    if os.geteuid() == 0:
        pytest.skip("nothing is measured with Apptainer as root")
    folder = tmp_path_factory.mktemp("archives")
    base = root_files()
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret").touch()
    links = {
        "home": {"root": f"-> {outside}", "var": f"-> {outside}"},
        "settings": {".singularity.d": f"-> {outside}", "environment": "-> /x"},
        "devices": {"etc": f"-> {outside}", "sys": f"-> {outside}"},
    }
    for team, script in (SCRIPTS | MORE | dict.fromkeys(links, PREDICT)).items():
        files = {"workspace/predict.sh": script.encode() + b"\n"}
        save(
            folder,
            base,
            tar(files | links.get(team, {})),
            name=f"{team}.tar.gz",
            tags=[f"{team}:latest"],
            Env=ENVIRONMENT,
            **({"Entrypoint": ["/bin/env", "B=C"]} if team == "probe" else {}),
        )
    write_model(folder, name="trained.model.tar.gz")
    return folder


@pytest.fixture(scope="module")
def measured(archives, case_data, tmp_path_factory):
    """All teams, measured on the first case and scored."""
    folder = tmp_path_factory.mktemp("measured")
    for kind, name in (("images", "_0000.nii.gz"), ("labels", ".nii.gz")):
        (folder / kind).mkdir()
        shutil.copy(case_data / kind / f"validation_001{name}", folder / kind)
    stdout, stderr = flare_command(
        *("measure", archives, "--images", folder / "images"),
        *("--ground-truth", folder / "labels", "--output", folder / "results"),
        *(*LIMITS, "--no-warm-up", "--engine", "apptainer"),
    )
    assert stderr == ""
    return folder / "results", stdout


@pytest.mark.parametrize("team", STATUSES)
def test_the_status_of_each_team(measured, team):
    """As with Docker; and only the good ones have values."""
    results, _ = measured
    row = rows_of(results / team)["validation_001"]

    assert row["status"] == STATUSES[team], row["message"]
    is_ok = row["status"] == "ok"
    for name in ("runtime_s", "cpu_s", "max_host_memory_mb"):
        assert bool(row[name]) == is_ok, name
    assert row["engine_runtime_s"] == ""
    assert len(list((results / team / "predictions").iterdir())) == is_ok


def test_nothing_is_left_behind(measured, archives):
    """Nor has any image written to the folders of this user."""
    results, _ = measured

    assert list(results.rglob(".*")) == []
    assert {path.name for path in (results / "good").iterdir()} == {
        *("efficiency.csv", "logs", "measurement.json", "metrics.json"),
        *("predictions", "traces"),
    }
    assert [path.name for path in (archives / "outside").iterdir()] == ["secret"]


def test_a_time_is_that_of_the_container(measured):
    """Two seconds of sleep, and what Apptainer costs, which is written down."""
    results, _ = measured
    row = rows_of(results / "slow")["validation_001"]
    record = json.loads((results / "slow" / "measurement.json").read_text())
    (session,) = record["sessions"]

    assert 2 < float(row["runtime_s"]) < 6
    assert 0 < session["engine_cost_s"]["median"] < 4
    assert session["calibration"]["before"]["problem"] == ""
    assert session["calibration"]["after"]["integers_s"]["smallest"] > 0
    assert session["engine"]["version"].startswith("Apptainer ")


def test_what_a_container_has_and_sees(measured):
    """No powers, no secrets, no control groups; the variables of its image."""
    results, _ = measured
    log = (results / "probe" / "logs" / "validation_001.log").read_text()
    lines = log.splitlines()

    for name in ("CapEff", "CapBnd"):
        assert re.search(rf"^{name}:\s+0+$", log, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", log, re.MULTILINE)
    assert "0022" in lines
    own = {"A=B", "B=C", ENVIRONMENT[1], "HOME=/root", "CUDA_VISIBLE_DEVICES="}
    assert own <= set(lines)
    assert not [line for line in lines if line.startswith("PYTEST_")]
    assert not [line for line in lines if "TOKEN" in line or line == "memory"]
