"""The service on a phase of the platform, with images that a real engine runs."""

import pytest

from tests.builders.models import model_bytes
from tests.builders.teams import (
    LIMITS,
    PREDICT,
    SCRIPTS,
    brisk_command,
    left_behind,
    write_team,
)
from tests.fakes.platform import PHASE, TOKEN

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def serve(tmp_path, two_cases, external_platform, monkeypatch):
    """Serve the phase as a process of its own; what it has written."""
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    monkeypatch.setenv("FLARE_GC_TOKEN_FILE", str(token))

    def run():
        stdout, stderr = brisk_command(
            *("serve", "--phase", PHASE, "--api", external_platform.api, "--once"),
            *("--images", two_cases / "images", "--output", tmp_path / "results"),
            *("--ground-truth", two_cases / "labels", *LIMITS, "--no-warm-up"),
        )
        assert stderr == ""
        assert TOKEN not in stdout
        return stdout

    return run


def test_good_crashing_wrong_slow_and_broken_images(
    tmp_path, docker, team_base, external_platform, serve
):
    """What the platform has received of each, and nothing is left in the engine.

    The slow one hangs on its first case, of two.
    """
    slow = f"case $(ls /workspace/inputs) in *001*) sleep 600 ;; esac\n{PREDICT}"
    scripts = {
        "good": PREDICT,
        "crash": SCRIPTS["crash"],
        "wrong": SCRIPTS["text"],
        "slow": slow,
    }
    for user, script in scripts.items():
        archive = write_team(tmp_path, f"image-of-{user}", script)
        external_platform.submit(user, archive.read_bytes())
    external_platform.submit("broken", archive.read_bytes()[:-20_000])
    needs = f"test -s /opt/ml/model/weights/fold_0.pt || exit 7\n{PREDICT}"
    archive = write_team(tmp_path, "image-of-model", needs)
    external_platform.submit("model", archive.read_bytes(), model=model_bytes())
    external_platform.submit("torn", archive.read_bytes(), model=model_bytes()[:-9])

    serve()

    answers = {user: one for user, (one,) in external_platform.answers().items()}
    good = answers["good"]["metrics"]
    assert good["aggregates"]["dsc_mean"] == 1
    assert good["aggregates"]["cases_ok"] == 2
    assert 0 < good["aggregates"]["runtime_s_mean"] < 6
    assert "2 failed (the first: the container ended with exit code 3" in str(
        answers["crash"]["error_message"]
    )
    assert "2 wrong output" in answers["wrong"]["error_message"]
    assert answers["slow"]["metrics"]["case"]["status"] == {
        "0": "timed out",
        "1": "ok",
    }
    assert answers["slow"]["metrics"]["aggregates"]["runtime_s_max"] == 6
    assert answers["broken"]["error_message"].startswith("broken.tar.gz: ")
    assert answers["broken"]["error_message"].endswith("[F15]")
    assert answers["model"]["metrics"]["aggregates"]["cases_ok"] == 2
    assert answers["torn"]["error_message"].endswith("[F19]")
    assert external_platform.calls("claim") == [200] * 7
    assert left_behind(tmp_path / "results") == []
