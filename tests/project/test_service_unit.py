"""The unit of the guide, as systemd itself reads it."""

import re
import subprocess

import pytest

from tests.builders import ROOT

GUIDE = (ROOT / "docs" / "organisers" / "external-evaluation.md").read_text("utf-8")

(UNIT,) = re.findall(r"```ini\n(.*?)```", GUIDE, flags=re.DOTALL)


def verified(home, unit):
    """What systemd says of a unit of somebody's, and its status."""
    folder = home / ".config" / "systemd" / "user"
    folder.mkdir(parents=True)
    (home / "run").mkdir(mode=0o700)
    (home / "flare").mkdir()
    (home / "flare" / "flare.sh").write_text("#!/bin/sh\n")
    (home / "flare" / "flare.sh").chmod(0o755)
    file = folder / "flare-serve.service"
    file.write_text(unit)
    run = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", file],
        env={"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "PATH": "/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout + run.stderr


@pytest.mark.tools("systemd-analyze")  # apt-get install systemd
def test_systemd_has_nothing_to_say(tmp_path):
    assert verified(tmp_path, UNIT) == (0, "")


@pytest.mark.tools("systemd-analyze")
@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("RestartSec=", "RestrtSec=", "Unknown key"),
        ("KillMode=mixed", "KillMode=mixd", "Failed to parse kill mode"),
        ("%h/flare/flare.sh serve", "%h/flare.sh serve", "is not executable"),
    ],
)
def test_a_mistake_in_it_would_be_said(tmp_path, was, now, said):
    assert was in UNIT

    assert said in verified(tmp_path, UNIT.replace(was, now))[1]


def test_it_serves_as_the_guide_does():
    """Its options are those of the command, and its token is a file."""
    words = re.search(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[1].split()

    assert words[:2] == ["%h/flare/flare.sh", "serve"]
    assert words[2::2] == ["--phase", "--images", "--ground-truth", "--output"]
    assert "Environment=FLARE_GC_TOKEN_FILE=%h/token\n" in UNIT
